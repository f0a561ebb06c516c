"""Members that cost much and bring little are dropped."""

import numpy as np

from labelweave.dependent.weave_choice import without_costly_members
from labelweave.dependent.weave_stacking import choose_members


def test_a_costly_member_goes_unless_it_is_needed():
    rng = np.random.default_rng(0)
    truth = (rng.random((300, 3)) < 0.4).astype(float)
    good, noise = 2 * (truth - 0.5) + rng.normal(size=truth.shape), rng.normal(size=truth.shape)
    odds = np.stack([good, good + 0.01 * noise, noise])
    weights = choose_members(odds, truth)
    cheap = without_costly_members(odds, truth, weights, np.array([100.0, 1.0, 1.0]), 10.0)
    assert cheap[0] == 0
    assert cheap[1] > 0
    needed = np.stack([good, noise])
    weights = np.array([0.5, 0.1])
    kept = without_costly_members(needed, truth, weights, np.array([100.0, 1.0]), 10.0)
    assert kept[0] > 0  # without it cross-entropy would rise: it stays, whatever it costs
