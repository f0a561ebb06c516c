"""What holds for every network of the room: it overfits, each setting learns, scene is learnt."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.methods import get_class
from labelweave.metrics import f1_example, mean_average_precision
from labelweave.nn.estimator import NeuralClassifier

ATTENTION = {"size": 16, "heads": 2, "n_tokens": 2, "hidden": (32,), "encoder_dropout": 0}
SMALL = {"encoder": (32,), "label_encoder": (16,)}
BRIEF = {"pretrain_epochs": 5, "pretrain_steps": 5}
OVERFITTING = {
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
# Settings other than the defaults, which tests/contract fits.
SETTINGS = {
    "c2ae": [
        {"feature_branch": 1.0},
        {"norm": None, "alpha": 1.0, "latent_size": 16, "lr": 5e-3, "epochs": 30},
    ],
    "c-tran": [
        {"most_known": 0.0},
        {"loss": "weighted-bce", "loss_params": {"pos_weight": 2.0}},
        {"norm": "layer"},
    ],
    "lamp": [
        {"graph": "co-occurrence"},
        {"graph": "none"},
        {"feature_layers": 1},
        {"known_rows": 0.0, "intermediate_weight": 0.0},
        {"loss": "asl"},
    ],
    "ml-gcn": [{"graph_hidden": ()}, {"graph_hidden": (16, 8)}, {"loss": "asl"}, {"norm": None}],
    "mpvae": [{"rank": 2}, {"ranking_weight": 0.0}, {"norm": None}],
    "ofcc": [{"loss": "final"}, {"reveal": 0.5}, {"encoder": (16,)}, {"max_steps": 2}],
    "rbcc": [{"structure": "labels"}, {"structure": None}],
}
SHORT = {"size": 64, "layers": 1, "epochs": 15, "lr": 1e-3}
SCENE = {  # settings, and an example F1 that is surpassed
    "asl": ({}, 0.73),
    "c2ae": ({}, 0.68),
    "c-tran": (SHORT, 0.7),
    "lamp": (SHORT, 0.7),
    "ml-gcn": ({}, 0.73),
    "mlp": ({}, 0.74),
    "mpvae": ({}, 0.72),
    "ofcc": ({}, 0.68),
    "rbcc": ({}, 0.73),
}


@pytest.mark.parametrize("name", OVERFITTING)
def test_a_tiny_set_is_learnt_by_heart(name):
    method = name.partition(",")[0]
    free = {"epochs": 150, "min_steps": 1, "dropout": 0, "patience": None, "random_state": 0}
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(20, 8)), rng.integers(0, 2, (20, 3))
    Y[:2] = 0  # rows without a label are learnt as well
    assert (lw.make(method, **free | OVERFITTING[name]).fit(X, Y).predict(X) == Y).all()


def test_no_network_of_the_room_is_left_out():
    networks = {
        m.id for m in lw.list_methods("dependent") if issubclass(m.load(), NeuralClassifier)
    }
    assert networks == {name.partition(",")[0] for name in OVERFITTING}


@pytest.mark.parametrize(
    ("id", "changes"), [(id, changes) for id, several in SETTINGS.items() for changes in several]
)
def test_every_setting_learns_and_is_saved(data, id, changes, tmp_path):
    X, Y = data
    small = get_class(id)._test_params()
    model = lw.make(id, random_state=0, **small | changes).fit(X[:200], Y[:200])
    probabilities = model.predict_proba(X[200:])
    gain = mean_average_precision(Y[200:], Y_score=probabilities) - Y[200:].mean()
    assert gain > (0.2 if id in ("c2ae", "c-tran", "lamp") else 0.25)
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(lw.load(tmp_path / "model").predict_proba(X[200:]), probabilities)


@pytest.mark.parametrize("id", ["c-gmvae", "c-tran", "lamp", "ml-gcn", "mulsupcon", "rbcc"])
def test_a_thousand_sparse_labels(id):
    """Most labels are never positive, and many rows have no label."""
    rng = np.random.default_rng(0)
    X = sp.random_array((40, 50), density=0.1, format="csr", rng=rng)
    Y = sp.random_array((40, 1000), density=0.005, format="csr", rng=rng)
    Y.data[:] = 1
    Y.data[:20] = np.nan
    small = get_class(id)._test_params() | {"epochs": 1}
    small |= {"graph": "co-occurrence"} if id == "lamp" else {}
    assert np.isfinite(lw.make(id, random_state=0, **small).fit(X, Y).predict_proba(X)).all()


@pytest.mark.data
@pytest.mark.parametrize("id", SCENE)
def test_scene_is_learnt(id, data_home):
    settings, floor = SCENE[id]
    train, test = lw.load_dataset("scene").split()
    model = lw.make(id, threshold="tuned", random_state=0, **settings).fit(train.X, train.Y)
    assert f1_example(test.Y, model.predict(test.X)) > floor
