"""Very many labels: rows that grow, and an index in front of exact scores."""

import numpy as np
import pytest
import scipy.sparse as sp

import labelweave as lw
from labelweave.text.embedders import unit_rows
from labelweave.unseen._fusion.growing_rows import GrowingRows


@pytest.mark.parametrize("make", [np.asarray, sp.csr_array])
def test_growing_rows_are_one_matrix(make):
    matrix = np.random.default_rng(0).normal(size=(40, 3))
    rows = GrowingRows(make(matrix[:30]))
    for at in range(30, 40, 2):
        rows.append(make(matrix[at : at + 2]))
    dense = (lambda m: m.toarray()) if make is sp.csr_array else np.asarray
    few = np.array([39, 2, 31, 30])
    np.testing.assert_array_equal(dense(rows.take(few)), matrix[few])
    for at in (33, 4):
        rows.replace(at, make(np.full((1, 3), 2.0)))
        matrix[at] = 2
    np.testing.assert_array_equal(dense(rows.take(np.array([33, 32, 4]))), matrix[[33, 32, 4]])
    assert len(rows._pending) == 5  # reading or replacing a few rows does not merge
    np.testing.assert_array_equal(dense(rows.take(np.arange(40))), matrix)
    rows.replace(35, make(np.ones((1, 3))))
    matrix[35] = 1
    np.testing.assert_array_equal(dense(rows.merged()), matrix)
    assert len(rows) == 40


class Hashed:
    """An encoder of dense random vectors, the same for the same word; a text is their sum."""

    def get_params(self, deep=True):
        return {}

    def set_params(self):
        return self

    def fit(self, texts):
        return self

    def transform(self, texts):
        def word(w):
            return np.random.default_rng(list(w.encode())).normal(size=16)

        sums = [sum((word(w) for w in t.split()), np.zeros(16)) for t in texts]
        return unit_rows(np.array(sums)).astype(np.float32)


TEXTS = ["deep sea fish", "hot desert sand", "sea of sand", "fish"] * 10
LABELS = [["sea fish"], ["hot sand"], ["sea fish", "hot sand"], ["sea fish"]] * 10
NEW = [f"{a} {b}" for a in "abcdefghijklmnopqrst" for b in ("sea", "sand", "fish", "moon", "sun")]


@pytest.fixture
def models():
    """The same model, scoring every label and through an index."""
    pytest.importorskip("faiss")
    made = []
    for above in (1000, 20):
        model = lw.XML0(encoder=Hashed(), index_above=above, random_state=0)
        made.append(model.fit(TEXTS, LABELS).add_labels(NEW))
    return made


def check_same(every, indexed, texts=("fish of the sea", "hot sand", "moon")):
    for among in ("unseen", "all"):
        for a, b in zip(
            every.rank(texts, 5, among=among), indexed.rank(texts, 5, among=among), strict=True
        ):
            assert [name for name, _ in a] == [name for name, _ in b]
            np.testing.assert_allclose([p for _, p in a], [p for _, p in b], rtol=1e-4)
    for a, b in zip(every.explain(texts, 3), indexed.explain(texts, 3), strict=True):
        assert [one.because_of for one in a] == [one.because_of for one in b]


def test_the_index_finds_the_same_labels(models):
    every, indexed = models
    check_same(every, indexed)
    assert every.index_ is None
    assert len(indexed.index_) == len(NEW)
    best = every.predict_proba(["hot sand"])[0]
    probabilities = indexed.predict_proba(["hot sand"])[0]
    top = np.argsort(-best)[:5]
    np.testing.assert_allclose(probabilities[top], best[top], rtol=1e-4)


@pytest.mark.parametrize("encoder", [Hashed(), "tfidf"])
def test_many_labels_without_an_index(encoder, monkeypatch):
    model = lw.XML0(encoder=encoder, random_state=0).fit(TEXTS, LABELS).add_labels(NEW)
    texts = ["fish of the sea", "hot sand", "moon"]
    every = model.rank(texts, 3, among="unseen")
    monkeypatch.setattr("labelweave.unseen._fusion.label_search.SCORE_ALL", 20)
    few = model.rank(texts, 3, among="unseen")
    for a, b in zip(every, few, strict=True):
        np.testing.assert_allclose([p for _, p in a], [p for _, p in b], rtol=1e-6)
    assert model.index_ is None


def test_labels_come_and_go_in_the_index(models):
    every, indexed = models
    for model in models:
        model.rank(["sea"], 1)
        model.add_labels(["fish sea", "moon sand"]).remove_labels(NEW[:10])
        model.rename_label("moon sand", "sand moon")
    check_same(every, indexed)
    assert len(indexed.index_) == len(NEW) + 2 - 10


def test_the_index_is_saved(tiny_encoder, tmp_path):
    pytest.importorskip("faiss")
    embedder = lw.FastEmbedder(tiny_encoder, dimensions=8, cache=False)
    model = lw.XML0(encoder=embedder, index_above=5, random_state=0).fit(TEXTS, LABELS)
    model.add_labels(NEW).remove_labels(NEW[:3])
    before = model.rank(["sea fish"], 5)
    for round_ in range(2):  # with rows of removed labels, and without
        model.save(tmp_path / str(round_))
        model = lw.load(tmp_path / str(round_), trusted=[tiny_encoder])
        assert len(model.index_) == len(NEW) - 3
        assert [name for name, _ in model.rank(["sea fish"], 5)[0]] == [n for n, _ in before[0]]


def test_sparse_vectors_have_no_index():
    pytest.importorskip("faiss")
    model = lw.XML0(encoder="tfidf", index_above=5, random_state=0).fit(TEXTS, LABELS)
    with pytest.raises(lw.exceptions.InputError, match="need an encoder of dense vectors"):
        model.add_labels(NEW).rank(["sea"])
