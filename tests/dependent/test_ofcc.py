"""OFCC: the chain against a loop over rows, both losses, and logits set from outside."""

import numpy as np
import pytest
import torch

from labelweave.dependent.ofcc import OFCC, OFCCTask
from labelweave.dependent.ofcc_network import OrderFreeChain
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import held_share, share_of
from labelweave.nn.task import StepInfo

QUICK = {"hidden_size": 16, "epochs": 30, "lr": 1e-2, "random_state": 0}
START = StepInfo(0, 0, 0.0)


def make_chain(n_features=4, n_labels=5, size=6, seed=0, **options):
    torch.manual_seed(seed)
    chain = OrderFreeChain(n_features, n_labels, size, **options)
    for parameter in chain.parameters():  # wide enough that some labels are chosen, some not
        parameter.data.mul_(2.5)
    return chain


def make_batch(n_rows=12, n_features=4, n_labels=5, unknown=0.0):
    generator = torch.Generator().manual_seed(1)
    x = 2 * torch.randn(n_rows, n_features, generator=generator)
    y = (torch.rand(n_rows, n_labels, generator=generator) < 0.4).float()
    hide = torch.rand(n_rows, n_labels, generator=generator) < unknown
    return Batch(x, y.masked_fill(hide, torch.nan), torch.arange(n_rows))


def as_lstm(chain):
    """The same weights in torch's own cell, whose input is [x, logits, chosen]."""
    n_labels, size = chain.out.out_features, chain.hidden_size
    cell = torch.nn.LSTMCell(chain.from_features.in_features + 2 * n_labels, size)
    of_chain, of_state = chain.from_chain.weight.split([2 * n_labels, size], dim=1)
    cell.weight_ih.data = torch.cat([chain.from_features.weight, of_chain], dim=1)
    cell.weight_hh.data = of_state
    cell.bias_ih.data, cell.bias_hh.data = chain.from_features.bias, torch.zeros(4 * size)
    return cell


@torch.no_grad()
def slow_chain(chain, x, start=None, known=None):
    """Eq. 6 to 10 of one row, step by step and label by label; all steps to the last."""
    cell = as_lstm(chain)
    n_labels = chain.out.out_features
    known = {} if known is None else {j: v for j, v in enumerate(known.tolist()) if v in (0, 1)}
    logits = chain.first(x).tolist()
    for j in range(n_labels):
        if start is not None and not np.isnan(start[j]):
            logits[j] = float(start[j])
        if j in known:
            logits[j] = 8.0 if known[j] else -8.0
    chosen = [known.get(j) == 1 for j in range(n_labels)]
    state, final, steps, product = None, None, [], 1.0
    for k in range(chain.n_steps):
        flags = [float(c) for c in chosen]
        read = torch.cat([x, torch.tensor(logits), torch.tensor(flags)])
        state = cell(read.unsqueeze(0), state)
        logits = chain.out(state[0][0]).tolist()
        for j, value in known.items():
            logits[j] = 8.0 if value else -8.0
        steps.append(list(logits))
        if k == 0:
            final = list(logits)
        left = [j for j in range(n_labels) if not chosen[j] and j not in known]
        if left:
            best = max(left, key=lambda j: logits[j])
            p = 1 / (1 + np.exp(-logits[best]))
            if chain.choose == "every-step" or (p > 0.5 and product > 0.5):
                chosen[best] = True
                final[best] = logits[best]
            product *= p
    return final, chosen, steps


@pytest.mark.parametrize("max_steps", [None, 3])
@pytest.mark.parametrize("known_part", ["nothing", "start", "known"])
def test_the_chain_is_that_of_the_loop(max_steps, known_part):
    chain, batch = make_chain(max_steps=max_steps), make_batch()
    generator = torch.Generator().manual_seed(2)
    options = {}
    if known_part == "start":
        values = 3 * torch.randn(batch.y.shape, generator=generator)
        options["start"] = values.masked_fill(
            torch.rand(batch.y.shape, generator=generator) < 0.5, torch.nan
        )
    if known_part == "known":
        options["known"] = make_batch(unknown=0.6).y
    run = chain.run(batch.x, all_steps=True, **options)
    short = chain.run(batch.x, **options)
    n_chosen = set()
    for i in range(len(batch.x)):
        row = {name: value[i].numpy() for name, value in options.items()}
        if known_part == "known":
            row = {"known": options["known"][i]}
        final, chosen, steps = slow_chain(chain, batch.x[i], **row)
        np.testing.assert_allclose(run.logits[i].detach(), final, rtol=1e-4, atol=1e-5)
        assert run.chosen[i].tolist() == chosen
        np.testing.assert_allclose(
            torch.stack(run.steps)[:, i].detach(), steps, rtol=1e-4, atol=1e-5
        )
        n_chosen.add(sum(chosen))
    assert len(n_chosen) > 1  # else the rows were all alike and the test says little
    # A run that stops where no label can turn any more gives the same answer.
    torch.testing.assert_close(short.logits, run.logits)
    assert torch.equal(short.chosen, run.chosen)
    assert len(short.steps) <= len(run.steps)


def test_a_label_may_be_chosen_at_every_step():
    chain, batch = make_chain(choose="every-step"), make_batch()
    run = chain.run(batch.x)
    assert run.chosen.all()
    for i, x in enumerate(batch.x):
        final, _, _ = slow_chain(chain, x)
        np.testing.assert_allclose(run.logits[i].detach(), final, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("loss", ["every-step", "final"])
@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_both_losses(loss, unknown):
    chain, batch = make_chain(), make_batch(unknown=unknown)
    value = OFCCTask(chain, loss, {}).losses(batch, START)["bce"].item()
    expected = []
    for i, target in enumerate(batch.y.tolist()):
        final, _, steps = slow_chain(chain, batch.x[i])
        for logits in steps if loss == "every-step" else [final]:
            for s, t in zip(logits, target, strict=True):
                expected.append(0.0 if np.isnan(t) else np.log1p(np.exp(-s if t == 1 else s)))
    assert value == pytest.approx(np.mean(expected), rel=1e-4)
    task = OFCCTask(chain, loss, {}).eval()
    assert task.losses(batch, START)["bce"].item() == pytest.approx(
        OFCCTask(chain, "final", {}).losses(batch, START)["bce"].item()
    )


def test_targets_may_be_probabilities():
    chain, batch = make_chain(), make_batch()
    soft = torch.sigmoid(torch.randn(batch.y.shape, generator=torch.Generator().manual_seed(5)))
    value = OFCCTask(chain, "final", {}).losses(batch._replace(y=soft), START)["bce"]
    logits = chain(batch.x)
    expected = torch.nn.functional.binary_cross_entropy_with_logits(logits, soft)
    torch.testing.assert_close(value, expected)


def test_logits_carry_gradients_from_step_to_step():
    chain, batch = make_chain(), make_batch()
    run = chain.run(batch.x, all_steps=True)
    run.steps[-1].sum().backward()
    assert chain.first.weight.grad.any()  # through the logits that the first step reads
    assert torch.isfinite(chain.from_chain.weight.grad).all()


def test_revealed_labels_are_given_and_not_asked_for():
    chain, batch = make_chain(), make_batch(400)
    task = OFCCTask(chain, "final", {}, reveal=1.0)
    torch.manual_seed(0)
    known = task._revealed(batch.y)
    is_revealed = ~torch.isnan(known)
    assert torch.equal(known[is_revealed], batch.y[is_revealed])
    assert is_revealed.float().mean().item() == pytest.approx(0.5, abs=0.05)
    some = OFCCTask(chain, "final", {}, reveal=0.3)._revealed(batch.y)
    assert (~torch.isnan(some)).any(dim=1).float().mean() < 0.3
    torch.manual_seed(0)
    at_once = task.losses(batch, START)["bce"]
    halves = []
    for rank in range(2):
        share = share_of(400, rank, 2)
        rows = slice(share.start, share.stop)
        torch.manual_seed(0)
        with held_share(share):
            part = Batch(batch.x[rows], batch.y[rows], batch.rows[rows], share)
            halves.append(task.losses(part, START)["bce"])
    torch.testing.assert_close(sum(halves) / 2, at_once)


def test_a_logit_set_from_outside_moves_the_others(data):
    X, Y = data
    Y = np.column_stack([Y, Y[:, 0]])  # a label twice
    model = OFCC(**QUICK).fit(X, Y)
    plain = model.chain_logits(X)
    np.testing.assert_allclose(1 / (1 + np.exp(-plain)), model.predict_proba(X), atol=1e-5)
    nothing = np.full(Y.shape, np.nan)
    np.testing.assert_allclose(model.chain_logits(X, start=nothing), plain, atol=1e-5)
    raised = plain.copy()
    raised[:, 0] = 10.0
    lowered = plain.copy()
    lowered[:, 0] = -10.0
    change = model.chain_logits(X, start=raised) - model.chain_logits(X, start=lowered)
    assert np.abs(change[:, 1:]).mean() > 0.01
    with pytest.raises(InputError, match=r"\(300, 5\).*\(300, 6\)"):
        model.chain_logits(X, start=raised[:, :5])


def test_published_settings():
    # Of the first teacher, the second teacher and the student.
    hidden_sizes = {
        "emotions": (32, 64, 16),
        "scene": (16, 32, 16),
        "yelp": (128, 256, 32),
        "yeast": (32, 64, 32),
        "birds": (64, 128, 32),
        "tmc2007-500": (128, 256, 64),
        "genbase": (128, 256, 64),
        "medical": (128, 256, 64),
    }
    batch_sizes = {"yelp": 32, "tmc2007-500": 128, "medical": 16}
    epochs = {"teacher-1": 1000, "teacher-2": 1000, "student": 200}
    for dataset, sizes in hidden_sizes.items():
        for role, hidden_size in zip(epochs, sizes, strict=True):
            program = OFCC.published(dataset, role=role)
            text = OFCC.published(dataset, source="text", role=role)
            for chain in (program, text):
                assert (chain.hidden_size, chain.epochs) == (hidden_size, epochs[role])
                assert chain.batch_size == batch_sizes.get(dataset, 8)
                assert (chain.lr, chain.weight_decay, chain.min_steps) == (1e-3, 0, 1)
                assert (chain.reveal, chain.encoder) == (0, ())
            assert (program.loss, program.choose) == ("every-step", "probable")
            assert (text.loss, text.choose) == ("final", "every-step")  # Eq. 11, Eq. 9
    with pytest.raises(InputError, match="role must be one of"):
        OFCC.published(role="pupil")
