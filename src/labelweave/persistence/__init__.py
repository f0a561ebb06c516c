"""Save a fitted model to a folder and load it back, without pickle.

A model folder holds

=====================  ======================================================================
``config.json``        method, parameters, versions, schema number; size and SHA-256 of each file
``labels.json``        label names and descriptions; the classes of a one-dimensional target
``thresholds.json``    the fitted rule that turns probabilities into label sets
``state.json``         what else was fitted and is no array
``*.safetensors``      arrays and tensors
``*.skops``            scikit-learn estimators, of trusted types only
``README.md``          the model card, yours to edit (`load` does not read it)
``metrics.json``       scores, where `save` was given some (`load` does not read it)
``training.json``      which data and protocol the command line used (`load` does not read it)
``rows-seen.npy``      a number for each row it trained on (`load` does not read it)
a folder               a labelweave model inside the model, written in the same way
=====================  ======================================================================

Loading runs no code from the folder: classes come from the table of methods alone.
"""

from labelweave.persistence.folder import check_save_path
from labelweave.persistence.info import ModelInfo, model_info
from labelweave.persistence.model import load, save

__all__ = ["ModelInfo", "check_save_path", "load", "model_info", "save"]
