"""Digit scenes: labels match the digits, and train and test scenes share no handwriting."""

import numpy as np
import pytest

import labelweave as lw
from labelweave.data._catalog import digit_scenes as scenes
from labelweave.data._catalog.digit_scenes import digit_scenes


def test_scenes_are_the_same_each_time():
    first, second = digit_scenes(30, 10), digit_scenes(30, 10)
    assert np.array_equal(first.X, second.X)
    assert not np.array_equal(first.X, digit_scenes(30, 10, seed=1).X)
    per_row = np.asarray(first.Y.positive().sum(axis=1)).ravel()
    assert per_row.min() >= 1
    assert per_row.max() <= 4


def test_a_digit_is_in_train_or_in_test(monkeypatch):
    shown = []

    def noted(digits, random):
        shown.append({digit.tobytes() for digit in digits})
        return np.zeros((32, 32), dtype=np.uint8)

    monkeypatch.setattr(scenes, "_scene", noted)
    data = scenes.digit_scenes(200, 200)
    train, test = (
        set().union(*(shown[k] for k in np.flatnonzero(data.part == part)))
        for part in ("train", "test")
    )
    assert len(train) > 100
    assert len(test) > 100
    assert len(train & test) <= 2  # two people may have written the very same


@pytest.mark.parametrize("images", [False, True])
def test_digit_scenes_in_the_catalog(images):
    data = lw.load_dataset("digit-scenes", images=images)
    assert data.X.shape == ((3000, 32, 32) if images else (3000, 1024))
    assert data.is_image == images
    assert data.facts["loaded_from"] == "generated"
