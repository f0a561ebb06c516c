"""Partial labels in Weave: what blanks are taken for, its members, and what verdicts bring."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import make_multilabel_classification

import labelweave as lw
from labelweave.data.scenarios import hide_positives
from labelweave.dependent import weave_partial
from labelweave.dependent.weave import Weave
from labelweave.dependent.weave_costs import DataSize, seconds_per_fit
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import as_labels
from labelweave.methods import make
from labelweave.metrics import get_metric
from labelweave.thresholds import CardinalityThreshold


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    return X, Y.astype(float)


@pytest.fixture(scope="module")
def only_positives(data):
    """Half of the positives, and no negative, is annotated."""
    hidden = hide_positives(data[1], 0.5, negatives="unknown", as_="unknown", random_state=0)
    return data[0], hidden.Y.to_numpy()


@pytest.fixture
def small_members(monkeypatch):
    """Members for partial labels that train in no time."""
    mlp = lw.MLP(hidden=(16,), epochs=5)
    small = {
        "em-forest": {"base": mlp, "n_trees": 20},
        "cls+": {"base": lw.MLP(hidden=(16,), epochs=5, patience=None)},
        "extra-trees": {"n_estimators": 20},
    }

    def make_small(method, **more):
        return make(method, **more | small.get(method, {}))

    monkeypatch.setattr(weave_partial, "make", make_small)


def test_blanks_beside_few_checked_negatives_are_learnt_as_partial(
    data, only_positives, small_members, capsys
):
    X, Y = only_positives
    model = Weave(threshold="tuned", verbose=1, random_state=0).fit(X, Y)
    printed = capsys.readouterr().err
    assert "blank entries are taken for unannotated ones" in printed
    assert "only 0 negatives were checked" in printed
    assert model.blanks_ == "unannotated"
    assert model.members_["method"].tolist() == ["em-forest", "ls-svm", "extra-trees"]
    assert isinstance(model.threshold_, CardinalityThreshold)
    probabilities = model.predict_proba(X)
    assert get_metric("map")(data[1], Y_score=probabilities) > data[1].mean() + 0.2
    assert len(model.held_out_predictions(None)[0]) == len(X)
    again = Weave(threshold="tuned", n_jobs=2, random_state=0).fit(X, Y)
    np.testing.assert_array_equal(again.predict_proba(X), probabilities)


def test_the_model_for_partial_labels_is_saved(only_positives, small_members, tmp_path):
    X, Y = only_positives
    model = Weave(random_state=0).fit(X, Y)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_members_for_partial_labels_depend_on_features_and_effort():
    size = DataSize(2000, 100, 100.0, 10, 3000)
    dense, counts = np.ones((20, 100)), sp.eye_array(20, 100, format="csr")
    for X, limit, expected in [
        (dense, 1000.0, ["em-forest", "ls-svm", "extra-trees"]),
        (counts, 1000.0, ["em-forest", "ls-svm"]),
        (dense, 5.9, ["cls+", "ls-svm"]),
        (dense, 0.01, []),
    ]:
        members = weave_partial.members_for_partial_labels(X, size, limit, 100)
        assert [member.name for member in members] == expected


def test_few_rows_are_not_predicted_to_be_cheap():
    """Networks for partial labels take 40 steps per pass at least, and more passes."""
    member = weave_partial.members_for_partial_labels(
        np.ones((20, 6)), DataSize(200, 6, 6.0, 5, 130), 1000.0, 100
    )[0]
    few, many = (DataSize(n, 6, 6.0, 5, n * 2 // 3) for n in (200, 2000))
    assert seconds_per_fit(member, few) > seconds_per_fit(member, many) > 1


def test_members_that_take_blanks_for_negatives_expect_the_missing_positives():
    """Of 20 % positives a quarter is annotated; their mean probability is raised towards it."""
    assumed = np.full((1, 1000, 1), np.log(0.05 / 0.95))
    raised = weave_partial.MeanProbability(np.array([-np.log(0.25)]))(assumed)
    assert raised.mean() == pytest.approx(0.17, abs=0.01)


def test_labels_without_a_known_entry_are_named_and_not_predicted(only_positives, small_members):
    X, Y = only_positives
    Y = Y.copy()
    Y[:, 1] = np.nan
    with pytest.warns(LabelweaveWarning, match="without a known entry.*'label_1'"):
        model = Weave(random_state=0).fit(X, Y)
    assert model.blanks_ == "unannotated"
    probabilities = model.predict_proba(X)
    assert probabilities[:, 1].max() < 0.5 * probabilities[:, 0].mean()
    with pytest.raises(InputError, match="no known entry"):
        Weave().fit(X, np.full_like(Y, np.nan))


def test_some_verdicts_do_not_change_what_blanks_are_taken_for(only_positives):
    """Negatives of suspected entries alone are not enough to learn from."""
    labels = only_positives[1].copy()
    n_positive = int(np.nansum(labels))
    blanks = np.argwhere(np.isnan(labels))[: n_positive + 10]
    labels[tuple(blanks.T)] = 0
    assert weave_partial.meaning_of_blanks(as_labels(labels)) == "unannotated"


def test_named_members_expect_the_missing_positives(data, only_positives):
    """They take blanks for negatives, and their log-odds are raised afterwards."""
    X, Y = only_positives
    model = Weave(members=["br", "mlknn"], n_folds=3, threshold="tuned", random_state=0).fit(X, Y)
    assumed = Weave(members=["br", "mlknn"], n_folds=3, random_state=0).fit(X, np.nan_to_num(Y))
    truth = data[1].mean()
    raised, low = (m.predict_proba(X).mean() for m in (model, assumed))
    assert abs(raised - truth) < abs(low - truth) - 0.05
    assert model.predict(X).mean() == pytest.approx(raised, abs=0.05)


def test_blanks_beside_checked_negatives_are_ignored(data):
    X, Y = data[0], data[1].copy()
    Y[np.random.default_rng(0).random(Y.shape) < 0.3] = np.nan
    model = Weave(members=["br"], n_folds=2, threshold="tuned", random_state=0).fit(X, Y)
    assert model.blanks_ == "ignored"
    assert model.threshold_.n_resamples == 30
    assert Weave(members=["br"], n_folds=2, random_state=0).fit(*data).blanks_ == "none"


SETS = {
    "few labels": {"n_classes": 5, "n_labels": 2},
    "many labels": {"n_classes": 10, "n_labels": 3},
    "wide": {"n_classes": 5, "n_features": 60},
    "rare labels": {"n_classes": 8, "n_labels": 1, "length": 20},
}


@pytest.mark.filterwarnings("ignore:labels without a known entry")
@pytest.mark.parametrize("name", SETS)
def test_true_verdicts_do_not_lower_the_score(name, small_members):
    """Those blanks are reviewed that are suspected most: no random sample of the entries."""
    X, truth = make_multilabel_classification(700, random_state=1, **SETS[name])
    hidden = hide_positives(truth[:500], 0.5, as_="unknown", negatives="unknown", random_state=0)
    labels = hidden.Y.to_numpy()
    model = Weave(random_state=0).fit(X[:500], labels)
    suspicion = np.where(np.isnan(labels), model.held_out_predictions(None)[1], -1)
    by_suspicion = np.argsort(-suspicion, axis=None)

    def score(model):
        return get_metric("map")(truth[500:], Y_score=model.predict_proba(X[500:]))

    before = score(model)
    for n_verdicts in (100, 300):
        reviewed, suspected = labels.copy(), by_suspicion[:n_verdicts]
        reviewed.flat[suspected] = truth[:500].flat[suspected]
        model = Weave(random_state=0).fit(X[:500], reviewed)
        assert score(model) > before - 0.02
