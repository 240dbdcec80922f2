"""Looking while results come in: the error is spent, not multiplied."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from crosswind.cost.blocks import Quads
from crosswind.cost.estimate import estimate
from crosswind.cost.verdict import judge
from crosswind.statistics.interim import ALPHA, PLANNED, Looks, limits, spent
from crosswind.statistics.jackknife import Estimate


def test_limits_are_those_of_the_literature():
    """Jennison and Turnbull, Group Sequential Methods (2000), tables 7.1 and 7.4: five equal looks, alpha 0.05."""
    fifths = [0.2, 0.4, 0.6, 0.8, 1.0]
    obrien = limits(fifths, [spent(each, how="obrien-fleming") for each in fifths])
    assert obrien == pytest.approx([4.877, 3.357, 2.680, 2.290, 2.031], abs=0.002)
    pocock = limits(fifths, [spent(each) for each in fifths])
    assert pocock == pytest.approx([2.438, 2.427, 2.410, 2.397, 2.386], abs=0.003)


@pytest.mark.parametrize("how", ["pocock", "obrien-fleming"])
def test_with_spent_error_five_looks_raise_as_many_false_alarms_as_one(how):
    draw = np.random.default_rng(1)
    times = np.array(PLANNED)
    steps = draw.standard_normal((40_000, len(times))) * np.sqrt(np.diff(times, prepend=0.0))
    standardised = np.cumsum(steps, axis=1) / np.sqrt(times)
    bounds = np.array(limits(times, [spent(each, how=how) for each in times]))
    alarms = (np.abs(standardised) > bounds).any(axis=1).mean()
    assert alarms == pytest.approx(0.05, abs=0.004)
    naive = (np.abs(standardised) > 1.96).any(axis=1).mean()
    assert naive > 0.12


def test_a_session_that_is_looked_at_interrupted_and_prolonged_keeps_its_error():
    """Interrupted at an odd moment, resumed, prolonged twice: at most 5 % of quiet sessions are called guilty."""
    looks = Looks(planned_s=60.0)
    times = [6.0, 12.0, 17.3, 24.0, 42.0, 60.0]
    levels = [looks.look(time) for time in times]
    for _ in range(2):
        looks.prolong(60.0)
        later = [looks.began_s + part * 60.0 for part in PLANNED]
        levels += [looks.look(time) for time in later]
        times += later
    assert looks.taken[-1][1] < ALPHA
    draw = np.random.default_rng(2)
    steps = draw.standard_normal((20_000, len(times))) * np.sqrt(np.diff(times, prepend=0.0))
    standardised = np.cumsum(steps, axis=1) / np.sqrt(times)
    bounds = stats.norm.isf(np.array(levels) / 2)
    assert (np.abs(standardised) > bounds).any(axis=1).mean() < 0.053


def test_looks_at_quads_of_nothing_call_at_most_6_in_100_costly():
    """From synthetic quads to the verdict, with the stopping rule of the session, as often as the record asks."""
    called = 0
    for seed in range(300):
        draw = np.random.default_rng(seed)
        drift = np.cumsum(0.002 * draw.standard_normal(300))[:, None]
        rate = 1.0 + 0.02 * draw.standard_normal((300, 2)) + drift
        wall = np.full((300, 2), 0.04)
        quads = Quads(rate * wall, wall, wall, np.zeros((300, 2)))
        looks = Looks(planned_s=300 * 0.08)
        for part in PLANNED:
            some = quads.first(int(part * 300))
            level = looks.look(some.seconds)
            found = estimate(some, "wall")
            if found.value - found.half_width(level) > 0.0:
                called += 1
                break
    assert called <= 18  # 6 %; a tail of 2.5 % is 7.5


def test_one_look_has_all_of_the_error_and_an_interrupted_one_less():
    assert Looks(60.0, one=True).look(60.0) == pytest.approx(ALPHA, rel=1e-3)
    assert Looks(60.0, one=True).look(30.0, at_the_end=True) == pytest.approx(ALPHA, rel=1e-3)
    assert Looks(60.0, one=True).look(30.0) < 0.2 * ALPHA
    assert Looks(60.0, one=True).next_s() == 60.0


def test_next_looks_come_in_their_order_and_end():
    looks, seen = Looks(100.0), []
    while math.isfinite(looks.next_s()):
        seen.append(looks.next_s())
        looks.look(seen[-1])
    assert seen == [10.0, 20.0, 40.0, 70.0, 100.0]
    looks.prolong(50.0)
    assert looks.next_s() == 105.0
    looks.look(130.0, at_the_end=True)
    assert looks.next_s() == math.inf
    assert Looks.from_dict(looks.to_dict()) == looks


@pytest.mark.parametrize(
    ("value", "error", "outcome"),
    [(0.02, 0.001, "above"), (0.0, 0.001, "below"), (0.005, 0.001, "below"), (0.009, 0.001, "unknown")],
)
def test_the_margin_decides(value, error, outcome):
    verdict = judge(Estimate(value, error, 40), 0.01, 0.05, 60.0)
    assert verdict.outcome == outcome
    assert verdict.low < value < verdict.high
    assert (verdict.more_s > 0) == (outcome == "unknown")


def test_how_much_longer_is_told_by_the_distance_to_the_margin():
    near, far = (judge(Estimate(value, 0.003, 40), 0.01, 0.05, 60.0).more_s for value in (0.009, 0.006))
    assert near > far > 0
    nothing = judge(Estimate(float("nan"), float("inf"), 1), 0.01, 0.05, 1.0)
    assert nothing.outcome == "unknown"
    assert "too little" in nothing.sentence
