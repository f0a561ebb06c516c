"""Scenes made of scikit-learn's handwritten digits: multi-label images without a download."""

from __future__ import annotations

import numpy as np

from labelweave.data.dataset import Dataset
from labelweave.labels import LabelMatrix

_SIDE = 32
_TEST_SHARE = 0.3  # share of the handwritten digits that are used in test scenes only
_MAX_DIGITS = 4


def digit_scenes(n_train: int = 2000, n_test: int = 1000, *, seed: int = 0) -> Dataset:
    """Make images of 32 x 32 bytes with one to four digits each; the labels are the digits.

    Each digit is drawn at one and a half times or twice its size in its own quarter of the image,
    dark on light or light on dark, on a noisy background. Train and test scenes are made of
    different handwritten digits.

    >>> data = digit_scenes(20, 10)
    >>> data.X.shape, data.X.dtype.name, data.Y.names[:3]
    ((30, 32, 32), 'uint8', ('0', '1', '2'))
    """
    from sklearn.datasets import load_digits

    written, digit = load_digits(return_X_y=True)
    strokes = (written.reshape(-1, 8, 8) / 16).astype(np.float32)
    random = np.random.default_rng(seed)
    order = random.permutation(len(digit))
    n_test_digits = int(_TEST_SHARE * len(digit))
    pools = {"train": order[n_test_digits:], "test": order[:n_test_digits]}
    counts = {"train": n_train, "test": n_test}
    scenes = np.zeros((n_train + n_test, _SIDE, _SIDE), dtype=np.uint8)
    values = np.zeros((len(scenes), 10), dtype=np.float32)
    part = [name for name, n_rows in counts.items() for _ in range(n_rows)]
    for k, name in enumerate(part):
        chosen = random.choice(pools[name], size=random.integers(1, _MAX_DIGITS + 1), replace=False)
        scenes[k] = _scene(strokes[chosen], random)
        values[k, digit[chosen]] = 1
    names = tuple(map(str, range(10)))
    return Dataset(scenes, LabelMatrix(values, names), name="digit-scenes", part=part)


def _scene(digits: np.ndarray, random: np.random.Generator) -> np.ndarray:
    half = _SIDE // 2
    canvas = 0.15 * random.random((_SIDE, _SIDE), dtype=np.float32)
    for quarter, stroke in zip(random.permutation(4), digits, strict=False):
        side = int(random.choice([12, half]))
        pixels = np.arange(side) * 8 // side
        top, left = random.integers(0, half - side + 1, size=2)
        top, left = top + half * (quarter // 2), left + half * (quarter % 2)
        place = canvas[top : top + side, left : left + side]
        np.maximum(place, stroke[np.ix_(pixels, pixels)], out=place)
    if random.random() < 0.5:
        canvas = 1 - canvas
    return np.rint(canvas * 255).astype(np.uint8)
