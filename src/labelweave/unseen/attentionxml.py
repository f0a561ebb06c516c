"""AttentionXML: a BiLSTM with one attention per label, and a label tree for many labels."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from numbers import Integral, Real
from os import PathLike
from typing import Any, ClassVar, Self

import numpy as np
import scipy.sparse as sp
import torch
from sklearn.preprocessing import normalize
from sklearn.utils._param_validation import Interval, StrOptions
from torch import nn

from labelweave.labels import LabelMatrix
from labelweave.nn.estimator import NeuralClassifier, TrainingSession
from labelweave.nn.task import Task
from labelweave.text.checks import checked_texts
from labelweave.text.tfidf import string_tags
from labelweave.unseen.attentionxml_averaging import AveragedTask
from labelweave.unseen.attentionxml_network import (
    UNKNOWN,
    LabelAttention,
    LabelTreeNetwork,
    TokenEncoder,
    TreeTask,
    balanced_groups,
)

__all__ = ["AttentionXML"]

_WORD = re.compile(r"\w+")
_ONE_OR_MORE = Interval(Integral, 1, None, closed="left")


class _FlatNetwork(nn.Module):
    """A network without a label tree: it computes the attention of every label."""

    def __init__(self, encoder: TokenEncoder, labels: LabelAttention) -> None:
        super().__init__()
        self.encoder = encoder
        self.labels = labels

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.labels(*self.encoder(x))


class AttentionXML(NeuralClassifier):
    """A classifier of texts with one attention over the words per label [1]_.

    Words are embedded and read by a bidirectional LSTM. Each label averages the outputs with its
    own softmax weights, and a head that all labels share turns the average into a logit.

    Parameters
    ----------
    embedding : int, default=300
        Dimension of the word vectors, which are trained.
    hidden : int, default=256
        Units of the LSTM per direction.
    head : int, default=256
        Width of the shared head.
    word_dropout : float, default=0.2
    dropout : float, default=0.5
        After the LSTM.
    max_tokens : int, default=500
        Number of words of a text that are read.
    max_words : int, default=50000
        Size of the vocabulary, which holds the most frequent words.
    tree_above : int, default=2000
        With more labels than this a tree of two levels is used: the first scores groups of
        labels, the second the labels of the best groups.
    group_size : int, default=32
        Largest number of labels per group.
    beam : int, default=16
        Number of groups whose labels are scored.
    ema_decay : float, default=0.99
        Decay of the moving average of the weights, which is used for prediction; 0 for none.
    epochs : int, default=30
    scale : {"none"}, default="none"
        Words are not scaled.
    batch_size, min_steps, lr, weight_decay, schedule, schedule_params, clip_norm, monitor,
    patience, device, precision, checkpoint, checkpoint_every, callbacks, verbose, threshold,
    validation_fraction, random_state
        The other parameters of :class:`labelweave.nn.estimator.NeuralClassifier`.

    Notes
    -----
    The network and its training have the paper's settings for its smaller data sets (EUR-Lex and
    Wiki10-31K). For its larger ones it has a wider network, with two layers in the head.

    *Choices.* A tree is used above 2,000 labels and the vocabulary has 50,000 words, which limits
    the memory; the original has no tree up to 31,000 labels and a vocabulary of 500,000 words:
    :meth:`published` has these. Word vectors are trained from scratch; the paper takes those of
    GloVe. The LSTM starts from zero, not from a learnt state, and gradients are not clipped. A
    moving average replaces stochastic weight averaging. The tree has two levels that share one
    encoder and are trained together, whereas the original trains one network per level. Training
    stops early by the validation loss, the original by nDCG@5. A label outside the beam has
    probability 1e-6.

    References
    ----------
    .. [1] R. You, Z. Zhang, Z. Wang, S. Dai, H. Mamitsuka and S. Zhu. AttentionXML: label
       tree-based attention-aware deep model for high-performance extreme multi-label text
       classification. NeurIPS 2019.

    Examples
    --------
    >>> seen = ["deep sea", "hot sun", "sun over the sea", "nothing"]
    >>> texts = [f"{text} {i}" for i in range(10) for text in seen]
    >>> labels = [["sea"], ["sun"], ["sea", "sun"], []] * 10
    >>> model = AttentionXML(hidden=8, embedding=8, head=8, epochs=40, lr=0.02, random_state=0)
    >>> model.fit(texts, labels).predict_labels(["a deep sea", "hot sun"])
    [['sea'], ['sun']]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **NeuralClassifier._parameter_constraints,
        "embedding": [_ONE_OR_MORE],
        "hidden": [_ONE_OR_MORE],
        "head": [_ONE_OR_MORE],
        "max_tokens": [Interval(Integral, 1, 2**16, closed="both")],
        "max_words": [_ONE_OR_MORE],
        "tree_above": [_ONE_OR_MORE],
        "group_size": [_ONE_OR_MORE],
        "beam": [_ONE_OR_MORE],
        "scale": [StrOptions({"none"})],
        "word_dropout": [Interval(Real, 0, 1, closed="left")],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "ema_decay": [Interval(Real, 0, 1, closed="left")],
    }

    n_features_in_: Any = None  # texts have no columns

    def __init__(
        self,
        embedding: int = 300,
        *,
        hidden: int = 256,
        head: int = 256,
        word_dropout: float = 0.2,
        dropout: float = 0.5,
        max_tokens: int = 500,
        max_words: int = 50_000,
        tree_above: int = 2000,
        group_size: int = 32,
        beam: int = 16,
        ema_decay: float = 0.99,
        epochs: int = 30,
        scale: str = "none",
        batch_size: int = 40,
        min_steps: int | str = 1,
        lr: float = 1e-3,
        weight_decay: float = 0.0,
        schedule: str = "constant",
        schedule_params: Mapping[str, Any] | None = None,
        clip_norm: float | None = None,
        monitor: str = "val_loss",
        patience: int | None = 10,
        device: str = "cpu",
        precision: str = "32-true",
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_every: float = 30.0,
        callbacks: Sequence[Any] | None = None,
        verbose: int = 0,
        threshold: Any = 0.5,
        validation_fraction: float = 0.2,
        random_state: Any = None,
    ) -> None:
        super().__init__(
            epochs=epochs,
            scale=scale,
            batch_size=batch_size,
            min_steps=min_steps,
            lr=lr,
            weight_decay=weight_decay,
            schedule=schedule,
            schedule_params=schedule_params,
            clip_norm=clip_norm,
            monitor=monitor,
            patience=patience,
            device=device,
            precision=precision,
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
            callbacks=callbacks,
            verbose=verbose,
            threshold=threshold,
            validation_fraction=validation_fraction,
            random_state=random_state,
        )
        self.embedding = embedding
        self.hidden = hidden
        self.head = head
        self.word_dropout = word_dropout
        self.dropout = dropout
        self.max_tokens = max_tokens
        self.max_words = max_words
        self.tree_above = tree_above
        self.group_size = group_size
        self.beam = beam
        self.ema_decay = ema_decay

    @classmethod
    def published(cls, dataset: str | None = None) -> Self:
        """Return an estimator with the paper's settings for its smaller data sets.

        The vocabulary has 500,000 words. The paper's data sets have up to 31,000 labels without a
        tree, and half a million or more with one; the limit here lies between. The settings are
        the same for all data sets.
        """
        return cls(max_words=500_000, tree_above=100_000)

    # -- from texts to token numbers ---------------------------------------------------

    def _checked_features(self, X: Any, *, reset: bool) -> np.ndarray:
        texts = [self._words(text) for text in checked_texts(X)]
        if reset:
            counts = Counter(word for words in texts for word in words)
            common = sorted(counts, key=lambda word: (-counts[word], word))[: self.max_words]
            self.vocabulary_ = common
        number = {word: i for i, word in enumerate(self.vocabulary_, start=UNKNOWN + 1)}
        tokens = np.zeros((len(texts), self.max_tokens), dtype=np.int32)
        for row, words in enumerate(texts):
            tokens[row, : len(words)] = [number.get(word, UNKNOWN) for word in words]
        return tokens

    def _words(self, text: str) -> list[str]:
        words = (match.group().lower() for match in _WORD.finditer(text))
        return [word for word, _ in zip(words, range(self.max_tokens), strict=False)]

    # -- the network -------------------------------------------------------------------

    def _learn_statistics(self, X: Any, Y: LabelMatrix, row_weight: np.ndarray | None) -> None:
        super()._learn_statistics(X, Y, row_weight)
        self.groups_ = None
        if Y.n_labels > self.tree_above:
            features = _label_features(X, Y, len(self.vocabulary_) + UNKNOWN + 1)
            self.groups_ = balanced_groups(features, self.group_size, self._generator())

    def _build_network(self, n_features: int, n_labels: int) -> nn.Module:
        n_tokens = len(self.vocabulary_) + UNKNOWN + 1
        encoder = TokenEncoder(
            n_tokens, self.embedding, self.hidden, self.word_dropout, self.dropout
        )
        width = 2 * self.hidden
        if self.groups_ is None:
            return _FlatNetwork(encoder, LabelAttention(n_labels, width, self.head))
        members = torch.from_numpy(self.groups_)
        return LabelTreeNetwork(encoder, members, n_labels, width, self.head, self.beam)

    def _build_task(self, network: nn.Module, session: TrainingSession) -> Task:
        task = super()._build_task(network, session)
        if isinstance(network, LabelTreeNetwork):
            task = TreeTask(network, self._chosen_loss()[1], self._optimizer_options())
        return AveragedTask(task, self.ema_decay) if self.ema_decay else task

    def _row_size(self, n_features: int, n_labels: int) -> int:
        n_attended = n_labels if self.groups_ is None else self.beam * self.group_size
        return n_attended * max(n_features, 2 * self.hidden)

    # -- persistence and tags ----------------------------------------------------------

    def _state(self) -> dict[str, Any]:
        return {**super()._state(), "vocabulary": self.vocabulary_, "groups": self.groups_}

    def _set_state(self, state: Mapping[str, Any]) -> None:
        self.vocabulary_ = state["vocabulary"]
        self.groups_ = state["groups"]
        super()._set_state(state)

    def __sklearn_tags__(self) -> Any:
        return string_tags(super().__sklearn_tags__())

    @classmethod
    def _test_params(cls) -> dict[str, Any]:
        small = {"embedding": 8, "hidden": 8, "head": 8, "max_tokens": 12, "ema_decay": 0.0}
        return {**super()._test_params(), **small, "lr": 0.02, "epochs": 60}


def _label_features(tokens: np.ndarray, Y: LabelMatrix, n_tokens: int) -> sp.csr_array:
    """TF-IDF weights of the texts of each label, as rows of length one."""
    rows, places = np.nonzero(tokens > UNKNOWN)
    ones = np.ones(len(rows), dtype=np.float32)
    texts = sp.csr_array((ones, (rows, tokens[rows, places])), shape=(len(tokens), n_tokens))
    idf = np.log(len(tokens) / np.maximum((texts > 0).sum(axis=0), 1))
    weighted = normalize(texts.multiply(np.asarray(idf).reshape(1, -1)).tocsr())
    of_labels = sp.csr_array(Y.positive()).astype(np.float32).T @ weighted
    return sp.csr_array(normalize(of_labels))
