"""What holds for every network of the room: it overfits, each setting learns, scene is learnt."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.labels import as_labels
from labelweave.methods import get_class
from labelweave.metrics import f1_example, mean_average_precision
from labelweave.nn.estimator import NeuralClassifier
from labelweave.nn.process_rows import RowShare, held_share
from labelweave.nn.task import StepInfo

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


# -- weights of rows -------------------------------------------------------------------

# Without dropout, batch norm and scaling of features, which do not use the weights of rows.
PLAIN = {
    "asl": {"norm": None, "dropout": 0.0},
    "c2ae": {"norm": None, "dropout": 0.0, "feature_branch": 1.0},
    "c-gmvae": {"dropout": 0.0, "reconstruction": 1.0},
    "c-tran": {"norm": None, "encoder_dropout": 0.0, "dropout": 0.0},
    "lamp": {"norm": None, "encoder_dropout": 0.0, "dropout": 0.0, "layers": 2},
    "ml-gcn": {"norm": None, "dropout": 0.0},
    "mlp": {"norm": None, "dropout": 0.0},
    "mlp, zlpr": {"norm": None, "dropout": 0.0, "loss": "zlpr"},
    "mlp, balanced": {"norm": None, "dropout": 0.0, "class_weight": "balanced"},
    "mpvae": {"norm": None, "dropout": 0.0},
    "mulsupcon": {"norm": None, "dropout": 0.0, "pretrain_epochs": 0},
    "ofcc": {"norm": None, "dropout": 0.0},
    "rbcc": {"norm": None, "dropout": 0.0},
}
# Settings without random numbers, so that two equal rows have equal losses.
FIXED = {
    "c-tran": {"most_known": 0.0},
    "lamp": {"known_rows": 0.0},
    "ofcc": {"reveal": 0.0},
}
START = StepInfo(0, 0, 0.0)


def _weighted_rows():
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(9, 4)), (rng.random((9, 3)) < 0.4).astype(float)
    Y[0] = 0
    Y[[2, 5], [1, 0]] = np.nan
    return X, as_labels(Y), rng.integers(1, 4, 9).astype(float)


def _task_and_batch(name, X, Y, weight, extra=None):
    """The objective of a new network, and all rows in one batch."""
    settings = get_class(name.partition(",")[0])._test_params() | PLAIN[name] | (extra or {})
    model = lw.make(name.partition(",")[0], random_state=0, scale="none", **settings)
    model._learn_statistics(X, Y, weight)
    session = model.network_spec().open_session(X, Y, None, 0, row_weight=weight)
    torch.manual_seed(0)
    task = model._build_task(model._build_network(4, 3), session).train()
    batches = session._batches(X, Y, batch_size=len(Y), row_weight=weight)
    return task, next(batches.in_order())


def _value_and_gradients(task, batch, share=None):
    torch.manual_seed(1)
    task.zero_grad()
    with held_share(share):
        total = sum(task.losses(batch, START).values())
    total.backward()
    gradients = [p.grad for p in task.parameters() if p.grad is not None]
    return [total.detach(), *(g.clone() for g in gradients)]


@pytest.mark.parametrize("name", [name for name in PLAIN if name != "c2ae"])
def test_a_weight_scales_the_loss_of_its_row(name):
    """Against a loop over the rows; each has the random numbers that it has in the batch."""
    task, batch = _task_and_batch(name, *_weighted_rows())
    rows = len(batch.rows)
    assert float(batch.row_weight.mean()) == pytest.approx(1)
    total = _value_and_gradients(task, batch)
    expected = [torch.zeros_like(value) for value in total]
    for i in range(rows):
        row = batch._replace(x=batch.x[[i]], y=batch.y[[i]], rows=batch.rows[[i]], row_weight=None)
        alone = _value_and_gradients(task, row, RowShare(i, i + 1, rows))
        assert len(alone) == len(total)
        for sum_, value in zip(expected, alone, strict=True):
            sum_ += float(batch.row_weight[i]) / rows * value
    for value, by_hand in zip(total, expected, strict=True):
        torch.testing.assert_close(value, by_hand, rtol=2e-3, atol=2e-5)


@pytest.mark.parametrize("name", [n for n in PLAIN if n not in ("c-gmvae", "mpvae")])
def test_a_row_of_weight_two_is_two_equal_rows(name):
    X, Y, weight = _weighted_rows()
    fixed = FIXED.get(name)
    weighted = _value_and_gradients(*_task_and_batch(name, X, Y, weight, fixed))
    copies = np.repeat(np.arange(9), weight.astype(int))
    repeated = _value_and_gradients(*_task_and_batch(name, X[copies], Y[copies], None, fixed))
    for value, by_hand in zip(weighted, repeated, strict=True):
        torch.testing.assert_close(value, by_hand, rtol=2e-3, atol=2e-5)


def test_contrastive_pretraining_has_no_weights(data):
    X, Y = data[0][:60], data[1][:60]
    weight = np.r_[np.full(30, 0.5), np.full(30, 2.0)]
    small = get_class("mulsupcon")._test_params()
    model = lw.make("mulsupcon", random_state=0, **small)
    with pytest.raises(InputError, match="this MulSupCon takes no sample_weight"):
        model.fit(X, Y, sample_weight=weight)
    model.set_params(pretrain_epochs=0)
    weighted = model.fit(X, Y, sample_weight=weight).predict_proba(X)
    assert (weighted != model.fit(X, Y).predict_proba(X)).any()


@pytest.mark.parametrize("id", ["c-gmvae", "c-tran", "mlp"])
def test_weights_with_sparse_features_and_labels(id):
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 30), density=0.2, format="csr", rng=rng)
    Y = sp.random_array((60, 6), density=0.3, format="csr", rng=rng)
    Y.data[:] = 1
    Y.data[:9] = np.nan
    weight = rng.random(60) + 0.1
    small = get_class(id)._test_params() | {"epochs": 2, "random_state": 0, "scale": "none"}
    sparse = lw.make(id, **small).fit(X, Y, sample_weight=weight).predict_proba(X)
    dense = lw.make(id, **small).fit(X.toarray(), Y.toarray(), sample_weight=weight)
    np.testing.assert_allclose(sparse, dense.predict_proba(X.toarray()), rtol=1e-4)


# -- weights of positives --------------------------------------------------------------


@pytest.mark.parametrize("id", ["mlp", "ml-gcn", "lamp", "c-tran"])
def test_balanced_positives_raise_a_rare_label(id, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4))
    Y = np.column_stack([X[:, 0] + rng.normal(size=300) > 2, X[:, 1] > 0]).astype(int)
    small = get_class(id)._test_params() | {"random_state": 0}
    plain = lw.make(id, **small).fit(X, Y).predict_proba(X)
    model = lw.make(id, class_weight="balanced", **small).fit(X, Y)
    balanced = model.predict_proba(X)
    assert Y[:, 0].mean() < 0.12
    assert balanced[:, 0].mean() > 1.5 * plain[:, 0].mean()
    assert abs(balanced[:, 1].mean() - plain[:, 1].mean()) < 0.1
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(lw.load(tmp_path / "model").predict_proba(X), balanced)


def test_weights_of_positives_need_a_loss_of_entries(data):
    model = lw.MLP(hidden=(8,), loss="zlpr", class_weight="balanced", epochs=1, random_state=0)
    with pytest.raises(InputError, match="class_weight needs a loss with one value per entry"):
        model.fit(*data)
    with pytest.raises(InputError, match="class_weight names 'rain', which is no label"):
        lw.MLP(class_weight={"rain": 2}).fit(*data)


def test_a_label_graph_is_built_where_another_method_trains_the_network(data):
    X, Y = data
    base = lw.LaMP(graph="co-occurrence", size=16, heads=2, hidden=(8,), epochs=1)
    model = lw.CLS(base=base, random_state=0).fit(X[:60], Y[:60])
    assert np.isfinite(model.predict_proba(X[:3])).all()
