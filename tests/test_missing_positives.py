"""The estimated share of missing positives."""

import numpy as np
import pytest

from labelweave.missing_positives import missing_share


def scores(share, seed, n_positive=600, n_unannotated=12_000, apart=2.5):
    rng = np.random.default_rng(seed)
    n_missing = int(share * n_unannotated)
    missing = rng.normal(apart, 1, n_missing)
    negative = rng.normal(0, 1, n_unannotated - n_missing)
    return rng.normal(apart, 1, n_positive), np.concatenate([missing, negative])


@pytest.mark.parametrize("share", [0.0, 0.01, 0.05, 0.2, 0.5])
def test_it_is_near_the_truth_where_positives_are_missed_by_chance(share):
    shares = [missing_share(*scores(share, seed)) for seed in range(10)]
    assert np.mean(shares) == pytest.approx(share, abs=0.01 + 0.15 * share)


def test_only_ranks_count():
    positive, unannotated = scores(0.1, 0)
    assert missing_share(np.exp(positive), np.exp(unannotated)) == missing_share(
        positive, unannotated
    )


def test_a_model_that_knows_nothing_bounds_it_by_one():
    rng = np.random.default_rng(0)
    assert 0.7 < missing_share(rng.random(500), rng.random(5000)) <= 1
    assert missing_share(np.ones(500), np.ones(5000)) == 1


@pytest.mark.parametrize(("positive", "unannotated"), [([], [0.1]), ([0.2], []), ([], [])])
def test_without_entries_nothing_is_missing(positive, unannotated):
    assert missing_share(np.array(positive), np.array(unannotated)) == 0


def test_very_few_positives():
    assert 0 <= missing_share(np.array([0.9, 0.8]), np.linspace(0, 1, 50)) <= 1
