"""Reports on models and on runs of the bench: one HTML page, or Markdown with plots."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import Any

__all__ = ["report"]


def report(
    model_or_run: Any,
    data: Any = None,
    out: str | PathLike[str] = "report.html",
    *,
    format: str | None = None,
    part: str | None = None,
    n_shown: int = 30,
    reading: Mapping[str, Any] | None = None,
) -> Path:
    """Write a report on a model or on a run of the bench.

    Parameters
    ----------
    model_or_run : path or fitted estimator
        A model folder, the folder of a run, or a model in memory.
    data : Dataset, pair (X, Y), path or name of a data set, optional
        The rows to score. A model folder of `labelweave train` knows its own data, and is
        scored on the test part of its training.
    out : path, default="report.html"
        ``.html``: one page that needs no other file. ``.md``: Markdown, its plots in a folder
        beside it.
    format : {"html", "md"}, optional
        Where the ending of `out` does not tell.
    part : {"train", "validation", "test", "all"}, optional
        Which rows of the data to score.
    n_shown : int, default=30
        The most labels that a heat map shows, the most frequent ones.
    reading : mapping, optional
        How to read a data file: arguments of :func:`labelweave.read_dataset`. A file of the
        kind that the model was trained on is read in the same way.

    Returns
    -------
    Path
        The file that was written.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import labelweave as lw
    >>> X = np.random.default_rng(0).random((60, 2))
    >>> model = lw.make("mlknn", k=3).fit(X[:40], (X > 0.5)[:40])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     lw.report(model, (X[40:], (X > 0.5)[40:]), f"{folder}/report.html").name
    'report.html'
    """
    from labelweave.exceptions import InputError, require
    from labelweave.reporting.writing import checked_target, now, write

    target, chosen = checked_target(Path(out), format)
    if n_shown < 2:
        raise InputError(f"n_shown must be at least 2, not {n_shown}")
    require("matplotlib", "report")
    document = _document(model_or_run, data, part, n_shown, reading or {}, now())
    return write(document, target, chosen)[0]


def _document(
    about: Any, data: Any, part: str | None, n_shown: int, reading: Mapping[str, Any], made: str
) -> Any:
    from labelweave.exceptions import InputError
    from labelweave.reporting.model import model_document
    from labelweave.reporting.model.subject import subject_of_folder, subject_of_model

    if not isinstance(about, str | PathLike):
        if part is not None or reading:
            raise InputError("part and reading are for model folders: give the rows as data")
        return model_document(subject_of_model(about, data, n_shown=n_shown), made=made)
    folder = Path(about)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{about} {what}: name the folder of a model or of a run")
    if (folder / "store.json").exists():
        from labelweave.reporting.run import run_document

        if data is not None or part is not None:
            raise InputError(f"{about} is a run, which has its own data: leave data and part out")
        return run_document(folder, made=made, n_shown=n_shown)
    if (folder / "config.json").exists():
        subject = subject_of_folder(folder, data, part=part, reading=reading, n_shown=n_shown)
        return model_document(subject, made=made)
    smoke = f"; {about}/quick is a smoke run" if (folder / "quick" / "store.json").exists() else ""
    raise InputError(f"{about} is neither the folder of a model nor that of a run{smoke}")
