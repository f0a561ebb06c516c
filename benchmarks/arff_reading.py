"""Reading ARFF files: labelweave against liac-arff and SciPy.

    LABELWEAVE_DATA=/path/to/data python benchmarks/arff_reading.py

Every reader starts from the same unpacked file and ends with feature and label matrices
(sparse for sparse files), in a process of its own, so that peak memory can be measured for each.
SciPy cannot read sparse ARFF, so it takes part on scene only. Seconds are CPU seconds; peak
is the resident memory that reading added at its highest (Linux).
"""

from __future__ import annotations

import json
import lzma
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import scipy.sparse as sp

SETS = {"imdb": "imdb/imdb", "delicious": "delicious/delicious", "scene": "scene/scene-train"}
READERS = {"imdb": ("labelweave", "liac-arff"), "delicious": ("labelweave", "liac-arff"),
           "scene": ("labelweave", "liac-arff", "scipy")}  # fmt: skip


def with_labelweave(path: Path, labels: list[str]) -> tuple:
    from labelweave.data.readers.arff import read_arff

    data = read_arff(path, labels=labels)
    return data.X, data.Y.values


def with_liac_arff(path: Path, labels: list[str]) -> tuple:
    import arff

    with path.open(encoding="utf-8") as file:
        in_braces = any(line.startswith("{") for line in file)
    with path.open(encoding="utf-8") as file:
        content = arff.load(file, return_type=arff.COO if in_braces else arff.DENSE)
    names = [name for name, _ in content["attributes"]]
    if in_braces:
        values, rows, columns = content["data"]
        matrix = sp.csc_array((np.array(values, dtype=np.float32), (rows, columns)))
        matrix.resize(max(rows) + 1, len(names))
    else:
        matrix = np.array(content["data"], dtype=np.float32)
    return _split(matrix, names, labels)


def with_scipy(path: Path, labels: list[str]) -> tuple:
    from scipy.io import arff

    rows, meta = arff.loadarff(str(path))
    matrix = np.column_stack([rows[name].astype(np.float32) for name in meta.names()])
    return _split(matrix, meta.names(), labels)


def _split(matrix, names: list[str], labels: list[str]) -> tuple:
    is_label = np.isin(names, labels)
    X, Y = matrix[:, np.flatnonzero(~is_label)], matrix[:, np.flatnonzero(is_label)]
    return (sp.csr_array(X), sp.csr_array(Y)) if sp.issparse(X) else (X, Y)


def measure(reader: str, path: Path, labels: list[str]) -> dict[str, float]:
    """Run in a fresh process: CPU seconds and the memory that the reading added."""
    read = {"labelweave": with_labelweave, "liac-arff": with_liac_arff, "scipy": with_scipy}[reader]
    small = path.with_name("warm-up.arff")
    small.write_text("@relation r\n@attribute a numeric\n@attribute b {0,1}\n@data\n1,1\n0,0\n")
    read(small, ["b"])  # imports are not what is measured
    before = _resident("VmRSS")
    Path("/proc/self/clear_refs").write_text("5")  # forget the peak so far
    start = time.process_time()
    X, Y = read(path, labels)
    seconds = time.process_time() - start
    return {
        "seconds": seconds,
        "peak": _resident("VmHWM") - before,
        "sum": float(X.sum(dtype=np.float64) + 1000 * Y.sum(dtype=np.float64)),
        "size": (_bytes(X) + _bytes(Y)) / 2**20,
    }


def _resident(field: str) -> float:
    """Megabytes of memory in use (VmRSS) or at most in use (VmHWM); Linux only."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(field)) / 1024


def _bytes(matrix) -> int:
    if sp.issparse(matrix):
        return matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
    return matrix.nbytes


def main() -> None:
    if len(sys.argv) == 4:
        labels = json.loads(sys.argv[3])
        print(json.dumps(measure(sys.argv[1], Path(sys.argv[2]), labels)))
        return
    home = os.environ.get("LABELWEAVE_DATA")
    if not home:
        sys.exit("set LABELWEAVE_DATA to the folder of data sets")
    from labelweave.data.readers.arff import find_mulan_xml, read_mulan_xml

    print(
        f"{'set':<10} {'reader':<11} {'CPU s':>7} {'ratio':>6} {'peak MB':>8} {'matrices MB':>11}"
    )
    for name, stem in SETS.items():
        packed = Path(home) / f"{stem}.arff.xz"
        labels = read_mulan_xml(find_mulan_xml(packed))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "data.arff"
            path.write_bytes(lzma.decompress(packed.read_bytes()))
            results = {}
            for reader in READERS[name]:
                command = [sys.executable, __file__, reader, str(path), json.dumps(labels)]
                done = subprocess.run(command, check=True, capture_output=True, text=True)
                results[reader] = json.loads(done.stdout)
        ours = results["labelweave"]
        for reader, measured in results.items():
            if not np.isclose(measured["sum"], ours["sum"], rtol=1e-4):
                sys.exit(f"{reader} read other values from {name} than labelweave")
            print(
                f"{name:<10} {reader:<11} {measured['seconds']:7.2f} "
                f"{measured['seconds'] / ours['seconds']:5.1f}x {measured['peak']:8.0f} "
                f"{measured['size']:11.1f}"
            )


if __name__ == "__main__":
    main()
