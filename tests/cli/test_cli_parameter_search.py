"""Search spaces and the study that `tune` runs."""

from typing import ClassVar

import pytest

from labelweave.cli import parameter_search as search
from labelweave.cli.output import Output
from labelweave.cli.parameter_search import Range, make_space
from labelweave.exceptions import InputError
from labelweave.methods import get_class, list_methods

optuna = pytest.importorskip("optuna")


class Method:
    tuning_space: ClassVar = {"x": ("float", -2.0, 2.0), "mode": ("choice", ["a", [1, 2], None])}


# -- spaces ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("k=1:9", Range("k", "int", 1, 9)),
        ("k=1:9:log", Range("k", "int-log", 1, 9)),
        ("lr=1e-4:1e-2:log", Range("lr", "log", 1e-4, 1e-2)),
        ("p=0:0.5", Range("p", "float", 0, 0.5)),
        ("loss=bce,asl", Range("loss", "choice", choices=("bce", "asl"))),
        ("hidden=[[64],[128,64]]", Range("hidden", "choice", choices=([64], [128, 64]))),
        ("n=1,2", Range("n", "choice", choices=(1, 2))),
    ],
)
def test_space_from_text(text, expected):
    assert make_space(object, [text]) == {expected.name: expected}


@pytest.mark.parametrize("id", [method.id for method in list_methods()])
def test_every_method_offers_a_valid_space(id):
    cls = get_class(id)
    for name in make_space(cls, []):
        assert name.partition("__")[0] in cls().get_params(deep=False)


def test_space_of_the_method_can_be_cut():
    assert list(make_space(Method, ["x=none"])) == ["mode"]
    assert make_space(Method, ["x=0:1"])["x"] == Range("x", "int", 0, 1)


@pytest.mark.parametrize(
    "text", ["x", "x=", "=1:2", "x=1:b", "x=2:1", "x=0:1:log", "x=1:2:lin", "x=true:2"]
)
def test_wrong_spaces_are_refused(text):
    with pytest.raises(InputError):
        make_space(object, [text])


# -- studies ---------------------------------------------------------------------------


def study_at(url, **changes):
    options = {"maximize": False, "seed": 0, "identity": {"method": "m"}, "resume": True}
    return search.open_study(url, "s", **{**options, **changes})


def study_in(folder, **changes):
    return study_at(f"sqlite:///{folder / 'study.db'}", **changes)


@pytest.fixture
def study():
    """A study that is gone after the test."""
    return study_at("sqlite:///:memory:")


def run(study, objective, n_trials, **changes):
    options = {"timeout": None, "first": {}}
    space = make_space(Method, [])
    search.search(
        study, space, objective, Output(quiet=True), n_trials=n_trials, **{**options, **changes}
    )
    return search.trial_rows(study, space)


def bowl(parameters):
    return (parameters["x"] - 0.5) ** 2 + (parameters["mode"] != [1, 2])


def test_search_finds_the_bottom(study):
    run(study, bowl, 30)
    best = search.best_parameters(study, make_space(Method, []))
    assert best["mode"] == [1, 2]
    assert abs(best["x"] - 0.5) < 0.3


def test_stopped_and_resumed_equals_never_stopped(tmp_path):
    for name in ("whole", "parts"):
        (tmp_path / name).mkdir()
    uninterrupted = run(study_in(tmp_path / "whole"), bowl, 12)
    run(study_in(tmp_path / "parts"), bowl, 5)
    assert run(study_in(tmp_path / "parts"), bowl, 12) == uninterrupted


def test_enough_trials_means_nothing_to_do(tmp_path):
    run(study_in(tmp_path), bowl, 3)

    def never(parameters):
        raise AssertionError("a trial was run")

    assert len(run(study_in(tmp_path), never, 3)) == 3


def test_defaults_are_tried_first(study):
    rows = run(study, bowl, 2, first={"x": 1.0, "mode": None, "other": 3})
    assert rows[0]["parameters"] == {"x": 1.0, "mode": None}


def test_defaults_outside_the_space_are_not_tried(study):
    rows = run(study, bowl, 1, first={"x": 5.0})
    assert -2 <= rows[0]["parameters"]["x"] <= 2


def test_a_failed_trial_is_passed_over(study):
    calls = []

    def sometimes(parameters):
        calls.append(parameters)
        if len(calls) == 2:
            raise RuntimeError("diverged")
        return bowl(parameters)

    rows = run(study, sometimes, 4)
    assert [row["state"] for row in rows] == ["complete", "fail", "complete", "complete"]
    assert rows[1]["failure"] == "RuntimeError: diverged"


def test_a_failure_before_any_success_stops(study):
    def wrong(parameters):
        raise InputError("bad parameter")

    with pytest.raises(InputError, match="bad parameter"):
        run(study, wrong, 4)


def test_not_a_number_is_a_failure(study):
    with pytest.raises(search.SearchFailedError, match="not a number"):
        run(study, lambda parameters: float("nan"), 2)


def test_an_interrupted_trial_is_done_again(tmp_path):
    def interrupted(parameters):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(study_in(tmp_path), interrupted, 2)
    rows = run(study_in(tmp_path), bowl, 2)
    assert [row["state"] for row in rows] == ["fail", "complete", "complete"]


def test_no_time_no_trial(study):
    with pytest.raises(search.SearchFailedError, match="no trial has succeeded"):
        run(study, bowl, 2, timeout=0.0)


def test_a_study_of_something_else_is_refused(tmp_path):
    study_in(tmp_path)
    with pytest.raises(InputError, match="was begun with method 'm', now it is 'other'"):
        study_in(tmp_path, identity={"method": "other"})


def test_no_resume_refuses_an_existing_study(tmp_path):
    study_in(tmp_path, resume=False)
    with pytest.raises(InputError, match="exists"):
        study_in(tmp_path, resume=False)


@pytest.mark.parametrize("url", ["nonsense", "nodb://x/y", "sqlite:////proc/none/study.db"])
def test_unusable_storage_is_one_sentence(url):
    with pytest.raises(InputError, match="cannot be opened"):
        search.open_study(url, "s", maximize=True, seed=0, identity={}, resume=True)
