"""Attention between nodes, against loops over heads, nodes and senders."""

import math

import pytest
import torch
from torch.nn import functional as F  # noqa: N812

from labelweave.dependent._networks.attention import Attention, AttentionBlock
from labelweave.exceptions import InputError


def attention_by_loops(layer, nodes, senders, edges=None):
    """Each node's message, one head and one sender at a time."""
    n_rows, size = len(senders), nodes.shape[-1]
    nodes = nodes.expand(n_rows, -1, -1)
    width = size // layer.heads
    w_key, w_value = layer.key_value.weight.chunk(2)
    messages = torch.zeros_like(nodes)
    for r in range(n_rows):
        for i in range(nodes.shape[1]):
            query = layer.query.weight @ nodes[r, i] + layer.query.bias
            heads = []
            for h in range(layer.heads):
                part = slice(h * width, (h + 1) * width)
                scores, values = [], []
                for j in range(senders.shape[1]):
                    if edges is not None and not edges[i, j]:
                        continue
                    key = (w_key @ senders[r, j])[part]
                    scores.append(query[part] @ key / math.sqrt(width))
                    values.append((w_value @ senders[r, j])[part])
                total = sum(math.exp(score) for score in scores)
                weighted = [math.exp(s) / total * v for s, v in zip(scores, values, strict=True)]
                heads.append(sum(weighted))
            messages[r, i] = layer.combine.weight @ torch.cat(heads) + layer.combine.bias
    return messages


@pytest.fixture
def parts():
    torch.manual_seed(0)
    return torch.randn(3, 4, 8), torch.randn(3, 5, 8)


@torch.no_grad()
@pytest.mark.parametrize("heads", [1, 4])
def test_attention_equals_loops(parts, heads):
    layer = Attention(8, heads)
    torch.testing.assert_close(layer(*parts), attention_by_loops(layer, *parts))


@torch.no_grad()
def test_a_node_hears_along_its_edges_only(parts):
    nodes, _ = parts
    layer, edges = Attention(8, 2), torch.eye(4, dtype=torch.bool)
    edges[0, 2] = True
    messages = layer(nodes, nodes, edges)
    torch.testing.assert_close(messages, attention_by_loops(layer, nodes, nodes, edges))
    changed = nodes.clone()
    changed[:, 3] += 1
    torch.testing.assert_close(layer(changed, changed, edges)[:, :3], messages[:, :3])


@torch.no_grad()
def test_nodes_that_all_rows_share_come_once(parts):
    layer, senders = Attention(8, 2), parts[1]
    shared = torch.randn(1, 4, 8)
    torch.testing.assert_close(
        layer(shared, senders), layer(shared.expand(3, -1, -1).contiguous(), senders)
    )


@torch.no_grad()
def test_a_block_adds_and_normalises_twice(parts):
    block = AttentionBlock(8, 2, hidden=6, dropout=0.5).eval()
    nodes, senders = parts
    heard = F.layer_norm(nodes + block.attention(nodes, senders), (8,))
    first, _, second = block.forward_layers
    after = torch.relu(heard @ first.weight.T + first.bias) @ second.weight.T + second.bias
    torch.testing.assert_close(block(nodes, senders), F.layer_norm(heard + after, (8,)))
    block.train()
    assert not torch.allclose(block(nodes, senders), block(nodes, senders))


def test_heads_must_divide_the_width():
    with pytest.raises(InputError, match="3 heads cannot share vectors of 8"):
        Attention(8, 3)
