"""Burners and pings as processes: started beforehand, let go all at one moment, ended by their number however it goes.

They stay in our own session: with autogroup on, nice levels count within one session only.
"""

from __future__ import annotations

import contextlib
import json
import select
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from crosswind import errors
from crosswind.errors import AgentLost, CrosswindError, MeasurementError
from crosswind.host.processes import state
from crosswind.run.agent_process import environment

Settings = Mapping[str, Any]

READY_PATIENCE_S = 60.0
STOPPED_PATIENCE_S = 30.0
HEAD_START_S = 0.05
"""Time between the announcement of the common start and the start: enough for all processes to read it and sleep."""


def run_together(
    programs: Sequence[Settings],
    limit_s: float,
    alive: Callable[[], None] = lambda: None,
    on_ready: Callable[[], None] = lambda: None,
) -> list[dict[str, Any]]:
    """Run programs side by side from a common start.

    Parameters
    ----------
    programs : sequence of mappings
        Settings of each: `program` is "burn" or "ping", the rest is what `_core.Burner` and `_core.Ping` take.
    limit_s : float
        Time after which all are ended, s.
    alive : callable
        Called some times a second while they run; what it raises ends all.
    on_ready : callable
        Called once, when all are ready and none has begun.

    Returns
    -------
    list of dict
        The report of each, with `start_ns`, the common start.

    Raises
    ------
    MeasurementError
        When one cannot be started or fails, or the limit is reached.
    AgentLost
        When the peer of one goes away.
    """
    processes: list[subprocess.Popen[str]] = []
    stopped_since: dict[int, float] = {}

    def runs() -> None:
        alive()
        _refuse_stopped(processes, stopped_since)

    try:
        for settings in programs:
            processes.append(_started(settings))
        until = time.monotonic() + READY_PATIENCE_S
        for process in processes:
            said = _line(process, until, runs, f"a program was not ready after {READY_PATIENCE_S:g} s")
            if said != "ready":
                raise _failure(said)
        on_ready()
        start_ns = time.monotonic_ns() + int(1e9 * HEAD_START_S)
        for process in processes:
            _tell(process, str(start_ns))
        until = time.monotonic() + limit_s
        late = f"the programs were not done after {limit_s:.0f} s"
        return [{**_told(_line(process, until, runs, late)), "start_ns": start_ns} for process in processes]
    finally:
        _end(processes)


def _refuse_stopped(processes: Sequence[subprocess.Popen[str]], since: dict[int, float]) -> None:
    """Refuse to wait longer for a process that is stopped: the others wait for its messages.

    Raises
    ------
    MeasurementError
        When one has been stopped for long.
    """
    now = time.monotonic()
    for pid in (process.pid for process in processes):
        if state(pid) not in ("T", "t"):
            since.pop(pid, None)
        elif now - since.setdefault(pid, now) >= STOPPED_PATIENCE_S:
            message = f"process {pid} has been stopped for {STOPPED_PATIENCE_S:g} s, and the others wait for it"
            raise MeasurementError(
                message, "stopped", "measure again, and leave the programs running (SIGSTOP stops one)"
            )


def _started(settings: Settings) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "crosswind.overlap.process"]
    process = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1, env=environment()
    )
    _tell(process, json.dumps(settings))
    return process


def _tell(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdin is not None  # it was asked for
    with contextlib.suppress(BrokenPipeError):  # it has ended already: seen when it is read from
        process.stdin.write(line + "\n")
        process.stdin.flush()


def _line(process: subprocess.Popen[str], until: float, alive: Callable[[], None], late: str) -> str:
    assert process.stdout is not None  # it was asked for
    while not select.select([process.stdout], [], [], min(0.5, max(until - time.monotonic(), 0.0)))[0]:
        alive()
        if time.monotonic() >= until:
            raise MeasurementError(late, "limit", "give it longer (--limit-s), or less to do")
    return process.stdout.readline().strip()


def _told(line: str) -> dict[str, object]:
    told = json.loads(line) if line else {}
    if not isinstance(told, dict) or "ended_ns" not in told:
        raise _failure(line)
    return told


def _failure(line: str) -> CrosswindError:
    """Return the error that a process reported, with its class there."""
    try:
        told = json.loads(line)
        message, code, hint = told["error"], told["code"], told["hint"]
    except (ValueError, KeyError, TypeError):
        return MeasurementError("a program ended before its time" + (f": {line}" if line else ""), "program-ended")
    if told["kind"] == "AgentLost":
        return AgentLost(message, code, hint)
    known = getattr(errors, str(told["kind"]), MeasurementError)
    kind = known if isinstance(known, type) and issubclass(known, CrosswindError) else MeasurementError
    return kind(message, code, hint)


def _end(processes: Sequence[subprocess.Popen[str]]) -> None:
    for process in processes:
        if process.poll() is None:
            process.kill()
    for process in processes:
        process.wait()
        for pipe in (process.stdin, process.stdout):
            if pipe is not None:
                with contextlib.suppress(BrokenPipeError):
                    pipe.close()
