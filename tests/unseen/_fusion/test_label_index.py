"""The index of labels is saved as arrays, which are checked when they are loaded."""

import numpy as np
import pytest

from labelweave.exceptions import InputError
from labelweave.unseen._fusion.label_index import LabelIndex

pytest.importorskip("faiss", reason="FAISS is not installed")


@pytest.fixture(scope="module")
def vectors():
    values = np.random.default_rng(0).normal(size=(600, 8)).astype(np.float32)
    return values / np.linalg.norm(values, axis=1, keepdims=True)


def test_a_loaded_index_finds_the_same_labels_and_can_be_changed(vectors):
    index = LabelIndex(vectors, np.arange(600))
    again = LabelIndex.from_arrays(index.to_arrays(), 600)
    expected = index.search(vectors[:50], 5)
    np.testing.assert_array_equal(again.search(vectors[:50], 5), expected)
    again.remove(np.arange(10))
    again.add(vectors[:10], np.arange(10))
    np.testing.assert_array_equal(again.search(vectors[:50], 5), expected)
    assert len(again) == 600


@pytest.mark.parametrize(
    "change",
    [
        {"ids": np.full(600, 10**6)},
        {"ids": np.full(600, -1)},
        {"ids": np.arange(3)},
        {"sizes": np.array([600])},
        {"codes": np.zeros((600, 3), np.uint8)},
        {"ranges": np.zeros(3, np.float32)},
        {"centres": np.zeros((0, 8), np.float32)},
    ],
    ids=lambda change: next(iter(change)),
)
def test_arrays_that_do_not_fit_together_are_refused(vectors, change):
    stored = LabelIndex(vectors, np.arange(600)).to_arrays()
    with pytest.raises(InputError, match="do not fit together"):
        LabelIndex.from_arrays({**stored, **change}, 600)
