"""Reports on models and on benchmark runs: one HTML page, or Markdown with plots."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from labelweave.reporting.report_content import Report

__all__ = ["report"]

_FORMATS = {".html": "html", ".htm": "html", ".md": "md", ".markdown": "md"}


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
    """Write a report on a model or on a benchmark run.

    Parameters
    ----------
    model_or_run : path or fitted estimator
        A model folder, the folder of a benchmark run, or a model in memory.
    data : Dataset, pair (X, Y), path or name of a data set, optional
        The rows to score. A model folder that `labelweave train` wrote names its data, and is
        scored on the test rows of its training by default.
    out : path, default="report.html"
        ``.html`` writes one page that needs no other file. ``.md`` writes Markdown, with the plots
        in a folder beside it.
    format : {"html", "md"}, optional
        The format, where the ending of `out` does not determine it.
    part : {"train", "validation", "test", "all"}, optional
        Which rows of the data to score.
    n_shown : int, default=30
        The largest number of labels in a heat map; the most frequent labels are shown.
    reading : mapping, optional
        How to read a data file: arguments of :func:`labelweave.read_dataset`. By default a file is
        read in the same way as the training file of the model.

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
    from labelweave.files import atomic_write_text
    from labelweave.reporting.html import to_html
    from labelweave.reporting.markdown import write_markdown

    target, chosen_format = check_target(Path(out), format)
    if n_shown < 2:
        raise InputError(f"n_shown must be at least 2, not {n_shown}")
    require("matplotlib", "report")
    content = _content(model_or_run, data, part, n_shown, reading or {})
    if chosen_format == "md":
        write_markdown(content, target)
    else:
        atomic_write_text(target, to_html(content))
    return target


def check_target(out: str | Path, format: str | None) -> tuple[Path, str]:
    """Return the file to write and its format, or raise before any time is spent.

    >>> check_target("report.md", None)[1]
    'md'
    """
    from labelweave.exceptions import InputError

    target = Path(out)
    format_of_ending = _FORMATS.get(target.suffix.lower())
    if format not in (None, "html", "md"):
        raise InputError(f"a report is written as html or md, not {format!r}")
    if format is None and format_of_ending is None:
        raise InputError(f"{out}: the file must end in .html or .md, or the format must be named")
    if format is not None and format_of_ending not in (None, format):
        raise InputError(f"{out} does not end like a file of the format {format!r}")
    if target.is_dir():
        raise InputError(f"{out} is a folder: name a file to write the report to")
    return target, format or str(format_of_ending)


def _content(
    model_or_run: Any, data: Any, part: str | None, n_shown: int, reading: Mapping[str, Any]
) -> Report:
    from labelweave.exceptions import InputError
    from labelweave.reporting.evaluated_model import evaluate_folder, evaluate_model
    from labelweave.reporting.model_report import model_report

    if not isinstance(model_or_run, str | PathLike):
        if part is not None or reading:
            raise InputError("part and reading apply to model folders: pass the rows as data")
        return model_report(evaluate_model(model_or_run, data), n_shown)
    folder = Path(model_or_run)
    if not folder.is_dir():
        what = "is a file" if folder.exists() else "does not exist"
        raise InputError(f"{folder} {what}: name the folder of a model or of a benchmark run")
    if (folder / "store.json").exists():
        from labelweave.reporting.run_report import run_report

        if data is not None or part is not None:
            raise InputError(
                f"{folder} is a benchmark run, which names its own data: leave data and part out"
            )
        return run_report(folder, n_shown)
    if (folder / "config.json").exists():
        return model_report(evaluate_folder(folder, data, part=part, reading=reading), n_shown)
    quick = "; {0}/quick is a quick trial run" if (folder / "quick" / "store.json").exists() else ""
    raise InputError(
        f"{folder} is neither the folder of a model nor that of a benchmark run"
        + quick.format(folder)
    )
