"""scikit-learn estimators inside a model: stored by skops, of trusted types, checked at loading."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Collection, Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

from labelweave.exceptions import InputError, LabelweaveWarning, ModelFolderError
from labelweave.methods import method_of

__all__ = ["TRUSTED_TYPES", "load_sklearn", "models_inside", "save_sklearn"]

# Types that skops does not trust by default but that scikit-learn's estimators consist of. The
# list has no types of other packages than NumPy and SciPy, and none that could call a function that
# a file names.
TRUSTED_TYPES = (
    "numpy.dtype",
    "numpy.number",
    "scipy.sparse._csr.csr_array",
    "scipy.sparse._csr.csr_matrix",
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.feature_selection._mutual_info.mutual_info_classif",
    "sklearn.feature_selection._univariate_selection.chi2",
    "sklearn.feature_selection._univariate_selection.f_classif",
    "sklearn.gaussian_process._gpc._BinaryGaussianProcessClassifierLaplace",
    "sklearn.gaussian_process.kernels.ConstantKernel",
    "sklearn.gaussian_process.kernels.Product",
    "sklearn.gaussian_process.kernels.RBF",
    "sklearn.metrics._dist_metrics.EuclideanDistance64",
    "sklearn.metrics._dist_metrics.ManhattanDistance64",
    "sklearn.metrics._dist_metrics.MinkowskiDistance64",
    "sklearn.neighbors._ball_tree.BallTree",
    "sklearn.neighbors._kd_tree.KDTree",
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.neural_network._stochastic_optimizers.SGDOptimizer",
    "sklearn.tree._tree.Tree",
)


def models_inside(value: Any) -> list[Any]:
    """Return the estimators of the table of methods inside a scikit-learn estimator.

    A pipeline ends in one, for instance, and a column transformer may have one for a column.
    """
    models: list[Any] = []
    visited: set[int] = set()

    def visit(part: Any) -> None:
        if id(part) in visited:
            return
        visited.add(id(part))
        if isinstance(part, BaseEstimator):
            if method_of(part) is not None:
                models.append(part)
                return
            children = list(vars(part).values())
        elif isinstance(part, dict):
            children = list(part.values())
        elif isinstance(part, list | tuple) or (
            isinstance(part, np.ndarray) and part.dtype == object
        ):
            children = list(part.flat) if isinstance(part, np.ndarray) else list(part)
        else:
            return
        for child in children:
            visit(child)

    visit(value)
    return models


def save_sklearn(value: Any, path: Path, place: str, models: Sequence[Any] = ()) -> None:
    """Write a scikit-learn estimator, or a list of them, to a skops file.

    The `models` inside it are saved elsewhere: the file holds their numbers in their place. The
    file is read again, so that nothing is saved that `load_sklearn` would refuse; what it accepts
    only if it is trusted gets a warning.
    """
    import skops.io

    from labelweave.persistence.native_checks import MODEL

    if models:
        value = deepcopy(value, {id(model): {MODEL: k} for k, model in enumerate(models)})
    try:
        skops.io.dump(value, path)
        _read_checked(path, models, lambda pattern: _warn_of_pattern(pattern, place))
    except (OSError, zipfile.BadZipFile):
        raise
    except Exception as error:  # skops does not define an error class
        raise InputError(f"{place} cannot be saved: {error}") from error


def load_sklearn(path: Path, models: Sequence[Any] = (), trusted: Collection[str] = ()) -> Any:
    """Read an estimator, or a list of estimators, that `save_sklearn` wrote.

    Of patterns that split texts into words, only quick and `trusted` ones are accepted.
    """

    def refuse_unless_trusted(pattern: str) -> None:
        if pattern not in trusted:
            raise InputError(
                f"it splits texts by the pattern {pattern!r}, which could take very long: if you "
                f"trust it, load the model with trusted=[{pattern!r}]"
            )

    try:
        return _read_checked(path, models, refuse_unless_trusted)
    except InputError as error:
        raise ModelFolderError(f"{path} cannot be loaded: {error}") from error


def _read_checked(path: Path, models: Sequence[Any], with_pattern: Callable[[str], object]) -> Any:
    """Read a file, and raise an InputError unless everything in it may be loaded."""
    import skops.io

    from labelweave.persistence.native_checks import check_loaded
    from labelweave.persistence.skops_archive import check_sizes

    with zipfile.ZipFile(path) as archive:
        check_sizes(archive, path.stat().st_size)
    if untrusted := sorted(set(skops.io.get_untrusted_types(file=path)) - set(TRUSTED_TYPES)):
        raise InputError(
            f"it contains {untrusted[0]}, which is not among the scikit-learn, NumPy and SciPy "
            "types that a model folder may contain"
        )
    return check_loaded(skops.io.load(path, trusted=list(TRUSTED_TYPES)), models, with_pattern)


def _warn_of_pattern(pattern: str, place: str) -> None:
    warnings.warn(
        f"{place} splits texts by the pattern {pattern!r}, which could take very long: to load the "
        f"model, use trusted=[{pattern!r}]",
        LabelweaveWarning,
        stacklevel=2,
    )
