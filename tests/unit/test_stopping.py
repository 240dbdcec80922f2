"""When enough is known."""

import math

from crosswind.measure.stopping import LEAST_CYCLES, Precision


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
