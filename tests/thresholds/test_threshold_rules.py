"""Threshold rules against exhaustive search, on unknowns, sparse labels and rare labels."""

import itertools
import json

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import NotFittedError

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import f1_macro, get_metric
from labelweave.thresholds import (
    PAPER_GRID,
    CardinalityThreshold,
    FixedThreshold,
    PerLabelThreshold,
    Threshold,
    TopK,
    TunedThreshold,
    make_threshold,
)


def noisy_problem(rng, n_rows=120, n_labels=6, density=0.3):
    Y = (rng.random((n_rows, n_labels)) < density).astype(float)
    scores = 1 / (1 + np.exp(-(2 * Y - 1 + rng.normal(size=Y.shape))))
    return Y, scores


@pytest.fixture
def problem():
    return noisy_problem(np.random.default_rng(0))


@pytest.mark.parametrize("metric", ["f1_example", "f1_micro", "f1_macro", "jaccard_macro"])
@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_tuned_threshold_is_the_best_of_all(problem, metric, unknown):
    Y, scores = problem
    Y[np.random.default_rng(1).random(Y.shape) < unknown] = np.nan
    rule = TunedThreshold(metric).fit(Y, scores)
    value = get_metric(metric)
    everywhere = [value(Y, Y_pred=scores >= threshold) for threshold in np.unique(scores)]
    assert rule.score_ == pytest.approx(max(everywhere))
    assert value(Y, Y_pred=rule.apply(scores)) == pytest.approx(rule.score_)


def test_a_loss_is_minimised(problem):
    Y, scores = problem
    rule = TunedThreshold("hamming_loss").fit(Y, scores)
    everywhere = [np.mean((scores >= threshold) != Y) for threshold in np.unique(scores)]
    assert rule.score_ == pytest.approx(min(everywhere))


@pytest.mark.parametrize("rule", [TunedThreshold("f1_micro"), PerLabelThreshold()])
def test_unknown_entries_take_no_part(problem, rule):
    Y, scores = problem
    hidden = np.random.default_rng(1).random(Y.shape) < 0.3
    with_unknown = np.where(hidden, np.nan, Y)
    first = rule.fit(with_unknown, scores).to_dict()
    scores = np.where(hidden, 0.999, scores)  # a score that nobody can judge must not matter
    assert rule.fit(with_unknown, scores).to_dict() == first


@pytest.mark.parametrize("spec", ["tuned", "per-label", "cardinality:labels"])
def test_sparse_labels_give_the_same(problem, spec):
    Y, scores = problem
    dense = make_threshold(spec).fit(Y, scores)
    assert make_threshold(spec).fit(sp.csr_array(Y), scores).to_dict() == dense.to_dict()
    few = as_labels(sp.csr_array(np.where(Y == 1, 1, 0)), absent="unknown")
    make_threshold(spec).fit(few, scores)


def test_many_distinct_scores_cost_little_quality():
    Y, scores = noisy_problem(np.random.default_rng(2), 4000, 10)
    rule = TunedThreshold("f1_micro").fit(Y, scores)
    everywhere = max(
        get_metric("f1_micro")(Y, Y_pred=scores >= threshold)
        for threshold in np.linspace(0.2, 0.8, 601)
    )
    assert rule.score_ > everywhere - 2e-4


def test_the_grid_of_the_papers(problem):
    rule = make_threshold("tuned:f1_micro:grid").fit(*problem)
    assert rule.value_ in PAPER_GRID
    assert min(PAPER_GRID) == 0.1
    assert max(PAPER_GRID) == 0.9


def test_float32_scores_reach_a_threshold_that_equals_them():
    scores = np.array([[0.1, 0.7]], dtype=np.float32)
    np.testing.assert_array_equal(FixedThreshold(0.7).apply(scores), [[0, 1]])


# -- one threshold per label -------------------------------------------------------------


def test_per_label_without_strength_is_the_best_of_each_label(problem):
    Y, scores = problem
    rule = PerLabelThreshold(strength=0).fit(Y, scores)
    chosen = rule.apply(scores)
    for j in range(Y.shape[1]):
        best = max(_f1(Y[:, j], scores[:, j] >= threshold) for threshold in np.unique(scores[:, j]))
        assert _f1(Y[:, j], chosen[:, j]) == pytest.approx(best)


def test_per_label_equals_the_formula(problem):
    Y, scores = problem
    rule = PerLabelThreshold(strength=7.0, grid=PAPER_GRID).fit(Y, scores)
    common = max(PAPER_GRID, key=lambda threshold: f1_macro(Y, scores >= threshold))
    assert rule.common_ == common
    for j, n in enumerate(Y.sum(axis=0)):
        best = max(PAPER_GRID, key=lambda threshold, j=j: _f1(Y[:, j], scores[:, j] >= threshold))
        odds = (best / (1 - best)) ** (n / (n + 7)) * (common / (1 - common)) ** (7 / (n + 7))
        assert rule.values_[j] == pytest.approx(odds / (1 + odds))


def test_shrunk_thresholds_beat_free_ones_on_rare_labels_of_other_rows():
    gains = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        density = np.r_[np.full(40, 0.01), np.full(10, 0.3)]
        shift = rng.normal(scale=0.3, size=50)  # each label has its own best threshold

        def rows(n, rng=rng, density=density, shift=shift):
            Y = (rng.random((n, 50)) < density).astype(float)
            logits = 3 * Y - 2 + shift + np.log(density) + rng.normal(size=Y.shape)
            return Y, 1 / (1 + np.exp(-logits))

        validation, other = rows(300), rows(5000)
        free, held = (
            f1_macro(other[0][:, :40], rule.fit(*validation).apply(other[1])[:, :40])
            for rule in (PerLabelThreshold(strength=0), PerLabelThreshold())
        )
        gains.append(held - free)
    assert np.mean(gains) > 0.02
    assert min(gains) > 0


def test_a_label_without_positives_gets_the_common_threshold(problem):
    Y, scores = problem
    Y[:, 2] = 0
    rule = PerLabelThreshold().fit(Y, scores)
    others = [0, 1, 3, 4, 5]
    tuned = TunedThreshold("f1_macro").fit(Y[:, others], scores[:, others])
    assert rule.values_[2] == rule.common_
    assert rule.common_ == pytest.approx(tuned.value_, abs=0.01)


@pytest.mark.parametrize("spec", ["tuned", "per-label", "cardinality"])
def test_no_positive_at_all(problem, spec):
    Y, scores = problem
    rule = make_threshold(spec).fit(np.zeros_like(Y), scores)
    assert rule.apply(scores).shape == Y.shape


def test_per_label_refuses_another_number_of_labels(problem):
    rule = PerLabelThreshold().fit(*problem)
    with pytest.raises(InputError, match="thresholds for 6 labels"):
        rule.apply(np.ones((3, 5)))


# -- top k and cardinality -------------------------------------------------------------


def test_top_k():
    scores = [[0.1, 0.5, 0.5, 0.2], [0.9, 0.1, 0.8, 0.7]]
    np.testing.assert_array_equal(TopK(2).apply(scores), [[0, 1, 1, 0], [1, 0, 1, 0]])
    assert TopK(9).apply(scores).sum() == 8


@pytest.mark.parametrize("cardinality", [0, 0.5, 1.7, 6])
def test_cardinality_is_met(problem, cardinality):
    Y, scores = problem
    rule = CardinalityThreshold(cardinality).fit(Y, scores)
    assert rule.apply(scores).sum() == round(cardinality * len(Y))


def test_cardinality_of_the_model_looks_at_no_label(problem):
    Y, scores = problem
    first = CardinalityThreshold().fit(Y, scores)
    assert first.expected_ == pytest.approx(scores.sum() / len(Y))
    assert CardinalityThreshold().fit(np.zeros_like(Y), scores).value_ == first.value_


def test_cardinality_of_the_labels_survives_hidden_entries(problem):
    Y, scores = problem
    hidden = np.where(np.random.default_rng(3).random(Y.shape) < 0.5, np.nan, Y)
    rule = CardinalityThreshold("labels").fit(hidden, scores)
    assert rule.expected_ == pytest.approx(Y.sum() / len(Y), rel=0.15)


@pytest.mark.parametrize("rule", [CardinalityThreshold(), PerLabelThreshold()])
def test_some_rules_want_probabilities(problem, rule):
    Y, scores = problem
    with pytest.raises(InputError, match="probabilities"):
        rule.fit(Y, scores * 5)


# -- specs, JSON and errors ------------------------------------------------------------

SPECS = {
    0.3: FixedThreshold(0.3),
    1: FixedThreshold(1.0),
    "0.25": FixedThreshold(0.25),
    "tuned": TunedThreshold(),
    "tuned:f1_macro": TunedThreshold("f1_macro"),
    "tuned:f1_macro:grid": TunedThreshold("f1_macro", PAPER_GRID),
    "per-label": PerLabelThreshold(),
    "top-12": TopK(12),
    "cardinality": CardinalityThreshold(),
    "cardinality:labels": CardinalityThreshold("labels"),
    "cardinality:2.5": CardinalityThreshold(2.5),
}


@pytest.mark.parametrize("spec", SPECS)
def test_specs(problem, spec):
    rule = make_threshold(spec)
    assert rule.get_params() == SPECS[spec].get_params()
    assert type(rule) is type(SPECS[spec])
    rule.fit(*problem)
    stored = json.loads(json.dumps(rule.to_dict()))
    again = Threshold.from_dict(stored)
    assert again.to_dict() == stored
    np.testing.assert_array_equal(again.apply(problem[1]), rule.apply(problem[1]))


@pytest.mark.parametrize(
    "spec",
    [
        *("", "tune", "top-0", "top-x", "1.5", "nan", -0.1, 2, True, None, "per-label:3"),
        *("tuned:f1_micro:0.5", "cardinality:-1", "cardinality:many", "cardinality:inf"),
    ],
)
def test_a_wrong_spec_lists_the_right_ones(spec):
    with pytest.raises(InputError, match="per-label"):
        make_threshold(spec)


def test_metrics_that_no_threshold_changes_are_refused():
    with pytest.raises(InputError, match="map is computed from scores"):
        make_threshold("tuned:map")
    with pytest.raises(InputError, match="there is no metric 'f1_exmaple'"):
        make_threshold("tuned:f1_exmaple")


def test_a_rule_is_never_shared(problem):
    rule = TunedThreshold().fit(*problem)
    fresh = make_threshold(rule)
    assert fresh is not rule
    assert not hasattr(fresh, "value_")
    with pytest.raises(NotFittedError):
        fresh.apply(problem[1])


def test_bad_input_is_named(problem):
    Y, scores = problem
    with pytest.raises(InputError, match="shape"):
        TunedThreshold().fit(Y, scores[:, :3])
    with pytest.raises(InputError, match="grid"):
        TunedThreshold(grid=[]).fit(Y, scores)
    with pytest.raises(InputError, match="kind 'magic'"):
        Threshold.from_dict({"kind": "magic"})


def _f1(y, chosen):
    total = y.sum() + chosen.sum()
    return 2 * (y * chosen).sum() / total if total else 0.0


def test_largest_drop_row_by_row():
    scores = np.random.default_rng(0).integers(0, 9, size=(200, 7)) / 8  # exact differences
    label_sets = make_threshold("largest-drop").apply(scores)
    for row, chosen in zip(scores, label_sets, strict=True):
        ranked = sorted(row, reverse=True)
        drops = [a - b for a, b in itertools.pairwise(ranked)]
        threshold = ranked[int(np.argmax(drops))] if max(drops) > 0 else np.inf
        np.testing.assert_array_equal(chosen, row >= threshold)


def test_the_median_over_samples_of_the_rows():
    """On few rows it varies less from one set of rows to another than the best threshold."""
    rng = np.random.default_rng(0)
    best, median = [], []
    for _ in range(20):
        scores = rng.random((60, 4))
        Y = (rng.random((60, 4)) < scores).astype(float)
        best.append(TunedThreshold().fit(Y, scores).value_)
        steady = TunedThreshold(n_resamples=30).fit(Y, scores)
        median.append(steady.value_)
        chosen = get_metric("f1_example")(Y, Y_pred=steady.apply(scores))
        assert steady.score_ == pytest.approx(chosen)
    assert np.std(median) < 0.9 * np.std(best)
