"""ZestXML's steps against slow, obvious forms."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.unseen.zestxml_pairs import (
    bilinear_scores,
    pair_features,
    score_shortlist,
    shortlist,
    sparse_pattern,
)


@pytest.fixture
def parts():
    random = np.random.default_rng(0)
    X = sp.random_array((12, 7), density=0.4, rng=random, format="csr", dtype=np.float32)
    F = sp.random_array((5, 6), density=0.5, rng=random, format="csr", dtype=np.float32)
    Y = sp.csr_array((random.random((12, 5)) < 0.3).astype(np.float32))
    return X, F, Y


def slow_scores(X, F, Y, alpha):
    x, f, y = (part.toarray() > 0 for part in (X, F, Y))
    scores = np.zeros((x.shape[1], f.shape[1]))
    pairs = np.argwhere(y)
    for i in range(x.shape[1]):
        for j in range(f.shape[1]):
            has_x = np.array([x[d, i] for d, _ in pairs])
            has_y = np.array([f[label, j] for _, label in pairs])
            both = (has_x & has_y).sum()
            either = has_x.sum() + has_y.sum() - both
            below = alpha * either + (1 - alpha) * x[:, i].sum() * f[:, j].sum()
            scores[i, j] = both / below if both else 0
    return scores


def test_pattern_keeps_the_largest_of_rows_and_columns(parts):
    slow = slow_scores(*parts, 0.01)
    every = sparse_pattern(*parts, 0.01, 100).toarray()
    np.testing.assert_allclose(every, slow, rtol=1e-5)
    few = sparse_pattern(*parts, 0.01, 2).toarray()
    for i, j in np.argwhere(slow > 0):
        in_row = (slow[i] > slow[i, j]).sum() < 2
        in_column = (slow[:, j] > slow[i, j]).sum() < 2
        if few[i, j]:
            assert in_row or in_column
            assert few[i, j] == pytest.approx(slow[i, j], rel=1e-5)
    assert (few > 0).any(axis=1).sum() == (slow > 0).any(axis=1).sum()


def test_features_of_pairs(parts):
    X, F, Y = parts
    W = sparse_pattern(X, F, Y, 0.01, 2)
    rows, columns = np.array([0, 3, 3, 11]), np.array([1, 0, 4, 2])
    features = pair_features(X, F, W, rows, columns).toarray()
    entries = [(i, j) for i in range(W.shape[0]) for j in W.indices[W.indptr[i] : W.indptr[i + 1]]]
    expected = [
        [X.toarray()[d, i] * F.toarray()[label, j] for i, j in entries]
        for d, label in zip(rows, columns, strict=True)
    ]
    np.testing.assert_allclose(features, expected, rtol=1e-6)
    # The map's own values, as weights of the pairs' features, give its scores.
    scores = bilinear_scores(X, W, F)
    np.testing.assert_allclose(features @ W.data, scores[rows, columns], rtol=1e-4, atol=1e-7)
    np.testing.assert_allclose(scores, (X @ W @ F.T).toarray(), rtol=1e-5)


def test_pairs_of_documents_without_words(parts):
    X, F, Y = parts
    W = sparse_pattern(X, F, Y, 0.01, 2)
    features = pair_features(
        sp.csr_array(X.shape, dtype=np.float32), F, W, np.arange(2), np.arange(2)
    )
    assert features.shape == (2, W.nnz)
    assert features.nnz == 0


def test_shortlist_has_the_best_and_the_positives(parts):
    X, F, Y = parts
    W = sparse_pattern(X, F, Y, 0.01, 3)
    rows, columns = shortlist(X, W, F, Y, 2)
    pairs = set(zip(rows.tolist(), columns.tolist(), strict=True))
    assert set(map(tuple, np.argwhere(Y.toarray() > 0).tolist())) <= pairs
    scores = bilinear_scores(X, W, F)
    for d in range(12):
        mine = sorted((scores[d, j] for i, j in pairs if i == d), reverse=True)[:2]
        np.testing.assert_allclose(mine, np.sort(scores[d])[::-1][:2])


def test_score():
    raw = np.array([2.0, 1.0, 0.0, -1.0])
    expected = [0.9, 0.9, 0.9 * np.exp(-1), 0.9 * np.exp(-4)]
    np.testing.assert_allclose(score_shortlist(raw, np.zeros(4), 0.1), expected)


def test_it_learns_which_words_belong_to_which():
    """A label of other words than its documents is found once the map knows them."""
    texts = ["mare nostrum", "mare magnum", "sol invictus", "sol oriens"] * 10
    labels = [["the sea"], ["deep sea"], ["the sun"], ["old sun"]] * 10
    model = lw.ZestXML(random_state=0).fit(texts, labels, labels=["sea voyage", "sun burn"])
    best = model.rank(["mare novum", "sol novus"], 1, among="unseen")
    assert [row[0][0] for row in best] == ["sea voyage", "sun burn"]


def test_published_settings():
    """alpha = .01, the 40 best per feature, 100 shortlisted labels, C = 1, and no sampling."""
    settings = lw.ZestXML.published().get_params()
    paper = {"alpha": 0.01, "pattern_size": 40, "shortlist_size": 100, "C": 1.0}
    assert {**paper, "max_features": None, "max_pairs": None}.items() <= settings.items()
    texts, labels = ["deep sea", "hot sun"] * 5, [["sea"], ["sun"]] * 5
    model = lw.ZestXML.published().fit(texts, labels)
    assert model.rank(["the sea"], 1)[0][0][0] == "sea"
