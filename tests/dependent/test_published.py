"""The settings of the compared methods in published tables."""

import pytest

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.methods import get_class

# What their papers or programs state; a method without an entry has no stated settings.
STATED = {
    "br": {},
    "mlknn": {"k": 10, "smoothing": 1.0},
    "haram": {"vigilance": 0.9, "activation_drop": 0.02, "threshold": "largest-drop"},
    "sleec": {},
    "lamp": {"known_rows": 0.0, "intermediate_weight": 0.2, "layers": 2, "graph": "full"},
    "mpvae": {
        "encoder": (256, 512, 256),
        "label_encoder": (512, 256),
        "norm": None,
        "n_samples": 100,
        "likelihood_weight": 0.1,
        "ranking_weight": 20.0,
        "kl_weight": 1.1,
        "epochs": 400,
    },
    "asl": {"gamma_neg": 4.0, "gamma_pos": 1.0, "clip": 0.05},
    "rbcc": {"hidden_size": 100},
    "ml-gcn": {"tau": 0.4, "p": 0.2, "vector_size": 300},
    "c-tran": {"layers": 3, "heads": 4, "lr": 2e-4, "most_known": 0.75},
    "ofcc": {"loss": "every-step", "reveal": 0.0},
}


@pytest.mark.parametrize("method", STATED)
def test_settings_that_a_paper_states(method):
    model = get_class(method).published("scene")
    settings = model.get_params(deep=False)
    assert {name: settings[name] for name in STATED[method]} == STATED[method]
    assert not hasattr(model, "n_labels_")


@pytest.mark.parametrize(("name", "size"), [("scene", 5), ("yeast", 11), ("delicious", 786)])
def test_latent_size_of_c2ae(name, size):
    assert lw.C2AE.published(name).latent_size == size
    assert lw.C2AE.published("new").get_params() == lw.C2AE().get_params()


def test_the_source_of_ofcc_is_checked():
    with pytest.raises(InputError, match="'program' or 'text'"):
        lw.OFCC.published(source="book")
