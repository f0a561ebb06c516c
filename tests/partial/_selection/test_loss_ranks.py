"""Selection by rank against sorting in Python."""

import numpy as np
import pytest

from labelweave.partial._selection.loss_ranks import drop_share, extreme, rows_to_drop


def slow_extreme(values, among, count, largest):
    places = [tuple(place) for place in np.argwhere(among)]
    places.sort(key=lambda place: values[place], reverse=largest)
    return sorted(row * values.shape[1] + column for row, column in places[:count])


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
@pytest.mark.parametrize("shape", [(9, 11), (64, 170)], ids=["few", "sampled"])
@pytest.mark.parametrize("kind", ["normal", "ties", "by label", "sorted"])
def test_the_most_extreme_entries(kind, shape, share, largest):
    """Also where the sample misleads: every 17th entry is of the same few labels."""
    rng = np.random.default_rng(0)
    values = rng.normal(size=shape).astype(np.float32)
    if kind == "ties":
        values = values.round()
    elif kind == "by label":  # 170 labels: a sample of every 17th entry sees ten of them
        values += 10 * (np.arange(shape[1]) % 17 == 0)
    elif kind == "sorted":
        values = np.sort(values, axis=None).reshape(shape)
    among = rng.random(shape) < 0.7
    count = round(share * among.sum())
    selected = extreme(values, among, count, largest=largest)
    assert selected.tolist() == slow_extreme(values, among, count, largest)


def test_ties_are_broken_by_position():
    among = np.ones((5, 4), dtype=bool)
    among[0] = False
    assert extreme(np.zeros((5, 4)), among, 5).tolist() == [4, 5, 6, 7, 8]


def test_nothing_to_choose_from():
    assert extreme(np.ones((3, 2)), np.zeros((3, 2), dtype=bool), 0).tolist() == []


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
