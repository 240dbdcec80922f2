"""Tasks of several classes: nodes that are fast for one and cannot run another, against a linear program."""

from __future__ import annotations

import math

import pytest
from scipy.optimize import linprog

import crosswind
from crosswind.errors import DescriptionError, InfeasibleError
from crosswind.experiment import Experiment

ROOT = {"name": "r", "compute_per_s": 1.0}
GPU = {"name": "g", "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 100.0}
CPUS = [{"name": f"c{n}", "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 50.0} for n in range(4)]
TRAIN = {"name": "train", "factor": 0.5, "nodes": {"g": 20.0}}
CLEAN = {"name": "clean", "weight": 2.0, "nodes": {"g": 0.0}}
ORDERS = ["interference", "interference-rate", "bandwidth", "compute", "arrival"]


def experiment(nodes=(ROOT, GPU, *CPUS), classes=(TRAIN, CLEAN), workload=None, **more):
    platform = {"schema_version": 1, "name": "p", "node": list(nodes)}
    drawn = {"tasks": 2000, "task_size_mb": 0.5, "task_work": 2.0} if workload is None else workload
    farm = {"kind": "farm", "class": list(classes), **drawn}
    return Experiment.from_dict(
        {"schema_version": 1, "name": "classes", "platform": platform, "workload": farm, **more}
    )


def bound(nodes, factors, shares, size_mb, work):
    """Return the tasks/s that no schedule exceeds: a linear program over nodes and classes, with several sends at once.

    factors[c][n] is that of class c at node n, shares[c] the part of the tasks that are of class c.
    """
    count, kinds = len(nodes), len(factors)
    place = {node["name"]: n for n, node in enumerate(nodes)}
    above = [place.get(node.get("parent", "")) for node in nodes]

    def ways(n):
        """Return the nodes over whose links a task goes to node n."""
        found = []
        while above[n] is not None:
            found.append(n)
            n = above[n]
        return found

    size = count * kinds + 1  # tasks/s of each node and class, and of all
    upper, limits, equal = [], [], []
    for n, node in enumerate(nodes):
        row = [0.0] * size
        for c in range(kinds):
            rate = node["compute_per_s"] * factors[c][n]
            row[n * kinds + c] = work / rate if rate > 0 else 0.0
        upper.append(row)
        limits.append(1.0)
        if above[n] is not None:
            row = [0.0] * size
            for m in range(count):
                for c in range(kinds):
                    row[m * kinds + c] = size_mb * (n in ways(m))
            upper.append(row)
            limits.append(node["receive_limit_mb_per_s"])
        if "send_limit_mb_per_s" in node:
            row = [0.0] * size
            for m in range(count):
                for c in range(kinds):
                    row[m * kinds + c] = size_mb * any(above[w] == n for w in ways(m))
            upper.append(row)
            limits.append(node["send_limit_mb_per_s"])
    for c in range(kinds):
        row = [0.0] * size
        row[c::kinds] = [1.0] * len(row[c::kinds])
        row[-1] = -shares[c]
        equal.append(row)
    bounds = [
        (0, 0 if nodes[n]["compute_per_s"] * factors[c][n] == 0 else None) for n in range(count) for c in range(kinds)
    ]
    found = linprog([0.0] * (size - 1) + [-1.0], upper, limits, equal, [0.0] * kinds, [*bounds, (0, None)])
    assert found.success
    return -found.fun


def factors_of(nodes, classes):
    return [[one.get("nodes", {}).get(node["name"], one.get("factor", 1.0)) for node in nodes] for one in classes]


def write(tmp_path, of_task, more=""):
    """Write a file of tasks whose classes are those of `of_task`."""
    lines = ["size_mb,work,class", *(f"0.5,2,{name}" for name in of_task)]
    (tmp_path / "tasks.csv").write_text("\n".join(lines) + "\n")
    return {"tasks_file": "tasks.csv"}


def test_throughput_is_near_the_linear_program_and_never_above(tmp_path):
    nodes, classes = [ROOT, GPU, *CPUS], [TRAIN, CLEAN]
    of_task = ["train", "clean", "clean"] * 1000
    described = experiment(workload=write(tmp_path, of_task), sweep={"policy.order": ORDERS})
    runs = crosswind.run(Experiment.from_dict(described.to_dict(), tmp_path))
    limit = bound(nodes, factors_of(nodes, classes), [1 / 3, 2 / 3], 0.5, 2.0)
    for run in runs:
        assert 0.97 * limit < run.throughput_tasks_per_s <= limit * (1 + 1e-9), run.data["order"]


def test_no_schedule_exceeds_the_linear_program(tmp_path):
    """Trees and stars with scarce links, relays and classes that only some nodes run."""
    relay = {"name": "s", "parent": "r", "compute_per_s": 0.0, "receive_limit_mb_per_s": 2.0}
    below = [{**GPU, "parent": "s", "receive_limit_mb_per_s": 3.0}, {**CPUS[0], "parent": "s"}]
    trees = [
        [ROOT, GPU, *CPUS],
        [{**ROOT, "compute_per_s": 0.0}, relay, *below],
        [{**ROOT, "send_limit_mb_per_s": 1.5}, relay, *below, CPUS[1]],
    ]
    kinds = [[TRAIN, CLEAN], [{"name": "train"}, {"name": "clean", "factor": 0.3}]]
    for nodes in trees:
        names = {node["name"] for node in nodes}
        for classes in kinds:
            known = [{**one, "nodes": {n: f for n, f in one.get("nodes", {}).items() if n in names}} for one in classes]
            for part in (1, 4):
                of_task = (["train"] * part + ["clean"]) * 100
                described = experiment(nodes, known, write(tmp_path, of_task), sweep={"policy.order": ORDERS})
                limit = bound(nodes, factors_of(nodes, known), [part / (part + 1), 1 / (part + 1)], 0.5, 2.0)
                for run in crosswind.run(Experiment.from_dict(described.to_dict(), tmp_path)):
                    assert run.throughput_tasks_per_s <= limit * (1 + 1e-9)
                    assert sum(node["tasks"] for node in run.nodes) == len(of_task)


def test_one_class_at_factor_1_is_a_farm_without_classes():
    alone = crosswind.run(experiment((ROOT,), ({"name": "all"},)))[0]
    assert alone.makespan_s == pytest.approx(4000.0)
    double = crosswind.run(experiment((ROOT,), ({"name": "all", "factor": 2.0},)))[0]
    assert double.makespan_s == pytest.approx(2000.0)


def test_no_node_gets_a_class_that_it_cannot_run(tmp_path):
    of_task = ["clean", "clean", "train"] * 50
    described = experiment(workload=write(tmp_path, of_task))
    (run,) = crosswind.run(Experiment.from_dict(described.to_dict(), tmp_path), trace=True)
    rows = run.trace.of_kind("compute").to_pylist()
    assert len(rows) == 150
    assert {of_task[row["task"]] for row in rows if row["node"] == "g"} == {"train"}
    assert run.bound_tasks_per_s is None
    assert "no-bound-with-classes" in [one["code"] for one in run.warnings]


def test_classes_are_drawn_by_weight_from_a_stream_of_their_own():
    works = {"tasks": 3000, "task_size_mb": 0.5, "task_work": {"distribution": "exponential", "mean": 2.0}}
    fast, slow = {"name": "a", "weight": 1.0}, {"name": "b", "weight": 3.0, "factor": 0.5}
    (both,) = crosswind.run(experiment((ROOT,), (fast, slow), works))
    (one,) = crosswind.run(experiment((ROOT,), (fast,), works))
    # A quarter takes its time, the others twice: 1.75 times as long, with a standard deviation of 0.02.
    assert both.makespan_s / one.makespan_s == pytest.approx(1.75, abs=0.08)


def test_flow_times_know_which_node_is_fastest_for_a_class(tmp_path):
    (tmp_path / "tasks.csv").write_text("size_mb,work,class,release_s\n1,20,train,0\n")
    described = experiment((ROOT, GPU), (TRAIN,), {"tasks_file": "tasks.csv"})
    (run,) = crosswind.run(Experiment.from_dict(described.to_dict(), tmp_path))
    # Alone at g: 0.01 s over the link, 1 s of computing. The root takes it at once, and needs 40 s.
    assert run.flow is not None
    assert run.flow["mean_slowdown"] == pytest.approx(run.makespan_s / 1.01)


def test_nodes_that_fail_come_back_to_their_classes():
    runs = crosswind.run(experiment(failure=[{"mtbf_s": 30.0, "mttr_s": 10.0}], repetitions=3))
    assert all(run.failures["tasks_again"] > 0 for run in runs)
    assert all(math.isfinite(run.makespan_s) for run in runs)


def test_a_sweep_varies_factors_and_weights():
    sweep = {"workload.class[0].nodes.g": [1.0, 20.0], "workload.class[1].weight": [0.5, 5.0]}
    runs = crosswind.run(experiment(sweep=sweep))
    assert len({run.makespan_s for run in runs}) == 4


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (
            {"classes": ({"name": "a"}, {"name": "a"})},
            r"workload.class\[1\].name is \"a\", as that of workload.class\[0\]",
        ),
        ({"classes": ({"name": "a", "factor": 0.0},)}, 'so that none can run "a"'),
        ({"classes": ({"name": "a", "nodes": {"c9": 1.0}},)}, r"names \"c9\", which is no node of this platform"),
        ({"classes": ({"name": "a", "weight": 0.0},)}, r"workload.class\[0\].weight is 0"),
        ({"classes": ({"name": "a", "factor": -1.0},)}, r"factor"),
        ({"policy": {"order": "planned"}}, 'policy.order is "planned", and tasks have classes'),
        ({"policy": {"adapt": True}}, "policy.adapt is true, and tasks have classes"),
    ],
)
def test_what_is_wrong_is_refused(more, said):
    with pytest.raises(DescriptionError, match=said):
        crosswind.run(experiment(**more))


@pytest.mark.parametrize(
    ("header", "classes", "said"),
    [
        (
            "size_mb,work,class\n1,1,tarin\n",
            [TRAIN],
            'has the class "tarin", which is no workload.class; the nearest is',
        ),
        ("size_mb,work\n1,1\n", [TRAIN], "tasks_file has no column class"),
        ("size_mb,work,class\n1,1,train\n", [], 'has the class "train", which is no workload.class'),
        ("size_mb,work,class\n1,1,\n", [TRAIN], "t.csv:2:5: class is empty; it must be a name"),
    ],
)
def test_classes_of_a_file_are_those_of_the_workload(tmp_path, header, classes, said):
    (tmp_path / "t.csv").write_text(header)
    described = experiment(classes=classes, workload={"tasks_file": "t.csv"})
    with pytest.raises(DescriptionError, match=said):
        crosswind.run(Experiment.from_dict(described.to_dict(), tmp_path))


def test_live_runs_refuse_classes():
    with pytest.raises(DescriptionError, match=r"workload\.class gives tasks classes"):
        crosswind.run(experiment(), on="local")


@pytest.mark.parametrize(
    "more",
    [{"change": [{"at_s": 20.0, "node": "g", "leaves": True}]}, {"policy": {"order": "root-only"}}],
    ids=["the only node leaves", "the root cannot run it"],
)
def test_tasks_that_no_node_can_run_any_more_are_named(more):
    classes = ({"name": "a", "factor": 0.0, "nodes": {"g": 1.0}}, {"name": "b"})
    with pytest.raises(InfeasibleError, match=r"tasks are left of classes that no node in the tree can run"):
        crosswind.run(experiment((ROOT, GPU), classes, **more))


def test_a_node_that_joins_again_gets_its_class():
    classes = ({"name": "a", "factor": 0.0, "nodes": {"g": 1.0}}, {"name": "b"})
    away = [{"at_s": 20.0, "node": "g", "leaves": True}, {"at_s": 60.0, "node": "g", "joins": True}]
    (run,) = crosswind.run(experiment((ROOT, GPU), classes, change=away))
    assert sum(node["tasks"] for node in run.nodes) == 2000
