"""A cost is called less than the margin only where bursts that were not seen cannot cost more."""

from __future__ import annotations

import math

import numpy as np
import pytest
from costly import session
from virtual_cost import Daemon, measured

from crosswind.cost.bursts import REST_S, Life, Watched, doubt, most, needed_s, number_of_bursts
from crosswind.cost.result import Cost

RARE = Daemon(0.5, 10.0, piles_up=True)
"""As most monitoring agents: 5 % of a CPU, half a second at a time."""


@pytest.mark.parametrize(
    ("daemon", "seconds"),
    [
        (RARE, 60.0),
        (Daemon(0.2, 10.0), 60.0),
        (Daemon(0.4, 20.0, at_random=True), 60.0),
        (Daemon(0.1, 5.0), 30.0),
        (Daemon(0.02, 1.0, at_random=True), 12.0),
        (Daemon(2e-5, 0.01, piles_up=True, also=RARE), 60.0),
    ],
    ids=[
        "5 % each 10 s",
        "2 % each 10 s",
        "2 % each 20 s, at random",
        "2 % each 5 s",
        "2 %",
        "steady, and rare bursts",
    ],
)
def test_bursts_are_not_cleared_because_none_fell_into_a_block(daemon, seconds):
    """Before, 1 to 11 of 20 such sessions said that these cost less than 1 %."""
    for seed in range(3):
        found = measured(daemon, seed, seconds)
        assert found.verdict.outcome != "below", f"seed {seed}: {found.sentence}"
        assert found.verdict.high > daemon.duty


def test_a_session_that_saw_no_burst_says_what_is_not_excluded():
    found = measured(Daemon(0.0, 1.0), 1, 12.0)
    assert found.verdict.outcome == "unknown"
    assert "rarer than one in 4 s would not have been seen" in found.sentence
    assert found.verdict.high == math.inf
    assert found.verdict.more_s == pytest.approx(needed_s() - 12.0, abs=1.0)
    long = measured(Daemon(0.0, 1.0), 1, 80.0)
    assert long.verdict.outcome == "below"
    assert "No burst of it was seen in 80 s: those rarer than one in 27 s are not excluded" in long.sentence


def test_few_bursts_are_counted_in_the_answer():
    found = measured(RARE, 3, 30.0)
    assert found.verdict.outcome == "unknown"
    assert "bursts were seen, too few to know what they cost. Measure about" in found.sentence


def test_half_of_the_time_is_enough_of_a_process_that_was_quiet_for_an_hour():
    quiet = Daemon(2e-5, 0.01)
    assert measured(quiet, 2, 60.0).verdict.outcome == "unknown"
    found = measured(quiet, 2, 60.0, age_s=3600.0)
    assert found.verdict.outcome == "below"
    assert found.costs[0].watched.seconds > needed_s(0.5)


def test_a_process_that_used_more_over_its_life_than_was_seen_is_not_cleared():
    found = session((0.0005,), noise=0.002, quads=900)
    assert found.verdict.outcome == "below"
    found.targets[0] |= {"age_s": 36_000.0, "used_s": 720.0}
    again = Cost(found.document)
    assert again.verdict.outcome == "unknown"
    assert "it used 2 % of a CPU over the 10 h since its start, more than was seen in 78 s" in again.sentence


def test_a_young_process_has_no_life_to_go_by():
    assert not Life(10.0, 9.0).is_known
    assert 0.00115 < Life(3600.0, 3.6).most < 0.0012  # of 180 bursts, 154 at least
    assert Life(75.0, 0.075).most == pytest.approx(0.001 * 75 / REST_S)


def test_undisturbed_cpu_time_forbids_the_estimator_without_it():
    found = session((0.0,))
    assert found.costs[0].headline == "own"
    found.document["undisturbed"]["cpu_s"][7] = [0.05]
    assert Cost(found.document).costs[0].headline == "exchange"
    assert Cost(found.document).verdict.outcome == "unknown"


@pytest.mark.parametrize("every_s", [0.5, 3.0])
def test_the_number_of_bursts_is_told_by_the_variance_of_windows(every_s):
    draw, ends = np.random.default_rng(3), 0.1 * np.arange(3001)
    starts = np.cumsum(draw.exponential(every_s, 2000))
    counted = 0.02 * np.histogram(starts, ends)[0]
    true = np.sum(starts < ends[-1])
    assert 0.6 * true < number_of_bursts(np.diff(ends), counted) < 1.4 * true


def test_the_upper_limit_of_few_bursts_holds_in_97_of_100():
    draw, rate, seconds = np.random.default_rng(4), 1.0 / REST_S, 100.0
    seen = draw.poisson(rate * seconds, 4000)
    held = np.mean([most(n / seconds, float(n)) >= rate for n in seen])
    assert held >= 0.975


def test_what_short_children_used_is_a_doubt_where_it_could_be_the_margin():
    """A shell that starts programs uses nothing itself: each of them ends before it is found."""
    quiet = np.full(800, 0.1), np.zeros(800)
    for unseen_s, doubted in ((0.0, False), (0.1, False), (0.5, True), (20.0, True)):
        watched = Watched(quiet, (np.zeros(0), np.zeros(0)), quiet, Life(0.0, 0.0), unseen_s)
        found = doubt(watched, 0.01, 1.0, takes_cpu=True)
        assert (found is not None and "ended before they could be counted" in found.why) is doubted, unseen_s
