"""Data of the tour: real data if they are on this machine, otherwise made up; never downloaded."""

from __future__ import annotations

import numpy as np

from labelweave.data import Dataset, load_dataset
from labelweave.data.catalog import get_entry
from labelweave.labels import as_labels

__all__ = ["texts", "vectors"]

_SUBJECTS = {
    "sea": "wave salt fish tide coral sailor harbour shore whale reef",
    "desert": "sand dune camel heat oasis cactus dry nomad mirage scorpion",
    "forest": "oak moss fern wolf leaf bark trail owl mushroom pine",
    "kitchen": "oven knife flour pan recipe spoon stove bake butter apron",
    "music": "piano violin melody chord rhythm song orchestra drum choir tune",
    "space": "rocket orbit moon star comet planet telescope astronaut galaxy launch",
    "money": "bank loan coin market price trade credit budget tax invest",
    "health": "doctor fever vaccine heart nurse clinic pulse pain remedy blood",
    "school": "teacher lesson exam pupil chalk homework class grade book desk",
    "sport": "goal race team coach medal stadium runner score ball match",
    "seafood": "fish oven recipe coral pan salt butter shore knife whale",
    "concert": "stadium song orchestra team melody price drum market choir chord",
    "medicine class": "doctor lesson exam nurse pupil clinic book heart grade vaccine",
    "stargazing": "star telescope moon trail owl heat dune comet planet pine",
}


def vectors() -> tuple[Dataset, Dataset]:
    """Return training and test rows with features: scene, else yeast, else made up."""
    for name in ("scene", "yeast"):
        if get_entry(name).local_source() is not None:
            train, test = load_dataset(name).split()
            return train, test
    from sklearn.datasets import make_multilabel_classification

    X, Y = make_multilabel_classification(
        1500, n_features=40, n_classes=8, n_labels=2, random_state=0
    )
    train, test = Dataset(X, Y, name="made-up rows").split(test_size=0.3)
    return train, test


def texts(n_rows: int = 4000) -> tuple[Dataset, Dataset]:
    """Return training and test documents with named labels: cooking-se, else made up.

    Of cooking-se, labels with at least ten training and three test documents are kept.
    """
    if get_entry("cooking-se").local_source() is None:
        train, test = _made_up_texts().split(test_size=0.3)
        return train, test
    data = load_dataset("cooking-se")
    chosen = np.random.default_rng(0).permutation(len(data))[:n_rows]
    train, test = data[np.sort(chosen)].split(test_size=0.3)
    frequent = (train.Y.counts()[0] >= 10) & (test.Y.counts()[0] >= 3)
    names = [name for name, kept in zip(data.label_names, frequent, strict=True) if kept]
    return train.select_labels(names), test.select_labels(names)


def _made_up_texts() -> Dataset:
    """Make documents of twelve words drawn from the words of their one or two labels."""
    rng = np.random.default_rng(0)
    names = list(_SUBJECTS)
    documents, labels = [], []
    for _ in range(900):
        chosen = rng.choice(len(names), size=rng.integers(1, 3), replace=False)
        words = " ".join(_SUBJECTS[names[j]] for j in chosen).split()
        documents.append(" ".join(rng.choice(words, size=12)))
        labels.append([names[j] for j in chosen])
    matrix = as_labels(labels, descriptions=_SUBJECTS)
    return Dataset(documents, matrix, name="made-up texts")
