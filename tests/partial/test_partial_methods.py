"""What all methods for partial labels have in common."""

import numpy as np
import pytest

import labelweave as lw
from labelweave.methods import list_methods
from labelweave.partial.base import PAPER_RUN, SHORT_RUN

METHODS = [method.id for method in list_methods("partial")]
QUICK = {"hidden": (16,), "epochs": 12, "lr": 2e-2}


def make(id, **changes):
    return lw.make(id, base=lw.MLP(**QUICK), random_state=0, **changes)


def test_the_room_is_complete():
    assert set(METHODS) >= {
        "an", "wan", "an-ls", "epr", "role", "ll-r", "ll-ct", "ll-cp", "em-apl", "hill", "splc",
        "gr", "cls", "cls+", "cross-em", "em-forest", "co-teaching", "co-teaching+", "decoupling",
        "jocor",
    }  # fmt: skip


@pytest.mark.parametrize("id", METHODS)
def test_it_ranks_unseen_rows_with_half_of_the_positives_hidden(id, data):
    X, Y, partial = data
    scores = make(id).fit(X[:160], partial[:160]).predict_proba(X[160:])
    # Sample selection loses the rows with annotated positives: their loss is high.
    more = 0.1 if id in ("co-teaching", "co-teaching+", "decoupling", "jocor", "splc") else 0.25
    assert lw.metrics.get_metric("map")(Y[160:], Y_score=scores) > Y.mean() + more


@pytest.mark.parametrize("id", METHODS)
@pytest.mark.parametrize("value", [0.0, 1.0])
def test_all_labels_alike(id, value, data):
    X, Y, _ = data
    probabilities = make(id).fit(X, np.full_like(Y, value)).predict_proba(X)
    assert np.isfinite(probabilities).all()
    if id not in ("epr", "role", "em-apl"):  # they do not learn from what is not annotated
        assert abs(probabilities.mean() - value) < 0.5


@pytest.mark.parametrize("id", METHODS)
def test_known_negatives_are_learnt(id, data):
    """With only NaN and checked entries, entries known to be negative score low."""
    X, Y, partial = data
    checked = np.random.default_rng(1).random(Y.shape) < 0.5
    mixed = np.where(partial == 1, 1.0, np.where(checked & (Y == 0), 0.0, np.nan))
    probabilities = make(id, unannotated="unknown").fit(X, mixed).predict_proba(X)
    assert probabilities[partial == 1].mean() > probabilities[mixed == 0].mean() + 0.05


@pytest.mark.parametrize("id", ["epr", "gr"])
def test_a_loaded_model(id, data, tmp_path):
    X, _, partial = data
    model = make(id).fit(X, partial)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert getattr(loaded, "expected_", None) == getattr(model, "expected_", None)


def test_short_runs_are_the_default_except_for_the_baseline():
    for id, expected in {"jocor": SHORT_RUN, "wan": SHORT_RUN, "cls": PAPER_RUN}.items():
        base = lw.make(id).set_params(base__verbose=0).base
        assert {name: base.get_params()[name] for name in expected} == expected
    assert lw.make("an").set_params(base__verbose=0).base.patience == lw.MLP().patience
