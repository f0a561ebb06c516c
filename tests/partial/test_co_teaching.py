"""Co-teaching: the rows that each network learns from, against sorted lists."""

import numpy as np

import labelweave as lw
from labelweave.partial.co_teaching import CoTeachingRule

QUICK = {"hidden": (16,), "epochs": 12, "lr": 2e-2}


def test_each_network_learns_the_rows_of_small_loss_in_the_other(
    mini_batch, slow_row_losses, used_rows
):
    f, g = np.random.default_rng(0).normal(size=(2, 8, 5))
    batch = mini_batch(f, g, drop_high=0.25)
    of_f, of_g = CoTeachingRule().select(batch)
    for selection, peer in ((of_f, g), (of_g, f)):
        assert used_rows(selection) == set(np.argsort(slow_row_losses(peer, batch.targets))[:6])


def test_co_teaching_ignores_rows(data):
    X, Y, partial = data
    history = (
        lw.CoTeaching(lw.MLP(**QUICK), random_state=0, noise_rate=0.25, ramp=2)
        .fit(X, partial, truth=Y)
        .history_
    )
    rows = 192  # a fifth is held out
    unannotated = (partial == 0).sum() * rows / 240
    # Rows with annotated positives have a high loss, and fewer unannotated entries.
    assert 0.6 * 0.25 < history["removed"].iloc[-1] / unannotated < 0.25
    assert "removed_missing" in history
