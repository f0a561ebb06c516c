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
