"""Weave: what its members see, what the clock does, and that it is worth it."""

import pickle
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification

import labelweave as lw
from labelweave.base import MultiLabelClassifier
from labelweave.capabilities import capabilities
from labelweave.data import Dataset
from labelweave.dependent import weave_plan, weave_stacking, weave_trials
from labelweave.dependent.br import BinaryRelevance
from labelweave.dependent.mlknn import MLkNN
from labelweave.dependent.weave import Weave
from labelweave.dependent.weave_members import Member, list_members
from labelweave.dependent.weave_plan import EFFORTS, Plan
from labelweave.dependent.weave_trials import Clock, run_trials, seconds_of
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import as_labels
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
    monkeypatch.setattr(weave_trials, "time", SimpleNamespace(monotonic=lambda: NOW[0]))


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


def test_a_budget_that_is_too_short_leaves_members_out_and_says_so(data, own_time):
    members = [BinaryRelevance(), Rote(delay=0.8), MLkNN()]
    model = Weave(members=members, budget=2.0, n_folds=3, random_state=0)
    with pytest.warns(LabelweaveWarning, match="budget=2.0 cut 3 of 3 members short"):
        model.fit(*data)
    assert set(model.members_["note"]) == {"2 of 3 folds: the budget was too short"}
    shorter = Weave(members=members, budget=0.1, n_folds=3, random_state=0)
    members[0] = Rote(delay=0.5)
    with pytest.warns(LabelweaveWarning, match="3 of 3"):
        shorter.set_params(members=members).fit(*data)
    assert shorter.members_["note"].tolist()[1:] == ["left out: the budget was too short"] * 2
    assert shorter.members_["seconds"].tolist()[1:] == [0, 0]


def test_where_time_is_short_the_rows_of_the_first_folds_must_do(data, own_time):
    """One slow member that is needed: its model of the fold predicts, and judges that fold."""
    slow = _Slow(delay=1.0)
    model = Weave(members=[slow], budget=1.5, n_folds=5, threshold="tuned", random_state=0)
    with pytest.warns(LabelweaveWarning, match="budget"):
        model.fit(*data)
    labels, probabilities = model.held_out_predictions(None)
    assert len(labels) == len(probabilities) == len(data[0]) // 5
    assert model.models_[0][0].fitted_rows_ == len(data[0]) * 4 // 5
    with_time = Weave(members=[slow], n_folds=2, random_state=0).fit(*data)
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
    assert best - 0.02 < at_cut <= best


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


@pytest.fixture(scope="module")
def model_of_texts():
    texts = [f"word{k % 3} noise{k}" for k in range(60)]
    labels = [[f"label{k % 3}"] for k in range(60)]
    model = Weave(members=["br", "mlknn"], n_folds=2, threshold="tuned", random_state=0)
    return model.fit(texts, labels)


def test_texts_are_features_and_all_rows_are_out_of_fold(model_of_texts, tmp_path):
    new = ["word1 and more", "WORD2s", "something word0"]
    assert model_of_texts.predict_labels(new) == [["label1"], ["label2"], ["label0"]]
    assert len(model_of_texts.held_out_predictions(None)[0]) == 60
    model_of_texts.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_allclose(loaded.predict_proba(new), model_of_texts.predict_proba(new))
    assert capabilities(loaded).texts
    assert not capabilities(loaded).vectors


def test_what_it_was_fitted_to_is_what_it_takes(model_of_texts, data):
    assert capabilities(Weave()).texts
    assert capabilities(Weave()).vectors
    with pytest.raises(InputError, match="was fitted to texts: pass texts as X"):
        model_of_texts.predict(data[0])
    model = Weave(members=["br"], n_folds=2, random_state=0).fit(*data)
    assert not capabilities(model).texts
    with pytest.raises(InputError, match="was fitted to features: pass features as X"):
        model.predict(["a text"])
    again = clone(model_of_texts)
    assert again.fit(*data).n_features_in_ == data[0].shape[1]
    assert "text_embedder_" not in vars(again)


def test_a_tuned_threshold_is_the_median_of_samples(data):
    model = Weave(members=["br"], n_folds=2, threshold="tuned:f1_micro", random_state=0)
    model.fit(*data)
    assert (model.threshold_.metric, model.threshold_.n_resamples) == ("f1_micro", 30)
    as_set = make_threshold("tuned")
    assert model.set_params(threshold=as_set).fit(*data).threshold_.n_resamples == 0


def test_labels_unknown_in_a_whole_fold(data):
    X, Y = data[0], data[1].copy()
    Y[2:, 0] = np.nan
    model = Weave(members=["br", "mlknn"], n_folds=3, random_state=0).fit(X, Y)
    assert np.isfinite(model.predict_proba(X)).all()


def test_a_network_is_the_same_with_any_number_of_jobs_and_threads(data):
    """Each fit has its own seed and one thread: batches of folds and cores change nothing."""
    import torch

    before = torch.get_num_threads()
    probabilities = []
    for jobs, threads in ((1, 1), (2, 2), (1, 2)):
        torch.set_num_threads(threads)
        members = [lw.MLP(hidden=(64,), epochs=3), MLkNN(), "br"]
        model = Weave(members=members, n_folds=4, n_jobs=jobs, random_state=0).fit(*data)
        torch.set_num_threads(before)
        probabilities.append(model.predict_proba(data[0]))
    for other in probabilities[1:]:
        np.testing.assert_array_equal(other, probabilities[0])


def test_a_slow_machine_gives_the_same_model(data, monkeypatch):
    """Without a budget no decision depends on the clock."""
    members = [lw.MLP(hidden=(8,), epochs=2), MLkNN(), "br"]
    one = Weave(members=members, n_folds=3, random_state=0).fit(*data)
    clock = iter(np.arange(0, 1e9, 1000.0))
    late = SimpleNamespace(monotonic=lambda: next(clock))
    monkeypatch.setattr(weave_trials, "time", late)
    monkeypatch.setattr(weave_stacking, "time", late)
    two = Weave(members=members, n_folds=3, random_state=0).fit(*data)
    assert two.members_["seconds"].min() >= 1000
    np.testing.assert_array_equal(one.predict_proba(data[0]), two.predict_proba(data[0]))


def test_members_by_shape(data):
    X, Y = data
    names = [member.name for member in list_members("auto", X, Y.shape[1])]
    assert names[:2] == ["extra-trees", "ls-svm"]
    assert {"random-forest", "boosted-trees"} <= set(names)
    wide = [member.name for member in list_members("auto", np.zeros((10, 5000)), 500)]
    assert wide[0] == "br-balanced"
    assert "boosted-trees" not in wide
    twice = list_members(["mlknn", MLkNN(k=3)], X, 4)
    assert [member.name for member in twice] == ["mlknn-1", "mlknn-2"]


def test_more_effort_runs_networks_more_often(data):
    """The prediction of a row is the mean over the models that have not seen it."""
    network = lw.MLP(hidden=(16,), epochs=3)
    once, often = (
        Weave(members=[network], effort=effort, n_folds=2, random_state=0).fit(*data)
        for effort in ("quick", "best")
    )
    assert len(once.models_[0]) == 2
    assert len(often.models_[0]) == 2 * EFFORTS["best"].max_runs
    judge = get_metric("map")
    woven = judge(data[1], Y_score=often.held_out_predictions(None)[1])
    assert woven > often.members_["map"][0] - 0.05  # the second layer may make it better


def test_runs_of_a_trial_are_averaged(data):
    X, Y = data[0], lw.as_labels(data[1])
    fold = np.arange(len(X)) % 2
    member = Member("mlp", lw.MLP(hidden=(8,), epochs=2), True)
    plan = Plan([member], [1.0], [3], [], 2, len(X), [0.0])
    (trial,), rows = run_trials(plan, X, Y, fold, 0, Clock(None))
    assert len(trial.models) == 6
    assert len(rows) == len(X)
    for number in (0, 1):
        held_out = fold == number
        expected = np.mean([m.predict_proba(X[held_out]) for m in trial.models[number::2]], axis=0)
        np.testing.assert_allclose(expit(trial.odds(held_out)), expected, atol=1e-4)


def test_on_many_rows_members_are_chosen_on_a_sample_and_fitted_to_all(data, monkeypatch):
    """The plan is made for the effort's seconds, not for the rows."""
    monkeypatch.setattr(weave_plan, "MIN_ROWS", 100)
    monkeypatch.setattr(weave_plan, "FEW", 10)
    monkeypatch.setitem(weave_plan.EFFORTS, "quick", weave_plan.Effort(0.01, 5, 10, 1, 1000))
    small = lw.MLP(hidden=(8,), epochs=2)
    model = Weave(members=[MLkNN(), small], effort="quick", random_state=0).fit(*data)
    assert "1 fold of 100 of 300 rows" in model.plan_
    assert len(model.held_out_predictions(None)[0]) == 20
    assert all(len(models) == 1 for models in model.models_)
    order = model.members_.sort_values("weight", ascending=False)["method"].tolist()
    if "mlknn" in order[: len(model.models_)]:
        assert model.models_[order.index("mlknn")][0].train_X_.shape[0] == 300


def test_what_is_printed(data, capsys):
    model = Weave(members=["br", Rote()], n_folds=2, verbose=1, random_state=0).fit(*data)
    printed = capsys.readouterr().err
    assert "effort 'standard': 2 members, 2 folds of all rows: about" in printed
    assert "(1 without a prediction of their time)" in printed
    assert printed.count("rote") == 1
    columns = ["method", "map", "weight", "seconds", "predicted_seconds", "note"]
    assert model.members_.columns.tolist() == columns


def test_counts_of_words_are_not_scaled():
    X = (np.random.default_rng(0).random((60, 40)) < 0.1).astype(float)
    Y = X[:, :3]
    for features in (X, sp.csr_array(X)):
        assert Weave(members=["br"], n_folds=2, random_state=0).fit(features, Y).scaler_ is None


@pytest.mark.parametrize("budget", ["soon", "0min", "5 days"])
def test_a_budget_that_is_none(data, budget):
    with pytest.raises(InputError, match="budget must be None, seconds"):
        Weave(budget=budget).fit(*data)


def test_units_of_a_budget():
    budgets = ("30s", "1.5 min", "2h", 7, None)
    assert [seconds_of(budget) for budget in budgets] == [30, 90, 7200, 7, None]


@pytest.mark.parametrize("members", ["mlp", []])
def test_members_that_are_none(data, members):
    with pytest.raises(InputError, match="members"):
        Weave(members=members).fit(*data)


@pytest.mark.data
def test_it_beats_binary_relevance_on_emotions(data_home):
    train, test = lw.load_dataset("emotions").split()
    members = ["br", "mlknn", "extra-trees"]
    model = Weave(members=members, n_folds=4, random_state=0).fit(train.X, train.Y)
    average_precision = get_metric("map")
    score = average_precision(test.Y, Y_score=model.predict_proba(test.X))
    alone = lw.make("br").fit(train.X, train.Y)
    assert score > average_precision(test.Y, Y_score=alone.predict_proba(test.X)) + 0.02


def test_validation_rows_count_by_their_weights(data):
    """A row of weight 0 is not learnt, and a pair without weights has the mean of the others."""
    X, Y = data[0][:120], data[1][:120]
    weight = np.random.default_rng(0).random(80) + 0.5
    fit = {"X": X[:80], "y": Y[:80], "sample_weight": weight}

    def scores(Z, weights):
        held = Dataset(X[80:], as_labels(Z), weights=weights)
        return Weave(members=["br"], random_state=0).fit(**fit, validation=held).predict_proba(X)

    flipped = np.vstack([Y[80:100], 1 - Y[100:]])
    counted = np.r_[np.ones(20), np.zeros(20)]
    np.testing.assert_array_equal(scores(flipped, counted), scores(Y[80:], counted))
    assert (scores(flipped, np.ones(40)) != scores(Y[80:], np.ones(40))).any()
    pair = Weave(members=["br"], random_state=0).fit(**fit, validation=(X[80:], Y[80:]))
    mean = np.full(40, weight.mean())
    np.testing.assert_array_equal(pair.predict_proba(X), scores(Y[80:], mean))
