"""Every field of a farm's experiment in live runs: agents receive it, or it is refused by name."""

import json

import pytest

import crosswind
from crosswind import _core
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.experiment import Experiment
from crosswind.run.agents import Limits, Work, settings

PLATFORM = {
    "schema_version": 1,
    "name": "p",
    "node": [
        {"name": "r", "compute_per_s": 1.0},
        {"name": "a", "parent": "r", "compute_per_s": 2.0, "receive_limit_mb_per_s": 3.0},
    ],
}
RECEIVED = {
    "platform": {**PLATFORM, "node": PLATFORM["node"][:1]},
    "platform_fields": {"node[a].compute_per_s": 7.0},
    "workload.tasks": 9,
    "workload.task_size_mb": 0.5,
    "workload.task_work": 9.0,
    "workload.result_size_mb": 0.25,
    "workload.tasks_file": "tasks.csv",
    "workload.arrival_gap_s": 1.0,
    "policy.order": "arrival",
    "policy.ports": "single",
    "policy.chunk_kib": 77,
    "policy.buffer_tasks": 5,
    "policy.adapt": True,
    "policy.level_end": True,
    "execution.compute": "burn",
    "execution.time_scale": 10.0,
    "execution.task_timeout_s": 5.0,
    "execution.task_retries": 2,
    "change.at_s": 2.0,
    "change.node": "r",
    "change.compute_per_s": 1.5,
    "change.receive_limit_mb_per_s": 2.5,
}
"""Field -> a value that changes the settings that agents receive."""
REFUSED = {
    "workload.class": ([{"name": "c"}], "workload.class gives tasks classes"),
    "change.leaves": (True, r"change\[0\].leaves is true"),
    "change.joins": (True, r"change\[1\].joins is true|change\[0\].leaves is true"),
    "failure": ([{"mtbf_s": 5.0, "mttr_s": 1.0}], r"failure\[0\] draws failures"),
}
ABOUT = {
    "schema_version": "the format",
    "name": "shown in results",
    "seed": "draws tasks, which the root gives out",
    "repetitions": "points of the grid",
    "sweep": "points of the grid",
    "workload.kind": "farm",
    "workload.arrival_tasks": "stands only beside arrival_gap_s: the root keeps to both",
    "workload.fairness_window_s": "of the results",
}
"""Fields that agents do not receive, and why."""


def described(field=None, value=None):
    """Return an experiment whose `field` has another value."""
    description = {
        "schema_version": 1,
        "name": "e",
        "platform": PLATFORM,
        "workload": {"kind": "farm", "tasks": 5, "task_size_mb": 1.0, "task_work": 1.0},
        "policy": {"order": "bandwidth", "level_end": False},
    }
    if field is None:
        return description
    table, _, name = field.rpartition(".")
    if table == "change":
        change = {"at_s": 1.0, "node": "a", "receive_limit_mb_per_s": 2.0, "compute_per_s": 1.0}
        if name in ("leaves", "joins"):
            change = {"at_s": 1.0, "node": "a", "leaves": True}
        if field == "change.node":
            del change["receive_limit_mb_per_s"]
        description["change"] = [change, *([{"at_s": 2.0, "node": "a", "joins": True}] if name == "joins" else [])]
        if value is not None and name not in ("leaves", "joins"):
            change[name] = value
        return description
    if field == "workload.tasks_file":
        description["workload"] = {"kind": "farm"}
    if field == "execution.task_timeout_s":
        description["execution"] = {"compute": "burn"}
        description["platform"] = {**PLATFORM, "node": [{"name": "r", "compute_per_s": 0.0}, PLATFORM["node"][1]]}
    if value is not None:
        (description.setdefault(table, {}) if table else description)[name] = value
    return description


def received(description, directory):
    """Return the settings that agents receive for the only point of an experiment."""
    (point,) = Experiment.from_dict(description, directory).points()
    execution = point.description["execution"]
    limits = Limits(retries=execution.get("task_retries", 0), task_timeout_s=execution.get("task_timeout_s"))
    return settings(point.platform, point.description, Work(execution["compute"]), limits, trace=False)


def fields():
    """Return every field of a farm's experiment, as the JSON Schema has them."""
    definitions = json.loads(_core.schema_of("experiment"))["$defs"]
    found = set()
    for table, name in (("", "Experiment"), ("workload.", "Workload"), ("policy.", "Policy")):
        found |= {table + field for field in definitions[name]["properties"]}
    found |= {"execution." + field for field in definitions["Execution"]["properties"]}
    found |= {"change." + field for field in definitions["Change"]["properties"]}
    return found - {"workload", "policy", "execution", "change"}


def test_each_field_of_the_schema_is_in_a_table_here():
    assert fields() == {*RECEIVED, *REFUSED, *ABOUT}


@pytest.mark.parametrize("field", RECEIVED)
def test_agents_receive_a_field(field, tmp_path):
    (tmp_path / "tasks.csv").write_text("size_mb,work\n" + "2,3\n" * 5)
    base = described(field) if field.startswith(("change.", "execution.task_timeout")) else described()
    assert received(described(field, RECEIVED[field]), tmp_path) != received(base, tmp_path)


@pytest.mark.parametrize("field", REFUSED)
def test_what_agents_cannot_do_is_refused_by_name(field):
    value, said = REFUSED[field]
    with pytest.raises(DescriptionError, match=said):
        crosswind.run(Experiment.from_dict(described(field, value)), on="local")


def test_fields_are_refused_that_only_emulated_agents_know(tmp_path):
    with_change = described("change.at_s", 1.0) | {"execution": {"compute": "burn"}}
    with pytest.raises(DescriptionError, match=r'change\[0\] changes rates, and with execution.compute = "burn"'):
        received(with_change, tmp_path)
    with_results = described("workload.result_size_mb", 2.0) | {"execution": {"compute": "triad"}}
    with pytest.raises(DescriptionError, match=r"workload.result_size_mb is 2 MB, and the results of"):
        received(with_results, tmp_path)


def test_ranks_refuse_a_network_of_switches():
    program = {
        "schema_version": 1,
        "name": "p",
        "network": {"latency_s": 1e-5, "overhead_s": 1e-6, "gap_s": 1e-6, "packet_bytes": 64, "fat_tree": {}},
        "workload": {"kind": "program", "program": "bsp", "ranks": 2, "parameters": {"iterations": 1}},
    }
    with pytest.raises(CrosswindError, match=r"network\.fat_tree"):
        crosswind.run(Experiment.from_dict(program), on="local")
