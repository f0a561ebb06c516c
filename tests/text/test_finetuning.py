"""Fine-tuning brings documents nearer to their labels' texts."""

import math

import numpy as np
import pytest
import scipy.sparse as sp
import torch

import labelweave as lw
from labelweave.exceptions import InputError
from labelweave.text import SentenceEmbedder, TfidfEmbedder
from labelweave.text.finetuning import fine_tune, learn_map, pair_loss

DOCUMENTS = ["the deep sea", "old hot sun", "wet rain", "blue sea and rain"] * 6
NAMES = ["sea", "sun", "rain"]
POSITIVE = sp.csr_array(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 0, 1]] * 6, dtype=float))


def margin(documents, labels):
    """How much nearer documents are to their own labels than to others."""
    scores, is_positive = documents @ labels.T, POSITIVE.toarray() > 0
    return scores[is_positive].mean() - scores[~is_positive].mean()


def test_the_loss_of_a_batch_of_pairs():
    random = np.random.default_rng(0)
    d, e = (random.normal(size=(5, 3)) for _ in range(2))
    d, e = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (d, e))
    is_positive = random.random((5, 5)) < 0.3
    np.fill_diagonal(is_positive, True)

    def term(i, others, cosine):
        exp = {j: math.exp(cosine(j) / 0.05) for j in range(5) if j == i or not others[j]}
        return -math.log(exp[i] / sum(exp.values()))

    by_document = [term(i, is_positive[i], lambda j, i=i: d[i] @ e[j]) for i in range(5)]
    by_label = [term(j, is_positive[:, j], lambda i, j=j: d[i] @ e[j]) for j in range(5)]
    expected = (sum(by_document) / 5 + sum(by_label) / 5) / 2
    loss = pair_loss(torch.from_numpy(d), torch.from_numpy(e), torch.from_numpy(is_positive))
    assert float(loss) == pytest.approx(expected)


def test_the_encoder_learns_and_the_old_one_stays(tiny_encoder, tmp_path):
    old = SentenceEmbedder(tiny_encoder, cache=tmp_path).fit()
    before = old.transform(DOCUMENTS), old.transform(NAMES)
    new = fine_tune(old, DOCUMENTS, NAMES, POSITIVE, steps=30, batch_size=12, lr=5e-3)
    after = new.transform(DOCUMENTS), new.transform(NAMES)
    assert margin(*after) > margin(*before) + 0.1
    np.testing.assert_array_equal(old.transform(DOCUMENTS), before[0])
    assert len(list(tmp_path.glob("*.sqlite"))) == 2  # their vectors are kept apart
    again = fine_tune(old, DOCUMENTS, NAMES, POSITIVE, steps=30, batch_size=12, lr=5e-3)
    np.testing.assert_allclose(again.transform(NAMES), after[1], atol=1e-6)


def test_what_has_no_network_is_refused():
    with pytest.raises(InputError, match="has no network to fine-tune"):
        fine_tune(TfidfEmbedder().fit(DOCUMENTS), DOCUMENTS, NAMES, POSITIVE)
    with pytest.raises(InputError, match="a map needs dense vectors"):
        lw.SBERT(encoder="tfidf", finetune="map").fit(DOCUMENTS, lw.as_labels(POSITIVE))


def rotated_set(noise, seed=0):
    """Documents that lie where a fixed rotation takes their label's vector."""
    random = np.random.default_rng(seed)
    labels = random.normal(size=(60, 8))
    labels /= np.linalg.norm(labels, axis=1, keepdims=True)
    rotation = np.linalg.qr(random.normal(size=(8, 8)))[0] if not noise else np.eye(8)
    label_of_row = np.repeat(np.arange(60), 5)
    documents = labels[label_of_row] @ rotation + 0.05 * random.normal(size=(300, 8))
    documents /= np.linalg.norm(documents, axis=1, keepdims=True)
    positive = sp.csr_array((np.ones(300), (np.arange(300), label_of_row)), shape=(300, 60))
    return documents.astype(np.float32), labels.astype(np.float32), positive


def test_a_map_serves_labels_that_it_was_not_taught():
    documents, labels, positive = rotated_set(noise=False)
    learnt = learn_map(documents[:250], labels[:50], positive[:250, :50], steps=300, lr=0.02)
    truth = np.repeat(np.arange(50, 60), 5)
    before = (documents[250:] @ labels[50:].T).argmax(axis=1) + 50
    after = (documents[250:] @ learnt @ labels[50:].T).argmax(axis=1) + 50
    assert (after == truth).mean() > (before == truth).mean() + 0.2


def test_where_nothing_is_to_be_gained_the_map_changes_nothing():
    documents, labels, positive = rotated_set(noise=True)
    assert np.array_equal(learn_map(documents, labels, positive, steps=40), np.eye(8))


@pytest.mark.parametrize("finetune", ["map", "full"])
def test_tuned_models_are_saved(finetune, tiny_encoder, tmp_path):
    embedder = SentenceEmbedder(tiny_encoder, cache=False)
    labels = lw.as_labels(POSITIVE, names=NAMES)
    model = lw.XML0(encoder=embedder, finetune=finetune, finetune_steps=2, random_state=0)
    model.fit(DOCUMENTS, labels).add_labels("blue").save(tmp_path / "model")
    loaded = lw.load(tmp_path / "model", trusted=[tiny_encoder])
    expected = model.predict_proba(DOCUMENTS[:4])
    np.testing.assert_allclose(loaded.predict_proba(DOCUMENTS[:4]), expected, rtol=1e-5)
