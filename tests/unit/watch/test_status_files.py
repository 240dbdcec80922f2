"""A node's page from the files of its agent: only what is new is counted, and a new connection begins anew."""

import json

import pytest

from crosswind.platform import Platform

pytest.importorskip("tornado", reason="tornado is not installed")
from crosswind.watch import Watch
from crosswind.watch.status_files import Standing

NODES = [
    {"name": "r", "compute_per_s": 1.0},
    {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 20.0},
    {"name": "b", "parent": "a", "compute_per_s": 2.0, "receive_limit_mb_per_s": 10.0},
]
TREE = Platform.from_dict({"schema_version": 1, "name": "t", "node": NODES})
RUN = {
    "platform": TREE.to_dict(),
    "policy": {"ports": "multi"},
    "mean_size_mb": 1.0,
    "mean_work": 1.0,
    "tasks": 100,
    "work": {"kind": "emulated", "time_scale": 2.0, "result_bytes": 0},
}


@pytest.fixture
def page(tmp_path):
    with Watch() as watch:
        yield watch, Standing(tmp_path, watch), tmp_path


def write(directory, since, results, *events, run=True):
    happened = [{"code": code, "node": name, "message": f"{name}: {code}"} for code, name in events]
    if run:
        (directory / "run.json").write_text(json.dumps({"since_ns": since, "node": "a", "run": RUN}))
    now = {"since_ns": since, "results": results, "events": happened[-8:], "happened": len(happened)}
    (directory / "now.json").write_text(json.dumps(now))


def counted(watch):
    return {node["name"]: node["tasks"] for node in watch.snapshot()["nodes"]}


def test_before_the_agent_is_let_in_the_page_waits(page):
    watch, standing, _ = page
    standing.look()
    assert watch.snapshot() == {"state": "starting"}


def test_counts_and_events_are_taken_once(page):
    watch, standing, directory = page
    write(directory, 1, {"a": 3})
    standing.look()
    standing.look()
    write(directory, 1, {"a": 4, "b": 2}, ("agent-lost", "b"))
    for _ in range(2):
        standing.look()
    assert counted(watch) == {"a": 4, "b": 2}
    assert [event["code"] for event in watch.snapshot()["events"]] == ["agent-lost"]
    assert {node["name"]: node["state"] for node in watch.snapshot()["nodes"]}["b"] == "lost"
    write(directory, 1, {"a": 4, "b": 2}, *[("agent-lost", "b")] * 12)
    standing.look()
    assert len(watch.snapshot()["events"]) == 8


def test_a_node_that_was_let_in_anew_begins_anew_once_both_files_say_so(page):
    watch, standing, directory = page
    write(directory, 1, {"a": 30})
    standing.look()
    write(directory, 2, {"a": 1}, run=False)
    standing.look()
    assert counted(watch)["a"] == 30
    write(directory, 2, {"a": 1})
    standing.look()
    assert counted(watch)["a"] == 1
