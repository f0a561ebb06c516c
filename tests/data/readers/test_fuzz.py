"""Readers against random and mutated files: a data set or a clear error, nothing else."""

import io
import json
import lzma
import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data.readers import FORMATS
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import LabelweaveError, LabelweaveWarning


def _npz() -> bytes:
    file = io.BytesIO()
    np.savez(file, X=np.eye(3), Y=np.eye(3), label_names=np.array(["a", "b", "c"]))
    return file.getvalue()


def _parquet() -> bytes:
    file = io.BytesIO()
    pd.DataFrame({"a": [1.0, 2.0], "labels": [["x"], ["x", "y"]]}).to_parquet(file)
    return file.getvalue()


def _excel() -> bytes:
    file = io.BytesIO()
    pd.DataFrame({"id": ["r1", "r2"], "a": [1.5, None], "labels": ["x;y", None]}).to_excel(
        file, index=False
    )
    return file.getvalue()


VALID = {
    "arff-dense": (
        b"@relation 'r: -C -1'\n@attribute a numeric\n@attribute 'b c' {x,'y z',w}\n"
        b"@attribute d date\n@attribute y {0,1}\n@data\n1,x,'2020-01-01T00:00:00',1\n?,'y z',?,?\n"
    ),
    "arff-sparse": (
        b"@relation 'r: -C 2'\n@attribute y {0,1}\n@attribute z {0,1}\n@attribute a numeric\n"
        b"@attribute b numeric\n@data\n{0 1,2 1.5}\n{}\n{3 -2e3,1 1}\n{2 ?}\n"
    ),
    "xc": b"3 5 4\n0,2 1:0.5 4:2\n 2:1\n3\n",
    "svmlight": b"1,3 1:0.5 4:-2\n# note\n 2:7 # tail\n2 3:1\n",
    "jsonl": json.dumps({"id": 1, "text": "a", "labels": ["x"], "split": "test"}).encode() + b"\n",
    "jsonl-array": (
        b'[{"text": "a", "price": 2.5, "new": true, "labels": ["x"]},\n'
        b' {"text": null, "price": null, "labels": null}]\n'
    ),
    "fasttext": b"__label__a __label__b some text\n__label__a more\n",
    "npz": _npz(),
    "table-csv": b"id,a,b,labels\nr1,1,2.5,x;y\nr2,,-1e5,\n",
    "table-tsv": b'some text\t0,2\tid1\n"more\t1\tid2\n',
    "table-index.csv": b',a,"b",y\n0,1,"two\nlines",1\n1,,"say ""so""",0\n',
    "table-parquet": _parquet(),
    "table-xlsx": _excel(),
}
TOKENS = [
    b"\n", b",", b":", b" ", b"{", b"}", b"'", b'"', b"\\", b"?", b"%", b"@data\n", b"\t", b";",
    b"99999999999999999999", b"-1", b"1e999", b"nan", b"\0", b"\xff", b"\xef\xbb\xbf", b"[" * 50,
    b"10000000000 10000000000 10000000000\n", b"null", b"{}", b"1:1", b"\r",
]  # fmt: skip

quiet = settings(max_examples=60)


def read_all_ways(path, format):
    """Raises any error that is not one of labelweave."""
    for options in ({}, {"require_labels": False}, {"encoding": "cp1252", "require_labels": False}):
        with warnings.catch_warnings(), suppress(LabelweaveError):
            warnings.simplefilter("ignore", LabelweaveWarning)
            data = read_dataset(path, format=format, **options)
            assert len(data.Y) == len(data) > 0
    with warnings.catch_warnings(), suppress(LabelweaveError):
        warnings.simplefilter("ignore", LabelweaveWarning)
        for batch in iter_batches(path, format=format, batch_rows=2):
            assert 0 < len(batch) <= 2


@pytest.mark.parametrize("format", [*FORMATS, None])
@quiet
@given(st.binary(max_size=300))
def test_random_bytes(tmp_path, format, content):
    path = tmp_path / "data"
    path.write_bytes(content)
    read_all_ways(path, format)


@st.composite
def mutated(draw, valid):
    """A valid file with a few bytes removed, inserted or repeated."""
    content = valid
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(content)))
        stop = min(len(content), start + draw(st.integers(0, 12)))
        new = draw(st.sampled_from([b"", content[start:stop] * 2, *TOKENS]) | st.binary(max_size=4))
        content = content[:start] + new + content[stop:]
    return content


@pytest.mark.parametrize("kind", VALID)
@quiet
@given(st.data())
def test_mutated_files(tmp_path, kind, data):
    content = data.draw(mutated(VALID[kind]))
    ending = "." + kind.split("-")[1] if kind.startswith("table") else ""
    path = tmp_path / f"data{ending}"
    path.write_bytes(content)
    read_all_ways(path, kind.partition("-")[0])
    if data.draw(st.booleans()):
        packed = tmp_path / "packed.xz"
        packed.write_bytes(data.draw(mutated(lzma.compress(content))))
        read_all_ways(packed, kind.partition("-")[0])


def test_damaged_metadata_of_a_parquet_column(tmp_path):
    """With this byte changed, pyarrow ends the process when asked for the metadata of a column."""
    content = bytearray(VALID["table-parquet"])
    content[207] ^= 3
    (tmp_path / "data.parquet").write_bytes(content)
    read_all_ways(tmp_path / "data.parquet", "table")


@pytest.mark.parametrize("kind", VALID)
def test_the_valid_files_are_valid(tmp_path, kind):
    ending = "." + kind.split("-")[1] if kind.startswith("table") else ""
    path = tmp_path / f"data{ending}"
    path.write_bytes(VALID[kind])
    options = {"labels": ["y"]} if "index" in kind else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LabelweaveWarning)
        assert read_dataset(path, **options).Y.n_labels > 0
