"""XML0-LF: label fusion alone."""

from __future__ import annotations

import numpy as np

from labelweave.unseen._fusion.label_extension import SingleScoreExtension
from labelweave.unseen._fusion.score_combination import ScoreCombination

__all__ = ["XML0LF"]


class XML0LF(SingleScoreExtension):
    """Label fusion alone: XML0 without the semantic similarity of the document [1]_.

    The score of an unseen label is its largest cosine with a combination of the predicted labels,
    which is the sum of their embeddings weighted by their probabilities (Algorithm 1). The texts of
    the documents are not used. With a classifier of features, the documents may be features.

    Parameters
    ----------
    classifier : estimator or str, default=None
        Any classifier with `predict_proba`, or the id of a method; by default one linear classifier
        per label on TF-IDF weights.
    encoder, min_probability, max_predicted, finetune, finetune_steps, fusion, index_above, n_jobs
        As for :class:`~labelweave.unseen.xml0.XML0`.
    threshold, validation_fraction, random_state
        As in :class:`~labelweave.base.MultiLabelClassifier`.

    References
    ----------
    .. [1] N. Ostapuk, L. Dolamic, A. Mermoud and P. Cudre-Mauroux. Leveraging pre-trained
       extreme multi-label classifiers for zero-shot learning. 2024.

    Examples
    --------
    >>> texts = ["deep sea", "blue sea", "hot sand", "dry sand"] * 10
    >>> labels = [["sea life"], ["sea life"], ["desert land"], ["desert land"]] * 10
    >>> model = XML0LF(encoder="tfidf", random_state=0).fit(texts, labels, labels=["sea", "land"])
    >>> [row[0][0] for row in model.rank(["deep blue sea", "hot dry sand"], 1, among="unseen")]
    ['sea', 'land']
    """

    def _default_combination(self) -> ScoreCombination:
        return ScoreCombination(["fusion"], np.ones(1), 10.0, -5.0)
