"""Labels in part on the command line: verdicts, blank labels, and labels without a yes."""

import json

import numpy as np
import pytest
from cli_data import make_rows, write_csv

KNN = ("--labels", "red,blue,round", "-m", "mlknn", "--set", "k=3")


@pytest.fixture
def verdicts(workdir):
    """Yes to every blank of red and blue in the first hundred rows: the strata change."""
    lines = [f"{i},{label},yes" for i in range(100) for label in ("red", "blue")]
    (workdir / "verdicts.csv").write_text("row,label,verdict\n" + "\n".join(lines) + "\n")
    return "verdicts.csv"


def test_verdicts_do_not_move_rows_to_another_part(run, csv_file, verdicts):
    run("train", csv_file, *KNN, "--corrections", verdicts, "--out", "model", "-q")
    for more in ((), ("--corrections", verdicts)):
        told = json.loads(run("evaluate", "model", csv_file, *more, "--json", "-q").stdout)
        assert told["part"] == "test part, as in its training"
        assert (told["rows"], told["rows_seen_in_training"]) == (36, 0)
    run("train", csv_file, *KNN, "--out", "before", "-q")
    told = run("evaluate", "before", csv_file, "--corrections", verdicts).output
    assert "the model has seen none of them" in told


def test_verdicts_do_not_move_validation_rows_either(run, csv_file, workdir, verdicts):
    test = write_csv(workdir / "test.csv", *make_rows(20, seed=5))
    run("train", csv_file, *KNN, "--test", test, "--corrections", verdicts, "--out", "model", "-q")
    scored = ("evaluate", "model", csv_file, "--part", "validation", "--json", "-q")
    told = [json.loads(run(*scored, *more).stdout) for more in ((), ("--corrections", verdicts))]
    assert told[0]["rows"] == told[1]["rows"] == 24


def test_a_label_that_nobody_annotated_can_be_dropped(run, workdir):
    X, Y = make_rows(60)
    blank = np.where(np.arange(3) == 1, "", Y.astype(str))
    path = write_csv(workdir / "shapes.csv", X, blank)
    told = run("train", path, *KNN, status=2).output
    assert "'blue' has no known entry in the training rows: leave it out (option --drop)" in told
    trained = run("train", path, *KNN, "--drop", "blue", "--out", "model").output
    assert "60 rows, 3 features, 2 labels" in trained
    assert "blue" not in run("evaluate", "model", path, "--per-label").output


def test_labels_without_a_yes_are_pointed_out(run, workdir, csv_file):
    X, Y = make_rows(60)
    path = write_csv(workdir / "no.csv", X, np.zeros_like(Y))
    assert "no entry is positive" in run("train", path, *KNN).output
    assert "no entry is positive" not in run("train", csv_file, *KNN).output


# -- which entries are unannotated -------------------------------------------------------

CLS = ("--labels", "red,blue,round", "-m", "cls", "--set", "base__epochs=2")
CLS += ("--set", "base__hidden=[8]", "--set", "tau_h=0.2", "-s", "threshold=0.5")


@pytest.fixture
def codes(monkeypatch):
    """The coded labels of each session of training."""
    from labelweave.partial.base import PartialClassifier

    seen = []
    open_session = PartialClassifier._open_session

    def watched(model, X, observed, validation):
        seen.append(observed.to_numpy())
        return open_session(model, X, observed, validation)

    monkeypatch.setattr(PartialClassifier, "_open_session", watched)
    return seen


def blank_file(workdir, n_blank):
    X, Y = make_rows(120)
    cells = Y.astype(int).astype(str)
    cells.flat[np.flatnonzero(Y == 0)[:n_blank]] = ""
    return write_csv(workdir / "shapes.csv", X, cells), int((Y == 0).sum())


def test_train_and_audit_say_what_is_unannotated(run, workdir, codes):
    path, n_zero = blank_file(workdir, 30)
    said = run("train", path, *CLS, "--out", "model").output
    n_blank = int((codes[0] == 0).sum())
    assert f"unannotated entries: the {n_blank} blanks; zeros are checked negatives" in said
    assert (codes[0] == -1).sum() > n_blank > 0
    quick = ("--labels", "red,blue,round", "--folds", 2, "--top", 5)
    assert "the 30 blanks; zeros are checked negatives" in run("audit", path, *quick).output
    path, _ = blank_file(workdir, 0)
    said = run("train", path, *CLS, "--out", "model").output
    n_unannotated = int((codes[1] == 0).sum())
    assert f"unannotated entries: the {n_unannotated} zeros, since no entry is blank" in said
    assert not (codes[1] == -1).any()
    said = run("audit", path, *quick).output
    assert f"the {n_zero} zeros, since no entry is blank" in said
    said = run("audit", path, *quick, "--unannotated", "unknown").output
    assert "the 0 blanks; zeros are checked negatives, as set" in said


def write_verdicts(workdir, verdict, entries):
    names = ("red", "blue", "round")
    lines = [f"{i},{names[j]},{verdict}" for i, j in entries]
    (workdir / "verdicts.csv").write_text("row,label,verdict\n" + "\n".join(lines) + "\n")
    return "--corrections", "verdicts.csv"


def test_a_no_in_a_matrix_without_blanks_is_a_checked_negative(run, workdir, codes):
    """The other zeros stay unannotated, and the test rows are scored as before."""
    path, _ = blank_file(workdir, 0)
    _, Y = make_rows(120)
    no = [(i, j) for i, j in np.argwhere(Y == 0) if i < 60]
    verdicts = write_verdicts(workdir, "no", no)
    plain = json.loads(run("train", path, *CLS, "--out", "plain", "--json", "-q").stdout)
    said = run("train", path, *CLS, *verdicts, "--out", "model").output
    assert "before the corrections, unannotated entries: the" in said
    n_no = int((codes[1] == -1).sum())
    assert 0.5 * len(no) < n_no < len(no)  # the others are in the test rows
    assert (codes[1] == 0).sum() == (codes[0] == 0).sum() - n_no
    assert not np.isnan(codes[1]).any()
    np.testing.assert_array_equal(codes[1] == 1, codes[0] == 1)
    scores = json.loads((workdir / "model" / "metrics.json").read_text())["scores"]["test"]
    assert scores.keys() == plain["scores"]["test"].keys()
    again = json.loads(run("evaluate", "model", path, "--json", "-q").stdout)["scores"]
    assert again["f1_micro"] == pytest.approx(scores["f1_micro"])


def test_verdicts_on_all_blanks_leave_the_zeros_checked(run, workdir, codes):
    path, _ = blank_file(workdir, 12)
    _, Y = make_rows(120)
    verdicts = write_verdicts(workdir, "no", np.argwhere(Y == 0)[:12])
    run("train", path, *CLS, *verdicts, "--out", "model", "-q")
    assert not (codes[0] == 0).any()
    assert (codes[0] == -1).sum() > 12


def test_a_label_without_positives_keeps_its_zeros_beside_verdicts(run, workdir, codes):
    X, Y = make_rows(120)
    Y[:, 1] = 0
    path = write_csv(workdir / "shapes.csv", X, Y)
    verdicts = write_verdicts(workdir, "no", np.argwhere(Y[:, [0]] == 0)[:5])
    run("train", path, *CLS, *verdicts, "--out", "model", "-q")
    assert (codes[0][:, 1] == -1).all()
    assert (codes[0][:, 2] == 0).any()
