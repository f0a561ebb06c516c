"""ANT's targets computed once in batches, against a reference implementation.

The reference implementation computes the targets of each row anew in each epoch, one row at a
time: run both teachers, look for shared labels on which one alone is positive, run the other
teacher again for each, integrate, and step the student. Both train the paper's student, an
order-free chain, on the same rows for 200 epochs in batches of 8. Prints CPU seconds, the ratio,
and how far the targets differ. All epochs of the reference cost the same, so that a few are timed
and the others extrapolated.

    python benchmarks/amalgamation_speed.py --rounds 3
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from typing import Any

import numpy as np
import torch

from labelweave.data import load_dataset
from labelweave.data.scenarios import share_among_teachers
from labelweave.dependent.ofcc import OFCC, OFCCTask
from labelweave.nn.batches import Batch
from labelweave.scattered._amalgamation.integration import integrate
from labelweave.scattered._amalgamation.teacher_predictions import (
    joint_vocabulary,
    predict_with_teachers,
)
from labelweave.scattered.ant import ANT
from labelweave.scattered.ant_transfer import exchange_knowledge
from labelweave.scattered.teacher import Teacher


def run(teacher: Teacher, x: np.ndarray, start: list[float] | None = None) -> dict[str, float]:
    """Final logits of a teacher's chain for one row, by label."""
    row = teacher.model.scaling_.apply(torch.from_numpy(x[None].astype(np.float32)))
    given = None if start is None else torch.tensor([start])
    with torch.inference_mode():
        logits = teacher.model.network_.run(row, start=given).logits[0]
    return dict(zip(teacher.labels, logits.tolist(), strict=True))


def reference_targets(teachers: list[Teacher], x: np.ndarray, names: list[str]) -> np.ndarray:
    """Eq. 1 to 5 for one row, label by label."""
    final = [run(teacher, x) for teacher in teachers]
    variants: list[list[dict[str, float]]] = [[own] for own in final]
    received: set[tuple[int, str]] = set()
    positive = [(t, label) for t, own in enumerate(final) for label in own if own[label] > 0]
    while positive:
        revisions = []
        for t, teacher in enumerate(teachers):
            for transferor, label in positive:
                best = max((v[label] for v in variants[t] if label in v), default=1.0)
                if transferor == t or label not in final[t] or best > 0 or (t, label) in received:
                    continue
                received.add((t, label))
                value = max(v[label] for v in variants[transferor])
                start = [{**final[t], label: value}[name] for name in teacher.labels]
                revisions.append((t, run(teacher, x, start)))
        positive = []
        for t, revised in revisions:
            for label, value in revised.items():
                if value > 0 and max(v[label] for v in variants[t]) <= 0:
                    positive.append((t, label))
        for t, revised in revisions:
            if variants[t][0] is final[t]:
                variants[t] = []  # Eq. 3 revises Eq. 2
            variants[t].append(revised)
    targets = []
    for name in names:
        candidates = [v[name] for own in variants for v in own if name in v]
        chosen = max(candidates) if max(candidates) > 0 else min(candidates)
        targets.append(1 / (1 + np.exp(-chosen)))
    return np.array(targets, dtype=np.float32)


def reference_amalgamation(
    teachers: list[Teacher],
    X: np.ndarray,
    names: list[str],
    student: OFCC,
    epochs: int,
) -> None:
    """Train a student, its targets computed again for each row and epoch."""
    torch.manual_seed(0)
    network = student._build_network(X.shape[1], len(names))
    task = OFCCTask(network, student.loss, {"lr": student.lr}).train()
    (plan,) = task.optimizers(1)
    rows = torch.tensor(X, dtype=torch.float32)
    rng = np.random.default_rng(0)
    for _ in range(epochs):
        order = rng.permutation(len(X))
        for first in range(0, len(X), student.batch_size):
            batch = order[first : first + student.batch_size]
            targets = np.array([reference_targets(teachers, X[i], names) for i in batch])
            taken = torch.from_numpy(batch)
            y = torch.from_numpy(targets)
            loss = task.losses(Batch(rows[taken], y, taken), None)["bce"]  # type: ignore[arg-type]
            plan.optimizer.zero_grad()
            loss.backward()
            plan.optimizer.step()


def seconds(function: Any) -> float:
    started = time.process_time()
    function()
    return time.process_time() - started


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", default="emotions")
    parser.add_argument("--timed-epochs", type=int, default=5)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    shares = share_among_teachers(load_dataset(options.data), 2, random_state=0)
    teachers = [
        Teacher(OFCC(random_state=k).fit(share.data.X, share.data.Y), name=f"teacher {k}")
        for k, share in enumerate(shares.teachers)
    ]
    X = np.asarray(shares.rest.X)[: round(0.75 * len(shares.rest))]
    vocabulary = joint_vocabulary(teachers, match="exact")
    predictions = predict_with_teachers(teachers, vocabulary, X)
    ours = integrate(exchange_knowledge(predictions, X).logits, "positive")
    theirs = np.array([reference_targets(teachers, x, list(vocabulary.names)) for x in X])
    print(f"targets of {len(X)} rows differ by at most {np.abs(ours - theirs).max():.1e}")

    names = list(vocabulary.names)
    ratios = []
    for number in range(options.rounds):
        model = ANT.published(options.data)
        model.set_params(teachers=teachers, match="exact", random_state=number)
        ours_took = seconds(lambda model=model: model.fit(X))
        student, epochs = model.student_, len(model.student_.history_)
        timed = seconds(
            lambda student=student: reference_amalgamation(
                teachers, X, names, student, options.timed_epochs
            )
        )
        reference = epochs * timed / options.timed_epochs
        ratios.append(reference / ours_took)
        print(
            f"round {number + 1}: {epochs} epochs, reference {reference:.1f} CPU s, ours "
            f"{ours_took:.2f}: {ratios[-1]:.1f}x"
        )
    print(f"median {statistics.median(ratios):.1f}x")


if __name__ == "__main__":
    main()
