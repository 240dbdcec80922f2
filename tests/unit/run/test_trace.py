"""Traces: kept as Parquet, shown as a time line, and what they tell about the nodes."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import reported

import crosswind
from crosswind import DescriptionError, Platform, Trace
from crosswind.model.trace import fit_trace
from crosswind.run.columns import NOBODY, as_trace
from crosswind.run.perfetto import write_perfetto


def test_a_trace_is_read_back_as_it_was_written(tmp_path):
    trace = reported.traced()
    trace.save(tmp_path / "trace.parquet")
    again = Trace.load(tmp_path / "trace.parquet")
    assert again.activities.equals(trace.activities)
    assert again.run == trace.run
    assert Trace.is_one(tmp_path / "trace.parquet")


@pytest.mark.parametrize("kind", ["missing", "text", "other"])
def test_what_is_no_trace_is_refused_with_its_name(tmp_path, kind):
    path = tmp_path / "t.parquet"
    if kind == "text":
        path.write_text("no")
    elif kind == "other":
        pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(DescriptionError, match=r"t\.parquet"):
        Trace.load(path)
    assert not Trace.is_one(path)


@pytest.mark.parametrize("hostile", [False, True])
def test_the_time_line_has_a_track_for_every_processor_and_link(tmp_path, hostile):
    trace = reported.traced(31, hostile=hostile)
    write_perfetto(trace, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    names = {event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert names == {node["name"] for node in trace.nodes}
    drawn = [event for event in events if event["ph"] == "X"]
    assert len(drawn) == trace.activities.num_rows
    assert sum(event["dur"] for event in drawn if event["cat"] == "compute") == pytest.approx(31 * 1.1e6)
    threads = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    children = [node["name"] for node in trace.nodes[1:]]
    assert {"processor", *(f"link to {child}" for child in children)} <= threads


def test_events_of_one_track_never_overlap(tmp_path):
    trace = reported.traced(60)
    write_perfetto(trace, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    free = {}
    for event in sorted((e for e in events if e["ph"] == "X"), key=lambda e: e["ts"]):
        track = (event["pid"], event["tid"])
        assert free.get(track, 0.0) <= event["ts"] + 1.0
        free[track] = event["ts"] + event["dur"]


def lawful(ir_receive=0.02, ir_send=(0.03, 0.01), compute=(9.0, 5.0, 7.0), tasks=240, noise=0.0):
    """A trace that follows the interference law: transfers of any length, then tasks timed by what moved meanwhile."""
    random = np.random.default_rng(1)
    rows, at = [], 0.0
    links = {1: [], 2: []}
    for task in range(tasks):
        child = 1 + task % 2
        length, rest = random.uniform(0.2, 0.6), random.uniform(0.0, 1.0)
        links[child].append((at, at + length, 5.0 * length))
        rows.append((1, 0, child, task, at, at + length, 5.0 * length, 0.0))
        at += length + rest

    def moved(child, start, end):
        return sum(mb * max(min(end, b) - max(start, a), 0.0) / (b - a) for a, b, mb in links[child])

    for node in range(3):
        now = 0.0
        for task in range(tasks):
            seconds = random.uniform(0.3, 1.5)
            if now + seconds > at:
                break
            lost = (
                sum(ir * moved(child, now, now + seconds) for child, ir in zip((1, 2), ir_send, strict=True))
                if node == 0
                else ir_receive * moved(node, now, now + seconds)
            )
            work = compute[node] * (seconds - lost) * (1 + noise * random.standard_normal())
            rows.append((0, node, NOBODY, task, now, now + seconds, 0.0, work))
            now += seconds
    names = ("kind", "node", "child", "task", "start_s", "end_s", "mb", "work")
    types = (np.uint8, np.uint32, np.uint32, np.uint64, *[np.float64] * 4)
    columns = {n: np.array(v, t).tobytes() for n, t, v in zip(names, types, zip(*rows, strict=True), strict=True)}
    root = {"name": "r", "compute_per_s": 1.0}
    leaves = [{"name": n, "parent": "r", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0} for n in "ab"]
    platform = Platform.from_dict({"schema_version": 1, "name": "guess", "node": [root, *leaves]})
    return as_trace(columns, reported.one_run(("r", "a", "b"), makespan_s=at), platform, "lawful", "sim")


def test_a_trace_that_follows_the_law_gives_the_law_back():
    fit = fit_trace(lawful())
    rates = {(rate.node, rate.direction, rate.peer): rate.ir_s_per_mb for node in fit.nodes for rate in node.rates}
    assert rates[("r", "send", "a")] == pytest.approx(0.03, rel=1e-6)
    assert rates[("r", "send", "b")] == pytest.approx(0.01, rel=1e-6)
    assert rates[("a", "receive", "r")] == pytest.approx(0.02, rel=1e-6)
    assert [node.compute_per_s for node in fit.nodes] == pytest.approx([9.0, 5.0, 7.0])
    calibrated = fit.platform().nodes
    assert [node["compute_per_s"] for node in calibrated] == pytest.approx([9.0, 5.0, 7.0])
    assert calibrated[1]["receive_limit_mb_per_s"] == pytest.approx(5.0)
    assert calibrated[1]["ir_send_s_per_mb"] == pytest.approx(0.03)


def test_the_interval_holds_the_truth_under_noise():
    fit = fit_trace(lawful(noise=0.03))
    truths = {"a": 0.03, "b": 0.01, "r": 0.02}
    for node in fit.nodes:
        for rate in node.rates:
            low, high = rate.ir_ci95
            # Four standard errors: an interval may miss, but not by far.
            middle, half = (low + high) / 2, (high - low) / 2
            assert abs(truths[rate.peer] - middle) < 2 * half, rate


def test_what_did_not_vary_is_not_told():
    fit = fit_trace(reported.traced())
    assert {warning["code"] for warning in fit.warnings} >= {"too-little-variation", "not-measured-here"}
    assert not any(rate.known for node in fit.nodes for rate in node.rates if rate.direction == "send")
    assert fit.platform().nodes[1]["ir_send_s_per_mb"] == reported.platform().nodes[1]["ir_send_s_per_mb"]


def test_a_trace_without_work_is_refused():
    trace = reported.traced(3)
    nothing = trace.activities.set_column(7, "work", pa.array(np.zeros(trace.activities.num_rows)))
    with pytest.raises(DescriptionError, match="whose work is known"):
        fit_trace(Trace(nothing, trace.header))


def test_what_a_leaving_node_cuts_short_is_marked_and_the_sums_are_those_of_the_summary(tmp_path):
    """A computation that was cut was in `busy_s` and not in the trace, a send in the trace and not in `received_mb`."""
    root = {"name": "r", "compute_per_s": 1.0}
    leaf = {"name": "a", "parent": "r", "compute_per_s": 0.5, "receive_limit_mb_per_s": 1.0}
    description = {
        "schema_version": 1,
        "name": "cut",
        "platform": {"schema_version": 1, "name": "p", "node": [root, leaf]},
        "workload": {"kind": "farm", "tasks": 40, "task_size_mb": 0.5, "task_work": 2.0},
        "policy": {"buffer_tasks": 2, "ports": "single"},
        "change": [{"at_s": 4.75, "node": "a", "leaves": True}],
    }
    done = crosswind.run(crosswind.Experiment.from_dict(description), trace=True)[0]
    rows = done.trace.activities.to_pylist()
    cut = [row for row in rows if row["cut"]]
    assert [row["kind"] for row in cut] in (["compute", "send"], ["send", "compute"])
    assert {row["end_s"] for row in cut} == {4.75}
    node = next(node for node in done.nodes if node["name"] == "a")
    busy = sum(row["end_s"] - row["start_s"] for row in rows if (row["kind"], row["node"]) == ("compute", "a"))
    assert node["busy_s"] == pytest.approx(busy)
    assert node["received_mb"] == pytest.approx(sum(row["mb"] for row in rows if row["kind"] == "send"))
    write_perfetto(done.trace, tmp_path / "trace.json")
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert (
        sum("(cut short)" in event["name"] for event in events) == sum("cut" in event["args"] for event in events) == 2
    )


def test_a_trace_of_an_older_version_does_not_say_what_was_cut(tmp_path):
    trace = reported.traced()
    trace.save(tmp_path / "new.parquet")
    pq.write_table(pq.read_table(tmp_path / "new.parquet").drop_columns(["cut"]), tmp_path / "old.parquet")
    assert Trace.load(tmp_path / "old.parquet").activities["cut"].null_count == trace.activities.num_rows
