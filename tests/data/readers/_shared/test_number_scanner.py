import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelweave.data.readers._shared.number_scanner import collapse_spaces, scan_numbers

PLAIN = re.compile(rb"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")


def scan_slowly(block, separators):
    """The reference implementation of `scan_numbers`, number by number."""
    values, after, per_row, lone = [], [], [0], []
    before, token = 10, b""
    for byte in block:
        if byte not in separators:
            token += bytes([byte])
            continue
        if token:
            if not PLAIN.fullmatch(token):
                return None
            values.append(float(token))
            after.append(byte)
            per_row[-1] += 1
        else:
            lone.append([before, byte])
        if byte == 10:
            per_row.append(0)
        before, token = byte, b""
    return values, after, per_row[:-1], lone


@given(st.lists(st.sampled_from(b"0123456789,: \n.-e"), max_size=60).map(bytes))
def test_same_as_number_by_number(text):
    block = text + b"\n"
    expected, scanned = scan_slowly(block, b",: \n"), scan_numbers(block, b",: \n")
    if expected is None or scanned is None:
        assert scanned is None
        assert expected is None
        return
    values, after, per_row, lone = expected
    np.testing.assert_array_equal(scanned.values, np.array(values))
    assert scanned.after.tolist() == after
    assert scanned.per_row.tolist() == per_row
    assert scanned.lone.tolist() == lone


@given(st.lists(st.integers(0, 10**12), min_size=1))
def test_integers_of_any_length(numbers):
    block = b",".join(b"%d" % n for n in numbers) + b"\n"
    scanned = scan_numbers(block, b",\n")
    assert scanned is not None
    assert scanned.values.tolist() == numbers


@pytest.mark.parametrize("word", [b"1-2", b"1.2.3", b"nan", b"inf", b"0x1", b"1_0", b"--1", b"e5"])
def test_malformed_numbers_are_refused(word):
    assert scan_numbers(b"1," + word + b"\n", b",\n") is None


def test_question_mark_is_missing_where_allowed():
    scanned = scan_numbers(b"1,?\n", b",\n", missing=True)
    assert scanned is not None
    np.testing.assert_array_equal(scanned.values, [1, np.nan])
    assert scan_numbers(b"1,?\n", b",\n") is None
    assert scan_numbers(b"1,2?\n", b",\n", missing=True) is None


def test_collapse_spaces():
    assert collapse_spaces(b"a   b , c\t\td \r\n", tight=b",\n") == b"a b,c d\n"
