"""A progress bar for anything that takes longer than a moment.

On a terminal it is drawn on the error stream by rich, which is imported only then. Where that
stream is a file or a pipe, what takes long writes a line to it now and then. Nothing is written
when the caller asked for silence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Self, TypeVar

__all__ = ["ProgressBar", "track"]

T = TypeVar("T")
_REFRESH = 0.1  # seconds between two drawings on a terminal
_LINE_EVERY = 5.0  # seconds before the first line in a file, and between two


class ProgressBar:
    """A bar with a description, a note (a loss, say) and the time left; use it in a `with`.

    Parameters
    ----------
    description : str
    total : float, optional
        How much there is to do; None if nobody knows.
    verbose : int or bool, default=1
        0 draws nothing.
    unit : {"", "bytes"}, default=""
        Whether to show amounts as file sizes.

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
        self._wait = _REFRESH if self._is_terminal else _LINE_EVERY
        self._drawn_at = -_REFRESH
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self._is_terminal:
            self._bar = _make_bar(self.unit)
            self._bar.start()
            self._line = self._bar.add_task(self.description, total=self.total, note="")
        else:
            self._drawn_at = time.monotonic()  # the first line only if it takes long
        return self

    def advance(self, amount: float = 1, note: str | None = None) -> None:
        """Say that `amount` more is done."""
        self.move_to(self.done + amount, note)

    def move_to(self, done: float, note: str | None = None) -> None:
        """Say how much is done in all; it is not shown each time."""
        self.done = done
        self.note = self.note if note is None else note
        if self.is_shown and time.monotonic() - self._drawn_at >= self._wait:
            self._draw()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        if self._bar is not None:
            self._bar.update(self._line, completed=self.done, note=self.note)
        else:
            print(self._in_words(), file=sys.stderr, flush=True)

    def _in_words(self) -> str:
        if self.total:
            amount = f"{self.done / self.total:.0%}"
        else:
            amount = f"{self.done / 1e6:.1f} MB" if self.unit == "bytes" else f"{self.done:,.0f}"
        return f"{self.description}: {amount}" + (f", {self.note}" if self.note else "")

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._draw()
            self._bar.stop()
            self._bar = None


def track(items: Iterable[T], description: str, *, verbose: int = 1) -> Iterator[T]:
    """The items one by one, with a bar that moves as they are taken.

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
