"""The cost of a block of code."""

import numpy as np

from labelweave.measuring import Meter


def test_a_meter_sees_the_peak_of_its_own_block():
    with Meter() as big:
        block = np.ones(30_000_000)  # 240 MB, gone before the next
        del block
    with Meter() as small:
        pass
    assert big.peak_mb - big.before_mb > 200
    if small.is_reset:
        assert small.peak_mb < big.peak_mb - 100
    assert big.wall > small.wall >= 0
