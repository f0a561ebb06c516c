"""Random changes of a model folder, as an accident or an attacker would make them."""

import copy
import hashlib
import io
import json
import os
import shutil
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import load_file, save_file

from labelweave.persistence.manifest import EDITABLE_FILES, _config_hash

ODD_VALUES = (
    None, True, False, 0, 1, -1, 2, 3, 7, 255, 10**6, 2**31, -(2**31), 2**63, -(2**63), 10**12,
    10**30, 0.5, -0.5, 1e-300, 1e38, 1e300, "", "x", "0", "../../etc/passwd", "/etc/passwd",
    "\ud800", "a\nb", "auto", "x" * 5000, [], {}, [1], [[]], [None], [-1], [10**9, 10**9],
    {"$": "float", "value": "nan"}, {"$": "float", "value": "inf"}, {"$": "tuple", "items": []},
    {"$": "array", "name": "x"}, {"$": "path", "value": "/etc"}, {"$": "nothing"},
    {"$": "scalar", "dtype": "<f8", "value": 1e300}, {"$": "scalar", "dtype": "V8", "value": 9},
    {"$": "method", "id": "mlknn", "parameters": {}}, {"$": "dtype", "name": "<f4"},
)  # fmt: skip
ODD_NUMBERS = (np.nan, np.inf, -np.inf, 0, 1, -1, 2, 10**9, -(10**9), 3e38, -3e38, 1e-40, 2**31 - 1)


def mutate(folder, random):
    """Change a model folder, and return what was done; hashes fit if the name has "crafted"."""
    names = list(CHANGES)
    name = names[random.integers(len(names))]
    what = CHANGES[name](folder, random)
    if name.startswith("crafted"):
        repair(folder)
    return name, what


def repair(folder):
    """Write the sizes and hashes that fit the files, from the innermost model outwards."""
    configs = sorted(folder.rglob("config.json"), key=lambda path: -len(path.parts))
    for path in configs:
        if path.is_symlink() or not path.is_file():
            continue
        try:
            config = json.loads(path.read_bytes())
            for name in config["files"]:
                part = path.parent / name
                if part.is_file() and not part.is_symlink():
                    content = part.read_bytes()
                    facts = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content)}
                    config["files"][name] = facts
            config["sha256"] = _config_hash(config)
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            continue  # a config that is no longer one
        path.write_text(json.dumps(config))


# -- files ------------------------------------------------------------------------------


def _files(folder, *endings):
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file() and (not endings or path.suffix in endings)
    ]


def _any(values, random):
    return values[random.integers(len(values))]


def _truncated(folder, random):
    path = _any(_files(folder), random)
    content = path.read_bytes()
    path.write_bytes(content[: random.integers(len(content) + 1)])
    return f"truncated {path.name}"


def _flipped(folder, random, *endings):
    path = _any(_files(folder, *endings) or _files(folder), random)
    content = bytearray(path.read_bytes())
    for _ in range(random.integers(1, 4)):
        if content:
            # Headers, which are at the start and (of zip files) at the end, are hit more often.
            ends = [random.integers(min(200, len(content))), random.integers(len(content))]
            ends.append(len(content) - 1 - random.integers(min(200, len(content))))
            content[_any(ends, random)] ^= 1 << random.integers(8)
    path.write_bytes(bytes(content))
    return f"flipped bits of {path.name}"


def _removed(folder, random):
    path = _any(_files(folder), random)
    path.unlink()
    return f"removed {path.name}"


def _swapped(folder, random):
    first, second = _any(_files(folder), random), _any(_files(folder), random)
    contents = first.read_bytes(), second.read_bytes()
    first.write_bytes(contents[1])
    second.write_bytes(contents[0])
    return f"swapped {first.name} and {second.name}"


def _linked(folder, random):
    path = _any(_files(folder), random)
    target = _any(["/etc/passwd", "/dev/zero", "/dev/stdin", ".", path.name], random)
    if random.integers(2):  # a link to the file itself, elsewhere
        target = folder.parent / "moved"
        shutil.copy(path, target)
    path.unlink()
    path.symlink_to(target)
    return f"linked {path.name} to {target}"


def _special(folder, random):
    path = _any(_files(folder), random)
    path.unlink()
    if random.integers(2):
        os.mkfifo(path)
        return f"made {path.name} a pipe"
    path.mkdir()
    return f"made {path.name} a folder"


def _added(folder, random):
    name = _any(["extra.txt", "evil.py", "__init__.py", "pytorch_model.bin", "x/y.json"], random)
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(random.bytes(50))
    return f"added {name}"


def _edited(folder, random):
    path = folder / _any(EDITABLE_FILES, random)
    path.write_bytes(random.bytes(50))
    return f"edited {path.name}"


def _edited_json(folder, random):
    """Change a file of JSON that has no hash."""
    return _json(folder, random, EDITABLE_FILES)


# -- JSON -------------------------------------------------------------------------------


def _places(value, path=()):
    """Yield the container and key of every value of a JSON document."""
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(pairs):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


def change_json(document, random):
    """Change one value of a JSON document in place, and return what was done."""
    places = list(_places(document))
    if not places:
        return "nothing"
    # Long lists would take nearly all changes: keys and short lists come first.
    short = [place for place in places if isinstance(place[0], dict) or len(place[0]) < 20]
    container, key = _any(short if short and random.integers(4) else places, random)
    old = container[key]
    kind = random.integers(8)
    if kind == 0:
        del container[key]
        return f"deleted {key!r}"
    if kind == 1 and isinstance(container, dict):
        container[_any(["$", "file", "x", "n_jobs", "__class__", "cache"], random)] = old
        return f"copied {key!r}"
    if kind == 2:
        other, other_key = _any(places, random)
        container[key] = copy.deepcopy(other[other_key])
        return f"set {key!r} to the value of {other_key!r}"
    if kind == 3 and isinstance(old, list):
        container[key] = old[::-1] if random.integers(2) else old * int(random.integers(0, 4))
        return f"repeated or reversed {key!r}"
    if kind == 4 and isinstance(old, int | float):
        container[key] = _any([-old, old + 1, old - 1, old * 1000, old / 3, str(old)], random)
        return f"changed {key!r} from {old} to {container[key]}"
    if kind == 5:
        depth = int(_any([50, 400, 900, 990, 3000], random))
        container[key] = "DEEP" + str(depth)
        return f"nested {key!r} {depth} deep"
    container[key] = copy.deepcopy(_any(ODD_VALUES, random))
    return f"set {key!r} from {str(old)[:40]!r} to {str(container[key])[:40]!r}"


def _dumped(document):
    text = json.dumps(document)
    for depth in (50, 400, 900, 990, 3000):
        text = text.replace(f'"DEEP{depth}"', "[" * depth + "]" * depth)
    return text


def _json(folder, random, names=None):
    paths = _files(folder, ".json")
    path = _any([path for path in paths if names is None or path.name in names] or paths, random)
    document = json.loads(path.read_bytes())
    done = [change_json(document, random) for _ in range(random.integers(1, 3))]
    path.write_text(_dumped(document))
    return f"{path.name}: {', '.join(done)}"


def _json_bytes(folder, random):
    return _flipped(folder, random, ".json")


# -- arrays -----------------------------------------------------------------------------


def change_array(array, random):
    """Return an array with other values, another shape or another type."""
    kind = random.integers(9)
    if kind <= 3 and array.size:
        changed = array.copy()
        with np.errstate(all="ignore"):
            number = np.array(_any(ODD_NUMBERS, random)).astype(array.dtype)
        if kind == 0:
            changed[...] = number
        else:
            changed.flat[random.integers(array.size)] = number
        return np.ascontiguousarray(changed)
    if kind == 4 and array.ndim:
        return np.ascontiguousarray(array[: random.integers(len(array) + 1)])
    if kind == 5 and array.ndim:
        return np.concatenate([array, array])
    if kind == 6:
        return np.ascontiguousarray(array.T if array.ndim > 1 else array[None])
    if kind == 7:
        return array.ravel().copy()
    with np.errstate(all="ignore"):
        return array.astype(_any([np.float64, np.float32, np.int32, np.int64, np.uint8], random))


def _arrays(folder, random):
    path = _any(_files(folder, ".safetensors") or [None], random)
    if path is None:
        return _json(folder, random)
    arrays = load_file(path)
    if not arrays:
        return "nothing"
    names = sorted(arrays)
    name = _any(names, random)
    if random.integers(8) == 0:
        other = _any(names, random)
        arrays[name], arrays[other] = arrays[other], arrays[name]
        what = f"swapped {name} and {other}"
    elif random.integers(8) == 0:
        del arrays[name]
        what = f"deleted {name}"
    else:
        old = arrays[name]
        arrays[name] = change_array(old, random)
        what = f"changed {name} {old.dtype}{old.shape} to {arrays[name].dtype}{arrays[name].shape}"
    save_file(arrays, path)
    return f"{path.name}: {what}"


def _array_bytes(folder, random):
    return _flipped(folder, random, ".safetensors")


def _header(folder, random):
    """Change the JSON header of a file of arrays, with a length that fits."""
    path = _any(_files(folder, ".safetensors") or [None], random)
    if path is None:
        return _json(folder, random)
    content = path.read_bytes()
    size = int.from_bytes(content[:8], "little")
    header = json.loads(content[8 : 8 + size])
    what = change_json(header, random)
    text = _dumped(header).encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + content[8 + size :])
    return f"header of {path.name}: {what}"


# -- scikit-learn parts -----------------------------------------------------------------


def _skops(folder, random):
    path = _any(_files(folder, ".skops") or [None], random)
    if path is None:
        return _arrays(folder, random)
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    arrays = [name for name in parts if name.endswith(".npy")]
    if arrays and random.integers(2):
        name = _any(arrays, random)
        array = np.load(io.BytesIO(parts[name]), allow_pickle=False)
        if array.dtype.names:
            array = array.copy()
            field = _any(array.dtype.names, random)
            array[field] = change_array(np.zeros(1, array.dtype[field]), random).flat[0]
            what = f"changed {field} of {array.dtype.names}"
        elif array.dtype.kind in "biuf":
            old, array = array, change_array(array, random)
            what = f"changed {old.dtype}{old.shape} to {array.dtype}{array.shape}"
        else:
            array, what = array[:0], "emptied an array"
        file = io.BytesIO()
        np.save(file, array, allow_pickle=False)
        parts[name] = file.getvalue()
    else:
        schema = json.loads(parts["schema.json"])
        what = change_json(schema, random)
        parts["schema.json"] = _dumped(schema).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in parts.items():
            archive.writestr(name, content)
    return f"{path.name}: {what}"


def _skops_bytes(folder, random):
    return _flipped(folder, random, ".skops")


CHANGES = {
    "truncated": _truncated,
    "flipped": _flipped,
    "removed": _removed,
    "swapped": _swapped,
    "linked": _linked,
    "special": _special,
    "added": _added,
    "edited": _edited,
    "edited JSON 1": _edited_json,
    "edited JSON 2": _edited_json,
    "crafted truncation": _truncated,
    "crafted swap": _swapped,
    "crafted removal": _removed,
    "crafted link": _linked,
    "crafted JSON bytes": _json_bytes,
    "crafted JSON 1": _json,
    "crafted JSON 2": _json,
    "crafted JSON 3": _json,
    "crafted JSON 4": _json,
    "crafted array bytes": _array_bytes,
    "crafted header": _header,
    "crafted arrays 1": _arrays,
    "crafted arrays 2": _arrays,
    "crafted arrays 3": _arrays,
    "crafted scikit-learn bytes": _skops_bytes,
    "crafted scikit-learn part 1": _skops,
    "crafted scikit-learn part 2": _skops,
}


def copied(folder, target):
    """A copy of a model folder to change."""
    shutil.rmtree(target, ignore_errors=True)
    shutil.copytree(folder, target)
    return Path(target)
