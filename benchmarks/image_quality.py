"""Quality on images: BCE against MulSupCon's forms, transfer, and CLS against its neighbours.

A narrow ResNet-18 (`--width` channels in the first stage, 64 in the paper) reads mdi-icons and
composed digit scenes. Every run is of fixed length, with a rate that falls to zero, over all
training rows: nothing is chosen, and the official test rows are scored once, by mean average
precision. One line a figure is added to `--out` as it comes; what is there already with the same
settings is not computed again, so a run may be stopped at any time. Run it with

    python benchmarks/image_quality.py --out figures.jsonl [--part mulsupcon] [--seeds 0 1 2]

parts: mulsupcon (BCE, linear probe of ALL, ANY, each label and weighted, fine-tuning), transfer
(digits to icons and back) and partial (AN, WAN, ROLE, Co-teaching, Co-teaching+, JoCoR and CLS at
75, 50 and 25 % of the positives and a single one). `--show` prints the table of a file.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

import labelweave as lw
from labelweave.data.scenarios import hide_positives, keep_single_positive
from labelweave.images import ResNet

FORMS: dict[str, dict[str, Any]] = {
    "MulSupCon": {},
    "ALL": {"positives": "all"},
    "ANY": {"positives": "any"},
    "weighted": {"weighted": True},
}
# Momentum: of .9 and .99 the better on rows held out of the training part of mdi-icons; with the
# .999 of vectors the momentum encoder would still be half of its random start after such a run.
# The queue is longer than that of vectors, so that it holds a few icons of the rarer labels.
CONTRAST: dict[str, Any] = {
    "pretrain_steps": None,
    "pretrain_schedule": "cosine",
    "momentum": 0.99,
    "queue_size": 1024,
}
RUN: dict[str, Any] = {"batch_size": 64, "schedule": "cosine", "patience": None}
PROBE: dict[str, Any] = {"mode": "linear-probe", "lr": 1e-2, "epochs": 30}
PARTIAL = ("an", "cls", "cls+", "wan", "role", "co-teaching", "co-teaching+", "jocor")
SCENARIOS: dict[str, Callable[..., Any]] = {
    "single": keep_single_positive,
    "25%": lambda Y, **how: hide_positives(Y, 0.75, **how),
    "50%": lambda Y, **how: hide_positives(Y, 0.5, **how),
    "75%": lambda Y, **how: hide_positives(Y, 0.25, **how),
}


class Figures:
    """Figures in a file, one JSON object per line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        lines = path.read_text().splitlines() if path.is_file() else []
        self.rows = [json.loads(line) for line in lines]

    def has(self, **what: Any) -> bool:
        return any(what.items() <= row.items() for row in self.rows)

    def add(self, started: float, **row: Any) -> None:
        row = {**row, "cpu_seconds": round(time.process_time() - started, 1)}
        self.rows.append(row)
        with self.path.open("a") as file:
            file.write(json.dumps(row) + "\n")
        print(json.dumps(row), flush=True)

    def table(self) -> Iterator[str]:
        cells, last = defaultdict(list), None
        for row in self.rows:
            cells[row["part"], row["data"], row["run"], row["method"]].append(row["map"])
        for (part, data, run, method), values in sorted(cells.items()):
            if run != last:
                yield f"{run}:"
                last = run
            spread = f" +- {np.std(values, ddof=1):.3f}" if len(values) > 1 else ""
            seeds = f"{len(values)} seeds" if len(values) > 1 else "1 seed"
            yield f"{part:22} {data:14} {method:24} {np.mean(values):.3f}{spread} ({seeds})"


def score(model: Any, test: Any) -> float:
    return round(float(lw.evaluate(model, test, metrics=["map"])["map"]), 4)


def mulsupcon(figures: Figures, data: str, seed: int, options: argparse.Namespace) -> None:
    """BCE, the linear probe of each form, and fine-tuning after the first."""
    train, test = parts(data)
    common = settings(options, seed)
    passes = f"{options.pretrain_epochs} + {options.epochs} epochs"
    what = {"part": "mulsupcon", "data": data, "seed": seed, "run": run_of(options, passes)}

    def fit(method: str, **changes: Any) -> Any:
        started = time.process_time()
        model = lw.make("mulsupcon", **{**common, **changes}).fit(train.X, train.Y)
        figures.add(started, **what, method=method, map=score(model, test))
        return model

    lengths = {
        "BCE from scratch": options.pretrain_epochs + options.epochs,  # all passes of MulSupCon
        "BCE, passes of tuning": options.epochs,
    }
    for method, epochs in lengths.items():
        if "BCE" in options.forms and not figures.has(**what, method=method):
            fit(method, pretrain_epochs=0, epochs=epochs)
    for name in options.forms:
        if name == "BCE":
            continue
        probed, tuned = f"{name}, linear probe", f"{name}, fine-tuned"
        wanted = [probed, tuned] if name == "MulSupCon" else [probed]
        if all(figures.has(**what, method=method) for method in wanted):
            continue
        pretrained = fit(probed, **FORMS[name], **PROBE)
        if name == "MulSupCon":
            fit(
                tuned,
                pretrained=pretrained,
                probe_epochs=PROBE["epochs"],
                epochs=options.epochs,
            )


def transfer(figures: Figures, seed: int, options: argparse.Namespace) -> None:
    """A frozen encoder of one set, probed on the other; beside it one that learnt nothing."""
    for source, data in (("digit-scenes", "mdi-icons"), ("mdi-icons", "digit-scenes")):
        passes = options.pretrain_epochs
        run = run_of(options, f"{passes} epochs")
        what = {"part": f"from {source}", "data": data, "seed": seed, "run": run}
        learnt, _ = parts(source)
        train, test = parts(data)
        common = settings(options, seed)
        sources: dict[str, dict[str, Any]] = {
            "MulSupCon": {"mode": "linear-probe", "epochs": 1},
            "BCE": {"pretrain_epochs": 0, "epochs": passes},
            "random encoder": {},
        }
        for name, changes in sources.items():
            if figures.has(**what, method=name):
                continue
            started = time.process_time()
            probe = {**common, **PROBE}
            if changes:
                encoder = lw.make("mulsupcon", **{**common, **changes})
                probe |= {"pretrained": encoder.fit(learnt.X, learnt.Y)}
            else:
                probe |= {"pretrain_epochs": 0}
            model = lw.make("mulsupcon", **probe).fit(train.X, train.Y)
            figures.add(started, **what, method=name, map=score(model, test))


def parts(data: str) -> tuple[Any, ...]:
    """Rows to learn from and to score, as published; variants of an icon stay together."""
    return lw.load_dataset(data, images=True).split()


def run_of(options: argparse.Namespace, passes: str) -> str:
    """The settings that a figure depends on, in words."""
    return (
        f"{passes}, {options.size} px, width {options.width}, stem {options.stem}, "
        f"augment {options.augment}, rate {options.lr}"
    )


def settings(options: argparse.Namespace, seed: int) -> dict[str, Any]:
    return {
        "encoder": network(options),
        "random_state": seed,
        "backbone_lr": options.lr,
        "lr": options.lr,
        "pretrain_lr": options.lr,
        "pretrain_epochs": options.pretrain_epochs,
        **CONTRAST,
        **RUN,
    }


def partial(figures: Figures, data: str, seed: int, options: argparse.Namespace) -> None:
    """Methods for partial labels over one network; test rows keep all their labels."""
    train, test = parts(data)
    run = run_of(options, f"{options.partial_epochs} epochs")
    how = {"encoder": network(options), "lr": options.lr, "epochs": options.partial_epochs, **RUN}
    for scenario in options.scenarios:
        hidden = SCENARIOS[scenario](train.Y, random_state=seed)
        some = replace(train, Y=hidden.Y)
        for method in options.methods:
            what = {"part": f"partial, {scenario}", "data": data, "seed": seed, "run": run}
            if figures.has(**what, method=method):
                continue
            started = time.process_time()
            model = lw.make(method, base=lw.make("mlp", **how), random_state=seed)
            model.fit(some.X, some.Y)
            figures.add(started, **what, method=method, map=score(model, test))


def network(options: argparse.Namespace) -> ResNet:
    return ResNet(
        18, size=options.size, width=options.width, stem=options.stem, augment=options.augment
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--show", action="store_true")
    parser.add_argument("--part", choices=("mulsupcon", "transfer", "partial"), action="append")
    parser.add_argument("--data", nargs="+", default=["mdi-icons", "digit-scenes"])
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    parser.add_argument("--size", type=int, default=24)
    parser.add_argument("--width", type=int, default=16)
    parser.add_argument("--stem", default="pooled")
    parser.add_argument("--augment", default="light")
    parser.add_argument("--lr", type=float, default=4e-3)
    parser.add_argument("--pretrain-epochs", type=int, default=8)
    parser.add_argument("--epochs", type=int, default=6)
    parser.add_argument("--partial-epochs", type=int, default=8)
    parser.add_argument("--forms", nargs="+", choices=("BCE", *FORMS), default=["BCE", *FORMS])
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=list(SCENARIOS))
    parser.add_argument("--methods", nargs="+", default=list(PARTIAL))
    options = parser.parse_args()
    figures = Figures(options.out)
    for seed in () if options.show else options.seeds:
        for part in options.part or ("mulsupcon", "transfer", "partial"):
            if part == "transfer":
                transfer(figures, seed, options)
                continue
            for data in options.data:
                {"mulsupcon": mulsupcon, "partial": partial}[part](figures, data, seed, options)
    print("\n".join(figures.table()))


if __name__ == "__main__":
    main()
