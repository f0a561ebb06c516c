"""Small data files for the tests of the command line."""

import numpy as np


def make_rows(n_rows, seed=0):
    """Three features; red if the first is high, blue if the second is, round if the third is."""
    X = np.random.default_rng(seed).random((n_rows, 3)).round(4)
    return X, (X > 0.5).astype(int)


def write_csv(path, X, Y, *, names=("f1", "f2", "f3"), labels=("red", "blue", "round"), ids=None):
    """One column per feature and per label; without Y no labels, with `ids` a first column id."""
    columns = [*names, *(labels if Y is not None else [])]
    rows = X if Y is None else [[*x, *y] for x, y in zip(X, Y, strict=True)]
    if ids is not None:
        columns = ["id", *columns]
        rows = [[id, *row] for id, row in zip(ids, rows, strict=True)]
    path.write_text("".join(",".join(map(str, row)) + "\n" for row in [columns, *rows]))
    return path
