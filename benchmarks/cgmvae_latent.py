"""Does C-GMVAE use its latent space? Diagnostics of both published forms and of steps between.

A quarter of the official training part is held out and scored (the test part is not used), and a
fifth of the rest chooses the checkpoint.

    LABELWEAVE_DATA=... python benchmarks/cgmvae_latent.py [--datasets scene yeast] [--seeds 3]
"""

from __future__ import annotations

import argparse

import numpy as np

import labelweave as lw
from labelweave.data.splits import stratified_holdout
from labelweave.dependent.cgmvae import CGMVAE
from labelweave.metrics import get_metric
from labelweave.thresholds import make_threshold

FORMS: dict[str, tuple[str, dict[str, object]]] = {
    "program": ("program", {}),
    "program, Eq. 4": ("program", {"reconstruction": 1.0}),
    "program, no KL": ("program", {"kl_weight": 0.0}),
    "text": ("text", {}),
    "text, skip": ("text", {"skip": True}),
    "text, no Eq. 4": ("text", {"reconstruction": 0.0}),
    "text, no batch norm": ("text", {"norm": None}),
    "text, no KL": ("text", {"kl_weight": 0.0}),
}


def diagnose(name: str, data: lw.Dataset, form: str, seed: int) -> dict[str, float]:
    """Diagnostics and example-F1 of one fit, on rows that it has not seen."""
    source, changes = FORMS[form]
    train, held_out = (data[part] for part in stratified_holdout(data.Y, 0.25, random_state=seed))
    rest, held = (train[part] for part in stratified_holdout(train.Y, 0.2, random_state=seed))
    model = CGMVAE.published(name, source=source).set_params(random_state=seed, **changes)
    model.fit(rest.X, rest.Y, validation=held)
    rule = make_threshold("tuned").fit(held.Y, model.predict_proba(held.X))
    sets = rule.apply(model.predict_proba(held_out.X))
    score = get_metric("f1_example")(held_out.Y, Y_pred=sets)
    return {"f1_example": score, **model.latent_diagnostics(held_out.X, held_out.Y)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--datasets", nargs="+", default=["scene", "yeast"])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--forms", nargs="+", default=list(FORMS), choices=list(FORMS))
    options = parser.parse_args()
    shown = ("f1_example", "map", "map_zeroed", "map_shuffled", "kl", "active_units")
    for name in options.datasets:
        data, _ = lw.load_dataset(name).split()
        for form in options.forms:
            fits = [diagnose(name, data, form, seed) for seed in range(options.seeds)]
            cells = []
            for key in shown:
                values = np.array([fit.get(key, np.nan) for fit in fits])
                cells.append(f"{key} {values.mean():7.3f}")
            print(f"{name:8s} {form:24s} {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
