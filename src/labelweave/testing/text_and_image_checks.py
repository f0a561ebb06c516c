"""Checks of methods whose rows are texts or images and not features."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.testing.check_tools import NAMES, Check, fresh, mean_ap, refused, same

_WORDS = (("sea", "water", "fish"), ("sun", "light", "heat"), ("rain", "cloud", "storm"))


def takes_texts(estimator: Any) -> bool:
    """Return whether the estimator takes a list of texts and no features."""
    tags = get_tags(estimator).input_tags
    return tags.string and not tags.two_d_array


def takes_images(estimator: Any) -> bool:
    """Return whether the estimator has a network for images."""
    return hasattr(estimator, "_image_encoder") and estimator._image_encoder() is not None


def documents(n_rows: int = 60, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Draw texts of some words of their labels, in the order of `NAMES`, and of other words.

    >>> texts, Y = documents(3)
    >>> len(texts), Y.shape
    (3, (3, 3))
    """
    random = np.random.default_rng(seed)
    Y = (random.random((n_rows, 3)) < 0.4).astype(np.int64)
    texts = []
    for row in Y:
        words = [word for j in np.flatnonzero(row) for word in random.permutation(_WORDS[j])[:2]]
        texts.append(" ".join(random.permutation([*words, "day", "place", "thing"]).tolist()))
    return texts, Y


def pictures(n_rows: int = 40, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Draw colour images of 12 x 12 pixels; each label makes one third of its images light.

    >>> images, Y = pictures(3)
    >>> images.shape, Y.shape
    ((3, 12, 12, 3), (3, 3))
    """
    random = np.random.default_rng(seed)
    Y = (random.random((n_rows, 3)) < 0.5).astype(np.int64)
    images = random.integers(0, 60, (n_rows, 12, 12, 3), dtype=np.uint8)
    images += np.repeat(Y * 150, 4, axis=1).astype(np.uint8)[:, :, None, None]
    return images, Y


def _examples(estimator: Any, n_rows: int = 50) -> tuple[Any, np.ndarray]:
    """Return rows that the estimator takes, and their labels."""
    return (documents if takes_texts(estimator) else pictures)(n_rows)


def check_probabilities(estimator: Any) -> None:
    """predict_proba returns floats between 0 and 1, for a row as for many; predict applies the
    threshold."""
    rows, Y = _examples(estimator)
    model = fresh(estimator, threshold=0.4)
    assert model.fit(rows, as_labels(Y, names=NAMES)) is model, "fit must return self"
    probabilities = model.predict_proba(rows[:5])
    assert probabilities.shape == (5, 3)
    assert ((probabilities > 0) & (probabilities < 1)).all()
    same(model.predict(rows[:5]), probabilities >= 0.4, "predict by the threshold", exact=True)
    assert list(model.label_names_) == list(NAMES)
    alone = np.vstack([model.predict_proba(rows[k : k + 1]) for k in range(5)])
    same(alone, probabilities, "row by row against all at once")


def check_learns(estimator: Any) -> None:
    """It ranks new rows much better than by chance."""
    rows, Y = _examples(estimator, 160)
    model = fresh(estimator).fit(rows[:120], as_labels(Y[:120], names=NAMES))
    reached, chance = mean_ap(Y[120:], model.predict_proba(rows[120:])), Y[120:].mean()
    assert reached > chance + 0.15, f"mean average precision {reached:.3f}, chance {chance:.3f}"


def check_same_seed_same_result(estimator: Any) -> None:
    """Two fits with the same seed predict the same bits."""
    rows, Y = _examples(estimator)
    labels = as_labels(Y, names=NAMES)
    first, second = (fresh(estimator).fit(rows, labels).predict_proba(rows[:9]) for _ in range(2))
    same(first, second, "two fits with one seed", exact=True)


def check_saved_and_loaded(estimator: Any) -> None:
    """A loaded model predicts the same, with the labels that were added, and accepts more."""
    from labelweave.persistence import load

    rows, Y = _examples(estimator)
    model = fresh(estimator).fit(rows, as_labels(Y, names=NAMES))
    grows = hasattr(model, "add_labels")
    if grows:
        model.add_labels(["storm", "light"], {"storm": "rain and wind"})
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        loaded = load(Path(folder) / "model")
        same(loaded.predict_proba(rows), model.predict_proba(rows), "loaded", exact=True)
        assert list(loaded.label_names_) == list(model.label_names_)
        if grows:
            again = [m.add_labels("cloud").predict_proba(rows[:3]) for m in (loaded, model)]
            same(again[0], again[1], "a label added after loading", exact=True)


def check_forms_of_texts(estimator: Any) -> None:
    """Lists, arrays and Series of texts are the same; unknown labels are accepted."""
    import pandas as pd

    texts, Y = documents()
    truth = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    labels = as_labels(truth, names=NAMES)
    expected = fresh(estimator).fit(texts, labels).predict_proba(texts)
    for form in (np.array(texts), np.array(texts, dtype=object), pd.Series(texts), tuple(texts)):
        probabilities = fresh(estimator).fit(form, labels).predict_proba(form)
        same(probabilities, expected, f"texts as {type(form).__name__}")


def check_odd_texts(estimator: Any) -> None:
    """Empty texts, very long ones and texts of unknown words get finite probabilities."""
    texts, Y = documents()
    model = fresh(estimator).fit(texts, as_labels(Y, names=NAMES))
    odd = ["", "  ", "xyzzy", "sea " * 100_000, "\u00e4\u4e2d\U0001f600"]
    assert np.isfinite(model.predict_proba(odd)).all()


def check_what_is_no_text_is_refused(estimator: Any) -> None:
    """A single text, a number among texts and a model that is not fitted are refused."""
    texts, Y = documents()
    model = fresh(estimator)
    with refused("one text", "one text", error=InputError):
        model.fit(texts[0], Y)
    with refused("a number among the texts", "row 1", error=InputError):
        model.fit([texts[0], 5.0], Y[:2])
    with refused("an unfitted model", error=NotFittedError):
        fresh(estimator).predict_proba(texts)


def check_labels_come_and_go(estimator: Any) -> None:
    """New labels are new columns; the other columns do not change when labels come or go."""
    if not hasattr(estimator, "add_labels"):
        return
    texts, Y = documents()
    model = fresh(estimator).fit(texts, as_labels(Y, names=NAMES))
    before = model.predict_proba(texts[:9])
    model.add_labels(["storm", "water"], {"storm": "rain and wind"})
    assert list(model.label_names_) == [*NAMES, "storm", "water"]
    assert model.unseen_labels_ == ["storm", "water"]
    grown = model.predict_proba(texts[:9])
    assert grown.shape == (9, 5)
    same(grown[:, :3], before, "seen labels after adding others")
    model.rename_label("storm", "tempest")
    assert list(model.label_names_) == [*NAMES, "tempest", "water"]
    model.remove_labels(["tempest", "water"])
    assert list(model.label_names_) == list(NAMES)
    same(model.predict_proba(texts[:9]), before, "after the new labels are gone")
    for wrong, words in (("sea", "already seen"), (["a b", "a b"], "twice"), ("-", "no text")):
        with refused(f"the label {wrong}", words, error=InputError):
            model.add_labels(wrong)
    with refused("an unknown label", "no label 'moon'", error=InputError):
        model.remove_labels("moon")


def check_forms_of_images(estimator: Any) -> None:
    """Arrays, collections, lists of arrays and files are the same; unknown labels are accepted."""
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
    """Rows of numbers, a missing file and a model that is not fitted are refused."""
    images, Y = pictures()
    with refused("rows of numbers", "shape", error=InputError):
        fresh(estimator).fit(np.zeros((len(Y), 7)), Y)
    with refused("a missing file", "none.png", error=InputError):
        fresh(estimator).fit(["none.png"] * len(Y), Y)
    with refused("an unfitted model", error=NotFittedError):
        fresh(estimator).predict_proba(images)


COMMON = (
    Check(check_probabilities, of_variants=True),
    Check(check_learns, trains=True, of_variants=True),
    Check(check_same_seed_same_result, of_variants=True),
    Check(check_saved_and_loaded, of_variants=True),
)
OF_TEXTS = (
    Check(check_forms_of_texts),
    Check(check_odd_texts, of_variants=True),
    Check(check_what_is_no_text_is_refused),
    Check(check_labels_come_and_go, of_variants=True),
)
OF_IMAGES = (
    Check(check_forms_of_images),
    Check(check_what_is_no_image_is_refused),
)
