"""TF-IDF weights of texts."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils._param_validation import Interval
from sklearn.utils.validation import check_is_fitted

from labelweave.capabilities import MultiLabelTags
from labelweave.exceptions import InputError
from labelweave.text.checks import checked_texts

__all__ = ["TfidfEmbedder", "fitted_vectorizer", "learn_words", "string_tags"]

MOST_WORDS = 20
"""Limit of `max_words`: the number of runs of words grows with it, and so does the memory."""

_RUN_LENGTHS = (3, 5)  # of characters
_MAX_RUNS = 40_000
_MANY_TEXTS = 20  # in fewer, runs of characters that occur once are used too
_AT_LEAST_ONE = Interval(Integral, 1, None, closed="left")


class TfidfEmbedder(TransformerMixin, BaseEstimator):
    """Sparse TF-IDF weights of words, each text scaled to length one.

    Parameters
    ----------
    max_features : int or None, default=20000
        Keep this many of the most frequent words.
    max_words : int, default=1
        Longest run of words that counts as one feature; at most 20.
    min_texts : int, default=1
        Ignore words that occur in fewer texts.
    characters : bool, default=False
        Whether to add the weights of runs of three to five characters inside words, which share
        the stems of words and tolerate misspellings. Words and runs of characters have the same
        length. Of the runs that occur in two texts or more the 40,000 most frequent are used (with
        fewer than 20 texts, of all runs).

    Attributes
    ----------
    vocabulary_ : list of str
    idf_ : ndarray
    character_vocabulary_, character_idf_ : list of str and ndarray
        The same of the runs of characters, if these are used.

    Examples
    --------
    >>> TfidfEmbedder().fit_transform(["sun and sea", "deep sea"]).shape
    (2, 4)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "max_features": [_AT_LEAST_ONE, None],
        "max_words": [Interval(Integral, 1, MOST_WORDS, closed="both")],
        "min_texts": [_AT_LEAST_ONE],
        "characters": ["boolean"],
    }

    def __init__(
        self,
        max_features: int | None = 20_000,
        *,
        max_words: int = 1,
        min_texts: int = 1,
        characters: bool = False,
    ) -> None:
        self.max_features = max_features
        self.max_words = max_words
        self.min_texts = min_texts
        self.characters = characters

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the words of the texts and their weights."""
        self.fit_transform(X)
        return self

    def fit_transform(self, X: Any, y: Any = None) -> Any:
        """Learn the words of the texts, and return their weights."""
        self._validate_params()
        texts = checked_texts(X)
        self.vocabulary_, self.idf_, weights = learn_words(
            texts,
            max_features=self.max_features,
            ngram_range=(1, self.max_words),
            min_df=self.min_texts,
        )
        if not self.characters:
            return weights
        self.character_vocabulary_, self.character_idf_, runs = learn_words(
            texts,
            analyzer="char_wb",
            max_features=_MAX_RUNS,
            ngram_range=_RUN_LENGTHS,
            min_df=2 if len(texts) >= _MANY_TEXTS else 1,
        )
        return _side_by_side(weights, runs)

    def transform(self, X: Any) -> Any:
        """Return the weights of the words of the vocabulary, as a sparse float32 matrix."""
        check_is_fitted(self)
        texts = checked_texts(X)
        vectorizer = fitted_vectorizer(self.vocabulary_, self.idf_, (1, self.max_words))
        weights = vectorizer.transform(texts)
        if not self.characters:
            return weights
        runs = fitted_vectorizer(
            self.character_vocabulary_, self.character_idf_, _RUN_LENGTHS, analyzer="char_wb"
        )
        return _side_by_side(weights, runs.transform(texts))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """The words, and then the runs of characters if these are used."""
        runs = self.character_vocabulary_ if self.characters else []
        return np.asarray([*self.vocabulary_, *runs], dtype=object)

    def __sklearn_tags__(self) -> Any:
        return string_tags(super().__sklearn_tags__())


def learn_words(
    texts: Sequence[str], *, ngram_range: tuple[int, int], **limits: Any
) -> tuple[list[str], np.ndarray, Any]:
    """Return the words of texts, their inverse document frequencies and the weights."""
    vectorizer = TfidfVectorizer(
        sublinear_tf=True, dtype=np.float32, ngram_range=ngram_range, **limits
    )
    try:
        weights = vectorizer.fit_transform(texts)
    except ValueError as error:  # the vocabulary is empty
        raise InputError(
            f"no word of the {len(texts)} texts is left to learn from: {error}"
        ) from None
    words = vectorizer.get_feature_names_out().tolist()
    return words, vectorizer.idf_.astype(np.float32), weights


def fitted_vectorizer(
    vocabulary: Sequence[str],
    idf: np.ndarray,
    ngram_range: tuple[int, int],
    analyzer: str = "word",
) -> TfidfVectorizer:
    """Return a vectorizer with a given vocabulary and its frequencies."""
    vectorizer = TfidfVectorizer(
        sublinear_tf=True,
        dtype=np.float32,
        ngram_range=ngram_range,
        vocabulary=vocabulary,
        analyzer=analyzer,
    )
    vectorizer.idf_ = idf
    return vectorizer


def _side_by_side(words: Any, runs: Any) -> Any:
    """Words and runs of characters as one row per text, which has at most length one."""
    return sp.hstack([words, runs], format="csr", dtype=np.float32) * np.float32(np.sqrt(0.5))


def string_tags(tags: Any) -> Any:
    """Set scikit-learn's tags of an estimator whose input is texts."""
    tags.input_tags.string = True
    tags.input_tags.two_d_array = False
    if isinstance(tags, MultiLabelTags):
        tags.capabilities.texts = True
        tags.capabilities.vectors = False
    return tags
