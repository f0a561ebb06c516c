"""Folders that were crafted to read, write, hang, fill the memory or crash: one sentence each.

`make fuzz-folders` adds thousands of random changes to these.
"""

import io
import json
import sqlite3
import sys
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest
import skops.io
from crafted_folders import edit_config, edit_file, edit_json, refusal, with_arrays
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import labelweave as lw
from labelweave.exceptions import (
    InputError,
    LabelweaveError,
    LabelweaveWarning,
    ModelFolderError,
)
from labelweave.persistence import load, manifest, model_info
from labelweave.persistence.sklearn_parts import load_sklearn, save_sklearn
from labelweave.text import TextClassifier

sys.path.insert(0, str(Path(__file__).parents[1] / "fuzz"))
from folder_mutations import copied, mutate

TEXTS = ["sun and sea", "deep blue sea", "hot sun", "old sea", "sun on the sea", "no water"] * 6
LABELS = [["sea", "sun"], ["sea"], ["sun"], ["sea"], ["sea", "sun"], []] * 6


@pytest.fixture
def taken():
    """A function that returns the bytes that were taken at most so far."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def with_extra(folder, value):
    edit_config(folder, lambda config: config["parameters"].update(extra=value))


# -- what is outside the folder ---------------------------------------------------------


@pytest.mark.parametrize("name", ["", ".", {"$": "path", "value": "."}, None], ids=repr)
@pytest.mark.parametrize("method", ["sentence-embedder", "fast-embedder"])
def test_the_current_folder_is_no_encoder(saved, method, name):
    with_extra(saved, {"$": "method", "id": method, "parameters": {"model": name}})
    refusal(saved, "outside the folder|must be an instance of")


def test_no_parameter_becomes_part_of_a_path(saved, tmp_path):
    """The number of tokens is a part of the name of the cached vectors."""
    path = f"x/../../../{tmp_path}/other"
    sqlite3.connect(tmp_path / "other.sqlite").close()
    inner = {"$": "method", "id": "sentence-embedder", "parameters": {"max_tokens": path}}
    with_extra(saved, inner)
    refusal(saved, "'max_tokens' parameter of SentenceEmbedder must be an int")


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [
        ("mlknn", "k", -1),
        ("mlknn", "k", "5"),
        ("mlp", "hidden", "[4]"),
        ("br", "threshold", {"a": 1}),
        ("attentionxml", "max_tokens", 10**9),
        ("tfidf-embedder", "max_words", 10**6),
    ],
)
def test_parameters_that_fit_would_refuse_are_refused(saved, method, name, value):
    with_extra(saved, {"$": "method", "id": method, "parameters": {name: value}})
    refusal(saved, f"The '{name}' parameter of .* must be")


@pytest.mark.parametrize("vectorizer", [CountVectorizer, HashingVectorizer])
@pytest.mark.parametrize("settings", [{"input": "filename"}, {"ngram_range": (1, 10**6)}], ids=str)
def test_texts_are_not_taken_as_names_of_files_or_in_all_their_parts(
    tmp_path, vectorizer, settings
):
    check_refused_twice(vectorizer(**settings), tmp_path, "parts do not fit together")


def check_refused_twice(part, folder, words):
    """What `load` refuses is not saved either."""
    with pytest.raises(InputError, match=f"the part cannot be saved: .*{words}"):
        save_sklearn(part, folder / "part.skops", "the part")
    skops.io.dump(part, folder / "part.skops")
    with pytest.raises(ModelFolderError, match=f"cannot be loaded: .*{words}"):
        load_sklearn(folder / "part.skops")


SLOW = r"(?u)(\w+\s?)+$"  # of 30 letters and a sign it takes hours


@pytest.mark.parametrize("vectorizer", [TfidfVectorizer, HashingVectorizer])
def test_a_pattern_of_words_that_can_take_very_long_must_be_trusted(tmp_path, vectorizer):
    texts = ["sea and sun", "deep sea", "hot sun"]
    words = make_pipeline(vectorizer(token_pattern=SLOW), lw.MLkNN(k=1))
    words.fit(texts, [["sea", "sun"], ["sea"], ["sun"]])
    with pytest.warns(LabelweaveWarning, match=r"to load the model, use trusted=\['\(\?u"):
        lw.save(words, tmp_path / "model")
    with pytest.raises(ModelFolderError, match="could take very long: if you trust it, load") as no:
        lw.load(tmp_path / "model")
    assert "\n" not in str(no.value)
    again = lw.load(tmp_path / "model", trusted=[SLOW])
    np.testing.assert_array_equal(again.predict(texts), words.predict(texts))


@pytest.mark.parametrize("vectorizer", [CountVectorizer, TfidfVectorizer, HashingVectorizer])
def test_usual_patterns_of_words_need_no_trust(tmp_path, vectorizer):
    parts = [vectorizer(token_pattern=pattern) for pattern in (r"(?u)\b\w+\b", r"\S+")]
    parts += [vectorizer(), vectorizer(analyzer="char", token_pattern=SLOW)]
    save_sklearn(parts, tmp_path / "part.skops", "the part")
    assert len(load_sklearn(tmp_path / "part.skops")) == 4
    check_refused_twice(vectorizer(token_pattern=None), tmp_path, "parts do not fit together")


def test_a_pipeline_comes_back_without_its_cache_folder(tmp_path):
    """joblib unpickles what it finds there."""
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(), memory=str(tmp_path))
    save_sklearn(pipeline, tmp_path / "part.skops", "the part")
    assert load_sklearn(tmp_path / "part.skops").memory is None


# -- memory -----------------------------------------------------------------------------

N_NUMBERS = 2_000_000


def array_of(folder, name="train_X_"):
    """Replace an array by one of 16 MB, and return how a value refers to it."""
    with_arrays(folder, **{name: np.zeros(N_NUMBERS)})
    return {"$": "array", "name": name}


@pytest.fixture
def neighbours(rows, labels, tmp_path):
    lw.make("mlknn").fit(rows, labels).save(tmp_path / "mlknn")
    return tmp_path / "mlknn"


def with_attribute(folder, value):
    edit_json(folder, "state.json", lambda state: state["method"].update(crafted_=value))


@pytest.mark.parametrize("form", ["columns of a table", "items of a list", "sparse matrices"])
def test_an_array_is_used_once(neighbours, taken, form):
    """Each use could take as much memory as the array."""
    one = array_of(neighbours)
    value = {
        "columns of a table": {
            "$": "frame",
            "rows": N_NUMBERS,
            "columns": [[f"c{k}", one] for k in range(20)],
        },
        "items of a list": [one] * 20,
        "sparse matrices": [
            {"$": "sparse", "form": "csr_array", "shape": [1, 1], "data": one, "indices": one,
             "indptr": one}
        ],
    }[form]  # fmt: skip
    with_attribute(neighbours, value)
    refusal(neighbours, "or uses it more than once")
    assert taken() < 10 * 8 * N_NUMBERS


def test_a_file_is_used_once(frequency, rows, labels, tmp_path):
    folder = tmp_path / "model"
    inner = frequency().fit(rows, labels)
    frequency(extra=[inner, LogisticRegression()]).fit(rows, labels).save(folder)
    config = json.loads((folder / "config.json").read_text())
    for value in config["parameters"]["extra"]:
        with_extra(folder, [value, value])
        refusal(folder, "twice: the folder was changed")


def test_a_model_is_reached_by_one_path(frequency, rows, labels, tmp_path):
    """With two paths to each, thirty models inside each other would be read a billion times."""
    folder = tmp_path / "model"
    inner = frequency(extra=frequency().fit(rows, labels)).fit(rows, labels)
    frequency(extra=inner).fit(rows, labels).save(folder)
    assert (folder / "extra" / "extra" / "config.json").exists()
    with_extra(folder, {"$": "model", "folder": "extra/extra"})
    refusal(folder, "no model 'extra/extra' of its own")


@pytest.mark.parametrize("dtype", ["V8", "S8", "O", "U8", "M8[s]"])
def test_a_number_is_a_number(saved, dtype):
    """np.void(n) takes n bytes."""
    with_extra(saved, {"$": "scalar", "dtype": dtype, "value": 1_000_000_000})
    refusal(saved, "number of the unsafe type")


def test_names_in_json_are_counted(saved, monkeypatch):
    """A name of one letter takes twenty times the memory of its text."""
    monkeypatch.setattr(manifest, "_MAX_PARSED", 1 << 20)
    with_extra(saved, {f"{k:x}": 1 for k in range(8_000)})
    refusal(saved, "too large to have been written by labelweave")


def test_vectors_have_a_width_that_encoders_have(saved):
    pytest.importorskip("sentence_transformers")
    from labelweave.text.sentence import SentenceEmbedder

    embedder = SentenceEmbedder()
    with pytest.raises(InputError, match="no vectors of 1000000000 numbers"):
        embedder._set_state({"checksum": "a", "width": 10**9, "weights": None})


# -- files of scikit-learn parts --------------------------------------------------------


def rewritten(path, change):
    """Change the parts of a skops file, a dict of names and contents."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    change(parts)
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)


@pytest.fixture
def part(rows, labels, tmp_path):
    """A file with an estimator that has several arrays."""
    path = tmp_path / "part.skops"
    save_sklearn(LogisticRegression().fit(rows, labels[:, 0]), path, "the part")
    return path


def assert_part_refused(path, words="parts do not fit together"):
    with pytest.raises(ModelFolderError, match=words):
        load_sklearn(path)


def test_an_array_in_a_part_is_used_once(part):
    def point_all_to_one(parts):
        schema = parts["schema.json"].decode()
        first, *others = (name for name in parts if name.endswith(".npy"))
        for name in others:
            schema = schema.replace(name, first)
        assert others
        parts["schema.json"] = schema.encode()

    rewritten(part, point_all_to_one)
    assert_part_refused(part, "a file of two arrays")


def test_a_description_of_a_part_that_would_fill_the_memory(part, monkeypatch):
    monkeypatch.setattr(manifest, "_MAX_PARSED", 1 << 20)
    rewritten(part, lambda parts: parts.update({"schema.json": b"[" + b"[]," * 20_000 + b"1]"}))
    assert_part_refused(part)


def test_an_array_in_a_part_that_claims_more_than_is_there(part, taken):
    def claim(parts):
        name = next(name for name in parts if name.endswith(".npy"))
        header = io.BytesIO()
        facts = {"shape": (300_000_000,), "fortran_order": False, "descr": "<f8"}
        np.lib.format.write_array_header_1_0(header, facts)
        parts[name] = header.getvalue() + bytes(64)

    rewritten(part, claim)
    assert_part_refused(part)
    assert taken() < 100_000_000


def test_many_matrices_that_expand(monkeypatch):
    """Each may expand a little, all of them together not much more."""
    from labelweave.persistence import skops_archive

    matrix = io.BytesIO()
    np.savez_compressed(matrix, indptr=np.zeros(40_000, np.int32))
    monkeypatch.setattr(skops_archive, "_MAX_EXPANSION", 1 << 20)

    def check(n_matrices):
        with zipfile.ZipFile(content := io.BytesIO(), "w") as archive:
            archive.writestr("schema.json", "{}")
            for k in range(n_matrices):
                archive.writestr(f"{k}.npz", matrix.getvalue())
        with zipfile.ZipFile(content) as archive:
            skops_archive.check_sizes(archive, len(content.getvalue()))

    check(5)
    with pytest.raises(InputError, match="matrices that expand"):
        check(40)


def test_parts_of_a_file_that_overlap(part):
    """The central directory of a zip file may count the same bytes many times."""
    content = bytearray(part.read_bytes())
    start = content.index(b"PK\x01\x02")
    for offset in (20, 24):  # packed and unpacked size of the first part
        content[start + offset : start + offset + 4] = (10**9).to_bytes(4, "little")
    part.write_bytes(content)
    assert_part_refused(part, "compressed parts")


def test_more_seen_labels_than_the_map_has(tmp_path):
    lw.make("zestxml").fit(TEXTS, LABELS).save(tmp_path / "model")
    edit_json(tmp_path / "model", "state.json", lambda state: state["method"].update(n_seen=10**9))
    refusal(tmp_path / "model", "do not fit the words and labels")


@pytest.mark.parametrize("engine", ["matrix", "sklearn", "faiss"])
def test_more_neighbours_than_rows(rows, labels, tmp_path, engine):
    if engine == "faiss":
        pytest.importorskip("faiss")
    lw.make("mlknn", neighbors=engine).fit(rows, labels).save(tmp_path / "model")
    edit_json(tmp_path / "model", "state.json", lambda state: state["method"].update(k_=10**9))
    model = load(tmp_path / "model")
    with pytest.raises(InputError, match="1000000000 neighbours are asked for"):
        model.predict_proba(rows)


# -- what is said -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "labels_file",
    [
        {"names": ["a", "a"], "descriptions": {}, "single_label_classes": None},
        {"names": [1, 2, 3], "descriptions": {}, "single_label_classes": None},
        {"names": ["a"], "descriptions": {"a": ["<script>"]}, "single_label_classes": None},
    ],
    ids=json.dumps,
)
def test_names_and_descriptions_are_texts(saved, labels_file):
    edit_file(saved, "labels.json", json.dumps(labels_file).encode())
    refusal(saved, "not distinct texts")
    with pytest.raises(ModelFolderError, match="not distinct texts"):
        model_info(saved)


@pytest.mark.parametrize("state", ["words", "missing embedder"])
def test_features_that_cannot_be_computed_are_the_fault_of_the_folder(tmp_path, state):
    folder = tmp_path / "texts"
    embedder = None if state == "words" else "tfidf"
    TextClassifier(lw.make("mlknn", k=3), embedder=embedder).fit(TEXTS, LABELS).save(folder)
    if state == "words":
        with_arrays(folder, idf_=np.ones(3, np.float32))
    else:
        edit_json(folder, "state.json", lambda stored: stored["method"].pop("embedder_"))
    model = load(folder)
    with pytest.raises(ModelFolderError, match="contains a model that cannot predict"):
        model.predict_proba(["deep sea"])


@pytest.mark.filterwarnings("ignore::labelweave.exceptions.LabelweaveWarning")
def test_encoded_columns_that_cannot_be_computed_are_the_fault_of_the_folder(tmp_path):
    from labelweave.testing.table_checks import products

    table, Y = products()
    folder = tmp_path / "table"
    lw.make("br").fit(table, Y).save(folder)
    encoder = folder / "table_encoder_"
    with_arrays(encoder, **{"columns.0.centre": np.ones((1, 9))})
    for inner in sorted(encoder.rglob("*.json")):
        relative = inner.relative_to(folder).as_posix()
        edit_file(folder, relative, inner.read_bytes())
    arrays = encoder / "arrays.safetensors"
    edit_file(folder, "table_encoder_/arrays.safetensors", arrays.read_bytes())
    model = load(folder)
    with pytest.raises(ModelFolderError, match="contains a model that cannot predict"):
        model.predict_proba(table)


def test_long_stories_of_other_libraries_become_one_line(rows, labels, tmp_path):
    folder = tmp_path / "model"
    lw.make("mlknn").fit(rows, labels).save(folder)
    with_arrays(folder, train_X_=np.full((40, 6), np.nan))
    assert "Input X contains NaN" in refusal(folder, "not a valid model folder")


# -- at random --------------------------------------------------------------------------


def prediction(folder, rows):
    """Probabilities, or one line about why there are none."""
    try:
        return load(folder).predict_proba(rows)
    except LabelweaveError as error:
        return str(error)
    except ValueError as error:
        if not str(error).startswith(f"X has {rows.shape[1]} features, but"):
            raise
        return str(error)


@pytest.mark.parametrize("method", ["mlknn", "br", "mlp", "extra-trees"])
def test_random_changes_are_refused_or_leave_a_model_that_predicts(rows, labels, tmp_path, method):
    parameters = {"hidden": (4,), "epochs": 1} if method == "mlp" else {}
    model = lw.make(method, random_state=0, **parameters).fit(rows, labels)
    model.save(tmp_path / "model")
    expected = model.predict_proba(rows[:5])
    kinds = set()
    for seed in range(40):
        folder = copied(tmp_path / "model", tmp_path / "changed")
        kind, what = mutate(folder, np.random.default_rng(seed))
        actual = prediction(folder, rows[:5])
        kinds.add(type(actual))
        if isinstance(actual, str):
            assert "\n" not in actual, what
        else:
            assert np.isfinite(actual).all(), what
            assert kind.startswith("crafted") or np.array_equal(actual, expected), what
    assert kinds == {str, np.ndarray}
