"""The processes of a tree of agents: started from the root down, ended by their number, however the run ends.

One per node, except that leaves of large emulated trees share some (`Launch.shares`): a process costs 50 ms and 8 MB.

Each gets the token on its stdin, which stays open: an agent ends when it closes. So none is left behind, not even after
`kill -9` of this process, and ctrl-C on a terminal reaches this process only. One that a task, the kernel or a person
ends is started again, whatever its exit status: an agent that ends by itself leaves a mark first.
"""

from __future__ import annotations

import contextlib
import select
import signal
import subprocess
import threading
import time
from collections import deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import quote

from crosswind.errors import AgentLost
from crosswind.host.processes import end_by, kill_group
from crosswind.run import agent_process
from crosswind.run.agent import DISK_FULL
from crosswind.run.backoff import Backoff
from crosswind.run.echo import Echo
from crosswind.run.spool import Logs, Spool, no_space

if TYPE_CHECKING:
    from crosswind.errors import Notice
    from crosswind.platform import Platform
    from crosswind.run.deployment import MeanTask

LISTEN_PATIENCE_S = 20.0
END_PATIENCE_S = 3.0
_TOLD = 5  # agents of which an error says how they ended
_MOST_FULL, _FULL_WITHIN_S = 10, 60.0  # starts of an agent whose disk was full, and within which time
_SHOWN = 20  # last lines of a log that an error shows
_LOOK_S = 0.1
_ALONE = 64  # nodes up to which each has a process of its own
_TOGETHER = 400  # agents of one process: with two descriptors each they stay below the usual limit of 1024


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
    """Start no agent: wait for `crosswind serve --parent` of each node."""
    listen: str | None = None
    """HOST:PORT of the root; default: its `address` and a free port."""
    again: bool = True
    """Start an agent again that a task or another process has ended; not one that ended with an error of its own."""
    echo: bool = False
    """Show on standard error what agents leave in their logs."""
    tls: Callable[[str], str] | None = None
    """The directory of a node's certificates, as that node sees it: `lambda node: f"/etc/crosswind/{node}"`."""
    shares: bool = False
    """Whether leaves of large trees share processes, as threads. For agents that compute nothing: emulated ones."""

    on = "local"
    token = None

    @property
    def trusted(self) -> bool:
        """Whether nodes may run code in this process: agents that it starts itself may."""
        return not self.by_hand

    def tree(self) -> Platform:
        """Return this machine: a root and one node per CPU."""
        from crosswind.run.this_machine import here

        return here()

    def door(self, root: str) -> str:
        """Return where the root listens."""
        return self.listen or f"{self.address(root)}:0"

    def agents(self, nodes: Sequence[Mapping[str, Any]], token: str, task: MeanTask) -> AgentProcesses:
        """Return the nodes' processes, not started yet."""
        return AgentProcesses(nodes, self, token)


class AgentProcesses:
    """The processes of all nodes below the root.

    Parameters
    ----------
    nodes : sequence of mapping
        The platform's nodes.
    launch : Launch
        How they are started.
    token : str
        What all share; empty: certificates are enough.
    """

    def __init__(self, nodes: Sequence[Mapping[str, Any]], launch: Launch, token: str) -> None:
        self._nodes, self._launch, self._token = nodes, launch, token
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        """By the first of a process's nodes, as `_starts`."""
        self._starts: dict[str, _Start] = {}
        self._first: dict[str, str] = {}
        """The first node of each node's process."""
        self._ending = threading.Event()
        self._watch: threading.Thread | None = None
        self.warnings: list[Notice] = []
        self._spool = Spool()
        self.spool = self._spool.path
        self._logs = Logs(launch.logs)
        self.logs = self._logs.path
        below = [node["name"] for node in nodes if node.get("parent") is not None]
        self._echo = Echo({name: self._log_of(name) for name in below}) if launch.echo else None

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
        waiting = deque(children[None])
        while waiting:
            parent = waiting.popleft()
            below = children.get(parent, [])
            for name, *others in self._by_process(below, children):
                self._first.update(dict.fromkeys([name, *others], name))
                listen = f"{self._launch.address(name)}:0" if name in children else None
                self._start_one(name, _Start(addresses[parent], listen, others))
            for name in below:
                if name in children:
                    addresses[name] = self._address_of(name)
                    # Those below will look for it there if it has to be started again.
                    self._starts[name].listen = addresses[name]
                    waiting.append(name)
        if self._launch.again:
            self._watch = threading.Thread(target=self._start_again, name="crosswind-agents", daemon=True)
            self._watch.start()

    def _by_process(self, names: list[str], inner: Container[str | None]) -> Iterator[list[str]]:
        """Yield the nodes of each process, of siblings; `inner` are the nodes that have children."""
        if not self._launch.shares or len(self._nodes) <= _ALONE or self._launch.tls is not None:
            yield from ([name] for name in names)
            return
        leaves = [name for name in names if name not in inner and not self._launch.prefix(name)]
        yield from ([name] for name in names if name in inner or self._launch.prefix(name))
        yield from (leaves[at : at + _TOGETHER] for at in range(0, len(leaves), _TOGETHER))

    def _start_again(self) -> None:
        """Look after agents that did not end by themselves, until the end."""
        while not self._ending.wait(_LOOK_S):
            if self._echo is not None:
                self._echo.look()
            now = time.monotonic()
            for name, start in self._starts.items():
                if start.stop is not None:
                    start.stop.look(now)
                end = self._processes[name].poll()
                if end == DISK_FULL and not start.is_noted:
                    start.full, start.is_noted = [*start.full[-_MOST_FULL:], now], True
                if end is None or self.is_down(name):
                    continue
                start.backoff.ended(now)
                if start.backoff.is_due(now):
                    try:
                        self._start_one(name, start)
                    except (OSError, subprocess.SubprocessError):  # no memory or no process left just now
                        start.backoff.failed(now)

    def _start_one(self, name: str, start: _Start) -> None:
        options = ["--parent", start.parent, *agent_process.name_option(name), "--spool", str(self.spool)]
        options += ["--ended", str(self._mark_of(name))]
        options += [f"--also={other}" for other in start.others]
        if self._launch.tls is not None:
            options += ["--tls", self._launch.tls(name)]
        if start.listen is not None:
            options += ["--listen", start.listen]
        self._starts[name] = start
        start.backoff.began(time.monotonic())
        start.is_noted = False
        if name in self._processes:
            _close(self._processes[name])
        if self._echo is not None:
            options += ["--log", str(self._log_of(name).with_suffix(".agent.log"))]
        listens = start.listen is not None
        with self._log_of(name).open("ab") as log:
            prefix = self._launch.prefix(name)
            process = agent_process.start(options, self._token, listens=listens, output=log, prefix=prefix)
        self._processes[name], start.stop = process, agent_process.Stop(process)

    def _mark_of(self, name: str) -> Path:
        return self.spool / f"ended-{quote(name, safe='')}"

    def is_down(self, name: str) -> bool:
        """Whether an agent has ended and is not started again: the run is over for it, or it cannot continue.

        One whose disk was full is started again: the disk may have room by now. Not for ever, since an input that is
        larger than the disk would end it each time.
        """
        end = self._processes[name].poll()
        if end != DISK_FULL:
            return end is not None and self._mark_of(name).exists()
        recent = [at for at in self._starts[name].full if time.monotonic() - at < _FULL_WITHIN_S]
        return len(recent) > _MOST_FULL

    def lost(self, hurried: threading.Event | None = None) -> str:
        """Return how agents that have ended did so."""
        ends = {name: process.poll() for name, process in self._processes.items()}
        told = [f"{name} ended with {status_of(end)}" for name, end in ends.items() if end is not None]
        more = f" and {len(told) - _TOLD} more" if len(told) > _TOLD else ""
        return ", ".join(told[:_TOLD]) + more

    def _log_of(self, name: str) -> Path:
        return self.logs / (name.replace("/", "_") + ".log")

    def _address_of(self, name: str) -> str:
        stdout = self._processes[name].stdout
        assert stdout is not None  # it was asked for
        address = first_line_of(stdout, LISTEN_PATIENCE_S)
        if not address:
            raise AgentLost(f"the agent {name} did not start{last_lines(self._log_of(name))}", "agent-start")
        return address

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
        return self._processes[self._first[name]].pid

    def signal(self, name: str, number: signal.Signals) -> None:
        """Send a signal to a node's agent, if it lives."""
        self._processes[self._first[name]].send_signal(number)

    def end(self, *, keep_logs: bool, hurried: threading.Event) -> None:
        """End all: agents that know that the run is over have ended; the others lose their stdin, then are killed."""
        self._ending.set()
        if self._watch is not None:
            self._watch.join()
        for process in self._processes.values():
            if process.stdin is not None:
                with contextlib.suppress(BrokenPipeError):
                    process.stdin.close()
            agent_process.continue_tasks(process.pid)
            if process.poll() is None and agent_process.is_stopped(process.pid):  # it would not see the end
                kill_group(process.pid)
        until = time.monotonic() + END_PATIENCE_S
        for process in self._processes.values():
            end_by(process, until)
            _close(process)
        self._processes.clear()
        if self._echo is not None:
            self._echo.end()
        self._logs.close(keep=keep_logs)
        self._spool.close()


@dataclass
class _Start:
    """How an agent is started, and when it may be again."""

    parent: str
    listen: str | None
    others: list[str] = field(default_factory=list)
    """Nodes that share the process."""
    stop: agent_process.Stop | None = None
    backoff: Backoff = field(default_factory=Backoff)
    full: list[float] = field(default_factory=list)
    """When its disk was full."""
    is_noted: bool = False
    """Whether that is among them already, of the process that ended last."""


def status_of(end: int) -> str:
    """Return an exit status in words."""
    return f"status {end}" if end >= 0 else f"signal {-end}"


def _close(process: subprocess.Popen[bytes]) -> None:
    for stream in (process.stdin, process.stdout):
        if stream is not None:
            with contextlib.suppress(BrokenPipeError):
                stream.close()


def first_line_of(stdout: IO[bytes], patience_s: float) -> str:
    """Return the first line that a process prints; empty where none comes in time."""
    ready, _, _ = select.select([stdout], [], [], patience_s)
    return stdout.readline().decode().strip() if ready else ""


def last_lines(log: Path) -> str:
    """Return the last lines of a log as the end of a sentence: empty, or a colon and the lines."""
    lines = log.read_text(errors="replace").strip().splitlines()[-_SHOWN:]
    full = no_space(log.parent)  # it may have had more to say
    return "".join(f": {said}" for said in (full, "\n".join(lines)) if said)
