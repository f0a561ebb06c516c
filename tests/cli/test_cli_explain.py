"""`labelweave explain`: importance of columns and words, and explanations of single rows."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_data import make_rows, write_csv

import labelweave as lw


def explained(run, *arguments):
    return json.loads(run("explain", *arguments, "--json", "-q").stdout)


def best_features(result):
    return {one["label"]: one["features"][0]["feature"] for one in result["labels"]}


EXPECTED = {"red": "f1", "blue": "f2", "round": "f3"}


def test_importance_on_the_test_rows_of_the_training(run, csv_file, model):
    result = explained(run, model, csv_file)
    assert result["rows"] == 36
    assert best_features(result) == EXPECTED
    assert "stated" not in result  # MLkNN has neither weights nor gains
    assert result["labels"][0]["score"] > 0.8
    shown = run("explain", model, csv_file, "--top", 1).stdout
    assert "36 rows of shapes" in shown
    assert "the model has seen none of them" in shown
    assert "drop in average precision" in shown
    for label, feature in EXPECTED.items():
        (line,) = [line for line in shown.splitlines() if line.startswith(label)]
        assert line.split()[2] == feature
        assert "," not in line


def test_what_the_model_states(run, csv_file):
    run("train", csv_file, "--labels", 3, "-m", "br", "--out", "linear", "-q")
    result = explained(run, "linear", csv_file)
    assert best_features(result["stated"]) == EXPECTED
    assert result["stated"]["labels"][0]["features"][0]["direction"] == 1
    shown = run("explain", "linear", csv_file).stdout
    assert "what the model states: share of the absolute weights" in shown


def test_gains_of_trees(run, csv_file):
    run("train", csv_file, "--labels", 3, "-m", "extra-trees", "--out", "trees", "-q")
    assert best_features(explained(run, "trees", csv_file)["stated"]) == EXPECTED
    assert "share of the gains of splits" in run("explain", "trees", csv_file).stdout


def test_a_row(run, csv_file, model):
    row = 17
    X, _ = make_rows(120)
    result = explained(run, model, csv_file, "--row", row)
    fitted = lw.load(model)
    assert [one["label"] for one in result["labels"]] == ["red", "blue", "round"]
    for j, one in enumerate(result["labels"]):
        strongest = one["features"][0]
        assert strongest["feature"] == f"f{j + 1}"
        assert strongest["value"] == X[row, j]
        assert (strongest["change"] > 0) == (X[row, j] > 0.5)
        assert one["probability"] == pytest.approx(fitted.predict_proba(X[[row]])[0, j], abs=1e-6)
    shown = run("explain", model, csv_file, "--row", row).stdout
    predicted = fitted.predict_labels(X[[row]])[0]
    lines = [line.split()[0] for line in shown.splitlines()[3:]]
    assert sorted(lines) == sorted(predicted)


def test_a_row_by_its_id(run, workdir, model):
    X, Y = make_rows(20, seed=1)
    write_csv(workdir / "more.csv", X, Y, ids=[f"p{k}" for k in range(20)])
    options = ("--labels", 3, "--data-option", "id_column=id")
    result = explained(run, model, "more.csv", *options, "--row", "p3", "--only", "red")
    (red,) = result["labels"]
    assert {one["feature"]: one["value"] for one in red["features"]}["f1"] == X[3, 0]
    error = run("explain", model, "more.csv", *options, "--row", "x", status=2).stderr
    assert "--row x: more has the rows 0 to 19, with ids such as 'p0'" in error
    by_number = run("explain", model, "more.csv", *options, "--row", 3, "--only", "red").stdout
    assert "no row has the id 3: this is row number 3, the first being 0" in by_number
    assert "row p3:" in by_number


def test_words(run, text_file):
    run("train", text_file, "-m", "br", "--out", "texts", "-q")
    result = explained(run, "texts", text_file, "--row", "c3")
    for one in result["labels"]:
        changes = {feature["feature"]: feature["change"] for feature in one["features"]}
        other = "sun" if one["label"] == "sea" else "sea"
        assert changes[one["label"]] > max(0, changes[other])
    result = explained(run, "texts", text_file)
    stated = {one["label"]: one["features"] for one in result["stated"]["labels"]}
    signs = {one["feature"]: one["direction"] for one in stated["sun"]}
    assert signs["sun"] == 1
    shown = run("explain", "texts", text_file, "--max-columns", 4).stdout
    assert "more of it speaks against" in shown
    assert "words were not measured (--max-columns)" in shown


def test_files_of_all_numbers(run, csv_file, model):
    run("explain", model, csv_file, "--out", "all.csv", "-q")
    table = pd.read_csv("all.csv")
    assert list(table) == ["label", "feature", "importance", "spread"]
    assert len(table) == 9
    run("explain", model, csv_file, "--row", 3, "--out", "row.csv", "-q")
    row = pd.read_csv("row.csv")
    assert list(row) == ["label", "probability", "feature", "value", "change"]
    np.testing.assert_allclose(row["value"][:3], make_rows(120)[0][3])
    assert "must be .csv" in run("explain", model, csv_file, "--out", "a.txt", status=2).stderr


def test_wrong_rows_and_labels(run, csv_file, model):
    assert "has the rows 0 to 119" in run("explain", model, csv_file, "--row", 120, status=2).stderr
    assert "'green'" in run("explain", model, csv_file, "--only", "green", status=2).stderr


def test_the_folder_keeps_typical_values(run, csv_file, model):
    stored = json.loads(Path(model, "reference.json").read_text())
    X, _ = make_rows(120)
    rows = np.array(stored["rows"])
    assert rows.shape == (5, 3)
    assert (np.diff(rows, axis=0) > 0).all()  # each column is in order by itself
    assert not any((rows == row).all(axis=1).any() for row in X)


def test_a_damaged_file_of_typical_values_is_named(run, csv_file, model):
    Path(model, "reference.json").write_text('{"kind": "table", "columns": 3}')
    error = run("explain", model, csv_file, status=2).stderr
    assert "reference.json is damaged: delete it" in error
    Path(model, "reference.json").unlink()
    run("explain", model, csv_file)


@pytest.fixture
def products(workdir):
    """products.csv: a mixed table with blanks, whose labels depend on price and brand."""
    random = np.random.default_rng(0)
    price, brand = random.normal(size=200).round(3), random.choice(["acme", "bolt"], 200)
    frame = pd.DataFrame(
        {
            "price": np.where(random.random(200) < 0.1, np.nan, price),
            "brand": brand,
            "weight": random.normal(size=200).round(3),
            "is_cheap": (price < 0).astype(int),
            "is_acme": (brand == "acme").astype(int),
        }
    )
    frame.to_csv("products.csv", index=False)
    return frame


def test_a_mixed_table(run, products):
    run("train", "products.csv", "--labels", "is_*", "-m", "br", "--out", "products", "-q")
    result = explained(run, "products", "products.csv")
    expected = {"is_cheap": "price", "is_acme": "brand"}
    assert best_features(result) == expected
    assert best_features(result["stated"]) == expected
    row = explained(run, "products", "products.csv", "--row", 17, "--only", "is_acme")
    strongest = row["labels"][0]["features"][0]
    assert (strongest["feature"], strongest["value"]) == ("brand", products["brand"][17])
    assert (strongest["change"] > 0) == (products["brand"][17] == "acme")
    stored = json.loads(Path("products", "reference.json").read_text())
    assert set(stored["columns"]["brand"]) == {"acme", "bolt"}


def test_a_row_of_data_without_labels(run, csv_file, model, products, workdir):
    X, _ = make_rows(30, seed=2)
    write_csv(workdir / "new.csv", X, None, ids=[f"n{k}" for k in range(30)])
    options = ("--data-option", "id_column=id", "--row", "n4", "--only", "blue")
    result = explained(run, model, "new.csv", *options)
    strongest = result["labels"][0]["features"][0]
    assert (strongest["feature"], strongest["value"]) == ("f2", X[4, 1])
    shown = run("explain", model, "new.csv", *options).stdout
    assert "30 rows of new (without labels): the model has seen none of them" in shown
    # the importance needs labels
    error = run("explain", model, "new.csv", *options[:2], status=2).stderr
    assert "--labels" in error
    run("train", "products.csv", "--labels", "is_*", "-m", "br", "--out", "products", "-q")
    products[["weight", "brand", "price"]].to_csv("more.csv", index=False)
    result = explained(run, "products", "more.csv", "--row", 3, "--only", "is_acme")
    strongest = result["labels"][0]["features"][0]
    assert (strongest["feature"], strongest["value"]) == ("brand", products["brand"][3])
