"""Hill: what its loss does to probable negatives."""

import torch

from labelweave.nn.losses import hill


def test_gradient_of_the_hill_loss_falls_for_probable_negatives():
    logits = torch.tensor([[0.0, 1.0, 6.0]], requires_grad=True)
    hill(logits, torch.zeros(1, 3)).sum().backward()
    assert logits.grad[0, 2] < logits.grad[0, 0]
