"""Speed and memory of C-GMVAE against a reference implementation, on one thread.

The reference implementation is written here from the equations, in the manner of the authors'
program: label embeddings by a product with the identity, three decodes one after the other, logits
computed once for the cross-entropy and again for the contrast, the mixture over a tensor of rows x
labels x dimensions, unfused Adam, and a validation that recomputes every metric for each of nine
thresholds. Both forms start from the same weights, and their losses are compared first.

    LABELWEAVE_DATA=... python benchmarks/cgmvae_speed.py [--rows 1600] [--grow]
"""

from __future__ import annotations

import argparse
import copy
import math
import time
from collections.abc import Callable
from dataclasses import fields

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F  # noqa: N812

import labelweave as lw
from labelweave.dependent._networks.mixture import log_mixture
from labelweave.dependent.cgmvae import CGMVAE
from labelweave.dependent.cgmvae_network import CGMVAENetwork, CGMVAETask, Objective
from labelweave.metrics import get_metric, sweep_f1
from labelweave.nn.batches import Batch, Batches
from labelweave.nn.scaling import fit_scaling
from labelweave.nn.task import StepInfo
from labelweave.nn.training import LoopSettings, Validation, train
from labelweave.thresholds import PAPER_GRID

START = StepInfo(0, 0, 0.0)


# -- the reference implementation -------------------------------------------------------


def plain_log_mixture(z: Tensor, means: Tensor, log_variances: Tensor, active: Tensor) -> Tensor:
    """Eq. 1 over rows x components x dimensions."""
    terms = (z[:, None] - means) ** 2 / torch.exp(log_variances) + log_variances
    densities = -0.5 * (terms + math.log(2 * math.pi)).sum(-1)
    densities = densities.masked_fill(~active, -torch.inf)
    return torch.logsumexp(densities, 1) - torch.log(active.sum(1))


class PlainNetwork(nn.Module):
    """The same weights as a network of the library, used one after the other."""

    def __init__(self, network: CGMVAENetwork) -> None:
        super().__init__()
        self.labels = nn.Parameter(network.label_embeddings.detach().clone())
        self.encoder = copy.deepcopy(network.feature_encoder)
        self.label_encoder = copy.deepcopy(network.label_encoder)
        assert network.label_bias is not None
        self.bias = nn.Parameter(network.label_bias.detach().clone())
        self.background = nn.Parameter(network.background.detach().clone())
        given = network.decoder
        assert given.from_features is not None
        weight = torch.cat([given.from_features.weight, given.from_latent.weight], 1)
        first = nn.Linear(weight.shape[1], weight.shape[0])
        first.weight.data, first.bias.data = (
            weight.detach().clone(),
            given.from_latent.bias.detach().clone(),
        )
        self.decoder = nn.Sequential(first, *copy.deepcopy(given.layers))

    def embed(self, x: Tensor, z: Tensor) -> Tensor:
        return F.normalize(self.decoder(torch.cat([x, z], 1)), dim=1)

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.embed(x, self.encoder(x)[0]) @ self.labels.T)

    def loss(self, batch: Batch, given: Objective, noise: Tensor) -> Tensor:
        x, y = batch.x, batch.y
        labels = torch.eye(len(self.labels)) @ self.labels
        means, log_variances = self.label_encoder(labels + self.bias)
        means = torch.cat([means, self.background[:1]])
        log_variances = torch.cat([log_variances, self.background[1:]])
        active = torch.cat([y == 1, ~(y == 1).any(1, keepdim=True)], 1)
        mean, log_variance = self.encoder(x)
        std = torch.exp(0.5 * log_variance)
        first, second, third = (mean + std * noise[:, k] for k in range(3))
        posterior = -0.5 * ((third - mean) ** 2 / std**2 + log_variance + math.log(2 * math.pi))
        prior = plain_log_mixture(third, means, log_variances, active)
        loss = given.kl_weight * (posterior.sum(1) - prior).mean()
        centre = active.float() @ means / active.sum(1, keepdim=True)
        for z, weight in ((first, 0.5), (second, 0.0), (centre, 0.5)):
            embedding = self.embed(x, z)
            logits = embedding @ labels.T
            entropy = F.binary_cross_entropy_with_logits(logits, y, reduction="none").sum(1).mean()
            loss = loss + given.beta * entropy
            again = torch.log_softmax(embedding @ labels.T / given.temperature, 1)
            contrast = -(again * y).sum(1) / y.sum(1).clamp(min=1)
            loss = loss + given.alpha * weight * contrast.mean()
        return loss


def plain_validation(truth: np.ndarray, scores: np.ndarray) -> dict[str, float]:
    """Every metric for each of nine thresholds, whether it depends on them or not."""
    from sklearn.metrics import average_precision_score, f1_score, roc_auc_score

    mixed = [j for j in range(truth.shape[1]) if 0 < truth[:, j].sum() < len(truth)]
    best: dict[str, float] = {}
    for threshold in PAPER_GRID:
        sets = (scores > threshold).astype(int)
        found = {
            f"f1_{how}": f1_score(truth, sets, average=how, zero_division=0)
            for how in ("samples", "micro", "macro")
        }
        found["hamming"] = (sets == truth).mean()
        found["auc"] = np.mean([roc_auc_score(truth[:, j], scores[:, j]) for j in mixed])
        found["map"] = np.mean([average_precision_score(truth[:, j], scores[:, j]) for j in mixed])
        found["auc_micro"] = roc_auc_score(truth.ravel(), scores.ravel())
        best = {name: max(value, best.get(name, 0.0)) for name, value in found.items()}
    return best


# -- measuring --------------------------------------------------------------------------


def seconds_of(function: Callable[[], object], repeats: int) -> float:
    """The quickest of some runs by the processor, after one that is not counted."""
    function()
    taken = []
    for _ in range(repeats):
        started = time.process_time()
        function()
        taken.append(time.process_time() - started)
    return min(taken)


def peak_bytes(function: Callable[[], object]) -> int:
    """The most memory that tensors made by a function hold at one time."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        function()
    events = profiler.profiler.kineto_results.events()  # type: ignore[union-attr]
    changes = [(e.start_ns(), e.nbytes()) for e in events if e.name() == "[memory]"]
    held = np.cumsum([size for _, size in sorted(changes, key=lambda pair: pair[0])])
    return int(held.max())


def against(what: str, plain: float, ours: float, unit: str, target: float) -> None:
    print(
        f"{what:34s} plain {plain:9.2f} {unit}   ours {ours:9.2f} {unit}   "
        f"ratio {plain / ours:5.1f} (to reach {target})",
        flush=True,
    )


def make_task(n_features: int, n_labels: int, **changes: object) -> CGMVAETask:
    """The settings of the paper's larger sets."""
    torch.manual_seed(0)
    model = CGMVAE.published().set_params(**changes)
    network = model._build_network(n_features, n_labels)
    assert isinstance(network, CGMVAENetwork)
    chosen = {field.name: getattr(model, field.name) for field in fields(Objective)}
    return CGMVAETask(network, Objective(**chosen), {"lr": 1e-3, "weight_decay": 1e-5})


def compare_mixtures(batch: Batch, latent: int = 64) -> None:
    generator = torch.Generator().manual_seed(0)
    n_labels = batch.y.shape[1]
    z = torch.randn(len(batch.y), latent, generator=generator)
    means = torch.randn(n_labels, latent, generator=generator)
    log_variances = 0.3 * torch.randn(n_labels, latent, generator=generator)
    tensors = [tensor.requires_grad_() for tensor in (z, means, log_variances)]
    active = batch.y == 1
    active[:, 0] |= ~active.any(1)

    def both_ways(form: Callable[..., Tensor]) -> tuple[Tensor, ...]:
        value = form(*tensors, active).mean()
        return value.detach(), *torch.autograd.grad(value, tensors)

    pairs = zip(both_ways(plain_log_mixture), both_ways(log_mixture), strict=True)
    apart = max(float(((a - b).abs() / (1 + a.abs())).max()) for a, b in pairs)
    print(f"mixture: largest difference of value and gradients {apart:.1e} (at most 1e-5)")
    times = [seconds_of(lambda f=f: both_ways(f), 10) for f in (plain_log_mixture, log_mixture)]
    against("mixture term, with gradient", times[0] * 1e3, times[1] * 1e3, "ms", 10)
    memory = [peak_bytes(lambda f=f: both_ways(f)) for f in (plain_log_mixture, log_mixture)]
    against("mixture term, memory", memory[0] / 2**20, memory[1] / 2**20, "MB", 10)


def compare_losses(batch: Batch) -> None:
    task = make_task(batch.x.shape[1], batch.y.shape[1], dropout=0.0)
    plain = PlainNetwork(task.network)
    torch.manual_seed(1)
    ours = sum(task.losses(batch, START).values(), torch.tensor(0.0))
    torch.manual_seed(1)
    theirs = plain.loss(batch, task.objective, torch.randn(len(batch.x), 3, 64))
    print(f"loss: {ours.item():.5f} and {theirs.item():.5f} from the same weights and noise")


def compare_steps(task: CGMVAETask, plain: PlainNetwork, batch: Batch, repeats: int) -> None:
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3, weight_decay=1e-5)
    (plan,) = task.optimizers(1)

    def plain_step() -> None:
        optimizer.zero_grad()
        noise = torch.randn(len(batch.x), 3, 64)
        plain.loss(batch, task.objective, noise).backward()
        optimizer.step()

    times = [seconds_of(plain_step, repeats), seconds_of(lambda: step(task, plan, batch), repeats)]
    against("training step", times[0] * 1e3, times[1] * 1e3, "ms", 2.5)


def step(task: CGMVAETask, plan: object, batch: Batch) -> None:
    plan.optimizer.zero_grad()  # type: ignore[attr-defined]
    sum(task.losses(batch, START).values()).backward()  # type: ignore[union-attr]
    plan.optimizer.step()  # type: ignore[attr-defined]


def compare_epochs(rows: lw.Dataset, held: lw.Dataset) -> None:
    scaling = fit_scaling(rows.X, "auto")
    task = make_task(rows.X.shape[1], rows.Y.n_labels)
    plain = PlainNetwork(task.network)
    batches = Batches(rows.X, rows.Y, batch_size=128, scaling=scaling)
    validation_batches = Batches(held.X, held.Y, batch_size=1024, scaling=scaling)
    truth = np.nan_to_num(held.Y.to_numpy()).astype(int)
    optimizer = torch.optim.Adam(plain.parameters(), lr=1e-3, weight_decay=1e-5)
    plain.train()
    started = time.process_time()
    for batch in batches.epoch(0):
        optimizer.zero_grad()
        plain.loss(batch, task.objective, torch.randn(len(batch.x), 3, 64)).backward()
        optimizer.step()
    trained = time.process_time() - started
    plain.eval()
    with torch.no_grad():
        scores = torch.cat([plain(batch.x) for batch in validation_batches.in_order()]).numpy()
    plain_validation(truth, scores)
    plain_seconds = time.process_time() - started

    def judge(scores: np.ndarray) -> dict[str, float]:
        found = {"map": get_metric("map")(held.Y, Y_score=scores)}
        for how in ("example", "micro", "macro"):
            found[how] = float(sweep_f1(held.Y, scores, PAPER_GRID, average=how).max())
        return found

    started = time.process_time()
    train(task, batches, LoopSettings(epochs=1), validation=Validation(validation_batches, judge))
    ours = time.process_time() - started
    print(
        f"epoch: {len(rows)} training and {len(held)} validation rows; plain trains {trained:.1f} s"
    )
    against("epoch with validation", plain_seconds, ours, "s", 5)


def show_growth() -> None:
    """Milliseconds of a step of 128 rows as features and labels grow; n only adds steps."""
    for what, sizes in (
        ("labels", [(500, 250), (500, 500), (500, 1000), (500, 2000)]),
        ("features", [(500, 250), (2000, 250), (8000, 250)]),
    ):
        for n_features, n_labels in sizes:
            generator = torch.Generator().manual_seed(0)
            x = torch.randn(128, n_features, generator=generator)
            y = (torch.rand(128, n_labels, generator=generator) < 19 / n_labels).float()
            task = make_task(n_features, n_labels)
            (plan,) = task.optimizers(1)
            batch = Batch(x, y, torch.arange(128))
            taken = seconds_of(lambda: step(task, plan, batch), 4)  # noqa: B023
            print(f"{what}: d {n_features:5d}  L {n_labels:5d}  step {taken * 1e3:7.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="delicious")
    parser.add_argument("--rows", type=int, default=1600, help="a fifth of them is validation")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--grow", action="store_true", help="also time other sizes")
    options = parser.parse_args()
    torch.set_num_threads(1)
    data, _ = lw.load_dataset(options.data).split()
    data = data[np.random.default_rng(0).permutation(len(data))[: options.rows]]
    n_held = len(data) // 5
    rows, held = data[n_held:], data[:n_held]
    batches = Batches(rows.X, rows.Y, batch_size=128, scaling=fit_scaling(rows.X, "auto"))
    batch = next(iter(batches.epoch(0)))
    print(f"{options.data}: {batch.x.shape[1]} features, {batch.y.shape[1]} labels, one thread")
    compare_mixtures(batch)
    compare_losses(batch)
    task = make_task(batch.x.shape[1], batch.y.shape[1])
    plain = PlainNetwork(task.network)
    compare_steps(task, plain, batch, options.repeats)
    compare_epochs(rows, held)
    if options.grow:
        show_growth()


if __name__ == "__main__":
    main()
