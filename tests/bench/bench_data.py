"""A small suite of cheap methods on made-up data, and records without a run."""

import numpy as np

from labelweave.bench.evaluation_protocol import EvaluationProtocol
from labelweave.bench.suite import DataEntry, MethodEntry, Suite


def write_data(path, n_rows=60, seed=0):
    """A CSV file: four features, three labels that depend on them."""
    rng = np.random.default_rng(seed)
    X = rng.random((n_rows, 4)).round(3)
    Y = (X[:, :3] + rng.normal(0, 0.2, (n_rows, 3)) > 0.5).astype(int)
    lines = ["a,b,c,d,red,blue,round"]
    lines += [",".join(map(str, [*x, *y])) for x, y in zip(X, Y, strict=True)]
    path.write_text("\n".join(lines) + "\n")
    return path


def small_suite(folder, *, seeds=(0, 1), names=("one", "two"), methods=None, **changes):
    """BR and MLkNN on CSV files, under both protocols."""
    data = []
    for number, name in enumerate(names):
        path = folder / f"{name}.csv"
        if not path.exists():
            write_data(path, seed=number)
        data.append(DataEntry(name, source=str(path), options={"labels": 3}))
    stated = {
        "name": "small",
        "title": "a small suite",
        "kind": "supervised",
        "data": tuple(data),
        "methods": methods
        or (MethodEntry("BR", "br"), MethodEntry("MLkNN", "mlknn", settings={"k": 3})),
        "metrics": ("f1_micro", "map"),
        "seeds": tuple(seeds),
        "protocols": (
            EvaluationProtocol("honest", test_size=0.3),
            EvaluationProtocol("as-published", split="random", test_size=0.2, threshold="test"),
        ),
    }
    return Suite(**{**stated, **changes})


def scores_of(records):
    """What a table shows of records: cell to scores."""
    return {record["cell"]: record["scores"] for record in records}


def make_record(cell, scores, *, finished="2026-01-01T00:00:00+00:00", error=None, **changes):
    """A record of a cell that was never run."""
    from labelweave.bench.running.worker import _record

    record = _record(cell, None, error, {"rows": 60})
    return {**record, "scores": dict(scores), "finished": finished, **changes}
