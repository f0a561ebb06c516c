"""Data sets: reading them, finding them by name, splitting them, making scenarios of them."""

from labelweave.data.dataset import Dataset

__all__ = ["Dataset"]
