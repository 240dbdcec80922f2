"""A job that waits for what is stopped: no cost, no share, exit code 3."""

from __future__ import annotations

import pytest
from costly import session
from virtual_cost import Daemon, measured

from crosswind.cost.result import Cost
from crosswind.cost.verdict import Verdict


def test_a_job_that_is_slower_without_the_target_has_no_cost_and_no_share():
    """As a training rank beside its two data loaders: it was called "costs less than 1 % (95 %): -583.3 % ± 360.7"."""
    found = session((0.0, 0.0), slower=-3.0, noise=0.4)
    assert found.verdict.outcome == "unknown"
    assert found.shares == {}
    assert found.sentence == "the job waits for exporter and agent, so their cost cannot be measured by stopping them"
    figures = found.to_dict()
    assert not any(abs(one["value"]) < 1e9 for cost in figures["costs"] for one in cost["estimates"].values())
    assert "needed" in {one["code"] for one in found.warnings}


def test_one_that_stood_still_is_named():
    found = session(quads=0)
    found.document["waited_for"] = [0]
    assert "the job waits for exporter, so its cost" in Cost(found.document).sentence
    assert Cost(found.document).verdict.outcome == "unknown"


def test_an_estimate_that_no_share_can_be_gives_no_shares():
    found = session((0.02, 0.01), noise=3.0, quads=30)
    assert found.verdict.outcome == "unknown"
    assert found.shares == {}


def test_a_session_in_which_the_job_stands_still_ends_with_its_name():
    def waits(world):
        world.work_needs_it = True
        _, pass_time = world.job_s, world._pass

        def passed(step):
            before = world.work
            pass_time(step)
            if world.stopped:
                world.work = before

        world._pass = passed

    found = measured(Daemon(0.001, 0.01), 1, 12.0, change=waits)
    assert found.document["waited_for"] == [0]
    assert found.sentence == "the job waits for agent, so its cost cannot be measured by stopping it"


@pytest.mark.parametrize(("others", "at_random"), [(0.05, True), (0.2, True), (0.36, False), (0.47, True)])
def test_a_cost_is_a_share_of_the_jobs_own_rate_beside_others_of_a_fixed_demand(others, at_random):
    """Before, 1.885, 1.630, 1.270 and 1.046 % for 2 %, and never in the interval from a fifth on."""
    daemon = Daemon(0.02 * 0.01 * (1.0 - others), 0.01, at_random=at_random)
    values, held = [], 0
    for seed in range(4):
        found = measured(daemon, seed, 12.0, others=others, to_the_end=True)
        values.append(found.verdict.value)
        held += found.verdict.low <= 0.02 <= found.verdict.high
        assert found.costs[0].best.part == pytest.approx(1.0 - others, abs=0.02)
    assert held >= 3
    assert sum(values) / 4 == pytest.approx(0.02, abs=0.0015)
    if others > 0.05:
        assert "busy-host" in {one["code"] for one in found.warnings}


def test_the_remaining_time_is_a_range_that_does_not_believe_a_noisy_mean():
    """ "22 s more" stood beside -5.1 % ± 12.4."""
    from crosswind.cost.verdict import judge
    from crosswind.statistics.jackknife import Estimate

    noisy = judge(Estimate(-0.051, 0.0612, 40), 0.01, 0.05, 5.0)
    assert noisy.more_s > 300.0
    assert noisy.in_time.startswith("Measure at least")
    near = judge(Estimate(0.05, 0.02, 40), 0.01, 0.05, 60.0)
    assert 0.0 < near.more_s < near.most_more_s
    assert "about" in near.in_time
    assert (
        Verdict("unknown", 0.0, -0.1, 0.1, 0.01, 8000.0, 9e9).in_time == "Measuring for hours more would not settle it"
    )
