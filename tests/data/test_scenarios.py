"""Scenarios: what is hidden, what is left, that nothing given is changed."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from labelweave.data import Dataset
from labelweave.data.scenarios import hide_positives, keep_single_positive
from labelweave.exceptions import InputError
from labelweave.labels import as_labels

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


@settings(deadline=None, max_examples=60)
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
