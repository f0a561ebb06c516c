"""Methods that take texts instead of features: what they do with them, and with new labels."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils import get_tags

from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.testing.common import fresh, refused, same
from labelweave.testing.data import NAMES

_WORDS = (("sea", "water", "fish"), ("sun", "light", "heat"), ("rain", "cloud", "storm"))


def takes_texts(estimator: Any) -> bool:
    """Whether the estimator takes a list of texts and no features."""
    tags = get_tags(estimator).input_tags
    return tags.string and not tags.two_d_array


def documents(n_rows: int = 60, seed: int = 0) -> tuple[list[str], np.ndarray]:
    """Texts of some words of their labels, in the order of NAMES, and of words of no label.

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


def check_forms_of_texts(estimator: Any) -> None:
    """Lists, arrays and Series of texts are the same; unknown labels are fine."""
    import pandas as pd

    texts, Y = documents()
    truth = np.where(np.random.default_rng(0).random(Y.shape) < 0.2, np.nan, Y)
    labels = as_labels(truth, names=NAMES)
    expected = fresh(estimator).fit(texts, labels).predict_proba(texts)
    for form in (np.array(texts), np.array(texts, dtype=object), pd.Series(texts), tuple(texts)):
        found = fresh(estimator).fit(form, labels).predict_proba(form)
        same(found, expected, f"texts as {type(form).__name__}")


def check_odd_texts(estimator: Any) -> None:
    """Empty, unheard and very long texts get finite probabilities."""
    texts, Y = documents()
    model = fresh(estimator).fit(texts, as_labels(Y, names=NAMES))
    found = model.predict_proba(["", "  ", "xyzzy", "sea " * 100_000, "\u00e4\u4e2d\U0001f600"])
    assert np.isfinite(found).all()


def check_what_is_no_text_is_refused(estimator: Any) -> None:
    texts, Y = documents()
    model = fresh(estimator)
    with refused("one text", "one text", error=InputError):
        model.fit(texts[0], Y)
    with refused("a number among the texts", "row 1", error=InputError):
        model.fit([texts[0], 5.0], Y[:2])
    with refused("an unfitted model", error=NotFittedError):
        fresh(estimator).predict_proba(texts)


def check_labels_come_and_go(estimator: Any) -> None:
    """New labels are new columns; the others stay as they were, whatever comes or goes."""
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
