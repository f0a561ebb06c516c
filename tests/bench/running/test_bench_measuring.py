"""The cost of a cell, and the limit on its threads."""

import numpy as np

from labelweave.bench.running.measuring import Meter, bounded_threads


def test_a_meter_sees_the_peak_of_its_own_block():
    with Meter() as big:
        block = np.ones(30_000_000)  # 240 MB, gone before the next
        del block
    with Meter() as small:
        pass
    assert big.memory["peak"] - big.memory["before"] > 200
    if small.memory["how"] == "per cell":
        assert small.memory["peak"] < big.memory["peak"] - 100
    assert big.seconds(1.0)["fit"] == 1.0
    assert big.wall > small.wall >= 0


def test_threads_are_bounded_inside_and_given_back():
    import torch
    from threadpoolctl import threadpool_info

    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with bounded_threads(1):
        assert torch.get_num_threads() == 1
        assert all(pool["num_threads"] == 1 for pool in threadpool_info())
    assert torch.get_num_threads() == 2
    torch.set_num_threads(before)
