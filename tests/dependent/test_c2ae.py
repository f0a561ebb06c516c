"""C2AE: its objective against a loop, unknown labels, shares of a batch."""

import math

import pytest
import torch
from batches import make_batch

from labelweave.dependent.c2ae import C2AE, C2AETask, correlation_loss
from labelweave.nn.batches import Batch
from labelweave.nn.process_rows import held_share, share_of
from labelweave.nn.task import StepInfo

SMALL = {"encoder": (16,), "label_encoder": (8,), "decoder": (8,), "latent_size": 4}
START = StepInfo(0, 0, 0.0)


def make_task(n_features=4, n_labels=5, **changes):
    torch.manual_seed(0)
    model = C2AE(**({**SMALL, "dropout": 0.0, "norm": None} | changes))
    task = model._build_task(model._build_network(n_features, n_labels), None)
    assert isinstance(task, C2AETask)
    return task


def slow_ranking(scores, targets):
    """Eq. 3 of each row, with one more label at one half between positives and negatives."""
    total = 0.0
    for row, target in zip(scores.tolist(), targets.tolist(), strict=True):
        positives = [s for s, t in zip(row, target, strict=True) if t == 1]
        negatives = [s for s, t in zip(row, target, strict=True) if t == 0]
        pairs = [(p, n) for p in [*positives, 0.5] for n in [*negatives, 0.5]][:-1]
        if pairs:
            total += sum(math.exp(-5 * (p - n)) / 5 for p, n in pairs) / len(pairs)
    return total / len(scores)


@pytest.mark.parametrize("unknown", [0.0, 0.4])
def test_the_objective_is_that_of_the_loop(unknown):
    task = make_task(alpha=3.0, orthogonality=0.7, feature_branch=0.5)
    batch = make_batch(unknown=unknown)
    terms = {name: term.item() for name, term in task.losses(batch, START).items()}
    network = task.network
    read = [[0 if math.isnan(t) else 2 * t - 1 for t in row] for row in batch.y.tolist()]
    with torch.no_grad():
        of_features = network.feature_encoder(batch.x)
        of_labels = network.label_encoder(torch.tensor(read))
        decoded = [torch.sigmoid(network.decoder(codes)) for codes in (of_labels, of_features)]
    known = (~torch.isnan(batch.y)).float().mean(1).tolist()
    latent, moments = 0.0, [torch.zeros(4, 4), torch.zeros(4, 4)]
    for i, weight in enumerate(known):
        latent += weight * float(((of_features[i] - of_labels[i]) ** 2).sum())
        for moment, codes in zip(moments, (of_features, of_labels), strict=True):
            moment += weight * torch.outer(codes[i], codes[i])
    apart = sum(float(((m / sum(known) - torch.eye(4)) ** 2).sum()) for m in moments)
    expected = {
        "latent": latent / len(known),
        "orthogonality": 0.7 * apart,
        "ranking": 3 * slow_ranking(decoded[0], batch.y),
        "feature_ranking": 1.5 * slow_ranking(decoded[1], batch.y),
    }
    assert terms == pytest.approx(expected, rel=1e-4)


def test_the_decoder_does_not_teach_the_feature_encoder_unless_asked():
    """As in the paper: features are drawn to the codes of labels, by nothing else."""
    batch = make_batch()
    for branch, expected in ((0.0, False), (1.0, True)):
        task = make_task(feature_branch=branch)
        terms = task.losses(batch, START)
        sum(v for k, v in terms.items() if "ranking" in k).backward()
        taught = any(
            p.grad is not None and p.grad.any() for p in task.network.feature_encoder.parameters()
        )
        assert taught == expected


def test_rows_of_which_nothing_is_known_add_nothing():
    task, batch = make_task(feature_branch=1.0), make_batch()
    y = batch.y.clone()
    y[3] = torch.nan
    x = batch.x.clone().requires_grad_()
    sum(task.losses(Batch(x, y, batch.rows), START).values()).backward()
    assert not x.grad[3].any()
    assert x.grad[2].any()


def test_validation_looks_at_the_predictions_alone():
    task, batch = make_task(dropout=0.5), make_batch(unknown=0.3)
    task.eval()
    (name, loss), *rest = task.losses(batch, START).items()
    assert (name, rest) == ("ranking", [])
    scores = torch.sigmoid(task.network(batch.x)).detach()
    assert loss.item() == pytest.approx(slow_ranking(scores, batch.y), rel=1e-5)


def test_shares_of_a_batch_see_the_whole_constraint(monkeypatch):
    """A process that holds half of the rows is given those of the other by gathering."""
    import labelweave.dependent.c2ae as module

    codes, labels = torch.randn(2, 8, 4, generator=torch.Generator().manual_seed(0)).unbind()
    known = torch.rand(8, generator=torch.Generator().manual_seed(1))
    at_once = correlation_loss(codes, labels, known)
    parts = []
    for rank in range(2):
        share = share_of(8, rank, 2)
        rows = slice(share.start, share.stop)
        pieces = [(known[rows], known), (codes[rows], codes), (labels[rows], labels)]

        def gathered(part, pieces=pieces):
            return next(full for piece, full in pieces if torch.equal(piece, part))

        monkeypatch.setattr(module, "gather_rows", gathered)
        with held_share(share):
            parts.append(correlation_loss(*(piece for piece, _ in (*pieces[1:], pieces[0]))))
    torch.testing.assert_close((parts[0]["latent"] + parts[1]["latent"]) / 2, at_once["latent"])
    for part in parts:
        torch.testing.assert_close(part["orthogonality"], at_once["orthogonality"])
