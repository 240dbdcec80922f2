"""Sharing out a cost: the laws of Shapley's value, and intervals over seeds."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from crosswind.blame.shares import alone, coalitions, cost_estimate, drawn_coalitions, drawn_share, removed, shapley
from crosswind.statistics.interval import mean_interval

costs_of = st.integers(1, 5).flatmap(
    lambda n: st.tuples(
        st.just(n),
        hnp.arrays(np.float64, (1 << n, 3), elements=st.floats(0, 1e6, allow_nan=False)),
    )
)


def by_coalition(table):
    return dict(enumerate(table))


@given(costs_of)
def test_the_shares_sum_to_what_all_causes_cost_together(case):
    n, table = case
    costs = by_coalition(table)
    total = sum(shapley(costs, k, n) for k in range(n))
    assert total == pytest.approx(table[-1] - table[0], abs=1e-6)


@given(costs_of)
def test_a_cause_that_never_adds_anything_gets_nothing(case):
    n, table = case
    costs = {coalition: table[coalition & ~1] for coalition in range(1 << n)}
    assert shapley(costs, 0, n) == pytest.approx(np.zeros(3), abs=1e-6)
    assert removed(costs, 0, n) == pytest.approx(np.zeros(3))


@given(st.lists(st.floats(0, 1e3), min_size=1, max_size=5))
def test_causes_that_add_up_get_what_they_cost_alone_and_what_their_removal_saves(prices):
    n = len(prices)
    costs = {
        coalition: np.array([7.0 + sum(p for k, p in enumerate(prices) if coalition >> k & 1)])
        for coalition in range(1 << n)
    }
    for k, price in enumerate(prices):
        for way in (shapley(costs, k, n), alone(costs, k), removed(costs, k, n)):
            assert way == pytest.approx([price], abs=1e-6)


@given(costs_of)
def test_causes_in_another_order_get_the_same_shares(case):
    n, table = case
    turned = np.empty_like(table)
    for coalition in range(1 << n):
        other = sum(1 << (n - 1 - k) for k in range(n) if coalition >> k & 1)
        turned[other] = table[coalition]
    for k in range(n):
        own, other = shapley(by_coalition(table), k, n), shapley(by_coalition(turned), n - 1 - k, n)
        assert own == pytest.approx(other, rel=1e-9, abs=1e-6)


@pytest.mark.parametrize("causes", [1, 2, 6, 7, 12])
def test_the_coalitions_to_run_hold_what_removal_and_alone_need(causes):
    runs = set(coalitions(causes))
    everything = (1 << causes) - 1
    assert {0, everything} <= runs
    assert all({1 << k, everything ^ (1 << k)} <= runs for k in range(causes))
    assert len(runs) == (1 << causes if causes <= 6 else 2 * causes + 2)


def test_the_interval_holds_the_true_mean_as_often_as_it_says():
    rng = np.random.default_rng(1)
    inside = 0
    for _ in range(2000):
        found = mean_interval(rng.normal(3.0, 1.0, 5))
        inside += found.low <= 3.0 <= found.high
    assert 0.93 < inside / 2000 < 0.97


def test_one_seed_gives_no_interval():
    found = mean_interval(np.array([2.0]))
    assert (found.low, found.high) == (-np.inf, np.inf)
    assert not found.excludes_zero
    with pytest.raises(ValueError, match="needs a value"):
        mean_interval(np.array([]))


@pytest.mark.parametrize("often", [0.05, 0.1, 0.25, 0.4])
def test_costs_that_take_few_values_are_held_as_often_as_others(often):
    """With 5 seeds most samples are alike; Student's interval has no width then, and held the mean in 12 of 40."""
    rng = np.random.default_rng(5)
    samples = 0.01 * (1 + (rng.random((2_000, 5)) < often))
    mean = 0.01 * (1 + often)

    def held(how):
        found = [how(sample) for sample in samples]
        return np.mean([one.low <= mean <= one.high for one in found])

    assert held(cost_estimate) >= 0.92
    assert held(mean_interval) < held(cost_estimate)


def test_a_cost_of_nothing_and_one_that_varies_are_as_they_were():
    assert not cost_estimate(np.zeros(5)).alike
    varied = np.array([1.0, 2.0, 3.0])
    assert cost_estimate(varied) == mean_interval(varied)
    assert cost_estimate(0.1 + 0.2 * np.ones(3)).alike, "rounding is no spread"
    assert not cost_estimate(np.array([1.0])).alike


@pytest.mark.parametrize("causes", [7, 9])
def test_shares_over_drawn_orders_sum_to_the_cost_and_their_intervals_hold_the_exact_shares(causes):
    draw = np.random.default_rng(causes)
    price, pairs = draw.uniform(0.0, 2.0, causes), draw.uniform(-1.0, 1.0, (causes, causes))

    def cost(coalition):
        there = [k for k in range(causes) if coalition >> k & 1]
        return 10.0 + price[there].sum() + pairs[np.ix_(there, there)].sum()

    costs = {coalition: cost(coalition) for coalition in range(1 << causes)}
    exact = np.array([shapley({c: np.array([v]) for c, v in costs.items()}, k, causes)[0] for k in range(causes)])
    held, whole = 0, costs[(1 << causes) - 1] - costs[0]
    for first in range(0, 200, 5):
        seeds = range(first + 1, first + 6)
        shares = np.array([[drawn_share(costs, k, causes, seed) for k in range(causes)] for seed in seeds])
        assert shares.sum(axis=1) == pytest.approx(np.full(5, whole))
        found = [mean_interval(shares[:, k]) for k in range(causes)]
        held += sum(one.low - 1e-9 <= e <= one.high + 1e-9 for one, e in zip(found, exact, strict=True))
    # Pairs cancel over an order and its reverse, so that nothing is left to estimate here.
    assert held == 40 * causes


def test_intervals_over_drawn_orders_hold_shares_of_causes_that_interact_in_threes():
    causes, held = 7, 0

    def cost(coalition):
        return float((coalition & 0b111) == 0b111) + 2.0 * float((coalition & 0b1111000).bit_count() >= 3)

    costs = {coalition: cost(coalition) for coalition in range(1 << causes)}
    exact = [shapley({c: np.array([v]) for c, v in costs.items()}, k, causes)[0] for k in range(causes)]
    for first in range(0, 1000, 10):
        seeds = range(first + 1, first + 11)
        for k in (0, 3):
            one = mean_interval(np.array([drawn_share(costs, k, causes, seed) for seed in seeds]))
            held += one.low <= exact[k] <= one.high
    assert 0.90 <= held / 200 <= 1.0


@pytest.mark.parametrize("causes", [7, 12])
def test_every_coalition_of_an_order_is_run(causes):
    for seed in range(20):
        run = dict.fromkeys([*coalitions(causes), *drawn_coalitions(causes, seed)], 1.0)
        assert len(run) == 4 * causes - 4
        assert sum(drawn_share(run, k, causes, seed) for k in range(causes)) == 0.0
