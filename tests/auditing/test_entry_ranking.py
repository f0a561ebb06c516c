"""The ranking of entries: its equations, and that it finds what was hidden."""

import math

import numpy as np
import pytest
from audit_data import make_hidden

from labelweave.auditing import entry_ranking
from labelweave.auditing.entry_ranking import rank_entries
from labelweave.auditing.feature_estimates import feature_estimates
from labelweave.labels import as_labels
from labelweave.methods import make
from labelweave.model_selection import cross_val_predict_proba
from labelweave.shallow.label_regression import label_regression
from labelweave.unannotated import as_observed


@pytest.fixture(scope="module")
def scored():
    data, hidden = make_hidden()
    scores = cross_val_predict_proba(make("br"), data.X, data.Y, cv=3)
    return data, hidden, scores


@pytest.mark.parametrize("entry", [(3, 0), (10, 5)])
def test_no_feature_depends_on_the_entry_itself(scored, entry):
    data, _, scores = scored
    positive = data.Y.to_numpy() == 1
    logits = np.log(scores / (1 - scores))
    fold = np.arange(len(positive)) % 3
    number = np.array([entry[0] * 6 + entry[1]])
    seen = []
    for state in (True, False):
        labels = positive.copy()
        labels[entry] = state
        shares = [label_regression(labels, logits, fold), *feature_estimates(data.X, labels, fold)]
        seen.append(entry_ranking._entry_features(labels, logits, shares, fold, number)[0])
    assert len(seen[0]) == 10
    per_label = [3, 5]  # the label's frequency, the same for all of its entries
    np.testing.assert_allclose(*(np.delete(one, per_label) for one in seen), rtol=1e-5, atol=1e-6)


def test_estimates_enter_as_logarithms(scored):
    data, _, scores = scored
    positive, logits = data.Y.to_numpy() == 1, np.log(scores / (1 - scores))
    share = np.random.default_rng(0).uniform(-0.2, 1.2, positive.shape)
    entries = np.array([5, 77, 1000])
    result = entry_ranking._entry_features(
        positive, logits, [share], np.arange(len(positive)) % 3, entries
    )
    expected = [math.log(min(max(share.flat[entry], 0), 1) + 0.003) for entry in entries]
    np.testing.assert_allclose(result[:, -1], expected, rtol=1e-5)


def test_features_help_where_the_scores_are_poor():
    """The scores are noise: all information on the rows is in X."""
    data, hidden = make_hidden(1000)
    rng = np.random.default_rng(0)
    scores = rng.uniform(0.01, 0.99, data.Y.shape)
    truth = hidden.hidden.toarray()
    n = int(truth.sum()) // 4
    precision = []
    for X in (None, data.X):
        ranked = rank_entries(as_observed(data.Y), scores, X=X, random_state=0)
        unannotated = ~np.isnan(ranked.missing)
        order = np.argsort(-ranked.annotated[unannotated], kind="stable")[:n]
        hits = truth[ranked.rows[unannotated][order], ranked.columns[unannotated][order]]
        precision.append(hits.mean())
    assert precision[1] > precision[0] + 0.05


def test_highest_conditional_frequency_against_a_loop():
    rng = np.random.default_rng(0)
    known, conditional = (rng.random((30, 5)) < 0.3).astype(np.float32), rng.random((5, 5))
    expected = [conditional[row > 0].max(axis=0) if row.any() else np.zeros(5) for row in known]
    np.testing.assert_allclose(
        entry_ranking._highest_conditional(known, conditional), expected, rtol=1e-6
    )


def test_finds_more_than_the_scores_alone():
    """With thousands of rows; with a few hundred the two are about equally good."""
    data, hidden = make_hidden(2000)
    scores = cross_val_predict_proba(make("br"), data.X, data.Y, cv=3)
    ranked = rank_entries(as_observed(data.Y), scores, random_state=0)
    truth = hidden.hidden.toarray()
    n = int(truth.sum()) // 4
    unannotated = ~np.isnan(ranked.missing)
    order = np.argsort(-ranked.annotated[unannotated], kind="stable")[:n]
    ours = truth[ranked.rows[unannotated][order], ranked.columns[unannotated][order]].mean()
    alone = np.where(data.Y.to_numpy() == 0, scores, -1).ravel()
    plain = truth.ravel()[np.argsort(-alone)[:n]].mean()
    assert ours > plain + 0.03
    assert 0.4 < ranked.annotated_share < 0.85  # 0.6 are annotated


def test_the_same_seed_gives_the_same_ranking(scored):
    data, _, scores = scored
    one, two = (rank_entries(as_observed(data.Y), scores, random_state=3) for _ in range(2))
    np.testing.assert_array_equal(one.missing, two.missing)


def test_known_negatives_and_ignored_entries_are_never_listed(scored):
    data, _, scores = scored
    Y = data.Y.to_numpy().copy()
    Y[:50][Y[:50] == 0] = np.nan
    zeros = rank_entries(as_observed(as_labels(Y), "zeros"), scores)
    listed = ~np.isnan(zeros.missing)
    assert not np.isnan(Y[zeros.rows, zeros.columns]).any()
    assert (zeros.rows[listed] >= 50).all()
    unknown = rank_entries(as_observed(as_labels(Y), "unknown"), scores)
    listed = ~np.isnan(unknown.missing)
    assert listed.any()
    assert np.isnan(Y[unknown.rows[listed], unknown.columns[listed]]).all()


def test_one_positive_in_few_rows_is_enough_to_rank():
    Y = np.zeros((4, 2), dtype=np.float32)
    Y[0, 0] = 1
    ranked = rank_entries(as_observed(as_labels(Y)), np.full((4, 2), 0.3))
    assert np.isfinite(ranked.missing).sum() == 7
