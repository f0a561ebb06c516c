"""svmlight and Extreme Classification files, which share their lines."""

import io
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from labelweave.data.readers.svmlight import read_svmlight
from labelweave.data.readers.xc import read_xc
from labelweave.data.reading import iter_batches, read_dataset
from labelweave.exceptions import DataFileError, InputError, LabelweaveWarning


@pytest.fixture
def write(tmp_path):
    def to_file(text, name="small.svm"):
        path = tmp_path / name
        path.write_text(text)
        return path

    return to_file


def test_svmlight(write):
    data = read_svmlight(write("1,3 1:0.5 4:-2e1\n# note\n\n 2:7 # tail\n2 3:1\n3:9\n"))
    expected = [[0.5, 0, 0, -20], [0, 7, 0, 0], [0, 0, 1, 0], [0, 0, 9, 0]]
    np.testing.assert_array_equal(data.X.toarray(), expected)
    assert data.X.dtype == np.float32
    assert data.Y.to_lists() == [["1", "3"], [], ["2"], []]


@pytest.mark.parametrize(
    ("text", "zero_based", "width"),
    [("0 0:1 2:1\n", "auto", 3), ("0 1:1 2:1\n", "auto", 2), ("0 1:1 2:1\n", True, 3)],
)
def test_first_index(write, text, zero_based, width):
    assert read_svmlight(write(text), zero_based=zero_based).X.shape == (1, width)


def test_label_names(write):
    names = ["a", "b", "c"]
    assert read_svmlight(write("0,2 1:1\n"), labels=names).Y.to_lists() == [["a", "c"]]
    assert read_svmlight(write("1,3 1:1\n"), labels=names).Y.to_lists() == [["a", "c"]]
    with pytest.raises(DataFileError, match="from 4 to 4, but 3 names"):
        read_svmlight(write("4 1:1\n"), labels=names)
    with pytest.raises(InputError, match="list of label names"):
        read_svmlight(write("4 1:1\n"), labels=3)


def test_same_as_scikit_learn(write):
    rng = np.random.default_rng(0)
    X = sp.random(200, 50, density=0.1, random_state=0, format="csr")
    Y = (rng.random((200, 70)) < 0.05).astype(int)
    text = io.BytesIO()
    dump_svmlight_file(X, Y, text, multilabel=True, zero_based=True)
    path = write(text.getvalue().decode())
    theirs, their_labels = load_svmlight_file(str(path), multilabel=True, zero_based=True)
    ours = read_svmlight(path, zero_based=True)
    assert ours.Y.is_sparse
    np.testing.assert_allclose(ours.X.toarray(), theirs.toarray(), rtol=1e-6)
    found = [{int(name) for name in row} for row in ours.Y.to_lists()]
    assert found == [{int(label) for label in row} for row in their_labels]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1 1:2\n1 1:x\n", 2, "'x' of feature '1' is no number"),
        ("1 1:2\na 1:1\n", 2, "label 'a' is no whole number"),
        ("1 1:2\n1 2\n", 2, "expected index:value, found '2'"),
        ("1 1:2 1:3\n", 1, "comes twice"),
        ("1 -1:2\n", 1, "negative"),
        ("1.5 1:2\n", 1, "no whole number"),
        ("1 1000000000000:2\n", 1, "beyond 2147483646"),
        ("1000000000000 1:2\n", 1, "beyond 2147483646"),
        ("1, 1:2\n", 1, "label '' is no whole number"),
        ("1 qid:1 1:2\n", 1, "ranking"),
        ("1 1:2:3\n", 1, "is no number"),
        ("1 1:nan\n", 1, "is no number"),
        ("\n# nothing\n", None, "no rows"),
        ("1:2\n", None, "no row has a label"),
    ],
)
def test_svmlight_mistakes(write, text, line, message):
    with pytest.raises(DataFileError, match=message) as caught:
        read_svmlight(write(text))
    assert caught.value.line == line


def test_svmlight_ranges(write):
    path = write("1 0:1 9:1\n")
    with pytest.raises(DataFileError, match="index 0, but indices start at 1"):
        read_svmlight(path, zero_based=False)
    with pytest.raises(DataFileError, match="index 9 is beyond the last of 5"):
        read_svmlight(path, n_features=5)
    with pytest.raises(InputError, match="zero_based="):
        read_svmlight(path, zero_based="yes")


def test_svmlight_without_labels_and_in_batches(write):
    path = write("1:2\n3:1\n2:5\n")
    assert read_svmlight(path, require_labels=False).Y.shape == (3, 0)
    batches = list(iter_batches(path, batch_rows=2, n_features=3))
    assert [batch.X.shape for batch in batches] == [(2, 3), (1, 3)]
    with pytest.warns(LabelweaveWarning, match="zero_based=True"):
        list(iter_batches(path, n_features=4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        batch = next(iter_batches(path, n_features=4, zero_based=True))
    np.testing.assert_array_equal(batch.X.toarray()[0], [0, 2, 0, 0])


def test_unsorted_features_are_sorted(write):
    data = read_svmlight(write("1 3:3 1:1\n"))
    assert data.X.indices.tolist() == [0, 2]
    assert data.X.data.tolist() == [1, 3]


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
        ("1000000000000000 5 3\n0 1:1\n", "it is damaged"),
        ("1 1000000000000000 3\n0 1:1\n", "it is damaged"),
        ("1 5 1000000000000000\n0 1:1\n", "it is damaged"),
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
    with pytest.raises(DataFileError, match="5 features, but 6 are wanted"):
        list(iter_batches(write(XC), n_features=6))


rows = st.lists(
    st.tuples(
        st.lists(st.integers(0, 9), unique=True),
        st.dictionaries(st.integers(0, 30), st.floats(-1e6, 1e6, width=32), max_size=6),
    ),
    min_size=1,
    max_size=20,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
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
