"""Which levels come when."""

from collections import Counter
from random import Random

import pytest

from crosswind.measure import design


def test_a_ladder_cycle_is_two_fifths_idle_one_fifth_middle_two_fifths_top():
    blocks = design.ladder_cycle(1, [100.0, 40.0], 0, Random(1))
    assert Counter(block.levels for block in blocks) == {(0.0, 0.0): 2, (0.0, 20.0): 1, (0.0, 40.0): 2}
    assert {block.phase for block in blocks} == {"ladder"}


def test_every_fifth_cycle_has_the_check_points_besides():
    kinds = [Counter(block.phase for block in design.ladder_cycle(0, [8.0], i, Random(i))) for i in range(30)]
    assert [kind["check"] for kind in kinds] == ([0] * 4 + [2]) * 6
    assert {kind["ladder"] for kind in kinds} == {5}


def test_short_blocks_make_cycles_of_several_passes_each_complete():
    timing = design.timing(0.0)
    blocks = design.ladder_cycle(0, [8.0], 0, Random(1), timing.passes)
    assert len(blocks) * timing.block_s >= design.CYCLE_S
    size = len(design.LADDER)
    for start in range(0, len(blocks), size):
        assert Counter(block.levels[0] / 8.0 for block in blocks[start : start + size]) == Counter(design.LADDER)
    assert design.timing(0.1).passes == 1


def test_orders_differ_from_cycle_to_cycle_and_repeat_with_the_seed():
    def orders(seed):
        random = Random(seed)
        return [design.ladder_cycle(0, [8.0], i, random) for i in range(20)]

    assert orders(1) == orders(1)
    assert orders(1) != orders(2)
    assert len({tuple(block.levels for block in cycle) for cycle in orders(1)}) > 5


def test_together_cycles_move_all_channels_and_tell_them_apart():
    cycles = [design.together_cycle([100.0, 40.0], i, Random(i)) for i in range(2)]
    levels = {block.levels for cycle in cycles for block in cycle}
    assert levels == {(0.0, 0.0), (50.0, 20.0), (100.0, 40.0), (100.0, 20.0), (50.0, 40.0)}


def test_contention_needs_as_many_idle_blocks_as_loaded_ones():
    blocks = design.contention_cycle(0, 2, Random(1))
    assert sorted(block.load for block in blocks if block.levels == (None, 0.0)) == list(design.CONTENTION)
    assert sum(block.levels == (0.0, 0.0) for block in blocks) == len(design.CONTENTION)


@pytest.mark.parametrize("unpaced", [0.31, 1.03, 11.7, 117.0, 2258.0, 9400.0])
@pytest.mark.parametrize("by_cpu", [True, False])
def test_a_top_lies_within_reach_and_moves_little_with_the_unpaced_rate(unpaced, by_cpu):
    part = design.PART_WHERE_CPU_LIMITS if by_cpu else design.PART_WHERE_WIRE_LIMITS
    top = design.top_of_ladder(unpaced, by_cpu)
    assert 0.4 * part * unpaced <= top <= part * unpaced * (1 + 1e-12)
    assert design.top_of_ladder(unpaced * 1.001, by_cpu) == pytest.approx(top)


def test_blocks_grow_with_the_round_trip_and_with_work_that_cannot_be_cut():
    assert design.timing(0.0).block_s == design.BLOCK_S
    far = design.timing(0.1)
    assert far.block_s == 2.0
    assert 0.5 <= far.settle_s <= far.block_s / 2
    assert design.timing(0.0, unit_s=0.3).block_s == pytest.approx(1.5)
