"""Selection by rank against sorting in Python."""

import pytest
import torch

from labelweave.nn.selection import drop_share, extreme, label_loss, rows_to_drop


def slow_extreme(values, among, share, largest):
    places = [tuple(place) for place in among.nonzero().tolist()]
    places.sort(key=lambda place: values[place].item(), reverse=largest)
    chosen = torch.zeros_like(among)
    for place in places[: round(share * len(places))]:
        chosen[place] = True
    return chosen


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.5, 0.99, 1.0])
def test_the_share_of_extreme_entries(share, largest):
    generator = torch.Generator().manual_seed(0)
    values = torch.randn(9, 11, generator=generator)
    among = torch.rand(9, 11, generator=generator) < 0.7
    found = extreme(values, among, share, largest=largest)
    assert torch.equal(found, slow_extreme(values, among, share, largest))


def test_ties_are_cut_at_the_number_asked_for():
    among = torch.ones(5, 4, dtype=torch.bool)
    assert extreme(torch.zeros(5, 4), among, 0.25).sum() == 5


def test_nothing_to_choose_from():
    nothing = torch.zeros(3, 2, dtype=torch.bool)
    assert not extreme(torch.randn(3, 2), nothing, 0.9).any()


def test_values_at_the_end_of_the_range_are_not_taken_for_entries_outside():
    values = torch.tensor([[-torch.inf, 1.0], [2.0, 3.0]])
    among = torch.tensor([[True, False], [True, False]])
    assert torch.equal(extreme(values, among, 0.5), torch.tensor([[False, False], [True, False]]))


def test_rows_of_largest_loss_among_some():
    losses = torch.tensor([5.0, 4.0, 3.0, 2.0])
    among = torch.tensor([False, True, True, True])
    assert rows_to_drop(losses, 1 / 3, among).ravel().tolist() == [False, True, False, False]


def test_schedule_is_that_of_the_algorithm():
    """R(e) = 1 - min(e / E_k tau, tau), set at the end of epoch e, first used in the next."""
    reserve, tau, e_k = 1.0, 0.3, 7
    for e in range(1, 30):
        assert drop_share(e - 1, tau, e_k) == pytest.approx(1 - reserve)
        reserve = 1 - min(e / e_k * tau, tau)
    assert drop_share(0, tau, 0) == tau  # no ramp: from the first epoch on


def test_label_loss_is_cross_entropy_without_gradient():
    logits = torch.tensor([[-2.0, 0.5]], requires_grad=True)
    p = torch.sigmoid(logits)
    torch.testing.assert_close(label_loss(logits), -torch.log(1 - p).detach())
    torch.testing.assert_close(label_loss(logits, positive=True), -torch.log(p).detach())
    assert not label_loss(logits).requires_grad
