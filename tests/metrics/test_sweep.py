"""Many thresholds at once."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave.metrics as lwm
from labelweave.exceptions import InputError
from labelweave.metrics import _inputs, sweep_counts, sweep_f1

THRESHOLDS = [0.7, 0.1, 0.5, 0.5, 0.0, 1.1]


@pytest.mark.parametrize("labels", ["problem", "partial"])
@pytest.mark.parametrize("average", ["example", "micro", "macro"])
@pytest.mark.parametrize("zero_division", [0.0, 1.0, np.nan])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_as_one_threshold_at_a_time(request, labels, average, zero_division, dtype, monkeypatch):
    monkeypatch.setattr(_inputs, "_CHUNK_ENTRIES", 100)
    Y_true, _, Y_score = request.getfixturevalue(labels)
    Y_score = Y_score.astype(dtype)
    f1 = getattr(lwm, f"f1_{average}")
    expected = [
        f1(Y_true, Y_score >= threshold, zero_division=zero_division) for threshold in THRESHOLDS
    ]
    mine = sweep_f1(Y_true, Y_score, THRESHOLDS, average=average, zero_division=zero_division)
    np.testing.assert_allclose(mine, expected)


def test_f1_of_each_label(partial):
    Y_true, _, Y_score = partial
    mine = sweep_f1(Y_true, Y_score, THRESHOLDS, average="label")
    assert mine.shape == (9, len(THRESHOLDS))
    assert np.isnan(mine[8]).all()  # no known entry
    for j in range(8):
        expected = [
            lwm.f1_macro(Y_true[:, [j]], Y_score[:, [j]] >= threshold) for threshold in THRESHOLDS
        ]
        assert mine[j] == pytest.approx(expected)


def test_sparse_labels(problem):
    Y_true, _, Y_score = problem
    for by in ("label", "row"):
        dense = sweep_counts(Y_true, Y_score, THRESHOLDS, by=by)
        sparse = sweep_counts(sp.csr_array(Y_true), Y_score, THRESHOLDS, by=by)
        assert all((a == b).all() for a, b in zip(dense, sparse, strict=True))


@pytest.mark.parametrize("thresholds", [[], [[0.1]], [np.nan]])
def test_wrong_thresholds(thresholds):
    with pytest.raises(InputError, match="thresholds must be"):
        sweep_f1([[1, 0]], [[0.5, 0.2]], thresholds)


def test_wrong_words():
    with pytest.raises(InputError, match="by must be"):
        sweep_counts([[1]], [[0.5]], [0.5], by="column")
    with pytest.raises(InputError, match="average must be"):
        sweep_f1([[1]], [[0.5]], [0.5], average="samples")
