"""A node held against its own earlier checks."""

import os
import random

import pytest
from checks import checked

from crosswind.check.decision import Reading
from crosswind.check.history import FIRST, LEAST_PAST, MOST_PAST, earlier, keep
from crosswind.check.result import Check


def past(count, **changed):
    return [checked(memory=100.0 + k % 3, at=f"2026-01-0{k + 1}T00:00:00Z", **changed) for k in range(count)]


def now(previous, **changed):
    return Check(checked(at="2026-02-01T00:00:00Z", **changed).document, None, previous)


def test_a_node_slower_than_it_was_is_sick():
    found = now(past(LEAST_PAST), memory=50.0)
    assert (found.outcome, found.exit_code) == ("sick", 1)
    assert found.sentence.startswith("sick: memory cpu 0 is 50")


def test_a_node_as_it_was_is_healthy():
    found = now(past(LEAST_PAST))
    assert (found.exit_code, found.sentence) == (
        0,
        "healthy: 2 measures within tolerance of the median of 5 earlier checks",
    )


def test_what_every_earlier_check_measured_and_this_one_did_not_is_unknown():
    earlier = past(LEAST_PAST)
    noise = {"noise": earlier[0].document["readings"]["noise"]}
    found = now(earlier, readings=noise)
    assert found.sentence == "unknown: memory cpu 0 is not known (not measured)"


def test_with_too_few_nothing_is_judged():
    found = now(past(LEAST_PAST - 1), memory=50.0)
    assert (found.exit_code, found.judged) == (3, [])
    assert found.sentence == "No verdict: no baseline, and 4 of the 5 quiet-host checks needed so far"


def test_checks_of_a_busy_host_are_no_history():
    found = now(past(LEAST_PAST, others=0.5), memory=50.0)
    assert not found.judged
    assert found.sentence.endswith("0 of the 5 quiet-host checks needed so far")
    assert now([*past(LEAST_PAST), *past(2, others=0.5)]).sentence.endswith("of the median of 5 earlier checks")


def test_what_is_kept_is_found_again_by_node_and_in_order(tmp_path):
    checks = past(3)
    for one in [*reversed(checks), checked(node="other"), checked(node="node1-b")]:
        keep(tmp_path / "new", one)
    found, told = earlier(tmp_path / "new", "node1")
    assert [one.document["at"] for one in found] == [one.document["at"] for one in checks]
    assert told == []
    assert earlier(tmp_path / "none", "node1") == ([], [])


def test_a_file_there_that_is_no_check_is_named_and_ends_no_other_check(tmp_path):
    keep(tmp_path, past(1)[0])
    (tmp_path / "node1-x.json").write_text('{"kind": "plan"}')
    (tmp_path / "node1-y.json").write_text('{"kind": "check", "schema_version": 99}')
    found, told = earlier(tmp_path, "node1")
    assert len(found) == 1
    assert [each["code"] for each in told] == ["not-read", "not-read"]
    assert "node1-x.json" in told[0]["message"]


def test_a_damaged_file_before_all_others_is_named_once(tmp_path):
    keep(tmp_path, past(1)[0])
    (tmp_path / "node1-0.json").write_text("{")
    found, told = earlier(tmp_path, "node1")
    assert (len(found), [each["code"] for each in told]) == (1, ["not-read"])


def test_a_verdict_stands_in_the_file(tmp_path):
    path = keep(tmp_path, now(past(LEAST_PAST), memory=50.0))
    assert Check.load(path).outcome == "sick"


def course(losing, checks, seed=1, apart=0.01):
    """Check a node that loses a part of its speed from check to check; what each check says, with the speed then."""
    rng, before, found = random.Random(seed), [], []
    for number in range(checks):
        speed = (1 - losing) ** number
        rate = 100 * speed * rng.gauss(1, apart)
        reading = Reading(tuple(rate * rng.gauss(1, 0.01) for _ in range(10)))
        one = Check(checked(readings={"compute cpu 0": reading.to_dict()}).document, None, list(before))
        found.append((speed, one.outcome, one.sentence))
        before.append(Check(one.document))
    return found


@pytest.mark.parametrize("losing", [0.002, 0.005, 0.01, 0.02])
def test_a_node_that_loses_a_little_from_check_to_check_is_never_healthy_beyond_its_tolerance(losing):
    """The median of the last checks follows a trend, and so does their spread: the first ones count."""
    found = course(losing, 120)
    assert not [speed for speed, outcome, _ in found if outcome == "healthy" and speed < 0.87]
    assert found[-1][1] == "sick"
    assert "against its first 5 checks" in found[-1][2]
    assert not [speed for speed, outcome, _ in found if outcome == "sick" and speed > 0.9]


@pytest.mark.parametrize("apart", [0.01, 0.03])
def test_a_node_without_a_trend_is_not_sick_for_its_first_checks(apart):
    outcomes = [outcome for seed in range(6) for _, outcome, _ in course(0.0, 50, seed, apart)[LEAST_PAST:]]
    assert outcomes.count("sick") <= len(outcomes) // 100
    assert outcomes.count("healthy") > 0.9 * len(outcomes)


def test_a_node_among_checks_that_differ_as_much_is_unknown():
    means = [100.0, 60.0, 130.0, 80.0, 100.0, 150.0, 70.0]
    before = [checked(memory=mean, at=f"2026-01-0{k + 1}T00:00:00Z") for k, mean in enumerate(means)]
    found = now(before, memory=62.0)
    assert found.outcome == "unknown"


def test_rates_of_any_size_in_the_history_end_no_check():
    before = [checked(memory=mean, at=f"2026-01-{k + 1:02}T00:00:00Z") for k, mean in enumerate([1e300, 1e-300] * 6)]
    assert now(before, memory=1.0).outcome in ("sick", "unknown")


def test_the_first_quiet_checks_are_read_as_well_as_the_last_ones(tmp_path):
    for number in range(MOST_PAST + 20):
        at = f"2026-01-01T00:{number // 60:02}:{number % 60:02}Z"
        keep(tmp_path, checked(at=at, others=0.5 if number == 1 else 0.0))
    found, told = earlier(tmp_path, "node1")
    seconds = [int(one.document["at"][-6:-4]) * 60 + int(one.document["at"][-3:-1]) for one in found if not one.busy]
    assert (seconds[:FIRST], told) == ([0, 2, 3, 4, 5], [])
    assert seconds[FIRST:] == list(range(20, 20 + MOST_PAST))


def test_a_fifo_and_a_link_in_the_directory_are_left_out(tmp_path):
    keep(tmp_path, past(1)[0])
    os.mkfifo(tmp_path / "node1-x.json")
    (tmp_path / "node1-y.json").symlink_to("/etc/shadow")
    (tmp_path / "node1-z.json").symlink_to("/dev/zero")
    found, told = earlier(tmp_path, "node1")
    assert (len(found), [each["code"] for each in told]) == (1, ["not-read"] * 3)
    assert "not a regular file" in told[0]["message"]
    assert "a symbolic link" in told[1]["message"]
