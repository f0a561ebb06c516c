"""Co-teaching+: small losses among the rows where the networks disagree."""

import numpy as np

from labelweave.partial.co_teaching_plus import CoTeachingPlusRule


def test_rows_of_small_loss_among_those_with_disagreement(mini_batch, slow_row_losses, used_rows):
    f = -0.5 - np.random.default_rng(2).random((8, 5))
    g = f.copy()
    g[3, 1], g[5, 0], g[6, 2] = 1.0, 1.0, 2.0
    batch = mini_batch(f, g, drop_high=1 / 3)
    of_f, of_g = CoTeachingPlusRule().select(batch)
    for selection, peer in ((of_f, g), (of_g, f)):
        worst = max((3, 5, 6), key=slow_row_losses(peer, batch.targets).__getitem__)
        assert used_rows(selection) == {3, 5, 6} - {worst}


def test_without_disagreement_all_rows_are_used(mini_batch, used_rows):
    f = np.random.default_rng(0).normal(size=(8, 5))
    for selection in CoTeachingPlusRule().select(mini_batch(f, f)):
        assert used_rows(selection) == set(range(8))
