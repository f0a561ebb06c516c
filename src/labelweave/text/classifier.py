"""A classifier of texts: TF-IDF weights or an embedder, followed by any classifier."""

from __future__ import annotations

from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import HasMethods, Interval

from labelweave.base import MultiLabelClassifier
from labelweave.capabilities import capabilities
from labelweave.embedding_classifier import EmbeddingClassifier
from labelweave.exceptions import InputError
from labelweave.importance import FeatureImportanceMixin
from labelweave.text.checks import checked_texts
from labelweave.text.embedders import make_embedder
from labelweave.text.tfidf import MOST_WORDS, fitted_vectorizer, learn_words, string_tags

__all__ = ["TextClassifier"]


class TextClassifier(FeatureImportanceMixin, EmbeddingClassifier):
    """A classifier of texts: TF-IDF weights or an embedder, followed by any classifier.

    Words are lower-cased runs of two or more letters or digits; their weights are
    ``(1 + log count) * idf``, each text scaled to length one. The vocabulary is learnt from the
    training texts, not from their labels or from validation rows. The weights stay sparse. A saved
    model contains the vocabulary.

    Parameters
    ----------
    classifier : estimator, default=None
        The classifier of the features; binary relevance if None.
    embedder : transformer of texts, {"minilm", "fast"} or None, default=None
        Computes the features in place of TF-IDF weights; see :mod:`labelweave.text`. The next
        three parameters are then ignored.
    max_features : int or None, default=20000
        Keep this many of the most frequent words.
    max_words : int, default=1
        Longest run of words that counts as one feature, at most 20; 2 adds pairs of neighbouring
        words.
    min_texts : int, default=1
        Ignore words that occur in fewer texts.
    threshold : float, str or Threshold, default="auto"
        How probabilities are turned into label sets. ``"auto"`` uses the rule of the classifier,
        such as "cardinality" for methods for partial labels.
    validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    Attributes
    ----------
    classifier_ : estimator
        The fitted classifier.
    vocabulary_ : list of str
        The words, in the order of the classifier's features.
    idf_ : ndarray
        Inverse document frequency of each word.
    embedder_ : transformer
        The fitted embedder, if there is one; the two attributes above are then missing.

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
        "embedder": [HasMethods(["fit", "transform"]), str, None],
        "max_features": [Interval(Integral, 1, None, closed="left"), None],
        "max_words": [Interval(Integral, 1, MOST_WORDS, closed="both")],
        "min_texts": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        classifier: Any = None,
        *,
        embedder: Any = None,
        max_features: int | None = 20_000,
        max_words: int = 1,
        min_texts: int = 1,
        threshold: Any = "auto",
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        self.classifier = classifier
        self.embedder = embedder
        self.max_features = max_features
        self.max_words = max_words
        self.min_texts = min_texts
        self.threshold = threshold
        self.validation_fraction = validation_fraction
        self.random_state = random_state

    # -- from texts to weights ---------------------------------------------------------

    def _checked_features(self, X: Any, *, reset: bool) -> Any:
        texts = checked_texts(X)
        if self.embedder is not None:
            if reset:
                self.embedder_ = make_embedder(self.embedder).fit(texts)
            with self._about_folder():
                return self.embedder_.transform(texts)
        if reset:
            self.vocabulary_, self.idf_, weights = learn_words(
                texts,
                max_features=self.max_features,
                ngram_range=(1, self.max_words),
                min_df=self.min_texts,
            )
            return weights
        with self._about_folder():
            words = fitted_vectorizer(self.vocabulary_, self.idf_, (1, self.max_words))
            return words.transform(texts)

    # -- importance of words -----------------------------------------------------------

    def _feature_importance(self) -> np.ndarray:
        self._check_words()
        return self.classifier_._feature_importance()

    def _feature_directions(self) -> np.ndarray | None:
        self._check_words()
        return self.classifier_._feature_directions()

    def _column_names(self) -> list[str]:
        return list(self.vocabulary_)

    def _check_words(self) -> None:
        if not capabilities(self).feature_importance:
            raise InputError(
                "the importance of words can be read from TF-IDF weights with a linear classifier "
                "or trees only: use labelweave.feature_importance(model, texts, Y)"
            )

    def __sklearn_tags__(self) -> Any:
        tags = string_tags(super().__sklearn_tags__())
        inner = capabilities(self._unfitted_classifier())
        tags.capabilities.feature_importance = self.embedder is None and inner.feature_importance
        return tags
