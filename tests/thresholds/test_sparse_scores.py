"""Thresholds on the scores of the best labels: as on all scores, where the others are zero."""

import numpy as np
import pytest
import scipy.sparse as sp

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.metrics import get_metric
from labelweave.thresholds import make_threshold
from labelweave.top_labels import top_of_dense


@pytest.fixture(scope="module", params=[False, True])
def scored(request):
    """Labels, some unknown, and the four best of twelve scores, some equal."""
    rng = np.random.default_rng(1)
    scores = rng.random((80, 12)).round(2)
    Y = (scores + rng.normal(size=scores.shape) / 4 > 0.8).astype(np.float32)
    if request.param:
        Y[rng.random(Y.shape) < 0.1] = np.nan
    return as_labels(sp.csr_array(Y)), top_of_dense(scores, 4)


@pytest.mark.parametrize("metric", ["f1_example", "f1_micro"])
def test_the_tuned_threshold_is_the_best_of_all(scored, metric):
    Y, scores = scored
    rule = make_threshold(f"tuned:{metric}").fit(Y, scores)
    score = get_metric(metric)
    values = [score(Y, Y_pred=scores.toarray() >= t) for t in np.unique(scores.data)]
    assert rule.score_ == pytest.approx(max(values))
    assert score(Y, Y_pred=rule.apply(scores)) == pytest.approx(rule.score_)


@pytest.mark.parametrize("rule", ["0.6", "top-2", "cardinality:1.5"])
def test_label_sets_are_those_of_all_scores(scored, rule):
    Y, scores = scored
    value = float(rule) if rule[0] == "0" else rule
    sparse, dense = make_threshold(value), make_threshold(value)
    if sparse.needs_validation:
        sparse.fit(Y, scores)
        dense.fit(Y, scores.toarray())
    chosen = sparse.apply(scores)
    assert sp.issparse(chosen)
    np.testing.assert_array_equal(chosen.toarray(), dense.apply(scores.toarray()))


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("per-label", "needs the scores of all labels"),
        ("tuned:hamming_loss", "tuned for f1_example or f1_micro"),
    ],
)
def test_what_needs_all_scores_is_refused(scored, rule, message):
    with pytest.raises(InputError, match=message):
        make_threshold(rule).fit(*scored)
