"""An interval that a user can trust: it covers as often as it says, with noise like that of real measurements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crosswind.errors import DescriptionError
from crosswind.model.interval import slope_interval, slope_ratio
from crosswind.statistics import bootstrap
from crosswind.statistics.bootstrap import mean_of_cycles

IR, TOP = 0.05, 10.0


def simulated(rng, cycles, correlation=0.7, noise=0.03, drift=0.01):
    """Points of shuffled cycles; noise correlated from block to block, the whole rate drifting."""
    x = np.concatenate([rng.permutation([0.0, 0.0, TOP / 2, TOP, TOP]) for _ in range(cycles)])
    wobble, value = np.empty(x.size), rng.normal()
    for i in range(x.size):
        value = correlation * value + np.sqrt(1 - correlation**2) * rng.normal()
        wobble[i] = value
    rate = 9.0 * np.exp(np.cumsum(rng.normal(0, drift / 3, x.size)))
    return x, rate * (1 - IR * x + noise * wobble), np.repeat(np.arange(cycles), 5)


@pytest.mark.parametrize("cycles", [4, 8, 20])
@pytest.mark.parametrize(("correlation", "least"), [(0.0, 0.93), (0.7, 0.93), (0.9, 0.87), (0.95, 0.83)])
def test_the_interval_covers_the_truth_as_often_as_it_says(cycles, correlation, least):
    rng = np.random.default_rng(7)
    covered = 0
    for run in range(400):
        x, y, cycle = simulated(rng, cycles, correlation)
        found = slope_interval(x, y, cycle, np.arange(x.size), seed=run)
        covered += found.low <= -IR <= found.high
    # 400 runs: the standard error of a coverage of 0.95 is 0.011. With a correlation of 0.95 from block to block, 4
    # cycles are one piece of noise: how much it moves can only be guessed.
    assert least <= covered / 400 <= 0.998


def test_cycles_alone_do_not_show_noise_that_outlasts_them():
    cycles_only = blocks_too = 0
    for run in range(200):
        x, y, cycle = simulated(np.random.default_rng(run), 20, correlation=0.95)
        for block in (None, np.arange(x.size)):
            found = slope_interval(x, y, cycle, block, seed=run)
            held = found.low <= -IR <= found.high
            cycles_only += held and block is None
            blocks_too += held and block is not None
    assert blocks_too / 200 >= 0.88
    assert cycles_only <= blocks_too - 6


def test_correlated_samples_fool_the_naive_interval_and_not_this_one():
    naive, honest, runs = 0, 0, 300
    for run in range(runs):
        rng = np.random.default_rng(run)
        x, y, cycle = (np.repeat(part, 5) for part in simulated(rng, 10))  # five samples of each block, nearly alike
        y = y * (1 + 0.002 * rng.normal(size=y.size))
        rate, u = y / y[x == 0].mean(), x - x.mean()
        slope = u @ rate / (u @ u)
        residual = rate - rate.mean() - slope * u
        naive += abs(slope + IR) <= 1.96 * np.sqrt(residual @ residual / (x.size - 2) / (u @ u))
        found = slope_interval(x, y, cycle, seed=run)
        honest += found.low <= -IR <= found.high
    assert naive / runs < 0.80
    assert honest / runs >= 0.90


def test_the_loss_at_the_top_is_covered_too():
    rng = np.random.default_rng(5)
    covered = 0
    for run in range(400):
        found = slope_interval(*simulated(rng, 12), seed=run)
        covered += found.at_top_low <= IR * TOP <= found.at_top_high
    assert covered / 400 >= 0.90


def test_stopping_as_soon_as_the_interval_is_narrow_keeps_most_of_the_coverage():
    covered = 0
    for run in range(200):
        x, y, cycle = simulated(np.random.default_rng(run), 60)
        for cycles in range(8, 61):
            rows = cycle < cycles
            found = slope_interval(x[rows], y[rows], cycle[rows], np.flatnonzero(rows))
            if found.high - found.low < 0.1 * -found.slope:
                break
        covered += found.low <= -IR <= found.high
    assert covered / 200 >= 0.87


def test_slow_drift_does_not_widen_the_interval():
    steady, drifting = (
        slope_interval(*simulated(np.random.default_rng(1), 30, drift=drift), np.arange(150)) for drift in (0.0, 0.05)
    )
    assert drifting.high - drifting.low < 1.5 * (steady.high - steady.low)


def test_one_cycle_leaves_the_interval_open():
    found = slope_interval([0.0, 5.0, 10.0], [9.0, 6.75, 4.5], [0, 0, 0])
    assert found.slope == pytest.approx(-0.05)
    assert (found.low, found.high) == (-np.inf, np.inf)


def test_the_same_seed_gives_the_same_interval():
    points = simulated(np.random.default_rng(2), 10)
    assert slope_interval(*points, seed=4) == slope_interval(*points, seed=4)
    assert slope_interval(*points, seed=4).low != slope_interval(*points, seed=5).low


@given(rate=st.floats(1e-3, 1e6), unit=st.floats(1e-6, 1e6), seed=st.integers(0, 10_000), cycles=st.integers(2, 12))
def test_units_of_work_and_of_transfer_do_not_matter(rate, unit, seed, cycles):
    x, y, cycle = simulated(np.random.default_rng(seed), cycles)
    plain, scaled = slope_interval(x, y, cycle), slope_interval(x * rate, y * unit, cycle)
    for name in ("slope", "low", "high"):
        assert getattr(scaled, name) * rate == pytest.approx(getattr(plain, name), rel=1e-6, abs=1e-9)
    assert scaled.at_top == pytest.approx(plain.at_top, rel=1e-6, abs=1e-9)


@given(seed=st.integers(0, 10_000), cycles=st.integers(1, 8))
def test_the_order_of_the_points_does_not_matter(seed, cycles):
    rng = np.random.default_rng(seed)
    x, y, cycle = simulated(rng, cycles)
    order, block = rng.permutation(x.size), np.arange(x.size)
    plain = slope_interval(x, y, cycle, block)
    shuffled = slope_interval(x[order], y[order], cycle[order], block[order])
    for name in ("slope", "low", "high", "intercept", "at_top", "at_top_low", "at_top_high"):
        assert getattr(shuffled, name) == pytest.approx(getattr(plain, name), rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(
    ("x", "y", "code"),
    [
        ([0.0, 0.0], [1.0, 1.0], "no-traffic"),
        ([5.0, 10.0], [1.0, 0.5], "no-idle"),
        ([0.0, 10.0], [0.0, 0.0], "no-idle"),
        ([np.nan], [1.0], "too-few-points"),
    ],
)
def test_points_without_idle_or_traffic_are_refused(x, y, code):
    with pytest.raises(DescriptionError) as refused:
        slope_interval(x, y, np.zeros(len(x), int))
    assert refused.value.code == code


def wandering(rng, cycles, share=0.08, kept=0.9):
    """Points of an interference rate that wanders by a share of itself over tens of cycles."""
    x, y, cycle = simulated(rng, cycles, correlation=0.0)
    wander = np.empty(cycles)
    value = rng.normal()
    for i in range(cycles):
        value = kept * value + np.sqrt(1 - kept**2) * rng.normal()
        wander[i] = value
    return x, y * (1 - IR * x * (1 + share * wander[cycle])) / (1 - IR * x), cycle


def test_batches_see_wander_over_many_cycles_that_neighbours_hardly_show(monkeypatch):
    def covered():
        found = [slope_interval(*wandering(np.random.default_rng(run), 160), seed=run) for run in range(200)]
        return sum(one.low <= -IR <= one.high for one in found) / len(found)

    with_batches = covered()
    monkeypatch.setattr(bootstrap, "_by_batches", lambda _: 1.0)
    assert with_batches >= 0.75
    assert covered() <= with_batches - 0.05


def test_the_mean_of_few_cycles_is_covered():
    rng = np.random.default_rng(11)
    covered = 0
    for _ in range(1000):
        cycle = np.repeat(np.arange(5), 4)
        mean, low, high = mean_of_cycles(3.0 + rng.normal(size=5)[cycle] + 0.1 * rng.normal(size=20), cycle)
        assert low <= mean <= high
        covered += low <= 3.0 <= high
    assert 0.93 <= covered / 1000 <= 0.995


def pair_of_lines(cycles, slope_a, slope_b, wander, seed=1):
    """Two lines measured in turns on a host whose speed wanders from cycle to cycle for both alike."""
    random = np.random.default_rng(seed)
    x, cycle = np.tile([0.0, 0.0, 0.5, 1.0, 1.0], cycles), np.repeat(np.arange(cycles), 5)
    common = np.repeat(1 + wander * random.standard_normal(cycles), 5)
    lines = [(1 - slope * x * common) * (1 + 0.01 * random.standard_normal(x.size)) for slope in (slope_a, slope_b)]
    return (x, lines[0], cycle), (x, lines[1], cycle)


def test_the_ratio_of_two_slopes_measured_in_turns_is_known_better_than_either():
    first, second = pair_of_lines(40, 0.5, 0.25, wander=0.3)
    ratio, low, high = slope_ratio(first, second)
    assert low < 2.0 < high
    alone = slope_interval(*first)
    assert (high - low) / ratio < 0.5 * (alone.high - alone.low) / -alone.slope


def test_the_interval_of_a_ratio_covers():
    covered = 0
    for seed in range(100):
        _, low, high = slope_ratio(*pair_of_lines(6, 0.4, 0.2, wander=0.1, seed=seed))
        covered += low <= 2.0 <= high
    assert covered >= 90


def test_the_interval_of_a_ratio_over_forks_covers_and_is_no_wider_for_a_chance_order():
    covered, widths = 0, {True: [], False: []}
    for seed in range(400):
        rng = np.random.default_rng(seed)
        both = []
        for _ in range(2):
            x = np.tile([0.0, 0.0, TOP / 2, TOP, TOP], 5)
            slopes = np.repeat(IR * (1 + 0.05 * rng.normal(size=5)), 5)
            y = 9.0 * (1 - slopes * x) * (1 + 0.01 * rng.normal(size=25))
            both.append((x, y, np.repeat(np.arange(5), 5)))
        for independent, own in widths.items():
            ratio, low, high = slope_ratio(*both, independent=independent, seed=seed)
            own.append((high - low) / ratio)
            covered += independent and low <= 1.0 <= high
    assert 0.91 <= covered / 400 <= 0.98
    assert np.median(widths[True]) < 0.9 * np.median(widths[False])
    assert np.quantile(widths[True], 0.9) < 0.7 * np.quantile(widths[False], 0.9)


def test_a_ratio_needs_cycles_of_both():
    first, second = pair_of_lines(4, 0.5, 0.25, wander=0.1)
    with pytest.raises(DescriptionError, match="no cycle that both"):
        slope_ratio(first, (second[0], second[1], second[2] + 10))
    flat = (second[0], np.ones_like(second[1]), second[2])
    assert np.isnan(slope_ratio(first, flat)[0]) or slope_ratio(first, flat)[0] > 1e6
