"""Layers and encoders."""

import pytest
import torch
from torch import nn

from labelweave.exceptions import InputError
from labelweave.nn.encoders import BatchNorm, Dropout, MLPEncoder
from labelweave.nn.process_rows import bernoulli_, held_share, share_of


def test_layers_in_order():
    encoder = MLPEncoder(6, (5, 4), dropout=0.1, norm="batch", activation="gelu", input_dropout=0.2)
    kinds = [type(layer) for layer in encoder]
    block = [nn.Linear, BatchNorm, nn.GELU, Dropout]
    assert kinds == [Dropout, *block, *block]
    assert encoder.n_out == 4


def test_no_layers_pass_the_features():
    x = torch.randn(3, 2)
    encoder = MLPEncoder(2, ())
    assert encoder.n_out == 2
    assert (encoder(x) == x).all()


def test_dropout_of_shares_is_dropout_of_the_batch():
    x = torch.randn(9, 40)
    layer = Dropout(0.3)
    torch.manual_seed(1)
    at_once = layer(x)
    assert 0.15 < (at_once == 0).float().mean() < 0.45
    for rank in range(2):
        share = share_of(9, rank, 2)
        torch.manual_seed(1)
        with held_share(share):
            of_share = layer(x[share.start : share.stop])
        torch.testing.assert_close(of_share, at_once[share.start : share.stop])
    assert (layer.eval()(x) == x).all()


@pytest.mark.parametrize("p", [0.0, 0.01, 0.3, 0.5, 0.8, 1.0])
def test_fast_coins_are_fair_and_independent(p):
    torch.manual_seed(0)
    coins = bernoulli_(torch.empty(501, 401), p)
    assert set(coins.unique().tolist()) <= {0.0, 1.0}
    spread = (p * (1 - p)) ** 0.5
    assert coins.mean().item() == pytest.approx(p, abs=5 * spread / coins.numel() ** 0.5)
    for shift in (1, 2, 3, 4):  # four elements come from one random word
        both = (coins[:, :-shift] * coins[:, shift:]).mean().item()
        assert both == pytest.approx(p * p, abs=5 * spread / coins.numel() ** 0.5 + 1e-9)
    other = bernoulli_(torch.empty(501, 401), p)
    assert (coins == other).all() == (p in (0.0, 1.0))


def test_dropout_keeps_the_mean_and_sends_its_gradient_where_it_kept():
    torch.manual_seed(0)
    for layer in (Dropout(0.25), Dropout(0.25, by_row=False)):
        x = torch.ones(300, 200, requires_grad=True)
        out = layer(x)
        assert out.mean().item() == pytest.approx(1, abs=0.02)
        out.sum().backward()
        torch.testing.assert_close(x.grad, out.detach())


def test_batch_norm_is_torchs_and_takes_a_lone_row():
    torch.manual_seed(0)
    x = torch.randn(8, 3) * 2 + 1
    ours, theirs = BatchNorm(3), nn.BatchNorm1d(3)
    torch.testing.assert_close(ours(x), theirs(x))
    torch.testing.assert_close(ours.running_var, theirs.running_var)
    lone = ours(x[:1])
    torch.testing.assert_close(lone, theirs.eval()(x[:1]))


@pytest.mark.parametrize("wrong", [{"activation": "swoosh"}, {"norm": "group"}])
def test_unknown_names_are_refused(wrong):
    with pytest.raises(InputError, match="choose one of"):
        MLPEncoder(2, (3,), **wrong)
