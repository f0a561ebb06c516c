"""Upper and lower bounds of the score of label fusion, without trying all combinations."""

from __future__ import annotations

import numpy as np

from labelweave.unseen._fusion.combination_table import CANCELLED

_WORST_CONDITION = 1e8
_ROUNDING = 1e-6  # of products in single precision, relative to the lengths of the vectors
_SWEEPS = 6


def span_bound(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Upper bounds by the span of the vectors: sqrt(b^T G^-1 b), the cosine with it.

    Where the vectors are (nearly) dependent the bound is 1, which holds for unit labels.
    """
    values, vectors = np.linalg.eigh(np.asarray(G, dtype=np.float64))
    if values[0] <= values[-1] / _WORST_CONDITION:
        return np.full(len(B), 1 + _ROUNDING)
    whitened = B @ (vectors / np.sqrt(values)).astype(B.dtype)
    slack = _ROUNDING * np.sqrt(len(G) * np.trace(G) / values[0])
    return np.sqrt(np.einsum("ui,ui->u", whitened, whitened)).astype(np.float64) + slack


def cone_bound(B: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Upper bounds by the cone of the vectors.

    For any w >= 0 let c = G w / sqrt(w^T G w). As c(S) is at most the length of the combination
    S, b_i <= t c_i for all i, with t >= 0, shows that the score is at most t. The best w solves
    a non-negative least-squares problem; any other w has a larger t, which is still a bound.
    """
    G = np.asarray(G, dtype=np.float64)
    lengths = np.sqrt(np.diagonal(G).clip(0))
    b = np.ascontiguousarray(B.T, dtype=np.float64)  # one row per vector: updates are contiguous
    w = _non_negative_weights(b, G)
    gradient = G @ w
    squares = (w * gradient).sum(axis=0)
    is_direction = squares > CANCELLED * (lengths @ w) ** 2
    c = gradient / np.sqrt(np.where(is_direction, squares, 1))
    b += _ROUNDING * lengths[:, None]
    ahead = c > _ROUNDING * lengths[:, None]
    t = np.where(ahead, b / np.where(ahead, c, 1), 0).max(axis=0)
    holds = is_direction & (ahead | (b <= t * c)).all(axis=0)
    return np.where(holds, t + _ROUNDING, np.inf)


def _non_negative_weights(b: np.ndarray, G: np.ndarray) -> np.ndarray:
    """Coordinate ascent on b w - w^T G w / 2 over w >= 0, for all labels (columns of b) at once."""
    w = np.zeros_like(b)
    residual = b.copy()  # b - G w
    for _ in range(_SWEEPS):
        for i in range(len(G)):
            if G[i, i] <= 0:
                continue
            moved = np.maximum(w[i] + residual[i] / G[i, i], 0)
            residual -= G[i][:, None] * (moved - w[i])
            w[i] = moved
    return w


def flip_search(
    B: np.ndarray, G: np.ndarray, *, n_starts: int = 3
) -> tuple[np.ndarray, np.ndarray]:
    """Lower bounds by hill climbing: the best of several starts, changing one label per step."""
    G = np.asarray(G, dtype=np.float64)
    n_labels, n = B.shape
    lengths = np.sqrt(np.diagonal(G).clip(0))
    single = np.zeros((n_labels, n), dtype=bool)
    alone = B / np.where(lengths > 0, lengths, np.inf)
    single[np.arange(n_labels), alone.argmax(axis=1)] = True
    starts = (single, (B > 0) | single, np.ones_like(single))[:n_starts]
    scores, masks = np.full(n_labels, -np.inf), np.zeros(n_labels, dtype=np.int64)
    for start in starts:
        reached, chosen = _climb(B, G, lengths, start.astype(np.float64))
        better = reached > scores
        scores[better] = reached[better]
        masks[better] = chosen[better] @ (1 << np.arange(n, dtype=np.int64))
    return scores, masks


def _climb(
    B: np.ndarray, G: np.ndarray, lengths: np.ndarray, chosen: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    rows = np.arange(len(B))
    score = _scores((B * chosen).sum(axis=1), ((chosen @ G) * chosen).sum(axis=1), chosen @ lengths)
    for _ in range(4 * len(G)):
        sign = 1 - 2 * chosen
        products = chosen @ G
        squares = (products * chosen).sum(axis=1)[:, None] + 2 * sign * products + np.diagonal(G)
        numerators = (B * chosen).sum(axis=1)[:, None] + sign * B
        flipped = _scores(numerators, squares, (chosen @ lengths)[:, None] + sign * lengths)
        flipped[chosen.sum(axis=1)[:, None] + sign < 0.5] = -np.inf  # no label is left
        best = flipped.argmax(axis=1)
        better = flipped[rows, best] > score + 1e-12
        if not better.any():
            break
        score[better] = flipped[rows, best][better]
        chosen[rows[better], best[better]] = 1 - chosen[rows[better], best[better]]
    return score, chosen.astype(np.int64)


def _scores(numerators: np.ndarray, squares: np.ndarray, totals: np.ndarray) -> np.ndarray:
    void = squares <= CANCELLED * totals**2
    return np.where(void, 0, numerators / np.sqrt(np.where(void, 1, squares)))
