"""Hosts and links of a cluster measured for real: processes on loopback as hosts, workers of a Dask cluster."""

from __future__ import annotations

import _thread
import contextlib
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from cluster_hosts import ProcessHosts

from crosswind.errors import MeasurementError
from crosswind.links import Links
from crosswind.measure.cluster import measure_cluster
from crosswind.platform import Platform

pytestmark = pytest.mark.live

BRIEF = {"matrix": 64, "max_seconds": 4.0}


def children_named(word):
    """Return the processes of this test whose command line has a word."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes().decode(errors="replace")
        except OSError:
            continue  # it has ended
        if word in line:
            found.append(line)
    return found


def measured_at_last(*arguments, **named):
    """Measure again what was not sampled well enough, as a user of a busy host would."""
    for _ in range(3):
        with contextlib.suppress(MeasurementError):
            found = measure_cluster(*arguments, **named)
            if not found.failed:
                return found
    return measure_cluster(*arguments, **named)


def here(*names):
    return ProcessHosts(dict.fromkeys(names, "127.0.0.1"))


def test_a_tree_is_measured_calibrated_and_not_measured_again(tmp_path):
    nodes = [{"name": "a", "compute_per_s": 1.0}]
    nodes += [{"name": "b", "parent": "a", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0}]
    tree = Platform.from_dict({"schema_version": 1, "name": "t", "node": nodes})
    with here("a", "b") as cluster:
        found = measured_at_last(cluster, tmp_path, platform=tree, quick=True, **BRIEF)
        assert (found.measured, found.asked, found.failed) == (2, 2, [])
        assert {w["code"] for w in found.warnings} >= {"loopback"}
        files = {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.parquet")}
        assert len(files) == 2
        again = measure_cluster(cluster, tmp_path, platform=tree, quick=True, **BRIEF)
        assert {path: path.stat().st_mtime_ns for path in tmp_path.glob("*.parquet")} == files
        assert again.links is not None
        assert found.links is not None
        assert again.links.to_dict() == found.links.to_dict()
    root, leaf = Platform.load(tmp_path / "platform.toml").nodes
    assert min(root["compute_per_s"], leaf["compute_per_s"]) > 100.0
    assert leaf["receive_limit_mb_per_s"] > 10.0
    assert root["send_limit_mb_per_s"] > 10.0


def test_a_host_that_is_killed_is_named_and_the_others_are_measured(tmp_path):
    with here("a", "b", "c") as cluster:
        threading.Timer(2.0, cluster.kill, ["b"]).start()
        found = measure_cluster(cluster, tmp_path, pairs="star", root="a", **BRIEF)
    assert found.lost == ["b"], found.failed
    assert not found.trustworthy
    assert {one["at"] for one in found.failed} <= {"a", "b"}
    assert {"c receive a.parquet", "a send c.parquet"} <= {path.name for path in tmp_path.glob("*.parquet")}


def test_ctrl_c_keeps_what_was_done_and_leaves_no_process(tmp_path):
    mark = str(tmp_path)  # a task's command line that only this test has
    with here("a", "b", "c") as cluster:
        kept = threading.Event()

        def interrupt():
            while not list(tmp_path.glob("*.parquet")):
                time.sleep(0.05)
            kept.set()
            _thread.interrupt_main()

        threading.Thread(target=interrupt, daemon=True).start()
        found = measure_cluster(cluster, tmp_path, task=f"sh -c 'sleep 0.002; true' {mark}", max_seconds=8.0)
        assert kept.is_set()
        assert found.interrupted
        assert found.measured < found.asked
        assert 1 <= len(list(tmp_path.glob("*.parquet"))) < found.asked
        assert json.loads((tmp_path / "cluster.json").read_text())["ended"] == "interrupted"
    assert children_named(mark) == []


def test_the_workers_of_a_dask_cluster_are_measured_and_left_as_they_were(tmp_path):
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        command = [
            sys.executable,
            "-m",
            "crosswind.cli",
            "measure",
            "cluster",
            "--on",
            f"dask:{cluster.scheduler_address}",
        ]
        command += ["--per", "worker", "--pairs", "star", "--quick", "--max-seconds", "4", "--matrix", "64"]
        command += ["-o", str(tmp_path / "out"), "--json"]
        for _ in range(4):  # until all was sampled well enough, on a busy host
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            document = json.loads(done.stdout or '{"failed": true}')
            if not document["failed"]:
                break
        assert done.returncode in (0, 3), done.stderr
        assert (document["measured"], document["asked"], document["lost"]) == (2, 2, [])
        links = Links.load(tmp_path / "out" / "links.toml")
        assert [host["name"] for host in links.hosts] == ["0", "1"]
        assert [(link["from"], link["to"]) for link in links.links] == [("0", "1")]

        def tasks_and_peers(dask_worker):
            from crosswind.measure.cluster import at_host

            return len(dask_worker.data), len(at_host._peers)

        assert set(client.run(tasks_and_peers).values()) == {(0, 0)}
