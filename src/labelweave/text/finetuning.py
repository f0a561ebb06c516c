"""Fine-tuning that moves documents closer to the texts of their labels.

Either the encoder is fine-tuned, or a linear map after it.

Both minimise a contrastive loss over (document, label) pairs: the cosine with a label of the
document should be larger than with other labels, where other labels of the same document are
ignored. The encoder is compared on the labels of a batch, and on its documents as well
(:func:`pair_loss`); the map on all labels. (The XML0 paper states the comparison the other way
round.)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from labelweave.exceptions import InputError

_TEMPERATURE = 0.05
_PARTS = 5  # parts of the labels, each of which is held out of one map
_CHECK_EVERY = 20  # steps between two evaluations on the held-out labels
_PENALTY = 1.0  # weight of the map's squared distance to the identity


def fine_tune(
    embedder: Any,
    documents: Sequence[str],
    label_texts: Sequence[str],
    positive: sp.csr_array,
    *,
    steps: int = 100,
    batch_size: int = 32,
    lr: float = 2e-5,
    seed: int = 0,
    verbose: int = 0,
) -> Any:
    """Train the weights of a sentence embedder on pairs of documents and label texts.

    `positive` (n, L) is 1 where a document has a label. The learning rate falls linearly to zero. A
    step of 32 to 64 long documents takes 5 to 8 CPU seconds with MiniLM. Returns a new embedder;
    `embedder`, which is fitted, is not changed.
    """
    import copy

    import torch
    from torch.nn.functional import normalize

    from labelweave.nn.randomness import forked_rng
    from labelweave.progress import track

    if not hasattr(embedder, "network"):
        raise InputError(
            f"{type(embedder).__name__} has no network to fine-tune: use SentenceEmbedder"
        )
    network = copy.deepcopy(embedder.network()).train()
    optimizer = torch.optim.AdamW(network.parameters(), lr=lr, weight_decay=0.01)
    random = np.random.default_rng(seed)
    positive = sp.csr_array(positive)
    rows, labels = positive.nonzero()
    with forked_rng(seed):
        for step in track(range(steps), "fine-tuning", verbose=verbose):
            for group in optimizer.param_groups:
                group["lr"] = lr * (1 - step / steps)
            chosen = random.choice(len(rows), size=min(batch_size, len(rows)), replace=False)
            texts = [documents[i] for i in rows[chosen]], [label_texts[j] for j in labels[chosen]]
            left, right = (normalize(_forward(network, part), dim=1) for part in texts)
            is_positive = positive[rows[chosen]][:, labels[chosen]].toarray() > 0
            optimizer.zero_grad()
            pair_loss(left, right, torch.from_numpy(is_positive)).backward()
            optimizer.step()
    return embedder.with_weights(network.state_dict())


def pair_loss(documents: Any, labels: Any, is_positive: Any) -> Any:
    """Contrastive loss of a batch of pairs: document i and label i belong together.

    For each document it is the negative logarithm of the softmax of ``cosine / 0.05`` at its label,
    over the labels of the batch; for each label the same over the documents. Both are averaged
    over the pairs, and the loss is the mean of the two.

    Parameters
    ----------
    documents, labels : Tensor of shape (n, d)
        Rows of length one.
    is_positive : boolean Tensor of shape (n, n)
        Whether document i has label j. Such entries are ignored, except for the pairs themselves.
    """
    import torch
    from torch.nn.functional import cross_entropy

    logits = documents @ labels.T / _TEMPERATURE
    is_pair = torch.eye(len(logits), dtype=torch.bool)
    logits = logits.masked_fill(is_positive & ~is_pair, -torch.inf)
    target = torch.arange(len(logits))
    return (cross_entropy(logits, target) + cross_entropy(logits.T, target)) / 2


def _forward(network: Any, texts: list[str]) -> Any:
    features = (
        network.tokenize(texts) if hasattr(network, "tokenize") else network.preprocess(texts)
    )
    return network(features)["sentence_embedding"]


def learn_map(
    documents: np.ndarray,
    labels: np.ndarray,
    positive: sp.csr_array,
    *,
    steps: int = 200,
    batch_size: int = 256,
    lr: float = 1e-3,
    seed: int = 0,
) -> np.ndarray:
    """Learn a matrix that moves the vectors of documents closer to those of their labels.

    It is the mean of five maps. Each is learnt without a fifth of the labels and is the map of the
    step that ranked these labels best, so that it works for unseen labels as well. If no step
    improves their ranks, the map is the identity. `documents` (n, d) and `labels` (L, d) are unit
    vectors, and `positive` (n, L) is 1 where a document has a label.

    >>> vectors = np.eye(3, dtype=np.float32)
    >>> learn_map(vectors, vectors, sp.csr_array(np.eye(3)), steps=1).shape
    (3, 3)
    """
    import torch

    positive = sp.csr_array(positive)
    random = np.random.default_rng(seed)
    order = random.permutation(positive.shape[1])
    X, E = torch.from_numpy(np.asarray(documents)), torch.from_numpy(np.asarray(labels))
    held_sets = np.array_split(order, _PARTS)
    maps = [_one_map(X, E, positive, held, steps, batch_size, lr, random) for held in held_sets]
    return np.mean(maps, axis=0)


def _one_map(
    X: Any,
    E: Any,
    positive: sp.csr_array,
    held: np.ndarray,
    steps: int,
    batch_size: int,
    lr: float,
    random: np.random.Generator,
) -> np.ndarray:
    """Learn a map without the held-out labels and return the one that ranks these best."""
    import torch
    from torch.nn.functional import cross_entropy, normalize

    learnt = np.setdiff1d(np.arange(positive.shape[1]), held)
    identity = torch.eye(X.shape[1])
    best, best_rank = identity.numpy(), _reciprocal_rank(X, E, identity, positive, held)
    truth = sp.csr_array(positive[:, learnt])
    rows, columns = truth.nonzero()
    if not len(rows) or not len(held):
        return best
    matrix = identity.clone().requires_grad_()
    optimizer = torch.optim.Adam([matrix], lr=lr)
    targets = E[learnt]
    for step in range(1, steps + 1):
        chosen = random.integers(len(rows), size=min(batch_size, len(rows)))
        logits = normalize(X[rows[chosen]] @ matrix, dim=1) @ targets.T / _TEMPERATURE
        also = truth[rows[chosen]].toarray() > 0
        also[np.arange(len(chosen)), columns[chosen]] = False
        logits = logits.masked_fill(torch.from_numpy(also), -torch.inf)
        loss = cross_entropy(logits, torch.from_numpy(columns[chosen].astype(np.int64)))
        loss = loss + _PENALTY * ((matrix - identity) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % _CHECK_EVERY == 0 or step == steps:
            rank = _reciprocal_rank(X, E, matrix.detach(), positive, held)
            if rank > best_rank:
                best, best_rank = matrix.detach().numpy().copy(), rank
    return best


def _reciprocal_rank(
    X: Any, E: Any, matrix: Any, positive: sp.csr_array, held: np.ndarray
) -> float:
    """Mean reciprocal rank of the held-out labels over their documents."""
    import torch
    from torch.nn.functional import normalize

    truth = positive[:, held].toarray() > 0
    rows = np.flatnonzero(truth.any(axis=1))[:2000]
    if not len(rows):
        return 0.0
    with torch.no_grad():
        scores = (normalize(X[rows] @ matrix, dim=1) @ E[held].T).numpy()
    ranks = np.argsort(np.argsort(-scores, axis=1), axis=1) + 1
    return float((1 / ranks)[truth[rows]].mean())
