"""Progress of long computations, on the error stream.

On a terminal this is a bar drawn by rich, which is imported only then. If the error stream is a
file or a pipe, a line is written every few seconds. With ``verbose=0`` nothing is written.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Self, TypeVar

__all__ = ["ProgressBar", "track"]

T = TypeVar("T")
_REFRESH_SECONDS = 0.1  # between two updates of a bar
_LINE_SECONDS = 5.0  # before the first line in a file, and between two lines


class ProgressBar:
    """A context manager that shows a description, the progress, a note and the time left.

    Parameters
    ----------
    description : str
    total : float, optional
        The amount of work; None if it is not known.
    verbose : int or bool, default=1
        0 shows nothing.
    unit : {"", "bytes"}, default=""
        "bytes" shows amounts as file sizes.

    Examples
    --------
    >>> with ProgressBar("counting", total=3, verbose=0) as bar:
    ...     for _ in range(3):
    ...         bar.advance()
    """

    def __init__(
        self,
        description: str,
        total: float | None = None,
        *,
        verbose: int = 1,
        unit: str = "",
    ) -> None:
        self.description = description
        self.total = total
        self.unit = unit
        self.is_shown = bool(verbose) and sys.stderr is not None
        self.done = 0.0
        self.note = ""
        self._is_terminal = self.is_shown and sys.stderr.isatty()
        self._interval = _REFRESH_SECONDS if self._is_terminal else _LINE_SECONDS
        self._shown_at = -_REFRESH_SECONDS
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._bar = _make_bar(self.unit)
            self._bar.start()
            self._task = self._bar.add_task(self.description, total=self.total, note="")
        else:
            self._shown_at = time.monotonic()  # no line at all if it finishes quickly
        return self

    def advance(self, amount: float = 1, note: str | None = None) -> None:
        """Add `amount` to the progress."""
        self.move_to(self.done + amount, note)

    def move_to(self, done: float, note: str | None = None) -> None:
        """Set the progress; it is shown only if some time has passed since the last update."""
        self.done = done
        self.note = self.note if note is None else note
        if self.is_shown and time.monotonic() - self._shown_at >= self._interval:
            self._show()

    def _show(self) -> None:
        self._shown_at = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._task, completed=self.done, note=self.note)
        else:
            print(self._line(), file=sys.stderr, flush=True)

    def _line(self) -> str:
        if self.total:
            amount = f"{self.done / self.total:.0%}"
        else:
            amount = f"{self.done / 1e6:.1f} MB" if self.unit == "bytes" else f"{self.done:,.0f}"
        return f"{self.description}: {amount}" + (f", {self.note}" if self.note else "")

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._show()
            self._bar.stop()
            self._bar = None


def track(items: Iterable[T], description: str, *, verbose: int = 1) -> Iterator[T]:
    """Yield items, and show the progress.

    >>> list(track("ab", "letters", verbose=0))
    ['a', 'b']
    """
    total = len(items) if isinstance(items, Sized) else None
    with ProgressBar(description, total, verbose=verbose) as bar:
        for item in items:
            yield item
            bar.advance()


def _make_bar(unit: str) -> Any:
    from rich import progress
    from rich.console import Console

    amount = progress.DownloadColumn() if unit == "bytes" else progress.MofNCompleteColumn()
    return progress.Progress(
        progress.TextColumn("{task.description}"),
        progress.BarColumn(),
        amount,
        progress.TextColumn("{task.fields[note]}"),
        progress.TimeElapsedColumn(),
        progress.TextColumn("left"),
        progress.TimeRemainingColumn(),
        console=Console(stderr=True),
        auto_refresh=True,
        refresh_per_second=4,
    )
