"""Small data files for the tests of the command line."""

import numpy as np


def make_rows(n_rows, seed=0):
    """Three features; red if the first is high, blue if the second is, round if the third is."""
    X = np.random.default_rng(seed).random((n_rows, 3)).round(4)
    return X, (X > 0.5).astype(int)


def write_csv(path, X, Y, *, names=("f1", "f2", "f3"), ids=None):
    header = [
        *(["id"] if ids else []),
        *names,
        *(["red", "blue", "round"] if Y is not None else []),
    ]
    lines = [",".join(header)]
    for i, row in enumerate(X):
        cells = [*([ids[i]] if ids else []), *row, *([] if Y is None else Y[i])]
        lines.append(",".join(map(str, cells)))
    path.write_text("\n".join(lines) + "\n")
    return path
