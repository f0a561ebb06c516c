"""Does C-GMVAE's latent space earn its place? Diagnostics with and without remedies.

A quarter of the official training part is set aside and looked at here (the test part is not
touched), a fifth of the rest stops the training.

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

FORMS: dict[str, dict[str, object]] = {
    "default": {},
    "no KL": {"prior": None},
    "KL weight .01": {"kl_weight": 0.01},
    "annealed": {"kl_anneal": 0.5},
    "20 free nats": {"free_nats": 20.0},
    "no skip": {"skip": False},
    "no skip, KL weight .01": {"skip": False, "kl_weight": 0.01},
    "no skip, annealed": {"skip": False, "kl_anneal": 1.0},
    "no skip, 20 free nats": {"skip": False, "free_nats": 20.0},
    "no skip, no KL": {"skip": False, "prior": None},
}


def diagnose(data: lw.Dataset, changes: dict, seed: int) -> dict[str, float]:
    """Diagnostics and example-F1 of one fit, on rows that it has not seen."""
    train, held_out = (data[part] for part in stratified_holdout(data.Y, 0.25, random_state=seed))
    rest, held = (train[part] for part in stratified_holdout(train.Y, 0.2, random_state=seed))
    model = CGMVAE(random_state=seed, **changes).fit(rest.X, rest.Y, validation=held)
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
            found = [diagnose(data, FORMS[form], seed) for seed in range(options.seeds)]
            cells = []
            for key in shown:
                values = np.array([one.get(key, np.nan) for one in found])
                cells.append(f"{key} {values.mean():7.3f}")
            print(f"{name:8s} {form:24s} {'  '.join(cells)}", flush=True)


if __name__ == "__main__":
    main()
