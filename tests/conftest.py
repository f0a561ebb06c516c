"""What all tests share: one thread each, and the data sets where they are to be had."""

import os

# Before numpy and torch start their thread pools: many workers on few cores.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("MKL_NUM_THREADS", "1")

from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def data_home() -> Path:
    """The folder of LABELWEAVE_DATA; the test is skipped where it is not set."""
    folder = os.environ.get("LABELWEAVE_DATA")
    if not folder or not Path(folder).is_dir():
        pytest.skip("LABELWEAVE_DATA does not point to a folder of data sets")
    return Path(folder)
