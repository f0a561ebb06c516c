"""The disagreement report."""

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

from labelweave.exceptions import LabelweaveWarning
from labelweave.scattered.disagreement import disagreement
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
    assert sorted(table.index) == ["B", "c"]
    for label, p, q in (("B", P[:, 1], Q[:, 1]), ("c", P[:, 2], Q[:, 0])):
        yes, also = p > 0.5, q > 0.5
        line = table.loc[label]
        assert (line["first"], line["second"]) == ("one", "two")
        assert line["rate"] == pytest.approx((yes != also).mean())
        assert line["first_only"] == (yes & ~also).sum()
        assert line["second_only"] == (~yes & also).sum()
        assert line["kappa"] == pytest.approx(cohen_kappa_score(yes, also))


def test_the_rows_are_named_the_widest_apart_first(report):
    rows = report.rows
    assert len(rows) == report.table[["first_only", "second_only"]].to_numpy().sum()
    apart = (rows["first_probability"] - rows["second_probability"]).abs()
    assert apart.is_monotonic_decreasing
    worst = rows.iloc[0]
    i = int(worst["row"][1:])
    p, q = (P[i, 1], Q[i, 1]) if worst["label"] == "B" else (P[i, 2], Q[i, 0])
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
    assert "B (one, two)" in (tmp_path / "report.svg").read_text()


def test_nothing_shared():
    one = Teacher(lambda X: P, ["a", "b", "c"])
    two = Teacher(lambda X: Q, ["d", "e", "f"])
    with pytest.warns(LabelweaveWarning):
        report = disagreement([one, two], np.zeros((40, 1)))
    assert report.table.empty
    assert report.summary() == ["no two teachers share a label: there is nothing to contradict"]
