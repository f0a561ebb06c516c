"""The fast parser of CSV files against the careful one: the same rows, or the same error."""

from itertools import chain

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data.readers._table import csv_parquet
from labelweave.data.readers._table.csv_blocks import Block, Dialect
from labelweave.data.readers._table.csv_parquet import CsvTable
from labelweave.data.readers.table import read_table
from labelweave.exceptions import DataFileError

CELLS = st.sampled_from(
    ["1", "0", "", "2.5", "-1e5", "NA", "nan", "yes", "False", "1_000", " 3 ", "inf", "1e999", "x",
     "+7", "?", "None", "-nan", "0x1", "1e", "é", '"1"', '"a,b"', '"a\nb"', '"say ""so"""', '""',
     'a"b', '"a"b', '"', "1\r", "\0", " ", "\u0661", "'", "\\", "#", "TRUE", "n/a", "1,5"]
)  # fmt: skip
ROWS = st.lists(st.lists(CELLS, min_size=2, max_size=4), min_size=1, max_size=12)


@pytest.fixture
def careful(monkeypatch):
    """Run a function with the careful reader only."""

    def run(function):
        with monkeypatch.context() as patch:
            patch.setattr(csv_parquet, "SEPARATORS", "")
            return function()

    return run


def outcome(path, **options):
    try:
        data = read_table(path, require_labels=False, **options)
    except DataFileError as error:
        return str(error)
    X = data.X if data.is_text else np.asarray(data.X).tobytes()
    if data.is_table:
        X = data.X.frame.map(repr).to_numpy().tolist()
    return X, data.Y.to_numpy().tobytes(), data.row_ids, data.label_names, data.feature_names


def assert_same(fast, slow):
    """Of two mistakes in a file, the one that is found first may be another."""
    assert fast == slow or (isinstance(fast, str) and isinstance(slow, str))


@settings(max_examples=100)
@given(
    ROWS, st.sampled_from(["\n", "\r\n"]), st.sampled_from([{}, {"labels": 1}, {"quotes": False}])
)
def test_both_parsers_agree(tmp_path, careful, rows, line_end, options):
    path = tmp_path / "data.csv"
    width = len(rows[0])
    header = [["id", "a", "b", "c"][:width]]
    text = line_end.join(",".join(row) for row in header + rows)
    path.write_bytes(text.encode())
    assert_same(outcome(path, **options), careful(lambda: outcome(path, **options)))


@settings(max_examples=100)
@given(ROWS)
def test_both_parsers_give_the_same_cells(tmp_path, careful, rows):
    path = tmp_path / "data.csv"
    path.write_bytes("\n".join(",".join(row) for row in rows).encode())

    def cells():
        try:
            table = CsvTable(path, header=False)
            chunks = list(table.chunks())
        except DataFileError as error:
            return str(error)
        by_chunk = (zip(chunk.lines, *chunk.columns, strict=True) for chunk in chunks)
        return list(chain.from_iterable(by_chunk))

    assert_same(cells(), careful(cells))


@pytest.mark.parametrize("size", [10, 100, 2**21])
def test_blocks_of_any_size(tmp_path, monkeypatch, size):
    monkeypatch.setattr(csv_parquet, "_block_bytes", lambda n_columns: size)
    monkeypatch.setattr(csv_parquet, "CHUNK_ROWS", 3)
    path = tmp_path / "data.csv"
    rows = [(f'line {i}\nof "text"', i, i % 2) for i in range(50)]
    text = "".join('"{}",{},{}\n'.format(t.replace('"', '""'), a, y) for t, a, y in rows)
    path.write_text("\ufefftext,a,y\n" + text)
    data = read_table(path, labels=["y"], text_column="text")
    assert data.X.frame["text"].tolist() == [text for text, _, _ in rows]
    assert data.X.frame["a"].tolist() == [a for _, a, _ in rows]
    assert data.Y.to_numpy().ravel().tolist() == [y for _, _, y in rows]
    path.write_text(path.read_text() + '"last\n",1,maybe\n')
    with pytest.raises(DataFileError, match="'y' holds 'maybe'") as caught:
        read_table(path, labels=["y"], text_column="text")
    assert caught.value.line == 103


def test_a_word_far_below_numbers_only_costs_its_column(tmp_path, monkeypatch):
    path = tmp_path / "data.csv"
    path.write_text("a,b,y\n" + "1.5,2,1\n" * 5000 + "1.5,2,yes\n" * 5000 + ",NA,no\n")
    data = read_table(path, labels=1)
    assert data.Y.to_numpy().sum() == 10_000
    assert np.isnan(np.asarray(data.X)[-1]).all()


def test_rows_that_only_the_careful_reader_reads_are_where_they_belong(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("a,text\n" + "".join(f'{i},5" pipe {i}\n' for i in range(10)))
    data = read_table(path, text_column="text", require_labels=False)
    assert data.X.frame["text"].tolist() == [f'5" pipe {i}' for i in range(10)]


def test_the_fast_parser_is_used(tmp_path, monkeypatch):
    monkeypatch.setattr(CsvTable, "_careful_chunks", None)
    path = tmp_path / "data.csv"
    path.write_text('id,a,b,y\nr1,1,"2.5",1\nr2,,yes,0\n')
    data = read_table(path, labels=1)
    np.testing.assert_array_equal(data.X, [[1, 2.5], [np.nan, 1]])


@pytest.mark.parametrize(
    ("data", "rows", "usual"),
    [
        (b'"a",b\nc,"d', b'"a",b\n', True),
        (b'a",b\n"c,d\n', b'a",b\n"c,d\n', False),
        (b"a", b"", True),
    ],
)
def test_a_block_ends_with_a_row(data, rows, usual):
    block = Block(data, Dialect(",", True, ".", 2))
    assert (block.data, block.has_usual_quotes()) == (rows, usual)


def test_words_that_look_like_numbers_stay_as_they_are_written(tmp_path, monkeypatch):
    monkeypatch.setattr(csv_parquet, "_block_bytes", lambda n_columns: 40)
    monkeypatch.setattr(csv_parquet, "CHUNK_ROWS", 3)
    path = tmp_path / "data.csv"
    codes = ["x1", "n/a", "x2", *["007", "1.50", "True"] * 10, " NA ", "last"]
    path.write_text("id,code,a\n" + "".join(f"0{i},{c},{i}\n" for i, c in enumerate(codes)))
    data = read_table(path, require_labels=False)
    assert data.row_ids == [f"0{i}" for i in range(len(codes))]
    code = data.X.frame["code"]
    assert code.isna().to_numpy().nonzero()[0].tolist() == [1, len(codes) - 2]
    assert code.dropna().tolist() == [c for c in codes if c not in ("n/a", " NA ")]
    assert data.X.frame["a"].tolist() == list(range(len(codes)))
