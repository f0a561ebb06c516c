"""Label fusion against Algorithm 1 as it is written."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.exceptions import InputError
from labelweave.unseen._fusion import combination_search
from labelweave.unseen._fusion.combination_bounds import cone_bound, flip_search, span_bound
from labelweave.unseen._fusion.combination_search import (
    best_combinations,
    greedy_combinations,
    members,
    top_labels,
)
from labelweave.unseen._fusion.combination_table import MOST_LABELS, CombinationTable
from labelweave.unseen.xml0_algorithm import label_fusion_reference

KINDS = ("random", "close", "duplicates", "opposites", "against", "zero", "flat", "ties")


def make_case(seed, n, n_labels, d, kind):
    """Probabilities, embeddings of predicted labels and of unseen ones, of a nasty kind."""
    random = np.random.default_rng(seed)
    embeddings, unseen = random.normal(size=(n, d)), random.normal(size=(n_labels, d))
    p = random.uniform(0.05, 1, n)
    if kind == "close":  # all labels of one field
        embeddings, unseen = embeddings + 3, unseen + 3
    elif kind == "duplicates" and n > 1:
        embeddings[1], p[1] = embeddings[0], p[0]
        unseen[0] = embeddings[0]
    elif kind == "opposites" and n > 1:  # the two cancel out
        embeddings[1], p[1] = -embeddings[0], p[0]
    elif kind == "against":  # every product is negative
        embeddings, unseen = np.abs(embeddings), -np.abs(unseen)
    elif kind == "zero" and n > 1:
        embeddings[0] = 0
    elif kind == "flat":
        embeddings[:, 2:] = 0
    elif kind == "ties":
        unseen[n_labels // 2 :] = unseen[: n_labels - n_labels // 2]
    lengths = np.linalg.norm(embeddings, axis=1, keepdims=True)
    embeddings = embeddings / np.where(lengths > 0, lengths, 1)
    return p, embeddings, unseen / np.linalg.norm(unseen, axis=1, keepdims=True)


def products(p, embeddings, unseen):
    vectors = p[:, None] * embeddings
    return unseen @ vectors.T, vectors @ vectors.T


cases = st.tuples(
    st.integers(0, 2**32 - 1),
    st.integers(1, 9),
    st.integers(1, 40),
    st.integers(2, 20),
    st.sampled_from(KINDS),
)


def check_is_algorithm_1(ranked, plain, k):
    """The same k best labels with the same scores; within rounding, ties may change places."""
    np.testing.assert_allclose(ranked.scores, plain.scores[:k], atol=1e-7)
    by_label = dict(zip(plain.labels.tolist(), plain.scores, strict=True))
    scores = np.array([by_label[label] for label in ranked.labels.tolist()])
    np.testing.assert_allclose(ranked.scores, scores, atol=1e-7)
    assert len(set(ranked.labels.tolist())) == k
    tied = np.abs(ranked.scores[1:] - ranked.scores[:-1]) == 0
    assert (ranked.labels[1:] > ranked.labels[:-1])[tied].all()


@given(case=cases)
@settings(max_examples=200)
def test_every_score_is_that_of_algorithm_1(case):
    p, embeddings, unseen = make_case(*case)
    plain = label_fusion_reference(p, embeddings, unseen)
    every = best_combinations(*products(p, embeddings, unseen))
    scores = np.empty(len(unseen))
    scores[plain.labels] = plain.scores
    np.testing.assert_allclose(every.scores, scores, atol=1e-7)


@given(case=cases, k=st.integers(1, 12), precision=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=300)
def test_the_best_are_those_of_algorithm_1(case, k, precision):
    p, embeddings, unseen = make_case(*case)
    B, G = products(p, embeddings, unseen)
    plain = label_fusion_reference(p, embeddings, unseen)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(combination_search, "_FEW_SCORES", 0)  # use bounds always
        patch.setattr(combination_search, "_POOL", 2)
        patch.setattr("labelweave.unseen._fusion.combination_table._FEW", 0)  # and halves
        patch.setattr("labelweave.unseen._fusion.combination_table._CHUNK", 64)
        ranked = top_labels(B.astype(precision), G, k, products=lambda rows: B[rows])
    check_is_algorithm_1(ranked, plain, min(k, len(unseen)))


@given(case=cases)
@settings(max_examples=200)
def test_bounds_hold(case):
    p, embeddings, unseen = make_case(*case)
    B, G = products(p, embeddings, unseen)
    scores = best_combinations(B, G).scores
    assert (flip_search(B, G)[0] <= scores + 1e-7).all()
    directed = np.where(scores > 0, scores, -1)  # a score of 0 may be one of no direction
    for bound in (span_bound, cone_bound):
        for form in (B, B.astype(np.float32)):
            assert (bound(form, G) >= directed - 1e-7).all()


@given(case=cases)
@settings(max_examples=100)
def test_the_combination_reaches_the_score(case):
    p, embeddings, unseen = make_case(*case)
    B, G = products(p, embeddings, unseen)
    for ranked in (best_combinations(B, G), greedy_combinations(B, G), top_labels(B, G, 5)):
        for label, score, mask in zip(*ranked, strict=True):
            chosen = members(mask)
            total = (p[chosen, None] * embeddings[chosen]).sum(axis=0)
            if np.linalg.norm(total) > 1e-3:
                cosine = total @ unseen[label] / np.linalg.norm(total)
                assert score == pytest.approx(cosine, abs=1e-7)


@pytest.mark.parametrize("n", [13, 16])
def test_many_predicted_labels(n):
    p, embeddings, unseen = make_case(0, n, 300, 64, "close")
    B, G = products(p, embeddings, unseen)
    subsets = (np.arange(1, 1 << n)[:, None] >> np.arange(n) & 1).astype(float)
    lengths = np.sqrt(np.einsum("si,ij,sj->s", subsets, G, subsets, optimize=True))
    scores = np.array([(subsets @ b / lengths).max() for b in B])
    order = np.lexsort((np.arange(300), -scores))[:10]
    ranked = top_labels(B.astype(np.float32), G, 10, products=lambda rows: B[rows])
    assert ranked.labels.tolist() == order.tolist()
    np.testing.assert_allclose(ranked.scores, scores[order], atol=1e-12)


def test_greedy_is_never_above_and_mostly_equal():
    p, embeddings, unseen = make_case(1, 10, 500, 32, "close")
    B, G = products(p, embeddings, unseen)
    greedy, exact = greedy_combinations(B, G).scores, best_combinations(B, G).scores
    assert (greedy <= exact + 1e-12).all()
    assert (greedy >= exact - 1e-12).mean() > 0.9


def test_without_predicted_labels_every_score_is_zero():
    B, G = np.zeros((4, 0)), np.zeros((0, 0))
    for ranked in (best_combinations(B, G), top_labels(B, G, 4), greedy_combinations(B, G)):
        assert ranked.scores.tolist() == [0, 0, 0, 0]
        assert ranked.masks.tolist() == [0, 0, 0, 0]
    plain = label_fusion_reference(np.zeros(0), np.zeros((0, 3)), np.eye(3))
    assert plain.scores.tolist() == [0, 0, 0]


def test_too_many_predicted_labels_are_refused():
    with pytest.raises(InputError, match="23 predicted labels have 2\\^23 combinations"):
        CombinationTable(np.eye(MOST_LABELS + 1))
