"""Texts in, label sets out: TF-IDF weights before any classifier of the library."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.utils._param_validation import HasMethods, Interval

from labelweave.base import MultiLabelClassifier, Pair
from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix

__all__ = ["TextClassifier"]


class TextClassifier(MultiLabelClassifier):
    """A classifier of texts: words weighted by TF-IDF, then any classifier.

    Words are lower-cased runs of two or more letters or digits; their weights are
    ``(1 + log count) * idf``, each text scaled to length one. The vocabulary comes from the texts
    given to `fit` (never from their labels, nor from validation rows passed to it). The weights
    stay sparse. It is one model: saving it saves the vocabulary too.

    Parameters
    ----------
    classifier : estimator, default=None
        What is fitted to the weights; binary relevance if None. Its own `threshold` is not used.
    max_features : int or None, default=20000
        Keep this many of the most frequent words.
    max_words : int, default=1
        Longest run of words that counts as one feature; 2 adds pairs of neighbouring words.
    min_texts : int, default=1
        Leave out words that fewer texts contain.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    vocabulary_ : list of str
        The words, in the order of the classifier's features.
    idf_ : ndarray
        Inverse document frequency of each word.

    Examples
    --------
    >>> from labelweave.text import TextClassifier
    >>> texts = ["sun and sea", "deep sea", "hot sun", "old sea"] * 5
    >>> labels = [["sea", "sun"], ["sea"], ["sun"], ["sea"]] * 5
    >>> TextClassifier().fit(texts, labels).predict_labels(["sea and sun", "the sea"])
    [['sea', 'sun'], ['sea']]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **MultiLabelClassifier._parameter_constraints,
        "classifier": [HasMethods(["fit", "predict_proba"]), None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "max_words": [Interval(Integral, 1, None, closed="left")],
        "min_texts": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        max_features: int | None = 20_000,
        max_words: int = 1,
        min_texts: int = 1,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.max_features = max_features
        self.max_words = max_words
        self.min_texts = min_texts
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    def _fit(self, X: Any, Y: LabelMatrix, validation: Pair | None) -> None:
        classifier = self._unfitted_classifier()
        takes_seed = "random_state" in classifier.get_params(deep=False)
        if takes_seed and classifier.get_params(deep=False)["random_state"] is None:
            classifier.set_params(random_state=self.random_state)
        self.classifier_ = classifier.fit(X, Y, validation=validation)

    def _predict_proba(self, X: Any) -> np.ndarray:
        return self.classifier_.predict_proba(X)

    @property
    def _tunes_out_of_fold(self) -> bool:  # type: ignore[override]
        return bool(getattr(self.classifier, "_tunes_out_of_fold", False))

    def _judged_out_of_fold(self) -> tuple[LabelMatrix, np.ndarray] | None:
        return self.classifier_._judged_out_of_fold()

    def _wants_validation(self) -> bool:
        return self._unfitted_classifier()._wants_validation()

    def _unfitted_classifier(self) -> Any:
        if self.classifier is not None:
            return clone(self.classifier)
        from labelweave.registry import make

        return make("br")

    # -- from texts to weights ---------------------------------------------------------

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        texts = _checked_texts(X)
        if not reset:
            return self._fitted_vectorizer().transform(texts)
        vectorizer = self._vectorizer()
        try:
            weights = vectorizer.fit_transform(texts)
        except ValueError as error:  # the only reason left: no word remains
            raise InputError(
                f"no word of the {len(texts)} texts is left to learn from: {error}"
            ) from None
        self.vocabulary_ = vectorizer.get_feature_names_out().tolist()
        self.idf_ = vectorizer.idf_.astype(np.float32)
        return weights

    def _vectorizer(self, **more: Any) -> TfidfVectorizer:
        return TfidfVectorizer(
            sublinear_tf=True,
            dtype=np.float32,
            ngram_range=(1, self.max_words),
            max_features=self.max_features,
            min_df=self.min_texts,
            **more,
        )

    def _fitted_vectorizer(self) -> TfidfVectorizer:
        vectorizer = self._vectorizer(vocabulary=self.vocabulary_)
        vectorizer.idf_ = self.idf_
        return vectorizer

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string = True
        tags.input_tags.two_d_array = False
        return tags


def _checked_texts(X: Any) -> list[str]:
    if isinstance(X, str):
        raise InputError("X is one text: pass a list of texts")
    if hasattr(X, "ndim") and X.ndim != 1:
        raise InputError(f"X must be a list of texts, but it has shape {X.shape}")
    texts = list(X)
    if not texts:
        raise InputError("X holds no text")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise InputError(f"X must be a list of texts, but row {i} is {type(text).__name__}")
    return texts
