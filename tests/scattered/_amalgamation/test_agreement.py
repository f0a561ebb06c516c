"""Agreement of teachers with each other, and of a student with them."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from labelweave.exceptions import LabelweaveWarning
from labelweave.scattered._amalgamation.agreement import disagreement, fidelity_to_teachers
from labelweave.scattered._amalgamation.teacher_predictions import (
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered.teacher import Teacher

P = np.random.default_rng(0).random((40, 3))
Q = np.random.default_rng(1).random((40, 3))


@pytest.fixture
def report():
    one = Teacher(lambda X: P, ["a", "b", "c"], name="one")
    two = Teacher(lambda X: Q, ["c", "B", "d"], name="two")
    return disagreement([two, one], np.zeros((40, 1)), row_ids=[f"r{i}" for i in range(40)])


def test_rates_and_directions(report):
    table = report.table.set_index("label")
    assert sorted(table.index) == ["b", "c"]
    for label, p, q in (("b", P[:, 1], Q[:, 1]), ("c", P[:, 2], Q[:, 0])):
        yes, other_yes = p > 0.5, q > 0.5
        line = table.loc[label]
        assert (line["first"], line["second"]) == ("one", "two")
        assert line["rate"] == pytest.approx((yes != other_yes).mean())
        assert line["first_only"] == (yes & ~other_yes).sum()
        assert line["second_only"] == (~yes & other_yes).sum()
        assert line["kappa"] == pytest.approx(cohen_kappa_score(yes, other_yes))


def test_each_teacher_is_compared_by_its_own_threshold():
    one = Teacher(lambda X: P, ["a", "b", "c"], name="one", threshold=0.1)
    two = Teacher(lambda X: Q, ["c", "b", "d"], name="two", threshold=[0.8, 0.6, 0.5])
    report = disagreement([one, two], np.zeros((40, 1)))
    table = report.table.set_index("label")
    yes, other_yes = P[:, 1] > 0.1, Q[:, 1] > 0.6
    assert table.loc["b", "first_only"] == (yes & ~other_yes).sum() > 0
    rows = report.rows[report.rows["label"] == "b"]
    assert np.allclose(rows["first_probability"], P[rows["row"], 1], atol=1e-4)
    assert np.allclose(rows["second_probability"], Q[rows["row"], 1], atol=1e-4)


def test_rows_are_sorted_by_the_difference(report):
    rows = report.rows
    assert len(rows) == report.table[["first_only", "second_only"]].to_numpy().sum()
    difference = (rows["first_probability"] - rows["second_probability"]).abs()
    assert difference.is_monotonic_decreasing
    worst = rows.iloc[0]
    i = int(worst["row"][1:])
    p, q = (P[i, 1], Q[i, 1]) if worst["label"] == "b" else (P[i, 2], Q[i, 0])
    assert worst["first_probability"] == pytest.approx(p, abs=1e-5)
    assert worst["second_probability"] == pytest.approx(q, abs=1e-5)


def test_summary_csv_and_plot(report, tmp_path):
    pytest.importorskip("matplotlib")
    (line,) = report.summary()
    assert line.startswith("one and two share 2 labels and contradict each other in")
    written = report.to_csv(tmp_path / "report.csv")
    assert [path.name for path in written] == ["report.csv", "report-rows.csv"]
    assert len(pd.read_csv(written[0])) == 2
    assert len(pd.read_csv(written[1])) == len(report.rows)
    svg = report.plot(tmp_path / "report.svg")
    assert svg.startswith("<svg")
    assert "b (one, two)" in (tmp_path / "report.svg").read_text()


def test_no_shared_label():
    one = Teacher(lambda X: P, ["a", "b", "c"])
    two = Teacher(lambda X: Q, ["d", "e", "f"])
    with pytest.warns(LabelweaveWarning):
        report = disagreement([one, two], np.zeros((40, 1)))
    assert report.table.empty
    assert report.summary() == ["no two teachers share a label: there is nothing to compare"]


def test_fidelity_against_the_definition():
    teachers = [Teacher(lambda X: P, list("abc")), Teacher(lambda X: Q, list("bcd"))]
    X, student = np.zeros((40, 1)), np.random.default_rng(2).random((40, 4))
    predictions = predict_with_teachers(teachers, joint_vocabulary(teachers), X)
    table = fidelity_to_teachers(predictions, student).set_index("teacher")
    for name, columns, p in zip(predictions.names, ([0, 1, 2], [1, 2, 3]), (P, Q), strict=True):
        theirs, ours = p > 0.5, student[:, columns] > 0.5
        assert table.loc[name, "agreement"] == pytest.approx((theirs == ours).mean())
        assert table.loc[name, "f1"] == pytest.approx(
            2 * (theirs & ours).sum() / (theirs.sum() + ours.sum())
        )
        difference = np.abs(p - student[:, columns]).mean()
        assert table.loc[name, "difference"] == pytest.approx(difference, abs=1e-5)
