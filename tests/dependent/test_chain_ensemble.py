"""The ensemble of chains against its chains fitted one by one."""

import numpy as np
import pytest
from sklearn.naive_bayes import GaussianNB

from labelweave.dependent.chain_ensemble import EnsembleOfChains


@pytest.fixture
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 6))
    Y = (X @ rng.normal(size=(6, 4)) + rng.normal(size=(150, 4)) > 0.5).astype(float)
    return X, Y, rng.normal(size=(40, 6))


def test_is_the_mean_of_its_chains(data):
    X, Y, Q = data
    model = EnsembleOfChains(GaussianNB(), n_chains=4, random_state=0).fit(X, Y)
    parts = [chain.predict_proba(Q) for chain in model.chains_]
    np.testing.assert_allclose(model.predict_proba(Q), np.mean(parts, axis=0))
    assert len({tuple(chain.order_) for chain in model.chains_}) > 1
    known = np.full((len(Q), 4), np.nan)
    known[:, 1] = 1
    parts = [chain.predict_proba(Q, known=known) for chain in model.chains_]
    np.testing.assert_allclose(model.predict_proba(Q, known=known), np.mean(parts, axis=0))


def test_parallel_gives_the_same(data):
    X, Y, Q = data
    one, two = (
        EnsembleOfChains(n_chains=3, n_jobs=n, random_state=0).fit(X, Y).predict_proba(Q)
        for n in (None, 2)
    )
    np.testing.assert_array_equal(one, two)


def test_a_label_known_in_one_row_is_in_every_chain(data):
    X, Y, Q = data
    Y[1:, 2] = np.nan
    probabilities = EnsembleOfChains(max_samples=0.2, random_state=0).fit(X, Y).predict_proba(Q)
    assert np.isfinite(probabilities).all()
