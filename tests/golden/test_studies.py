"""Studies of earlier versions, run again: a version that changes a number of a simulation says so in the changelog.

`CROSSWIND_WRITE_GOLDEN=1` adds the studies that are missing. A file that is there stays as it is, with the version that
wrote it, until a change of numbers is meant: delete it then, and write it anew.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

import crosswind
from crosswind import Experiment

STUDIES = Path(__file__).parent / "studies"
EXAMPLES = Path(__file__).parents[2] / "examples"

LOGNORMAL = {"distribution": "lognormal", "median": 5.0, "sigma": 0.5}
EXPONENTIAL = {"distribution": "exponential", "mean": 2.0}
ORDERS = ["interference", "interference-rate", "bandwidth", "compute", "arrival", "root-only", "planned"]


def fork_graph():
    """Every order, both kinds of ports, drawn sizes and works, and a link from slow to fast."""
    experiment = Experiment.load(EXAMPLES / "fork_graph.toml")
    drawn = {"workload.tasks": 60, "workload.task_size_mb": EXPONENTIAL, "workload.task_work": LOGNORMAL}
    description = experiment.fixed(drawn | {"platform": "fork_of_table_4.toml", "repetitions": 2}).to_dict()
    sweep = {"policy.ports": ["single", "multi"], "policy.order": ORDERS, "node[Tenn].receive_limit_mb_per_s": [1, 20]}
    return Experiment.from_dict(description | {"sweep": sweep}, EXAMPLES)


def tree_with_changes():
    """A tree of three levels with latencies and results, whose nodes leave, join and change."""
    rates = {"compute_per_s": 3.0, "receive_limit_mb_per_s": 8.0, "ir_receive_s_per_mb": 0.01, "latency_s": 0.002}
    nodes = [{"name": "root", "compute_per_s": 5.0, "send_limit_mb_per_s": 12.0}]
    nodes += [{"name": f"m{n}", "parent": "root", **rates, "ir_send_s_per_mb": 0.02 * n} for n in range(3)]
    nodes += [{"name": f"l{n}", "parent": f"m{n % 3}", **rates, "compute_per_s": 1.0 + n} for n in range(6)]
    changes = [
        {"at_s": 5.0, "node": "m1", "compute_per_s": 0.5},
        {"at_s": 8.0, "node": "m2", "leaves": True},
        {"at_s": 12.0, "node": "m2", "joins": True},
    ]
    return Experiment.from_dict(
        {
            "schema_version": 1,
            "name": "tree with changes",
            "platform": {"schema_version": 1, "name": "three levels", "node": nodes},
            "repetitions": 2,
            "workload": {
                "kind": "farm",
                "tasks": 150,
                "task_size_mb": EXPONENTIAL,
                "task_work": 4.0,
                "result_size_mb": 0.2,
            },
            "change": changes,
            "sweep": {
                "policy.order": ["interference", "bandwidth"],
                "policy.adapt": [False, True],
                "change[1].at_s": [8.0, 10.0],
            },
        }
    )


def failing_nodes():
    """The same tree with drawn failures and slowdowns, and tasks that arrive after measured gaps."""
    description = tree_with_changes().to_dict()
    gaps = {"distribution": "empirical", "values": [0.1, 0.1, 0.7]}
    description["workload"] |= {"arrival_gap_s": gaps}
    slow = {"node": "l3", "mtbf_s": 9.0, "mttr_s": 4.0, "shape": 0.7, "compute_factor": 0.25, "link_factor": 0.5}
    description["failure"] = [{"mtbf_s": 30.0, "mttr_s": 3.0}, slow]
    description["sweep"] = {"failure[0].mtbf_s": [15.0, 60.0], "policy.order": ["interference", "arrival"]}
    return Experiment.from_dict(description)


def program():
    """A parallel program under daemons."""
    fixed = {"workload.ranks": 16, "workload.parameters.steps": 20, "repetitions": 2}
    experiment = Experiment.load(EXAMPLES / "em3d_under_daemons.toml")
    description = experiment.to_dict()
    description.pop("sweep", None)
    return Experiment.from_dict(description, EXAMPLES).fixed(fixed)


def streams():
    """Messages of two classes through one queue and two."""
    description = Experiment.load(EXAMPLES / "streams_sending_side.toml").to_dict()
    description.pop("sweep", None)
    return Experiment.from_dict(description, EXAMPLES)


MADE = {"fork_graph": fork_graph, "tree_with_changes": tree_with_changes, "failing_nodes": failing_nodes}
MADE |= {"program": program, "streams": streams}


@pytest.mark.parametrize("name", MADE)
def test_a_study_of_an_earlier_version_has_the_same_numbers(name):
    file = STUDIES / f"{name}.json"
    if not file.exists() and os.environ.get("CROSSWIND_WRITE_GOLDEN"):
        crosswind.run(MADE[name](), out=file)
    found = crosswind.run_again(file)
    assert found.differences[:5] == [], f"made by {found.versions}; a change that is meant belongs in CHANGELOG.md"
    assert len(found.now) == found.points > 0


def test_every_study_is_run_again():
    assert {file.stem for file in STUDIES.glob("*.json")} == set(MADE)
