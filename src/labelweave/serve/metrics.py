"""Figures about the service, for Prometheus."""

from __future__ import annotations

from typing import Any

from labelweave.exceptions import require

__all__ = ["ServiceMetrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServiceMetrics:
    """Counters and histograms in a registry of their own: nothing about the machine is told."""

    def __init__(self) -> None:
        client = require("prometheus_client", "serve")
        self.registry = client.CollectorRegistry()
        self.requests = client.Counter(
            "labelweave_requests",
            "Answers, by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = client.Histogram(
            "labelweave_request_seconds",
            "Time to answer.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_rows = client.Histogram(
            "labelweave_batch_rows",
            "Rows predicted together.",
            ["model"],
            buckets=_ROWS,
            registry=self.registry,
        )
        self.queue = client.Gauge(
            "labelweave_queue_requests",
            "Requests that wait for a prediction.",
            ["model"],
            registry=self.registry,
        )
        self.refused = client.Counter(
            "labelweave_refused", "Requests refused, by reason.", ["reason"], registry=self.registry
        )

        self._of_answers: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one answer."""
        key = (route, method, status)
        if key not in self._of_answers:  # looking a figure up by its labels costs more than it
            self._of_answers[key] = (
                self.requests.labels(route, method, str(status)),
                self.seconds.labels(route),
            )
        count, histogram = self._of_answers[key]
        count.inc()
        histogram.observe(seconds)

    def as_text(self) -> bytes:
        """In the text format that Prometheus reads."""
        client = require("prometheus_client", "serve")
        return client.generate_latest(self.registry)
