"""Decoding one image: every mode, damaged files, and files that are too large."""

import struct
import zlib

import numpy as np
import pytest

from labelweave.data.images import decoding
from labelweave.data.images.decoding import MAX_PIXELS, ImageError, decode, decode_many
from labelweave.exceptions import InputError

Image = pytest.importorskip("PIL.Image")
ImageFile = pytest.importorskip("PIL.ImageFile")


def saved(folder, mode, colour, name="image.png", side=6, **options):
    path = folder / name
    Image.new(mode, (side, side), colour).save(path, **options)
    return path


@pytest.mark.parametrize(
    ("mode", "colour", "name", "expected"),
    [
        ("RGB", (10, 200, 30), "a.png", (10, 200, 30)),
        ("L", 77, "a.png", (77, 77, 77)),
        ("1", 1, "a.png", (255, 255, 255)),
        ("RGBA", (10, 200, 30, 0), "a.png", (255, 255, 255)),  # transparent: white
        ("RGBA", (10, 200, 30, 255), "a.png", (10, 200, 30)),
        ("LA", (77, 255), "a.png", (77, 77, 77)),
        ("I;16", 50 * 256, "a.png", (50, 50, 50)),
        ("F", 61.0, "a.tif", (61, 61, 61)),
        ("CMYK", (0, 0, 0, 255), "a.jpg", (0, 0, 0)),
        ("P", 0, "a.gif", (0, 0, 0)),
    ],
)
def test_every_mode_becomes_rgb(tmp_path, mode, colour, name, expected):
    pixels_read = decode(saved(tmp_path, mode, colour, name), 4)
    assert pixels_read.shape == (4, 4, 3)
    assert pixels_read.dtype == np.uint8
    assert np.abs(pixels_read.astype(int) - expected).max() <= 2


@pytest.mark.parametrize("mode", ["RGBA", "LA", "CMYK", "I;16", "P"])
def test_converting_a_large_image_in_strips_changes_nothing(monkeypatch, mode):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 24, 4), dtype=np.uint8)
    if mode == "I;16":
        values = pixels[:, :, 0].astype(np.uint16) * 9
        values[20:] = 7  # the depth is that of the whole image, not of a strip
        image = Image.fromarray(values)
    elif mode == "P":
        image = Image.fromarray(pixels[:, :, :3]).quantize(16)
        image.info["transparency"] = 3
    else:
        image = Image.fromarray(pixels, "RGBA").convert(mode)
    at_once = decode(image, 24)
    monkeypatch.setattr(decoding, "_STRIP_PIXELS", 24 * 7)
    assert np.array_equal(decode(image, 24), at_once)


def test_one_pixel_fills_the_square(tmp_path):
    pixels_read = decode(saved(tmp_path, "RGB", (1, 2, 3), side=1), 8)
    assert (pixels_read == (1, 2, 3)).all()


def test_the_first_picture_of_an_animation_is_taken(tmp_path):
    first, second = Image.new("L", (4, 4), 0), Image.new("L", (4, 4), 255)
    first.save(tmp_path / "a.gif", save_all=True, append_images=[second])
    assert decode(tmp_path / "a.gif", 4).max() == 0


def test_a_photograph_is_turned_upright(tmp_path):
    pixels = np.zeros((8, 8), dtype=np.uint8)
    pixels[:4] = 255  # light above
    image = Image.fromarray(pixels)
    exif = image.getexif()
    exif[0x0112] = 3  # held upside down
    image.save(tmp_path / "a.png", exif=exif)
    pixels_read = decode(tmp_path / "a.png", 8)[:, :, 0]
    assert pixels_read[:4].max() == 0
    assert pixels_read[4:].min() == 255


def test_rectangular_images_are_made_square():
    wide = np.zeros((4, 12), dtype=np.uint8)
    wide[:, 4:8] = 200
    crop, squash, pad = (decode(wide, 4, how)[:, :, 0] for how in ("crop", "squash", "pad"))
    assert (crop == 200).all()
    assert squash[:, 0].max() < 100 < squash[:, 1:3].min()
    assert pad[0].max() == 0  # black above and below
    assert pad[1:3].max() > 100


def test_the_same_as_pillow(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 30, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(tmp_path / "a.png")
    expected = np.asarray(Image.fromarray(pixels).resize((16, 16), Image.Resampling.BILINEAR))
    assert np.array_equal(decode(tmp_path / "a.png", 16), expected)


# -- bad input ------------------------------------------------------------------------------


def truncated_jpeg(folder):
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(folder / "cut.jpg")
    complete = (folder / "cut.jpg").read_bytes()
    (folder / "cut.jpg").write_bytes(complete[: len(complete) // 2])
    return folder / "cut.jpg"


def bomb(folder, side=40_000):
    """A PNG of a few hundred bytes that says it has 40,000 x 40,000 pixels."""

    def chunk(kind, body):
        check = struct.pack(">I", zlib.crc32(kind + body))
        return struct.pack(">I", len(body)) + kind + body + check

    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    body = zlib.compress(b"\0" * 100_000)
    chunks = chunk(b"IHDR", header) + chunk(b"IDAT", body) + chunk(b"IEND", b"")
    (folder / "bomb.png").write_bytes(b"\x89PNG\r\n\x1a\n" + chunks)
    return folder / "bomb.png"


def jpeg_bomb(folder):
    """A small JPEG whose header says 40,000 x 40,000."""
    Image.new("RGB", (8, 8)).save(folder / "bomb.jpg")
    data = bytearray((folder / "bomb.jpg").read_bytes())
    at = data.index(b"\xff\xc0") + 5
    data[at : at + 4] = struct.pack(">HH", 40_000, 40_000)
    (folder / "bomb.jpg").write_bytes(data)
    return folder / "bomb.jpg"


def text_file(folder):
    (folder / "note.jpg").write_text("no image")
    return folder / "note.jpg"


def empty_file(folder):
    (folder / "empty.png").touch()
    return folder / "empty.png"


@pytest.mark.parametrize("make", [truncated_jpeg, bomb, jpeg_bomb, text_file, empty_file])
def test_a_broken_file_is_named(tmp_path, make):
    path = make(tmp_path)
    with pytest.raises(ImageError, match=path.name) as caught:
        decode(path, 32)
    assert "\n" not in str(caught.value)
    assert caught.value.path == str(path)


@pytest.mark.filterwarnings("ignore:Image size")  # what Pillow says of 81 million pixels
def test_a_bomb_takes_no_memory(tmp_path, monkeypatch):
    paths = [bomb(tmp_path), jpeg_bomb(tmp_path)]
    monkeypatch.setattr(ImageFile.ImageFile, "load", lambda self: pytest.fail("it is decoded"))
    for path in paths:
        with pytest.raises(ImageError, match="more than the limit of 64,000,000 pixels"):
            decode(path, 32)
    with pytest.raises(ImageError, match="more than"):  # large, but not for Pillow
        decode(bomb(tmp_path, side=9_000), 32)
    assert MAX_PIXELS < 9_000**2


def test_a_missing_file_and_a_folder_are_named(tmp_path):
    with pytest.raises(ImageError, match="no such image"):
        decode(tmp_path / "none.png", 4)
    with pytest.raises(ImageError, match="folder"):
        decode(tmp_path, 4)


@pytest.mark.parametrize("wrong", [np.zeros((4, 4, 2), np.uint8), np.zeros((4, 4)), np.zeros(4)])
def test_an_array_that_is_not_an_image_is_refused(wrong):
    with pytest.raises(InputError, match="an image must be"):
        decode(wrong, 4)


def test_workers_return_errors_as_messages(tmp_path):
    good, bad = decode_many([np.zeros((2, 2), np.uint8), tmp_path / "none.png"], 4, "squash")
    assert good.shape == (4, 4, 3)
    assert bad[1] == str(tmp_path / "none.png")
