"""ConSE: labels near the weighted mean of the predicted labels."""

from __future__ import annotations

import numpy as np

from labelweave.unseen._fusion.label_extension import SingleScoreExtension
from labelweave.unseen._fusion.score_combination import ScoreCombination

__all__ = ["ConSE"]


class ConSE(SingleScoreExtension):
    """Labels near the convex combination of the embeddings of the predicted labels [1]_.

    There is one combination per document: all predicted labels, weighted by their probabilities. As
    in the comparison of the XML0 paper, the predicted labels are those above a threshold.

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
