"""When enough is known."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pyarrow as pa
from synthetic import measurement

from crosswind.measure.stopping import LEAST_CYCLES, Precision, precision_together


def test_either_goal_is_enough_but_never_with_few_cycles():
    tight_ir = Precision(0.2e-3, 0.009e-3, 0.05, LEAST_CYCLES)
    tight_loss = Precision(0.0, 1.0, 0.009, LEAST_CYCLES)
    assert tight_ir.reached(0.05, 0.01)
    assert tight_loss.reached(0.05, 0.01)
    assert not Precision(0.2e-3, 0.011e-3, 0.05, 1000).reached(0.05, 0.01)
    assert not Precision(0.2e-3, 0.0, 0.0, LEAST_CYCLES - 1).reached(0.05, 0.01)


def test_cycles_to_go_follow_the_square_root_law():
    assert Precision(1.0, 0.1, 1.0, 50).cycles_to_go(0.05, 0.01) == 150
    assert Precision(1.0, 0.01, 1.0, 50).cycles_to_go(0.05, 0.01) == 0
    assert Precision(1.0, math.inf, math.inf, 1).cycles_to_go(0.05, 0.01) == math.inf


def test_intervals_without_own_cpu_time_do_not_spoil_the_precision_of_channels_together():
    quiet = measurement(seed=1, together_cycles=30)
    columns = {name: quiet.samples.column(name).to_numpy().copy() for name in quiet.samples.column_names}
    starved = np.flatnonzero(columns["phase"].astype(str) == "together")[5::50]
    assert len(starved) > 1
    for name in [
        name for name in columns if name in ("compute_cpu_s", "traffic_cpu_s", "work") or name.endswith("_mb")
    ]:
        columns[name][starved] = 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        found = precision_together(replace(quiet, samples=pa.table(columns)), seed=1)
    whole = precision_together(quiet, seed=1)
    assert found is not None
    assert whole is not None
    assert found.cycles == whole.cycles
    assert abs(found.ir_s_per_mb - whole.ir_s_per_mb) <= whole.ir_half_width
