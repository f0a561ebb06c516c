"""The versions of packages at saving, compared with those at loading."""

from __future__ import annotations

import platform
import re
import warnings
from importlib import metadata
from pathlib import Path
from typing import Any

from labelweave.exceptions import LabelweaveWarning, ModelFolderError

__all__ = ["compare_versions", "versions"]

_PACKAGES = ("labelweave", "numpy", "scipy", "scikit-learn", "torch")
_COMPARED = ("labelweave", "scikit-learn", "torch")
_VERSION = re.compile(r"[A-Za-z0-9.+!_-]{1,60}")


def versions(module: str) -> dict[str, str]:
    """Return the versions of the packages that predictions depend on, without importing them."""
    installed = {"python": platform.python_version()}
    for package in dict.fromkeys([*_PACKAGES, module.partition(".")[0]]):
        try:
            installed[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return installed


def compare_versions(folder: Path, saved: Any) -> None:
    """Warn if a model was saved with other versions of labelweave, scikit-learn or torch."""
    is_valid = isinstance(saved, dict) and all(
        isinstance(version, str) and _VERSION.fullmatch(version) for version in saved.values()
    )
    if not is_valid:
        raise ModelFolderError(f"{folder}: config.json has no valid versions of packages")
    here = versions("labelweave")
    differing = [
        f"{package} {saved[package]} (here {here.get(package, 'none')})"
        for package in _COMPARED
        if package in saved and saved[package] != here.get(package)
    ]
    if differing:
        warnings.warn(
            f"{folder} was saved with {', '.join(differing)}: its predictions may differ, so "
            "evaluate it again or train it with the versions of today",
            LabelweaveWarning,
            stacklevel=2,
        )
