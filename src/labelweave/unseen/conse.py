"""ConSE: labels near the weighted mean of the predicted ones."""

from __future__ import annotations

import numpy as np

from labelweave.unseen._fusion.label_extension import SingleScoreExtension
from labelweave.unseen._fusion.score_combination import ScoreCombination

__all__ = ["ConSE"]


class ConSE(SingleScoreExtension):
    """The convex combination of the predicted labels' embeddings, and the labels near it [1]_.

    One combination, of all labels that the classifier predicts for a document, each weighted by
    its probability. As in the comparison of XML0, the labels above a threshold take part.

    Parameters
    ----------
    classifier : estimator, default=None
        Any classifier with `predict_proba`; one linear classifier a label on TF-IDF weights by
        default.
    encoder, min_probability, max_predicted, fusion, n_jobs
        As for :class:`~labelweave.unseen.xml0.XML0`.
    threshold, validation_fraction, random_state
        As in every estimator.

    References
    ----------
    .. [1] M. Norouzi, T. Mikolov, S. Bengio, Y. Singer, J. Shlens, A. Frome, G. S. Corrado and
       J. Dean. Zero-shot learning by convex combination of semantic embeddings. ICLR 2014.

    Examples
    --------
    >>> texts = ["deep sea", "blue sea", "hot sand", "dry sand"] * 10
    >>> labels = [["sea life"], ["sea life"], ["desert land"], ["desert land"]] * 10
    >>> model = ConSE(encoder="tfidf", random_state=0).fit(texts, labels, labels=["sea", "land"])
    >>> [row[0][0] for row in model.rank(["deep blue sea", "hot dry sand"], 1, among="unseen")]
    ['sea', 'land']
    """

    def _default_combination(self) -> ScoreCombination:
        return ScoreCombination(["conse"], np.ones(1), 10.0, -5.0)
