"""`labelweave predict`: formats, streams, batches and refusals."""

import csv
import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_data import make_rows, write_csv

import labelweave as lw
from labelweave.cli import predict
from labelweave.exceptions import InputError


@pytest.fixture
def new_rows(workdir):
    X, _ = make_rows(25, seed=3)
    write_csv(workdir / "new.csv", X, None, ids=[f"row{i}" for i in range(25)])
    return X


def json_lines(text):
    return [json.loads(line) for line in text.splitlines()]


def test_predictions_are_those_of_the_model(run, model, new_rows):
    run("predict", model, "new.csv", "--out", "out.jsonl", "--proba", "all")
    rows = json_lines(Path("out.jsonl").read_text())
    loaded = lw.load(model)
    assert [row["id"] for row in rows] == [f"row{i}" for i in range(25)]
    names = loaded.label_names_
    probabilities = [[row["probabilities"][name] for name in names] for row in rows]
    X = new_rows.astype(np.float32)
    np.testing.assert_allclose(probabilities, loaded.predict_proba(X), atol=1e-6)
    assert [set(row["labels"]) for row in rows] == [set(s) for s in loaded.predict_labels(X)]


def test_batches_change_nothing(run, model, new_rows):
    at_once = run("predict", model, "new.csv").stdout
    assert len(json_lines(at_once)) == 25
    assert run("predict", model, "new.csv", "--batch-rows", 4).stdout == at_once


def test_no_more_rows_than_a_batch_are_predicted_at_once(run, model, new_rows, monkeypatch):
    sizes = []
    real = predict.feature_batches

    def watched(*arguments):
        for batch in real(*arguments):
            sizes.append(len(batch))
            yield batch

    monkeypatch.setattr(predict, "feature_batches", watched)
    run("predict", model, "new.csv", "--batch-rows", 10)
    assert sizes == [10, 10, 5]


def test_csv_can_be_read_back_as_data(run, model, new_rows):
    run("predict", model, "new.csv", "--out", "out.csv", "-q")
    with Path("out.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == 25
    assert set(rows[0]) == {"id", "labels", "probabilities"}


def test_columns_and_parquet_hold_the_same_predictions(run, model, new_rows):
    lists = json_lines(run("predict", model, "new.csv").stdout)
    run("predict", model, "new.csv", "--out", "out.csv", "--as", "csv-columns", "--batch-rows", 10)
    run("predict", model, "new.csv", "--out", "out.parquet", "--batch-rows", 10)
    columns = pd.read_csv("out.csv", index_col="id")
    parquet = pd.read_parquet("out.parquet")
    for row, (_, indicator), stored in zip(
        lists, columns.iterrows(), parquet.itertuples(), strict=True
    ):
        assert row["id"] == indicator.name == stored.id
        assert set(row["labels"]) == set(indicator.index[indicator == 1]) == set(stored.labels)
    refused = run("predict", model, "new.csv", "--as", "parquet", status=2)
    assert "needs --out FILE" in refused.output


def test_several_files_in_another_encoding(run, workdir):
    rows = "".join(f"{i % 7},5;{i % 3};{int(i % 7 > 3)}\n" for i in range(40))
    for part in (1, 2):
        Path(f"part-{part}.csv").write_bytes(("größe;b;y\n" + rows).encode("cp1252"))
    reading = ("--encoding", "cp1252", "--decimal", ",", "--delimiter", ";")
    run("train", "part-*.csv", "--labels", "y", "-m", "br", "--out", "m", *reading)
    predicted = json_lines(run("predict", "m", "part-*.csv").stdout)
    assert len(predicted) == 80
    score = run("evaluate", "m", "part-2.csv", *reading, "--labels", "y", "--json").stdout
    assert json.loads(score)


def test_top_and_other_thresholds(run, model, new_rows):
    top = json_lines(run("predict", model, "new.csv", "--top", 2).stdout)
    assert all(len(row["labels"]) == 2 for row in top)
    for row in top:
        first, second = (row["probabilities"][name] for name in row["labels"])
        assert first >= second
    everything = json_lines(run("predict", model, "new.csv", "--threshold", "0").stdout)
    assert all(len(row["labels"]) == 3 for row in everything)


def test_columns_by_name_in_any_order_with_strangers(run, model, new_rows, workdir):
    expected = run("predict", model, "new.csv").stdout
    turned = [[c, 5, a, b] for a, b, c in new_rows]
    ids = [f"row{i}" for i in range(25)]
    names = ["f3", "note", "f1", "f2"]
    write_csv(workdir / "turned.csv", turned, None, names=names, ids=ids)
    assert run("predict", model, "turned.csv").stdout == expected


def test_labels_in_the_input_are_not_used(run, model, workdir):
    X, Y = make_rows(10, seed=4)
    write_csv(workdir / "with.csv", X, Y)
    write_csv(workdir / "without.csv", X, None)
    with_labels = run("predict", model, "with.csv", "--labels", 3).stdout
    assert with_labels == run("predict", model, "without.csv").stdout


def test_reader_options_of_the_training_are_used_again(run, workdir):
    rows = [
        "name;what;genre",
        *(f"n{i};the blue sea {i};sea\nm{i};a hot sun {i};sun" for i in range(20)),
    ]
    (workdir / "t.csv").write_text("\n".join(rows) + "\n")
    options = ("--label-column", "genre", "--data-option", "text_column=what")
    more = ("--data-option", "id_column=name", "--data-option", "separator=;")
    run("train", "t.csv", *options, *more, "-m", "mlknn", "--out", "m", "-q")
    (workdir / "new.csv").write_text("name;what\nx1;hot sun\n")
    row = json_lines(run("predict", "m", "new.csv").stdout)[0]
    assert (row["id"], row["labels"]) == ("x1", ["sun"])


def test_texts_through_the_standard_streams(run, text_file):
    run("train", text_file, "-m", "mlknn", "--out", "news", "-q")
    line = '{"id": 7, "text": "the sea is blue"}\n'
    shown = run("predict", "news", "-", input=line)
    assert json_lines(shown.stdout)[0]["labels"] == ["sea"]
    assert json_lines(shown.stdout)[0]["id"] == 7
    plain = run("predict", "news", "-", "--format", "fasttext", "--as", "csv", input="a hot sun\n")
    assert plain.stdout.splitlines()[1].startswith("0,sun,")


def test_json_summary(run, model, new_rows):
    shown = json.loads(run("predict", model, "new.csv", "--out", "o.csv", "--json").stdout)
    assert (shown["rows"], shown["format"]) == (25, "csv")
    assert "stdout cannot hold both" in run("predict", model, "new.csv", "--json", status=2).stderr


def test_a_failure_leaves_the_old_output(run, model, new_rows, workdir, monkeypatch):
    (workdir / "out.csv").write_text("old")

    def fail(*_):
        yield from ()
        raise InputError("line 7 is broken")

    monkeypatch.setattr(predict, "feature_batches", fail)
    run("predict", model, "new.csv", "--out", "out.csv", status=2)
    assert (workdir / "out.csv").read_text() == "old"
    assert not [path for path in workdir.iterdir() if ".tmp" in path.name]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--out", "out.xls"], "must be .csv, .jsonl or .parquet"),
        (["--out", "model", "--as", "csv"], "is a folder"),
        (["--top", "2", "--threshold", "0.5"], "exclude each other"),
        (["--threshold", "tuned"], "has to be tuned"),
        (["--threshold", "7"], "there is no threshold 7"),
        (["--top", "0"], "--top"),
        (["--batch-rows", "0"], "--batch-rows"),
        (["--as", "csv", "--separator", "o"], "contains the separator"),
    ],
)
def test_wrong_options(run, model, new_rows, options, message):
    assert message in run("predict", model, "new.csv", *options, status=2).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("", "empty"),
        ("f1,f2\n1,2\n", "'f3'"),
        ("f1,f2,f3\n1,2\n", "line 2"),
        ("f1,f2,f3\n1,2,x\n", "input.csv"),
        ("f1,f2,f3\n1,2,\n", "is missing"),
    ],
)
def test_unusable_input(run, model, workdir, content, message):
    if content is not None:
        (workdir / "input.csv").write_text(content)
    result = run("predict", model, "input.csv", "--out", "out.csv", status=2)
    assert message in result.stderr
    assert not Path("out.csv").exists()


def test_texts_for_a_model_of_features_and_the_reverse(run, model, text_file, new_rows):
    assert "takes 3 features" in run("predict", model, text_file, status=2).stderr
    run("train", text_file, "-m", "mlknn", "--out", "news", "-q")
    assert "trained on texts" in run("predict", "news", "new.csv", status=2).stderr


def test_output_to_a_full_disk(run, model, new_rows):
    if not Path("/dev/full").exists():
        pytest.skip("no /dev/full here")
    done = subprocess.run(
        f"{sys.executable} -m labelweave.cli.main predict {model} new.csv > /dev/full",
        shell=True,
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "No space left on device" in done.stderr


@pytest.mark.parametrize("source", ["gap.csv", "-"])
def test_a_missing_feature_is_found_in_the_file_not_in_the_batch(run, model, workdir, source):
    X = make_rows(25, seed=3)[0].astype(object)
    X[17, 2] = ""
    path = write_csv(workdir / "gap.csv", X, None)
    result = run("predict", model, source, "--batch-rows", 5, input=path.read_bytes(), status=2)
    shown = "stdin" if source == "-" else source
    assert f"{shown}: feature 'f3' of row 17 (the first is 0) is missing" in result.stderr


def test_a_row_with_a_name_is_called_by_it(run, model, workdir):
    X = make_rows(4, seed=3)[0].astype(object)
    X[2, 0] = "inf"
    write_csv(workdir / "named.csv", X, None, ids=["a", "b", "c", "d"])
    shown = run("predict", model, "named.csv", status=2).stderr
    assert "feature 'f1' of row 'c' is infinite" in shown


def test_what_comes_through_stdin_is_called_stdin(run, model):
    shown = run("predict", model, "-", input="just some words\n", status=2).stderr
    assert shown.startswith("labelweave: stdin: the file has no known format")
    assert "--format" in shown


@pytest.mark.data
def test_a_set_of_the_catalog_by_its_name(run, data_home):
    run("train", "emotions", "-m", "mlknn", "--out", "model", "-q")
    rows = json_lines(run("predict", "model", "emotions", "--batch-rows", 100, "-q").stdout)
    assert len(rows) == 593
    refused = run("predict", "model", "scene", "-q", status=2)
    assert "scene has 294 features, but the model takes 72 features" in refused.output
