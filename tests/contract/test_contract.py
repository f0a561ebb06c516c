"""Every registered method keeps the contract: scikit-learn's rules and our own."""

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from labelweave.methods import list_methods
from labelweave.testing import briefly_trained, estimator_checks, test_instance

# Sets of a few rows are what the checks are made of; a method may well say that it minds.
pytestmark = pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")

# Methods that learn from teachers are fitted without labels; tests/scattered keeps them in order.
METHODS = {
    method.id: test_instance(method.load())
    for method in list_methods()
    if method.room != "scattered"
}


@parametrize_with_checks([briefly_trained(estimator) for estimator in METHODS.values()])
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{id}-{name}")
        for id, estimator in METHODS.items()
        for name, check in estimator_checks(estimator)
    ],
)
def test_labelweave(check):
    check()
