"""Cuts and scores: the quick sweeps against the metrics, and each protocol by its rules."""

import numpy as np
import pytest

from labelweave.bench.evaluation_protocol import PANEL, EvaluationProtocol
from labelweave.bench.running.cell_scores import (
    best_threshold,
    metric_at_thresholds,
    score_test_rows,
)
from labelweave.labels import as_labels
from labelweave.metrics import get_metric
from labelweave.thresholds import PAPER_GRID

OF_SETS = [name for name in PANEL if get_metric(name).needs == "pred"]
HONEST = EvaluationProtocol("honest")
PUBLISHED = EvaluationProtocol("as-published", threshold="test")


def some_rows(seed=0, n=80, n_labels=6, unknown=0.0):
    rng = np.random.default_rng(seed)
    scores = rng.random((n, n_labels)).astype(np.float32).round(2)
    Y = (scores + rng.normal(0, 0.3, scores.shape) > 0.6).astype(float)
    Y[rng.random(Y.shape) < unknown] = np.nan
    return as_labels(Y), scores


@pytest.mark.parametrize("name", [*OF_SETS, "subset_accuracy", "jaccard_micro"])
@pytest.mark.parametrize("unknown", [0.0, 0.2])
def test_a_sweep_equals_the_metric_at_each_cut(name, unknown):
    Y, scores = some_rows(unknown=unknown)
    thresholds = np.array([0.0, 0.25, 0.5, 0.51, 0.9, 1.5])
    slow = [
        get_metric(name)(Y, Y_pred=(scores >= np.float32(threshold)).astype(int))
        for threshold in thresholds
    ]
    assert metric_at_thresholds(name, Y, scores, thresholds) == pytest.approx(slow)


@pytest.mark.parametrize("name", OF_SETS)
def test_the_chosen_cut_is_the_best_of_all(name):
    Y, scores = some_rows(1)
    metric = get_metric(name)
    threshold, value = best_threshold(name, Y, scores)
    at_threshold = metric(Y, Y_pred=(scores >= np.float32(threshold)).astype(int))
    assert at_threshold == pytest.approx(value)
    everywhere = [
        metric.sign * metric(Y, Y_pred=(scores >= other).astype(int)) for other in PAPER_GRID
    ]
    if name.startswith("f1") or name == "of1":  # the others may be best between the positives
        assert metric.sign * value >= max(everywhere) - 1e-9


def test_honest_cuts_do_not_depend_on_the_test_labels():
    validation, (Y, scores) = some_rows(0), some_rows(1)
    flipped = as_labels(1 - Y.to_numpy())
    for protocol, is_same in ((HONEST, True), (PUBLISHED, False)):
        _, thresholds = score_test_rows(protocol, validation, (Y, scores))
        _, of_flipped = score_test_rows(protocol, validation, (flipped, scores))
        assert (thresholds == of_flipped) == is_same


def test_cuts_on_the_test_rows_flatter():
    validation, test = some_rows(0), some_rows(1)
    honest, _ = score_test_rows(HONEST, validation, test)
    flattered, thresholds = score_test_rows(PUBLISHED, validation, test)
    fixed, at_half = score_test_rows(
        EvaluationProtocol("as-published", threshold=0.5), validation, test
    )
    assert set(thresholds.values()) <= set(PAPER_GRID)
    assert set(at_half.values()) == {0.5}
    for name in OF_SETS:
        sign = get_metric(name).sign
        assert sign * flattered[name] >= sign * fixed[name] - 1e-12
    assert honest["map"] == flattered["map"]  # no threshold, no difference


def test_every_metric_has_a_cut_of_its_own():
    _, thresholds = score_test_rows(HONEST, some_rows(0), some_rows(1))
    assert set(thresholds) == set(OF_SETS)
    assert len(set(thresholds.values())) > 1
    assert thresholds["hamming_loss"] == thresholds["hamming_accuracy"]


def test_the_expected_number_of_labels_needs_no_labels():
    (Y, scores), test = some_rows(0), some_rows(1)
    protocol = EvaluationProtocol("honest", threshold="cardinality")
    blank = as_labels(np.zeros(Y.shape))
    assert (
        score_test_rows(protocol, (Y, scores), test)[1]
        == score_test_rows(protocol, (blank, scores), test)[1]
    )


def test_places_beyond_the_labels_are_undefined():
    Y, scores = some_rows(n_labels=3)
    values, _ = score_test_rows(HONEST, (Y, scores), (Y, scores))
    assert values["precision@5"] is None
    assert values["precision@3"] is not None


def test_the_papers_leave_empty_rows_out_of_the_example_f1():
    Y = as_labels([[1, 0], [0, 0]])
    scores = np.array([[0.95, 0.0], [0.0, 0.0]])
    for protocol, f1 in ((PUBLISHED, 1.0), (HONEST, 0.5)):
        values, _ = score_test_rows(protocol, (Y, scores), (Y, scores))
        assert values["f1_example"] == f1


def test_propensities_come_from_the_training_labels():
    Y, scores = some_rows()
    rows = (Y, scores)
    values, _ = score_test_rows(HONEST, rows, rows, ["psp@3"], train_labels=Y)
    assert values["psp@3"] > 0
