"""Is C-GMVAE's checkpoint the reason for its scores? Each epoch of a fit, scored on held-out rows.

A quarter of the official training part is held out and scored (the test part is not used); a fifth
of the rest chooses the epoch, by several rules, and the thresholds .1 to .9 of each metric.

    LABELWEAVE_DATA=... python benchmarks/cgmvae_checkpoint.py [--datasets scene yeast] [--seeds 3]
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import labelweave as lw
from labelweave.labels import LabelMatrix
from labelweave.metrics import get_metric, sweep_f1
from labelweave.nn.batches import Batches
from labelweave.nn.callbacks import Callback, RunView
from labelweave.nn.prediction import predict_scores
from labelweave.thresholds import PAPER_GRID

BATCH_NORM: dict[str, Any] = {
    "embedding_size": 512,
    "decoder": (512, 512),
    "decoder_dropout": 0.5,
    "norm": "batch",
    "normalize": "contrast",
    "kl_weight": 1.0,
    "n_samples": 1,
    "label_branch": False,
    "schedule": "constant",
    "min_steps": 8,
    "epochs": 60,
}
FORMS: dict[str, Any] = {
    "Table 7": lw.CGMVAE.published,
    "default": lambda name: lw.CGMVAE(),
    "default, lr .002": lambda name: lw.CGMVAE(lr=0.002),
    "flags of the program": lambda name: lw.CGMVAE(
        embedding_size=512, beta=0.1, epochs=200, schedule_params={"min_lr": 1e-4}
    ),
    "default, batch norm": lambda name: lw.CGMVAE(norm="batch"),
    "batch norm, KL weight 1": lambda name: lw.CGMVAE(**BATCH_NORM),
}
AVERAGES = ("example", "micro", "macro")


class EpochScores(Callback):
    """Keeps the scores of some rows after each epoch."""

    def __init__(self, model: lw.CGMVAE, parts: list[lw.Dataset]) -> None:
        self.model = model
        self.parts = parts
        self.scores: list[list[np.ndarray]] = [[] for _ in parts]

    def on_epoch(self, run: RunView, row: dict[str, float]) -> None:
        was_training = run.task.training
        run.task.eval()
        for part, scores in zip(self.parts, self.scores, strict=True):
            batches = Batches(part.X, batch_size=4096, scaling=self.model.scaling_)
            scores.append(predict_scores(run.task.scores, batches))
        run.task.train(was_training)


def f1_of_epochs(Y: LabelMatrix, scores: list[np.ndarray], average: str) -> np.ndarray:
    """F1 of each epoch (rows) at each threshold (columns)."""
    return np.array(
        [sweep_f1(Y, of_one, PAPER_GRID, average=average, zero_division=0.0) for of_one in scores]
    )


def cross_entropy(Y: LabelMatrix, scores: np.ndarray) -> float:
    labels, p = Y.to_numpy(), np.clip(scores, 1e-7, 1 - 1e-7)
    return float(-np.mean(labels * np.log(p) + (1 - labels) * np.log(1 - p)))


def measure(name: str, form: str, seed: int) -> dict[str, list[float]]:
    """Example F1, micro F1, mAP and the epoch under each rule, for one fit."""
    train, _ = lw.load_dataset(name).split()
    n_rows = len(train)
    order = np.random.default_rng(100 + seed).permutation(n_rows)
    n_held_out = n_rows // 4
    n_validation = (n_rows - n_held_out) // 5
    held_out, validation, rest = np.split(order, [n_held_out, n_held_out + n_validation])
    parts = [train[validation], train[held_out]]
    model = FORMS[form](name)
    epochs = EpochScores(model, parts)
    model.set_params(callbacks=[epochs], random_state=seed, patience=1000)
    model.fit(train.X[rest], train.Y[rest], validation=parts[0])
    chosen_on, scored = (
        {average: f1_of_epochs(part.Y, scores, average) for average in AVERAGES}
        for part, scores in zip(parts, epochs.scores, strict=True)
    )
    mean_precision = get_metric("map")
    of_validation, of_held_out = epochs.scores
    rules = {f"{average} F1": chosen_on[average].max(axis=1) for average in AVERAGES}
    rules["macro F1, 90 epochs"] = rules["macro F1"][:90]
    rules["mAP"] = np.array([mean_precision(parts[0].Y, Y_score=one) for one in of_validation])
    rules["cross-entropy"] = np.array([-cross_entropy(parts[0].Y, one) for one in of_validation])
    rules["example F1 of the scored rows"] = scored["example"].max(axis=1)
    results = {}
    for rule, values in rules.items():
        epoch = int(np.argmax(values))
        at = {average: int(np.argmax(chosen_on[average][epoch])) for average in AVERAGES}
        f1 = [float(scored[average][epoch, at[average]]) for average in ("example", "micro")]
        ap = mean_precision(parts[1].Y, Y_score=of_held_out[epoch])
        results[rule] = [*f1, float(ap), epoch + 1]
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["scene", "yeast"])
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args()
    for name in options.datasets:
        for form in options.forms:
            fits = [measure(name, form, seed) for seed in range(options.seeds)]
            for rule in fits[0]:
                values = np.array([fit[rule] for fit in fits])
                f1, micro, ap, _ = values.mean(axis=0)
                shown = f"{f1:.3f} / {micro:.3f} / {ap:.3f}"
                epochs = ", ".join(f"{epoch:.0f}" for epoch in values[:, 3])
                print(f"{name}, {form}, by {rule}: {shown}, epochs {epochs}", flush=True)


if __name__ == "__main__":
    main()
