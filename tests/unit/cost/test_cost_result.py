"""From what was counted to headline, verdict, shares and warnings."""

from __future__ import annotations

import pytest
from costly import session

from crosswind.cost import _resumed, result
from crosswind.cost.result import Cost
from crosswind.cost.scale import at_scale, disturbance, parsed_program
from crosswind.cost.session import Settings
from crosswind.errors import DescriptionError
from crosswind.files.kinds import found_at
from crosswind.statistics.interim import Looks
from crosswind.statistics.jackknife import Estimate


def codes(found: Cost) -> set[str]:
    return {one["code"] for one in found.warnings}


def test_a_costly_target_is_above_the_margin_and_its_cost_is_taken_apart():
    found = session((0.02,), slower=0.005)
    one = found.costs[0]
    assert one.headline == "exchange"
    assert found.verdict.outcome == "above"
    assert one.best.value == pytest.approx(0.025, abs=0.002)
    assert one.taken == pytest.approx(0.02, abs=5e-4)
    assert one.slower is not None
    assert one.slower.value == pytest.approx(0.005, abs=0.002)
    assert found.sentence.startswith("exporter costs 2.")
    assert not codes(found)


def test_nothing_is_below_the_margin():
    found = session((0.0005,), noise=0.002, quads=900)
    assert found.verdict.outcome == "below"
    assert "less than 1 %" in found.sentence


@pytest.mark.parametrize(
    ("job", "theirs", "headline"),
    [
        ({}, [1], "exchange"),
        ({"cpus": [0]}, [1], "own"),
        ({"cpus": [0, 1], "wants_cpus": 1.0}, [0, 1], "wall"),
        ({"cpus": [0, 1], "wants_cpus": 1.99}, [0, 1], "exchange"),
        ({"cpus": [1]}, [0, 1], "wall"),
        ({"wants_cpus": 0.4}, [1], "wall"),
    ],
)
def test_the_headline_is_the_estimator_that_holds(job, theirs, headline):
    found = session((0.02,), job=job)
    found.targets[0]["cpus"] = theirs
    assert Cost(found.document).costs[0].headline == headline


def test_on_two_processors_a_duty_counts_half():
    found = session((0.02,), job={"cpus": [0, 1], "wants_cpus": 1.99})
    assert found.costs[0].taken == pytest.approx(0.01, abs=5e-4)


def test_a_target_without_cpu_time_is_judged_by_own():
    found = session((0.0,), slower=0.03)
    assert (found.costs[0].headline, found.verdict.outcome) == ("own", "above")
    found.targets[0]["cpus"] = [0, 1]  # it may run anywhere, and does not
    assert Cost(found.document).costs[0].headline == "own"


def test_catching_up_is_said_and_scaled():
    found = session((0.01,), catching_up=2.0)
    assert "catching-up" in codes(found)
    assert found.costs[0].best.value == pytest.approx(0.01, abs=0.0015)
    assert found.costs[0].estimates["available"].value == pytest.approx(0.02, abs=0.0025)


def test_other_circumstances_are_said():
    assert "cpu-progress" in codes(session(job={"progress": "cpu"}))
    assert "coarse-progress" in codes(session(job={"block_s": 0.5}))
    assert "needed" in codes(session((0.0,), slower=-0.2))
    starved = session()
    starved.document["quads"]["wall_s"] = [[0.4, 0.4]] * 300
    assert "busy-host" in codes(Cost(starved.document))
    leaking = session()
    leaking.document["quads"]["x_cpu_s"] = [[x, x] for _, x in leaking.document["quads"]["x_cpu_s"]]
    assert "not-stopped" in codes(Cost(leaking.document))


def test_more_than_the_whole_job_is_not_settled_and_the_reason_is_said(monkeypatch):
    starved = session((0.5,))
    starved.document["quads"]["wall_s"] = [[0.4, 0.4]] * 300
    monkeypatch.setattr(result, "estimate", lambda quads, name, duty: Estimate(1.85, 0.4, 40))
    found = Cost(starved.document)
    assert found.costs[0].is_beyond
    assert found.verdict.outcome == "unknown"
    assert found.sentence.startswith("Not settled: the estimate, ")
    assert "is more than the whole job; others had 9" in found.sentence
    assert not any("costs down to" in one["message"] for one in found.warnings)


def test_shares_sum_to_what_all_cost_together():
    found = session((0.02, 0.01), quads=900)
    assert [one.name for one in found.costs] == ["exporter", "agent", "exporter + agent"]
    assert sum(found.shares.values()) == pytest.approx(found.costs[-1].best.value)
    first, second = found.shares.values()
    assert first == pytest.approx(0.02, abs=0.002)
    assert second == pytest.approx(0.01, abs=0.002)


def test_a_file_gives_the_same_figures_again(tmp_path):
    found, file = session((0.02,)), tmp_path / "cost.json"
    found.save(file)
    assert Cost.load(file).to_dict() == found.to_dict()
    assert found_at(file).kind == "cost"


def test_a_session_without_quads_is_unknown_and_its_file_is_json(tmp_path):
    found = session(quads=0)
    assert found.verdict.outcome == "unknown"
    assert "too little" in found.sentence
    found.save(tmp_path / "cost.json")
    text = (tmp_path / "cost.json").read_text()
    assert "NaN" not in text
    assert "Infinity" not in text


def test_recorded_intervals_cost_at_scale_what_the_exchange_rate_says():
    found = session((0.02,), slower=0.01, intervals=True)
    recorded = disturbance(found).to_dict()["source"][0]
    taken = sum(duration for _, duration, _ in recorded["cpu"][0]["intervals"]) / recorded["length_s"]
    assert taken == pytest.approx(found.costs[0].best.value, rel=0.02)
    scaled = at_scale(found, 64, parsed_program("bsp:work_s=0.01,iterations=50"), seeds=2)
    assert scaled.cost > found.costs[0].best.value  # one of 64 ranks is struck in nearly each step
    assert scaled.cost > scaled.aligned_cost


def test_what_cannot_be_scaled_is_refused():
    with pytest.raises(DescriptionError, match="kept no intervals"):
        disturbance(session())
    with pytest.raises(DescriptionError, match="nothing to scale"):
        disturbance(session((0.02,), slower=-0.1, intervals=True))
    with pytest.raises(DescriptionError, match="NAME=VALUE"):
        parsed_program("bsp:work_s")


def test_a_session_goes_on_only_with_the_same_targets_job_and_margin_and_while_error_is_left():
    settings = Settings(seconds=60.0, undisturbed_s=12.0)
    before = session()
    gone_on = Cost(_resumed(before, session(quads=0).document, settings))
    assert len(gone_on.costs[0].quads) == 300
    assert gone_on.looks.planned_s == pytest.approx(before.looks.taken[-1][0] + 48.0)
    for other, said in (
        (session(margin=0.02), "--margin"),
        (session(job={"command": ["./other"]}), "the job"),
        (session(job={"progress": "io"}), "--progress"),
        (session((0.01, 0.01)), "--of"),
        (session(host={"name": "there"}), "the host"),
    ):
        with pytest.raises(DescriptionError, match=said):
            _resumed(before, other.document, settings)
    once = Looks(24.0, one=True)
    once.look(24.0)
    with pytest.raises(DescriptionError, match="had one look"):
        _resumed(session(looks=once.to_dict()), before.document, settings)
