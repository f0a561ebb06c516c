"""A progress bar for anything that takes longer than a moment.

It is drawn on the error stream by rich, which is imported only then; nothing is drawn where
that stream is no terminal, or when the caller asked for silence.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Sized
from typing import Any, Self, TypeVar

__all__ = ["ProgressBar", "track"]

T = TypeVar("T")
_REFRESH = 0.1  # seconds between two drawings


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
        self.is_shown = bool(verbose) and sys.stderr is not None and sys.stderr.isatty()
        self.done = 0.0
        self.note = ""
        self._drawn_at = -_REFRESH
        self._bar: Any = None

    def __enter__(self) -> Self:
        if self.is_shown:
            self._bar = _make_bar(self.unit)
            self._bar.start()
            self._line = self._bar.add_task(self.description, total=self.total, note="")
        return self

    def advance(self, amount: float = 1, note: str | None = None) -> None:
        """Say that `amount` more is done; drawn a few times a second at most."""
        self.move_to(self.done + amount, note)

    def move_to(self, done: float, note: str | None = None) -> None:
        """Say how much is done in all."""
        self.done = done
        self.note = self.note if note is None else note
        if self._bar is not None and time.monotonic() - self._drawn_at >= _REFRESH:
            self._draw()

    def _draw(self) -> None:
        self._drawn_at = time.monotonic()
        self._bar.update(self._line, completed=self.done, note=self.note)

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._draw()
            self._bar.stop()
            self._bar = None


def track(
    items: Iterable[T], description: str, *, total: float | None = None, verbose: int = 1
) -> Iterator[T]:
    """The items one by one, with a bar that moves as they are taken.

    >>> list(track("ab", "letters", verbose=0))
    ['a', 'b']
    """
    if total is None and isinstance(items, Sized):
        total = len(items)
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
