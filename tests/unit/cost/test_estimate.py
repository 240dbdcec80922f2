"""The four estimators on synthetic blocks whose cost is known."""

from __future__ import annotations

import numpy as np
import pytest

from crosswind.cost.blocks import OFF, ON, Quads, contrasts, schedule
from crosswind.cost.estimate import NAMES, Duty, duty_while_on, estimate, exchange_rate, slow_down
from crosswind.statistics.quads import order_of_quad


def synthetic(
    seed: int,
    quads: int = 500,
    *,
    duty: float = 0.02,
    slower: float = 0.0,
    catching_up: float = 1.0,
    bursts: float = 1.0,
    others: float = 0.0,
    noise: float = 0.01,
    block_s: float = 0.02,
) -> Quads:
    """Return quads of a job beside a daemon on its own processor.

    `bursts`: the part of the blocks in which it computes at all; `others`: the mean share that third parties take,
    another one in each block; `slower`: by how much the job loses per CPU second that it has while the daemon runs.
    """
    draw = np.random.default_rng(seed)
    shape = (quads, 2, 2)  # two blocks a label
    wall = np.full(shape, block_s)
    there = (draw.random(shape) < bursts) * np.array([0.0, 1.0])[:, None]
    x = wall * there * duty * catching_up / bursts * draw.uniform(0.5, 1.5, shape)
    taken = wall * draw.uniform(0.0, 2.0 * others, shape) if others else 0.0
    job = wall - x - taken
    rate = 1000.0 * (1.0 + noise * draw.standard_normal(shape)) * (1.0 - slower * np.array([0.0, 1.0])[:, None])
    return Quads(*((each).sum(axis=2) for each in (job * rate, wall, job, x)))


def test_each_estimator_sees_what_it_says_that_it_sees():
    quads = synthetic(1, 4000, duty=0.02, slower=0.005, noise=0.002)
    duty = Duty(0.02, 0.0)
    found = {name: estimate(quads, name, duty).value for name in NAMES}
    assert found["own"] == pytest.approx(0.005, abs=2e-4)
    both = 1 - (1 - 0.02) * (1 - 0.005)
    assert found["wall"] == pytest.approx(both, abs=4e-4)
    assert found["available"] == pytest.approx(both, abs=4e-4)
    assert found["exchange"] == pytest.approx(both, abs=4e-4)
    assert slow_down(quads, duty).value == pytest.approx(found["exchange"] - 0.02, abs=1e-12)


def test_catching_up_cancels_in_exchange_and_in_nothing_else():
    quads = synthetic(2, 4000, duty=0.01, catching_up=2.0, noise=0.002)
    duty = Duty(0.01, 0.0)
    assert duty_while_on(quads) == pytest.approx(0.02, rel=0.05)
    assert estimate(quads, "exchange", duty).value == pytest.approx(0.01, abs=4e-4)
    assert exchange_rate(quads).value == pytest.approx(1.0, abs=0.03)
    for name in ("wall", "available"):
        assert estimate(quads, name).value == pytest.approx(0.02, abs=8e-4)


def test_third_parties_move_wall_and_not_the_others():
    duty = Duty(0.02, 0.0)
    quads = synthetic(3, 1000, duty=0.02, others=0.3)
    errors = {name: estimate(quads, name, duty).error for name in NAMES}
    assert errors["wall"] > 5 * errors["available"]
    assert errors["exchange"] < 0.002


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("bursts", [1.0, 0.05])
def test_the_interval_covers_the_truth_in_95_of_100(name, bursts):
    covered = 0
    for seed in range(200):
        quads = synthetic(seed, 300, duty=0.01, slower=0.01, bursts=bursts)
        true = {"wall": 0.0199, "own": 0.01, "available": 0.0199, "exchange": 0.0199}[name]
        found = estimate(quads, name, Duty(0.01, 0.0))
        covered += abs(found.value - true) <= found.half_width()
    assert covered >= 180  # of 200: 95 % is 190 +- 3.1


def test_an_uncertain_duty_widens_exchange():
    quads = synthetic(4)
    sure, unsure = (estimate(quads, "exchange", Duty(0.02, error)) for error in (0.0, 0.01))
    assert unsure.value == sure.value
    assert unsure.error == pytest.approx(np.hypot(sure.error, 0.01), rel=0.1)


def test_the_duty_is_a_ratio_of_sums_with_an_error():
    duty = Duty.of(np.array([1.0, 1.0, 2.0, 1.0, 1.0]), np.array([0.01, 0.03, 0.02, 0.04, 0.02]))
    assert duty.value == pytest.approx(0.02)
    assert 0.003 < duty.error < 0.01


@pytest.mark.parametrize("burst", [0.001, 0.005, 0.02])
def test_the_duty_of_a_daemon_that_wakes_about_as_often_as_windows_end_is_covered(burst):
    """Counted in 20 windows of 0.1 s, a burst each 103 ms is 19 or 20 times there; and the same in all, or none."""
    draw = np.random.default_rng(7)
    ends, covered, trials = 0.1 * np.arange(21), 0, 400
    for _ in range(trials):
        period = draw.uniform(0.09, 0.11)
        begins = period * np.arange(-2, 25) + draw.uniform(0.0, period)
        counted = burst * np.histogram(begins, ends)[0]
        duty = Duty.of(np.diff(ends), counted)
        covered += abs(duty.value - burst / period) <= 1.96 * duty.error
    assert covered >= 0.95 * trials


def test_a_few_quads_give_a_value_and_no_interval():
    found = estimate(synthetic(5, 4), "wall")
    assert np.isfinite(found.value)
    assert found.half_width() == float("inf")


def test_a_linear_drift_cancels_within_quads_and_not_between_two_halves():
    """The job slows by 10 % from the first block to the last, and the daemon takes nothing."""
    draw, rate, sums = np.random.default_rng(6), 1000.0, []
    for _ in range(200):
        work = [0.0, 0.0]
        for label in order_of_quad(draw):
            work[label] += 0.02 * rate
            rate -= 100.0 / 800
        sums.append(work)
    wall = np.full((200, 2), 0.04)
    found = estimate(Quads(np.array(sums), wall, wall, np.zeros((200, 2))), "wall")
    assert abs(found.value) < 1e-6


def test_every_quad_has_both_labels_twice_and_every_contrast_comes_as_often():
    draw = np.random.default_rng(7)
    assert {order_of_quad(draw) for _ in range(50)} == {(OFF, ON, ON, OFF), (ON, OFF, OFF, ON)}
    plan = schedule(2, draw)
    seen = [next(plan)[0] for _ in range(30)]
    assert [seen.count(contrast) for contrast in range(len(contrasts(2)))] == [10, 10, 10]


@pytest.mark.parametrize(("shortest_s", "longest_s", "duty"), [(0.004, 0.02, 0.5), (0.09, 0.11, 0.3), (0.2, 0.5, 0.05)])
def test_the_duty_of_a_steady_daemon_in_windows_of_random_lengths_is_covered_closely(shortest_s, longest_s, duty):
    """Before, the interval of a duty of 30 or 50 % was some 40 standard deviations wide."""
    draw, misses, half, missed = np.random.default_rng(8), [], [], 0
    for _ in range(200):
        ends = np.append(0.0, np.cumsum(0.1 * draw.uniform(0.5, 1.5, 120)))
        period, phase = draw.uniform(shortest_s, longest_s), draw.uniform(0.0, 1.0)
        whole, part = np.divmod(ends + phase * period, period)
        found = Duty.of(np.diff(ends), np.diff(whole * duty * period + np.minimum(part, duty * period)))
        misses.append(found.value - duty)
        half.append(2.26 * found.error)  # Student's, of 10 groups
        missed += abs(misses[-1]) > half[-1]
    assert missed <= 10
    assert np.median(half) < 12.0 * np.std(misses)


def test_the_duty_of_bursts_at_random_in_windows_of_random_lengths_is_covered():
    draw, missed = np.random.default_rng(9), 0
    for _ in range(400):
        ends = np.append(0.0, np.cumsum(0.1 * draw.uniform(0.5, 1.5, 120)))
        counted = 0.01 * np.histogram(np.cumsum(draw.exponential(0.2, 400)), ends)[0]
        found = Duty.of(np.diff(ends), counted)
        missed += abs(found.value - 0.05) > 2.26 * found.error
    assert missed <= 28  # 5 % is 20 +- 4.4
