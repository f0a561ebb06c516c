"""What metrics refuse, and the forms of labels that they accept."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import METRICS, f1_example, get_metric, lrap, subset_accuracy

NAMES = [name.replace("@k", "@2") for name in METRICS]


def call(name, Y_true, prediction, **extra):
    metric = get_metric(name)
    if metric.needs_propensities:
        extra["propensities"] = np.full(np.shape(Y_true)[1], 0.5)
    return metric(Y_true, **{f"Y_{metric.needs}": prediction}, **extra)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    ("Y_true", "prediction", "message"),
    [
        (np.zeros((2, 3)), np.zeros((2, 2)), r"\(2, 3\).*\(2, 2\)"),
        (np.zeros((2, 3)), np.zeros((3, 3)), r"\(2, 3\).*\(3, 3\)"),
        (np.zeros((0, 3)), np.zeros((0, 3)), "Y_true is empty"),
        (np.full((2, 3), np.nan), np.zeros((2, 3)), "no known entry"),
        (np.full((2, 3), 2), np.zeros((2, 3)), "Y holds 2 at row 0"),
    ],
)
def test_every_metric_refuses(name, Y_true, prediction, message):
    with pytest.raises(InputError, match=message):
        call(name, Y_true, prediction)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_every_metric_refuses_what_is_no_prediction(name, value):
    prediction = np.zeros((2, 3))
    prediction[1, 2] = value
    with pytest.raises(InputError, match=r"row 1, (column 2|label 'label_2')|unknown entries"):
        call(name, np.eye(2, 3), prediction)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("weight", [[1], [1, np.nan], [1, -1], [0, 0]])
def test_every_metric_refuses_wrong_weights(name, weight):
    with pytest.raises(InputError, match="sample_weight"):
        call(name, np.eye(2), np.eye(2), sample_weight=weight)


@pytest.mark.parametrize("name", [n for n in NAMES if get_metric(n).needs == "score"])
def test_sparse_scores_only_at_k(name):
    scores = sp.csr_array(np.eye(2))
    if "@" in name:
        call(name, np.eye(2), scores)
    else:
        with pytest.raises(InputError, match="needs the scores of all labels"):
            call(name, np.eye(2), scores)


def test_sparse_score_that_is_not_finite_is_located():
    scores = sp.csr_array(np.array([[0.0, 1.0], [0.0, np.inf]]))
    with pytest.raises(InputError, match="infinity at row 1, column 1"):
        call("precision@2", np.eye(2), scores)


def test_a_list_of_arrays_is_explained():
    with pytest.raises(InputError, match="list of arrays, one per label"):
        lrap(np.eye(2), [np.ones((2, 2)), np.ones((2, 2))])
    with pytest.raises(InputError, match="not a matrix of numbers"):
        lrap(np.eye(2), [["a", "b"], ["c", "d"]])


def test_lists_of_names():
    assert f1_example([["sea"], ["sun"]], [["sea"], ["rain"]]) == 0.5
    assert f1_example([["sea", "sun"], []], [("sea",), ["sun"]]) == pytest.approx(1 / 3)
    assert subset_accuracy(as_labels([["a"], ["b"]]), [["a"], ["b"]]) == 1
    with pytest.raises(InputError, match="neither Y_true nor Y_pred"):
        f1_example([[], []], [[], []])


def test_probabilities_are_no_label_sets():
    with pytest.raises(InputError, match=r"Y_pred does not hold label sets: .*0\.3 at row 0"):
        f1_example([[1, 0]], [[0.3, 0.7]])
    with pytest.raises(InputError, match="two dimensions"):
        f1_example([1, 0], [1, 0])
    with pytest.raises(InputError, match="two dimensions"):
        f1_example(1, 1)


def test_named_columns_are_matched_by_name():
    truth = pd.DataFrame({"a": [1, 0, 1], "b": [0, 1, 1]})
    assert subset_accuracy(truth, truth[["b", "a"]]) == 1
    assert subset_accuracy(truth, truth[["b", "a"]].to_numpy()) == pytest.approx(1 / 3)
    assert lrap(truth, truth[["b", "a"]].astype(float)) == 1
    assert subset_accuracy(as_labels(truth), as_labels(truth.to_numpy())) == 1
    with pytest.raises(InputError, match="Y_pred has no label 'b'"):
        subset_accuracy(truth, truth.rename(columns={"b": "c"}))
