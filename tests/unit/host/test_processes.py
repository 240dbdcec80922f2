"""CPU time of real processes: of children that are born and end while they are watched."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from crosswind.host import processes

BURN = "sum(range(6_000_000))"


@pytest.fixture
def parent():
    """A process that runs a program to its end for each line that it reads, and answers."""
    run = f"subprocess.run([sys.executable, '-S', '-c', '{BURN}'])"
    code = f"import subprocess, sys\nfor _ in sys.stdin: {run}; print(flush=True)"
    process = subprocess.Popen(
        [sys.executable, "-S", "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    yield process
    process.stdin.close()
    process.wait()
    process.stdout.close()


def burned_s() -> float:
    """Return what such a program uses, s."""
    process = subprocess.Popen([sys.executable, "-S", "-c", BURN])
    _, _, usage = os.wait4(process.pid, 0)
    process.returncode = 0
    return usage.ru_utime + usage.ru_stime


def test_a_child_that_was_never_found_is_in_the_total_once_it_was_waited_for(parent):
    before_s = processes.total_s([parent.pid])
    parent.stdin.write("\n")
    parent.stdin.flush()
    parent.stdout.readline()
    used_s = processes.total_s([parent.pid]) - before_s
    assert used_s > 0.25 * burned_s()


def test_what_is_born_while_it_is_watched_counts_from_its_birth():
    used = processes.CpuTime()
    used.watch({os.getpid()})
    child = subprocess.Popen([sys.executable, "-S", "-c", f"{BURN}; print(flush=True); input()"], stdin=-1, stdout=-1)
    child.stdout.readline()
    before = used.ns()
    used.watch({os.getpid(), child.pid})
    assert used.ns() - before > 0.25e9 * burned_s()
    child.communicate(b"\n")


def test_what_was_there_before_counts_from_when_it_is_watched():
    child = subprocess.Popen([sys.executable, "-S", "-c", f"{BURN}; print(flush=True); input()"], stdin=-1, stdout=-1)
    child.stdout.readline()
    used = processes.CpuTime()
    used.watch({child.pid})
    assert used.ns() < 0.25e9 * burned_s()
    child.communicate(b"\n")
