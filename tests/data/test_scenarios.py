"""Scenarios: what is hidden and what is left, and that the input is not changed."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from labelweave.data import Dataset
from labelweave.data.scenarios import (
    hide_positives,
    hold_labels_out,
    keep_single_positive,
    share_among_teachers,
)
from labelweave.exceptions import InputError
from labelweave.labels import as_labels

# -- positives that nobody annotated ---------------------------------------------------

FORMS = ["dense", "sparse", "sparse, absent unknown"]


def make_labels(n_rows=60, n_labels=7, seed=0, unknown=0.1):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < 0.4).astype(np.float32)
    Y[rng.random(Y.shape) < unknown] = np.nan
    return Y


def in_form(Y, form):
    if form == "dense":
        return as_labels(Y)
    if form == "sparse":
        return as_labels(Y).to_sparse()
    rows, columns = np.nonzero(~np.isnan(Y))
    stored = sp.csr_array((Y[rows, columns], (rows, columns)), shape=Y.shape)
    return as_labels(stored, absent="unknown")


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_", ["negative", "unknown"])
def test_exactly_the_hidden_positives_change(form, as_):
    Y = make_labels()
    labels = in_form(Y, form)
    result = hide_positives(labels, 0.4, as_=as_, random_state=0)
    hidden = result.hidden.toarray()
    assert hidden.sum() == round(0.4 * (Y == 1).sum())
    assert (Y[hidden] == 1).all()
    expected = Y.copy()
    expected[hidden] = 0 if as_ == "negative" else np.nan
    np.testing.assert_array_equal(result.Y.to_numpy(), expected)
    np.testing.assert_array_equal(result.truth.to_numpy(), Y)
    np.testing.assert_array_equal(labels.to_numpy(), Y)  # nothing given is changed
    assert result.Y.is_sparse == labels.is_sparse
    assert result.Y.names == labels.names


@pytest.mark.parametrize("form", FORMS)
def test_unknown_negatives_leave_only_positives_known(form):
    Y = make_labels()
    result = hide_positives(
        in_form(Y, form), 0.4, as_="unknown", negatives="unknown", random_state=0
    )
    known = ~np.isnan(result.Y.to_numpy())
    np.testing.assert_array_equal(known, (Y == 1) & ~result.hidden.toarray())
    assert (result.Y.to_numpy()[known] == 1).all()
    if form != "dense":
        assert result.Y.values.nnz == known.sum()  # hidden entries leave no trace in storage


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("as_", ["negative", "unknown"])
def test_a_single_positive_is_kept_in_each_row_that_has_one(form, as_):
    Y = make_labels()
    Y[5] = 0
    result = keep_single_positive(in_form(Y, form), as_=as_, random_state=0)
    had = (Y == 1).any(axis=1)
    np.testing.assert_array_equal((result.Y.to_numpy() == 1).sum(axis=1), had.astype(int))
    changed = result.hidden.toarray()
    assert ((result.Y.to_numpy() == 1) | changed == (Y == 1)).all()


def test_the_kept_positive_is_drawn_evenly():
    kept = keep_single_positive(np.ones((6000, 3)), random_state=0).Y.to_numpy().sum(axis=0)
    assert np.abs(kept - 2000).max() < 200  # more than five standard deviations


@settings(max_examples=60)
@given(share=st.floats(0, 1), seed=st.integers(0, 100), keep_one=st.booleans())
def test_share_and_seed_decide(share, seed, keep_one):
    Y = make_labels(seed=seed)
    n_positive = int((Y == 1).sum())
    spare = n_positive - int((Y == 1).any(axis=1).sum())
    if keep_one and round(share * n_positive) > spare:
        with pytest.raises(InputError, match=f"at most {spare} of the {n_positive} can"):
            hide_positives(Y, share, keep_one=keep_one, random_state=seed)
        return
    first = hide_positives(Y, share, keep_one=keep_one, random_state=seed)
    again = hide_positives(sp.csr_array(Y), share, keep_one=keep_one, random_state=seed)
    assert first.hidden.sum() == round(share * n_positive)
    np.testing.assert_array_equal(first.hidden.toarray(), again.hidden.toarray())
    if keep_one:
        left = (first.Y.to_numpy() == 1).any(axis=1)
        np.testing.assert_array_equal(left, (Y == 1).any(axis=1))


def test_other_seed_hides_others():
    Y = make_labels()
    first, second = (hide_positives(Y, 0.5, random_state=seed).hidden for seed in (0, 1))
    assert (first.toarray() != second.toarray()).any()


def test_labels_without_positives_are_fine():
    assert hide_positives(np.zeros((3, 2)), 0.5).hidden.nnz == 0
    assert keep_single_positive(np.zeros((3, 2))).hidden.nnz == 0


def test_scenario_labels_fit_a_data_set():
    Y = make_labels()
    data = Dataset(np.zeros((60, 2)), hide_positives(Y, 0.2, as_="unknown", random_state=0).Y)
    assert data.summary()["unknown"] == np.isnan(Y).sum() + round(0.2 * (Y == 1).sum())


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"share": 1.5}, "from 0 to 1, not 1.5"),
        ({"share": float("nan")}, "from 0 to 1"),
        ({"share": 0.5, "as_": "zero"}, "as_ must be"),
        ({"share": 0.5, "negatives": "maybe"}, "negatives must be"),
        ({"share": 0.5, "negatives": "unknown"}, "use as_='unknown'"),
    ],
)
def test_impossible_hiding_is_refused_clearly(how, message):
    with pytest.raises(InputError, match=message):
        hide_positives(make_labels(), **how)


# -- labels shared among teachers ------------------------------------------------------


def make_data(n_rows=120, n_labels=9, seed=0, sparse=False, density=0.25):
    rng = np.random.default_rng(seed)
    Y = (rng.random((n_rows, n_labels)) < density).astype(np.float32)
    X = np.arange(n_rows, dtype=float)[:, None]
    names = [f"label {j}" for j in range(n_labels)]
    return Dataset(X, as_labels(sp.csr_array(Y) if sparse else Y, names=names), name="toy")


def rows_of(data):
    return set(data.X[:, 0].astype(int))


@settings(max_examples=60)
@given(
    n_labels=st.integers(4, 20),
    n_teachers=st.integers(2, 4),
    overlap=st.floats(0, 1),
    seed=st.integers(0, 100),
)
def test_teachers_have_disjoint_rows_and_cover_all_labels(n_labels, n_teachers, overlap, seed):
    data = make_data(n_labels=n_labels, seed=seed)
    scenario = share_among_teachers(data, n_teachers, overlap=overlap, random_state=seed)
    parts = [rows_of(t.data) for t in scenario.teachers] + [rows_of(scenario.rest)]
    assert sum(map(len, parts)) == len(data)
    assert set.union(*parts) == set(range(len(data)))
    assert len(scenario.rest) == len(data) - round(0.7 * len(data))
    sizes = [len(teacher.data) for teacher in scenario.teachers]
    assert max(sizes) - min(sizes) <= 1
    owners = [name for teacher in scenario.teachers for name in teacher.label_names]
    assert set(owners) == set(data.label_names)
    for name in data.label_names:
        assert owners.count(name) == (2 if name in scenario.shared else 1)
    known = [len(teacher.label_names) for teacher in scenario.teachers]
    assert max(known) - min(known) <= 2  # 1, unless nearly all labels are shared
    expected = overlap * n_labels / (2 - overlap)
    assert abs(len(scenario.shared) - expected) <= 0.5


@pytest.mark.parametrize("sparse", [False, True])
def test_a_teachers_data_are_its_rows_and_labels(sparse):
    data = make_data(sparse=sparse)
    scenario = share_among_teachers(data, 3, overlap=0.4, random_state=1)
    for teacher in scenario.teachers:
        expected = data.Y[teacher.rows].select(teacher.label_names).to_numpy()
        np.testing.assert_array_equal(teacher.data.Y.to_numpy(), expected)
        assert teacher.data.Y.is_sparse == sparse
        assert rows_of(teacher.data) == set(teacher.rows)
    np.testing.assert_array_equal(scenario.rest.Y.to_numpy(), data.Y[scenario.rest_rows].to_numpy())
    assert scenario.rest.label_names == data.label_names


def test_half_of_each_of_two_teachers_labels_overlap():
    scenario = share_among_teachers(make_data(), 2, overlap=0.5, random_state=0)
    assert [len(teacher.label_names) for teacher in scenario.teachers] == [6, 6]
    assert len(scenario.shared) == 3


def test_teachers_keep_groups_together_and_the_seed_decides():
    data = make_data()
    data = Dataset(data.X, data.Y, groups=np.arange(120) // 4)
    scenario = share_among_teachers(data, 2, random_state=0)
    groups = [set(t.data.groups) for t in scenario.teachers] + [set(scenario.rest.groups)]
    assert sum(map(len, groups)) == 30
    again = share_among_teachers(data, 2, random_state=0)
    other = share_among_teachers(data, 2, random_state=1)
    assert again.shared == scenario.shared
    np.testing.assert_array_equal(again.rest_rows, scenario.rest_rows)
    assert other.shared != scenario.shared or set(other.rest_rows) != set(scenario.rest_rows)


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"n_teachers": 1}, "at least 2 teachers"),
        ({"overlap": 1.1}, "overlap must be from 0 to 1"),
        ({"teacher_rows": 1.0}, "teacher_rows must be between"),
        ({"n_teachers": 30}, "9 labels are too few for 30 teachers"),
        ({"n_teachers": 100}, "120 rows are too few for 100 teachers"),
    ],
)
def test_impossible_shares_are_refused_clearly(how, message):
    with pytest.raises(InputError, match=message):
        share_among_teachers(make_data(), **how)


# -- unseen labels ---------------------------------------------------------------------


@pytest.mark.parametrize("sparse", [False, True])
def test_unseen_labels_are_gone_from_train_and_kept_in_test(sparse):
    data = make_data(sparse=sparse)
    train, test = data[:80], data[80:]
    scenario = hold_labels_out(train, test, 3, random_state=0)
    assert len(scenario.unseen) == 3
    assert set(scenario.seen) | set(scenario.unseen) == set(data.label_names)
    assert scenario.train.label_names == scenario.seen
    assert scenario.test.label_names == scenario.seen + scenario.unseen
    assert rows_of(scenario.train) == set(range(80))
    np.testing.assert_array_equal(
        scenario.train.Y.to_numpy(), train.Y.select(scenario.seen).to_numpy()
    )
    only = scenario.test_unseen
    assert only.label_names == scenario.unseen
    assert (only.Y.to_numpy().sum(axis=1) > 0).all()
    has = test.Y.select(scenario.unseen).to_numpy().any(axis=1)
    assert len(only) == has.sum()
    assert scenario.train.Y.is_sparse == sparse
    assert data.Y.n_labels == 9  # nothing given is changed


@settings(max_examples=60)
@given(seed=st.integers(0, 200), min_examples=st.integers(1, 4), count=st.integers(1, 3))
def test_dropping_rows_leaves_every_seen_label_its_examples(seed, min_examples, count):
    data = make_data(n_labels=8, seed=seed, density=0.15)
    train, test = data[:60], data[60:]
    before = train.Y.counts()[0]
    try:
        scenario = hold_labels_out(
            train, test, count, rows="drop", min_examples=min_examples, random_state=seed
        )
    except InputError:
        assume(False)  # no such labels in these rows
    assert (scenario.train.Y.counts()[0] >= min_examples).all()
    rows = sorted(rows_of(scenario.train))
    assert not train[rows].Y.select(scenario.unseen).to_numpy().any()
    dropped = sorted(set(range(60)) - set(rows))
    assert train[dropped].Y.select(scenario.unseen).to_numpy().any(axis=1).all()
    # Only labels that were too rare from the start are left out.
    rare = {name for name, n in zip(train.label_names, before, strict=True) if n < min_examples}
    assert set(scenario.left_out) <= rare


def test_rare_labels_are_left_out_or_kept_as_asked():
    data = make_data()
    Y = data.Y.to_numpy().copy()
    Y[:80, 2] = 0
    data = Dataset(data.X, Y)
    scenario = hold_labels_out(data[:80], data[80:], ["label_0"])
    assert scenario.left_out == ("label_2",)
    assert "label_2" not in scenario.test.label_names
    assert hold_labels_out(data[:80], data[80:], ["label_0"], min_examples=0).left_out == ()
    assert hold_labels_out(data[:80], data[80:], ["label_2"]).unseen == ("label_2",)


def test_labels_without_test_rows_are_not_chosen():
    data = make_data()
    Y = data.Y.to_numpy().copy()
    Y[80:, :6] = 0
    data = Dataset(data.X, Y)
    for seed in range(5):
        chosen = hold_labels_out(data[:80], data[80:], 3, random_state=seed).unseen
        assert set(chosen) == {"label_6", "label_7", "label_8"}
    with pytest.raises(InputError, match="only 3 of the 4 labels can be held out"):
        hold_labels_out(data[:80], data[80:], 4)


@pytest.mark.parametrize(
    ("unseen", "how", "message"),
    [
        (0, {}, "unseen must be a number from 1 to 8"),
        (9, {}, "unseen must be a number from 1 to 8"),
        (1.5, {}, "a share between 0 and 1"),
        (["no such"], {}, "there is no label 'no such'"),
        (2, {"rows": "hide"}, "rows must be"),
    ],
)
def test_impossible_holding_out_is_refused_clearly(unseen, how, message):
    data = make_data()
    with pytest.raises(InputError, match=message):
        hold_labels_out(data[:80], data[80:], unseen, **how)


def test_train_and_test_must_have_the_same_labels():
    data = make_data()
    with pytest.raises(InputError, match="the same labels"):
        hold_labels_out(data[:80], data[80:].select_labels(data.label_names[:4]), 2)
