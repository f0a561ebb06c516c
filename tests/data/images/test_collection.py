"""A collection of images: as a matrix, decoded once and in advance, with clear errors."""

import pickle

import numpy as np
import pytest

from labelweave.data import Dataset
from labelweave.data.images import image_store as stores
from labelweave.data.images.collection import Images, as_images
from labelweave.data.images.decoding import ImageError, decode
from labelweave.exceptions import InputError

Image = pytest.importorskip("PIL.Image")


@pytest.fixture
def files(tmp_path):
    random = np.random.default_rng(0)
    paths = []
    for k in range(20):
        paths.append(tmp_path / f"{k:02d}.png")
        Image.fromarray(random.integers(0, 256, (12, 9, 3), dtype=np.uint8)).save(paths[-1])
    return paths


def test_it_behaves_like_a_matrix(files):
    images = Images(files, size=6)
    assert images.shape == (20, 108)
    assert images.ndim == 2
    assert len(images[3:7]) == 4
    rows = np.asarray(images)
    assert rows.shape == (20, 108)
    assert np.array_equal(rows[4].reshape(6, 6, 3), decode(files[4], 6))
    mask = np.arange(20) % 2 == 1
    assert np.array_equal(np.asarray(images[mask]), rows[mask])
    assert np.array_equal(np.asarray(images[mask][[2, 0]]), rows[[5, 1]])
    assert np.array_equal(np.stack(list(images[:3])), rows[:3])


def test_an_image_is_decoded_once(files, monkeypatch):
    calls = []

    def counted(sources, size, resize):
        calls.extend(sources)
        return [decode(source, size, resize) for source in sources]

    monkeypatch.setattr(stores, "decode_many", counted)
    images = Images(files, size=6)
    assert calls == []  # nothing before it is needed
    images[:5].pixels()
    images[3:8].pixels()
    images.pixels()
    assert sorted(calls) == sorted(files)
    assert images.at(6)._store is images._store
    assert images.at(4)._store is images.at(4)._store  # decoded at this size once, too


@pytest.mark.parametrize("workers", [0, 2])
def test_batches_come_in_order_with_or_without_a_cache(files, workers, monkeypatch):
    expected = Images(files, size=6, workers=0).pixels()
    lists = [np.array([3, 4, 3]), np.array([19]), np.array([4, 0]), np.arange(20)]
    for room in (2**30, 0):
        monkeypatch.setattr(stores, "_MAX_MEMORY_BYTES", room)
        if room == 0:  # and none on the disk: every image is decoded at each use
            monkeypatch.setattr(stores, "_FREE_DISK_BYTES", 2**80)
        images = Images(files, size=6, workers=workers)
        for rows, batch in zip(lists, images.batches(lists), strict=True):
            assert np.array_equal(batch, expected[rows])


def test_many_images_are_kept_in_a_file(files, monkeypatch):
    monkeypatch.setattr(stores, "_MAX_MEMORY_BYTES", 0)
    monkeypatch.setattr(stores, "_FREE_DISK_BYTES", 0)
    images = Images(files, size=6)
    assert np.array_equal(images.pixels(), Images(files, size=6).pixels())
    assert isinstance(images._store._decoded, np.memmap)


def test_a_broken_image_is_named_when_it_is_needed(files, tmp_path):
    files[7].write_bytes(files[7].read_bytes()[:40])
    images = Images(files, size=6)
    assert images[:7].pixels().shape == (7, 6, 6, 3)
    with pytest.raises(ImageError, match=r"07\.png"):
        images.pixels()
    assert [row for row, _ in images.problems()] == [7]
    assert [row for row, _ in images[5:10].problems()] == [2]
    assert images[8:].pixels().shape[0] == 12  # the others are fine


def test_it_can_be_pickled(files):
    images = Images(files, size=6)[4:9]
    images.pixels()
    again = pickle.loads(pickle.dumps(images))
    assert np.array_equal(again.pixels(), images.pixels())


def test_arrays_are_images_too():
    random = np.random.default_rng(0)
    colour = random.integers(0, 256, (5, 8, 8, 3), dtype=np.uint8)
    assert np.array_equal(Images(colour, size=8).pixels(), colour)
    grey = Images(colour[..., 0], size=8).pixels()
    assert np.array_equal(grey, np.repeat(colour[..., :1], 3, axis=3))
    shares = as_images(colour / 255)
    assert shares.size == 8
    assert np.array_equal(shares.pixels(), colour)
    assert as_images(colour, size=4).pixels().shape == (5, 4, 4, 3)
    assert np.array_equal(Images([colour[0], colour[1, :5]], size=8).pixels()[0], colour[0])
    assert as_images(colour[..., 0] > 99).pixels().max() == 255


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (np.zeros((2, 4, 4, 7), np.uint8), "shape"),
        (np.full((2, 4, 4), 300), "from 300"),
        (np.full((2, 4, 4), -0.5), "numbers from 0 to 1"),
        ("one.png", "list of paths"),
        ([3, 4], "row 0"),
        (5, "list of paths"),
    ],
)
def test_input_without_images_is_refused(wrong, words):
    with pytest.raises(InputError, match=words):
        Images(wrong)


def test_settings_are_checked(files):
    with pytest.raises(InputError, match="resize"):
        Images(files, resize="stretch")
    with pytest.raises(InputError, match="size"):
        Images(files, size=0)


def test_a_data_set_of_images(files):
    data = Dataset(Images(files, size=6), np.eye(20)[:, :3], row_ids=list(range(20)))
    assert data.is_image
    assert not data.is_text
    assert "images of 6 pixels" in repr(data)
    train, test = data.split(test_size=0.5, random_state=0)
    assert len(train) == len(test) == 10
    pixels = data.X.pixels()
    assert np.array_equal(test.X.pixels(), pixels[np.array(test.row_ids)])


def test_hashes_depend_on_the_content(files, tmp_path):
    copy = tmp_path / "copy.png"
    copy.write_bytes(files[0].read_bytes())
    first, second, third = Images([files[0], copy, files[1]], size=6).hashes()
    assert first == second != third
    images = Images(files, size=6)
    assert images.fingerprint() != images.at(5).fingerprint()
    assert images.fingerprint() != images[1:].fingerprint()


def test_collections_are_concatenated(files):
    from labelweave.data.splits import concatenate_parts

    data = Dataset(Images(files, size=6), np.eye(20)[:, :3])
    joined = concatenate_parts({"train": data[:5], "test": data[5:8]})
    assert np.array_equal(joined.X.pixels(), data.X[:8].pixels())
