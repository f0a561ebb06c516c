"""RAkEL against label powersets fitted group by group."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from labelweave.dependent.powerset import LabelPowerset
from labelweave.dependent.rakel import RAkEL


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    Y = (X @ rng.normal(size=(5, 7)) + rng.normal(size=(200, 7)) > 0.5).astype(float)
    return X, Y, rng.normal(size=(30, 5))


@pytest.mark.parametrize("overlapping", [False, True])
def test_is_the_mean_of_its_powersets(data, overlapping):
    X, Y, Q = data
    model = RAkEL(GaussianNB(), overlapping=overlapping, random_state=0).fit(X, Y)
    known = np.full((len(Q), 7), np.nan)
    known[:, 2] = 1
    total, number = np.zeros((2, len(Q), 7)), np.zeros(7)
    for group in model.groups_:
        one = LabelPowerset(GaussianNB()).fit(X, Y[:, group])
        total[0][:, group] += one.predict_proba(Q)
        total[1][:, group] += one.predict_proba(Q, known=known[:, group])
        number[group] += 1
    np.testing.assert_allclose(model.predict_proba(Q), total[0] / number, atol=1e-6)
    expected = np.where(np.isnan(known), total[1] / number, known)
    np.testing.assert_allclose(model.predict_proba(Q, known=known), expected, atol=1e-6)


@pytest.mark.parametrize("k", [1, 2, 3, 7, 9])
def test_groups_hold_every_label(data, k):
    X, Y, _ = data
    disjoint = RAkEL(GaussianNB(), k, random_state=0).fit(X, Y).groups_
    assert sorted(np.concatenate(disjoint)) == list(range(7))
    overlapping = RAkEL(GaussianNB(), k, True, random_state=0).fit(X, Y).groups_
    assert len(overlapping) == 14
    for group in overlapping:
        assert len(set(group)) == min(k, 7)
    counts = np.bincount(np.concatenate(overlapping), minlength=7)
    assert counts.min() >= 1
    assert counts.max() - counts.min() <= 2
    few = RAkEL(GaussianNB(), k, True, n_groups=1, random_state=0).fit(X, Y).groups_
    assert set(np.concatenate(few)) == set(range(7))


def test_parallel_gives_the_same(data):
    X, Y, Q = data
    one, two = (RAkEL(n_jobs=n, random_state=0).fit(X, Y) for n in (None, 2))
    np.testing.assert_array_equal(one.predict_proba(Q), two.predict_proba(Q))
