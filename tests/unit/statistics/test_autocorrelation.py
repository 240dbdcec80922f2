"""Noise that lasts longer than a block: what it adds to an interval."""

import numpy as np
import pytest

from crosswind.statistics.autocorrelation import deviation

NOISE = np.array([1.0, -1.0] * 20) / 100


@pytest.mark.parametrize("weight", [0.0, 1e-200, 5e-324])
def test_an_estimate_that_no_block_moves_has_no_deviation(weight):
    spread, independent = deviation(np.full(40, weight), NOISE, np.ones(40), np.arange(40))
    assert (spread, independent) == (0.0, 40.0)
