"""Scoring models: ours, scikit-learn's, and plain predictions."""

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave.metrics as lwm
from labelweave.base import MultiLabelClassifier
from labelweave.data import Dataset
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import evaluate, score_predictions
from labelweave.thresholds import TopK, make_threshold


class Linear(MultiLabelClassifier):
    """Sigmoid of the first columns of X, counting how often it is asked."""

    def __init__(self, threshold=0.5, validation_fraction=0.2, random_state=None):
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X, Y, validation):
        self.asked_ = 0

    def _predict_proba(self, X):
        self.asked_ += 1
        return 1 / (1 + np.exp(-X[:, : self.n_labels_]))


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 4))
    Y = (X[:, :3] + rng.normal(size=(40, 3)) > 0.3).astype(float)
    return Dataset(X, as_labels(Y, names=["sea", "sun", "sand"]), name="beach")


def test_every_metric_from_one_pass(data):
    model = Linear().fit(data.X, data.Y)
    scores = evaluate(model, data)
    assert model.asked_ == 1
    p = model.predict_proba(data.X)
    for name, value in scores.items():
        expected = lwm.get_metric(name)(data.Y, Y_score=p, Y_pred=p >= 0.5)
        assert value == pytest.approx(expected), name
    assert {"f1_example", "map", "precision@1", "precision@3", "ece"} <= set(scores)
    assert "precision@5" not in scores  # there are three labels
    assert "psp@1" not in scores  # no propensities


def test_columns_are_matched_by_name(data):
    model = Linear().fit(data.X, data.Y)
    shuffled = data.select_labels(["sand", "sea", "sun"])
    assert evaluate(model, shuffled).to_dict() == pytest.approx(evaluate(model, data).to_dict())
    fewer = data.select_labels(["sun"])
    expected = lwm.f1_micro(fewer.Y, model.predict(data.X)[:, [1]])
    assert evaluate(model, fewer)["f1_micro"] == pytest.approx(expected)
    frame = pd.DataFrame(data.Y.to_numpy(), columns=data.Y.names)[["sun", "sand", "sea"]]
    assert evaluate(model, (data.X, frame))["map"] == pytest.approx(evaluate(model, data)["map"])
    stranger = Dataset(data.X, as_labels(data.Y.to_numpy(), names=["sea", "sun", "rain"]))
    with pytest.raises(InputError, match="the model has no label 'rain'"):
        evaluate(model, stranger)


def test_lists_of_names_and_plain_arrays(data):
    model = Linear().fit(data.X, data.Y)
    expected = evaluate(model, data)["f1_macro"]
    assert evaluate(model, (data.X, data.Y.to_lists()))["f1_macro"] == pytest.approx(expected)
    assert evaluate(model, (data.X, data.Y.to_numpy()))["f1_macro"] == pytest.approx(expected)
    with pytest.raises(InputError, match=r"\(40, 2\)"):
        evaluate(model, (data.X, data.Y.to_numpy()[:, :2]))


@pytest.mark.parametrize(
    "model",
    [
        OneVsRestClassifier(LogisticRegression()),
        MultiOutputClassifier(LogisticRegression()),
        KNeighborsClassifier(5),
        make_pipeline(StandardScaler(), MultiOutputClassifier(LogisticRegression())),
    ],
)
def test_models_of_scikit_learn(data, model):
    Y = data.Y.to_numpy().astype(int)
    model.fit(data.X, Y)
    scores = evaluate(model, data)
    p = model.predict_proba(data.X)
    p = np.column_stack([part[:, 1] for part in p]) if isinstance(p, list) else p
    assert scores["map"] == pytest.approx(lwm.mean_average_precision(Y, p))
    assert scores["f1_macro"] == pytest.approx(lwm.f1_macro(Y, model.predict(data.X)))


def test_our_model_in_a_pipeline_and_a_search(data):
    model = make_pipeline(StandardScaler(), Linear(threshold="top-1")).fit(data.X, data.Y)
    scores = evaluate(model, data.select_labels(["sun", "sand", "sea"]))
    assert scores["f1_example"] == pytest.approx(lwm.f1_example(data.Y, model.predict(data.X)))
    Y = data.Y.to_numpy().astype(int)
    search = GridSearchCV(Linear(), {"threshold": [0.5]}, cv=2).fit(data.X, Y)
    assert evaluate(search, data)["f1_example"] == pytest.approx(
        lwm.f1_example(Y, search.predict(data.X))
    )


def test_a_model_without_probabilities(data):
    Y = data.Y.to_numpy().astype(int)
    scores = evaluate(RidgeClassifier().fit(data.X, Y), data)
    assert "map" in scores  # its decision function ranks
    assert "ece" not in scores  # but is no probability

    class OnlySets:
        def predict(self, X):
            return (X[:, :3] > 0).astype(int)

    scores = evaluate(OnlySets(), data)
    assert scores["f1_micro"] == pytest.approx(lwm.f1_micro(Y, data.X[:, :3] > 0))
    assert "map" not in scores
    with pytest.raises(InputError, match="OnlySets computes no scores"):
        evaluate(OnlySets(), data, threshold=0.3)


def test_one_class_a_row(data):
    y = data.X[:, :3].argmax(axis=1)
    model = Linear().fit(data.X, y)
    assert evaluate(model, (data.X, y))["subset_accuracy"] == 1.0


def test_thresholds(data):
    model = Linear().fit(data.X, data.Y)
    p = model.predict_proba(data.X)
    assert evaluate(model, data, threshold=0.3)["f1_micro"] == lwm.f1_micro(data.Y, p >= 0.3)
    assert evaluate(p, data, threshold=TopK(1))["f1_micro"] == lwm.f1_micro(
        data.Y, TopK(1).apply(p)
    )
    with pytest.raises(InputError, match="has to be tuned on validation rows first"):
        evaluate(model, data, threshold="tuned")
    tuned = make_threshold("tuned").fit(data.Y, p)
    assert evaluate(p, data, threshold=tuned)["f1_example"] == pytest.approx(tuned.score_)


def test_given_predictions(data):
    p = np.random.default_rng(1).random((40, 3))
    by_array = evaluate(p, data)
    assert by_array["map"] == lwm.mean_average_precision(data.Y, p)
    named = pd.DataFrame(p, columns=data.Y.names)[["sun", "sand", "sea"]]
    assert evaluate(named, data).to_dict() == pytest.approx(by_array.to_dict())
    best = sp.csr_array(p * (p > 0.5))
    at_k = evaluate(best, data, propensities=lwm.propensities(data.Y))
    assert set(at_k) == {
        f"{name}@{k}" for name in ("precision", "recall", "ndcg", "psp", "psndcg") for k in (1, 3)
    }
    assert at_k["precision@1"] == lwm.precision_at_k(data.Y, best, 1)
    assert score_predictions(data.Y, Y_pred=p > 0.5)["f1_micro"] == lwm.f1_micro(data.Y, p > 0.5)
    with pytest.raises(InputError, match="nothing to score"):
        score_predictions(data.Y)


def test_chosen_metrics(data):
    p = np.random.default_rng(1).random((40, 3))
    assert list(evaluate(p, data, metrics=["mAP", "precision@2"])) == ["map", "precision@2"]
    assert list(evaluate(p, data, metrics="hamming_loss")) == ["hamming_loss"]
    weight = np.arange(40)
    weighted = evaluate(p, data, metrics="f1_macro", sample_weight=weight)["f1_macro"]
    assert weighted == lwm.f1_macro(data.Y, p >= 0.5, sample_weight=weight)
    with pytest.raises(InputError, match="metrics is empty"):
        evaluate(p, data, metrics=[])
    with pytest.raises(InputError, match="psp@1 needs propensities"):
        evaluate(p, data, metrics="psp@1")
    with pytest.raises(InputError, match=r"Dataset or a pair \(X, Y\)"):
        evaluate(p, data.Y)


def test_table(data):
    model = Linear().fit(data.X, data.Y)
    scores = evaluate(model, data)
    lines = str(scores).splitlines()
    assert lines[0] == "Linear on beach, 40 rows x 3 labels"
    assert len(lines) == 2 + len(scores)
    ends = {line.rindex(word) for line in lines[2:] for word in ("higher", "lower") if word in line}
    assert len(ends) == 1  # the columns stand under each other
    page = scores._repr_html_()
    assert page.count("<tr>") == 1 + len(scores)
    assert f"{scores['map']:.4f}" in page


def test_undefined_is_said_and_is_valid_json():
    scores = score_predictions(np.zeros((2, 2)), Y_score=np.full((2, 2), 0.5))
    assert np.isnan(scores["map"])
    assert scores.to_dict()["map"] is None
    assert json.loads(json.dumps(scores.to_dict(), allow_nan=False))["map"] is None
    assert "undefined" in str(scores)


def test_per_label(data):
    Y = data.Y.to_numpy().copy()
    Y[::4, 1] = np.nan
    Y[:, 2] = 0
    partly = Dataset(data.X, as_labels(Y, names=data.Y.names))
    model = Linear(threshold=0.4).fit(data.X, data.Y)
    table = evaluate(model, partly).per_label()
    assert table.label.tolist() == ["sea", "sun", "sand"]
    assert table.known.tolist() == [40, 30, 40]
    assert table.positives.tolist() == np.nansum(Y, axis=0).tolist()
    assert (table.threshold == 0.4).all()
    p = model.predict_proba(data.X)
    known = ~np.isnan(Y[:, 1])
    truth, pred, score = Y[known, 1:2], p[known, 1:2] >= 0.4, p[known, 1:2]
    sun = table.iloc[1]
    assert sun.precision == pytest.approx(lwm.precision_micro(truth, pred))
    assert sun.recall == pytest.approx(lwm.recall_micro(truth, pred))
    assert sun.f1 == pytest.approx(lwm.f1_micro(truth, pred))
    assert sun.ap == pytest.approx(lwm.ap_micro(truth, score))
    assert sun.auc == pytest.approx(lwm.auc_micro(truth, score))
    assert np.isnan(table.recall[2])
    assert np.isnan(table.ap[2])
    table["label"] = "changed"
    assert "label" in evaluate(model, partly).per_label().columns


def test_per_label_follows_the_order_of_the_data(data):
    model = Linear(threshold="per-label").fit(data.X, data.Y, validation=data)
    one = evaluate(model, data).per_label().set_index("label")
    other = evaluate(model, data.select_labels(["sand", "sea", "sun"])).per_label()
    pd.testing.assert_frame_equal(one.loc[other.label], other.set_index("label"))
    assert one.threshold.nunique() > 1
