"""The processes of a tree of agents: started from the root down, ended by their number, however the run ends.

Each gets the token on its stdin, which stays open: an agent ends when it closes. So none is left behind, not even after
`kill -9` of this process, and ctrl-C on a terminal reaches this process only.
"""

from __future__ import annotations

import contextlib
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from crosswind.errors import AgentLost
from crosswind.run.spool import Spool

_LISTEN_PATIENCE_S = 20.0
_END_PATIENCE_S = 3.0
_SHOWN = 20  # last lines of a log that an error shows


@dataclass(frozen=True)
class Launch:
    """How a node's process is started."""

    prefix: Callable[[str], Sequence[str]] = lambda node: ()
    """Words before the command, by node: `["testbed.py", "exec", node, "--"]`. It must hand stdin and stdout on."""
    address: Callable[[str], str] = lambda node: "127.0.0.1"
    """The address at which a node listens, as its children see it."""
    logs: Path | None = None
    """Directory of one log per process; default: one of its own, kept when something went wrong."""
    by_hand: bool = False
    """Start nobody: wait for `crosswind serve --parent` of each node."""
    listen: str | None = None
    """HOST:PORT of the root; default: its `address` and a free port."""


class AgentProcesses:
    """The processes of all nodes below the root.

    Parameters
    ----------
    nodes : sequence of mapping
        The platform's nodes.
    launch : Launch
        How they are started.
    token : str
        What all share.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]], launch: Launch, token: str) -> None:
        self._nodes, self._launch, self._token = nodes, launch, token
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._own_logs = launch.logs is None
        self.logs = launch.logs or Path(tempfile.mkdtemp(prefix="crosswind-logs-"))
        self.logs.mkdir(parents=True, exist_ok=True)
        self._spool = Spool()
        self.spool = self._spool.path

    def start(self, root_address: str) -> None:
        """Start all, each once its parent listens.

        Raises
        ------
        AgentLost
            When one does not start; its log is shown.
        """
        if self._launch.by_hand:
            return
        children: dict[str | None, list[str]] = {}
        for node in self._nodes:
            children.setdefault(node.get("parent"), []).append(node["name"])
        addresses = {children[None][0]: root_address}
        waiting = list(children[None])
        while waiting:
            parent = waiting.pop(0)
            for name in children.get(parent, []):
                self._start_one(name, addresses[parent], listens=name in children)
            for name in children.get(parent, []):
                if name in children:
                    addresses[name] = self._address_of(name)
                    waiting.append(name)

    def _start_one(self, name: str, parent: str, *, listens: bool) -> None:
        command = [*self._launch.prefix(name), sys.executable, "-m", "crosswind.run.agent"]
        command += ["--parent", parent, "--name", name, "--spool", str(self.spool)]
        if listens:
            command += ["--listen", f"{self._launch.address(name)}:0"]
        with self._log_of(name).open("ab") as log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE if listens else log,
                stderr=log,
                env=environment(),
                start_new_session=True,
            )
        self._processes[name] = process
        assert process.stdin is not None  # it was asked for
        with contextlib.suppress(BrokenPipeError):  # it has ended already: seen when it is waited for
            process.stdin.write(self._token.encode() + b"\n")
            process.stdin.flush()

    def _log_of(self, name: str) -> Path:
        return self.logs / (name.replace("/", "_") + ".log")

    def _address_of(self, name: str) -> str:
        stdout = self._processes[name].stdout
        assert stdout is not None  # it was asked for
        ready, _, _ = select.select([stdout], [], [], _LISTEN_PATIENCE_S)
        address = stdout.readline().decode().strip() if ready else ""
        if not address:
            raise AgentLost(f"the agent {name} did not start{self._said(name)}", "agent-start")
        return address

    def _said(self, name: str) -> str:
        lines = self._log_of(name).read_text(errors="replace").strip().splitlines()[-_SHOWN:]
        return ": " + "\n".join(lines) if lines else ""

    def complaints(self) -> list[str]:
        """Return the last line of each log that has one."""
        said = []
        for path in sorted(self.logs.glob("*.log")):
            lines = path.read_text(errors="replace").strip().splitlines()
            if lines:
                said.append(lines[-1])
        return said

    def pid(self, name: str) -> int:
        """Process number of a node's agent (of its prefix, where that does not replace itself)."""
        return self._processes[name].pid

    def end(self, *, keep_logs: bool) -> None:
        """End all: those who know that the run is over have ended; the others are told, then killed."""
        for process in self._processes.values():
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
        until = time.monotonic() + _END_PATIENCE_S
        for process in self._processes.values():
            try:
                process.wait(max(until - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
            if process.stdout is not None:
                process.stdout.close()
        self._processes.clear()
        self._spool.close()
        if self._own_logs and not keep_logs:
            shutil.rmtree(self.logs, ignore_errors=True)


def environment() -> dict[str, str]:
    """Return our own environment, in which our own package is found first."""
    ours = str(Path(__file__).resolve().parents[2])
    paths = [ours, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
