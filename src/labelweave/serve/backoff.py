"""How long to wait before what has failed is started again."""

from __future__ import annotations

import time
from collections.abc import Callable

__all__ = ["Backoff"]

_LONGEST_DELAY = 60.0  # seconds
_STEADY = 60.0  # seconds of running after which a failure counts as the first again


class Backoff:
    """Delays that double with each failure in a row.

    >>> now = 0.0
    >>> backoff = Backoff(0.5, clock=lambda: now)
    >>> delays = []
    >>> for _ in range(9):
    ...     backoff.failed()
    ...     delays.append(backoff.seconds_left)
    >>> delays
    [0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0, 60.0]
    >>> backoff.started()
    >>> now += 61
    >>> backoff.failed()
    >>> backoff.seconds_left
    0.5
    """

    def __init__(self, first_delay: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._first_delay = first_delay
        self._clock = clock
        self._failures = 0
        self._started_at: float | None = None
        self._retry_at = 0.0

    @property
    def seconds_left(self) -> float:
        """The seconds until the next attempt; 0 if it may be made now."""
        return max(0.0, self._retry_at - self._clock())

    def started(self) -> None:
        """Note that an attempt has succeeded."""
        self._started_at = self._clock()

    def failed(self) -> None:
        """Note that an attempt has failed, or that what was started has ended."""
        if self._started_at is not None and self._clock() - self._started_at > _STEADY:
            self._failures = 0
        self._started_at = None
        delay = min(self._first_delay * 2.0**self._failures, _LONGEST_DELAY)
        self._failures += delay < _LONGEST_DELAY
        self._retry_at = self._clock() + delay
