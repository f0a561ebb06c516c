"""Expected calibration error."""

import numpy as np
import pytest

from labelweave.exceptions import InputError
from labelweave.metrics import _inputs, ece, ece_macro, ece_of_labels


def slow(truth, probability, n_bins, weight=None):
    """Bin by bin over one list of known entries."""
    weight = np.ones(len(truth)) if weight is None else weight
    error = 0.0
    for b in range(n_bins):
        low, high = b / n_bins, (b + 1) / n_bins
        inside = (probability > low) & (probability <= high)
        if b == 0:
            inside |= probability == 0
        w = weight[inside]
        if w.sum() > 0:
            gap = np.average(probability[inside], weights=w) - np.average(truth[inside], weights=w)
            error += w.sum() / weight.sum() * abs(gap)
    return error


@pytest.mark.parametrize("n_bins", [1, 4, 15])
@pytest.mark.parametrize("weighted", [False, True])
def test_as_the_slow_way(n_bins, weighted, monkeypatch):
    monkeypatch.setattr(_inputs, "_CHUNK_ENTRIES", 30)
    rng = np.random.default_rng(0)
    Y_true = (rng.random((50, 4)) < 0.4).astype(float)
    Y_true[rng.random(Y_true.shape) < 0.2] = np.nan
    Y_true[:, 3] = np.nan
    Y_score = rng.random(Y_true.shape)
    Y_score[:4, 0] = 0, 1, 0.25, 0.5  # edges of the bins
    Y_true[:4, 0] = 0, 1, 1, 0
    w = rng.random(50) if weighted else np.ones(50)
    known = ~np.isnan(Y_true)
    weights = np.broadcast_to(w[:, None], Y_true.shape)
    pooled = slow(Y_true[known], Y_score[known], n_bins, weights[known])
    assert ece(Y_true, Y_score, n_bins=n_bins, sample_weight=w) == pytest.approx(pooled)
    each = [slow(Y_true[k, j], Y_score[k, j], n_bins, w[k]) for j, k in enumerate(known[:, :3].T)]
    of_labels = ece_of_labels(Y_true, Y_score, n_bins=n_bins, sample_weight=w)
    np.testing.assert_allclose(of_labels, [*each, np.nan])
    mean = ece_macro(Y_true, Y_score, n_bins=n_bins, sample_weight=w)
    assert mean == pytest.approx(np.mean(each))


def test_only_probabilities():
    with pytest.raises(InputError, match="runs from -1 to 2"):
        ece([[1, 0]], [[2.0, -1.0]])
    with pytest.raises(InputError, match="n_bins"):
        ece([[1, 0]], [[1.0, 0.0]], n_bins=0)
