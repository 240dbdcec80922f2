"""Workers by name: all of them are stopped, those that begin later too, and all run again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess

import pytest

from crosswind import _core
from crosswind.cost.targets import opened
from crosswind.host import processes

STOPPED = ("t", "T")


def state(pid: int) -> str:
    return (processes.stat(pid) or ["gone"])[0]


@pytest.fixture
def workers(tmp_path):
    """Start workers that do not descend from this process, and end them."""
    program, started = tmp_path / "cw-live-loader", []
    shutil.copy(shutil.which("sleep") or "/bin/sleep", program)

    def start() -> int:
        words = ["setsid", "-f", "sh", "-c", 'echo $$; exec "$0" 600', str(program)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as launcher:
            pid = int(launcher.stdout.readline())
            started.append(pid)
            while processes.name(pid) == "sh":
                os.sched_yield()
            launcher.stdout.close()
        return pid

    yield start
    for pid in started:
        if processes.stat(pid):
            os.kill(pid, signal.SIGKILL)


@pytest.fixture
def freezer():
    found = _core.Freezer()
    yield found
    found.close()


def looked_again(target) -> None:
    target._look_at = 0.0
    target.refresh()


def test_workers_that_begin_later_are_stopped_with_the_others_and_those_that_end_are_not_missed(workers, freezer):
    first, second = workers(), workers()
    target = opened("name:cw-live-load*", freezer)
    assert (target.name, target.members) == ("cw-live-load*", {first, second})
    third = workers()
    looked_again(target)
    assert target.members == {first, second, third}
    target.freeze(2**62)
    assert all(state(pid) in STOPPED for pid in (first, second, third))
    target.thaw()
    os.kill(first, signal.SIGKILL)
    while not processes.has_ended(first):
        os.sched_yield()
    looked_again(target)
    assert target.members == {second, third}
    assert not any(state(pid) in STOPPED for pid in target.members)
    assert target.incomplete() is None


def test_workers_that_are_away_between_two_epochs_are_waited_for(workers, freezer):
    first = workers()
    target = opened("name:cw-live-loader", freezer)
    os.kill(first, signal.SIGKILL)
    while not processes.has_ended(first):
        os.sched_yield()
    looked_again(target)
    assert target.is_gone
    second = workers()
    assert target.returns()
    assert target.members == {second}


def test_a_worker_that_cannot_be_stopped_is_named(workers, freezer):
    first = workers()
    target = opened("name:cw-live-loader", freezer)
    second = workers()
    other = _core.Freezer()
    try:
        other.seize([second])  # of another session
        looked_again(target)
    finally:
        other.close()
    assert (target.members, set(target.left_out)) == ({first}, {second})
    assert "1 process of cw-live-loader began meanwhile and cannot be stopped" in target.incomplete()["message"]
