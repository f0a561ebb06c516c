"""MPVAE: its objective against a loop, exact probabilities, unknown labels, shares."""

import math

import numpy as np
import pytest
import torch
from batches import check_shares_add_up, make_batch

from labelweave.dependent.mpvae import MPVAE, MPVAETask, probit_logits
from labelweave.exceptions import InputError
from labelweave.nn.batches import Batch
from labelweave.nn.task import StepInfo

SMALL = {"encoder": (16,), "label_encoder": (8,), "decoder": (8, 8), "latent_size": 4}
START = StepInfo(0, 0, 0.0)


def make_task(n_features=4, n_labels=5, **changes):
    torch.manual_seed(0)
    model = MPVAE(**({**SMALL, "dropout": 0.0, "norm": None, "n_samples": 3} | changes))
    task = model._build_task(model._build_network(n_features, n_labels), None)
    assert isinstance(task, MPVAETask)
    return task


def terms_of(task, batch, seed=3):
    torch.manual_seed(seed)
    return task.losses(batch, START)


def normal_cdf(value):
    return 0.5 * math.erfc(-value / math.sqrt(2))


def slow_terms(task, batch, seed=3):
    """The three terms row by row, draw by draw, label by label and pair by pair."""
    network = task.network
    torch.manual_seed(seed)
    noise = torch.randn(len(batch.x), 4)
    draws = torch.randn(len(batch.x), task.n_samples, network.factor.shape[1])
    read = torch.nan_to_num(2 * batch.y - 1)
    with torch.no_grad():
        gaussians = {
            "label": network.label_encoder(torch.cat([batch.x, read], 1)),
            "feature": network.feature_encoder(batch.x),
        }
        heads = {"label": network.label_mean, "feature": network.feature_mean}
        means = {}
        for name, (mean, log_variance) in gaussians.items():
            z = mean + torch.exp(log_variance / 2) * noise
            means[name] = heads[name](network.decoder(batch.x, z[:, None])[:, 0])
    likelihood = ranking = divergence = 0.0
    for i, target in enumerate(batch.y.tolist()):
        known = [j for j, t in enumerate(target) if not math.isnan(t)]
        for mean in means.values():
            products, ranks = [], []
            for s in range(task.n_samples):
                shared = network.factor.detach() @ draws[i, s]
                p = [normal_cdf(float(v)) for v in mean[i] + shared]
                products.append(math.prod(p[j] if target[j] == 1 else 1 - p[j] for j in known))
                pairs = [
                    math.exp(-5 * (p[a] - p[b])) / 5
                    for a in known
                    for b in known
                    if target[a] == 1 and target[b] == 0
                ]
                ranks.append(sum(pairs) / len(pairs) if pairs else 0.0)
            likelihood -= math.log(sum(products) / len(products))
            ranking += sum(ranks) / len(ranks)
        (m1, v1), (m2, v2) = ([t[i].tolist() for t in g] for g in gaussians.values())
        kl = sum(
            0.5 * (b - a - 1 + math.exp(a - b) + (m - n) ** 2 / math.exp(b))
            for m, a, n, b in zip(m1, v1, m2, v2, strict=True)
        )
        divergence += kl * len(known) / len(target)
    n_rows = len(batch.y)
    return {
        "likelihood": likelihood / n_rows,
        "ranking": ranking / n_rows,
        "kl": divergence / n_rows,
    }


@pytest.mark.parametrize("unknown", [0.0, 0.4])
@pytest.mark.parametrize("rank", [None, 2])
def test_the_objective_is_that_of_the_loop(unknown, rank):
    task = make_task(likelihood_weight=0.7, ranking_weight=3.0, kl_weight=2.0, rank=rank)
    batch = make_batch(unknown=unknown)
    slow = slow_terms(task, batch)
    expected = {
        "likelihood": 0.7 * slow["likelihood"],
        "ranking": 3 * slow["ranking"],
        "kl": 2 * slow["kl"],
    }
    terms = {name: term.item() for name, term in terms_of(task, batch).items()}
    assert terms == pytest.approx(expected, rel=1e-3)


def test_probabilities_are_what_the_average_over_draws_tends_to():
    generator = torch.Generator().manual_seed(0)
    mean, factor = torch.randn(3, 4, generator=generator), torch.randn(4, 2, generator=generator)
    draws = torch.randn(200_000, 1, 2, generator=generator) @ factor.T + mean
    sampled = torch.special.ndtr(draws).mean(dim=0)
    exact = torch.sigmoid(probit_logits(mean, factor))
    torch.testing.assert_close(exact, sampled, atol=4e-3, rtol=0)


def test_extreme_means_stay_finite():
    mean = torch.tensor([[-60.0, 60.0, 0.0]], requires_grad=True)
    logits = probit_logits(mean, torch.zeros(3, 1))
    logits.sum().backward()
    assert torch.isfinite(logits).all()
    assert torch.isfinite(mean.grad).all()
    task, batch = make_task(), make_batch()
    task.network.label_mean.bias.data.fill_(-40.0)  # all positives far out in the tail
    total = sum(terms_of(task, batch).values())
    total.backward()
    assert math.isfinite(total.item())
    gradients = [p.grad for p in task.network.parameters() if p.grad is not None]
    assert all(torch.isfinite(g).all() for g in gradients)


def test_rows_of_which_nothing_is_known_add_nothing():
    task, batch = make_task(), make_batch()
    y = batch.y.clone()
    y[3] = torch.nan
    x = batch.x.clone().requires_grad_()
    sum(terms_of(task, Batch(x, y, batch.rows)).values()).backward()
    assert not x.grad[3].any()
    assert x.grad[2].any()


def test_shares_of_a_batch_add_up_to_it():
    check_shares_add_up(make_task(dropout=0.3), terms_of)


def test_validation_looks_at_the_predictions_alone():
    task, batch = make_task(likelihood_weight=2.0, ranking_weight=0.0), make_batch(unknown=0.3)
    task.eval()
    terms = terms_of(task, batch)
    p = torch.sigmoid(task.network(batch.x))
    known = ~torch.isnan(batch.y)
    entropy = -torch.log(torch.where(batch.y == 1, p, 1 - p))[known].sum() / len(batch.y)
    torch.testing.assert_close(terms["likelihood"], 2 * entropy)
    assert terms["ranking"] == 0


def test_labels_that_go_together_beyond_the_features_are_found():
    """One coin decides two labels, another coin a third; the features know nothing."""
    rng = np.random.default_rng(0)
    X, coins = rng.normal(size=(600, 3)), rng.integers(0, 2, (600, 2))
    Y = np.stack([coins[:, 0], coins[:, 0], 1 - coins[:, 0], coins[:, 1]], axis=1)
    small = {**SMALL, "dropout": 0.0, "lr": 1e-2, "random_state": 0}
    # A strong KL keeps the label branch from telling the decoder what the labels are.
    model = MPVAE(**small, epochs=40, patience=None, kl_weight=20, ranking_weight=0).fit(X, Y)
    covariance = model.label_covariance_
    spread = np.sqrt(np.diag(covariance))
    correlation = covariance / np.outer(spread, spread)
    assert correlation[0, 1] > 0.5
    assert correlation[0, 2] < -0.5
    assert abs(correlation[0, 3]) < 0.3


def test_a_short_decoder_is_refused():
    with pytest.raises(InputError, match="two hidden layers"):
        MPVAE(decoder=(8,)).fit(np.eye(6), np.eye(6)[:, :2].astype(int))
