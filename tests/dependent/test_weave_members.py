"""Which members take weights of rows, and what the weights do."""

import numpy as np
import pytest

import labelweave as lw
from labelweave.dependent import weave_plan
from labelweave.dependent.weave import Weave
from labelweave.exceptions import InputError, LabelweaveWarning


@pytest.fixture(scope="module")
def contradictory():
    """Each row is there twice, with contradictory labels; the weights are for the first ones."""
    random = np.random.default_rng(0)
    X = random.normal(size=(60, 4))
    Y = (X[:, :2] > 0).astype(float)
    return np.vstack([X, X]), np.vstack([Y, 1 - Y]), np.repeat([9.0, 1.0], 60)


def agreement(model, X, Y):
    return ((model.predict_proba(X[:60]) > 0.5) == Y[:60]).mean()


def test_members_without_weights_are_left_out_and_named(contradictory):
    X, Y, weight = contradictory
    model = Weave(members=["mlknn", "br", "extra-trees"], n_folds=3, random_state=0)
    with pytest.warns(LabelweaveWarning, match="no weights of rows are left out: mlknn$"):
        model.fit(X, Y, sample_weight=weight)
    notes = dict(zip(model.members_["method"], model.members_["note"], strict=True))
    assert notes == {"br": "", "extra-trees": "", "mlknn": "takes no weights of rows"}
    assert agreement(model, X, Y) > 0.9
    with pytest.raises(InputError, match="none of the members takes sample_weight: name one"):
        Weave(members=["mlknn"]).fit(X, Y, sample_weight=weight)


def test_the_last_fit_is_that_of_the_member_with_all_weights(contradictory):
    X, Y, weight = contradictory
    model = Weave(members=["br"], n_folds=3, random_state=0).fit(X, Y, sample_weight=weight)
    alone = lw.BinaryRelevance().fit(model.scaler_.transform(X), Y, sample_weight=weight)
    np.testing.assert_allclose(model.models_[0][0].coef_, alone.coef_, rtol=1e-6)


def test_validation_rows_have_the_mean_weight(contradictory):
    X, Y, weight = contradictory
    first, second = slice(0, None, 2), slice(1, None, 2)
    model = Weave(members=["br"], n_folds=3, random_state=0)
    model.fit(X[first], Y[first], sample_weight=weight[first], validation=(X[second], Y[second]))
    together = np.concatenate([weight[first], np.full(60, weight[first].mean())])
    X, Y = np.vstack([X[first], X[second]]), np.vstack([Y[first], Y[second]])
    alone = lw.BinaryRelevance().fit(model.scaler_.transform(X), Y, sample_weight=together)
    np.testing.assert_allclose(model.models_[0][0].coef_, alone.coef_, rtol=1e-6)


def test_weights_of_a_sample_of_the_rows(contradictory, monkeypatch):
    monkeypatch.setattr(weave_plan, "MIN_ROWS", 100)
    monkeypatch.setattr(weave_plan, "FEW", 10)
    monkeypatch.setitem(weave_plan.EFFORTS, "quick", weave_plan.Effort(1e-4, 3, 10, 1, 1000))
    X, Y, weight = contradictory
    model = Weave(members=["br"], effort="quick", random_state=0).fit(X, Y, sample_weight=weight)
    assert "of 100 of 120 rows" in model.plan_
    assert agreement(model, X, Y) > 0.9


def test_few_rows_have_weights_too(contradictory):
    X, Y, weight = (part[[0, 1, 2, 3, 60, 61, 62, 63]] for part in contradictory)
    model = Weave(members=["br"], random_state=0).fit(X, Y, sample_weight=weight)
    alone = lw.BinaryRelevance().fit(model.scaler_.transform(X), Y, sample_weight=weight)
    np.testing.assert_allclose(model.models_[0][0].coef_, alone.coef_, rtol=1e-6)


def test_blanks_with_weights_are_not_left_to_em_forest(contradictory):
    X, Y, weight = contradictory
    Y = np.where(Y[:60] == 1, 1, np.nan)
    model = Weave(effort="quick", n_folds=2, random_state=0)
    with pytest.warns(LabelweaveWarning, match="no weights of rows"):
        model.fit(X[:60], Y, sample_weight=weight[:60])
    assert model.blanks_ == "unannotated"
    assert "em-forest" not in model.members_["method"].tolist()
