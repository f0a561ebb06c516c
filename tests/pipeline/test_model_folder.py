"""What a model folder keeps beside the model: hashes of the rows that were used."""

import io
import json

import numpy as np
import pytest

from labelweave.data import Dataset
from labelweave.exceptions import ModelFolderError
from labelweave.pipeline import model_folder
from labelweave.pipeline.model_folder import read_origin

ORIGIN = {
    "data": "x",
    "source": "x.csv",
    "reading": {},
    "fingerprint": None,
    "feature_names": ["a"],
    "protocol": {},
}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "training.json").write_text(json.dumps(ORIGIN))
    np.save(tmp_path / "rows-seen.npy", np.arange(3, dtype=np.uint64))
    (tmp_path / "reference.json").write_text('{"kind": "array", "rows": [[1.5], [2.5]]}')
    return tmp_path


def test_the_record_of_the_training_is_read(folder):
    origin = read_origin(folder)
    assert origin.source == "x.csv"
    assert origin.seen.tolist() == [0, 1, 2]
    assert origin.reference.tolist() == [[1.5], [2.5]]


def test_typical_values_of_many_rows_come_from_some_of_them(monkeypatch):
    data = Dataset(np.arange(100.0)[:, None], [["a"]] * 100)
    expected = np.array(model_folder._reference_of(data)["rows"])
    monkeypatch.setattr(model_folder, "_REFERENCE_ROWS", 30)
    few = np.array(model_folder._reference_of(data)["rows"])
    assert (few != expected).any()
    np.testing.assert_allclose(few, expected, atol=4)
    assert model_folder._reference_of(Dataset(["a text"], [["a"]])) is None


@pytest.mark.parametrize("name", ["training.json", "rows-seen.npy", "reference.json"])
def test_links_and_devices_beside_the_model_are_not_read(folder, name):
    (folder / name).rename(folder / "elsewhere")
    (folder / name).symlink_to(folder / "elsewhere")
    with pytest.raises(ModelFolderError, match="symbolic link"):
        read_origin(folder)
    (folder / name).unlink()
    (folder / name).symlink_to("/dev/zero")
    with pytest.raises(ModelFolderError, match="symbolic link"):
        read_origin(folder)


@pytest.mark.parametrize("content", ["[" * 100_000, '{"data": NaN}', "[]", '{"data": 1}'])
def test_a_damaged_record_is_one_sentence(folder, content):
    (folder / "training.json").write_text(content)
    with pytest.raises(ModelFolderError, match=r"training\.json"):
        read_origin(folder)


def test_row_hashes_that_the_file_does_not_hold(folder):
    header = io.BytesIO()
    facts = {"descr": "<u8", "fortran_order": False, "shape": (2_000_000_000,)}
    np.lib.format.write_array_header_1_0(header, facts)
    (folder / "rows-seen.npy").write_bytes(header.getvalue() + bytes(24))
    with pytest.raises(ModelFolderError, match=r"rows-seen\.npy beside it is damaged"):
        read_origin(folder)


def test_row_hashes_that_are_an_archive(folder):
    """np.load would open it as .npz."""
    np.savez(folder / "archive.npz", a=np.arange(3))
    (folder / "archive.npz").rename(folder / "rows-seen.npy")
    with pytest.raises(ModelFolderError, match=r"rows-seen\.npy beside it is damaged"):
        read_origin(folder)
