import bz2
import gzip
import lzma

import pytest
import zstandard

from labelweave.data import compressed_files
from labelweave.data.compressed_files import (
    iter_line_chunks,
    iter_lines,
    open_binary,
    read_small_file,
)
from labelweave.exceptions import DataFileError

PACK = {
    ".xz": lzma.compress,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor(write_checksum=True).compress,
}
TEXT = b"".join(b"line %d of some text\n" % i for i in range(5000))


@pytest.mark.parametrize("ending", PACK)
def test_the_content_decides_the_compression(tmp_path, ending):
    for name in (f"a.txt{ending}", "a.txt"):
        path = tmp_path / name
        path.write_bytes(PACK[ending](TEXT))
        with open_binary(path) as file:
            assert file.read() == TEXT


@pytest.mark.parametrize("ending", PACK)
def test_several_archives_in_one_file(tmp_path, ending):
    path = tmp_path / f"a{ending}"
    path.write_bytes(PACK[ending](b"one\n") + PACK[ending](b"two\n"))
    assert [line for _, line in iter_lines(path)] == ["one", "two"]


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("kept", [0.2, 0.5, 0.98])
def test_truncated_archive(tmp_path, ending, kept):
    packed = PACK[ending](TEXT)
    path = tmp_path / f"a.txt{ending}"
    path.write_bytes(packed[: int(len(packed) * kept)])
    with pytest.raises(DataFileError, match=r"a\.txt.*damaged or truncated"):
        list(iter_lines(path))


@pytest.mark.parametrize("ending", PACK)
def test_damaged_archive(tmp_path, ending):
    packed = bytearray(PACK[ending](TEXT))
    packed[len(packed) // 2 : len(packed) // 2 + 20] = b"\xff" * 20
    path = tmp_path / f"a{ending}"
    path.write_bytes(packed)
    with pytest.raises(DataFileError, match="damaged"):
        list(iter_lines(path))


@pytest.mark.parametrize("ending", PACK)
@pytest.mark.parametrize("content", [b"", b"plain text"])
def test_misnamed_file(tmp_path, ending, content):
    path = tmp_path / f"a{ending}"
    path.write_bytes(content)
    with pytest.raises(DataFileError, match="wrong name"):
        open_binary(path)


def test_missing_file_and_folder(tmp_path):
    with pytest.raises(DataFileError, match="no such file"):
        open_binary(tmp_path / "none.txt")
    with pytest.raises(DataFileError, match="folder"):
        open_binary(tmp_path)


def test_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed_files, "FREE_BYTES", 2**20)
    path = tmp_path / "a.txt.xz"
    path.write_bytes(lzma.compress(b"\n" * 2**25))
    with (
        open_binary(path) as file,
        pytest.raises(DataFileError, match="unpacks to more than"),
    ):
        while file.read(2**20):
            pass


def test_endless_line_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr(compressed_files, "MAX_LINE_BYTES", 2**20)
    path = tmp_path / "a.txt"
    path.write_bytes(b"short\n" + b"x" * 2**21)
    with pytest.raises(DataFileError, match="line 2: the line is longer"):
        list(iter_lines(path))
    with open_binary(path) as file, pytest.raises(DataFileError, match="the line is longer"):
        list(iter_line_chunks(file, path))


def test_lines_name_the_undecodable_one(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"\xef\xbb\xbffine\nbad \xff\n")
    lines = iter_lines(path)
    assert next(lines) == (1, "fine")
    with pytest.raises(DataFileError, match=r"line 2: byte 5 of the line is not UTF-8"):
        next(lines)


@pytest.mark.parametrize("size", [1, 7, 100, 10**6])
def test_chunks_are_whole_lines(tmp_path, size):
    path = tmp_path / "a.txt"
    path.write_bytes(TEXT[:3000])
    with open_binary(path) as file:
        chunks = list(iter_line_chunks(file, path, first_line=3, size=size))
    assert b"".join(chunk for _, chunk in chunks) == TEXT[:3000] + b"\n" * (TEXT[2999] != 10)
    expected = 3
    for first, chunk in chunks:
        assert first == expected
        assert chunk.endswith(b"\n")
        expected += chunk.count(b"\n")


def test_small_files_have_a_limit(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(b"12345")
    assert read_small_file(path, limit=5) == b"12345"
    with pytest.raises(DataFileError, match="larger"):
        read_small_file(path, limit=4)
