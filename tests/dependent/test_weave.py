"""Weave: what its members see, what the clock does, and that it is worth it."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification

import labelweave as lw
from labelweave.base import MultiLabelClassifier
from labelweave.dependent import weave_members
from labelweave.dependent.br import BinaryRelevance
from labelweave.dependent.mlknn import MLkNN
from labelweave.dependent.weave import Weave, _seconds
from labelweave.dependent.weave_members import Member, Trial, plan_members
from labelweave.dependent.weave_schedule import MAX_RUNS, Schedule
from labelweave.exceptions import InputError
from labelweave.metrics import get_metric
from labelweave.text import TextClassifier
from labelweave.thresholds import make_threshold


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(300, n_classes=4, random_state=0)
    return X, Y.astype(float)


NOW = [0.0]


@pytest.fixture
def own_time(monkeypatch):
    """Seconds that pass only where a member says so: a busy machine changes nothing."""
    monkeypatch.setattr(weave_members, "time", SimpleNamespace(monotonic=lambda: NOW[0]))


class Rote(MultiLabelClassifier):
    """Certain of what it has seen, and of nothing else; may be slow."""

    def __init__(self, delay=0.0, *, threshold=0.5, validation_fraction=0.2, random_state=None):
        self.delay = delay
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X, Y, validation):
        NOW[0] += self.delay
        self.seen_ = {row.tobytes(): y for row, y in zip(X, Y.to_numpy(), strict=True)}

    def _predict_proba(self, X):
        blank = np.full(self.n_labels_, 0.5)
        return np.array([self.seen_.get(row.tobytes(), blank) for row in X])


def test_a_member_that_learns_by_rote_is_given_no_weight(data):
    """Its out-of-fold probabilities say nothing: no row was in the training of its own fold."""
    model = Weave(members=[Rote(), BinaryRelevance()], random_state=0).fit(*data)
    weights = model.members_.set_index("method")["weight"]
    assert weights["rote"] < 0.02 < weights["br"]
    blind = Weave(members=[Rote()], random_state=0).fit(*data)
    assert blind.members_["map"][0] == pytest.approx(np.mean(data[1], axis=0).mean(), abs=0.02)


def test_a_slow_member_that_does_not_help_is_left_out_and_said_so(data, own_time):
    members = [BinaryRelevance(), Rote(delay=0.8), MLkNN()]
    model = Weave(members=members, budget=2.5, n_folds=3, random_state=0).fit(*data)
    notes = model.members_.set_index("method")["note"]
    assert notes["rote"] == "slow, and does not help on the first folds"
    assert notes["br"] == ""
    assert len(model.models_) <= 2


def test_a_member_whose_probe_is_too_slow_is_not_fitted(own_time):
    X, Y = make_multilabel_classification(2000, n_classes=3, random_state=0)
    members = [BinaryRelevance(), Rote(delay=0.5)]
    model = Weave(members=members, budget=5, n_folds=2, random_state=0).fit(X, Y)
    slow = model.members_.set_index("method").loc["rote"]
    assert slow["note"] == "too slow for the budget"
    assert slow["seconds"] == 0


class SlowAndGood(BinaryRelevance):
    def _fit(self, X, Y, validation):
        NOW[0] += 60
        super()._fit(X, Y, validation)


@pytest.mark.parametrize(("share", "stays"), [(0.3, False), (0.7, True)])
def test_a_dear_member_goes_where_few_positives_are_there_to_choose_on(
    data, own_time, monkeypatch, share, stays
):
    """But not the one that helps most: rather fewer rows to choose on."""
    monkeypatch.setattr(
        Schedule, "weights", lambda self: np.array([1 - share, share][: len(self.running)])
    )
    model = Weave(members=[MLkNN(), SlowAndGood()], budget=100, n_folds=5, random_state=0)
    model.fit(*data)
    assert model.members_["note"].tolist() == ["", "" if stays else "too slow for more folds"]
    rows = len(data[0]) // 5 if stays else len(data[0])
    assert len(model.held_out_predictions(None)[0]) == rows


def test_a_network_leaves_time_for_a_second_fold_where_positives_are_few(
    data, own_time, monkeypatch
):
    limits = []

    def run(self, *args, seconds, **kwargs):
        limits.append((self.member.name, seconds))
        plain_run(self, *args, seconds=seconds, **kwargs)

    plain_run = Trial.run
    monkeypatch.setattr(Trial, "run", run)
    members = [Rote(delay=10), lw.MLP(hidden=(4,), epochs=1)]
    Weave(members=members, budget=100, n_folds=5, random_state=0).fit(*data)
    # 80 s are left but for the stack's: two more fits of the first member, then two folds
    assert limits[1] == ("mlp", pytest.approx((80 - 2 * 10) / 2))


def test_where_time_is_short_the_rows_of_the_first_folds_must_do(data, own_time):
    """One slow member that is needed: its model of the fold predicts, and judges that fold."""
    slow = _Slow(delay=1.0)
    model = Weave(members=[slow], budget=1.5, n_folds=5, threshold="tuned", random_state=0)
    model.fit(*data)
    labels, probabilities = model.held_out_predictions(None)
    assert len(labels) == len(probabilities) == len(data[0]) // 5
    assert model.models_[0][0].fitted_rows_ == len(data[0]) * 4 // 5
    with_time = Weave(members=[slow], budget=None, n_folds=2, random_state=0).fit(*data)
    assert with_time.models_[0][0].fitted_rows_ == len(data[0])
    assert len(with_time.held_out_predictions(None)[0]) == len(data[0])


class _Slow(Rote):
    """Knows the frequency of labels, and takes its time."""

    def _fit(self, X, Y, validation):
        NOW[0] += self.delay
        self.fitted_rows_ = len(X)
        self.mean_ = Y.to_numpy().mean(axis=0)

    def _predict_proba(self, X):
        return np.tile(self.mean_, (len(X), 1))


def test_networks_that_need_more_time_than_there_is(data, own_time):
    """Stopped long before its end, a network is worth nothing."""
    plain, slow = plan_members(["mlp", "mulsupcon"], data[0], 4)
    assert plain.is_mlp
    assert plain.min_seconds(10.0) == 0
    assert slow.min_seconds(100.0) > slow.min_seconds(0.0) > 0
    small = lw.MLP(hidden=(8,), epochs=2)
    model = Weave(members=[small, lw.make("mulsupcon")], budget=45, n_folds=2, random_state=0)
    assert model.fit(*data).members_["note"].tolist() == ["", "too slow for the budget"]


def test_the_first_member_has_all_the_time_it_needs(data, own_time):
    model = Weave(members=[Rote(delay=0.05), MLkNN()], budget=0.01, random_state=0).fit(*data)
    assert model.members_["note"].tolist() == ["", "no time left"]


def test_a_network_keeps_the_models_of_its_folds(data):
    small = lw.MLP(hidden=(16,), epochs=5)
    model = Weave(members=[small, MLkNN()], n_folds=3, random_state=0).fit(*data)
    by_weight = model.members_.query("weight > 0").sort_values("weight", ascending=False)
    for name, models in zip(by_weight["method"], model.models_, strict=True):
        assert len(models) % 3 == 0 if name == "mlp" else len(models) == 1


def test_a_threshold_is_tuned_out_of_fold_and_costs_no_rows(data):
    model = Weave(members=[MLkNN(k=1)], threshold="tuned", random_state=0).fit(*data)
    assert model.models_[0][0].train_X_.shape == data[0].shape


@pytest.mark.parametrize("sparse", [False, True])
def test_validation_rows_are_learnt_from_and_out_of_fold_predictions(data, sparse):
    """Nearest neighbours know every row they hold; what may be chosen on must not."""
    X, Y = (sp.csr_array(part) for part in data) if sparse else data
    validation = (X[200:], Y[200:])
    model = Weave(members=[MLkNN(k=1)], threshold="tuned", random_state=0)
    model.fit(X[:200], Y[:200], validation=validation)
    assert model.models_[0][0].train_X_.shape == X.shape
    labels, probabilities = model.held_out_predictions(validation)
    np.testing.assert_array_equal(labels.to_numpy(), data[1])
    judge = get_metric("map")
    by_heart = judge(labels, Y_score=model.predict_proba(X))
    assert judge(labels, Y_score=probabilities) < by_heart - 0.05
    best = max(
        get_metric("f1_example")(labels, Y_pred=probabilities >= cut)
        for cut in np.unique(probabilities)
    )
    at_cut = get_metric("f1_example")(labels, Y_pred=model.threshold_.apply(probabilities))
    assert at_cut == pytest.approx(best)


def test_out_of_fold_probabilities_stay_in_memory(data, tmp_path):
    model = Weave(members=[MLkNN()], random_state=0).fit(*data)
    assert len(model.held_out_predictions(None)[0]) == len(data[0])
    model.save(tmp_path / "model")
    for other in (lw.load(tmp_path / "model"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_allclose(other.predict_proba(data[0]), model.predict_proba(data[0]))
        with pytest.raises(InputError, match="no out-of-fold probabilities"):
            other.held_out_predictions(None)


def test_texts_are_out_of_fold_predictions_too():
    texts = [f"word{k % 3} noise{k}" for k in range(60)]
    Y = np.eye(3)[np.arange(60) % 3]
    model = TextClassifier(Weave(members=[MLkNN(k=3)]), threshold="tuned", random_state=0)
    model.fit(texts[:40], Y[:40], validation=(texts[40:], Y[40:]))
    assert model.classifier_.models_[0][0].train_X_.shape[0] == 60
    labels, probabilities = model.held_out_predictions((texts[40:], Y[40:]))
    np.testing.assert_array_equal(labels.to_numpy(), Y)
    tuned = make_threshold("tuned").fit(labels, probabilities)
    assert model.threshold_.value_ == tuned.value_


def test_labels_unknown_in_a_whole_fold(data):
    X, Y = data[0], data[1].copy()
    Y[2:, 0] = np.nan
    model = Weave(members=["br", "mlknn"], n_folds=3, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_folds_in_several_processes_change_nothing(data):
    one, two = (
        Weave(members=["br"], n_folds=3, n_jobs=jobs, random_state=0).fit(*data) for jobs in (1, 2)
    )
    np.testing.assert_allclose(one.predict_proba(data[0]), two.predict_proba(data[0]))


def test_members_by_shape(data):
    X, Y = data
    names = [member.name for member in plan_members("auto", X, Y.shape[1])]
    assert names[:2] == ["extra-trees-1", "ls-svm"]
    assert "boosted-trees" in names
    wide = [member.name for member in plan_members("auto", np.zeros((10, 5000)), 500)]
    assert wide[0] == "br"
    assert "boosted-trees" not in wide
    twice = plan_members(["mlknn", MLkNN(k=3)], X, 4)
    assert [member.name for member in twice] == ["mlknn-1", "mlknn-2"]


def test_time_that_is_left_goes_to_more_models_of_a_network(data):
    """What is said of a row is the mean over the models that have not seen it."""
    network = lw.MLP(hidden=(16,), epochs=3)
    model = Weave(members=[network], budget="10min", n_folds=2, random_state=0).fit(*data)
    assert len(model.models_[0]) == 2 * MAX_RUNS
    once = Weave(members=[network], budget=None, n_folds=2, random_state=0).fit(*data)
    assert len(once.models_[0]) == 2
    judge = get_metric("map")
    woven = judge(data[1], Y_score=model.held_out_predictions(None)[1])
    assert woven > model.members_["map"][0] - 0.05  # the second layer may make it better


def test_runs_of_a_trial_are_averaged(data):
    X, Y = data[0], lw.as_labels(data[1])
    fold = np.arange(len(X)) % 2
    trial = Trial(Member("mlp", lw.MLP(hidden=(8,), epochs=2), True), fold, Y.n_labels)
    for seed in (0, 10, 20):
        trial.run(X, Y, [0, 1], seed)
    assert len(trial.models) == 6
    for number in (0, 1):
        rows = fold == number
        expected = np.mean([m.predict_proba(X[rows]) for m in trial.models[number::2]], axis=0)
        np.testing.assert_allclose(expit(trial.odds(rows)), expected, atol=1e-4)


def test_counts_of_words_are_not_scaled():
    X = (np.random.default_rng(0).random((60, 40)) < 0.1).astype(float)
    Y = X[:, :3]
    for features in (X, sp.csr_array(X)):
        assert Weave(members=["br"], n_folds=2, random_state=0).fit(features, Y).scaler_ is None


@pytest.mark.parametrize("budget", ["soon", "0min", "5 days"])
def test_a_budget_that_is_none(data, budget):
    with pytest.raises(InputError, match="budget must be 'auto', seconds"):
        Weave(budget=budget).fit(*data)


def test_units_of_a_budget():
    budgets = ("30s", "1.5 min", "2h", 7, None)
    assert [_seconds(b, n_entries=1000) for b in budgets] == [30, 90, 7200, 7, None]


def test_the_automatic_budget_grows_with_the_label_matrix_within_bounds():
    sizes = (10, 1_000_000, 2_500_000, 10**9)
    assert [_seconds("auto", n) for n in sizes] == [60, 60, 150, 600]


@pytest.mark.parametrize("members", ["mlp", []])
def test_members_that_are_none(data, members):
    with pytest.raises(InputError, match="members"):
        Weave(members=members).fit(*data)


@pytest.mark.data
def test_it_beats_binary_relevance_on_emotions(data_home):
    train, test = lw.load_dataset("emotions").split()
    members = ["br", "mlknn", "extra-trees"]
    model = Weave(members=members, budget=None, n_folds=4, random_state=0).fit(train.X, train.Y)
    average_precision = get_metric("map")
    score = average_precision(test.Y, Y_score=model.predict_proba(test.X))
    alone = lw.make("br").fit(train.X, train.Y)
    assert score > average_precision(test.Y, Y_score=alone.predict_proba(test.X)) + 0.02
