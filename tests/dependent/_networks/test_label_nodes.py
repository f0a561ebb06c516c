"""Labels as nodes, and how much of the labels a row is told."""

import torch

from labelweave.dependent._networks.label_nodes import (
    FeatureTokens,
    LabelNodes,
    LabelReadout,
    mask_labels,
)
from labelweave.nn.process_rows import RowShare, held_share


def test_a_state_moves_the_vector_of_its_label_alone():
    nodes = LabelNodes(3, 4)
    vectors = nodes(torch.tensor([[1.0, 0.0, torch.nan], [torch.nan] * 3]))
    for j, state in enumerate((1, 0)):
        torch.testing.assert_close(vectors[0, j], nodes.vectors[j] + nodes.states[state])
    torch.testing.assert_close(vectors[0, 2], nodes.vectors[2])
    torch.testing.assert_close(vectors[1:], nodes())


@torch.no_grad()
def test_each_label_has_a_classifier_of_its_own():
    readout, nodes = LabelReadout(3, 4), torch.randn(5, 3, 4)
    readout.bias.normal_()
    logits = readout(nodes)
    for r in range(5):
        for j in range(3):
            one = readout.weight[j] @ nodes[r, j] + readout.bias[j]
            torch.testing.assert_close(logits[r, j], one)


@torch.no_grad()
def test_each_token_is_a_linear_map_of_the_last_hidden_layer():
    tokens = FeatureTokens(6, 3, 4, hidden=(5,), dropout=0.3, norm=None).eval()
    x = torch.randn(2, 6)
    hidden = tokens.encoder(x)
    for t in range(3):
        rows = slice(4 * t, 4 * t + 4)
        expected = hidden @ tokens.tokens.weight[rows].T + tokens.tokens.bias[rows]
        torch.testing.assert_close(tokens(x)[:, t], expected)


def test_from_none_to_three_quarters_of_the_labels_are_told():
    torch.manual_seed(0)
    targets = torch.randint(0, 2, (4000, 8)).float()
    told = mask_labels(targets)
    known = ~torch.isnan(told)
    assert (told[known] == targets[known]).all()
    counts = known.sum(dim=1).bincount(minlength=9) / 4000
    torch.testing.assert_close(counts[:7], torch.full((7,), 1 / 7), atol=0.02, rtol=0)
    assert counts[7:].sum() == 0
    by_label = known.float().mean(dim=0)
    torch.testing.assert_close(by_label, torch.full((8,), 3 / 8), atol=0.03, rtol=0)


def test_some_rows_are_told_nothing_and_unknown_is_never_told():
    torch.manual_seed(0)
    targets = torch.full((2000, 20), torch.nan)
    targets[:, ::2] = 1.0
    told = mask_labels(targets, rows=0.25)
    assert torch.isnan(told[:, 1::2]).all()
    some = (~torch.isnan(told)).any(dim=1).float().mean()
    assert 0.2 < some < 0.27
    assert torch.isnan(mask_labels(torch.ones(50, 1))).all()  # a lone label is always asked


def test_what_a_row_is_told_does_not_depend_on_the_number_of_processes():
    targets = torch.randint(0, 2, (10, 6)).float()
    torch.manual_seed(1)
    at_once = mask_labels(targets)
    parts = []
    for start, stop in ((0, 4), (4, 10)):
        torch.manual_seed(1)
        with held_share(RowShare(start, stop, 10)):
            parts.append(mask_labels(targets[start:stop]))
    torch.testing.assert_close(torch.cat(parts), at_once, equal_nan=True)
