"""Freed memory is kept between training steps, and given back afterwards."""

import ctypes
import resource

import pytest
import torch

from labelweave.nn import memory
from labelweave.nn.memory import kept_memory

pytestmark = pytest.mark.skipif(memory._glibc() is None, reason="another C library, or set by hand")


def pages_asked_for(times=8, n=2**24):
    """Pages that the system hands out for a block of 64 MB that is freed and needed again."""
    for _ in range(16):  # until the free blocks lie so that one fits
        torch.ones(n)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(times):
        torch.ones(n)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def resident_pages():
    with open("/proc/self/statm") as file:  # noqa: PTH123
        return int(file.read().split()[1])


def test_freed_memory_is_used_again_inside_and_given_back_after():
    ctypes.CDLL(None).malloc_trim(0)
    at_first = resident_pages()
    outside = pages_asked_for()
    with kept_memory():
        with kept_memory():  # as when one fit runs within another
            assert 3 * pages_asked_for() < outside
        assert 3 * pages_asked_for() < outside
    assert resident_pages() - at_first < 8000  # half a block


def test_an_error_inside_ends_it_too():
    with pytest.raises(ZeroDivisionError), kept_memory():
        raise ZeroDivisionError
    assert memory._n_inside == 0


def test_settings_of_the_environment_are_left_alone(monkeypatch):
    memory._glibc.cache_clear()
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    try:
        assert memory._glibc() is None
    finally:
        memory._glibc.cache_clear()
