"""Save a fitted model to a folder and load it back, without pickle.

A model folder contains

=====================  ======================================================================
``config.json``        method, parameters, versions, schema number; size and SHA-256 of each file
``labels.json``        label names and descriptions; the classes of a one-dimensional target
``thresholds.json``    the fitted threshold, which turns probabilities into label sets
``state.json``         the other fitted attributes, except arrays
``*.safetensors``      arrays and tensors
``*.skops``            scikit-learn estimators, of trusted types only
``README.md``          the model card, which you may edit (`load` does not read it)
``metrics.json``       the scores that were given to `save` (`load` does not read it)
``training.json``      data and protocol of the command line (`load` does not read it)
``rows-seen.npy``      a hash of each training row (`load` does not read it)
``signature.json``     hashes of all files, signed (only after ``labelweave sign``)
a folder               a labelweave model inside the model, in the same format
=====================  ======================================================================

Loading runs no code of the folder: it creates only classes of the table of methods.
"""

from labelweave.persistence.atomic_folder import check_save_path, read_unchanged
from labelweave.persistence.manifest import plain_file, read_json
from labelweave.persistence.model import ModelInfo, load, model_info, save
from labelweave.persistence.signing import new_key, sign

__all__ = [
    "ModelInfo",
    "check_save_path",
    "load",
    "model_info",
    "new_key",
    "plain_file",
    "read_json",
    "read_unchanged",
    "save",
    "sign",
]
