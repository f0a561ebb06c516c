"""Splits: sizes, groups, unknown labels, seeds, official parts, errors."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data import Dataset
from labelweave.data.splits import (
    as_generator,
    random_holdout,
    split_dataset,
    split_rows,
    stratified_folds,
    stratified_holdout,
    stratified_parts,
)
from labelweave.exceptions import InputError, LabelweaveWarning
from labelweave.labels import as_labels
from labelweave.tables import Table


@st.composite
def label_matrices(draw, min_rows=2, max_rows=30):
    n_rows = draw(st.integers(min_rows, max_rows))
    n_labels = draw(st.integers(0, 6))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    positive, unknown = draw(st.floats(0, 1)), draw(st.floats(0, 1))
    Y = (rng.random((n_rows, n_labels)) < positive).astype(float)
    Y[rng.random(Y.shape) < unknown / 2] = np.nan
    return Y


seeds = st.integers(0, 1000)
balances = st.sampled_from(["positives", "known"])


def make_labels(n_rows=200, n_labels=8, seed=0, unknown=0.0):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < rng.uniform(0.05, 0.5, n_labels)).astype(float)
    Y[rng.random(Y.shape) < unknown] = np.nan
    return Y


# -- invariants ------------------------------------------------------------------------


@settings(max_examples=150)
@given(Y=label_matrices(), seed=seeds, balance=balances, data=st.data())
def test_folds_partition_the_rows_in_equal_sizes(Y, seed, balance, data):
    n_folds = data.draw(st.integers(2, len(Y)))
    fold = stratified_folds(Y, n_folds, balance=balance, random_state=seed)
    sizes = np.bincount(fold, minlength=n_folds)
    assert fold.shape == (len(Y),)
    assert len(sizes) == n_folds
    assert sizes.max() - sizes.min() <= 1


@settings(max_examples=150)
@given(Y=label_matrices(), seed=seeds, fraction=st.floats(0.01, 0.99), balance=balances)
def test_holdout_has_the_exact_size(Y, seed, fraction, balance):
    rest, held = stratified_holdout(Y, fraction, balance=balance, random_state=seed)
    assert len(held) == min(max(round(fraction * len(Y)), 1), len(Y) - 1)
    assert sorted([*rest, *held]) == list(range(len(Y)))
    assert (np.diff(rest) > 0).all()
    assert (np.diff(held) > 0).all()


@settings(max_examples=150)
@given(Y=label_matrices(), seed=seeds, data=st.data())
def test_groups_stay_together_and_no_part_is_empty(Y, seed, data):
    groups = np.array(data.draw(st.lists(st.integers(0, 9), min_size=len(Y), max_size=len(Y))))
    n_groups = len(set(groups))
    if n_groups < 2:
        with pytest.raises(InputError, match="2 parts cannot be made of 1 groups"):
            stratified_holdout(Y, 0.5, groups=groups)
        return
    n_folds = data.draw(st.integers(2, n_groups))
    fold = stratified_folds(Y, n_folds, groups=groups, random_state=seed)
    assert set(fold) == set(range(n_folds))
    for rest, held in (
        stratified_holdout(Y, 0.3, groups=groups, random_state=seed),
        random_holdout(len(Y), 0.3, groups=groups, random_state=seed),
    ):
        assert len(rest)
        assert len(held)
        assert not set(groups[rest]) & set(groups[held])
    for group in set(groups):
        assert len(set(fold[groups == group])) == 1


@settings(max_examples=60)
@given(Y=label_matrices(min_rows=6), seed=seeds, data=st.data())
def test_order_of_rows_does_not_matter_for_the_balance(Y, seed, data):
    order = np.array(data.draw(st.permutations(range(len(Y)))))
    for rows in (np.arange(len(Y)), order):
        fold = stratified_folds(Y[rows], 3, random_state=seed)
        positives = np.nan_to_num(Y[rows])
        counts = np.array([positives[fold == f].sum(axis=0) for f in range(3)])
        # No label may be all in one fold if it could be in several.
        several = positives.sum(axis=0) >= 6
        assert ((counts > 0).sum(axis=0)[several] >= 2).all()


@settings(max_examples=60)
@given(Y=label_matrices(), seed=seeds)
def test_forms_of_labels_give_the_same_folds(Y, seed):
    marked = sp.csr_array(np.where(np.isnan(Y), 2.0, Y))
    marked.data[marked.data == 2] = np.nan
    expected = stratified_folds(Y, 2, random_state=seed)
    for form in (marked, as_labels(Y), as_labels(marked)):
        np.testing.assert_array_equal(stratified_folds(form, 2, random_state=seed), expected)


# -- balance ---------------------------------------------------------------------------


def test_rows_without_labels_are_spread_evenly():
    Y = make_labels(103)
    Y[::3] = 0
    without = Y.sum(axis=1) == 0
    fold = stratified_folds(Y, 5, random_state=0)
    counts = np.bincount(fold[without], minlength=5)
    assert counts.max() - counts.min() <= 1


def test_fewer_positives_than_folds_are_in_different_folds():
    Y = np.zeros((40, 2))
    Y[[3, 7, 20], 0] = 1
    fold = stratified_folds(Y, 10, random_state=0)
    assert len(set(fold[Y[:, 0] == 1])) == 3


def test_the_only_positive_of_a_label_is_not_held_out():
    Y = make_labels(100)
    Y[:, 0] = 0
    Y[17, 0] = 1
    for seed in range(10):
        assert 17 not in stratified_holdout(Y, 0.2, random_state=seed)[1]


def test_unknown_entries_are_ignored():
    Y = make_labels(300, 6, unknown=0.3)
    expected = stratified_folds(np.nan_to_num(Y), 5, random_state=0)
    np.testing.assert_array_equal(stratified_folds(Y, 5, random_state=0), expected)


@pytest.mark.parametrize("form", ["dense", "sparse with unknowns", "sparse with negatives"])
def test_known_negatives_are_balanced_on_request(form):
    Y = make_labels(300, 6, seed=1)
    Y[np.random.default_rng(2).random(Y.shape) < np.linspace(0.2, 0.95, 6)] = np.nan
    labels = as_labels(Y)
    if form == "sparse with unknowns":
        labels = labels.to_sparse()
    elif form == "sparse with negatives":
        rows, columns = np.nonzero(~np.isnan(Y))
        stored = sp.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)
        labels = as_labels(stored, absent="unknown")
        np.testing.assert_array_equal(labels.to_numpy(), Y)

    def deviation(fold):
        counts = np.array([(Y[fold == f] == 0).sum(axis=0) for f in range(5)])
        return np.abs(counts - (Y == 0).sum(axis=0) / 5)

    balanced = deviation(stratified_folds(labels, 5, balance="known", random_state=0))
    assert balanced.max() < 2.5
    assert balanced.mean() < 0.5 * deviation(stratified_folds(labels, 5, random_state=0)).mean()


def test_groups_keep_sizes_and_labels_near_their_shares():
    rng = np.random.default_rng(0)
    Y = make_labels(2000, 10)
    groups = rng.integers(0, 400, 2000)
    fold = stratified_folds(Y, 5, groups=groups, random_state=0)
    sizes = np.bincount(fold)
    assert np.abs(sizes - 400).max() <= 1
    counts = np.array([Y[fold == f].sum(axis=0) for f in range(5)])
    assert np.abs(counts - Y.sum(axis=0) / 5).max() < 6


def test_unequal_groups_are_balanced_as_well_as_possible():
    Y = np.ones((100, 1))
    groups = np.repeat([0, 1, 2, 3, 4], [50, 20, 10, 10, 10])
    fold = stratified_folds(Y, 2, groups=groups, random_state=0)
    assert sorted(np.bincount(fold)) == [50, 50]
    _, held = stratified_holdout(Y, 0.3, groups=groups, random_state=0)
    assert len(held) == 30


def test_many_sparse_labels_are_never_made_dense(monkeypatch):
    Y = sp.random_array((500, 20_000), density=2e-4, rng=np.random.default_rng(0), format="csr")
    Y.data[:] = 1
    with monkeypatch.context() as patched:
        patched.setattr(sp.csr_array, "toarray", _refuse_wide(sp.csr_array.toarray))
        patched.setattr(sp.csr_array, "todense", _refuse_wide(sp.csr_array.todense))
        fold = stratified_folds(Y, 3, random_state=0)
    assert np.bincount(fold).tolist() == [167, 167, 166]


def _refuse_wide(method):
    def checked(self, *args, **kwargs):
        assert self.shape[0] < 500, "the label matrix was made dense"
        return method(self, *args, **kwargs)

    return checked


# -- randomness ------------------------------------------------------------------------


def test_the_seed_decides_and_the_global_generator_is_not_used():
    Y = make_labels(100)
    np.random.seed(5)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first = stratified_folds(Y, 5, random_state=3)
    stratified_folds(Y, 5)
    random_holdout(10, 0.5)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
    np.testing.assert_array_equal(first, stratified_folds(Y, 5, random_state=3))
    assert (first != stratified_folds(Y, 5, random_state=4)).any()


def test_random_states_of_numpy_are_accepted():
    old = as_generator(np.random.RandomState(0)).random()
    assert old == as_generator(np.random.RandomState(0)).random()
    generator = np.random.default_rng(0)
    assert as_generator(generator) is generator
    with pytest.raises(InputError, match="random_state must be"):
        as_generator("seven")


# -- what is refused -------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda Y: stratified_folds(Y, 21), "21 folds cannot be made of 20 rows"),
        (lambda Y: stratified_folds(Y[:1], 2), "2 folds cannot be made of 1 rows"),
        (lambda Y: stratified_folds(Y, 1), "n_folds must be a whole number of at least 2"),
        (lambda Y: stratified_folds(Y, 2.5), "n_folds must be a whole number"),
        (lambda Y: stratified_folds(Y, 2, balance="all"), "balance must be"),
        (lambda Y: stratified_folds(Y, 2, groups=[1]), "groups has 1 entries for 20 rows"),
        (lambda Y: stratified_folds(Y, 3, groups=[1, 2] * 10), "3 parts .* of 2 groups"),
        (lambda Y: stratified_holdout(Y[:1], 0.5), "1 rows cannot be split into two parts"),
        (lambda Y: stratified_holdout(Y, 0.0), "share between 0 and 1"),
        (lambda Y: stratified_holdout(Y, 1.0), "share between 0 and 1"),
        (lambda Y: stratified_holdout(Y, 20), "number of rows from 1 to 19, not 20"),
        (lambda Y: stratified_holdout(Y, float("nan")), "share between 0 and 1"),
        (lambda Y: stratified_parts(Y, [10, 5]), "must be at least 1 each and add up to"),
        (lambda Y: stratified_parts(Y, [20, 0]), "must be at least 1 each and add up to"),
    ],
)
def test_impossible_splits_are_refused_clearly(call, message):
    with pytest.raises(InputError, match=message):
        call(make_labels(20, 3))


# -- data sets -------------------------------------------------------------------------


def make_data(part=None, groups=None, n_rows=100):
    X = np.arange(n_rows, dtype=float)[:, None]
    return Dataset(X, make_labels(n_rows, 4), name="toy", part=part, groups=groups)


def as_texts(X):
    return [f"text {value}" for value in X[:, 0]]


def rows_of(*parts):
    return [part.X[:, 0].astype(int).tolist() for part in parts]


def all_rows(*parts):
    return sorted(row for rows in rows_of(*parts) for row in rows)


def test_default_split_is_stratified_without_official_parts():
    train, test = split_dataset(make_data())
    assert (len(train), len(test)) == (70, 30)
    assert all_rows(train, test) == list(range(100))
    assert rows_of(*split_dataset(make_data())) == rows_of(train, test)


def test_validation_is_a_share_of_train():
    train, validation, test = split_dataset(make_data(), test_size=0.5, validation=0.2)
    assert [len(part) for part in (train, validation, test)] == [40, 10, 50]
    assert all_rows(train, validation, test) == list(range(100))


def test_official_test_part_is_kept_and_validation_taken_from_train():
    part = np.array(["train"] * 60 + ["test"] * 40)
    train, test = split_dataset(make_data(part))
    assert rows_of(train, test) == [list(range(60)), list(range(60, 100))]
    train, validation, test = split_dataset(make_data(part), validation=0.2)
    assert rows_of(test) == [list(range(60, 100))]
    assert (len(train), len(validation)) == (48, 12)
    assert all_rows(train, validation) == list(range(60))


def test_official_validation_part_is_used_where_there_is_one():
    part = np.array(["train"] * 50 + ["validation"] * 10 + ["test"] * 40)
    train, validation, test = split_dataset(make_data(part), validation=0.2)
    assert [len(p) for p in (train, validation, test)] == [50, 10, 40]
    train, test = split_dataset(make_data(part))
    assert [len(p) for p in (train, test)] == [60, 40]


def test_asking_for_a_test_size_makes_a_new_split():
    part = np.array(["train"] * 60 + ["test"] * 40)
    for method in ("auto", "stratified", "random"):
        train, test = split_dataset(make_data(part), test_size=0.1, method=method)
        assert (len(train), len(test)) == (90, 10)


def test_a_part_that_is_split_again_ignores_the_official_parts():
    part = np.array(["train"] * 60 + ["test"] * 40)
    for how in ({}, {"test_size": 0.4}):
        train, test = split_dataset(make_data(part), **how)
        assert [len(piece) for piece in train.split(test_size=0.5)] == [30, 30]
        assert [len(piece) for piece in test.split()] == [28, 12]


@pytest.mark.parametrize("method", ["stratified", "random"])
def test_groups_of_a_data_set_are_kept_together(method):
    groups = np.arange(100) // 5
    parts = split_dataset(make_data(groups=groups), validation=0.25, method=method)
    kept = [set(part.groups) for part in parts]
    assert not kept[0] & kept[1]
    assert not kept[0] & kept[2]
    assert not kept[1] & kept[2]


@pytest.mark.parametrize("method", ["stratified", "random"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_array, pd.DataFrame, Table, as_texts])
def test_equal_rows_of_a_data_set_are_kept_together(method, form):
    values = np.repeat(np.arange(50.0), 2)[np.random.default_rng(0).permutation(100)]
    groups = np.where(values < 20, values // 4, values)  # also rows that are not equal
    X = form(pd.DataFrame({"x": values}) if form is Table else values[:, None])
    data = Dataset(X, make_labels(100, 4), groups=groups, row_ids=list(range(100)))
    parts = split_dataset(data, validation=0.25, method=method)
    assert sorted(row for part in parts for row in part.row_ids) == list(range(100))
    for kept in (values, groups):
        in_part = [set(kept[list(part.row_ids)]) for part in parts]
        assert sum(len(part) for part in in_part) == len(set(kept))
    sizes = [len(part) for part in parts]
    assert np.abs(np.array(sizes) - [52, 18, 30]).max() <= 6


def test_official_parts_are_kept_as_they_are_but_not_divided_further():
    data = replace(make_data(np.array(["train"] * 60 + ["test"] * 40)), X=np.arange(100) % 30)
    train, validation, test = split_dataset(data, validation=0.2)
    assert len(test) == 40
    assert not set(train.X) & set(validation.X)


@pytest.mark.parametrize("method", ["stratified", "random"])
def test_parts_are_as_before_where_no_two_rows_are_equal(method):
    data = make_data()
    rest, test = split_rows(data, method=method)
    if method == "random":
        expected = random_holdout(100, 0.3, random_state=0)
    else:
        expected = stratified_holdout(data.Y, 0.3, random_state=0)
    np.testing.assert_array_equal(rest, expected[0])
    np.testing.assert_array_equal(test, expected[1])


def test_fewer_different_rows_than_parts_are_divided_with_a_warning():
    data = replace(make_data(), X=np.zeros((100, 2)))
    with pytest.warns(LabelweaveWarning, match="2 parts cannot be made of 1 different rows"):
        train, test = split_dataset(data)
    assert (len(train), len(test)) == (70, 30)
    with pytest.raises(InputError, match="2 parts cannot be made of 1 groups"):
        split_dataset(replace(data, groups=[0] * 100))


@pytest.mark.parametrize(
    ("part", "how", "message"),
    [
        (None, {"method": "official"}, "toy has no official test part"),
        (None, {"method": "best"}, "method must be"),
        (["train"] * 100, {"method": "official"}, "no official test part"),
        (["test"] * 100, {}, "no training rows"),
        (["train"] * 50 + ["test"] * 50, {"method": "official", "test_size": 0.1}, "leave test"),
        (["dev"] * 50 + ["test"] * 50, {}, "a part called 'dev'"),
    ],
)
def test_impossible_data_set_splits_are_refused_clearly(part, how, message):
    with pytest.raises(InputError, match=message):
        split_dataset(make_data(part), **how)


@pytest.mark.data
def test_real_labels_stay_within_one_of_their_share(data_home, monkeypatch):
    from labelweave.data.catalog import load_dataset

    monkeypatch.setenv("LABELWEAVE_DATA", str(data_home))
    for name in ("emotions", "yeast"):
        Y = load_dataset(name).Y.to_numpy()
        fold = stratified_folds(Y, 10, random_state=0)
        counts = np.array([Y[fold == f].sum(axis=0) for f in range(10)])
        shares = np.outer(np.bincount(fold) / len(Y), Y.sum(axis=0))
        assert np.abs(counts - shares).max() < 2
        assert np.ptp(np.bincount(fold)) <= 1
