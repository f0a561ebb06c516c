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
        "decoder": (256, 512),
        "latent_size": 50,
        "norm": None,
        "dropout": 0.5,
        "decoder_dropout": 0.0,
        "n_samples": 100,
        "kl_weight": 1.1,
        "optimizer": "adam",
        "weight_decay": 1e-5,
        "batch_size": 128,
        "monitor": "tuned:f1_macro:grid",
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


# Of the scripts of the authors' program: rate, epochs, weights of likelihood and of ranking, the
# probability of keeping a unit, draws.
MPVAE_SCRIPTS = {
    "ebird": (0.0015, 200, 0.1, 200.0, 1.0, 100),
    "mirflickr": (0.00075, 300, 0.1, 200.0, 0.5, 100),
    "nus-vec": (0.0005, 50, 0.1, 20.0, 0.5, 100),
    "yeast": (0.0006, 800, 0.1, 20.0, 0.5, 100),
    "scene": (0.002, 400, 0.1, 40.0, 0.5, 100),
    "sider": (0.0005, 400, 0.1, 20.0, 0.9, 100),
    "delicious": (0.0005, 200, 10.0, 0.1, 0.5, 5),
    "another": (0.001, 200, 0.1, 200.0, 0.5, 100),
}


@pytest.mark.parametrize("name", MPVAE_SCRIPTS)
def test_mpvae_has_the_settings_of_its_scripts(name):
    model = lw.MPVAE.published(name)
    weights = (model.likelihood_weight, model.ranking_weight)
    keep = round(1 - model.dropout, 6)
    settings = (model.lr, model.epochs, *weights, keep, model.n_samples)
    assert settings == MPVAE_SCRIPTS[name]
    assert (model.patience, model.min_steps, model.rank) == (model.epochs, 1, None)


def test_the_source_of_ofcc_is_checked():
    with pytest.raises(InputError, match="'program' or 'text'"):
        lw.OFCC.published(source="book")


# "Implementation Details" of the CLS paper, whose Table 2 has the figures of these methods.
CLS_TABLE_2 = {
    "epochs": 100,
    "batch_size": 120,
    "weight_decay": 1e-4,
    "optimizer": "adam",
    "schedule": "cosine",
    "schedule_params": {"warmup": 0.0},
    "patience": None,
}


@pytest.mark.parametrize(
    ("method", "source"), [("ml-gcn", {}), ("c-tran", {}), ("asl", {"source": "cls"})]
)
def test_published_training_of_classifiers_for_complete_labels(method, source):
    cls = get_class(method)
    for dataset in ("ms-coco", "nus-wide", "pascal-voc-2007"):
        model = cls.published(dataset, **source)
        expected = CLS_TABLE_2 | {"lr": 4e-5}
        assert {name: getattr(model, name) for name in expected} == expected
        assert (model.encoder.depth, model.encoder.size) == (50, 224)
    of_vectors = cls.published("scene", **source)
    assert {name: getattr(of_vectors, name) for name in CLS_TABLE_2} == CLS_TABLE_2
    assert of_vectors.encoder is None


def test_asl_of_mulsupcon_has_the_training_of_its_class():
    assert lw.ASL.published("scene").get_params() == lw.ASL().get_params()
    with pytest.raises(InputError, match="'mulsupcon' or 'cls'"):
        lw.ASL.published(source="program")
