"""Signals by lot to `crosswind map`, its agents and commands: what is done is right, and the rest is run again."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
from farms import PATIENCE_S, wait_until

pytestmark = pytest.mark.live
COMMAND = "echo begun >> begun.$(cat {}); sleep 0.02; cat {}; echo end $(cat {})"
COUNT = 60
OF_CHILDREN = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
OF_AGENTS = (signal.SIGKILL, signal.SIGSTOP)
WHOLE = {f"{number:03}": f"{number}\nend {number}\n" for number in range(COUNT)}


@pytest.fixture
def started(tmp_path, monkeypatch):
    """Start a run in a directory of its own; what is left of it is the test's to find."""
    monkeypatch.setenv("TMPDIR", str(tmp_path / "t"))
    for directory in ("t", "in"):
        (tmp_path / directory).mkdir()
    for number in range(COUNT):
        (tmp_path / "in" / f"{number:03}").write_text(f"{number}\n")
    command = COMMAND.replace("begun.", f"{tmp_path}/begun.")
    words = [sys.executable, "-m", "crosswind.cli", "map", command, "--inputs", "in/*", "--out", "out", "-j", "2"]

    def start(*more):
        return subprocess.Popen(
            [*words, *more], cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, start_new_session=True
        )

    return start


def children(pid):
    found = []
    with suppress(OSError):  # it has ended meanwhile
        for task in Path(f"/proc/{pid}/task").iterdir():
            found += map(int, (task / "children").read_text().split())
    return found


def descendants(pid):
    return [below for child in children(pid) for below in (child, *descendants(child))]


def has_left_nothing(directory):
    """No process, and no temporary file but the logs that an error names."""
    mark = f"TMPDIR={directory / 't'}".encode()
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if int(entry.name) != os.getpid() and mark in (entry / "environ").read_bytes():
                return False
    return all(path.name.startswith("crosswind-logs-") for path in (directory / "t").iterdir())


def results(directory):
    return {path.name: path.read_text() for path in (directory / "out").glob("[!.]*")}


def is_right(directory):
    """Each result that there is, is whole."""
    return results(directory).items() <= WHOLE.items()


@pytest.mark.parametrize("seed", [1, 2])
def test_a_map_whose_agents_and_commands_get_signals_is_right_and_is_completed(started, tmp_path, seed):
    drawn = random.Random(seed)
    process = started()
    while process.poll() is None:
        time.sleep(drawn.uniform(0.0, 0.2))
        below = descendants(process.pid)
        if below:
            pid = drawn.choice(below)
            with suppress(ProcessLookupError):
                os.kill(pid, drawn.choice(OF_AGENTS if pid in children(process.pid) else OF_CHILDREN))
        if len(results(tmp_path)) > COUNT // 2:
            break  # the rest in peace
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode in (0, 1, 3)
    assert is_right(tmp_path)
    again = started("--resume")
    assert again.wait(PATIENCE_S) == 0
    again.stderr.close()
    assert results(tmp_path) == WHOLE
    wait_until(lambda: has_left_nothing(tmp_path), "the end of all")


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_a_map_that_is_ended_again_and_again_is_completed_and_leaves_nothing(started, tmp_path, number):
    for kills in range(4):
        process = started(*["--resume"] * (kills > 0))
        done = len(results(tmp_path)) + COUNT // 6
        wait_until(lambda done=done, process=process: len(results(tmp_path)) >= done or process.poll() is not None)
        with suppress(ProcessLookupError):
            process.send_signal(number)
        process.communicate(timeout=PATIENCE_S)
        assert is_right(tmp_path)
    assert started("--resume").wait(PATIENCE_S) == 0
    assert results(tmp_path) == WHOLE
    begun = [len(path.read_text().split()) for path in tmp_path.glob("begun.*")]
    assert len(begun) == COUNT
    assert max(begun) <= 1 + 4  # what was not noted yet is run again
    wait_until(lambda: has_left_nothing(tmp_path), "the end of all")


def test_what_supervises_a_command_and_is_stopped_ends_with_the_map(started, tmp_path):
    process = started()
    wait_until(lambda: results(tmp_path), "the first result")
    supervisors = [below for agent in children(process.pid) for below in children(agent)]
    for pid in supervisors:
        os.kill(pid, signal.SIGSTOP)
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=PATIENCE_S)
    assert supervisors
    wait_until(lambda: has_left_nothing(tmp_path), "the end of all")
