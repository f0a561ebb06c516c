"""Promises of recall and precision: kept as often as stated, and refused where nothing is shown."""

import numpy as np
import pytest
from scipy.stats import binom

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.model_selection import cross_val_predict_proba
from labelweave.thresholds import PromisedThreshold, Threshold, make_threshold


def kept(rule, Y, scores):
    """The measure on other rows: means over rows; for a promise per label, one per label."""
    predicted = rule.apply(scores)
    if rule.per_label:
        return [of_label(rule, Y, predicted, j) for j in range(Y.shape[1])]
    right, relevant = (Y * predicted).sum(1), (Y if rule.measure == "recall" else predicted).sum(1)
    some = relevant > 0
    share = np.mean(right[some] / relevant[some])
    return 1 - share if rule.measure == "fdr" else share


def of_label(rule, Y, predicted, j):
    rows = (Y if rule.measure == "recall" else predicted)[:, j] == 1
    right = (predicted if rule.measure == "recall" else Y)[rows, j].mean() if rows.any() else 1.0
    return 1 - right if rule.measure == "fdr" else right


def is_broken(rule, value):
    return value > rule.bound if rule.measure == "fdr" else value < rule.bound


def drawn(n, random):
    """Rows with five labels, and probabilities that are calibrated, so that all rows are alike."""
    logits = random.normal([-1.5, -0.5, 0, -2, 0.5], 2, size=(n, 5))
    probabilities = 1 / (1 + np.exp(-logits))
    return (random.rand(n, 5) < probabilities).astype(float), probabilities


PROMISES = ["recall>=0.9", "precision>=0.55", "fdr<=0.45"]


@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize("promise", PROMISES)
def test_no_more_promises_are_broken_than_stated(promise, unknown):
    """200 draws of 400 validation rows, judged on 20,000 others."""
    random = np.random.RandomState(0)
    Y_new, scores_new = drawn(20_000, random)
    broken, thresholds = 0, set()
    for _ in range(200):
        Y, scores = drawn(400, random)
        Y[random.rand(*Y.shape) < unknown] = np.nan
        rule = make_threshold(promise).fit(Y, scores)
        broken += is_broken(rule, kept(rule, Y_new, scores_new))
        thresholds.add(round(rule.value_, 3))
    assert broken <= 0.1 * 200
    assert len(thresholds) > 10  # they follow the rows


@pytest.mark.parametrize("promise", ["recall>=0.8:per-label", "precision>=0.5:per-label"])
def test_no_more_promises_per_label_are_broken_than_stated(promise):
    random = np.random.RandomState(1)
    Y_new, scores_new = drawn(20_000, random)
    broken = []
    for _ in range(200):
        rule = make_threshold(promise).fit(*drawn(1000, random))
        broken.append([is_broken(rule, value) for value in kept(rule, Y_new, scores_new)])
    assert np.mean(broken, axis=0).max() <= 0.13  # 0.1, and the error of 200 draws


@pytest.mark.parametrize("unknown", [0.0, 0.3])
@pytest.mark.parametrize("name", ["emotions", "scene", "yeast"])
def test_promises_are_kept_on_real_rows(name, unknown):
    try:
        data = lw.load_dataset(name, download=False)
    except InputError as error:
        pytest.skip(str(error))
    scores = cross_val_predict_proba(lw.ExtraTrees(n_estimators=30, random_state=0), data.X, data.Y)
    Y = data.Y.to_numpy().astype(float)
    random = np.random.RandomState(0)
    for promise in PROMISES:
        broken = refused = 0
        for _ in range(200):
            order = random.permutation(len(Y))
            validation, new = order[: len(Y) // 2], order[len(Y) // 2 :]
            seen = Y[validation].copy()
            seen[random.rand(*seen.shape) < unknown] = np.nan
            try:
                rule = make_threshold(promise).fit(seen, scores[validation])
            except InputError:
                refused += 1
                continue
            broken += is_broken(rule, kept(rule, Y[new], scores[new]))
        assert broken <= 0.1 * 200, promise
        assert refused < 0.1 * 200, promise


def test_a_promise_of_recall_for_one_label_is_the_binomial_bound():
    random = np.random.RandomState(2)
    Y, scores = drawn(300, random)
    rule = PromisedThreshold("recall", 0.8, confidence=0.95, per_label=True).fit(Y, scores)
    for j in range(5):
        positive = scores[Y[:, j] == 1, j]
        n = len(positive)
        missed = max(m for m in range(n) if binom.cdf(m, n, 0.2) <= 0.05)
        assert np.sum(positive < rule.values_[j]) == missed
        assert rule.n_rows_[j] == n


def test_the_threshold_is_no_stricter_than_it_must_be():
    """Rows of which every prediction from a threshold on is right give precision there."""
    scores = np.linspace(0, 1, 1000)[:, None]
    Y = (scores > 0.5).astype(float)
    lowest = PromisedThreshold("precision", 0.9).fit(Y, scores).value_
    assert 0.42 < lowest < 0.5
    assert 0.5 < PromisedThreshold("recall", 0.9).fit(Y, scores).value_ < 0.56


@pytest.mark.parametrize(
    ("promise", "n", "message"),
    [
        ("recall>=0.9", 20, r"at least 22 validation rows that have a label, and there are \d+"),
        ("recall>=0.99:0.99", 300, "at least 459 validation rows"),
        ("precision>=0.99", 400, "no threshold reaches it on the validation rows"),
        ("recall>=0.9:per-label", 60, r"cannot be promised for 'l.*at least 22 validation rows"),
    ],
)
def test_a_promise_that_rows_do_not_support_is_refused(promise, n, message):
    Y, scores = drawn(n, np.random.RandomState(3))
    labels = lw.as_labels(Y, names=[f"l{j}" for j in range(5)])
    with pytest.raises(InputError, match=message):
        make_threshold(promise).fit(labels, scores)


def test_precision_needs_checked_negatives():
    Y, scores = drawn(200, np.random.RandomState(4))
    with pytest.raises(InputError, match="no entry of the validation rows is known to be negative"):
        make_threshold("precision>=0.8").fit(np.where(Y == 1, 1, np.nan), scores)
    assert make_threshold("recall>=0.8").fit(np.where(Y == 1, 1, np.nan), scores).value_ > 0


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("recall>=0.9", PromisedThreshold("recall", 0.9)),
        ("fdr<=.1:per-label", PromisedThreshold("fdr", 0.1, per_label=True)),
        ("precision >= 0.8:0.95:per-label", PromisedThreshold("precision", 0.8, 0.95, True)),
    ],
)
def test_promises_are_written_as_texts(text, expected):
    assert make_threshold(text).get_params() == expected.get_params()


@pytest.mark.parametrize("text", ["recall<=0.9", "recall>=2", "f1>=0.5", "fdr<=0.1:0.9:0.9"])
def test_other_texts_are_no_promise(text):
    with pytest.raises(InputError, match="there is no threshold"):
        make_threshold(text)


def test_a_promise_is_stored():
    Y, scores = drawn(300, np.random.RandomState(5))
    for promise in ("recall>=0.9", "recall>=0.8:per-label"):
        rule = make_threshold(promise).fit(Y, scores)
        loaded = Threshold.from_dict(rule.to_dict())
        np.testing.assert_array_equal(loaded.apply(scores), rule.apply(scores))
        assert loaded.describe() == rule.describe()


def test_what_was_kept_is_measured_on_other_rows():
    random = np.random.RandomState(6)
    Y, scores = drawn(500, random)
    Y_new, scores_new = drawn(300, random)
    for promise in ("recall>=0.8", "precision>=0.6", "fdr<=0.4"):
        rule = make_threshold(promise).fit(Y, scores)
        assert rule.kept(Y_new, scores_new) == pytest.approx(kept(rule, Y_new, scores_new))
    rule = make_threshold("recall>=0.8:per-label").fit(Y, scores)
    np.testing.assert_allclose(rule.kept(Y_new, scores_new), kept(rule, Y_new, scores_new))
