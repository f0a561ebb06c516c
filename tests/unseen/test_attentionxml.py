"""AttentionXML: the attention, the tree and its beam."""

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import labelweave as lw
from labelweave.unseen.attentionxml_network import (
    LabelAttention,
    LabelTreeNetwork,
    TokenEncoder,
    balanced_groups,
)

SMALL = {"embedding": 12, "hidden": 12, "head": 12, "max_tokens": 8, "lr": 0.02, "random_state": 0}


def test_attention_is_a_softmax_over_the_tokens_of_each_label():
    torch.manual_seed(0)
    layer = LabelAttention(3, 4, 5)
    vectors = torch.randn(2, 6, 4)
    is_token = torch.arange(6) < torch.tensor([[6], [4]])
    attended = layer(vectors, is_token)
    for text, length in ((0, 6), (1, 4)):
        for label in range(3):
            scores = vectors[text, :length] @ layer.attention[label]
            mean = scores.softmax(0) @ vectors[text, :length]
            torch.testing.assert_close(attended[text, label], layer.head(mean)[0])
    some = layer(vectors, is_token, torch.tensor([[2, 0], [1, 1]]))
    torch.testing.assert_close(some, torch.stack([attended[0, [2, 0]], attended[1, [1, 1]]]))


def test_padding_takes_no_part():
    torch.manual_seed(0)
    encoder = TokenEncoder(9, 4, 4, 0.0, 0.0)
    short, long = torch.tensor([[3, 5, 0, 0]]), torch.tensor([[3, 5, 0, 0], [2, 2, 7, 8]])
    torch.testing.assert_close(encoder(short)[0][0], encoder(long)[0][0, :2])


def test_the_tree_multiplies_the_probabilities_of_group_and_label():
    torch.manual_seed(0)
    members = torch.tensor([[0, 3], [1, 4], [2, -1]])
    network = LabelTreeNetwork(TokenEncoder(9, 4, 4, 0.0, 0.0), members, 5, 8, 6, beam=2)
    x = torch.tensor([[3, 5, 0], [2, 2, 7]])
    vectors, is_token = network.encoder(x)
    groups = network.groups(vectors, is_token).sigmoid()
    labels = network.labels(vectors, is_token).sigmoid()
    expected = torch.full((2, 5), 1e-6)
    for row in range(2):
        for group in sorted(range(3), key=lambda g: -groups[row, g])[:2]:
            for label in (j for j in members[group].tolist() if j >= 0):
                expected[row, label] = groups[row, group] * labels[row, label]
    torch.testing.assert_close(network(x).sigmoid(), expected)


def test_groups_are_balanced_and_hold_every_label_once():
    features = sp.csr_array(np.random.default_rng(0).random((37, 5)))
    groups = balanced_groups(features, 8, np.random.RandomState(0))
    assert sorted(groups[groups >= 0].tolist()) == list(range(37))
    assert (groups >= 0).sum(axis=1).min() >= 4


@pytest.fixture(scope="module")
def many():
    """Texts whose labels are their words: 12 labels, groups of 4."""
    random = np.random.default_rng(0)
    words = np.array([f"word{i}" for i in range(12)])
    Y = random.random((240, 12)) < 0.2
    texts = [" ".join([*random.permutation(words[row]), "end"]) for row in Y]
    return texts, lw.as_labels(Y, names=words.tolist())


@pytest.mark.parametrize("beam", [1, 3])
def test_the_tree_learns_and_its_beam_bounds_what_is_found(many, beam):
    texts, Y = many
    model = lw.AttentionXML(tree_above=5, group_size=4, beam=beam, epochs=40, **SMALL)
    model.fit(texts[:200], Y[:200])
    p = model.predict_proba(texts[200:])
    assert model.groups_.shape == (4, 4)
    truth = Y[200:].to_numpy()
    assert ((p > 1e-5).sum(axis=1) <= 4 * beam).all()
    if beam == 3:
        assert lw.metrics.precision_at_k(truth[truth.any(axis=1)], p[truth.any(axis=1)], k=1) > 0.8


def test_the_tree_is_saved(many, tmp_path):
    texts, Y = many
    model = lw.AttentionXML(tree_above=5, group_size=4, beam=2, epochs=1, **SMALL).fit(texts, Y)
    model.save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model")
    np.testing.assert_array_equal(loaded.predict_proba(texts[:9]), model.predict_proba(texts[:9]))


def test_it_is_a_base_of_xml0(many):
    texts, Y = many
    base = lw.AttentionXML(epochs=2, **SMALL)
    model = lw.XML0(base, encoder="tfidf", random_state=0).fit(texts, Y).add_labels("end")
    assert model.predict_proba(texts[:2]).shape == (2, 13)


def test_published_settings():
    """The paper's settings for EUR-Lex and Wiki10-31K."""
    settings = lw.AttentionXML.published().get_params()
    paper = {"embedding": 300, "hidden": 256, "head": 256, "word_dropout": 0.2, "dropout": 0.5}
    training = {"max_tokens": 500, "batch_size": 40, "epochs": 30, "lr": 1e-3, "weight_decay": 0}
    words = {"max_words": 500_000}
    assert {**paper, **training, **words}.items() <= settings.items()
    # Without a tree: EUR-Lex, AmazonCat-13K, Wiki10-31K; with one: Wiki-500K and larger.
    assert 30_938 < settings["tree_above"] < 501_070


@pytest.mark.parametrize("settings", [{}, {"ema_decay": 0.0}, {"tree_above": 2, "group_size": 2}])
def test_heavy_texts_decide(settings):
    """Each text is there twice, with contradictory labels."""
    texts = ["red sea", "blue sky", "red sky", "blue sea"] * 6
    Y = np.array([["red" in t, "blue" in t, "sea" in t] for t in texts]).astype(int)
    brief = {"epochs": 30, "batch_size": 8, "dropout": 0.1, "word_dropout": 0.0, "patience": None}
    model = lw.AttentionXML(**SMALL, **brief, **settings)
    first, second = (
        model.fit(texts * 2, np.vstack([Y, 1 - Y]), sample_weight=np.repeat(weight, 24))
        .predict_proba(texts[:4])
        .copy()
        for weight in ([9.0, 1.0], [1.0, 9.0])
    )
    assert (np.sign(first - second) == 2 * Y[:4] - 1).all()
