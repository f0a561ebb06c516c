"""Every network of the room learns twenty rows by heart when nothing holds it back."""

import numpy as np
import pytest

import labelweave as lw

ATTENTION = {"size": 16, "heads": 2, "n_tokens": 2, "hidden": (32,), "encoder_dropout": 0}
SMALL = {"encoder": (32,), "label_encoder": (16,)}
BRIEF = {"pretrain_epochs": 5, "pretrain_steps": 5}
SETTINGS = {
    "asl": {"epochs": 100},
    "c2ae": {"epochs": 200},
    "c-gmvae": {**SMALL, "decoder": (32,), "latent_size": 6, "lr": 1e-2, "epochs": 300},
    "c-tran": {**ATTENTION, "layers": 1, "lr": 1e-2},
    "lamp": {**ATTENTION, "layers": 2, "lr": 1e-2},
    "ml-gcn": {"hidden": (32,), "graph_hidden": (16,), "vector_size": 12, "lr": 1e-2},
    "mlp": {"epochs": 100},
    "mpvae": {},
    "mulsupcon": {"hidden": (32,), "norm": None, **BRIEF, "lr": 1e-2, "backbone_lr": 1e-3},
    "ofcc": {"epochs": 300, "lr": 1e-2},
    "ofcc, final": {"loss": "final", "epochs": 300, "lr": 1e-2},
    "rbcc": {},
}


@pytest.mark.parametrize("name", SETTINGS)
def test_a_tiny_set_is_learnt_by_heart(name):
    method = name.partition(",")[0]
    free = {"epochs": 150, "min_steps": 1, "dropout": 0, "patience": None, "random_state": 0}
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 8)), rng.integers(0, 2, (20, 3))
    Y[:2] = 0  # rows without a label are learnt as well
    assert (lw.make(method, **free | SETTINGS[name]).fit(X, Y).predict(X) == Y).all()


def test_no_network_of_the_room_is_left_out():
    from labelweave.nn.estimator import NeuralClassifier

    found = {m.id for m in lw.list_methods("dependent") if issubclass(m.load(), NeuralClassifier)}
    assert found == {name.partition(",")[0] for name in SETTINGS}
