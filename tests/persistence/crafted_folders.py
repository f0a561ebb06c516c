"""Changes of model folders as an attacker would make them, with hashes that fit."""

import hashlib
import json

import pytest

from labelweave.exceptions import ModelFolderError
from labelweave.persistence import load, manifest


def refusal(folder, words):
    with pytest.raises(ModelFolderError, match=words) as caught:
        load(folder)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def edit_config(folder, change):
    """Change config.json as an attacker would, with a hash that fits."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    change(config)
    config["sha256"] = manifest._config_hash(config)
    path.write_text(json.dumps(config))


def edit_file(folder, name, content):
    """Replace a file and its hash."""
    (folder / name).write_bytes(content)
    facts = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
    edit_config(folder, lambda config: config["files"].update({name: facts}))


def edit_json(folder, name, change):
    """Change a JSON file of the folder and its hash."""
    document = json.loads((folder / name).read_text())
    change(document)
    edit_file(folder, name, json.dumps(document).encode())


def with_arrays(folder, **arrays):
    """Replace arrays of a model folder, with the hashes of a crafted one."""
    from safetensors.numpy import load_file, save

    stored = load_file(folder / "arrays.safetensors")
    assert set(arrays) <= set(stored), sorted(stored)
    edit_file(folder, "arrays.safetensors", save({**stored, **arrays}))
