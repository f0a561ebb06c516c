import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data.readers.xc import read_xc
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError

FILE = "small.xc"

XC = "4 5 3\n0,2 1:0.5 4:2\n 2:1\n1\n\n"


def test_xc(write):
    data = read_xc(write(XC))
    assert data.X.shape == (4, 5)
    assert data.Y.to_lists() == [["0", "2"], [], ["1"], []]
    np.testing.assert_array_equal(data.X.toarray()[0], [0, 0.5, 0, 0, 2])
    assert read_dataset(write(XC, "train.txt")).Y.n_labels == 3


def test_xc_label_names(write, tmp_path):
    (tmp_path / "names.txt").write_text("sea\nsun\nsky\n")
    data = read_xc(write(XC), labels=str(tmp_path / "names.txt"))
    assert data.Y.to_lists()[0] == ["sea", "sky"]
    with pytest.raises(DataFileError, match="2 label names"):
        read_xc(write(XC), labels=["a", "b"])


def test_xc_tolerates_blank_lines_at_the_end_only(write):
    assert len(read_xc(write("1 5 3\n0 1:1\n\n\n"))) == 1
    with pytest.raises(DataFileError, match="line 4: there are more rows"):
        read_xc(write("1 5 3\n0 1:1\n\n1 2:1\n"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("4 5\n", "three numbers"),
        ("1000000000000000 5 3\n0 1:1\n", "the header is damaged"),
        ("1 1000000000000000 3\n0 1:1\n", "the header is damaged"),
        ("1 5 1000000000000000\n0 1:1\n", "the header is damaged"),
        ("2 5 3\n0 1:1\n", "announces 2 rows, but the file has 1"),
        ("0 5 3\n", "announces 0 rows"),
        ("3 5 3\n0 4:1\n\n0 1:1 5:1\n", "line 4: .*feature 5, but the header announces 5"),
        ("3 5 3\n0,1 1:1\n 2:1\n2,3 1:1\n", "line 4: .*label 3, but the header announces 3"),
        ("1 5 3\n-1 1:1\n", "label -1"),
        ("1 5 0\n 1:1\n", "announces no labels"),
        ("1 5 3\n0 1:one\n", "line 2: the value 'one'"),
    ],
)
def test_xc_mistakes(write, text, message):
    with pytest.raises(DataFileError, match=message):
        read_xc(write(text))


def test_xc_batches(write):
    batches = list(iter_batches(write(XC), batch_rows=3, n_features=5))
    assert [len(batch) for batch in batches] == [3, 1]
    with pytest.raises(DataFileError, match="5 features, but 6 are needed"):
        list(iter_batches(write(XC), n_features=6))


rows = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), unique=True),
        st.dictionaries(st.integers(0, 30), st.floats(-1e6, 1e6, width=32), max_size=6),
    ),
    min_size=1,
    max_size=20,
)


@settings(max_examples=40)
@given(rows)
def test_xc_round_trip(write, table):
    lines = [f"{len(table)} 31 10"]
    for labels, features in table:
        pairs = [f"{j}:{value!r}" for j, value in sorted(features.items())]
        lines.append(" ".join([",".join(map(str, labels)), *pairs]))
    data = read_xc(write("\n".join(lines) + "\n"))
    expected = np.zeros((len(table), 31), dtype=np.float32)
    for i, (_, features) in enumerate(table):
        expected[i, list(features)] = list(features.values())
    np.testing.assert_array_equal(data.X.toarray(), expected)
    assert [{int(n) for n in row} for row in data.Y.to_lists()] == [set(r) for r, _ in table]
