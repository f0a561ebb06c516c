"""The settings of MulSupCon's published tables."""

from __future__ import annotations

from typing import Any

from labelweave.exceptions import InputError

# Data sets of images in the paper's tables, under the names of the catalog and its suites.
IMAGES = ("ms-coco", "nus-wide", "objects365", "mirflickr", "pascal-voc-2007")
# "For image datasets": a ResNet-50 from scratch at 224 pixels, 400 epochs of SGD with a cosine. The
# queue is that of the program's class, whose other defaults are for MS-COCO.
ON_IMAGES: dict[str, Any] = {
    "queue_size": 2048,
    "pretrain_epochs": 400,
    "pretrain_steps": None,
    "pretrain_optimizer": "sgd",
    "pretrain_lr": 0.1,
    "pretrain_schedule": "cosine",
    "lr": 1e-4,
    "backbone_lr": 1e-4,
}
FROM_SCRATCH: dict[str, Any] = {
    "pretrain_epochs": 0,
    "optimizer": "sgd",
    "lr": 0.1,
    "backbone_lr": 0.1,
    "schedule": "cosine",
    "schedule_params": {"warmup": 0.0},
    "epochs": 400,
    "patience": 400,
}
# What Tables 5 to 8 change: a classifier on the frozen encoder, of the same set or of another, and
# the network trained by cross-entropy alone.
FORMS: dict[str, dict[str, Any]] = {
    "fine-tuned": {},
    "linear-probe": {"mode": "linear-probe", "lr": 0.01},
    "transferred": {"mode": "linear-probe", "lr": 0.04},
    "from-scratch": FROM_SCRATCH,
}
# Random crop, colours and greyscale of the text, with the numbers of the program, which flips too.
IMAGE_VIEWS = {
    "crop": 0.08,
    "flip": 0.5,
    "brightness": 0.4,
    "contrast": 0.4,
    "saturation": 0.4,
    "hue": 0.1,
    "jitter": 0.8,
    "grey": 0.2,
}


def published_settings(dataset: str | None, source: str, form: str) -> dict[str, Any]:
    """Return the parameters of :class:`~labelweave.dependent.mulsupcon.MulSupCon` for a data set.

    >>> published_settings("scene", "program", "fine-tuned")
    {}
    >>> published_settings("scene", "text", "linear-probe")["lr"]
    0.01
    """
    if form not in FORMS:
        forms = ", ".join(map(repr, FORMS))
        raise InputError(f"form must be one of {forms}, not {form!r}", parameter="form")
    return _on(dataset, source) | FORMS[form]


def _on(dataset: str | None, source: str) -> dict[str, Any]:
    if source not in ("program", "text"):
        raise InputError(f"source must be 'program' or 'text', not {source!r}", parameter="source")
    if dataset in IMAGES:
        from labelweave.nn.image_network import ResNet

        batch_size = 128 if dataset == "objects365" else 64
        return ON_IMAGES | {
            "encoder": ResNet(50, size=224, augment=dict(IMAGE_VIEWS)),
            "pretrain_batch_size": batch_size,
            "batch_size": batch_size,
        }
    if source == "program":
        return {}
    batch_size = 32 if dataset in ("yeast", "scene") else 256
    return {
        "pretrain_steps": None,
        "pretrain_batch_size": batch_size,
        "pretrain_schedule": "cosine",
        "batch_size": batch_size,
        "min_steps": 1,
    }
