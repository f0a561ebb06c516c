"""Rows that the tests of neural methods share."""

import numpy as np
import pytest
from sklearn.datasets import make_multilabel_classification


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(300, 20, n_classes=5, random_state=0)
    return X.astype(np.float64), Y
