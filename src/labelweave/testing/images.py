"""Methods that take images: what they do with them, in whatever form they come."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.testing.common import fresh, refused, same
from labelweave.testing.data import NAMES


def takes_images(estimator: Any) -> bool:
    """Whether the estimator has a network for images."""
    return hasattr(estimator, "_image_encoder") and estimator._image_encoder() is not None


def pictures(n_rows: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Images of 12 x 12 bytes in colour, and labels: one a third that may be light.

    >>> images, Y = pictures(3)
    >>> images.shape, Y.shape
    ((3, 12, 12, 3), (3, 3))
    """
    random = np.random.default_rng(seed)
    Y = (random.random((n_rows, 3)) < 0.5).astype(np.int64)
    images = random.integers(0, 60, (n_rows, 12, 12, 3), dtype=np.uint8)
    images += np.repeat(Y * 150, 4, axis=1).astype(np.uint8)[:, :, None, None]
    return images, Y


def check_forms_of_images(estimator: Any) -> None:
    """Arrays, collections, lists of arrays and files are the same; unknown labels are fine."""
    from labelweave.images import Images

    images, Y = pictures()
    truth = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    labels = as_labels(truth, names=NAMES)
    model = fresh(estimator).fit(images, labels)
    expected = model.predict_proba(images)
    again = fresh(estimator).fit(Images(images, size=12), labels).predict_proba(list(images))
    same(again, expected, "a collection and a list")
    with tempfile.TemporaryDirectory() as folder:
        from PIL import Image

        paths = [Path(folder) / f"{k}.png" for k in range(5)]
        for path, image in zip(paths, images, strict=False):
            Image.fromarray(image).save(path)
        same(model.predict_proba([str(path) for path in paths]), expected[:5], "files")


def check_what_is_no_image_is_refused(estimator: Any) -> None:
    images, Y = pictures()
    with refused("rows of numbers", "shape", error=InputError):
        fresh(estimator).fit(np.zeros((len(Y), 7)), Y)
    with refused("a missing file", "none.png", error=InputError):
        fresh(estimator).fit(["none.png"] * len(Y), Y)
    with refused("an unfitted model", error=NotFittedError):
        fresh(estimator).predict_proba(images)
