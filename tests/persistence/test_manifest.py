"""A damaged, changed, foreign or newer folder is refused in one sentence."""

import io
import json
import shutil
import tracemalloc
import zipfile
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from crafted_folders import edit_config, edit_file, refusal
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression

import labelweave as lw
from labelweave import methods
from labelweave.exceptions import InputError, LabelweaveWarning, ModelFolderError
from labelweave.persistence import load, manifest, model_info


def listed(folder):
    return json.loads((folder / "config.json").read_text())["files"]


def test_a_folder_that_may_not_be_read_is_not_called_foreign(saved, monkeypatch):
    def refuse(path):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "lstat", refuse)
    refusal(saved, "cannot be read: Permission denied")


def damaged_versions(content):
    """A file that is truncated, or in which one bit is changed; None: the file is missing."""
    for position in (0, len(content) // 2, len(content) - 2):
        yield content[:position]
        changed = bytearray(content)
        changed[position] ^= 1
        yield bytes(changed)
    yield None


def test_a_damaged_or_missing_file_is_noticed(saved):
    for name in [*listed(saved), "config.json"]:
        original = (saved / name).read_bytes()
        for content in damaged_versions(original):
            (saved / name).unlink()
            if content is not None:
                (saved / name).write_bytes(content)
            refusal(saved, name)
            (saved / name).write_bytes(original)
    load(saved)


def test_the_card_may_be_edited_and_files_added(saved):
    (saved / "README.md").write_text("Licence: CC0")
    (saved / "notes.txt").write_text("mine")
    load(saved)


def test_foreign_folders(tmp_path, saved):
    refusal(tmp_path / "nothing", "no such model folder")
    refusal(saved / "config.json", "is a file")
    empty = tmp_path / "empty"
    empty.mkdir()
    refusal(empty, r"has no config\.json")
    for text in ('{"architectures": ["BertModel"]}', "[]", "3", '"format"'):
        (empty / "config.json").write_text(text)
        refusal(empty, "is not a labelweave model")
    (empty / "config.json").unlink()
    (empty / "config.json").mkdir()
    refusal(empty, "not an ordinary file")


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[" * 100_000,
        b'{"a": NaN}',
        b"1" * 10_000,
        b"\x00",
        b'{"format": "labelweave-model"',
        b"\xff\xfe{}",
    ],
    ids=lambda content: repr(content[:12]),
)
def test_invalid_json(saved, content):
    (saved / "config.json").write_bytes(content)
    refusal(saved, "not valid JSON")


def test_a_newer_schema(saved):
    edit_config(saved, lambda config: config.update(schema=manifest.SCHEMA + 1))
    refusal(saved, "newer version of labelweave .*upgrade")
    with pytest.raises(ModelFolderError, match="newer"):
        model_info(saved)


@pytest.mark.parametrize("schema", [0, -1, "1", True, None, 1.5])
def test_invalid_schema_numbers(saved, schema):
    edit_config(saved, lambda config: config.update(schema=schema))
    refusal(saved, "no valid schema")


def test_an_older_schema_is_upgraded(saved, monkeypatch):
    def upgrade(config):
        return {**config, "parameters": {**config["parameters"], "extra": "upgraded"}}

    monkeypatch.setattr(manifest, "SCHEMA", 2)
    refusal(saved, "no longer reads")
    monkeypatch.setitem(manifest.UPGRADES, 1, upgrade)
    assert load(saved).extra == "upgraded"


@pytest.mark.parametrize(
    "name",
    ["../secret", "/etc/passwd", "a/../../b", "..", ".hidden", "a//b", "", "a\\b", "C:x", "x\n"],
)
def test_unsafe_file_names(saved, name):
    def add(config):
        config["files"][name] = {"sha256": "0", "size": 1}

    edit_config(saved, add)
    refusal(saved, "unsafe file name")


def test_links_are_refused(saved, tmp_path):
    outside = tmp_path / "outside.json"
    shutil.move(saved / "labels.json", outside)
    (saved / "labels.json").symlink_to(outside)
    refusal(saved, "symbolic link")


def test_a_linked_folder_inside_is_refused(frequency, rows, labels, tmp_path):
    inner = frequency().fit(rows, labels)
    frequency(extra=inner).fit(rows, labels).save(tmp_path / "outer")
    shutil.move(tmp_path / "outer" / "extra", tmp_path / "elsewhere")
    (tmp_path / "outer" / "extra").symlink_to(tmp_path / "elsewhere")
    refusal(tmp_path / "outer", "symbolic link")


def test_a_file_that_only_the_inner_model_names_is_checked_too(frequency, rows, labels, tmp_path):
    frequency(extra=frequency().fit(rows, labels)).fit(rows, labels).save(tmp_path / "outer")
    inner = tmp_path / "outer" / "extra"
    edit_file(inner, "unlisted.safetensors", b"x")
    (inner / "unlisted.safetensors").unlink()
    (inner / "unlisted.safetensors").symlink_to(tmp_path / "outer" / "arrays.safetensors")
    edit_file(tmp_path / "outer", "extra/config.json", (inner / "config.json").read_bytes())
    refusal(tmp_path / "outer", "symbolic link")


def test_a_link_to_a_whole_model_is_followed(saved, tmp_path, frequency, rows, labels):
    latest = tmp_path / "latest"
    latest.symlink_to(saved)
    load(latest)
    frequency(random_state=9).fit(rows, labels).save(latest)
    assert latest.is_symlink()
    assert load(saved).random_state == 9


@pytest.mark.parametrize("method", ["os.system", "subprocess", "../br", 3, None, ["br"]])
def test_classes_outside_the_registry(saved, method):
    edit_config(saved, lambda config: config.update(method=method))
    refusal(saved, "not installed|not a valid model folder")


def test_unknown_parameters(saved):
    edit_config(saved, lambda config: config["parameters"].update(shell="rm"))
    refusal(saved, "Frequency has no parameter 'shell'")


@pytest.mark.parametrize("name", ["predict", "__class__", "_fit", "get_params", "x", ""])
def test_state_may_only_hold_fitted_attributes(saved, name):
    state = json.loads((saved / "state.json").read_text())
    state["method"][name] = 1
    edit_file(saved, "state.json", json.dumps(state).encode())
    refusal(saved, "not the name of a fitted attribute")


@pytest.mark.parametrize(
    "value",
    [
        {"$": "pickle", "data": "gASV"},
        {"$": "array", "name": "nothing"},
        {"$": "sklearn", "file": "../../evil.skops"},
        {"$": "model", "folder": ".."},
        {"$": "tensors", "file": "/etc/passwd", "keys": []},
        {"$": "sparse", "form": "eval", "shape": [1, 1]},
        {"$": "object-array", "dtype": "|O", "shape": [9, 9], "items": []},
        {"$": "object-array", "dtype": "<U900000000", "shape": [1], "items": ["a"]},
        {"$": "object-array", "dtype": "|V900000000", "shape": [1], "items": ["a"]},
        {"$": "dtype", "name": "no such type"},
        {"$": {}},
        {"$": "method", "id": "os.system", "parameters": {}},
        {"$": "threshold", "value": {"kind": "evil"}},
        {"$": "threshold", "value": []},
        {"$": "frame", "rows": 3, "columns": 5},
    ],
    ids=json.dumps,
)
def test_invalid_values(saved, value):
    edit_config(saved, lambda config: config["parameters"].update(extra=value))
    refusal(saved, str(saved))


@settings(max_examples=60)
@given(
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=4),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["$", "names", "method", "common", "descriptions", "kind", "fitted"]
                ),
                inner,
                max_size=3,
            )
        ),
        max_leaves=8,
    ),
    name=st.sampled_from(["labels.json", "state.json", "thresholds.json"]),
)
def test_any_json_is_refused_or_read(saved, value, name):
    original = (saved / name).read_bytes()
    edit_file(saved, name, json.dumps(value).encode())
    with suppress(ModelFolderError):  # any other error fails the test
        load(saved)
    edit_file(saved, name, original)
    load(saved)


@pytest.mark.parametrize(
    "value",
    [
        {"$": "frame", "rows": 2_000_000_000, "columns": [["a", 1.5]]},
        {"$": "frame", "rows": 2_000_000_000, "columns": []},
        {"$": "object-array", "dtype": "<U200000", "shape": [100_000], "items": ["a"] * 100_000},
        {"$": "object-array", "dtype": "<U200000", "shape": [100_000], "items": [1] * 100_000},
        {"$": "dtype", "name": "V1000000000"},
    ],
    ids=lambda value: json.dumps(value)[:60],
)
def test_claims_beyond_what_the_files_hold_take_no_memory(saved, value):
    edit_config(saved, lambda config: config["parameters"].update(extra=value))
    tracemalloc.start()
    try:
        refusal(saved, str(saved))
        assert tracemalloc.get_traced_memory()[1] < 100_000_000
    finally:
        tracemalloc.stop()


def test_json_that_would_fill_the_memory_is_refused(saved, monkeypatch):
    """180 MB of empty lists would take 4 GB; here the limit is lower, and the file shorter."""
    monkeypatch.setattr(manifest, "_MAX_PARSED", 1 << 20)
    edit_file(saved, "state.json", b"[" + b"[]," * 20_000 + b"1]")
    refusal(saved, "too large to have been written by labelweave")
    assert manifest._MAX_JSON < 1 << 29


def test_a_network_that_the_weights_do_not_fill_is_not_built(rows, labels, tmp_path):
    folder = tmp_path / "mlp"
    lw.MLP(hidden=(4,), epochs=1, random_state=0).fit(rows, labels).save(folder)
    for hidden in ([60_000, 60_000], [1] * 50_000, [4, 4]):
        edit_config(folder, lambda config, h=hidden: config["parameters"].update(hidden=h))
        refusal(folder, "weights do not fit the network")


@pytest.mark.parametrize(
    ("method", "name", "value"),
    [("sentence-embedder", "cache", "/tmp"), ("resnet", "weights", "/etc/passwd")],
)
def test_parameters_that_are_not_saved_are_refused(saved, method, name, value):
    ids = {wrapper.id for wrapper in methods.WRAPPERS}
    assert method in ids
    inner = {"$": "method", "id": method, "parameters": {name: value}}
    edit_config(saved, lambda config: config["parameters"].update(extra=inner))
    refusal(saved, f"sets '{name}' of .*, which is never saved")


@pytest.mark.parametrize("name", ["/some/folder", "someone/on-the-hub"])
def test_an_encoder_outside_the_folder_needs_trust(saved, name):
    inner = {"$": "method", "id": "sentence-embedder", "parameters": {"model": name}}
    edit_config(saved, lambda config: config["parameters"].update(extra=inner))
    assert f"trusted=[{name!r}]" in refusal(saved, "which is outside the folder")
    assert load(saved, trusted=[name]).extra.model == name
    with pytest.raises(InputError, match="list of names"):
        load(saved, trusted=name)


def test_other_versions_are_told_at_load(saved):
    edit_config(saved, lambda config: config["versions"].update(torch="1.0", labelweave="0.0.1"))
    with pytest.warns(
        LabelweaveWarning, match=r"saved with labelweave 0\.0\.1 .* torch 1\.0 \(here"
    ):
        load(saved)
    edit_config(saved, lambda config: config["versions"].update(torch="1\nINFO all is well"))
    refusal(saved, "no valid versions")
    edit_config(saved, lambda config: config.update(versions=3))
    refusal(saved, "no valid versions")


def skops_file(value, compression=zipfile.ZIP_STORED):
    import skops.io

    file = io.BytesIO()
    skops.io.dump(value, file, compression=compression)
    return file.getvalue()


def test_scikit_learn_parts_of_untrusted_types(frequency, rows, labels, tmp_path):
    class Evil(LogisticRegression):
        pass

    folder = tmp_path / "model"
    frequency(extra=LogisticRegression()).fit(rows, labels).save(folder)
    edit_file(folder, "extra.skops", skops_file(Evil()))
    refusal(folder, "Evil, which is not among the scikit-learn, NumPy and SciPy types")
    edit_file(folder, "extra.skops", skops_file(LogisticRegression(), zipfile.ZIP_DEFLATED))
    refusal(folder, "compressed")
    edit_file(folder, "extra.skops", b"PK no zip")
    refusal(folder, "not a valid model folder")


def test_broken_arrays_with_fitting_hashes(saved):
    for content in (b"", b"\xff" * 64, np.arange(9).tobytes()):
        edit_file(saved, "arrays.safetensors", content)
        refusal(saved, "not a valid model folder")
