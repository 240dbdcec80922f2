"""Whether a node is called sick only where the interval excludes the tolerance."""

import random

import pytest

from crosswind.check.decision import Judged, Reading, judge, together

GOOD = Reading((100.0, 101.0, 99.0, 100.5, 99.5, 100.2))


def rates(*values: float, **other: bool) -> Reading:
    return Reading(values, **other)


def shares(*values: float) -> Reading:
    return Reading(values, "share", excusable=True, part=0.5)


def test_half_the_rate_is_sick():
    found = judge("compute", rates(*(rate / 2 for rate in GOOD.values)), GOOD, 0.1)
    assert found.outcome == "sick"
    assert found.low < found.loss < found.high
    assert found.loss == pytest.approx(0.5, abs=1e-3)


def test_the_same_rate_is_healthy():
    assert judge("compute", GOOD, GOOD, 0.1).outcome == "healthy"


def test_a_faster_rate_is_healthy():
    assert judge("compute", rates(*(2 * rate for rate in GOOD.values)), GOOD, 0.1).outcome == "healthy"


def test_healthy_asks_for_95_percent_and_sick_for_more():
    was = rates(*[95.0, 105.0] * 5)
    assert judge("memory", rates(*[93.0, 103.0] * 5), was, 0.1, 8).outcome == "healthy"
    found = judge("memory", rates(*[80.0, 89.0] * 5), was, 0.1, 8)
    assert (found.outcome, found.why) == ("unknown", "not certain enough for a drain")
    assert found.low > 0.1


def test_a_scattered_rate_is_unknown_not_sick():
    assert judge("compute", rates(20.0, 150.0, 40.0, 120.0), GOOD, 0.1).outcome == "unknown"


def test_too_few_batches_are_unknown():
    found = judge("compute", rates(50.0), GOOD, 0.1)
    assert (found.why, found.shown) == ("too few batches", "compute is not known")


def test_a_loss_that_only_one_look_saw_is_unknown():
    now = rates(*[80.0] * 3, *[95.0] * 3)
    steady = rates(*[100.0] * 6)
    assert judge("compute", now, steady, 0.1).outcome == "unknown"


def test_a_share_of_time_is_a_difference_in_points():
    was = shares(0.01, 0.012, 0.008, 0.01, 0.01, 0.01)
    assert judge("noise", shares(0.11, 0.1, 0.12, 0.11, 0.11, 0.1), was, 0.1).outcome == "sick"
    assert judge("noise", shares(0.02, 0.021, 0.02, 0.02, 0.019, 0.02), was, 0.1).outcome == "healthy"


def test_on_a_busy_host_time_that_others_took_drains_nobody():
    was = shares(*[0.01, 0.012] * 3)
    assert judge("noise", shares(*[0.5, 0.51] * 3), was, 0.1, busy=True).why == "the host is busy"


def test_on_a_busy_host_only_a_large_loss_per_own_second_is_sick():
    assert judge("memory", rates(*[75.0, 76.0] * 3), GOOD, 0.1, busy=True).outcome == "unknown"
    assert judge("memory", rates(*[40.0, 41.0] * 3), GOOD, 0.1, busy=True).outcome == "sick"


def test_an_interval_of_another_module_counts_too():
    was = Reading(mean=0.05, error=0.005, unit="share")
    assert judge("loopback", Reading(mean=0.3, error=0.01, unit="share"), was, 0.1).outcome == "sick"
    assert judge("loopback", Reading(mean=0.06, error=0.005, unit="share"), was, 0.1).outcome == "healthy"


def test_one_sick_measure_makes_the_node_sick_and_one_unknown_makes_it_unknown():
    def one(outcome: str) -> Judged:
        return Judged(outcome, outcome, 0.0, 0.0, 0.0, 0.1)

    assert together([one("sick"), one("unknown")]) == "sick"
    assert together([one("healthy")]) == "healthy"
    assert together([one("healthy"), one("unknown")]) == "unknown"
    assert together([]) == "unknown"


def test_a_node_exactly_at_the_tolerance_is_drained_in_at_most_one_of_a_hundred():
    draw = random.Random(1)

    def drawn(mean: float) -> Reading:
        return rates(*(draw.gauss(mean, 5) for _ in range(10)))

    runs = [judge("x", drawn(90), drawn(100), 0.1).outcome for _ in range(1000)]
    assert runs.count("sick") <= 10
