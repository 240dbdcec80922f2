"""Ranks and paired differences, against scipy's own."""

import numpy as np
import pytest
from scipy import stats

from crosswind.run.ranking import ranking
from crosswind.run.results import Run, Runs, StreamsRun


def run(order, seed, makespan, **params):
    return Run({"params": {"policy.order": order, **params}, "seed": seed, "makespan_s": float(makespan)})


def drawn(orders=("a", "b", "c"), points=4, seeds=9, shift=(0.0, 0.02, 0.3)):
    """Makespans with a common part by seed and point, and an own part."""
    random = np.random.default_rng(7)
    common = random.lognormal(2, 0.5, (points, seeds, 1))
    return common * (1 + np.array(shift) + random.normal(0, 0.02, (points, seeds, len(orders))))


def runs_of(table, orders=("a", "b", "c")):
    made = [
        run(order, seed, table[point, seed, at], size=point)
        for point in range(table.shape[0])
        for at, order in enumerate(orders)
        for seed in range(table.shape[1])
    ]
    return Runs("e", "sim", made)


def test_mean_ranks_are_scipys():
    table = drawn()
    found = ranking(runs_of(table))
    ranks = stats.rankdata(table, axis=2).mean(axis=(0, 1))
    assert {row.value: row.rank for row in found.rows} == pytest.approx(dict(zip("abc", ranks, strict=True)))
    assert (found.points, found.seeds, found.left_out) == (4, 9, 0)


def test_differences_are_those_of_a_paired_t_test_at_the_level_of_all_pairs():
    table = drawn()
    found = ranking(runs_of(table))
    best = "abc".index(found.rows[0].value)
    for row in found.rows[1:]:
        by_seed = (table[:, :, "abc".index(row.value)] / table[:, :, best]).mean(axis=0)
        low, high = stats.ttest_rel(by_seed, np.ones_like(by_seed)).confidence_interval(1 - 0.05 / 3)
        assert row.behind == pytest.approx((low + high) / 2)
        assert row.half == pytest.approx((high - low) / 2)
    assert found.rows[0].behind == found.rows[0].half == 0.0


def test_pairing_by_seed_settles_what_spread_over_seeds_would_hide():
    table = drawn(shift=(0.0, 0.05, 0.3), seeds=30)
    found = ranking(runs_of(table))
    assert [row.value for row in found.rows] == ["a", "b", "c"]
    assert found.is_settled
    unpaired = stats.ttest_ind(table[:, :, 1].mean(axis=0), table[:, :, 0].mean(axis=0)).confidence_interval()
    assert unpaired.low < 0 < unpaired.high


def test_a_difference_within_its_interval_is_a_tie():
    found = ranking(runs_of(drawn(shift=(0.0, 0.0, 0.3), seeds=5)))
    assert [row.is_tied for row in found.rows[1:]] == [True, False]
    assert not found.is_settled


def test_equal_values_share_their_ranks_and_are_both_best():
    found = ranking(Runs("e", "sim", [run("a", 1, 5), run("b", 1, 5), run("c", 1, 6)]))
    assert [(row.value, row.rank, row.best_at, row.half) for row in found.rows] == [
        ("a", 1.5, 1, None),
        ("b", 1.5, 1, None),
        ("c", 3.0, 0, None),
    ]
    assert [row.is_tied for row in found.rows] == [True, True, False]


def test_runs_without_a_partner_are_left_out_and_counted():
    made = [run("a", 1, 5), run("b", 1, 6), run("a", 2, 5)]
    found = ranking(Runs("e", "sim", made))
    assert (found.seeds, found.left_out) == (1, 1)


def test_there_is_no_ranking_of_one_value_of_no_common_seed_and_of_streams():
    assert ranking(Runs("e", "sim", [run("a", 1, 5), run("a", 2, 5)])) is None
    assert ranking(Runs("e", "sim", [run("a", 1, 5), run("b", 2, 5)])) is None
    assert ranking(Runs("e", "sim", [StreamsRun({"params": {}, "seed": 1})], kind="streams")) is None


def test_another_field_and_another_measure():
    made = [
        Run({"params": {"policy.buffer_tasks": n}, "seed": s, "makespan_s": 10.0 - n, "tasks": 1 + n})
        for n in (1, 2)
        for s in (1, 2)
    ]
    found = ranking(Runs("e", "sim", made), "policy.buffer_tasks")
    assert [row.value for row in found.rows] == [2, 1]
    assert found.rows[1].behind == pytest.approx(9 / 8 - 1)
