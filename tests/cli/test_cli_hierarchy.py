"""`--hierarchy` of train, evaluate and predict."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def animals(workdir):
    """Rows with a cat or a dog; nobody annotated "animal" beside them. Some rows have plants."""
    random = np.random.RandomState(0)
    kind = random.randint(0, 3, size=240)
    table = pd.DataFrame({f"x{j}": (kind == j) + 0.3 * random.randn(240) for j in range(3)})
    for j, name in enumerate(("cat", "dog", "plant")):
        table[f"is_{name}"] = (kind == j).astype(int)
    table["is_animal"] = np.where(random.rand(240) < 0.1, kind < 2, 0).astype(int)
    table.to_csv("animals.csv", index=False)
    Path("labels.csv").write_text(
        "label,broader\nis_cat,is_animal\nis_dog,is_animal\nis_animal,\nis_plant,\n"
    )
    return table


def test_broader_labels_are_learnt_scored_and_predicted(run, animals):
    data = ["animals.csv", "--labels", "is_*"]
    trained = run(
        "train", *data, "-m", "br", "--hierarchy", "labels.csv", "--out", "m", "--per-label"
    )
    assert "labels completed by the hierarchy of labels.csv" in trained.stdout
    scored = run("evaluate", "m", *data, "--hierarchy", "labels.csv", "--json")
    scores = json.loads(scored.stdout)
    assert scores["rows_seen_in_training"] == 0  # the parts are those of the training
    assert scores["hierarchical"]["hierarchical_f1"] > 0.9
    raw = json.loads(run("evaluate", "m", *data, "--json").stdout)
    assert raw["rows"] == scores["rows"]
    assert "hierarchical" not in raw
    assert raw["scores"]["f1_micro"] < scores["scores"]["f1_micro"]

    run("predict", "m", "animals.csv", "--hierarchy", "labels.csv", "--out", "p.jsonl",
        "--proba", "all", "--threshold", "0.5")  # fmt: skip
    for line in Path("p.jsonl").read_text().splitlines():
        row = json.loads(line)
        probabilities = row["probabilities"]
        narrower = max(probabilities["is_cat"], probabilities["is_dog"])
        assert probabilities["is_animal"] >= narrower
        assert "is_animal" in row["labels"] or not {"is_cat", "is_dog"} & set(row["labels"])


def test_a_contradiction_names_the_row(run, animals):
    table = animals.copy()
    table.loc[5, "is_plant"] = np.nan  # some entry is blank: a 0 is a checked negative
    table.to_csv("animals.csv", index=False)
    options = ["--labels", "is_*", "--hierarchy", "labels.csv"]
    message = run("train", "animals.csv", *options, status=2).output
    assert "but not the broader label 'is_animal', which is 0 there" in message
