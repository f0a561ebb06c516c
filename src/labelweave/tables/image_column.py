"""What is made of a column of images or of paths to them: the features of an encoder of images."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from labelweave.exceptions import DataFileError, InputError
from labelweave.files import is_path
from labelweave.methods import make_part
from labelweave.tables.table import hashable

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["UNTRAINED", "ImageCells", "ImageColumn", "learn_images", "located"]

UNTRAINED = "untrained"
_SIZE, _WIDTH = 32, 16  # pixels of a side and channels of the untrained network: 128 features


@dataclass(frozen=True)
class ImageCells:
    """The distinct images of a column, the image of each row (-1: blank), and the rows' names."""

    codes: np.ndarray
    images: list[Any]  # paths, or arrays of pixels
    rows: Any


@dataclass
class ImageColumn:
    """A column of images: features with mean 0 and deviation 1, few dimensions with `native`.

    A blank has 0 everywhere, and a column of its own is 1 for blanks; with `native` it is NaN.
    """

    name: str
    encoder: Any
    native: bool
    network: str  # the encoder, in words
    centre: np.ndarray = field(default_factory=lambda: np.zeros(0))
    scale: np.ndarray = field(default_factory=lambda: np.ones(0))
    reduction: Any = None
    has_blank: bool = False
    n_out: int = 0

    kind = "image"

    def learn(self, cells: ImageCells, n_dimensions: int | None, seed: int) -> np.ndarray:
        """Fit to the images of a column, and return the features of its rows."""
        self.encoder.fit(cells.images)
        vectors = self._vectors(cells)[cells.codes[cells.codes >= 0]]
        self.centre = vectors.mean(axis=0)
        deviation = vectors.std(axis=0)
        self.scale = np.where(deviation > 0, deviation, 1.0)
        self.n_out = vectors.shape[1]
        if n_dimensions is not None and self.n_out > n_dimensions:
            from sklearn.decomposition import TruncatedSVD

            self.reduction = TruncatedSVD(n_dimensions, random_state=seed)
            with np.errstate(invalid="ignore"):  # its share of variance is 0 / 0 for equal images
                reduced = self.reduction.fit_transform((vectors - self.centre) / self.scale)
            self.n_out = reduced.shape[1]
        self.has_blank = bool((cells.codes < 0).any())
        return self.encode(cells)

    def read(self, column: pd.Series) -> ImageCells:
        """Return the images of a column; an empty path is a blank."""
        images: dict[Any, Any] = {}
        numbers: dict[Any, int] = {}
        codes = np.full(len(column), -1, dtype=np.intp)
        for row, (cell, is_blank) in enumerate(zip(column, column.isna(), strict=True)):
            image = str(cell).strip() if is_path(cell) else cell
            if is_blank or (is_path(image) and not image):
                continue
            if not isinstance(image, np.ndarray) and not (is_path(image) and "\0" not in image):
                raise InputError(
                    f"row {column.index[row]} of the column {self.name!r} is neither a path nor "
                    "an array of pixels"
                )
            key = hashable(image)
            images[key] = image
            codes[row] = numbers.setdefault(key, len(numbers))
        return ImageCells(codes, list(images.values()), column.index)

    @property
    def names(self) -> list[str]:
        own = [f"{self.name}: feature {k}" for k in range(self.n_out)]
        return own + [f"{self.name} is blank"] * (self.has_blank and not self.native)

    @property
    def made(self) -> str:
        what = "features" if self.reduction is None else "dimensions of the features"
        said = f"{self.n_out} {what} of {self.network}"
        return said + (", and whether it is blank" if self.has_blank and not self.native else "")

    def encode(self, cells: ImageCells) -> np.ndarray:
        """Return the features of rows."""
        known = cells.codes >= 0
        features = np.zeros((len(known), len(self.names)))
        if self.native:
            features[~known] = np.nan
        elif self.has_blank:
            features[:, -1] = ~known
        if cells.images:
            vectors = self._vectors(cells)
            if vectors.shape[1] != len(self.centre):
                raise InputError(f"the encoder of the column {self.name!r} does not fit the model")
            vectors = (vectors - self.centre) / self.scale
            if self.reduction is not None:
                vectors = self.reduction.transform(vectors)
            features[known, : self.n_out] = vectors[cells.codes[known]]
        return features

    def _vectors(self, cells: ImageCells) -> np.ndarray:
        """The features of each distinct image; an error names the row and the file."""
        try:
            return np.asarray(self.encoder.transform(cells.images), dtype=np.float64)
        except DataFileError as error:
            paths = [str(image) if is_path(image) else "" for image in cells.images]
            if error.path not in paths:
                raise
            row = cells.rows[int(np.argmax(cells.codes == paths.index(error.path)))]
            raise InputError(
                f"row {row} of the column {self.name!r} is {error.path!r}: {error.message}; "
                "correct the path or the file, or leave the cell blank"
            ) from None


def learn_images(
    column: pd.Series, image: Any, native: bool, n_dimensions: int | None, seed: int
) -> tuple[ImageColumn | None, Any]:
    """Return a fitted column of images and its features; None if all cells are blank.

    `image` is "untrained" or a transformer of images.
    """
    if isinstance(image, str):
        resnet = make_part("resnet", size=_SIZE, width=_WIDTH, augment="none")
        encoder = make_part("image-encoder", weights="random", network=resnet)
        network = "an untrained network"
    else:
        encoder, network = clone(image, safe=False), type(image).__name__
    images = ImageColumn(str(column.name), encoder, native, network)
    cells = images.read(column)
    if not cells.images:
        return None, None
    return images, images.learn(cells, n_dimensions, seed)


def located(column: pd.Series, folder: str | None) -> pd.Series:
    """Return a column of paths; those that are relative start from a folder.

    None stands for files in several folders: then a relative path is refused.

    >>> import pandas as pd
    >>> located(pd.Series(["a.png", "/b.png", None]), "/photos").tolist()
    ['/photos/a.png', '/b.png', None]
    """
    import pandas as pd

    cells: list[Any] = []
    for row, cell, blank in zip(column.index, column, column.isna(), strict=True):
        path = "" if blank else str(cell).strip()
        if path and folder is None and not Path(path).is_absolute():
            raise InputError(
                f"row {row} of the column {column.name!r} is the relative path {path!r}, but the "
                "rows come from files in several folders: give the full paths of the images"
            )
        cells.append(str(Path(folder or "", path)) if path else None)
    return pd.Series(cells, index=column.index, name=column.name, dtype=object)
