"""scikit-learn estimators inside a model, stored by skops and of trusted types only."""

from __future__ import annotations

import zipfile
from pathlib import Path
from typing import Any

from labelweave.exceptions import InputError, ModelFolderError

__all__ = ["TRUSTED_TYPES", "load_sklearn", "save_sklearn"]

# What skops does not trust by itself and scikit-learn's own classifiers hold. Nothing of other
# packages, and nothing that can be made to call a function given in the file.
TRUSTED_TYPES = (
    "sklearn._loss.link.Interval",
    "sklearn._loss.link.LogitLink",
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.calibration._SigmoidCalibration",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
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


def save_sklearn(value: Any, path: Path, place: str) -> None:
    """Write a scikit-learn estimator, or a list of them, to a skops file."""
    import skops.io

    try:
        skops.io.dump(value, path)
        strange = _untrusted(path)
    except (OSError, zipfile.BadZipFile):
        raise
    except Exception as error:  # skops has no error class of its own
        raise InputError(f"{place} cannot be saved: {error}") from error
    if strange:
        raise InputError(
            f"{place} cannot be saved: it holds {strange[0]}, which is not among the "
            "scikit-learn, NumPy and SciPy types that a model folder may hold"
        )


def load_sklearn(path: Path) -> Any:
    """Read what `save_sklearn` wrote."""
    import skops.io

    with zipfile.ZipFile(path) as archive:
        # Saved without compression, so that no small file can unpack to a large one.
        if any(part.compress_type != zipfile.ZIP_STORED for part in archive.infolist()):
            raise ModelFolderError(f"{path} was not written by labelweave: it is compressed")
    if strange := _untrusted(path):
        raise ModelFolderError(f"{path} holds the type {strange[0]}, which is not to be trusted")
    return skops.io.load(path, trusted=list(TRUSTED_TYPES))


def _untrusted(path: Path) -> list[str]:
    import skops.io

    return sorted(set(skops.io.get_untrusted_types(file=path)) - set(TRUSTED_TYPES))
