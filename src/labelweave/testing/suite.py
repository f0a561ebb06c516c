"""Collecting the checks and running them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from sklearn.base import clone

from labelweave.capabilities import capabilities
from labelweave.testing import (
    capability_checks,
    input_checks,
    label_checks,
    learning_checks,
    lifecycle_checks,
    seed_checks,
    table_checks,
    text_and_image_checks,
    validation_checks,
)
from labelweave.testing.check_tools import Check

__all__ = [
    "briefly_trained",
    "check_estimator",
    "estimator_checks",
    "expected_failures",
    "test_instance",
]

_EPOCHS = ("epochs", "pretrain_epochs")


def test_instance(cls: type) -> Any:
    """Return an estimator with the small settings that its class names in `_test_params`."""
    return cls(**cls._test_params()) if hasattr(cls, "_test_params") else cls()


test_instance.__test__ = False  # type: ignore[attr-defined]  # pytest would collect it


def briefly_trained(estimator: Any) -> Any:
    """Return a clone that trains for two epochs, where there are epochs.

    This is enough for checks that do not depend on what is learnt.
    """
    brief = clone(estimator)
    epochs = [name for name in brief.get_params() if name.rpartition("__")[2] in _EPOCHS]
    return brief.set_params(**dict.fromkeys(epochs, 2))


def estimator_checks(
    estimator: Any, *, variant: bool = False
) -> list[tuple[str, Callable[[], None]]]:
    """Return every check of the contract that applies to an estimator, with its name.

    Parameters
    ----------
    estimator : an unfitted estimator
        Each check clones it; it is never fitted itself.
    variant : bool, default=False
        Whether the estimator is a variant of a method that passes all checks: it shares the
        code that handles inputs and outputs with this method, and differs in its network, its
        loss or a rule. The checks of inputs, outputs and cross-validation are then left out.

    Returns
    -------
    list of (name, function without arguments)
    """
    brief = briefly_trained(estimator)
    return [
        (check.name, partial(check.function, estimator if check.trains else brief))
        for check in _checks_for(estimator)
        if check.of_variants or not variant
    ]


def _checks_for(estimator: Any) -> list[Check]:
    if text_and_image_checks.takes_texts(estimator):
        return [*text_and_image_checks.COMMON, *text_and_image_checks.OF_TEXTS]
    if text_and_image_checks.takes_images(estimator):
        return [*text_and_image_checks.COMMON, *text_and_image_checks.OF_IMAGES]
    return [
        *learning_checks.CHECKS,
        *label_checks.CHECKS,
        *(capability_checks.OF_KNOWN_LABELS if capabilities(estimator).known_labels else ()),
        *(capability_checks.OF_WEIGHTS if capabilities(estimator).sample_weight else ()),
        *(capability_checks.OF_IMPORTANCE if capabilities(estimator).feature_importance else ()),
        *input_checks.CHECKS,
        *table_checks.CHECKS,
        *seed_checks.CHECKS,
        *(seed_checks.OF_JOBS if "n_jobs" in estimator.get_params(deep=False) else ()),
        *lifecycle_checks.CHECKS,
        *validation_checks.CHECKS,
    ]


def check_estimator(estimator: Any) -> None:
    """Run the whole contract, including scikit-learn's checks, and raise the first failure.

    A check that fails raises an AssertionError (or the error of the estimator) with the name
    of the check in its notes.
    """
    from sklearn.utils.estimator_checks import check_estimator as scikit_learn_checks

    for name, check in estimator_checks(estimator):
        try:
            check()
        except Exception as error:
            error.add_note(f"in the check {name!r} of {estimator!r}")
            raise
    brief = briefly_trained(estimator)
    scikit_learn_checks(brief, expected_failed_checks=expected_failures(brief))


def expected_failures(estimator: Any) -> dict[str, str]:
    """Return the names of scikit-learn's checks that cannot hold for an estimator, and why.

    >>> from labelweave.dependent.mlknn import MLkNN
    >>> expected_failures(MLkNN())
    {}
    """
    from labelweave.nn.estimator import NeuralClassifier

    if not isinstance(estimator, NeuralClassifier):
        return {}
    why = "repeated rows are shuffled into other batches than rows with weights"
    names = ("dense", "sparse")
    return {f"check_sample_weight_equivalence_on_{name}_data": why for name in names}
