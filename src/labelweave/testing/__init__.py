"""The checks that every method passes, for those who write a method.

>>> from labelweave.testing import estimator_checks
>>> from labelweave.dependent.mlknn import MLkNN
>>> checks = dict(estimator_checks(MLkNN(k=3)))
>>> checks["same_seed_same_result"]()

In a test suite, one test per check::

    @pytest.mark.parametrize(("name", "check"), estimator_checks(MyMethod()))
    def test_contract(name, check):
        check()

A class may define small settings for the checks by a class method ``_test_params() -> dict``,
which :func:`test_instance` uses. :func:`check_estimator` runs these checks and scikit-learn's
(:func:`sklearn.utils.estimator_checks.check_estimator`). A check that does not depend on what is
learnt trains for two epochs only.
"""

from labelweave.testing.suite import (
    briefly_trained,
    check_estimator,
    estimator_checks,
    expected_failures,
    test_instance,
)

__all__ = [
    "briefly_trained",
    "check_estimator",
    "estimator_checks",
    "expected_failures",
    "test_instance",
]
