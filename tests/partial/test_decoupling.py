"""Decoupling: only rows on which the networks disagree are used."""

import numpy as np

from labelweave.partial.decoupling import DecouplingRule


def test_rows_with_disagreement(mini_batch, used_rows):
    f = -0.5 - np.random.default_rng(2).random((8, 5))
    g = f.copy()
    g[3, 1], g[5, 0], g[6, 2] = 1.0, 1.0, 2.0
    for selection in DecouplingRule().select(mini_batch(f, g)):
        assert used_rows(selection) == {3, 5, 6}
    for selection in DecouplingRule().select(mini_batch(f, f)):
        assert used_rows(selection) == set()
