"""Selection by rank against sorting in Python."""

import numpy as np
import pytest

from labelweave.nn.selection import drop_share, extreme, rows_to_drop, without


def slow_extreme(values, among, count, largest):
    places = [tuple(place) for place in np.argwhere(among)]
    places.sort(key=lambda place: values[place], reverse=largest)
    chosen = np.zeros_like(among)
    for place in places[:count]:
        chosen[place] = True
    return chosen


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
def test_the_most_extreme_entries(share, largest):
    rng = np.random.default_rng(0)
    values = rng.normal(size=(9, 11)).astype(np.float32)
    among = rng.random((9, 11)) < 0.7
    count = round(share * among.sum())
    found = extreme(values, np.flatnonzero(~among), count, largest=largest)
    np.testing.assert_array_equal(found, slow_extreme(values, among, count, largest))


def test_ties_are_cut_at_the_number_asked_for():
    found = extreme(np.zeros((5, 4)), np.arange(4), 5)
    assert np.flatnonzero(found).tolist() == [4, 5, 6, 7, 8]


def test_nothing_to_choose_from():
    assert not extreme(np.ones((3, 2)), np.arange(6), 0).any()


def test_dropped_entries_become_unknown():
    targets = np.array([[1, 0, 0, np.nan]], dtype=np.float32)
    found = without(targets, np.array([[False, True, False, False]]))
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, [[1, np.nan, 0, np.nan]])


def test_rows_of_largest_loss_among_some():
    losses = np.array([5.0, 4.0, 3.0, 2.0])
    among = np.array([False, True, True, True])
    assert rows_to_drop(losses, 1 / 3, among).tolist() == [False, True, False, False]


def test_schedule_is_that_of_the_algorithm():
    """R(e) = 1 - min(e / E_k tau, tau), set at the end of epoch e, first used in the next."""
    reserve, tau, e_k = 1.0, 0.3, 7
    for e in range(1, 30):
        assert drop_share(e - 1, tau, e_k) == pytest.approx(1 - reserve)
        reserve = 1 - min(e / e_k * tau, tau)
    assert drop_share(0, tau, 0) == tau  # no ramp: from the first epoch on
