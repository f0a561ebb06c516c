"""The report on one model: what it scores, on which rows, and where it goes wrong."""

from labelweave.reporting.model.document import model_document

__all__ = ["model_document"]
