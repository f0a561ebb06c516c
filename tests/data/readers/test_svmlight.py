import io
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file, load_svmlight_file

from labelweave.data.readers.svmlight import read_svmlight
from labelweave.data.reading import iter_batches
from labelweave.exceptions import DataFileError, InputError, LabelweaveWarning

FILE = "small.svm"


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
    with pytest.raises(DataFileError, match="from 4 to 4, but labels= has 3 names"):
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
    labels = [{int(name) for name in row} for row in ours.Y.to_lists()]
    assert labels == [{int(label) for label in row} for row in their_labels]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("1 1:2\n1 1:x\n", 2, "'x' of feature '1' is not a number"),
        ("1 1:2\na 1:1\n", 2, "label 'a' is not a whole number"),
        ("1 1:2\n1 2\n", 2, "expected index:value, found '2'"),
        ("1 1:2 1:3\n", 1, "occurs twice"),
        ("1 -1:2\n", 1, "negative"),
        ("1.5 1:2\n", 1, "not a whole number"),
        ("1 1000000000000:2\n", 1, "larger than 2147483646"),
        ("1000000000000 1:2\n", 1, "larger than 2147483646"),
        ("1, 1:2\n", 1, "label '' is not a whole number"),
        ("1 qid:1 1:2\n", 1, "ranking"),
        ("1 1:2:3\n", 1, "is not a number"),
        ("1 1:nan\n", 1, "is not a number"),
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
