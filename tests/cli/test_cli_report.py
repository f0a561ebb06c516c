"""`labelweave report`: the page on a model folder, and one line for what is wrong."""

import json
import re
import shutil
from pathlib import Path

import pytest
from cli_data import make_rows, write_csv

pytestmark = pytest.mark.usefixtures("quick_plots")


def test_a_model_folder_knows_its_data(run, csv_file, model):
    result = run("report", model)
    assert "report written to model-report.html" in result.output
    page = Path("model-report.html").read_text()
    scores = json.loads(Path(model, "metrics.json").read_text())["scores"]["test"]
    assert f">{scores['f1_example']:.4f}<" in page
    assert "test part, as in its training" in page
    assert "the model has seen none of them" in page
    assert "validation rows (for choosing)" in page
    assert "peak memory, MB" in page
    assert "seconds to fit" in page


def test_other_data_and_the_part_are_named(run, csv_file, model, workdir):
    write_csv(workdir / "other.csv", *make_rows(30, seed=9))
    run("report", model, "--data", "other.csv", "--out", "other.html")
    assert "30 rows of other (all rows)" in Path("other.html").read_text()
    run("report", model, "--part", "validation", "--out", "seen.html")
    seen = Path("seen.html").read_text()
    assert "so the scores are too good" in seen
    assert 'class="note"' in seen


def test_markdown_by_ending_or_format(run, csv_file, model):
    run("report", model, "--format", "md")
    text = Path("model-report.md").read_text()
    for name in re.findall(r"\]\(([^)]+)\)", text):
        assert Path(name).is_file()
    result = run("report", model, "--out", "b.md", "--json")
    assert json.loads(result.stdout) == {"report": "b.md", "about": model}


def test_texts_and_history(run, text_file):
    run("train", text_file, "-m", "mlp", "-s", "epochs=2", "-s", "hidden=[4]", "--out", "m", "-q")
    run("report", "m", "-q")
    page = Path("m-report.html").read_text()
    assert "plot-learning-curves" in page
    assert "MLP on news" in page


def test_a_run_of_the_bench(run, csv_file):
    chosen = ("--labels", 3, "--methods", "mlknn", "--seeds", "1", "--jobs", "1")
    run("bench", "run", "--data", csv_file, *chosen, "--out", "results", "-q")
    run("report", "results")
    page = Path("results-report.html").read_text()
    assert "1 finished cell<" in page
    assert "tuned on validation rows" in page
    assert "its own data" in run("report", "results", "--data", csv_file, status=2).stderr


def test_data_that_are_gone_or_that_the_folder_does_not_record(run, csv_file, model):
    csv_file.rename("moved.csv")
    assert "--data" in run("report", model, status=2).stderr
    Path(model, "training.json").unlink()
    assert "--data" in run("report", model, status=2).stderr
    run("report", model, "--data", "moved.csv", "--labels", 3)
    page = Path("model-report.html").read_text()
    assert "does not record which rows the model was trained on" in page


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "does not exist"),
        (["model", "--out", "x.pdf"], ".html or .md"),
        (["model", "--data", "nowhere.csv"], "nowhere.csv"),
        (["model", "--top", "1"], "--top"),
        (["model", "--format", "pdf"], "pdf"),
    ],
)
def test_wrong_input_in_one_line(run, csv_file, model, arguments, words):
    assert words in run("report", *arguments, status=2).stderr
    assert not list(Path().glob("*.html"))


def test_a_damaged_file_of_metrics_and_none(run, csv_file, model):
    Path(model, "metrics.json").write_text("{")
    assert "metrics.json is not valid JSON" in run("report", model, status=2).stderr
    Path(model, "metrics.json").unlink()
    run("report", model)
    assert "scikit-learn" in Path("model-report.html").read_text()


def test_a_report_that_cannot_be_written_leaves_nothing(run, csv_file, model):
    Path("taken").write_text("")
    run("report", model, "--out", "taken/report.html", status=1)
    assert Path("taken").read_text() == ""


def test_the_old_report_is_replaced(run, csv_file, model):
    Path("model-report.html").write_text("old")
    run("report", model, "-q")
    assert Path("model-report.html").read_text() != "old"
    shutil.rmtree(model)
    run("report", model, status=2)
    assert Path("model-report.html").read_text().startswith("<!DOCTYPE html>")
