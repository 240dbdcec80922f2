"""The process of an agent: how it is started, and how one that is stopped is ended.

It gets the token on its stdin, which stays open: the agent ends when it closes, so it never outlives the process that
started it.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Final

from crosswind.host.processes import kill_group, state
from crosswind.run.agent import MARK, new_mark

STOPPED_S: Final = 5.0
"""An agent that is stopped (SIGSTOP) for longer is ended: its parent counts it as lost by then, s."""


def start(
    options: Sequence[str],
    token: str,
    *,
    listens: bool,
    output: IO[bytes] | IO[str] | None = None,
    prefix: Sequence[str] = (),
) -> subprocess.Popen[bytes]:
    """Start an agent.

    Parameters
    ----------
    options : sequence of str
        Of `python -m crosswind.run.agent`.
    token : str
        What all agents of the farm share; empty: certificates are enough.
    listens : bool
        Whether it prints the address where its children connect, as the first line of its stdout.
    output : file, optional
        Where else it prints; default: standard error.
    prefix : sequence of str
        Words before the command, which must hand stdin and stdout on.
    """
    mark = new_mark()
    process = subprocess.Popen(
        [*prefix, sys.executable, "-u", "-m", "crosswind.run.agent", *options, "--mark", mark],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE if listens else output or sys.stderr,
        stderr=output,
        env={**environment(), MARK: mark},
        start_new_session=True,  # ctrl-C reaches the process that started it
    )
    assert process.stdin is not None  # it was asked for
    with contextlib.suppress(BrokenPipeError):  # it has ended already: seen when it is waited for
        process.stdin.write(token.encode() + b"\n")
        process.stdin.flush()
    return process


def name_option(name: str) -> list[str]:
    """Return the option for a node's name, which may look like an option itself.

    Examples
    --------
    >>> name_option("a"), name_option("-rf")
    (['--name', 'a'], ['--name=-rf'])
    """
    return [f"--name={name}"] if name.startswith("-") else ["--name", name]


def environment() -> dict[str, str]:
    """Return the environment of this process, in which this package and what this process imports are found first."""
    package = str(Path(__file__).resolve().parents[2])
    ours = (sys.prefix, sys.base_prefix, sys.exec_prefix)  # a task may run another Python
    imported = [str(Path(path).absolute()) for path in sys.path if not path.startswith(ours)]
    paths = [package, *imported, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(dict.fromkeys(paths))}


class Stop:
    """Ends an agent that is stopped: nothing else would ever continue it, and its tasks would wait.

    Parameters
    ----------
    process : Popen
        The agent.
    """

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._since_s: float | None = None

    def look(self, now_s: float) -> None:
        """Kill the agent with its session if it has been stopped for `STOPPED_S`; call it again and again."""
        if self._process.poll() is not None or not is_stopped(self._process.pid):
            self._since_s = None
        elif self._since_s is None:
            self._since_s = now_s
        elif now_s - self._since_s >= STOPPED_S:
            continue_tasks(self._process.pid)
            kill_group(self._process.pid)


def continue_tasks(pid: int) -> None:
    """Continue the processes of an agent's tasks that are stopped: until then they do not see that the agent ends."""
    with contextlib.suppress(OSError):  # it has ended
        for thread in Path(f"/proc/{pid}/task").iterdir():
            for child in map(int, (thread / "children").read_text().split()):
                if is_stopped(child):
                    os.kill(child, signal.SIGCONT)


def is_stopped(pid: int) -> bool:
    """Whether a process is stopped by a signal (not by a debugger)."""
    return state(pid) == "T"
