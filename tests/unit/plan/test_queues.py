"""Plans of thresholds and credits: simulated, held, and explained."""

import json

import pytest

import crosswind
from crosswind.errors import DescriptionError, InfeasibleError
from crosswind.experiment import Experiment
from crosswind.plan.queues import THRESHOLDS, plan_queues

A = {"name": "A", "class": "parallel", "from": 0, "to": 1, "message_bytes": 64}
LOCAL = {"name": "local", "class": "local", "from": 0, "to": 2, "message_bytes": 16384, "arrivals": "backlogged"}
BULK = {**A, "name": "bulk", "message_bytes": 4096, "arrivals": "backlogged", "outstanding": 8}


def streams(*several, **more):
    workload = {"kind": "streams", "hosts": 4, "stream": list(several)}
    return Experiment.from_dict({"schema_version": 1, "name": "both", "workload": workload, **more})


def test_a_plan_holds_the_limit_and_is_what_a_run_with_its_policy_comes_to():
    experiment = streams(BULK, LOCAL)
    plan = plan_queues(experiment, local_slowdown=4.0)
    assert plan.data["local_slowdown"] <= 4.0
    again = crosswind.run(experiment.fixed({f"policy.{name}": value for name, value in plan.policy.items()}))[0]
    assert again.stream("local")["slowdown_queued"] == pytest.approx(plan.data["local_slowdown"])
    assert again.stream("bulk")["slowdown_queued"] == pytest.approx(plan.data["parallel_slowdown"])
    assert again.stream("bulk")["slowdown_fifo"] == pytest.approx(plan.data["fifo"]["parallel_slowdown"])


def test_of_all_that_was_tried_none_that_holds_the_limit_is_better_by_more_than_1_percent():
    plan = plan_queues(streams(BULK, LOCAL), local_slowdown=4.0)
    assert len(plan.tried) == 5 * len(THRESHOLDS) == plan.to_arrow().num_rows
    holding = [one["parallel_slowdown"] for one in plan.tried if one["holds"]]
    assert plan.data["parallel_slowdown"] <= 1.01 * min(holding)
    assert {one["holds"] for one in plan.tried} == {True, False}
    pairs = [(one["local_slowdown"], one["parallel_slowdown"]) for one in plan.frontier]
    assert pairs == sorted(pairs)
    assert [parallel for _, parallel in pairs] == sorted({parallel for _, parallel in pairs}, reverse=True)


def test_a_tighter_limit_costs_the_parallel_class_and_lowers_the_threshold():
    tight, wide = (plan_queues(streams(BULK, LOCAL), local_slowdown=limit) for limit in (2.5, 8.0))
    assert tight.policy["threshold"] < wide.policy["threshold"]
    assert tight.data["parallel_slowdown"] > wide.data["parallel_slowdown"]


def test_where_more_gives_the_parallel_class_nothing_the_smallest_threshold_is_taken():
    plan = plan_queues(streams(A, LOCAL), local_slowdown=3.0)
    assert plan.policy == {"queue": "drr", "threshold": 1, "credits": "none"}
    assert plan.data["fifo"]["parallel_slowdown"] > 3 * plan.data["parallel_slowdown"]


def test_the_promise_goes_with_the_policy_and_names_streams_that_it_can_hold():
    plan = plan_queues(streams(BULK, LOCAL, policy={"queue": "threshold"}), local_slowdown=4.0)
    assert plan.policy["queue"] == "threshold"
    promise, threshold = plan.data["promise"], plan.policy["threshold"]
    frame_s = 1024 / 19.375e6
    assert promise["longest_wait_s"] == pytest.approx(threshold * frame_s)
    assert promise["least_share"] == pytest.approx(1 / (1 + threshold))
    if plan.policy["credits"] == "none":
        assert promise["credit_wait_s"] is None
        assert [stream["name"] for stream in promise["streams"]] == ["local"]


def test_on_the_receiving_side_credits_help_and_their_wait_is_promised():
    test = {**A, "to": 2, "message_bytes": 2048}
    merging = streams(test, {**LOCAL, "from": 1, "outstanding": 2})
    plan = plan_queues(merging, local_slowdown=3.0)
    assert plan.policy["credits"] == "receiver"
    assert plan.data["promise"]["credit_wait_s"] >= 0.01
    assert plan.data["promise"]["streams"] == []
    without = min(one["parallel_slowdown"] for one in plan.tried if one["credits"] == "none")
    assert plan.data["parallel_slowdown"] < without


def test_seeds_are_averaged_and_progress_is_told():
    told = []
    drawn = {**A, "gap_s": {"distribution": "exponential", "mean": 1e-3}}
    plan = plan_queues(
        streams(drawn, LOCAL, repetitions=2), local_slowdown=3.0, workers=1, progress=lambda part, _: told.append(part)
    )
    assert plan.data["seeds"] == 2
    assert told[-1] == 1.0
    assert len(told) == 2 * len(plan.tried)


def test_what_cannot_be_held_is_refused_with_the_lowest_there_is():
    with pytest.raises(InfeasibleError, match="no threshold holds") as refused:
        plan_queues(streams(BULK, LOCAL), local_slowdown=1.001)
    assert "the lowest is" in refused.value.hint
    assert "threshold 1" in refused.value.hint


@pytest.mark.parametrize("limit", [1.0, 0.5, float("nan"), float("inf")])
def test_a_limit_out_of_range_is_refused(limit):
    with pytest.raises(DescriptionError, match="local_slowdown is"):
        plan_queues(streams(A, LOCAL), local_slowdown=limit)


def test_sweeps_one_class_and_other_kinds_are_refused():
    with pytest.raises(DescriptionError, match="sweeps policy"):
        plan_queues(streams(A, LOCAL, sweep={"policy.threshold": [1, 2]}), local_slowdown=2.0)
    with pytest.raises(DescriptionError, match="nothing of class local"):
        plan_queues(streams(A), local_slowdown=2.0)
    with pytest.raises(DescriptionError, match="nothing of class parallel"):
        plan_queues(streams(LOCAL), local_slowdown=2.0)
    with pytest.raises(DescriptionError, match="is of kind farm"):
        plan_queues("examples/fork_graph.toml", local_slowdown=2.0)


def test_a_plan_is_saved_whole(tmp_path):
    plan = plan_queues(streams(A, LOCAL), local_slowdown=3.0)
    plan.save(tmp_path / "plan.json")
    assert json.loads((tmp_path / "plan.json").read_text()) == plan.to_dict()
