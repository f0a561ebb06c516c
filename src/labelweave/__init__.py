"""labelweave: multi-label learning for the labels people really have.

Names are imported when they are first used, so that ``import labelweave`` is quick and does
not import torch.
"""

from __future__ import annotations

import importlib
import sys
from typing import Any

__version__ = "0.1.0"

_NAMES = {
    "CalibratedMultiLabel": "labelweave.calibration",
    "Dataset": "labelweave.data",
    "FastEmbedder": "labelweave.text",
    "ImageClassifier": "labelweave.images",
    "EfficientNetLite": "labelweave.images",
    "ImageEncoder": "labelweave.images",
    "Images": "labelweave.images",
    "LabelHierarchy": "labelweave.hierarchy",
    "LabelMatrix": "labelweave.labels",
    "LabelPipeline": "labelweave.label_pipeline",
    "ResNet": "labelweave.images",
    "SentenceEmbedder": "labelweave.text",
    "Table": "labelweave.tables",
    "TableEncoder": "labelweave.tables",
    "Teacher": "labelweave.scattered.teacher",
    "TextClassifier": "labelweave.text",
    "TfidfEmbedder": "labelweave.text",
    "apply_corrections": "labelweave.data.corrections",
    "as_labels": "labelweave.labels",
    "audit": "labelweave.auditing",
    "disagreement": "labelweave.scattered._amalgamation.agreement",
    "evaluate": "labelweave.metrics",
    "explain_row": "labelweave.explaining",
    "feature_importance": "labelweave.explaining",
    "list_datasets": "labelweave.data",
    "list_methods": "labelweave.methods",
    "load": "labelweave.persistence",
    "load_dataset": "labelweave.data",
    "make": "labelweave.methods",
    "native_importance": "labelweave.explaining",
    "read_dataset": "labelweave.data",
    "report": "labelweave.reporting",
    "save": "labelweave.persistence",
}
_MODULES = (
    "auditing",
    "base",
    "calibration",
    "capabilities",
    "data",
    "exceptions",
    "explaining",
    "hierarchy",
    "images",
    "known_labels",
    "labels",
    "methods",
    "metrics",
    "model_selection",
    "nn",
    "persistence",
    "reporting",
    "tables",
    "testing",
    "text",
    "thresholds",
)


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return importlib.import_module(f"labelweave.{name}")
    if name in _NAMES:
        return getattr(importlib.import_module(_NAMES[name]), name)
    if not name.startswith("_"):
        from labelweave.methods import public_classes

        method = public_classes().get(name)
        if method is not None:
            return method.load()
    message = f"module 'labelweave' has no attribute {name!r}"
    raise AttributeError(message, name=name, obj=sys.modules[__name__])  # "Did you mean ...?"


def __dir__() -> list[str]:
    from labelweave.methods import public_classes

    return sorted([*_NAMES, *_MODULES, *public_classes(), "__version__"])
