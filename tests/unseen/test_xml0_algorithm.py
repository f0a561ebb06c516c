"""XML0's algorithm against loops that are written from the paper."""

from itertools import combinations

import numpy as np
import pytest

from labelweave.unseen.xml0_algorithm import (
    conse_similarity,
    label_fusion,
    label_fusion_reference,
    predicted_labels,
    semantic_similarity,
)


def cos_sim(a, b):
    return sum(x * y for x, y in zip(a, b, strict=True)) / (
        sum(x * x for x in a) ** 0.5 * sum(y * y for y in b) ** 0.5
    )


def algorithm_1(O, E_seen, E_unseen, t):  # noqa: E741
    """Lines 1 to 14 for one document: the score of each unseen label."""
    P = [(label, prob) for label, prob in enumerate(O) if prob > t]
    C_emb = []
    for k in range(1, len(P) + 1):
        for c_j in combinations(P, k):
            c_emb = [0.0] * len(E_seen[0])
            for label, prob in c_j:
                c_emb = [c + prob * e for c, e in zip(c_emb, E_seen[label], strict=True)]
            C_emb.append(c_emb)
    return [max(cos_sim(c_emb, label) for c_emb in C_emb) for label in E_unseen]


@pytest.fixture(params=range(5))
def document(request):
    random = np.random.default_rng(request.param)
    E_seen, E_unseen, E_d = (random.normal(size=(n, 6)) for n in (7, 5, 1))
    unit = [E / np.linalg.norm(E, axis=1, keepdims=True) for E in (E_seen, E_unseen, E_d)]
    return random.uniform(size=7), *unit


def test_label_fusion_is_algorithm_1(document):
    O, E_seen, E_unseen, _ = document  # noqa: E741
    (P,) = predicted_labels(O[None], 0.3, 7)
    assert set(P) == {label for label, prob in enumerate(O) if prob > 0.3}
    E_P = E_seen[P]
    fused = label_fusion(O[P], E_P @ E_unseen.T, E_P @ E_P.T)
    expected = algorithm_1(O, E_seen, E_unseen, 0.3)
    np.testing.assert_allclose(fused.scores, expected, atol=1e-12)
    reference = label_fusion_reference(O[P], E_P, E_unseen)
    assert reference.labels.tolist() == sorted(range(5), key=lambda u: -expected[u])  # line 15
    np.testing.assert_allclose(reference.scores, sorted(expected, reverse=True), atol=1e-12)


def test_conse_is_the_combination_of_all_predicted_labels(document):
    O, E_seen, E_unseen, _ = document  # noqa: E741
    combination = (O[:, None] * E_seen).sum(axis=0)
    np.testing.assert_allclose(
        conse_similarity(O, E_seen @ E_unseen.T, E_seen @ E_seen.T),
        [cos_sim(combination, label) for label in E_unseen],
        atol=1e-12,
    )


def test_semantic_similarity_is_the_cosine(document):
    _, _, E_unseen, E_d = document
    expected = [[cos_sim(E_d[0], label) for label in E_unseen]]
    np.testing.assert_allclose(semantic_similarity(E_d, E_unseen), expected, atol=1e-12)


def test_the_cap_keeps_the_likeliest_labels():
    O = np.array([[0.5, 0.9, 0.7, 0.04]])  # noqa: E741
    assert predicted_labels(O, 0.05, 2)[0].tolist() == [1, 2]
    assert predicted_labels(O, 0.05, 9)[0].tolist() == [1, 2, 0]
