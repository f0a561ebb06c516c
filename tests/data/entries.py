"""An entry of the catalog for a data set of our own."""

from labelweave.data.catalog import CatalogEntry


def tiny_entry(**changes):
    """Two ARFF files of two features and two labels: three train rows and a test row."""
    given = {
        "name": "tiny",
        "title": "made up",
        "kind": "features",
        "rows": 4,
        "features": 2,
        "labels": 2,
        "cardinality": 1.0,
        "parts": {"train": 3, "test": 1},
        "recipe": "table",
        "files": {"train": "tiny-train.arff", "test": "tiny-test.arff"},
        "options": {"labels": 2},
        "source": "here",
        "licence": "none",
    }
    return CatalogEntry(**(given | changes))
