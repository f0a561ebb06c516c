"""`labelweave predict --known`: labels that are known already, from a CSV file."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_data import make_rows, write_csv

import labelweave as lw


@pytest.fixture
def chain(run, csv_file):
    run("train", csv_file, "--labels", 3, "-m", "chain", "--out", "chain", "-q")
    X, _ = make_rows(5, seed=3)
    write_csv(Path("new.csv"), X, None)
    return "chain"


def predicted(run, *arguments):
    lines = run("predict", *arguments).stdout.splitlines()
    return [json.loads(line) for line in lines]


def test_known_labels_stay_and_the_others_are_predicted_given_them(run, chain):
    Path("known.csv").write_text("round,red\n1,\n0,1\n,\n,0\n1,1\n")
    asked = (chain, "new.csv", "--proba", "all", "--known", "known.csv")
    rows = predicted(run, *asked)
    loaded = lw.load(chain)
    X = make_rows(5, seed=3)[0].astype(np.float32)
    names = list(loaded.label_names_)
    known = np.full((5, 3), np.nan)
    known[:, names.index("round")] = [1, 0, np.nan, np.nan, 1]
    known[:, names.index("red")] = [np.nan, 1, np.nan, 0, 1]
    expected = loaded.predict_proba(X, known=known)
    probabilities = [[row["probabilities"][name] for name in names] for row in rows]
    np.testing.assert_allclose(probabilities, expected, atol=1e-6)
    assert "round" in rows[0]["labels"]
    assert "round" not in rows[1]["labels"]
    assert rows == predicted(run, *asked, "--batch-rows", 2)


def test_known_labels_stay_whatever_the_rule(run, chain):
    Path("known.csv").write_text("red\n" + "1\n" * 5)
    rows = predicted(run, chain, "new.csv", "--known", "known.csv", "--threshold", "1.0")
    assert all(row["labels"] == ["red"] for row in rows)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("red\n1\n", "has 1 rows, but the input at least 5"),
        ("red\n" + "\n" * 6, "has 6 rows, but the input 5"),
        ("green\n" + "1\n" * 5, "column 'green' is no label of the model"),
        ("red\n1\nyes\n1\n1\n1\n", "known.csv, line 3: 'red' is 'yes'"),
    ],
)
def test_a_file_that_does_not_fit_is_refused(run, chain, text, says):
    Path("known.csv").write_text(text)
    asked = ("predict", chain, "new.csv", "--known", "known.csv", "--out", "out.csv")
    assert says in " ".join(run(*asked, status=2).output.split())
    assert not Path("out.csv").exists()


def test_a_missing_file_and_a_model_without_known_labels_are_named(run, chain, model):
    asked = ("predict", chain, "new.csv", "--known", "nowhere.csv")
    assert "nowhere.csv: there is no such file" in run(*asked, status=2).output
    Path("known.csv").write_text("red\n" + "1\n" * 5)
    asked = ("predict", model, "new.csv", "--known", "known.csv")
    assert "MLkNN does not predict a label from others" in run(*asked, status=2).output
