"""Ridge regression of logits."""

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, logit
from sklearn.linear_model import Ridge

from labelweave.labels import LabelMatrix
from labelweave.scattered._amalgamation.logit_ridge import LogitRidge


def soft(p):
    return LabelMatrix(p.astype(np.float32), tuple([f"l{j}" for j in range(p.shape[1])]))


@pytest.fixture(scope="module")
def rows():
    random = np.random.default_rng(0)
    X = random.normal(size=(80, 6)) * [1, 10, 0.1, 1, 1, 0] + 3
    p = expit(0.3 * random.normal(size=(80, 4)) + np.clip(X[:, :4] - 3, -2, 2))
    return X, p


def test_dense_rows_agree_with_scikit_learn_on_standardised_features(rows):
    X, p = rows
    model = LogitRidge(alpha=2.0).fit(X, soft(p))
    scale = np.where(X.std(axis=0) > 0, X.std(axis=0), 1)
    reference = Ridge(alpha=2.0).fit(X / scale, logit(p.astype(np.float32).astype(float)))
    expected = expit(reference.predict(X / scale))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=5e-3)


def test_sparse_rows_agree_with_scikit_learn(rows):
    X = sp.random_array((80, 30), density=0.2, random_state=np.random.default_rng(1)).tocsr()
    p = rows[1]
    model = LogitRidge(alpha=0.5).fit(X, soft(p))
    reference = Ridge(alpha=0.5).fit(X.toarray(), logit(p.astype(np.float32).astype(float)))
    expected = expit(reference.predict(X.toarray()))
    np.testing.assert_allclose(model.predict_proba(X), expected, atol=5e-3)


def test_the_probability_of_a_rare_label_orders_the_rows_although_it_is_small(rows):
    X = rows[0][:, :2]
    p = expit(X[:, :1] / 5 - 8)
    assert p.max() < 0.01
    model = LogitRidge(alpha=1e-3).fit(X, soft(p))
    assert np.array_equal(np.argsort(model.predict_proba(X)[:, 0]), np.argsort(p[:, 0]))


def test_unknown_entries_are_as_likely_as_the_label_elsewhere(rows):
    X, p = rows
    unknown, filled = p.copy(), p.copy()
    unknown[:40, 0] = np.nan
    filled[:40, 0] = p[40:, 0].mean()
    q = LogitRidge().fit(X, soft(unknown)).predict_proba(X)
    np.testing.assert_allclose(q, LogitRidge().fit(X, soft(filled)).predict_proba(X), atol=1e-5)
