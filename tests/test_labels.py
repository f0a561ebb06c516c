import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from labelweave.exceptions import InputError
from labelweave.labels import LabelMatrix, as_labels

NAN = np.nan
states = hnp.arrays(
    np.float32,
    st.tuples(st.integers(1, 6), st.integers(1, 5)),
    elements=st.sampled_from([0, 1, NAN]),
)


def test_every_form_means_the_same():
    dense = np.array([[1, 0], [0, 1], [1, 1]])
    expected = dense.astype(np.float32)
    names = ["a", "b"]
    forms = [
        as_labels(dense, names=names),
        as_labels(dense.astype(bool), names=names),
        as_labels(dense.tolist(), names=names),
        as_labels(sp.csr_matrix(dense), names=names),
        as_labels(sp.coo_array(dense), names=names),
        as_labels(pd.DataFrame(dense, columns=names)),
        as_labels([["a"], ["b"], ["a", "b"]]),
        as_labels([("a",), {"b"}, ["b", "a", "b"]]),
        as_labels(pd.Series([["a"], ["b"], ["a", "b"]])),
    ]
    for labels in forms:
        assert labels.names == ("a", "b")
        np.testing.assert_array_equal(labels.to_numpy(), expected)


@pytest.mark.parametrize(
    "unknown",
    [
        np.array([[1, NAN], [0, 1]]),
        np.ma.masked_array([[1, 0], [0, 1]], mask=[[False, True], [False, False]]),
        pd.DataFrame({"a": [1, 0], "b": pd.array([pd.NA, 1], dtype="Int8")}),
        sp.csr_array(np.array([[1, NAN], [0, 1]])),
        [[1, None], [0, 1]],
    ],
    ids=["nan", "masked", "pandas NA", "sparse nan", "None"],
)
def test_unknown_in_every_form(unknown):
    labels = as_labels(unknown)
    assert labels.n_unknown == 1
    np.testing.assert_array_equal(labels.to_numpy(), [[1, NAN], [0, 1]])


def test_unstored_entries_may_mean_unknown():
    stored = sp.csr_array(([1.0, 0.0], ([0, 1], [0, 1])), shape=(2, 2))
    as_negative, as_unknown = as_labels(stored), as_labels(stored, absent="unknown")
    assert as_negative.n_unknown == 0
    assert as_unknown.n_unknown == 2
    np.testing.assert_array_equal(as_unknown.to_numpy(), [[1, NAN], [NAN, 0]])
    assert sp.issparse(as_unknown.known())
    listed = as_labels([["a"], []], names=["a", "b"], absent="unknown")
    np.testing.assert_array_equal(listed.to_numpy(), [[1, NAN], [NAN, NAN]])


@given(states, st.booleans())
def test_states_agree_with_the_dense_array(values, absent_unknown):
    """positive, negative, known, unknown and counts, for dense and both sparse meanings."""
    if absent_unknown:
        rows, columns = np.nonzero(~np.isnan(values))
        stored = sp.csr_array((values[rows, columns], (rows, columns)), shape=values.shape)
        sparse = as_labels(stored, absent="unknown")
    else:
        sparse = as_labels(sp.csr_array(values))
    for labels in (as_labels(values), sparse, as_labels(values).to_sparse(), sparse.to_dense()):
        np.testing.assert_array_equal(labels.to_numpy(), values)
        for state, expected in [
            (labels.positive(), values == 1),
            (labels.negative(), values == 0),
            (labels.unknown(), np.isnan(values)),
        ]:
            state = state.toarray() if sp.issparse(state) else state
            np.testing.assert_array_equal(state, expected)
        known = labels.known()
        if np.isnan(values).any():
            known = known.toarray() if sp.issparse(known) else known
            np.testing.assert_array_equal(known, ~np.isnan(values))
        else:
            assert known is None
        positives, n_known = labels.counts()
        np.testing.assert_array_equal(positives, (values == 1).sum(axis=0))
        np.testing.assert_array_equal(n_known, (~np.isnan(values)).sum(axis=0))
        assert labels.n_unknown == np.isnan(values).sum()
        assert labels.to_lists() == [
            [name for name, value in zip(labels.names, row, strict=True) if value == 1]
            for row in values
        ]


def test_indexing_keeps_names_and_descriptions():
    labels = as_labels(np.eye(3), names=list("abc"), descriptions={"b": "the second"})
    assert labels[[2, 0]].to_lists() == [["c"], ["a"]]
    assert labels[1].to_lists() == [["b"]]
    assert labels[np.array([True, False, True]), ...].shape == (2, 3)
    part = labels[:, np.array([1])]
    assert part.names == ("b",)
    assert part.descriptions == {"b": "the second"}
    assert labels.select(["c", "b"]).names == ("c", "b")
    with pytest.raises(InputError, match="no label 'z'"):
        labels.select(["z"])


def test_large_vocabularies_stay_sparse():
    rows = [[f"tag{i}", f"tag{i + 1}"] for i in range(1000)]
    labels = as_labels(rows)
    assert labels.is_sparse
    assert labels.values.nnz == 2000
    assert sorted(labels[5].to_lists()[0]) == ["tag5", "tag6"]


@pytest.mark.parametrize(
    ("Y", "names", "message"),
    [
        (np.array([[1, 0], [0, 2]]), ["x", "y"], "holds 2 at row 1, label 'y'"),
        (sp.csr_array(np.array([[1, 0], [0, -1]])), None, "holds -1 at row 1, label 'label_1'"),
        (np.array([1, 0]), None, "two dimensions"),
        (np.eye(2), ["x"], "1 label names were given for 2 labels"),
        (np.eye(2), ["x", "x"], "'x' is used twice"),
        ([["a"], ["q"]], ["a"], "row 1 has the label 'q'"),
        ([[], []], None, "no row has a label"),
        ([[3, 5], [2]], None, "neither a matrix"),
        (pd.DataFrame({"text": ["one", "two"]}), None, "pass only the label columns"),
    ],
)
def test_bad_labels_are_refused_in_one_sentence(Y, names, message):
    with pytest.raises(InputError, match=message) as caught:
        as_labels(Y, names=names)
    assert "\n" not in str(caught.value)


def test_works_where_scikit_learn_takes_arrays():
    from sklearn.model_selection import KFold, train_test_split
    from sklearn.utils import indexable
    from sklearn.utils.multiclass import type_of_target

    labels = as_labels(np.eye(6, 3) + np.eye(6, 3, k=-3))
    assert type_of_target(labels) == "multilabel-indicator"
    indexable(np.zeros((6, 1)), labels)
    first, second = train_test_split(labels, test_size=2, random_state=0)
    assert isinstance(first, LabelMatrix)
    assert len(first) + len(second) == 6
    assert len(list(KFold(3).split(np.zeros((6, 1)), labels))) == 3
