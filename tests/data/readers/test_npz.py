import io
import tracemalloc
import zipfile

import numpy as np
import pytest

from labelweave.data import compressed_files
from labelweave.data.readers.npz import read_npz
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError

ARRAYS = {
    "images": np.arange(24, dtype=np.uint8).reshape(3, 2, 4),
    "labels": np.array([[1, 0], [0, 0], [1, 1]], dtype=np.uint8),
    "label_names": np.array(["sea", "sun"]),
    "test": np.array([True, False, False]),
}


@pytest.fixture
def write(tmp_path):
    def to_file(**arrays):
        path = tmp_path / "icons.npz"
        np.savez_compressed(path, **arrays)
        return path

    return to_file


def test_images(write):
    data = read_dataset(write(**ARRAYS))
    assert data.X.shape == (3, 8)
    assert data.X.dtype == np.float32
    assert data.Y.to_lists() == [["sea"], [], ["sea", "sun"]]
    assert list(data.part) == ["test", "train", "train"]
    assert read_npz(write(**ARRAYS), flatten=False).X.shape == (3, 2, 4)


def test_features_with_unknown_labels(write):
    Y = np.array([[1, np.nan], [0, 1]])
    path = write(X=np.eye(2), Y=Y, feature_names=["a", "b"], ids=["r1", "r2"], part=["dev", "TEST"])
    data = read_npz(path)
    assert data.Y.n_unknown == 1
    assert list(data.part) == ["validation", "test"]
    batch = next(iter_batches(path, feature_names=["b"]))
    assert batch.X.tolist() == [[0], [1]]
    assert batch.row_ids == ["r1", "r2"]


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({"a": np.eye(2)}, "no array is called X"),
        ({"X": np.eye(2)}, "no array is called Y"),
        ({"X": np.eye(2), "Y": np.eye(3)}, "2 rows but Y has 3"),
        ({"X": np.eye(2), "Y": np.array(["a", "b"])}, "not a matrix of 0 and 1"),
        ({"X": np.array(["a"]), "Y": np.eye(1)}, "not a table"),
        ({"X": np.eye(2), "Y": np.eye(2) * 3}, "holds 3"),
        (
            {"X": np.eye(2), "Y": np.eye(2), "label_names": np.array(["a"])},
            "has 1 values for 2 labels",
        ),
    ],
)
def test_mistakes(write, arrays, message):
    with pytest.raises(DataFileError, match=message):
        read_npz(write(**arrays))


def test_pickles_are_never_loaded(write):
    class Trap:
        def __reduce__(self):
            return (pytest.fail, ("unpickled",))

    with pytest.raises(DataFileError, match="Python objects"):
        read_npz(write(X=np.array([[Trap()]], dtype=object)))


def test_a_shape_beyond_the_bytes_is_refused_before_it_is_allocated(tmp_path):
    path = tmp_path / "huge.npz"
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        header, {"descr": "<f8", "fortran_order": False, "shape": (10**15, 10)}
    )
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("X.npy", header.getvalue() + b"\0" * 64)
    with pytest.raises(DataFileError, match="claims the shape"):
        read_npz(path)


def test_a_bomb_is_refused_before_it_is_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 2**14)
    path = tmp_path / "data.npz"
    np.savez(path, X=np.zeros((400, 1600)), Y=np.ones((400, 2)))
    assert len(read_npz(path)) == 400
    np.savez_compressed(path, X=np.zeros((400, 1600)), Y=np.ones((400, 2)))
    monkeypatch.setattr(np.lib.format, "read_array", lambda *_, **__: pytest.fail("unpacked"))
    with pytest.raises(DataFileError, match="more than 500 times its size"):
        read_npz(path)


@pytest.mark.parametrize("name", ["label_names", "feature_names", "ids", "groups", "part", "test"])
def test_more_names_than_there_are_rows_and_columns_are_not_made_texts(write, name):
    """A number is 8 bytes, or less where it is packed; as a text in a list it is 200."""
    arrays = {"X": np.ones((3, 2)), "Y": np.ones((3, 2)), name: np.zeros(500_000)}
    path = write(**arrays)
    tracemalloc.start()
    try:
        with pytest.raises(DataFileError, match=f"the array '{name}' has 500000 values for"):
            read_npz(path)
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["label_names", "feature_names", "ids", "groups", "part", "test"])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        (np.full(2, 2**31 - 1, "<u4").view("<U1"), "bytes that are not text"),
        (np.array([b"\xff", b"a"]), "bytes that are not text"),
        (np.zeros(2, "V3"), "neither numbers nor texts"),
        (np.zeros(2, "M8[s]"), "neither numbers nor texts"),
    ],
    ids=["no such character", "not ASCII", "void", "dates"],
)
def test_names_that_are_no_texts(write, name, values, message):
    with pytest.raises(DataFileError, match=message):
        read_npz(write(X=np.ones((2, 2)), Y=np.ones((2, 2)), **{name: values}))


def test_truncated(write):
    path = write(**ARRAYS)
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(DataFileError, match="cannot be read"):
        read_npz(path)
