"""Cells on disk: records, folders of results, and files that hold the cells of a suite."""
