"""The checks that every method passes, for those who write one.

>>> from labelweave.testing import estimator_checks
>>> from labelweave.dependent.mlknn import MLkNN
>>> checks = dict(estimator_checks(MLkNN(k=3)))
>>> checks["same_seed_same_result"]()

In a test suite, one test a check::

    @pytest.mark.parametrize(("name", "check"), estimator_checks(MyMethod()))
    def test_contract(name, check):
        check()

A class may give small settings for it by a class method ``_test_params() -> dict``, which
:func:`test_instance` uses. scikit-learn's own checks
(:func:`sklearn.utils.estimator_checks.check_estimator`) come on top; :func:`check_estimator`
runs both. A check that is about form, and not about what was learnt, trains for two epochs only.
"""

from labelweave.testing.suite import (
    briefly_trained,
    check_estimator,
    estimator_checks,
    test_instance,
)

__all__ = ["briefly_trained", "check_estimator", "estimator_checks", "test_instance"]
