"""C-GMVAE: its objective against a loop, its settings, and what it tells."""

import math
from dataclasses import fields

import numpy as np
import pytest
import scipy.sparse as sp
import torch
from batches import check_shares_add_up, make_batch
from sklearn.datasets import make_multilabel_classification

from labelweave.dependent._networks.mixture import sample_gaussian
from labelweave.dependent.cgmvae import CGMVAE, PUBLIC_CODE
from labelweave.dependent.cgmvae_network import CGMVAETask, Objective
from labelweave.exceptions import InputError
from labelweave.metrics import f1_example, get_metric
from labelweave.nn.batches import Batch
from labelweave.nn.task import StepInfo

SMALL = {
    "encoder": (32,),
    "label_encoder": (16,),
    "decoder": (32, 16),
    "embedding_size": 12,
    "latent_size": 6,
}
mean_average_precision = get_metric("map")
START = StepInfo(0, 0, 0.0)


@pytest.fixture(scope="module")
def data():
    X, Y = make_multilabel_classification(300, 20, n_classes=5, random_state=0)
    return X.astype(np.float64), Y


def quick(**changes):
    given = {**SMALL, "dropout": 0.1, "epochs": 20, "batch_size": 32, "lr": 1e-2, "random_state": 0}
    return CGMVAE(**(given | changes))


def make_task(n_features=4, n_labels=5, **changes):
    torch.manual_seed(0)
    model = CGMVAE(**({**SMALL, "dropout": 0.0, "norm": None} | changes))
    network = model._build_network(n_features, n_labels)
    chosen = {field.name: getattr(model, field.name) for field in fields(Objective)}
    return CGMVAETask(network, Objective(**chosen), {})


def terms_of(task, batch, seed=3, info=START):
    torch.manual_seed(seed)
    return task.losses(batch, info)


def log_normal(z, mean, log_variance):
    """Log density of one point under one Gaussian, dimension by dimension."""
    return sum(
        -0.5 * (math.log(2 * math.pi) + v + (a - m) ** 2 / math.exp(v))
        for a, m, v in zip(z.tolist(), mean.tolist(), log_variance.tolist(), strict=True)
    )


def slow_terms(task, batch, seed=3):
    """Eq. 3, 5 and 6 row by row and label by label."""
    network = task.network
    torch.manual_seed(seed)
    with torch.no_grad():
        mean, log_variance = network.feature_encoder(batch.x)
        z = sample_gaussian(mean, log_variance, torch.randn(len(mean), 1, mean.shape[1])[:, 0])
        means, log_variances = network.label_encoder(network.label_embeddings)
        embeddings = network.decoder(batch.x, z[:, None])[:, 0]
    labels = network.label_embeddings.detach()
    kl = contrast = entropy = 0.0
    for i, target in enumerate(batch.y.tolist()):
        positives = [j for j, t in enumerate(target) if t == 1]
        known = [j for j, t in enumerate(target) if not math.isnan(t)]
        densities = [math.exp(log_normal(z[i], means[j], log_variances[j])) for j in positives]
        if not positives and len(known) == len(target):
            densities = [math.exp(log_normal(z[i], *network.background.detach()))]
        if densities:
            log_prior = math.log(sum(densities) / len(densities))
            kl += log_normal(z[i], mean[i], log_variance[i]) - log_prior
        v = embeddings[i] / embeddings[i].norm()
        sim = [math.exp(float(v @ w) / float(w.norm())) for w in labels]
        for p in positives:
            contrast -= math.log(sim[p] / sum(sim[t] for t in known)) / len(positives)
        for j in known:
            s = 1 / (1 + math.exp(-float(embeddings[i] @ labels[j])))
            entropy -= math.log(s if target[j] == 1 else 1 - s)
    n_rows = len(batch.y)
    return {"kl": kl / n_rows, "contrast": contrast / n_rows, "cross_entropy": entropy / n_rows}


@pytest.mark.parametrize("unknown", [0.0, 0.4])
@pytest.mark.parametrize("norm", [None, "batch"])
def test_the_objective_is_that_of_the_loop(unknown, norm):
    task = make_task(kl_weight=2.0, alpha=3.0, beta=0.7, norm=norm)
    batch = make_batch(unknown=unknown)
    found, slow = terms_of(task, batch), slow_terms(task, batch)
    expected = {"kl": 2 * slow["kl"], "contrast": 3 * slow["contrast"]}
    expected["cross_entropy"] = 0.7 * slow["cross_entropy"]
    assert {k: v.item() for k, v in found.items()} == pytest.approx(expected, rel=1e-4)


def test_no_term_depends_on_what_stands_behind_an_unknown_entry():
    """The products with labels of unknown entries get no gradient from any term."""
    task, batch = make_task(label_branch=0.5), make_batch()
    y = batch.y.clone()
    y[:, 2] = torch.nan
    terms = terms_of(task, batch._replace(y=y))
    task.network.label_embeddings.grad = None
    (terms["contrast"] + terms["cross_entropy"]).backward()
    assert not task.network.label_embeddings.grad[2].any()
    assert task.network.label_embeddings.grad[1].any()


def test_rows_of_which_nothing_is_known_add_nothing():
    task, batch = make_task(), make_batch()
    y = batch.y.clone()
    y[3] = torch.nan
    x = batch.x.clone().requires_grad_()
    total = sum(terms_of(task, Batch(x, y, batch.rows)).values())
    total.backward()
    assert not x.grad[3].any()
    assert x.grad[2].any()


@pytest.mark.parametrize("prior", ["mixture", "uni-gaussian"])
def test_shares_of_a_batch_add_up_to_it(prior):
    changes = {"dropout": 0.3, "n_samples": 2, "label_branch": 0.5, "reconstruction": 0.1}
    check_shares_add_up(make_task(prior=prior, **changes), terms_of)


def test_reconstruction_samples_and_label_branch():
    batch = make_batch()
    task = make_task(reconstruction=0.5)
    torch.manual_seed(3)
    with torch.no_grad():
        mean, log_variance = task.network.feature_encoder(batch.x)
        noise = torch.randn(len(mean), 1, mean.shape[1])[:, 0]
        embeddings = task.network.decoder(
            batch.x, sample_gaussian(mean, log_variance, noise)[:, None]
        )
        missed = task.network.reconstruct(embeddings[:, 0]) - batch.x
    expected = 0.5 * 0.5 * (missed**2).sum(1).mean()
    assert torch.isclose(terms_of(task, batch)["reconstruction"], expected)
    # One point decoded twice is the mean of itself; the branch adds what its points give.
    plain = make_task(skip=False)
    for parameter in plain.network.feature_encoder.gaussian.parameters():
        parameter.data.zero_()
    plain.network.feature_encoder.gaussian.bias.data[SMALL["latent_size"] :] = -15  # no noise
    once = terms_of(plain, batch)["cross_entropy"]
    plain.objective = Objective(**{**vars(plain.objective), "n_samples": 4})
    assert torch.isclose(terms_of(plain, batch)["cross_entropy"], once, rtol=1e-3)
    plain.objective = Objective(**{**vars(plain.objective), "label_branch": 2.0})
    centre = plain.network.row_prior(batch.y == 1).centre()
    products = plain.network.products(plain.network.decoder(batch.x, centre[:, None])[:, 0])
    branch = torch.nn.functional.binary_cross_entropy_with_logits(products, batch.y) * 5 * 0.5
    assert torch.isclose(terms_of(plain, batch)["cross_entropy"], once + 2 * branch, rtol=1e-3)


def test_validation_looks_at_the_predictions_alone():
    task, batch = make_task(dropout=0.5, n_samples=2, label_branch=1.0), make_batch(unknown=0.3)
    task.eval()
    (name, found), *rest = terms_of(task, batch).items()
    assert (name, rest) == ("cross_entropy", [])
    scores = torch.sigmoid(task.network(batch.x))
    known = ~torch.isnan(batch.y)
    entropy = -torch.log(torch.where(batch.y == 1, scores, 1 - scores))[known].sum()
    assert torch.isclose(found, entropy / len(batch.y))


def test_kl_weight_rises_and_free_nats_stop_it():
    batch = make_batch()
    full = terms_of(make_task(), batch)["kl"]
    task = make_task(kl_anneal=0.5)
    assert terms_of(task, batch)["kl"] == 0
    half = terms_of(task, batch, info=StepInfo(0, 1, 0.25))["kl"]
    assert torch.isclose(half, full / 2)
    assert torch.isclose(terms_of(task, batch, info=StepInfo(0, 1, 0.75))["kl"], full)
    task = make_task(free_nats=100.0)
    kl = terms_of(task, batch)["kl"]
    assert kl == 100
    kl.backward()
    assert not any(p.grad is not None and p.grad.any() for p in task.network.parameters())


def test_uni_gaussian_prior_sees_the_sum_of_the_labels():
    task, batch = make_task(prior="uni-gaussian"), make_batch()
    prior = task.network.row_prior(batch.y == 1)
    summed = batch.y @ task.network.label_embeddings
    torch.testing.assert_close(prior.means, task.network.label_encoder(summed)[0])
    assert math.isfinite(terms_of(task, batch)["kl"].item())


ABLATIONS = {
    "uni-gaussian": {"prior": "uni-gaussian", "alpha": 0.0},
    "mixture only": {"alpha": 0.0},
    "contrastive only": {"prior": None},
    "triplets": {"contrast": "triplet"},
    "public code": PUBLIC_CODE | {"decoder": (32,)},
    "without skip": {"skip": False, "kl_weight": 0.01},
    "free nats": {"free_nats": 5.0},
    "annealed": {"kl_anneal": 0.5},
    "reconstructing": {"reconstruction": 0.01},
    "plain contrast": {"normalize": None, "temperature": 0.5},
    "layer norm": {"norm": "layer"},
    "no norm": {"norm": None},
    "averaged": {"predict_samples": 4},
    "branch without prior": {"prior": None, "label_branch": 0.5},
    "restarts": {"schedule": "cosine-restarts", "schedule_params": {"cycle": 5, "min_lr": 1e-3}},
}


@pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)
def test_every_setting_learns(data, changes, tmp_path):
    import labelweave as lw

    X, Y = data
    model = quick(**changes).fit(X[:200], Y[:200])
    chance = Y[200:].mean()
    assert mean_average_precision(Y[200:], Y_score=model.predict_proba(X[200:])) > chance + 0.25
    assert ("kl" in model.history_) == (model.prior is not None)
    assert ("contrast" in model.history_) == (model.alpha > 0)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


def test_a_thousand_sparse_labels_some_never_positive():
    rng = np.random.default_rng(0)
    X = sp.random_array((60, 50), density=0.1, format="csr", rng=rng)
    Y = sp.random_array((60, 1000), density=0.005, format="csr", rng=rng)
    Y.data[:] = 1
    Y = Y.tolil()
    Y[:, 7] = 0
    model = quick(epochs=2).fit(X, Y.tocsr())
    assert np.isfinite(model.predict_proba(X)).all()
    assert model.label_similarity().shape == (1000, 1000)


def test_embeddings_and_similarities(data):
    X, Y = data
    model = quick().fit(X, Y)
    assert model.label_embeddings_.shape == (5, 12)
    products = model.transform(X) @ model.label_embeddings_.T
    np.testing.assert_allclose(1 / (1 + np.exp(-products)), model.predict_proba(X), atol=1e-5)
    inner = model.label_similarity()
    assert list(inner.columns) == list(inner.index) == list(model.label_names_)
    np.testing.assert_allclose(inner, model.label_embeddings_ @ model.label_embeddings_.T)
    cosine = model.label_similarity("cosine")
    np.testing.assert_allclose(np.diag(cosine), 1, atol=1e-6)
    with pytest.raises(InputError, match="'inner' or 'cosine'"):
        model.label_similarity("euclid")


def test_averaging_more_points_changes_little(data):
    """The mean over many points is near the answer of the posterior mean, and repeatable."""
    X, Y = data
    model = quick(predict_samples=64).fit(X, Y)
    averaged = model.predict_proba(X)
    np.testing.assert_array_equal(averaged, model.predict_proba(X))
    products = model.transform(X) @ model.label_embeddings_.T
    assert np.abs(averaged - 1 / (1 + np.exp(-products))).mean() < 0.1


def test_diagnostics_tell_a_used_latent_space_from_an_idle_one(data):
    X, Y = data
    used = quick(skip=False, kl_weight=0.001, epochs=30).fit(X, Y).latent_diagnostics(X, Y)
    assert used["active_units"] > 0
    assert used["kl"] > 1
    assert used["map_shuffled"] < used["map"] - 0.1
    assert used["change_zeroed"] > 0.05
    model = quick()
    model.fit(X, Y)
    model.network_.decoder.from_latent.weight.data.zero_()
    idle = model.latent_diagnostics(X, Y)
    assert idle["map"] == idle["map_zeroed"] == idle["map_shuffled"]
    assert idle["change_zeroed"] == idle["change_shuffled"] == 0
    assert "kl" not in quick(prior=None, epochs=2).fit(X, Y).latent_diagnostics(X, Y)


def test_diagnosed_kl_is_the_divergence_where_it_is_known(data):
    """With one label on all rows the mixture is one Gaussian, whose KL has a closed form."""
    X, _ = data
    Y = np.ones((len(X), 1), dtype=int)
    model = quick(epochs=3).fit(X, Y, validation=(X, Y))
    found = model.latent_diagnostics(X, Y)["kl"]
    network = model.network_
    with torch.no_grad():
        x = model.scaling_.apply(torch.from_numpy(X.astype(np.float32)))
        mean, log_variance = network.feature_encoder(x)
        prior_mean, prior_log_variance = network.label_encoder(network.label_embeddings)
    posterior = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
    prior = torch.distributions.Normal(prior_mean, torch.exp(0.5 * prior_log_variance))
    exact = torch.distributions.kl_divergence(posterior, prior).sum(1).mean().item()
    assert found == pytest.approx(exact, rel=0.1, abs=0.02)


def test_an_empty_decoder_is_refused(data):
    with pytest.raises(InputError, match="hidden layer"):
        quick(decoder=()).fit(*data)
    with pytest.raises(InputError, match="no parameter 'cycles'"):
        quick(schedule="cosine-restarts", schedule_params={"cycles": 3}).fit(*data)


@pytest.mark.data
def test_scene_reaches_what_the_public_code_does(data_home):
    import labelweave as lw

    train, test = lw.load_dataset("scene").split()
    model = CGMVAE(threshold="tuned", random_state=0).fit(train.X, train.Y)
    assert f1_example(test.Y, model.predict(test.X)) > 0.74
