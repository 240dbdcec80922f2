"""Which reading is the odd one among others: false alarms and faults found, by drawn readings whose truth is known."""

import random

import pytest

from crosswind.check.decision import Reading
from crosswind.check.outliers import LEAST_OTHERS, among, judged_hosts, judged_links

HOSTS, BATCHES = 8, 8


def drawn(rng: random.Random, mean: float, between: float, within: float) -> Reading:
    """Return the rate of a node that differs from others (standard deviation `between`) and from batch to batch."""
    middle = mean * rng.gauss(1.0, between)
    return Reading(tuple(middle * rng.gauss(1.0, within) for _ in range(BATCHES)))


def cluster(rng: random.Random, sick: float = 0.0) -> dict[str, dict[str, Reading]]:
    means = [100.0] * (HOSTS - 1) + [100.0 * (1.0 - sick)]
    return {f"h{k}": {"compute cpu 0": drawn(rng, mean, 0.02, 0.02)} for k, mean in enumerate(means)}


def sick_hosts(readings):
    return [host for host, found in judged_hosts(readings, 0.1).items() if found[0].outcome == "sick"]


def test_healthy_clusters_raise_false_alarms_in_at_most_one_of_a_hundred():
    rng = random.Random(1)
    assert sum(bool(sick_hosts(cluster(rng))) for _ in range(500)) <= 5


def test_a_host_at_half_speed_is_found_and_no_other():
    rng = random.Random(2)
    assert sum(sick_hosts(cluster(rng, 0.5)) == ["h7"] for _ in range(100)) >= 95


def test_where_hosts_differ_as_much_nobody_is_the_odd_one():
    others = [Reading((mean, 1.01 * mean, 0.99 * mean, mean)) for mean in (50.0, 80.0, 100.0, 130.0, 160.0)]
    found = among("compute", Reading((60.0, 60.5, 59.5, 60.0)), others, 0.1)
    assert found.outcome != "sick"


def test_two_sick_hosts_of_eight_hide_neither():
    rng = random.Random(3)
    readings = cluster(rng, 0.4)
    readings["h0"] = {"compute cpu 0": drawn(rng, 60.0, 0.02, 0.02)}
    assert sick_hosts(readings) == ["h0", "h7"]


def test_a_faster_host_is_no_outlier():
    rng = random.Random(4)
    assert sick_hosts(cluster(rng, -0.5)) == []


def test_the_processors_of_other_hosts_are_the_others():
    fine = {f"memory cpu {cpu}": Reading((100.0, 101.0, 99.0, 100.0)) for cpu in range(2)}
    slow = fine | {"memory cpu 1": Reading((50.0, 50.5, 49.5, 50.0))}
    found = judged_hosts({"a": fine, "b": fine, "c": slow}, 0.1)
    assert [(each.name, each.outcome) for each in found["c"]] == [("memory cpu 1", "sick"), ("memory cpu 0", "healthy")]


@pytest.mark.parametrize("count", range(LEAST_OTHERS))
def test_with_too_few_others_it_is_unknown_and_says_why(count):
    found = among("noise", Reading((0.5,) * 4, "share"), [Reading((0.0,) * 4, "share")] * count, 0.1)
    assert (found.outcome, found.why) == ("unknown", f"{count} others, {LEAST_OTHERS} are needed")


def test_a_busy_host_is_excused():
    others = [Reading((0.01, 0.011, 0.009, 0.01), "share")] * 4
    noisy = Reading((0.4, 0.41, 0.39, 0.4), "share", excusable=True)
    assert among("noise", noisy, others, 0.1).outcome == "sick"
    assert among("noise", noisy, others, 0.1, busy=True).outcome == "unknown"


def test_a_link_at_a_third_is_found():
    rates = {(a, b): 100.0 + k for k, (a, b) in enumerate((a, b) for a in "abcd" for b in "abcd" if a != b)}
    rates["c", "a"] = 33.0
    assert [link for link, found in judged_links(rates, 0.1).items() if found.outcome == "sick"] == [("c", "a")]
