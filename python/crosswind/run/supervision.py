"""An agent that stays: a process of its own below `crosswind serve`, started again when a task ends it.

What tasks do to their process (an exit, a crash, too much memory, a call over its time) then costs the task its tries,
and the node stays in the farm.
"""

from __future__ import annotations

import contextlib
import json
import os
import select
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from crosswind import errors
from crosswind.errors import AgentLost, CrosswindError
from crosswind.host.processes import kill_group
from crosswind.run import agent_process
from crosswind.run.backoff import Backoff
from crosswind.run.processes import LISTEN_PATIENCE_S, first_line_of, status_of
from crosswind.run.spool import Spool

_LOOK_S = 1.0


def supervise(
    parent: str,
    name: str,
    token: str | None,
    *,
    tls: str | None = None,
    listen: str | None = None,
    about: str = "",
    leave: int | None = None,
    standing: Path | None = None,
    on_listening: Callable[[str], None] = lambda address: None,
    on_restart: Callable[[str], None] = lambda why: None,
) -> None:
    """Have a process be a node of a farm until its run ends; parameters as of `crosswind.run.agent.be_agent`.

    `on_restart` is called with how the process ended before it is started again; `standing` is a directory for the
    agent's status files.

    Raises
    ------
    AgentLost, DescriptionError
        Why the agent cannot continue: the parent cannot be reached, or refuses.
    """
    spool, backoff = Spool(), Backoff()
    mark = spool.path / "ended"
    options = ["--parent", parent, *agent_process.name_option(name)]
    options += ["--spool", str(spool.path), "--ended", str(mark), "--about", about, "--silent"]
    options += ["--tls", tls] if tls is not None else []
    options += ["--standing", str(standing)] if standing is not None else []
    told = False
    try:
        while True:
            backoff.began(time.monotonic())
            place = ["--listen", listen] if listen is not None else []
            process = agent_process.start([*options, *place], token or "", listens=listen is not None)
            try:
                if process.stdout is not None and (address := first_line_of(process.stdout, LISTEN_PATIENCE_S)):
                    listen = address  # where its children look for it again
                    if not told:
                        on_listening(address)
                    told = True
                leaving = _end_of(process, leave)
            finally:
                _end(process)
            if mark.exists():
                _raise_what_it_said(mark)
                return
            if leaving:
                return
            on_restart(f"the agent ended with {status_of(process.returncode)}")
            backoff.ended(time.monotonic())
            if _asked_while_waiting(backoff, leave):
                return
    finally:
        spool.close()


def _end_of(process: subprocess.Popen[bytes], leave: int | None) -> bool:
    """Wait for the end; hand on that it is to leave, and end it when that is asked again. Whether it was asked."""
    ended, asked, stop = os.pidfd_open(process.pid), 0, agent_process.Stop(process)
    try:
        while process.poll() is None:
            stop.look(time.monotonic())
            watched = [ended] if leave is None else [ended, leave]
            ready, _, _ = select.select(watched, [], [], _LOOK_S)
            if leave in ready:
                asked += len(os.read(leave, 16)) if leave is not None else 0
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(signal.SIGTERM) if asked == 1 else os.killpg(process.pid, signal.SIGKILL)
    finally:
        os.close(ended)
    return asked > 0


def _end(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()
    if process.poll() is None:
        kill_group(process.pid)
    process.wait()


def _raise_what_it_said(mark: Path) -> None:
    """Raise the error that the agent ended with, if it was one."""
    said = mark.read_text(encoding="utf-8")
    if said:
        error = json.loads(said)
        kind: type[CrosswindError] = getattr(errors, error["kind"], AgentLost)
        raise kind(error["message"], error["code"], error["hint"])


def _asked_while_waiting(backoff: Backoff, leave: int | None) -> bool:
    while not backoff.is_due(time.monotonic()):
        ready, _, _ = select.select([] if leave is None else [leave], [], [], 0.05)
        if ready:
            return True
    return False
