"""Results of long benchmarks, one line per run, so that a stopped script can continue."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any


class Cells:
    """Scores by what they are scores of, kept in a file of JSON lines.

    Parameters
    ----------
    path : path, optional
        The file; runs that are in it are not run again. Without it nothing is kept.
    """

    def __init__(self, path: str | Path | None = None) -> None:
        self.path = None if path is None else Path(path)
        self.known: dict[str, dict[str, float]] = {}
        if self.path is not None and self.path.exists():
            for line in self.path.read_text().splitlines():
                cell = json.loads(line)
                self.known[_text(cell["of"])] = cell["scores"]

    def get(self, of: dict[str, Any], run: Callable[[], dict[str, float]]) -> dict[str, float]:
        """The scores of a run; it is run, and its scores written, if they are not known."""
        key = _text(of)
        if key not in self.known:
            self.known[key] = run()
            if self.path is not None:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a") as file:
                    file.write(json.dumps({"of": of, "scores": self.known[key]}) + "\n")
        return self.known[key]


def parameters_of(model: Any) -> dict[str, Any]:
    """All parameters of an estimator but its seed: a changed default is another cell."""
    parameters = model.get_params(deep=False)
    del parameters["random_state"]
    return {name: repr(value) for name, value in sorted(parameters.items())}


def _text(of: dict[str, Any]) -> str:
    return json.dumps(of, sort_keys=True)
