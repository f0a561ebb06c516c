"""What several tests of data sets share."""

import pytest

from labelweave.data.catalog import CatalogEntry


@pytest.fixture
def tiny_entry():
    """A function that makes a catalog entry: two ARFF files, three train rows and a test row."""

    def make(**changes):
        fields = {
            "name": "tiny",
            "title": "made up",
            "kind": "features",
            "rows": 4,
            "features": 2,
            "labels": 2,
            "cardinality": 1.0,
            "parts": {"train": 3, "test": 1},
            "loader": "tables",
            "files": {"train": "tiny-train.arff", "test": "tiny-test.arff"},
            "reader_options": {"labels": 2},
            "source": "here",
            "licence": "none",
        }
        return CatalogEntry(**(fields | changes))

    return make
