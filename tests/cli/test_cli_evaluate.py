"""`labelweave evaluate`: which rows, and whether the model has seen them."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
from cli_data import make_rows, write_csv

import labelweave as lw


def scored(run, *arguments):
    return json.loads(run("evaluate", *arguments, "--json", "-q").stdout)


def test_on_its_own_data_the_test_part_of_the_training(run, csv_file, model):
    result = scored(run, model, csv_file, "--labels", 3)
    trained = json.loads(Path(model, "metrics.json").read_text())["scores"]["test"]
    assert result["scores"] == trained
    assert (result["rows"], result["rows_seen_in_training"]) == (36, 0)
    assert result["verdict"] == "the model has seen none of them"


def test_reader_options_of_the_training_are_used_again(run, csv_file, model, workdir):
    result = scored(run, model, csv_file, "--labels", 3)
    assert scored(run, model, csv_file)["scores"] == result["scores"]
    (workdir / "shapes.tsv").write_text(csv_file.read_text().replace(",", "\t"))
    # Of another kind of file, the columns that are named as the labels of the model.
    assert scored(run, model, "shapes.tsv")["scores"] == result["scores"]


def test_reader_options_are_added_to_those_of_the_training(run, csv_file, model, workdir):
    result = scored(run, model, csv_file)
    (workdir / "later.csv").write_text(csv_file.read_text().replace(",", "|"))
    later = scored(run, model, "later.csv", "--delimiter", "|")
    assert later["scores"] == result["scores"]
    named = scored(run, model, "later.csv", "--delimiter", "|", "--labels", "red,blue,round")
    assert named["scores"] == result["scores"]


def test_test_file_is_found_from_elsewhere(run, csv_file, workdir, monkeypatch):
    write_csv(workdir / "later.csv", *make_rows(30, seed=1))
    run("train", csv_file, "--labels", 3, "-m", "mlknn", "--test", "later.csv", "--out", "m", "-q")
    (workdir / "elsewhere").mkdir()
    monkeypatch.chdir(workdir / "elsewhere")
    assert scored(run, workdir / "m", csv_file)["rows"] == 30


@pytest.mark.parametrize(("part", "rows"), [("train", 67), ("validation", 17), ("all", 120)])
def test_rows_it_has_seen_are_told(run, csv_file, model, part, rows):
    result = scored(run, model, csv_file, "--labels", 3, "--part", part)
    assert result["rows"] == rows
    assert result["rows_seen_in_training"] == (84 if part == "all" else rows)
    assert "too good" in result["verdict"]


def test_other_data(run, model, workdir):
    other = write_csv(workdir / "other.csv", *make_rows(40, seed=5))
    result = scored(run, model, other, "--labels", 3)
    assert (result["part"], result["rows"]) == ("all rows", 40)
    assert result["rows_seen_in_training"] == 0
    assert (
        "no test part here"
        in run("evaluate", model, other, "--labels", 3, "--part", "test", status=2).stderr
    )


def test_some_known_rows_among_others(run, csv_file, model, workdir):
    X, Y = make_rows(120)
    more_X, more_Y = make_rows(10, seed=9)
    mixed = write_csv(workdir / "mixed.csv", np.vstack([X, more_X]), np.vstack([Y, more_Y]))
    result = scored(run, model, mixed, "--labels", 3)
    assert result["rows_seen_in_training"] == 84
    assert result["verdict"].startswith("84 of them")


def test_official_part_of_other_data(run, model, workdir):
    X, Y = make_rows(40, seed=5)
    cells = [["test" if i < 15 else "train", *y] for i, y in enumerate(Y)]
    path = workdir / "parts.csv"
    write_csv(path, X, cells, labels=["split", "red", "blue", "round"])
    result = scored(run, model, path, "--labels", 3)
    assert (result["part"], result["rows"]) == ("official test part", 15)


def test_model_saved_from_python_tells_nothing(run, csv_file, workdir):
    X, Y = make_rows(50)
    lw.make("mlknn", k=3).fit(X, lw.as_labels(Y, names=["red", "blue", "round"])).save("plain")
    result = scored(run, "plain", csv_file, "--labels", 3)
    assert result["rows_seen_in_training"] is None
    assert "does not record" in result["verdict"]


def test_chosen_metrics_and_labels(run, csv_file, model):
    options = ("--labels", 3, "--metrics", "f1_micro, precision@2")
    assert list(scored(run, model, csv_file, *options)["scores"]) == ["f1_micro", "precision@2"]
    shown = run("evaluate", model, csv_file, *options, "--per-label").stdout
    assert "precision@2" in shown
    assert "round" in shown
    wrong = run("evaluate", model, csv_file, "--metrics", "f1_mikro", status=2)
    assert "did you mean 'f1_micro'?" in wrong.stderr


def test_label_order_of_the_file_is_no_matter(run, csv_file, model, workdir):
    X, Y = make_rows(40, seed=5)
    straight = write_csv(workdir / "straight.csv", X, Y)
    turned = write_csv(workdir / "turned.csv", X, Y[:, ::-1], labels=["round", "blue", "red"])
    expected = scored(run, model, straight, "--labels", 3)["scores"]
    assert scored(run, model, turned, "--labels", 3)["scores"] == expected


@pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")
def test_labels_the_model_does_not_know_and_labels_the_file_lacks(run, model, workdir):
    X, Y = make_rows(40, seed=5)
    path = write_csv(workdir / "strange.csv", X, Y, labels=["red", "green", "round"])
    result = run("evaluate", model, path, "--labels", 3, "--per-label", "--json")
    shown = json.loads(result.stdout)
    assert [row["label"] for row in shown["per_label"]] == ["red", "round"]
    assert "1 labels of strange are unknown to the model and not scored ('green'" in result.stderr
    assert "has 2 of the 3 labels of the model" in result.stderr
    path.write_text(path.read_text().replace("red,green,round", "x,y,z"))
    assert "none of the labels" in run("evaluate", model, path, "--labels", 3, status=2).stderr


def test_label_that_a_list_never_names_is_negative(run, text_file, workdir):
    run("train", text_file, "-m", "mlknn", "--out", "news", "-q")
    (workdir / "sea.jsonl").write_text('{"text": "the blue sea", "labels": ["sea"]}\n' * 4)
    shown = scored(run, "news", "sea.jsonl", "--per-label")
    rows = {row["label"]: row for row in shown["per_label"]}
    assert (rows["sun"]["positives"], rows["sun"]["known"]) == (0, 4)


def test_wrong_width(run, model, workdir):
    X, Y = make_rows(30)
    path = write_csv(workdir / "narrow.csv", X[:, :2], Y, names=("f1", "f2"))
    shown = run("evaluate", model, path, "--labels", 3, status=2).stderr
    assert "narrow has 2 features, but the model takes 3 features" in shown


def test_corrupted_models(run, csv_file, model):
    for damage in ("config.json", "training.json", "rows-seen.npy", "labels.json"):
        shutil.rmtree("copy", ignore_errors=True)
        shutil.copytree(model, "copy")
        Path("copy", damage).write_bytes(b"{nonsense")
        shown = run("evaluate", "copy", csv_file, "--labels", 3, status=2).stderr
        assert shown.startswith("labelweave: copy")
        assert shown.count("\n") == 1


@pytest.mark.parametrize("folder", ["nowhere", "shapes.csv", "."])
def test_no_model(run, csv_file, folder):
    assert run("evaluate", folder, csv_file, status=2).stderr.count("\n") == 1
