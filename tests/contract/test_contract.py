"""Every registered method keeps the contract: scikit-learn's rules and our own."""

import pytest
from sklearn.utils.estimator_checks import estimator_checks_generator, parametrize_with_checks

from labelweave.methods import list_methods
from labelweave.testing import (
    briefly_trained,
    estimator_checks,
    expected_failures,
    test_instance,
)

# The checks fit very few rows; a method may warn about that.
pytestmark = pytest.mark.filterwarnings("default::labelweave.exceptions.LabelweaveWarning")

# Methods that learn from teachers are fitted without labels; tests/scattered checks them.
METHODS = {
    method.id: test_instance(method.load())
    for method in list_methods()
    if method.room != "scattered"
}
# These methods differ from the first one only in a network, in a loss or in a rule: the class that
# they share handles inputs, training and predictions, and is checked in full once.
VARIANTS = {
    "mlp": ("asl", "c2ae", "c-gmvae", "ml-gcn", "mpvae", "mulsupcon"),
    "c-tran": ("lamp", "ofcc", "rbcc"),
    "an": ("wan", "an-ls", "epr", "role", "gr", "hill", "splc", "em-apl", "ll-r", "ll-ct", "ll-cp"),
    "cls": ("cls+", "co-teaching", "co-teaching+", "decoupling", "jocor"),
    "em-forest": ("cross-em",),
}
VARIANT_IDS = {id for variants in VARIANTS.values() for id in variants}
# All rules of scikit-learn are checked on one method per implementation of inputs and outputs.
SCIKIT_LEARN_IN_FULL = ("an", "br", "chain", "cls", "extra-trees", "haram", "mlknn", "mlp", "sleec")
# The rules of scikit-learn about constructors, parameters and attributes, which each class may
# break by itself. What the others say about rows, seeds and copies, our own checks say as well.
OF_EVERY_CLASS = {
    "check_dict_unchanged",
    "check_do_not_raise_errors_in_init_or_set_params",
    "check_dont_overwrite_parameters",
    "check_estimator_cloneable",
    "check_estimator_repr",
    "check_estimator_tags_renamed",
    "check_estimators_overwrite_params",
    "check_estimators_unfitted",
    "check_fit2d_1sample",
    "check_get_params_invariance",
    "check_mixin_order",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
    "check_valid_tag_types",
}


@parametrize_with_checks(
    [briefly_trained(METHODS[id]) for id in SCIKIT_LEARN_IN_FULL],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("estimator", "check"),
    [
        pytest.param(estimator, check, id=f"{id}-{check.func.__name__}")
        for id in sorted(METHODS.keys() - set(SCIKIT_LEARN_IN_FULL))
        for estimator, check in estimator_checks_generator(briefly_trained(METHODS[id]))
        if check.func.__name__ in OF_EVERY_CLASS
    ],
)
def test_scikit_learn_rules_of_every_class(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "check",
    [
        pytest.param(check, id=f"{id}-{name}")
        for id, estimator in METHODS.items()
        for name, check in estimator_checks(estimator, variant=id in VARIANT_IDS)
    ],
)
def test_labelweave(check):
    check()
