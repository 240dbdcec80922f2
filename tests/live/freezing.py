"""Targets for tests of what is frozen: daemons, control groups, and what state their processes are in."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from crosswind.host import processes
from crosswind.host.cgroup import unified_mount

PATIENCE_S = 60.0
SPIN = """
import time
def spin():
    while True:
        begun = time.monotonic()
        while time.monotonic() - begun < 0.001: pass
        time.sleep(0.004)
"""
THREADS = SPIN + "import threading\nfor _ in range(5): threading.Thread(target=spin).start()\nspin()"
ONE = SPIN + "spin()"
# Each helper starts a worker and ends at once, so that the worker is an orphan.
FORKS = (
    SPIN
    + """
import os, sys
def orphan():
    if os.fork() == 0:
        if os.fork() == 0:
            os.setsid()
            print(os.getpid(), flush=True)
            spin()
        os._exit(0)
    os.wait()
while sys.stdin.readline():
    orphan()
"""
)


def later(seconds: float = 60.0) -> int:
    return time.monotonic_ns() + int(seconds * 1e9)


def state(pid: int) -> str:
    found = processes.stat(pid)
    return found[0] if found else "gone"


def wait_until(condition) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "not within a minute"
        time.sleep(0.005)


def stops(pid: int) -> bool:
    """Whether it is stopped; on a busy host later than the freezer waits for it, which is 20 ms."""
    wait_until(lambda: state(pid) in "Tt")
    return True


def runs_again(pid: int) -> bool:
    """Whether it uses CPU time; a process that is stopped uses none."""
    clock = (~pid << 3) | 2
    before = time.clock_gettime_ns(clock)
    wait_until(lambda: state(pid) not in "Tt" and time.clock_gettime_ns(clock) > before)
    return True


@contextlib.contextmanager
def running(text: str, **options: object) -> Iterator[subprocess.Popen[str]]:
    """Run a daemon in a session of its own, and end it."""
    options = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "start_new_session": True} | options
    process = subprocess.Popen([sys.executable, "-S", "-c", text], **options)  # type: ignore[call-overload]
    try:
        wait_until(lambda: state(process.pid) in "SRt")
        yield process
    finally:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                pipe.close()


@contextlib.contextmanager
def grouped(*pids: int) -> Iterator[Path]:
    """Make a control group of version 2 with these processes in it, and remove it."""
    mount = unified_mount()
    if mount is None or not os.access(mount, os.W_OK):
        pytest.skip("no control groups of version 2 that this user may make")
    path = mount / f"freezing-test-{os.getpid()}"
    path.mkdir()
    try:
        for pid in pids:
            (path / "cgroup.procs").write_text(str(pid))
        yield path
    finally:
        if path.exists():
            (path / "cgroup.freeze").write_text("0")
            for pid in (path / "cgroup.procs").read_text().split():
                with contextlib.suppress(OSError):
                    (mount / "cgroup.procs").write_text(pid)
            wait_until(lambda: _removed(path))


def _removed(path: Path) -> bool:
    with contextlib.suppress(OSError):
        path.rmdir()
    return not path.exists()


def is_frozen(group: Path) -> bool:
    return "frozen 1" in (group / "cgroup.events").read_text()


def end(*pids: int) -> None:
    for pid in pids:
        with contextlib.suppress(OSError):
            os.kill(pid, signal.SIGKILL)
