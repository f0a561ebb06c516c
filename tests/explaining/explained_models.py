"""Data whose labels depend on known columns, and models of them."""

import numpy as np
import pandas as pd

import labelweave as lw


def mixed_table(n_rows=240, seed=0):
    """A mixed table, and three labels: `cheap` by price, `acme` by brand, `none` by no column."""
    random = np.random.default_rng(seed)
    price = random.normal(size=n_rows)
    brand = random.choice(["acme", "bolt", "core"], n_rows)
    frame = pd.DataFrame(
        {
            "brand": brand,
            "price": np.where(random.random(n_rows) < 0.1, np.nan, price),
            "date": pd.date_range("2024-01-01", periods=n_rows).strftime("%Y-%m-%d"),
            "noise": random.normal(size=n_rows),
        }
    )
    labels = np.column_stack([price < 0, brand == "acme", random.random(n_rows) < 0.5])
    return frame, lw.as_labels(labels.astype(float), names=["cheap", "acme", "none"])


def linear_rows(n_rows=300, seed=0):
    """Independent columns of different units, and two labels of the first two columns."""
    random = np.random.default_rng(seed)
    X = random.normal(size=(n_rows, 5)) * [1, 10, 1, 1, 1] + [0, 5, 0, 2, 0]
    noise = random.normal(size=(n_rows, 2))
    Y = np.column_stack([X[:, 0], (X[:, 1] - 5) / 10]) + noise > 0
    return X, lw.as_labels(Y.astype(float), names=["a", "b"])


def word_texts(n_rows=80, seed=0):
    """Texts of random words; the labels are whether "sea" and "warm" are among them."""
    random = np.random.default_rng(seed)
    words = np.array(["sea", "Warm", "town", "may", "the"])
    chosen = random.random((n_rows, len(words))) < 0.5
    texts = [" ".join(["so", *random.permutation(words[row])]) for row in chosen]
    return texts, lw.as_labels(chosen[:, :2].astype(float), names=["sea", "warm"])
