"""Metrics of the service for Prometheus."""

from __future__ import annotations

from typing import Any

import prometheus_client as client

__all__ = ["ServiceMetrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class ServiceMetrics:
    """Counters and histograms in a separate registry, without the default ones of the process."""

    def __init__(self) -> None:
        self.registry = client.CollectorRegistry()
        self.requests = client.Counter(
            "labelweave_requests",
            "Responses by route, method and status.",
            ["route", "method", "status"],
            registry=self.registry,
        )
        self.seconds = client.Histogram(
            "labelweave_request_seconds",
            "Seconds to respond.",
            ["route"],
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.batch_rows = client.Histogram(
            "labelweave_batch_rows",
            "Rows per batch.",
            ["model"],
            buckets=_ROWS,
            registry=self.registry,
        )
        self.queue = client.Gauge(
            "labelweave_queue_requests",
            "Requests waiting for a prediction.",
            ["model"],
            registry=self.registry,
        )
        self.refused = client.Counter(
            "labelweave_refused", "Refused requests by reason.", ["reason"], registry=self.registry
        )
        # Children by label values: looking them up costs more than counting.
        self._children: dict[tuple[str, str, int], tuple[Any, Any]] = {}

    def observe(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count one response."""
        key = (route, method, status)
        if key not in self._children:
            self._children[key] = (
                self.requests.labels(route, method, str(status)),
                self.seconds.labels(route),
            )
        count, histogram = self._children[key]
        count.inc()
        histogram.observe(seconds)

    def as_text(self) -> bytes:
        """Return the metrics in the text format of Prometheus."""
        return client.generate_latest(self.registry)
