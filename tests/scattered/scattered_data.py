"""Small teachers for the tests (linear chains, and trained ones on easy data), and references."""

from itertools import product

import numpy as np
from scipy.special import expit
from sklearn.datasets import make_multilabel_classification

from labelweave.dependent.ofcc import OFCC
from labelweave.scattered.teacher import Teacher


class FakeChain:
    """A chain whose reaction to the logits of other labels is linear and known."""

    def __init__(self, weights, influence):
        self.weights = np.asarray(weights, dtype=np.float64)
        self.influence = np.asarray(influence, dtype=np.float64)

    def _first_logits(self, X):
        return X @ self.weights

    def predict_proba(self, X):
        return expit(self._first_logits(X))

    def chain_logits(self, X, *, start=None):
        first = self._first_logits(X)
        return first if start is None else first + (start - first) @ self.influence


def fake_chains(n_features=4, seed=0):
    """Three chains over a..e that share labels in pairs, and all three share c."""
    rng = np.random.default_rng(seed)
    teachers = []
    for name, labels in (("one", "abc"), ("two", "cdb"), ("three", "eca")):
        weights = rng.normal(size=(n_features, 3))
        influence = rng.normal(scale=0.7, size=(3, 3))
        teachers.append(Teacher(FakeChain(weights, influence), list(labels), name=name))
    return teachers


def permuted(teacher, order, name=None):
    """The same teacher with its labels in another order."""
    model = teacher.model
    order = list(order)
    other = FakeChain(model.weights[:, order], model.influence[np.ix_(order, order)])
    return Teacher(other, [teacher.labels[j] for j in order], name=name or teacher.name)


def easy_data(n=600, n_labels=5, seed=0):
    X, Y = make_multilabel_classification(
        n, 12, n_classes=n_labels, n_labels=2, allow_unlabeled=False, random_state=seed
    )
    return X.astype(np.float64), Y


def small_chain(X, Y, seed=0, **changes):
    settings = {"epochs": 15, "lr": 1e-2, "random_state": seed, **changes}
    return OFCC(16, **settings).fit(X, Y)


def small_student(**changes):
    return OFCC(16, **{"epochs": 6, "lr": 1e-2, **changes})


def enumerated(p, weights):
    """P(k labels), and P(label) under weights, by enumeration of all label sets of each row."""
    sets = np.array(list(product([0, 1], repeat=p.shape[1])))
    size = sets.sum(axis=1)
    p_set = np.where(sets, p[:, None], 1 - p[:, None]).prod(axis=2)
    counts = np.stack([p_set[:, size == k].sum(axis=1) for k in range(p.shape[1] + 1)], axis=1)
    joint = p_set * weights[np.minimum(size, len(weights) - 1)]
    return counts, (joint @ sets) / joint.sum(axis=1, keepdims=True)
