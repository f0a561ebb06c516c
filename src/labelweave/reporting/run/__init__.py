"""The report on a run of the bench: figures, ranks, cost, and what is missing."""

from labelweave.reporting.run.document import run_document

__all__ = ["run_document"]
