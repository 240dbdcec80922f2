"""Agents that a Dask worker carries: processes of their own, which hand back their tasks when the worker closes.

Runs in the workers; `crosswind.run.dask` calls it. A worker knows its agents through a plugin that only it has. When
the worker is asked to close, that waits until they have handed back what waits and finished what they compute. For each
agent there is a task in Dask. Once the worker has it no more, the agent is not needed: the farm was closed, or its
process or its client has gone. Then the plugin ends the agent, and with the last one takes itself away.
"""

from __future__ import annotations

import asyncio
import contextlib
import signal
import threading
import time
from pathlib import Path
from typing import TypedDict

from distributed import Worker, WorkerPlugin, get_worker, secede
from distributed.core import Status

from crosswind.access import read_token
from crosswind.errors import AgentLost, CrosswindError
from crosswind.host.processes import end_by
from crosswind.run import agent_process
from crosswind.run.processes import END_PATIENCE_S, LISTEN_PATIENCE_S, first_line_of, last_lines
from crosswind.run.spool import Spool, take_away_abandoned

_LOOK_S = 0.2
_TEND_S = 0.5
_TASK_PATIENCE_S = 60.0
"""How long an agent is kept whose task has never come: as long as an agent looks for its parent."""
_START_PATIENCE_S = 30.0
"""How long the task of an agent waits for it: both come at the same time to a worker that was stopped."""
_LEAVING = (Status.closing_gracefully, Status.closing)


class Wanted(TypedDict):
    """An agent as it is asked for."""

    name: str
    key: str
    """Of its task in Dask."""
    parent: str
    listen: str | None
    about: str
    token: str | None
    """None: it stands in `token_file`."""
    token_file: str | None
    allow_loose_token: bool
    tls: str | None
    """Its directory of certificates."""


class Carried:
    """An agent's process."""

    def __init__(self, wanted: Wanted) -> None:
        token = wanted["token"] or read_token(Path(wanted["token_file"] or ""), wanted["allow_loose_token"])
        self.key = wanted["key"]
        self.is_dismissed = self._is_leaving = False
        self.was_ended = threading.Event()
        self._begun = time.monotonic()
        self._spool = Spool()
        self._log = self._spool.path / "agent.log"
        options = ["--parent", wanted["parent"], *agent_process.name_option(wanted["name"])]
        options += ["--spool", str(self._spool.path)]
        if wanted["about"]:
            options += ["--about", wanted["about"]]
        if wanted["listen"]:
            options += ["--listen", wanted["listen"]]
        if wanted["tls"]:
            options += ["--tls", wanted["tls"]]
        try:
            with self._log.open("ab") as log:
                listens = wanted["listen"] is not None
                self.process = agent_process.start(options, token.strip(), listens=listens, output=log)
        except BaseException:
            self._spool.close()
            raise
        self.stop = agent_process.Stop(self.process)

    def address(self) -> str | None:
        """Return where its children connect, once it listens; None where it has none, or has ended."""
        return first_line_of(self.process.stdout, LISTEN_PATIENCE_S) or None if self.process.stdout else None

    def said(self) -> str:
        """Return the end of its log."""
        with contextlib.suppress(OSError):
            return last_lines(self._log)
        return ""

    def may_get_task(self) -> bool:
        """Whether its task may still come, even if it has ended: the task then says how."""
        return time.monotonic() - self._begun < _TASK_PATIENCE_S

    def leave(self) -> None:
        """Ask it, once, to hand back what waits and to finish the rest."""
        if not self._is_leaving:
            self._is_leaving = True
            with contextlib.suppress(ProcessLookupError):
                if self.process.poll() is None:
                    self.process.send_signal(signal.SIGTERM)

    def dismiss(self) -> None:
        """Tell it that it is not needed."""
        self.is_dismissed = True
        assert self.process.stdin is not None  # it was asked for
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self) -> str:
        """End it: it is asked to end, then killed. Take its files away, and return the end of its log."""
        self.dismiss()
        end_by(self.process, time.monotonic() + END_PATIENCE_S)
        self.was_ended.set()
        said = self.said()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self._spool.close()
        return said


class Carrier(WorkerPlugin):  # type: ignore[misc, unused-ignore]
    """The agents of one farm that one worker carries.

    Parameters
    ----------
    farm : str
        Which farm.
    """

    def __init__(self, farm: str) -> None:
        self.name = plugin_name(farm)
        self.agents: dict[str, Carried] = {}
        self.starting = 0
        """How many requests start agents at present."""
        self._seen: set[str] = set()
        """Keys of tasks that have come."""
        self._tending: asyncio.Task[None] | None = None

    async def setup(self, worker: Worker) -> None:
        """Begin to look after the agents."""
        self._tending = asyncio.create_task(self._tend(worker))

    def transition(self, key: str, start: str, finish: str, **_: object) -> None:
        """Note that the task of an agent has come, however soon it goes."""
        if str(key).startswith(self.name):
            self._seen.add(key)

    async def teardown(self, worker: Worker) -> None:
        """Let all agents leave, as the worker closes."""
        if self._tending is not None and self._tending is not asyncio.current_task():
            self._tending.cancel()
        for agent in self.agents.values():
            agent.leave()
        while any(agent.process.poll() is None for agent in self.agents.values()):
            for agent in self.agents.values():
                agent.stop.look(time.monotonic())
            await asyncio.sleep(_LOOK_S)
        await self.end()

    async def end(self) -> dict[str, str]:
        """End all agents, side by side; the end of each one's log."""
        agents, self.agents = self.agents, {}
        for agent in agents.values():
            agent.dismiss()
        said = await asyncio.gather(*(asyncio.to_thread(agent.end) for agent in agents.values()))
        return dict(zip(agents, said, strict=True))

    async def _tend(self, worker: Worker) -> None:
        """End agents that are not wanted any more, and take this plugin away with the last one."""
        while self.agents or self.starting:
            await self._tend_until_empty(worker)
            await asyncio.to_thread(take_away_abandoned)  # a program that was killed on this host leaves its own behind
            # A request may have come meanwhile.
        if worker.plugins.get(self.name) is self:
            await worker.plugin_remove(self.name)

    async def _tend_until_empty(self, worker: Worker) -> None:
        while self.agents or self.starting:
            for name, agent in list(self.agents.items()):
                agent.stop.look(time.monotonic())
                if worker.status in _LEAVING:
                    agent.leave()
                had_task = agent.key in self._seen
                is_wanted = has_task(worker, agent.key) or (not had_task and agent.may_get_task())
                if not is_wanted and self.agents.get(name) is agent:
                    self.agents.pop(name)
                    self._seen.discard(agent.key)
                    await asyncio.to_thread(agent.end)
            await asyncio.sleep(_TEND_S)


def plugin_name(farm: str) -> str:
    """Return what a farm's plugin is called at a worker."""
    return f"crosswind-{farm}"


def has_task(worker: Worker, key: str) -> bool:
    """Whether a worker has a task that was not cancelled."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled"


async def start(farm: str, wanted: list[Wanted], dask_worker: Worker) -> dict[str, str]:
    """Start this worker's agents; where each listens ("" where it does not), by its name.

    Raises
    ------
    AgentLost
        When one does not start, with what it said; when this host has no token for it, or no room.
    """
    carrier = Carrier(farm)
    carrier = dask_worker.plugins.get(carrier.name, carrier)
    carrier.starting += 1
    try:
        if carrier.name not in dask_worker.plugins:
            await dask_worker.plugin_add(carrier, name=carrier.name)
        listening = {}
        for agent in wanted:
            if (old := carrier.agents.pop(agent["name"], None)) is not None:  # one that has ended
                await asyncio.to_thread(old.end)
            listening[agent["name"]] = await _start_one(carrier, agent, dask_worker.address)
        return listening
    finally:
        carrier.starting -= 1


async def _start_one(carrier: Carrier, wanted: Wanted, worker: str) -> str:
    name = wanted["name"]
    try:
        carried = carrier.agents[name] = Carried(wanted)
    except (CrosswindError, OSError) as error:  # of the token's file, of the disk, of the process itself
        hint = getattr(error, "hint", None)
        raise AgentLost(f"the agent {name} on {worker} did not start: {error}", "agent-start", hint) from None
    address = await asyncio.to_thread(carried.address)
    if wanted["listen"] and address is None:
        raise AgentLost(f"the agent {name} on {worker} did not start{carried.said()}", "agent-start")
    return address or ""


async def end(farm: str, dask_worker: Worker) -> dict[str, str]:
    """End this worker's agents of a farm, and leave nothing of it here; the end of each one's log."""
    carrier: Carrier | None = dask_worker.plugins.get(plugin_name(farm))
    said = {}
    if carrier is not None:
        said = await carrier.end()
        if dask_worker.plugins.get(carrier.name) is carrier:
            await dask_worker.plugin_remove(carrier.name)
    await asyncio.to_thread(take_away_abandoned)
    return said


def watch(farm: str, name: str, key: str) -> None:
    """Be the task that stands for an agent in Dask: as long as it runs, with its error if it fails.

    Takes no thread from other tasks.
    """
    worker = get_worker()
    secede()
    agent = _agent_of(worker, farm, name, key)
    while agent is not None and agent.process.poll() is None:
        agent.was_ended.wait(_LOOK_S)
    if agent is not None and agent.process.returncode != 0 and not agent.is_dismissed:
        raise AgentLost(f"the agent {name} on {worker.address} ended with {agent.process.returncode}{agent.said()}")


def _agent_of(worker: Worker, farm: str, name: str, key: str) -> Carried | None:
    """Return the agent of a task, once it has been started; None where the task was cancelled before."""
    until = time.monotonic() + _START_PATIENCE_S
    while has_task(worker, key):
        carrier: Carrier | None = worker.plugins.get(plugin_name(farm))
        agent = carrier.agents.get(name) if carrier is not None else None
        if agent is not None and agent.key == key:
            return agent
        if time.monotonic() > until:
            raise AgentLost(f"the agent {name} on {worker.address} was not started")
        time.sleep(_LOOK_S)
    return None
