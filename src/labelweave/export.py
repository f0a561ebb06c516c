"""Exporting a fitted network to a file that can be used without this library.

The file contains one graph: the scaling of the features, the network and the sigmoid, so that
its output equals `predict_proba`. The input ``features`` is a float32 matrix with any number of
rows, the output is ``probabilities``. The label names are in the metadata of the file; the
threshold is not part of it.
"""

from __future__ import annotations

import copy
import json
from os import PathLike, fspath
from typing import Any

import torch
from sklearn.utils.validation import check_is_fitted
from torch import Tensor, nn

from labelweave.exceptions import InputError, require

__all__ = ["ServingModule", "export_onnx", "export_torch", "serving_module"]


class ServingModule(nn.Module):
    """A network with the scaling before it and the sigmoid after it."""

    shift: Tensor
    factor: Tensor

    def __init__(self, network: nn.Module, scaling: Any, *, single_label: bool) -> None:
        super().__init__()
        self.network = network
        self.is_scaled = scaling is not None
        if scaling is not None:
            self.register_buffer("shift", scaling.shift.cpu().clone())
            self.register_buffer("factor", scaling.factor.cpu().clone())
        self.single_label = single_label

    def forward(self, features: Tensor) -> Tensor:
        """Return the probabilities for unscaled features."""
        if self.is_scaled:
            features = (features - self.shift) * self.factor
        probabilities = torch.sigmoid(self.network(features))
        if self.single_label:
            probabilities = probabilities / probabilities.sum(dim=1, keepdim=True)
        return probabilities


def serving_module(model: Any) -> ServingModule:
    """Return the module that both export formats write, on the CPU and in evaluation mode."""
    from labelweave.nn.network_classifier import NetworkClassifier

    if not isinstance(model, NetworkClassifier):
        raise InputError(
            f"{type(model).__name__} has no network: only neural methods can be exported"
        )
    check_is_fitted(model)
    network = copy.deepcopy(model.network_).cpu()
    if (frozen := getattr(network, "frozen", None)) is not None:
        network = frozen()  # a simpler network with the same outputs
    return ServingModule(network, model.scaling_, single_label=model._single_label).eval()


def export_onnx(model: Any, path: str | PathLike[str]) -> None:
    """Export a fitted neural estimator to an ONNX file.

    Parameters
    ----------
    model : a fitted neural estimator
    path : path of the file; weights of more than 2 GB go to a second file beside it

    Notes
    -----
    Needs the extra ``export``. In ONNX Runtime::

        session = onnxruntime.InferenceSession("model.onnx")
        probabilities = session.run(None, {"features": X.astype(np.float32)})[0]
        labels = json.loads(session.get_modelmeta().custom_metadata_map["labels"])
    """
    require("onnxscript", "export")
    module = serving_module(model)
    program = torch.onnx.export(
        module,
        (_example(model),),
        dynamo=True,
        input_names=["features"],
        output_names=["probabilities"],
        dynamic_shapes={"features": {0: _rows()}},
        verbose=False,
    )
    assert program is not None
    program.model.metadata_props["labels"] = _labels(model)
    program.save(fspath(path))


def export_torch(model: Any, path: str | PathLike[str]) -> None:
    """Export a fitted neural estimator to a program of `torch.export` (a ``.pt2`` file).

    The format replaces TorchScript, which torch has deprecated. Using the file needs only torch::

        files = {"labels": ""}
        predict = torch.export.load("model.pt2", extra_files=files).module()
        probabilities = predict(torch.as_tensor(X, dtype=torch.float32))
        labels = json.loads(files["labels"])

    Parameters
    ----------
    model : a fitted neural estimator
    path : path of the file, ending in ``.pt2``
    """
    program = torch.export.export(
        serving_module(model), (_example(model),), dynamic_shapes={"features": {0: _rows()}}
    )
    torch.export.save(program, fspath(path), extra_files={"labels": _labels(model)})


def _example(model: Any) -> Tensor:
    encoder = model._image_encoder()
    if encoder is not None:  # images with pixels from 0 to 255
        return torch.zeros(2, 3, encoder.size, encoder.size)
    return torch.zeros(2, model._n_columns)  # torch.export takes a size of 1 for a constant


def _rows() -> Any:
    return torch.export.Dim("rows", min=1)


def _labels(model: Any) -> str:
    return json.dumps([str(name) for name in model.label_names_])
