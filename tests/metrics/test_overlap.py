"""Precision, recall, F1 and Jaccard index in their three averages."""

import numpy as np
import pytest
from sklearn import metrics as sk

import labelweave.metrics as lwm
from labelweave.exceptions import InputError

KINDS = ["f1", "precision", "recall", "jaccard"]
AVERAGES = {"example": "samples", "micro": "micro", "macro": "macro"}


def one_score(kind, truth, predicted, zero_division):
    """The score of two 0/1 vectors, written out."""
    hits = int(sum(t == 1 and p == 1 for t, p in zip(truth, predicted, strict=True)))
    a, b = int(sum(truth)), int(sum(predicted))
    above, below = {
        "f1": (2 * hits, a + b),
        "precision": (hits, b),
        "recall": (hits, a),
        "jaccard": (hits, a + b - hits),
    }[kind]
    return above / below if below else zero_division


# scikit-learn's Jaccard index takes no nan; the slow re-computation below does.
@pytest.mark.parametrize(
    ("kind", "zero_division"),
    [(k, z) for k in KINDS for z in (0.0, 1.0, np.nan) if k != "jaccard" or not np.isnan(z)],
)
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("weighted", [False, True])
def test_as_scikit_learn(problem, kind, average, zero_division, weighted):
    Y_true, Y_pred, _ = problem
    w = np.random.default_rng(2).random(len(Y_true)) if weighted else None
    mine = getattr(lwm, f"{kind}_{average}")(
        Y_true, Y_pred, sample_weight=w, zero_division=zero_division
    )
    function = getattr(sk, f"{kind}_score")
    theirs = function(
        Y_true, Y_pred, average=AVERAGES[average], sample_weight=w, zero_division=zero_division
    )
    assert mine == pytest.approx(theirs)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("average", AVERAGES)
@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
def test_unknown_entries_are_as_if_they_were_not_there(partial, kind, average, zero_division):
    Y_true, Y_pred, _ = partial
    known = ~np.isnan(Y_true)
    if average == "micro":
        expected = one_score(kind, Y_true[known], Y_pred[known], zero_division)
    else:
        lines = (Y_true, Y_pred, known)
        if average == "macro":
            lines = tuple(part.T for part in lines)
        each = [
            one_score(kind, t[k], p[k], zero_division)
            for t, p, k in zip(*lines, strict=True)
            if k.any()
        ]
        expected = np.nanmean(each)
    mine = getattr(lwm, f"{kind}_{average}")(Y_true, Y_pred, zero_division=zero_division)
    assert mine == pytest.approx(expected)


def test_cf1_is_the_harmonic_mean_of_macro_precision_and_recall(problem):
    Y_true, Y_pred, _ = problem
    p = sk.precision_score(Y_true, Y_pred, average="macro", zero_division=0)
    r = sk.recall_score(Y_true, Y_pred, average="macro", zero_division=0)
    assert lwm.cf1(Y_true, Y_pred) == pytest.approx(2 * p * r / (p + r))
    assert lwm.cf1(Y_true, Y_pred) != pytest.approx(lwm.f1_macro(Y_true, Y_pred), abs=1e-4)
    assert lwm.of1(Y_true, Y_pred) == lwm.f1_micro(Y_true, Y_pred)
    assert lwm.cf1(Y_true, np.zeros_like(Y_pred)) == 0


def test_empty_prediction_for_an_empty_row():
    Y_true, Y_pred = [[0, 0], [1, 0]], [[0, 0], [1, 1]]
    by_convention = [lwm.f1_example(Y_true, Y_pred, zero_division=z) for z in (0, 1, np.nan)]
    assert by_convention == pytest.approx([1 / 3, 5 / 6, 2 / 3])


def test_zero_division_is_0_1_or_nan():
    for value in (0.5, "warn", None):
        with pytest.raises(InputError, match="zero_division must be 0, 1 or nan"):
            lwm.f1_example([[1]], [[1]], zero_division=value)


def test_the_average_is_a_parameter_too():
    Y_true, Y_pred = [[1, 0], [1, 1], [0, 1]], [[1, 1], [0, 1], [0, 1]]
    for kind in KINDS:
        for average in AVERAGES:
            expected = getattr(lwm, f"{kind}_{average}")(Y_true, Y_pred)
            assert getattr(lwm, kind)(Y_true, Y_pred, average=average) == expected
    with pytest.raises(InputError, match="average must be example, macro or micro, not 'samples'"):
        lwm.f1(Y_true, Y_pred, average="samples")
