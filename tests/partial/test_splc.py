"""SPLC: its loss before corrections start."""

import torch

from labelweave.nn.losses import bce, splc


def test_splc_before_corrections_start():
    logits = torch.linspace(-4, 4, 9)
    zeros = torch.zeros_like(logits)
    torch.testing.assert_close(splc(logits, zeros, correct=False), bce(logits, zeros))
