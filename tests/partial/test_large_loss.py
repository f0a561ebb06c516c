"""Large loss matters: one network selects for itself, and permanent corrections stay."""

import numpy as np

import labelweave as lw
from labelweave.partial.large_loss import LargeLossRule, PermanentCorrectionRule

QUICK = {"hidden": (16,), "epochs": 12, "lr": 2e-2}


def test_the_largest_losses_are_rejected(mini_batch):
    z = np.random.default_rng(0).normal(size=(8, 5))
    batch = mini_batch(z, drop_high=0.2)
    places = [tuple(place) for place in np.argwhere(batch.targets == 0).tolist()]
    ranked = sorted(places, key=lambda place: np.log1p(np.exp(z[place])), reverse=True)
    rejected = ranked[: round(0.2 * len(places))]
    (selection,) = LargeLossRule().select(batch)
    for place in places:
        value = selection.targets[place]
        assert np.isnan(value) if place in rejected else value == 0


def test_permanent_corrections_stay(mini_batch):
    first, second = np.random.default_rng(0).normal(size=(2, 8, 5))
    rule = PermanentCorrectionRule(8, 5)
    n_unannotated = int((mini_batch(first).targets == 0).sum())
    before = rule.select(mini_batch(first, drop_high=0.1))[0].targets == 1
    after = rule.select(mini_batch(second, drop_high=0.1))[0].targets == 1
    assert (after & before).sum() == before.sum()
    n_first = round(0.1 * n_unannotated)
    assert rule.corrected.sum() == n_first + round(0.1 * (n_unannotated - n_first))


def test_large_loss_rates_rise_without_end(data):
    X, _, partial = data
    history = (
        lw.LargeLossRejection(lw.MLP(**QUICK), random_state=0, delta=0.05).fit(X, partial).history_
    )
    removed = history["removed"].to_numpy()
    np.testing.assert_allclose(np.diff(removed)[:5], removed[1], rtol=0.35)
