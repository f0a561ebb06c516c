"""`labelweave tune` from end to end."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import labelweave as lw
from labelweave.cli import training_run
from labelweave.metrics import get_metric
from labelweave.pipeline import recipe
from labelweave.pipeline.model_scores import validation_score

pytest.importorskip("optuna")
KNN = ("--labels", 3, "-m", "mlknn")


def tuned(run, *arguments):
    return json.loads(run("tune", *arguments, "--json", "-q").stdout)


def test_search_then_one_test_then_a_model(run, csv_file, monkeypatch):
    scored = []
    score = training_run.score
    monkeypatch.setattr(
        training_run,
        "score",
        lambda model, data, **k: scored.append(len(data)) or score(model, data, **k),
    )
    result = tuned(run, csv_file, *KNN, "--trials", 3)
    assert scored == [36]  # the test rows, once
    assert len(result["trials"]) == 3
    assert result["trials"][0]["parameters"] == {"k": 10, "smoothing": 1.0}  # the defaults
    values = [trial["value"] for trial in result["trials"]]
    assert result["best"]["validation"] == max(values)
    model = lw.load("shapes-mlknn-tune/model")
    assert model.k == result["best"]["parameters"]["k"]
    assert Path("shapes-mlknn-tune/study.db").exists()


def test_best_is_a_config_for_train(run, csv_file):
    result = tuned(run, csv_file, *KNN, "--trials", 2, "--seed", 4, "--metric", "f1_micro")
    config = tomllib.loads(Path(result["config"]).read_text())
    assert config["parameters"] == result["best"]["parameters"]
    assert config["protocol"]["metric"] == "f1_micro"
    again = json.loads(run("train", "--config", result["config"], "--json", "-q").stdout)
    assert again["scores"] == result["final"]["scores"]


def test_run_again_goes_on(run, csv_file):
    assert len(tuned(run, csv_file, *KNN, "--trials", 2, "--search-only")["trials"]) == 2
    shown = run("tune", csv_file, *KNN, "--trials", 3, "--search-only").stdout
    assert "trial 2:" in shown
    assert "trial 1:" not in shown
    assert not Path("shapes-mlknn-tune/model").exists()
    assert "exists" in run("tune", csv_file, *KNN, "--no-resume", status=2).stderr


def test_another_question_to_the_same_study_is_refused(run, csv_file):
    options = (csv_file, *KNN, "--trials", 1, "--search-only", "-q")
    run("tune", *options)
    for change in (["--seed", 1], ["--metric", "map"], ["--space", "k=1:3"], ["--test-size", 0.5]):
        assert "was begun with" in run("tune", *options, *change, status=2).stderr
    run("tune", *options, "--seed", 1, "--study", "other")


def test_own_space_and_fixed_parameters(run, csv_file):
    options = ("--trials", 2, "--space", "k=2,3", "--set", "smoothing=0.5", "--search-only")
    result = tuned(run, csv_file, *KNN, *options)
    assert all(set(trial["parameters"]) == {"k"} for trial in result["trials"])
    assert all(trial["parameters"]["k"] in (2, 3) for trial in result["trials"])
    assert tomllib.loads(Path(result["config"]).read_text())["parameters"]["smoothing"] == 0.5


def test_smaller_is_better_where_it_is(run, csv_file):
    result = tuned(run, csv_file, *KNN, "--trials", 3, "--metric", "hamming_loss", "--search-only")
    assert result["best"]["validation"] == min(trial["value"] for trial in result["trials"])


def test_classifier_inside_binary_relevance(run, csv_file):
    options = (csv_file, "--labels", 3, "-m", "br", "--trials", 2, "--search-only")
    assert list(tuned(run, *options)["best"]["parameters"]) == ["estimator__C"]


def test_storage_by_url(run, csv_file, workdir):
    options = ("--trials", 1, "--storage", f"sqlite:///{workdir}/shared.db", "--search-only")
    tuned(run, csv_file, *KNN, *options)
    assert (workdir / "shared.db").exists()
    assert not (workdir / "shapes-mlknn-tune/study.db").exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--space", "q=1:2"], "there is no parameter of mlknn called 'q'"),
        (["--space", "k=5:1"], "is empty"),
        (["--metric", "accuracy"], "there is no metric"),
        (["--trials", "0"], "--trials"),
        (["--storage", "nowhere"], "cannot be opened"),
        (["--space", "k=none", "--space", "smoothing=none"], "nothing to search"),
        (["--space", "k=0:0"], "'k' parameter of MLkNN must be an int"),
        (["--out", "shapes.csv"], "shapes.csv"),
    ],
)
def test_wrong_options(run, csv_file, options, message):
    assert message in run("tune", csv_file, *KNN, *options, status=2).stderr


def test_interrupted_and_resumed(run, csv_file, monkeypatch):
    fit = recipe.fit
    calls = []

    def fit_or_stop(*arguments):
        calls.append(1)
        if len(calls) == 2:
            raise KeyboardInterrupt
        return fit(*arguments)

    monkeypatch.setattr(recipe, "fit", fit_or_stop)
    run("tune", csv_file, *KNN, "--trials", 3, status=130)
    states = [trial["state"] for trial in tuned(run, csv_file, *KNN, "--trials", 3)["trials"]]
    assert states.count("complete") == 3


def test_two_processes_share_a_study(run, csv_file):
    command = [sys.executable, "-m", "labelweave", "tune", csv_file, *map(str, KNN)]
    command += ["--trials", "6", "--search-only", "-q"]
    processes = [subprocess.Popen(command, stderr=subprocess.PIPE, text=True) for _ in range(2)]
    for process in processes:
        _, errors = process.communicate()
        assert process.returncode == 0, errors
    trials = tuned(run, csv_file, *KNN, "--trials", 6, "--search-only")["trials"]
    # Both may have asked for the defaults first; the second asking can come too late to be run.
    trials = [trial for trial in trials if trial["state"] != "waiting"]
    assert 6 <= len(trials) <= 7  # the last two may begin together
    assert {trial["state"] for trial in trials} == {"complete"}
    tried = {(trial["parameters"]["k"], trial["parameters"]["smoothing"]) for trial in trials}
    assert len(tried) >= 5  # at most the defaults are tried by both


def test_a_trial_is_not_judged_on_rows_it_learnt_from():
    X = np.random.default_rng(0).normal(size=(60, 3))
    Y = (np.random.default_rng(1).random((60, 2)) < 0.5).astype(int)  # nothing to be learnt
    rows = (X[40:], Y[40:])
    trees = lw.ExtraTrees(20)  # they know the rows they have seen by heart
    model = lw.Weave(members=[trees], random_state=0).fit(X[:40], Y[:40], validation=rows)
    judge = get_metric("map")
    assert judge(Y[40:], Y_score=model.models_[0][0].predict_proba(X[40:])) > 0.9
    labels, probabilities = model.held_out_predictions(rows)
    assert validation_score(model, rows, judge) == judge(labels, Y_score=probabilities) < 0.75
    sets = model.threshold_.apply(probabilities)
    micro = get_metric("f1_micro")
    assert validation_score(model, rows, micro) == micro(labels, Y_pred=sets)
