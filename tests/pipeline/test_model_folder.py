"""What a model folder keeps beside the model: hashes of the rows that were used."""

import io
import json

import numpy as np
import pytest

from labelweave.exceptions import ModelFolderError
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
    return tmp_path


def test_the_record_of_the_training_is_read(folder):
    origin = read_origin(folder)
    assert origin.source == "x.csv"
    assert origin.seen.tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["training.json", "rows-seen.npy"])
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
