"""JoCoR: the rows of small joint loss, against loops."""

import numpy as np
import pytest

from labelweave.partial.jocor import JoCoRRule


@pytest.mark.parametrize("agreement", [0.0, 0.1, 0.9])
def test_both_networks_learn_the_rows_of_small_joint_loss(
    agreement, mini_batch, slow_row_losses, used_rows
):
    """The joint loss: both cross-entropies, and both divergences between the probabilities."""
    f, g = np.random.default_rng(0).normal(size=(2, 8, 5))
    batch = mini_batch(f, g, drop_high=0.25)
    joint = []
    for i in range(8):
        apart = 0.0
        for j in range(5):
            if not np.isnan(batch.targets[i, j]):
                p, q = 1 / (1 + np.exp(-f[i, j])), 1 / (1 + np.exp(-g[i, j]))
                apart += p * np.log(p / q) + (1 - p) * np.log((1 - p) / (1 - q))
                apart += q * np.log(q / p) + (1 - q) * np.log((1 - q) / (1 - p))
        both = sum(slow_row_losses(z, batch.targets)[i] for z in (f, g))
        joint.append((1 - agreement) * both + agreement * apart)
    for selection in JoCoRRule(agreement).select(batch):
        assert used_rows(selection) == set(np.argsort(joint)[:6])
