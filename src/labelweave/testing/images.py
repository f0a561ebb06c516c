"""Methods that take images: what they do with them, in whatever form they come."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.testing.common import fresh, learns, mean_ap, refused, same
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


def check_probabilities_of_images(estimator: Any) -> None:
    """predict_proba: floats strictly between 0 and 1; predict: 0/1 by the threshold."""
    images, Y = pictures()
    model = fresh(estimator, threshold=0.4)
    assert model.fit(images, as_labels(Y, names=NAMES)) is model, "fit must return self"
    probabilities = model.predict_proba(images[:7])
    assert probabilities.shape == (7, 3)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    same(model.predict(images[:7]), probabilities >= 0.4, "predict by the threshold", exact=True)
    assert list(model.label_names_) == list(NAMES)


@learns
def check_learns_images(estimator: Any) -> None:
    """It ranks new images much better than chance."""
    images, Y = pictures(160)
    model = fresh(estimator).fit(images[:120], as_labels(Y[:120], names=NAMES))
    reached, chance = mean_ap(Y[120:], model.predict_proba(images[120:])), Y[120:].mean()
    assert reached > chance + 0.15, f"mean average precision {reached:.3f}, chance {chance:.3f}"


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


def check_each_image_is_predicted_by_itself(estimator: Any) -> None:
    images, Y = pictures()
    model = fresh(estimator).fit(images, as_labels(Y, names=NAMES))
    together = model.predict_proba(images[:4])
    alone = np.vstack([model.predict_proba(images[k : k + 1]) for k in range(4)])
    same(alone, together, "image by image against all at once")


def check_what_is_no_image_is_refused(estimator: Any) -> None:
    images, Y = pictures()
    with refused("rows of numbers", "shape", error=InputError):
        fresh(estimator).fit(np.zeros((len(Y), 7)), Y)
    with refused("a missing file", "none.png", error=InputError):
        fresh(estimator).fit(["none.png"] * len(Y), Y)
    with refused("an unfitted model", error=NotFittedError):
        fresh(estimator).predict_proba(images)


def check_same_seed_same_model_of_images(estimator: Any) -> None:
    images, Y = pictures()
    labels = as_labels(Y, names=NAMES)
    found = [fresh(estimator).fit(images, labels).predict_proba(images[:9]) for _ in range(2)]
    same(found[0], found[1], "two fits with one seed", exact=True)


def check_images_saved_and_loaded(estimator: Any) -> None:
    from labelweave.persistence import load

    images, Y = pictures()
    model = fresh(estimator).fit(images, as_labels(Y, names=NAMES))
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
        same(loaded.predict_proba(images), model.predict_proba(images), "loaded", exact=True)
