"""`crosswind check` for real: saved, then run against a baseline whose processor was three times as fast."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from cluster_hosts import ProcessHosts

from crosswind.check.cluster import check_cluster

pytestmark = pytest.mark.live


def crosswind(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "crosswind.cli", "check", "--seconds", "10", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)


def test_a_node_that_was_three_times_as_fast_is_sick_in_one_line_and_in_metrics(tmp_path):
    good, metrics = tmp_path / "good.json", tmp_path / "crosswind.prom"
    saved = crosswind("--save", good, "--force")  # the host of a test may be busy
    assert saved.returncode == 0, saved.stderr
    document = json.loads(good.read_text())
    for name, reading in document["readings"].items():
        if name.startswith("compute"):
            reading["values"] = [3 * value for value in reading["values"]]
    good.write_text(json.dumps(document))
    found = crosswind("--baseline", good, "--format", "nhc", "--prometheus", metrics)
    assert found.returncode == 1, found.stderr
    assert found.stdout.startswith("ERROR: crosswind check: sick")
    assert found.stdout.count("\n") == 1
    assert "compute cpu" in found.stdout
    assert 'crosswind_check_state{state="sick"} 1' in metrics.read_text().splitlines()
    assert 'crosswind_check_loss{measure="compute"} ' in metrics.read_text()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["crosswind.prom", "good.json"]


def test_hosts_and_links_of_a_cluster_are_checked_and_two_hosts_cannot_be_told_apart(tmp_path):
    with ProcessHosts({"a": "127.0.0.1", "b": "127.0.0.2"}) as cluster:
        found = check_cluster(cluster, seconds=10)
    assert list(found.checks) == ["a", "b"]
    # On a busy host a measurement of 4 s may have too few samples; then it is named, and a link may be missing.
    assert set(found.document["failed"]) <= {"a with b", "b with a", "links"}
    assert set(found.links) == {("a", "b"), ("b", "a")} or found.document["failed"]
    assert all("noise" in one.readings for one in found.checks.values())
    assert (found.outcome, found.exit_code) == ("unknown", 3)
    assert "few-hosts" in {each["code"] for each in found.warnings}
