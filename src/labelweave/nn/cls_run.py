"""How the CLS paper trains all networks of its Table 2 ("Implementation Details").

The methods of the table are in two rooms: classifiers for complete labels, and those for partial
labels. The paper crops images at random, without the size before the crop: here a part of at least
60 % of the area is taken, and mirrored at random.
"""

from __future__ import annotations

from typing import Any

__all__ = ["CLS_RUN", "MLP_RUN", "image_run", "mlp_run"]

CLS_RUN: dict[str, Any] = {
    "epochs": 100,
    "batch_size": 120,
    "weight_decay": 1e-4,
    "optimizer": "adam",
    "schedule": "cosine",
    "schedule_params": {"warmup": 0.0},
    "patience": None,
}
# On vectors the learning rate suits an MLP with random weights; it has dropout of the features too.
MLP_RUN: dict[str, Any] = {**CLS_RUN, "lr": 1e-3, "input_dropout": 0.3}


def image_run(dataset: str | None) -> dict[str, Any]:
    """Return what differs for the three sets of images: a ResNet-50 and its learning rate.

    Its weights from ImageNet are a file that the user adds (``encoder__weights``).

    >>> image_run("ms-coco")["lr"], image_run("scene")
    (4e-05, {})
    """
    if dataset not in ("ms-coco", "pascal-voc-2007", "nus-wide"):
        return {}
    from labelweave.nn.image_network import ResNet

    return {"encoder": ResNet(50, size=224), "lr": 4e-5}


def mlp_run(dataset: str | None) -> dict[str, Any]:
    """Return the settings of an MLP, or of the network of images in its place.

    >>> mlp_run("scene")["lr"], mlp_run("ms-coco")["input_dropout"]
    (0.001, 0.0)
    """
    images = image_run(dataset)
    return MLP_RUN | images | {"input_dropout": 0.0} if images else MLP_RUN
