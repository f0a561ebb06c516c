"""Fitted models that all tests of explanations share."""

import pytest
from explained_models import linear_rows, mixed_table, word_texts

import labelweave as lw


@pytest.fixture(scope="session")
def linear():
    X, Y = linear_rows()
    return lw.BinaryRelevance().fit(X[:200], Y[:200]), X[200:], Y[200:]


@pytest.fixture(scope="session", params=["br", "boosted-trees"])
def mixed(request):
    frame, Y = mixed_table()
    options = {"random_state": 0} if request.param == "boosted-trees" else {}
    model = lw.make(request.param, **options).fit(frame[:160], Y[:160])
    return model, frame[160:], Y[160:]


@pytest.fixture(scope="session")
def texts():
    X, Y = word_texts()
    return lw.TextClassifier().fit(X[:50], Y[:50]), X[50:], Y[50:]
