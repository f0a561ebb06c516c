"""Small suites in a folder of their own."""

import pytest
from bench_data import small_suite


@pytest.fixture
def suite(tmp_path):
    return small_suite(tmp_path)
