"""`labelweave train`: protocol, parameters, output, and what it refuses."""

import json
from pathlib import Path

import numpy as np
import pytest
from cli_data import make_rows, write_csv

import labelweave as lw
from labelweave.cli import training_run
from labelweave.exceptions import InputError
from labelweave.pipeline.parameters import to_toml

KNN = ("--labels", 3, "-m", "mlknn")


def trained(run, *arguments):
    return json.loads(run("train", *arguments, "--json", "-q").stdout)


# -- what it does ----------------------------------------------------------------------


def test_says_what_it_does_and_leaves_a_model(run, csv_file):
    shown = run("train", csv_file, *KNN, "--set", "k=3", "--per-label", "--examples", 2).stdout
    assert "shapes: 120 rows, 3 features, 3 labels" in shown
    assert (
        "67 rows to train, 17 for validation (early stopping, threshold), 36 to test once" in shown
    )
    assert "f1_example" in shown
    assert "true labels" in shown
    assert "written to shapes-mlknn" in shown
    model = lw.load("shapes-mlknn")
    assert model.label_names_.tolist() == ["red", "blue", "round"]
    metrics = json.loads(Path("shapes-mlknn/metrics.json").read_text())
    assert metrics["protocol"]["rows"] == {"train": 67, "validation": 17, "test": 36}
    assert metrics["protocol"]["seed"] == 0
    assert metrics["versions"]["labelweave"] == lw.__version__
    assert metrics["seconds"]["fit"] > 0
    assert [row["label"] for row in metrics["per_label"]] == ["red", "blue", "round"]


def test_scores_are_those_of_the_saved_model_on_the_test_rows(run, csv_file):
    result = trained(run, csv_file, *KNN)
    data = lw.read_dataset(csv_file, labels=3)
    train, validation, test = data.split(validation=0.2)
    model = lw.load(result["model"])
    scores = lw.evaluate(model, test)
    assert result["scores"]["test"]["f1_example"] == scores["f1_example"]
    # The threshold is what the validation rows make best, not the test rows.
    by_hand = lw.make("mlknn", threshold="tuned", random_state=0)
    by_hand.fit(train.X, train.Y, validation=validation)
    assert model.threshold_.value_ == by_hand.threshold_.value_


def test_the_test_rows_are_predicted_only_after_the_fit(run, csv_file, monkeypatch):
    order = []
    fit, score = training_run.fit, training_run.score
    monkeypatch.setattr(training_run, "fit", lambda *a: order.append("fit") or fit(*a))
    monkeypatch.setattr(
        training_run, "score", lambda *a, **k: order.append("score") or score(*a, **k)
    )
    run("train", csv_file, *KNN, "-q")
    assert order == ["fit", "score"]


def test_an_unknown_label_is_not_shown_as_absent(run):
    rows = [f"{i % 7},{i % 5},{i % 2},{'' if i % 3 else i % 2}" for i in range(90)]
    Path("half.csv").write_text("a,b,red,round\n" + "\n".join(rows) + "\n")
    result = run("train", "half.csv", "--labels", 2, "-m", "mlknn", "--examples", 20)
    assert "(+ 1 unknown)" in result.stdout


def test_quiet_prints_the_scores_only(run, csv_file):
    shown = run("train", csv_file, *KNN, "-q").stdout
    assert shown.startswith("scores on the 36 test rows\n")
    assert "true labels" not in shown


def test_progress_goes_to_the_error_stream_unless_quiet(run, csv_file, monkeypatch):
    monkeypatch.setattr("labelweave.progress._LINE_SECONDS", 0.0)
    network = ("--labels", 3, "-m", "mlp", "--set", "epochs=2", "--set", "hidden=[4]", "--json")
    told = run("train", csv_file, *network)
    assert json.loads(told.stdout)["method"] == "mlp"
    assert "training: 100%, epoch 2/2 loss 0." in told.stderr
    assert run("train", csv_file, *network, "-q").stderr == ""


def test_rows_without_labels_are_told_of_beside_the_scores(run, workdir):
    X, Y = make_rows(120)
    write_csv(workdir / "bare.csv", X, Y * (np.arange(120) % 2)[:, None])
    told = "rows have no positive label and count as 0 in example F1"
    assert told in run("train", "bare.csv", *KNN, "--out", "bare").stdout
    assert told in run("evaluate", "bare", "bare.csv").stdout
    assert told not in run("evaluate", "bare", "bare.csv", "--metrics", "map").stdout


def test_json_alone_on_stdout(run, csv_file):
    result = run("train", csv_file, *KNN, "--json")
    assert json.loads(result.stdout)["method"] == "mlknn"
    assert "rows to train" in result.stderr


def test_same_seed_same_scores(run, csv_file):
    options = (csv_file, "--labels", 3, "-m", "mlp", "--set", "epochs=3", "--set", "hidden=[4]")
    first, again, other = (trained(run, *options, "--seed", seed) for seed in (1, 1, 2))
    assert first["scores"] == again["scores"]
    assert first["scores"] != other["scores"]


def test_default_folder_is_numbered_and_a_named_one_replaced(run, csv_file):
    for expected in ("shapes-mlknn", "shapes-mlknn-2", "shapes-mlknn-3"):
        assert trained(run, csv_file, *KNN)["model"] == expected
    trained(run, csv_file, *KNN, "--set", "k=2", "--out", "shapes-mlknn")
    assert lw.load("shapes-mlknn").k == 2
    assert lw.load("shapes-mlknn-2").k == 10


def test_metric_drives_threshold_and_early_stopping(run, csv_file):
    quick = ("-m", "mlp", "--set", "epochs=2", "--set", "hidden=[4]")
    options = (csv_file, "--labels", 3, *quick, "--metric", "f1_micro")
    parameters = trained(run, *options)["parameters"]
    assert parameters["threshold"] == "tuned:f1_micro"
    assert parameters["monitor"] == "f1_micro"
    ranking = trained(run, csv_file, *KNN, "--metric", "map")["parameters"]
    assert ranking == {"threshold": "tuned", "random_state": 0}


@pytest.mark.parametrize("threshold", ["0.3", "top-1", "per-label", "cardinality"])
def test_thresholds(run, csv_file, threshold):
    result = trained(run, csv_file, *KNN, "--threshold", threshold)
    assert str(result["parameters"]["threshold"]) == threshold


def test_parameters_of_an_inner_classifier(run, csv_file):
    options = (csv_file, "--labels", 3, "-m", "br", "-q")
    run("train", *options, "--set", "estimator__C=0.5")
    assert lw.load("shapes-br").estimator.C == 0.5
    shown = run("train", *options, "--set", "estimator__D=1", status=2).stderr
    assert "there is no parameter of LogisticRegression called 'D'" in shown
    run("train", *options, "--set", "n_jobs__x=1", status=2)


# -- where the rows come from ----------------------------------------------------------


def test_separate_test_file(run, csv_file, workdir):
    test = write_csv(workdir / "later.csv", *make_rows(30, seed=1))
    result = trained(run, csv_file, *KNN, "--test", test)
    assert result["protocol"]["rows"] == {"train": 96, "validation": 24, "test": 30}
    run("train", csv_file, *KNN, "--test", test, "--test-size", 0.5, status=2)


def test_separate_test_file_of_another_width(run, csv_file, workdir):
    X, Y = make_rows(30)
    test = write_csv(workdir / "later.csv", X[:, :2], Y, names=("f1", "f2"))
    shown = run("train", csv_file, *KNN, "--test", test, status=2).stderr
    assert "later has 2 features, but the model takes 3 features" in shown


@pytest.mark.parametrize("split", ["stratified", "random"])
def test_split_and_sizes(run, csv_file, split):
    options = ("--split", split, "--test-size", 20, "--validation", "0.1", "--seed", 3)
    rows = trained(run, csv_file, *KNN, *options)["protocol"]["rows"]
    assert rows == {"train": 90, "validation": 10, "test": 20}


def test_official_split_where_there_is_none(run, csv_file):
    shown = run("train", csv_file, *KNN, "--split", "official", status=2).stderr
    assert "no official test part" in shown
    assert not Path("shapes-mlknn").exists()


def test_unknown_labels_and_missing_features(run, workdir):
    X, Y = make_rows(80)
    Y = Y.astype(object)
    Y[::4, 0] = ""
    path = write_csv(workdir / "part.csv", X, Y)
    assert trained(run, path, *KNN)["data"]["unknown"] == 20
    X = X.astype(object)
    X[5, 1] = ""
    shown = run("train", write_csv(workdir / "gap.csv", X, Y), *KNN).stdout
    assert "f2      number  the number, and whether it is blank" in shown


def test_one_label(run, workdir):
    X, Y = make_rows(60)
    write_csv(workdir / "one.csv", X, Y[:, :1], labels=["only"])
    result = trained(run, "one.csv", "--labels", "only", "-m", "mlknn")
    assert result["data"]["labels"] == 1
    assert lw.load(result["model"]).predict(X[:2]).shape == (2, 1)


def test_texts(run, text_file):
    result = trained(run, text_file, "-m", "mlknn")
    model = lw.load(result["model"])
    assert model.predict_labels(["the sea is blue", "a hot sun"]) == [["sea"], ["sun"]]
    assert result["examples"][0]["row"] == json.loads(text_file.read_text().splitlines()[0])["id"]


def test_how_texts_become_features(run, text_file, csv_file):
    trained(run, text_file, "-m", "mlknn", "--set", "text__max_words=2", "--out", "pairs")
    assert "blue sea" in lw.load("pairs").vocabulary_
    options = ("-m", "mlknn", "--set")
    wrong = run("train", text_file, *options, "text__max_word=2", status=2).stderr
    assert "did you mean 'max_words'" in wrong
    run("train", text_file, *options, "text__max_words=0", status=2)
    numbers = run("train", csv_file, "--labels", 3, *options, "text__max_words=2", status=2)
    assert "is for texts" in numbers.stderr


def test_label_column(run, workdir):
    X, Y = make_rows(60)
    names = np.array(["red", "blue", "round"])
    tags = [["|".join(names[y == 1])] for y in Y]
    write_csv(workdir / "tags.csv", X, tags, labels=["tags"])
    result = trained(run, "tags.csv", "--label-column", "tags", "-m", "mlknn")
    assert [row["label"] for row in result["per_label"]] == ["blue", "red", "round"]


# -- configuration ---------------------------------------------------------------------


def test_config_and_what_overrides_it(run, csv_file, workdir):
    config = {
        "data": {"source": str(csv_file), "labels": ["red", "blue"], "drop": ["round"]},
        "method": {"name": "mlknn", "threshold": 0.4},
        "parameters": {"k": 4, "smoothing": 0.5, "n_jobs": None},
        "protocol": {"test_size": 0.5, "seed": 7},
        "output": {"folder": "from-config"},
    }
    (workdir / "run.toml").write_text(to_toml(config))
    result = trained(run, "--config", "run.toml", "--set", "k=6", "--seed", 8)
    assert result["model"] == "from-config"
    expected = {"k": 6, "smoothing": 0.5, "n_jobs": None, "threshold": 0.4, "random_state": 8}
    assert result["parameters"] == expected
    assert result["protocol"]["rows"]["test"] == 60
    assert result["data"]["labels"] == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("not toml", "not valid TOML"),
        ("[protcol]\nseed = 1\n", "did you mean 'protocol'?"),
        ("[protocol]\nseeds = 1\n", "did you mean 'seed'?"),
        ("data = 3\n", "'data' must be a section"),
        ("[protocol]\nseed = -1\n", "--seed"),
    ],
)
def test_wrong_config(run, csv_file, workdir, text, message):
    (workdir / "run.toml").write_text(text)
    shown = run("train", csv_file, *KNN, "--config", "run.toml", status=2).stderr
    assert message in shown


def test_missing_config(run, csv_file):
    assert "none.toml" in run("train", csv_file, "--config", "none.toml", status=1).stderr


# -- bad input -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["-m", "mlkn"], "did you mean 'mlknn'?"),
        (["--set", "kk=3"], "did you mean 'k'?"),
        (["--set", "k=many"], "'k' parameter of MLkNN must be an int"),
        (["--set", "k=0"], "'k' parameter of MLkNN must be an int"),
        (["--set", "k"], "--set takes name=value"),
        (["--threshold", "tuned:nothing"], "there is no metric 'nothing'"),
        (["--threshold", "often"], "there is no threshold 'often'"),
        (["--metric", "f1"], "there is no metric 'f1'"),
        (["--test-size", "1.5"], "no share between 0 and 1"),
        (["--test-size", "120"], "from 1 to 119"),
        (["--seed", "x"], "--seed"),
        (["--labels", "green,red"], "green"),
        (["--labels", "7"], "7"),
        (["--format", "xls"], "there is no format 'xls'"),
        (["--data-option", "colour=red"], "no option 'colour'"),
    ],
)
def test_wrong_options_are_one_line(run, csv_file, options, message):
    result = run("train", csv_file, *KNN, *options, status=2)
    assert message in result.stderr
    assert len(list(Path().iterdir())) == 1  # nothing but shapes.csv


def test_no_data(run):
    assert "Missing argument 'DATA'" in run("train", status=2).stderr


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        ("", "empty"),
        ("a,b\n", "file.csv"),
        ("\x00\x01", "file.csv"),
    ],
)
def test_unusable_files(run, workdir, content, message):
    if content is not None:
        (workdir / "file.csv").write_text(content)
    assert message in run("train", "file.csv", "--labels", 1, "-m", "mlknn", status=2).stderr


def test_too_few_rows(run, workdir):
    write_csv(workdir / "two.csv", *make_rows(2))
    assert run("train", "two.csv", *KNN, status=2).stderr.count("\n") == 1


def test_folder_that_is_no_model_is_left_alone(run, csv_file, workdir):
    (workdir / "thesis").mkdir()
    (workdir / "thesis" / "chapter.txt").write_text("years of work")
    shown = run("train", csv_file, *KNN, "--out", "thesis", status=2).stderr
    assert "not overwritten" in shown
    assert (workdir / "thesis" / "chapter.txt").read_text() == "years of work"


@pytest.mark.parametrize("out", ["shapes.csv", "shapes.csv/model", "/proc/model"])
def test_folder_that_cannot_be(run, csv_file, out):
    before = csv_file.read_bytes()
    assert run("train", csv_file, *KNN, "--out", out, status=2).stderr.count("\n") == 1
    assert csv_file.read_bytes() == before


def test_a_failed_training_keeps_the_old_model(run, csv_file, model, monkeypatch):
    def fail(*_):
        raise InputError("no luck")

    monkeypatch.setattr(training_run, "fit", fail)
    assert "no luck" in run("train", csv_file, *KNN, "--out", model, status=2).stderr
    assert lw.load(model).k == 3


def test_interrupted(run, csv_file, monkeypatch):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(training_run, "fit", interrupt)
    assert "interrupted" in run("train", csv_file, *KNN, status=130).stderr
    assert not Path("shapes-mlknn").exists()


# -- real data -------------------------------------------------------------------------


@pytest.mark.data
def test_named_data_set(run, data_home):
    result = trained(run, "emotions", "-m", "mlknn")
    assert result["protocol"]["rows"] == {"train": 313, "validation": 78, "test": 202}
    assert result["scores"]["test"]["f1_example"] > 0.4


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ([], "(option --labels, --label-column)"),
        (["--labels", 99], "99 columns, but there are 6 (option --labels)"),
        (["--labels", "red,bleu"], "there is no column 'bleu'; did you mean 'blue'?"),
        (["--labels", "red,kind"], "there is no column 'kind'; the columns are 'f1', 'f2'"),
    ],
)
def test_refusals_of_a_reader_name_the_option_or_the_column(run, csv_file, options, message):
    assert message in run("train", csv_file, "-m", "mlknn", *options, status=2).stderr


def test_a_method_around_a_network(run, csv_file):
    """Parameters of the network go by base__name; the rule that a method brings stays."""
    settings = ("--set", "base__epochs=2", "--set", "base__hidden=[8]", "--set", "tau_h=0.1")
    done = run("train", csv_file, "--labels", 3, "-m", "cls+", *settings, "--json")
    said = "84 rows to train, the threshold chosen out of fold, 36 to test once"
    assert said in done.stderr  # no rows are held out to choose on
    model = lw.load(json.loads(done.stdout)["model"])
    assert model.base.epochs == 2
    assert len(model.history_) == 2
    assert model.threshold == "cardinality"
    run("train", csv_file, "--labels", 3, "-m", "cls+", "--set", "base__epoch=2", status=2)


def test_no_threshold_is_tuned_on_partial_labels(run, csv_file):
    settings = ("--set", "base__epochs=2", "--set", "base__hidden=[8]", "--set", "tau_h=0.1")
    done = run("train", csv_file, "--labels", 3, "-m", "cls", *settings, "--json")
    assert lw.load(json.loads(done.stdout)["model"]).threshold == "cardinality"


def test_equal_rows_are_counted_and_kept_in_one_part(run):
    rows = [f"{i // 2},{i // 2 % 5},{i % 2},{i // 3 % 2}" for i in range(120)]
    Path("pairs.csv").write_text("a,b,red,round\n" + "\n".join(rows) + "\n")
    shown = run("train", "pairs.csv", "--labels", 2, "-m", "mlknn", "--out", "pairs").output
    assert "120 rows are equal to another row: the split keeps them in one part" in shown
    assert "too good" not in shown
    result = json.loads(run("evaluate", "pairs", "pairs.csv", "--json").stdout)
    assert result["rows_seen_in_training"] == 0
    assert 30 <= result["rows"] <= 42


def test_test_rows_that_are_equal_to_training_rows_are_told_of(run, csv_file):
    shown = run("train", csv_file, *KNN, "--test", csv_file).output
    assert "but 120 of the 120 test rows are equal to rows for training or validation" in shown


def test_a_promise_is_shown_beside_what_was_kept(run, csv_file):
    arguments = ["shapes.csv", "--labels", 3, "-m", "mlknn", "--threshold", "recall>=0.6:0.8"]
    trained = run("train", *arguments, "--validation", 0.4, "--out", "promised").output
    promise = "promised: recall at least 0.6 with confidence 0.8; on these rows 0."
    assert promise in trained
    assert promise in run("evaluate", "promised", "shapes.csv").output
