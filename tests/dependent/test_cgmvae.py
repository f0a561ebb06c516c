"""C-GMVAE: its objective against a loop, its settings, and what it tells."""

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from batches import check_shares_add_up, make_batch
from torch import nn
from torch.distributions import Normal
from torch.nn import functional as F  # noqa: N812 (torch's own way)

from labelweave.dependent._networks.mixture import sample_gaussian
from labelweave.dependent.cgmvae import CGMVAE
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
# The text's form without what its layers do at random or over the batch.
TEXT = {
    "norm": None,
    "skip": False,
    "label_activation": None,
    "output_activation": None,
    "normalize": "contrast",
    "reconstruction": 0.5,
    "n_samples": 1,
    "label_branch": False,
}
mean_average_precision = get_metric("map")
START = StepInfo(0, 0, 0.0)


def quick(**changes):
    settings = {**SMALL, "dropout": 0.1, "epochs": 30, "batch_size": 32, "min_steps": 8, "lr": 1e-2,
             "random_state": 0}  # fmt: skip
    return CGMVAE(**(settings | changes))


def make_task(n_features=4, n_labels=5, **changes):
    torch.manual_seed(0)
    model = CGMVAE(**({**SMALL, "dropout": 0.0} | changes))
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
    """Eq. 3 to 6 point by point, row by row and label by label."""
    network, objective = task.network, task.objective
    labels = network.label_embeddings.detach()
    torch.manual_seed(seed)
    with torch.no_grad():
        mean, log_variance = network.feature_encoder(batch.x)
        noise = torch.randn(len(mean), objective.n_samples + 1, mean.shape[1])
        draws = sample_gaussian(mean[:, None], log_variance[:, None], noise)
        bias = 0 if network.label_bias is None else network.label_bias
        means, log_variances = network.label_encoder(labels + bias)
        background = network.background
    n_rows, z0 = len(batch.y), draws[:, -1]
    slow = dict.fromkeys(("kl", "contrast", "cross_entropy", "reconstruction"), 0.0)
    for i, target in enumerate(batch.y.tolist()):
        positives = [j for j, t in enumerate(target) if t == 1]
        known = [j for j, t in enumerate(target) if not math.isnan(t)]
        densities = [math.exp(log_normal(z0[i], means[j], log_variances[j])) for j in positives]
        if not positives and len(known) == len(target):
            densities = [math.exp(log_normal(z0[i], *background))]
        if densities:
            log_prior = math.log(sum(densities) / len(densities))
            slow["kl"] += (log_normal(z0[i], mean[i], log_variance[i]) - log_prior) / n_rows
        points = list(draws[i, :-1])
        anchors = [0]
        if objective.label_branch:
            anchors.append(len(points))
            points.append(sum(means[j] for j in positives) / len(positives)
                          if positives else background[0])  # fmt: skip
        for k, z in enumerate(points):
            with torch.no_grad():
                w = network.decoder(batch.x[i : i + 1], z[None, None])[0, 0]
                if objective.reconstruction and k < objective.n_samples:
                    missed = (network.reconstruct(w) - batch.x[i]).square().sum().item()
                    slow["reconstruction"] += 0.5 * missed / objective.n_samples / n_rows
            for j in known:
                s = 1 / (1 + math.exp(-float(w @ labels[j])))
                slow["cross_entropy"] -= math.log(s if target[j] == 1 else 1 - s) / n_rows
            if k in anchors:
                lengths = [1.0] * len(labels)
                if objective.normalize == "contrast":
                    lengths = [float(w.norm() * v.norm()) for v in labels]
                sim = [math.exp(float(w @ v) / n) for v, n in zip(labels, lengths, strict=True)]
                for p in positives:
                    share = math.log(sim[p] / sum(sim[t] for t in known)) / len(positives)
                    slow["contrast"] -= share / len(anchors) / n_rows
    return slow


@pytest.mark.parametrize("unknown", [0.0, 0.4])
@pytest.mark.parametrize("form", [{}, TEXT], ids=["program", "text"])
def test_the_objective_is_that_of_the_loop(unknown, form):
    """Eq. 7 with its weights."""
    task = make_task(**form | {"kl_weight": 2.0, "alpha": 3.0, "beta": 0.7})
    batch = make_batch(unknown=unknown)
    terms, slow = terms_of(task, batch), slow_terms(task, batch)
    weights = {"kl": 2.0, "contrast": 3.0, "cross_entropy": 0.7}
    if form:
        weights["reconstruction"] = 0.5
    expected = {name: weight * slow[name] for name, weight in weights.items()}
    assert {k: v.item() for k, v in terms.items()} == pytest.approx(expected, rel=1e-4)


def program_loss(network, x, y, noise):
    """The program's loss, layer by layer, of rows that have a label: Eq. 3, 5 and 6."""

    def gaussian(encoder, values):
        *hidden, last = (layer for layer in encoder.modules() if isinstance(layer, nn.Linear))
        for layer in hidden:
            values = torch.relu(layer(values))
        return last(values).chunk(2, dim=1)

    def decode(z):
        first, second = network.decoder.from_latent, network.decoder.layers[-2]
        weight = torch.cat([network.decoder.from_features.weight, first.weight], dim=1)
        hidden = torch.relu(torch.cat([x, z], dim=1) @ weight.T + first.bias)
        w = F.leaky_relu(second(hidden))
        return w / w.norm(dim=1, keepdim=True)

    labels = network.label_embeddings
    mean, log_variance = gaussian(network.feature_encoder, x)
    means, log_variances = gaussian(network.label_encoder, torch.relu(labels + network.label_bias))
    n_labels = y.sum(dim=1, keepdim=True)
    first, second, z0 = (mean + torch.exp(log_variance / 2) * e for e in noise.unbind(1))
    logits = [decode(z) @ labels.T for z in (first, second, y @ means / n_labels)]
    entropy = sum(F.binary_cross_entropy_with_logits(s, y, reduction="sum") for s in logits)
    posterior = Normal(mean, torch.exp(log_variance / 2)).log_prob(z0).sum(dim=1)
    components = Normal(means, torch.exp(log_variances / 2)).log_prob(z0[:, None]).sum(dim=2)
    prior = torch.log((y * torch.exp(components)).sum(dim=1) / n_labels[:, 0])
    contrast = sum(-(y / n_labels * s.log_softmax(1)).sum() for s in (logits[0], logits[2])) / 2
    return (0.5 * entropy + 6 * (posterior - prior).sum() + contrast) / len(x)


def test_loss_and_gradients_are_those_of_the_program():
    task, batch = make_task(decoder=(32,)), make_batch()
    y = batch.y.clone()
    y[:, 0] = 1
    total = sum(terms_of(task, batch._replace(y=y)).values())
    torch.manual_seed(3)
    expected = program_loss(task.network, batch.x, y, torch.randn(len(y), 3, 6))
    assert total.item() == pytest.approx(expected.item(), rel=1e-5)
    weights = [w for name, w in task.network.named_parameters() if name != "background"]
    found = torch.autograd.grad(total, weights)
    torch.testing.assert_close(found, torch.autograd.grad(expected, weights), rtol=1e-3, atol=1e-5)


def test_unit_length_of_the_features():
    program, text = make_task(), make_task(**TEXT)
    x = make_batch().x
    lengths = torch.linalg.vector_norm(program.network.embed(x), dim=1)
    torch.testing.assert_close(lengths, torch.ones(len(x)))
    assert (torch.linalg.vector_norm(text.network.embed(x), dim=1) - 1).abs().max() > 0.1


def test_no_term_depends_on_what_stands_behind_an_unknown_entry():
    """The products with labels of unknown entries get no gradient from any term."""
    task, batch = make_task(), make_batch()
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
    changes = {"dropout": 0.3, "decoder_dropout": 0.2, "reconstruction": 0.1}
    check_shares_add_up(make_task(prior=prior, **changes), terms_of)


def test_validation_looks_at_the_predictions_alone():
    task, batch = make_task(dropout=0.5), make_batch(unknown=0.3)
    task.eval()
    (name, loss), *rest = terms_of(task, batch).items()
    assert (name, rest) == ("cross_entropy", [])
    scores = torch.sigmoid(task.network(batch.x))
    known = ~torch.isnan(batch.y)
    entropy = -torch.log(torch.where(batch.y == 1, scores, 1 - scores))[known].sum()
    assert torch.isclose(loss, entropy / len(batch.y))


def test_uni_gaussian_prior_sees_the_sum_of_the_labels():
    task, batch = make_task(prior="uni-gaussian"), make_batch()
    prior = task.network.row_prior(batch.y == 1)
    summed = batch.y @ task.network.label_embeddings
    expected = task.network.label_encoder(summed + task.network.label_bias)[0]
    torch.testing.assert_close(prior.means, expected)
    assert math.isfinite(terms_of(task, batch)["kl"].item())


ABLATIONS = {
    "program": {},
    "text": TEXT | {"norm": "batch", "kl_weight": 0.01, "schedule": "constant"},
    "uni-gaussian": {"prior": "uni-gaussian", "alpha": 0.0},
    "mixture only": {"alpha": 0.0},
    "contrastive only": {"kl_weight": 0.0},
    "contrastive only, without branch": {"kl_weight": 0.0, "label_branch": False},
    "triplets": {"contrast": "triplet"},
    "plain contrast": {"normalize": None, "temperature": 0.5},
    "layer norm": {"norm": "layer"},
}


@pytest.mark.parametrize("changes", ABLATIONS.values(), ids=ABLATIONS)
def test_every_setting_learns(data, changes, tmp_path):
    import labelweave as lw

    X, Y = data
    model = quick(**changes).fit(X[:200], Y[:200])
    chance = Y[200:].mean()
    assert mean_average_precision(Y[200:], Y_score=model.predict_proba(X[200:])) > chance + 0.15
    assert ("kl" in model.history_) == (model.kl_weight > 0)
    assert ("contrast" in model.history_) == (model.alpha > 0)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))


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


def test_diagnostics_tell_a_used_latent_space_from_an_idle_one(data):
    X, Y = data
    text = TEXT | {"norm": "batch", "kl_weight": 0.001}
    used = quick(**text, epochs=30).fit(X, Y).latent_diagnostics(X, Y)
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
    assert "kl" not in quick(kl_weight=0.0, epochs=2).fit(X, Y).latent_diagnostics(X, Y)


def test_diagnosed_kl_is_the_divergence_where_it_is_known(data):
    """With one label on all rows the mixture is one Gaussian, whose KL has a closed form."""
    X, _ = data
    Y = np.ones((len(X), 1), dtype=int)
    model = quick(epochs=3).fit(X, Y, validation=(X, Y))
    divergence = model.latent_diagnostics(X, Y)["kl"]
    network = model.network_
    with torch.no_grad():
        x = model.scaling_.apply(torch.from_numpy(X.astype(np.float32)))
        mean, log_variance = network.feature_encoder(x)
        prior_mean, prior_log_variance = network.encode_labels(network.label_embeddings)
    posterior = torch.distributions.Normal(mean, torch.exp(0.5 * log_variance))
    prior = torch.distributions.Normal(prior_mean, torch.exp(0.5 * prior_log_variance))
    exact = torch.distributions.kl_divergence(posterior, prior).sum(1).mean().item()
    assert divergence == pytest.approx(exact, rel=0.1, abs=0.02)


def test_an_empty_decoder_is_refused(data):
    with pytest.raises(InputError, match="hidden layer"):
        quick(decoder=()).fit(*data)
    with pytest.raises(InputError, match="no parameter 'cycles'"):
        quick(schedule="cosine-restarts", schedule_params={"cycles": 3}).fit(*data)


# Table 7, its numbers as they stand there: lr, alpha, beta, E, dropout, batch size.
TABLE_7 = {
    "ebird": (0.001, 1, 0.5, 2048, 0.5, 128),
    "bookmarks": (0.002, 1, 1, 2048, 0.5, 128),
    "nus-vec": (0.004, 1, 0.5, 1024, 0.5, 256),
    "mirflickr": (0.001, 2, 0.5, 2048, 0.5, 128),
    "reuters21578": (0.005, 2, 1, 2048, 0.5, 128),
    "scene": (0.003, 1, 0.5, 512, 0.3, 128),
    "sider": (0.002, 1, 0.5, 512, 0.5, 128),
    "yeast": (0.002, 1, 0.5, 512, 0.5, 128),
    "delicious": (0.001, 1, 0.5, 2048, 0.5, 128),
}
# Section 4.3 and Appendix B.1.
OF_BOTH = {
    "latent_size": 64,
    "encoder": (256, 512, 256),
    "label_encoder": (512, 256),
    "epochs": 100,
    "prior": "mixture",
    "contrast": "softmax",
}
OF_THE_PROGRAM = {
    "skip": True,
    "reconstruction": 0.0,
    "kl_weight": 6.0,
    "decoder_dropout": 0.0,
    "norm": None,
    "n_samples": 2,
    "label_branch": True,
    "normalize": "features",
    "output_activation": "leaky-relu",
    "label_activation": "relu",
    "temperature": 1.0,
    "weight_decay": 1e-5,
    "schedule": "cosine-restarts",
    "monitor": "tuned:f1_macro:grid",
}
OF_THE_TEXT = {"skip": False, "reconstruction": 1.0, "kl_weight": 1.0, "normalize": "contrast"}


@pytest.mark.parametrize("dataset", TABLE_7)
def test_published_settings(dataset):
    lr, alpha, beta, size, dropout, batch_size = TABLE_7[dataset]
    common = OF_BOTH | {"lr": lr, "beta": beta, "dropout": dropout, "batch_size": batch_size}
    common["embedding_size"] = size
    deeper = (512,) if dataset in ("reuters21578", "bookmarks") else ()
    program = common | OF_THE_PROGRAM | {"alpha": 1.0, "decoder": (512, *deeper)}
    text = common | OF_THE_TEXT | {"alpha": alpha, "decoder": (512, 512, *deeper)}
    text |= {"decoder_dropout": dropout, "n_samples": 1, "label_branch": False}
    for source, expected in (("program", program), ("text", text)):
        settings = CGMVAE.published(dataset, source=source).get_params()
        assert {name: settings[name] for name in expected} == expected


def test_the_default_is_the_general_form_of_the_program():
    assert CGMVAE.published().get_params() == CGMVAE().get_params()
    settings = CGMVAE().get_params()
    general = OF_BOTH | OF_THE_PROGRAM | {"alpha": 1.0, "beta": 0.5, "embedding_size": 2048}
    assert {name: settings[name] for name in general} == general
    with pytest.raises(InputError, match="'program' or 'text'"):
        CGMVAE.published(source="book")


def test_adam_and_its_cycles():
    model = CGMVAE(**SMALL)
    (plan,) = model._build_task(model._build_network(4, 5), None).optimizers(10)
    assert type(plan.optimizer) is torch.optim.Adam
    assert (plan.scheduler.T_0, plan.scheduler.T_mult, plan.scheduler.eta_min) == (50, 2, 2e-4)


def test_the_checkpoint_is_chosen_by_macro_f1_at_the_best_of_nine_thresholds(data):
    X, Y = data
    model = quick(epochs=6).fit(X[:200], Y[:200], validation=(X[200:], Y[200:]))
    scores = model.predict_proba(X[200:])
    best = 0.0
    for k in range(1, 10):
        sets = scores >= k / 10
        hits = (sets & (Y[200:] == 1)).sum(axis=0)
        best = max(best, np.mean(2 * hits / (sets.sum(axis=0) + Y[200:].sum(axis=0))))
    assert model.history_["val_f1_macro"].max() == pytest.approx(best, abs=1e-6)
    assert len(model.history_) == 6


@pytest.mark.data
@pytest.mark.parametrize(("source", "epochs"), [("program", 15), ("text", 100)])
def test_scene_in_both_forms(data_home, source, epochs):
    """The text's form needs its latent space, the program's does not."""
    import labelweave as lw

    train, test = lw.load_dataset("scene").split()
    model = CGMVAE.published("scene", source=source)
    model.set_params(threshold="tuned", random_state=0, epochs=epochs).fit(train.X, train.Y)
    assert f1_example(test.Y, model.predict(test.X)) > 0.70
    measured = model.latent_diagnostics(test.X, test.Y)
    assert measured["map"] > 0.75
    assert (measured["map"] - measured["map_zeroed"] > 0.5) == (source == "text")
