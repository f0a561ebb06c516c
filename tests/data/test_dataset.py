import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from labelweave.data import Dataset
from labelweave.exceptions import InputError


@pytest.mark.parametrize(
    "X",
    [
        np.arange(8.0).reshape(4, 2),
        sp.csr_matrix(np.eye(4)),
        pd.DataFrame({"f": [1, 2, 3, 4]}),
        ["one", "two", "three", "four"],
    ],
    ids=["dense", "sparse", "frame", "texts"],
)
def test_rows_are_selected_in_all_attributes(X):
    data = Dataset(X, np.eye(4), row_ids=list("abcd"), part=["train", "train", "test", "test"])
    part = data[[3, 1]]
    assert len(part) == 2
    assert part.row_ids == ["d", "b"]
    assert list(part.part) == ["test", "train"]
    np.testing.assert_array_equal(part.Y.to_numpy(), np.eye(4)[[3, 1]])
    assert part.is_text == isinstance(X, list)


def test_summary():
    data = Dataset(np.eye(3), np.array([[1, 1, 0], [0, 0, 0], [1, np.nan, 0]]), name="toy")
    facts = data.summary()
    assert facts["cardinality"] == pytest.approx(1.0)
    assert facts["rows_without_label"] == 1
    assert facts["labels_never_positive"] == 1
    assert facts["unknown"] == 1
    assert facts["official_parts"] is None


def test_lengths_must_agree():
    with pytest.raises(InputError, match="X has 3 rows but Y has 2"):
        Dataset(np.eye(3), np.eye(2))
    with pytest.raises(InputError, match="groups has 1"):
        Dataset(np.eye(3), np.eye(3), groups=[1])


def test_labels_by_name():
    data = Dataset(np.eye(2), [["x"], ["y", "z"]])
    assert data.select_labels(["z", "x"]).Y.to_lists() == [["x"], ["z"]]
