"""Layers and encoders."""

import pytest
import torch
from torch import nn

from labelweave.exceptions import InputError
from labelweave.nn.encoders import BatchNorm, Dropout, MLPEncoder
from labelweave.nn.shares import held_share, share_of


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
    whole = layer(x)
    assert 0.15 < (whole == 0).float().mean() < 0.45
    for rank in range(2):
        share = share_of(9, rank, 2)
        torch.manual_seed(1)
        with held_share(share):
            own = layer(x[share.start : share.stop])
        torch.testing.assert_close(own, whole[share.start : share.stop])
    assert (layer.eval()(x) == x).all()


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
