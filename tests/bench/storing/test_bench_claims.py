"""Claims: one process per cell, taken over when its owner is gone."""

import json
import os
import subprocess
import sys
import time

from labelweave.bench.storing.claims import STALE_AFTER, claimed, is_claimed


def test_a_claim_is_held_by_one(tmp_path):
    path = tmp_path / "cell"
    with claimed(path) as mine:
        assert mine
        assert is_claimed(path)
        with claimed(path) as again:
            assert not again
        assert path.exists()  # who did not get it does not take it away
    assert not path.exists()


def test_the_claim_of_a_dead_process_is_taken_over(tmp_path):
    path = tmp_path / "cell"
    code = (
        "from pathlib import Path; from labelweave.bench.storing.claims import _take; "
        f"_take(Path({str(path)!r}))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
    assert path.exists()
    assert not is_claimed(path)
    with claimed(path) as mine:
        assert mine


def test_a_number_of_a_process_that_is_used_again_is_noticed(tmp_path):
    path = tmp_path / "cell"
    with claimed(path):
        owner = json.loads(path.read_text())
        path.write_text(json.dumps({**owner, "begun": "1"}))
        assert not is_claimed(path)


def test_the_claim_of_another_machine_counts_while_it_is_fresh(tmp_path):
    path = tmp_path / "cell"
    path.write_text(json.dumps({"host": "elsewhere", "process": 1, "begun": "1"}))
    assert is_claimed(path)
    old = time.time() - STALE_AFTER - 1
    os.utime(path, (old, old))
    assert not is_claimed(path)


def test_half_a_claim_counts_for_a_moment(tmp_path):
    path = tmp_path / "cell"
    path.write_text("")
    assert is_claimed(path)
    os.utime(path, (0, 0))
    assert not is_claimed(path)
