"""The settings of MPVAE's published tables."""

from __future__ import annotations

from typing import Any

# The scripts of the authors' program, under the names of the catalog.
SCRIPTS: dict[str, dict[str, Any]] = {
    "ebird": {"lr": 0.0015, "epochs": 200, "ranking_weight": 200.0, "dropout": 0.0},
    "mirflickr": {"lr": 0.00075, "epochs": 300, "ranking_weight": 200.0},
    "nus-vec": {"lr": 0.0005, "epochs": 50, "ranking_weight": 20.0},
    "scene": {"lr": 0.002, "epochs": 400, "ranking_weight": 40.0},
    "sider": {"lr": 0.0005, "epochs": 400, "ranking_weight": 20.0, "dropout": 0.1},
    "yeast": {"lr": 0.0006, "epochs": 800, "ranking_weight": 20.0},
    "delicious": {
        "lr": 0.0005,
        "epochs": 200,
        "ranking_weight": 0.1,
        "likelihood_weight": 10.0,
        "n_samples": 5,
    },
}
# The defaults of its flags, its network and its checkpoint.
FLAGS: dict[str, Any] = {
    "norm": None,
    "decoder_dropout": 0.0,
    "n_samples": 100,
    "likelihood_weight": 0.1,
    "ranking_weight": 200.0,
    "lr": 0.001,
    "epochs": 200,
    "min_steps": 1,
    "optimizer": "adam",
    "monitor": "tuned:f1_macro:grid",
}


def published_settings(dataset: str | None) -> dict[str, Any]:
    """Return the parameters of :class:`~labelweave.dependent.mpvae.MPVAE` for a data set.

    >>> [published_settings(name)["ranking_weight"] for name in ("scene", "yeast", "another")]
    [40.0, 20.0, 200.0]
    """
    settings = FLAGS | SCRIPTS.get(dataset or "", {})
    return settings | {"patience": settings["epochs"]}
