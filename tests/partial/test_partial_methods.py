"""What all methods for partial labels have in common."""

import numpy as np
import pytest

import labelweave as lw
import labelweave.partial.base as partial_base
from labelweave.methods import list_methods
from labelweave.nn.cls_run import MLP_RUN
from labelweave.partial.base import SHORT_RUN

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
    """Where entries are NaN, zeros are known to be negative, and score low."""
    X, Y, partial = data
    checked = np.random.default_rng(1).random(Y.shape) < 0.5
    mixed = np.where(partial == 1, 1.0, np.where(checked & (Y == 0), 0.0, np.nan))
    model = make(id).fit(X, mixed)
    probabilities = model.predict_proba(X)
    assert model.unannotated_ == "unknown"
    assert probabilities[partial == 1].mean() > probabilities[mixed == 0].mean() + 0.05


@pytest.mark.parametrize("id", ["epr", "gr"])
def test_a_loaded_model(id, data, tmp_path):
    X, _, partial = data
    model = make(id).fit(X, partial)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    assert getattr(loaded, "expected_", None) == getattr(model, "expected_", None)
    assert loaded.unannotated_ == model.unannotated_ == "zeros"


@pytest.mark.parametrize("id", ["an", "cls+", "cross-em"])
@pytest.mark.parametrize("rule", ["zeros", "unknown"])
def test_validation_rows_follow_the_training_rows(id, rule, data, monkeypatch):
    """Training rows decide what is unannotated, whether or not validation rows have blanks."""
    X, _, partial = data
    train, validation = partial[:120].copy(), partial[120:].copy()
    (train if rule == "unknown" else validation)[0, np.argmin(partial[120 * (rule == "zeros")])] = (
        np.nan
    )
    applied = []
    as_observed = partial_base.as_observed
    monkeypatch.setattr(
        partial_base, "as_observed", lambda Y, rule: applied.append(rule) or as_observed(Y, rule)
    )
    model = make(id).set_params(base__epochs=1)
    model.fit(X[:120], train, validation=(X[120:], validation))
    assert set(applied) == {rule}


def test_a_blank_decides_also_where_it_is_held_out(data):
    """Rows that are held out for early stopping may have the only blanks."""
    X, _, partial = data
    for row in range(0, len(X), 40):
        Y = partial.copy()
        Y[row, np.argmin(Y[row])] = np.nan
        model = make("an").set_params(base__epochs=1, base__patience=1).fit(X, Y)
        assert model.unannotated_ == "unknown"


def test_short_runs_are_the_default_except_for_the_baseline():
    for id, expected in {"jocor": SHORT_RUN, "wan": SHORT_RUN, "cls": MLP_RUN}.items():
        base = lw.make(id).set_params(base__verbose=0).base
        assert {name: base.get_params()[name] for name in expected} == expected
    assert lw.make("an").set_params(base__verbose=0).base.patience == lw.MLP().patience
