"""Planned against seen: what a run says of its platform, and when the platform's file is stale."""

import json

import pytest

import crosswind
from crosswind.errors import DescriptionError
from crosswind.experiment import Experiment
from crosswind.report.run_tables import seen_table
from crosswind.run.bounds import complete
from crosswind.run.drift import observed_rates, stale_warnings

PAIR = {
    "schema_version": 1,
    "name": "pair",
    "node": [
        {"name": "r", "compute_per_s": 2.0},
        {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0},
    ],
}


def experiment(changes=(), **policy):
    workload = {"kind": "farm", "tasks": 300, "task_size_mb": 1.0, "task_work": 1.0}
    described = {"schema_version": 1, "name": "two", "platform": PAIR, "workload": workload, "policy": policy}
    return Experiment.from_dict({**described, "change": list(changes)})


def node(planned, seen, sd=0.01, observations=20, field="compute_per_s"):
    rate = {"planned": planned, "seen": seen, "sd": sd, "observations": observations}
    return {"name": "a", "seen": {field: rate}}


@pytest.mark.parametrize(
    ("given", "stale"),
    [
        (node(4.0, 2.0), True),
        (node(4.0, 3.7), False),  # within a tenth
        (node(4.0, 2.0, sd=0.9), False),  # not certain
        (node(4.0, 2.0, observations=5), False),  # too few
        (node(None, 2.0), False),  # nothing planned
        (node(0.04, 0.047, field="ir_send_s_per_mb", sd=0.001), False),  # interference: within a quarter
        (node(0.04, 0.06, field="ir_send_s_per_mb", sd=0.001), True),
    ],
)
def test_a_file_is_stale_where_it_is_certainly_wrong_by_more_than_matters(given, stale):
    [rate] = observed_rates([given])
    assert rate.stale is stale
    assert [told["code"] for told in stale_warnings([given])] == ["platform-stale"] * stale


def test_the_warning_names_the_nodes_that_are_off_the_furthest_first():
    nodes = [node(4.0, 5.0) | {"name": f"n{k}"} for k in range(6)] + [node(9.0, 3.0) | {"name": "worst"}]
    [told] = stale_warnings(nodes)
    assert "worst: compute rate 3 work units/s, planned 9 (-67%); n0" in told["message"]
    assert told["message"].endswith("and 3 more")
    assert "measure" in told["hint"]


def test_a_host_that_the_platform_does_not_have_is_said_to_be_outside_of_the_bound():
    [point] = experiment().points()
    summary = crosswind.run(experiment())[0].data
    for name, warned in (("a", False), ("guest", True)):  # a guest that only comes again is in the bound
        events = [{"t_s": 1.0, "code": "agent-joined", "node": name, "tasks": None, "message": "joined"}]
        told = complete({**summary, "warnings": [], "events": events}, point)["warnings"]
        assert [warning["message"].split()[0] for warning in told] == (["guest"] if warned else [])


def test_a_simulated_change_is_seen_warned_of_and_survives_the_file(tmp_path):
    changes = [{"at_s": 10.0, "node": "a", "compute_per_s": 2.0}]
    runs = crosswind.run(experiment(changes, adapt=True))
    [run] = runs
    assert [event["code"] for event in run.events] == ["rates-changed"]
    rates = {(rate.node, rate.field): rate for rate in observed_rates(run.nodes)}
    assert rates["a", "compute_per_s"].seen == pytest.approx(2.0, rel=0.05)
    assert rates["a", "compute_per_s"].planned == 4.0
    codes = {told["code"] for told in run.warnings}
    assert codes == {"platform-stale", "bound-before-changes"}
    runs.save(tmp_path / "runs.json")
    assert crosswind.Runs.load(tmp_path / "runs.json")[0].nodes == run.nodes
    table = seen_table(run.nodes)
    assert table is not None
    assert (table.rows[0][0], table.rows[0][-1]) == ("a", "stale")
    json.dumps(run.summary())


def test_without_adapting_nothing_is_estimated_in_a_simulation():
    [run] = crosswind.run(experiment())
    assert all("seen" not in node for node in run.nodes)
    assert run.warnings == []
    assert seen_table(run.nodes) is None


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"at_s": 1.0, "node": "b", "leaves": True}, 'change[0].node is "b", which is no node'),
        ({"at_s": 1.0, "node": "r", "leaves": True}, "change[0].node is the root"),
        ({"at_s": 1.0, "node": "a"}, "change[0] must say one thing"),
        ({"at_s": 1.0, "node": "a", "leaves": True, "compute_per_s": 1.0}, "change[0] must say one thing"),
        ({"at_s": 1.0, "node": "a", "joins": True}, "change[0].joins is true for a node that is there"),
        ({"at_s": -1.0, "node": "a", "leaves": True}, "at_s"),
        ({"at_s": 1.0, "node": "r", "receive_limit_mb_per_s": 1.0}, "has no parent to receive from"),
        ({"at_s": 1.0, "node": "a", "compute_per_s": 0.0}, "greater than 0"),
        ({"at_s": 1.0, "node": "a", "compute": 1.0}, "compute"),
    ],
)
def test_a_change_that_cannot_be_is_refused_with_its_place(change, says):
    with pytest.raises(DescriptionError) as refused:
        experiment([change])
    assert says in str(refused.value)


def test_planned_rates_and_adapting_do_not_go_together():
    with pytest.raises(DescriptionError, match=r"policy\.adapt is true with order"):
        experiment(order="planned", adapt=True)


def test_nodes_that_leave_and_join_are_part_of_an_experiment():
    changes = [{"at_s": 20.0, "node": "a", "joins": True}, {"at_s": 10.0, "node": "a", "leaves": True}]
    [run] = crosswind.run(experiment(changes))
    assert [(event["t_s"], event["code"]) for event in run.events] == [(10.0, "node-left"), (20.0, "node-joined")]
    assert run.makespan_s > 300 / 6 + 5


@pytest.mark.parametrize("result_size_mb", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("order", ["interference", "bandwidth", "arrival"])
def test_a_simulation_on_its_own_platform_never_says_that_the_platform_is_wrong(order, result_size_mb):
    """Results on their way up cost the processor of the root, which adapts: not a slower processor."""
    rates = {"receive_limit_mb_per_s": 20.0, "ir_send_s_per_mb": 0.01, "ir_receive_s_per_mb": 0.005}
    children = [{"name": f"n{k}", "parent": "r", "compute_per_s": 4.0 + k, **rates} for k in range(6)]
    platform = {"schema_version": 1, "name": "star", "node": [{"name": "r", "compute_per_s": 10.0}, *children]}
    workload = {"kind": "farm", "tasks": 600, "task_size_mb": 2.0, "task_work": 8.0, "result_size_mb": result_size_mb}
    policy = {"order": order, "adapt": True}
    described = {"schema_version": 1, "name": "own", "platform": platform, "workload": workload, "policy": policy}
    (one,) = crosswind.run(Experiment.from_dict(described))
    assert [warning for warning in one.warnings if warning["code"] != "bound-of-linear-losses"] == []
