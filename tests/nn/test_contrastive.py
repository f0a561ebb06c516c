"""Contrastive losses against slow loops, another library, and the closed-form gradient."""

import math

import pytest
import torch
from torch.nn import functional as F  # noqa: N812
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from labelweave.exceptions import InputError
from labelweave.nn.contrastive import mulsupcon, positive_weights, supcon

TAU = 0.3


@pytest.fixture
def batch():
    """Anchors that are keys too, and older keys, with 0 to 5 labels of 5 each."""
    generator = torch.Generator().manual_seed(0)
    draw = {"generator": generator, "dtype": torch.float64}
    queries = F.normalize(torch.randn(9, 4, **draw), dim=1)
    keys = F.normalize(torch.randn(23, 4, **draw), dim=1)
    key_labels = (torch.rand(23, 5, **draw) < 0.4).double()
    key_labels[0] = 0  # an anchor without a label
    key_labels[1] = key_labels[2]  # two rows with the same set
    return queries, keys, key_labels[:9].clone(), key_labels


def label_set(row):
    return {j for j, value in enumerate(row.tolist()) if value == 1}


def slow_terms(batch, positive_sets, left_out=None):
    """-1 / |P| sum over P of log softmax, for each positive set of each anchor."""
    queries, keys = batch[:2]
    terms = []
    for i, sets in enumerate(positive_sets):
        taking_part = [a for a in range(len(keys)) if left_out is None or not left_out[i, a]]
        scores = {a: float(queries[i] @ keys[a]) / TAU for a in taking_part}
        below = math.log(sum(math.exp(s) for s in scores.values()))
        of_query = []
        for members in sets:
            members = [p for p in members if p in scores]
            if members:
                of_query.append(-sum(scores[p] - below for p in members) / len(members))
        terms.append(of_query)
    return terms


def sets_of_each_label(batch):
    _, _, query_labels, key_labels = batch
    of_keys = [label_set(row) for row in key_labels]
    return [
        [[m for m, labels in enumerate(of_keys) if j in labels] for j in sorted(label_set(row))]
        for row in query_labels
    ]


def mean(values):
    return sum(values) / len(values)


@pytest.mark.parametrize("self_left_out", [False, True])
def test_each_label_is_eq_4_and_5(batch, self_left_out):
    left_out = torch.eye(9, 23, dtype=torch.bool) if self_left_out else None
    terms = slow_terms(batch, sets_of_each_label(batch), left_out)
    expected = mean([term for of_query in terms for term in of_query])
    loss = mulsupcon(*batch, temperature=TAU, left_out=left_out)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


def test_weighted_is_eq_6(batch):
    terms = slow_terms(batch, sets_of_each_label(batch))
    expected = mean([mean(of_query) for of_query in terms if of_query])
    loss = mulsupcon(*batch, temperature=TAU, weighted=True)
    assert loss.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(
    ("positives", "is_positive"),
    [
        ("all", lambda query_set, other: query_set == other),
        ("any", lambda query_set, other: bool(query_set & other)),
    ],
)
def test_all_and_any_are_eq_1_with_their_positives(batch, positives, is_positive):
    _, _, query_labels, key_labels = batch
    of_keys = [label_set(row) for row in key_labels]
    sets = [
        [[m for m, other in enumerate(of_keys) if query_set and is_positive(query_set, other)]]
        for query_set in map(label_set, query_labels)
    ]
    expected = mean([of_query[0] for of_query in slow_terms(batch, sets) if of_query])
    loss = mulsupcon(*batch, temperature=TAU, positives=positives)
    assert loss.item() == pytest.approx(expected, rel=1e-12)
    mask = torch.tensor([[m in chosen[0] for m in range(23)] for chosen in sets])
    again = supcon(*batch[:2], mask, temperature=TAU)
    assert again.item() == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("positives", ["each-label", "all", "any"])
@pytest.mark.parametrize("with_keys", [False, True])
def test_single_labels_give_supcon_of_another_library(positives, with_keys):
    losses = pytest.importorskip("pytorch_metric_learning.losses")
    generator = torch.Generator().manual_seed(1)
    classes = torch.randint(0, 4, (20,), generator=generator)
    rows = torch.randn(20, 6, generator=generator, dtype=torch.float64, requires_grad=True)
    z, y = F.normalize(rows, dim=1), F.one_hot(classes, 4).double()
    peer = losses.SupConLoss(temperature=TAU)
    if with_keys:
        others = torch.randint(0, 4, (30,), generator=generator)
        keys = F.normalize(torch.randn(30, 6, generator=generator, dtype=torch.float64), dim=1)
        expected = peer(z, classes, ref_emb=keys, ref_labels=others)
        key_labels = F.one_hot(others, 4).double()
        value = mulsupcon(z, keys, y, key_labels, temperature=TAU, positives=positives)
    else:
        itself = torch.eye(20, dtype=torch.bool)
        expected = peer(z, classes)
        value = mulsupcon(z, z, y, y, temperature=TAU, positives=positives, left_out=itself)
    assert value.item() == pytest.approx(expected.item(), rel=1e-9)
    gradient, peers = (torch.autograd.grad(loss, rows, retain_graph=True)[0]
                       for loss in (value, expected))  # fmt: skip
    torch.testing.assert_close(gradient, peers)


def test_the_gradient_is_eq_7(batch):
    queries, keys, query_labels, key_labels = batch
    queries.requires_grad_()
    mulsupcon(*batch, temperature=TAU).backward()
    n_terms = query_labels.sum()
    for i, row in enumerate(query_labels):
        labels = label_set(row)
        softmax = torch.softmax(queries[i] @ keys.T / TAU, dim=0)
        expected = len(labels) / TAU * (softmax @ keys)
        for j in labels:
            expected = expected - keys[key_labels[:, j] == 1].mean(dim=0) / TAU
        torch.testing.assert_close(queries.grad[i], (expected / n_terms).detach())


@pytest.mark.parametrize("positives", ["all", "any"])
def test_the_gradient_of_all_and_any_is_eq_3(batch, positives):
    queries, keys, query_labels, key_labels = batch
    queries.requires_grad_()
    mulsupcon(*batch, temperature=TAU, positives=positives).backward()
    n_anchors = sum(bool(label_set(row)) for row in query_labels)
    for i, own in enumerate(map(label_set, query_labels)):
        members = [m for m, other in enumerate(map(label_set, key_labels))
                   if own and (own == other if positives == "all" else own & other)]  # fmt: skip
        expected = torch.zeros(4, dtype=torch.float64)
        if members:
            away = torch.softmax(queries[i] @ keys.T / TAU, dim=0) @ keys
            expected = (away - keys[members].mean(dim=0)) / TAU / n_anchors
        torch.testing.assert_close(queries.grad[i], expected.detach())


def test_the_positives_of_figure_2():
    """The anchor has the labels 1 and 3; P_1 = {1, 3, 6} and P_3 = {1, 2, 3, 4, 6}."""
    first, third = [1, 0, 1, 0, 0, 1], [1, 1, 1, 1, 0, 1]
    second = [0, 1, 0, 0, 1, 1]  # the anchor does not have it
    keys = torch.tensor([first, second, third], dtype=torch.float64).T
    found = positive_weights(torch.tensor([[1.0, 0.0, 1.0]], dtype=torch.float64), keys)
    both, one = 1 / 3 + 1 / 5, 1 / 5
    expected = torch.tensor([[both, one, both, one, 0, both]], dtype=torch.float64)
    torch.testing.assert_close(found, expected)


@pytest.mark.parametrize("positives", ["each-label", "all", "any"])
def test_unknown_entries_make_no_positive_pair(batch, positives):
    queries, keys, _, key_labels = batch
    unknown = torch.rand(key_labels.shape, generator=torch.Generator().manual_seed(2)) < 0.3
    masked = key_labels.masked_fill(unknown, torch.nan)
    weights = positive_weights(masked[:9], masked, positives=positives)
    assert not weights.isnan().any()
    known_on = torch.where(unknown, 0.0, key_labels)
    shared = known_on[:9] @ known_on.T
    assert (weights[shared == 0] == 0).all()
    if positives == "each-label":
        torch.testing.assert_close(weights, positive_weights(known_on[:9], known_on))
    if positives == "all":
        differs = (masked[:9, None] - masked[None]).abs().nan_to_num(0).sum(dim=2) > 0
        assert ((weights > 0) == ((shared > 0) & ~differs)).all()
    assert torch.isfinite(
        mulsupcon(queries, keys, masked[:9], masked, temperature=TAU, positives=positives)
    )


def test_labels_that_no_key_carries_are_skipped(batch):
    queries, keys, query_labels, key_labels = batch
    key_labels[:, 3] = 0
    query_labels[:, 3] = 1
    without = [0, 1, 2, 4]
    torch.testing.assert_close(
        mulsupcon(*batch), mulsupcon(queries, keys, query_labels[:, without],
                                     key_labels[:, without])
    )  # fmt: skip


@pytest.mark.parametrize("positives", ["each-label", "all", "any"])
def test_no_positive_pair_at_all_costs_nothing(batch, positives):
    queries, keys, query_labels, key_labels = batch
    queries.requires_grad_()
    loss = mulsupcon(queries, keys, query_labels * 0, key_labels, positives=positives)
    loss.backward()
    assert loss == 0
    assert (queries.grad == 0).all()


class _Largest(TorchDispatchMode):
    """Notes the size of the largest tensor that any operation makes, backward ones too."""

    size = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        sizes = [leaf.numel() for leaf in tree_leaves(made) if isinstance(leaf, torch.Tensor)]
        self.size = max([self.size, *sizes])
        return made


@pytest.mark.parametrize("unknown", [False, True])
@pytest.mark.parametrize(
    "kind",
    [
        {},
        {"weighted": True},
        {"positives": "all"},
        {"positives": "any"},
        {"left_out": torch.eye(40, 90, dtype=torch.bool)},
    ],
)
def test_nothing_larger_than_the_scores_or_the_labels_is_made(kind, unknown):
    """Never anchors x keys x labels, nor a row of scores for each label of an anchor."""
    n, m, n_labels = 40, 90, 60
    queries, keys = torch.randn(n, 4, requires_grad=True), torch.randn(m, 4)
    key_labels = torch.ones(m, n_labels)  # an anchor repeated for each would show
    key_labels[0, 0] = torch.nan if unknown else 0
    with _Largest() as largest:
        mulsupcon(queries, keys, key_labels[:n], key_labels, **kind).backward()
    assert largest.size == max(n * m, m * n_labels)


def test_far_scores_stay_finite():
    z = torch.eye(3).requires_grad_()
    loss = mulsupcon(z, torch.eye(3), torch.eye(3).flip(0), torch.eye(3), temperature=1e-3)
    loss.backward()
    assert loss.item() == pytest.approx(2 / 3 * 1000)
    assert torch.isfinite(z.grad).all()


def test_unknown_kind_of_positives(batch):
    with pytest.raises(InputError, match="choose one of each-label, all, any"):
        mulsupcon(*batch, positives="some")
