"""A node held against the newest checks of other nodes, without a baseline."""

import re
import subprocess
from pathlib import Path

import pytest
from checks import checked

from crosswind.check.formats import code_of
from crosswind.check.peers import LEAST_PEERS, MOST_PEERS, keep, newest
from crosswind.check.result import Check

GUIDE = Path(__file__).parents[3] / "docs" / "guides" / "slurm.md"
NOW_S = 1767225600.0  # 2026-01-01


def others(count, **changed):
    return [checked(node=f"node{k + 2}", memory=100.0 + k % 3, **changed) for k in range(count)]


def now(peers, **changed):
    return Check(checked(**changed).document, peers=peers)


def test_a_node_slower_than_the_others_is_sick_and_drained():
    found = now(others(LEAST_PEERS), memory=50.0)
    assert (found.outcome, code_of(found.exit_code, "slurm")) == ("sick", 4)
    assert found.sentence.startswith("sick: memory cpu 0 is 50")


def test_a_node_like_the_others_is_healthy():
    found = now(others(LEAST_PEERS))
    assert found.sentence == "healthy: 2 measures within tolerance of the median of 3 other nodes"
    assert code_of(found.exit_code, "slurm") == 0


@pytest.mark.parametrize(
    "peers",
    [
        [],
        others(LEAST_PEERS - 1),
        [checked(node="x", host=one.document["host"] | {"cpus": 64}) for one in others(9)],
        [checked(node="x", host=one.document["host"] | {"cpu": "another"}) for one in others(9)],
    ],
)
def test_with_too_few_nodes_of_its_kind_no_node_is_drained(peers):
    found = now(peers, memory=50.0)
    assert (found.exit_code, code_of(found.exit_code, "slurm")) == (3, 0)
    count = len(peers) if len(peers) < LEAST_PEERS else 0
    assert found.sentence == f"No verdict: {count} of the 3 checks of other nodes of this kind needed so far"


def test_many_cpus_of_two_nodes_are_not_many_nodes():
    readings = {f"memory cpu {k}": checked().document["readings"]["memory cpu 0"] for k in range(64)}
    found = now([*others(LEAST_PEERS - 1, readings=readings), checked(node="y", readings={})], memory=50.0)
    memory = next(each for each in found.judged if each.name == "memory cpu 0")
    assert (memory.outcome, memory.why) == ("unknown", "2 other nodes have it, 3 are needed")


def test_a_busy_node_or_nodes_that_differ_as_much_drain_none():
    assert now(others(LEAST_PEERS), noise=0.3, others=0.9).outcome == "unknown"
    mixed = [checked(node=f"n{k}", memory=50.0 if k % 2 else 100.0) for k in range(8)]
    assert now(mixed, memory=50.0).outcome != "sick"


def test_what_failed_here_is_unknown():
    found = now(others(LEAST_PEERS), readings={}, failed={"noise": "no time left"})
    assert found.sentence == "unknown: noise is not known (no time left)"


def test_the_newest_check_of_each_other_node_is_read_and_its_own_is_not(tmp_path):
    for one in (checked(), *others(3), checked(node="node2", at="2026-01-01T05:00:00Z")):
        keep(tmp_path / "new", one)
    found, told = newest(tmp_path / "new", "node1", NOW_S)
    assert [one.node for one in found] == ["node2", "node3", "node4"]
    assert not told
    assert newest(tmp_path / "none", "node1") == ([], [])


def test_old_checks_busy_ones_and_damaged_files_are_left_out(tmp_path):
    keep(tmp_path, checked(node="old", at="2025-11-01T00:00:00Z"))
    keep(tmp_path, checked(node="busy", others=0.5))
    keep(tmp_path, checked(node="good"))
    (tmp_path / "cut.json").write_text('{"schema')
    (tmp_path / "link.json").symlink_to(tmp_path / "good.json")
    keep(tmp_path, checked(node="no time", at="yesterday"))
    found, told = newest(tmp_path, "node1", NOW_S)
    assert [one.node for one in found] == ["good"]
    assert len(told) == 3
    assert MOST_PEERS == 200


@pytest.mark.parametrize(
    ("status", "drains"), [(0, False), (4, True), (1, False), (2, False), (3, False), (130, False)]
)
def test_the_prologue_s_line_ends_with_an_error_for_a_sick_node_only(tmp_path, status, drains):
    [line] = re.findall(r"^timeout .* check --peers .*$", GUIDE.read_text(), re.MULTILINE)
    program = tmp_path / "crosswind"
    program.write_text(f"#!/bin/sh\nexit {status}\n")
    program.chmod(0o755)
    done = subprocess.run(["sh", "-c", line.replace("/opt/crosswind/bin/crosswind", str(program))], check=False)
    assert (done.returncode != 0) == drains


def test_a_prologue_whose_program_is_missing_or_takes_too_long_drains_none(tmp_path):
    [line] = re.findall(r"^timeout .* check --peers .*$", GUIDE.read_text(), re.MULTILINE)
    assert subprocess.run(["sh", "-c", line], check=False, capture_output=True).returncode == 0
    guard = line.partition("||")[2]
    sleeps = f"timeout -k 5 0.01 sleep 600 ||{guard}"
    assert subprocess.run(["sh", "-c", sleeps], check=False).returncode == 0
