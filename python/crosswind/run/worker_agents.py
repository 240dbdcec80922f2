"""Agents that a Dask worker carries: processes of their own, which hand back their tasks when the worker closes.

Runs in the workers; `crosswind.run.dask` calls it. A worker knows its agents through a plugin that only it has: when
the worker is asked to close, it waits until they have handed back what waits and finished what they compute.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import threading
import time
from pathlib import Path
from typing import TypedDict

from distributed import Worker, WorkerPlugin, get_worker, secede
from distributed.core import Status

from crosswind.access import read_token
from crosswind.errors import AgentLost, DescriptionError
from crosswind.run import agent_process
from crosswind.run.processes import END_PATIENCE_S, LISTEN_PATIENCE_S, first_line_of, last_lines
from crosswind.run.spool import Spool

_LOOK_S = 0.2
_LEAVING = (Status.closing_gracefully, Status.closing)


class Wanted(TypedDict):
    """An agent as it is asked for."""

    name: str
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
        self.was_ended = threading.Event()
        self._spool = Spool()
        self._log = self._spool.path / "agent.log"
        options = ["--parent", wanted["parent"], "--name", wanted["name"], "--spool", str(self._spool.path)]
        if wanted["about"]:
            options += ["--about", wanted["about"]]
        if wanted["listen"]:
            options += ["--listen", wanted["listen"]]
        if wanted["tls"]:
            options += ["--tls", wanted["tls"]]
        with self._log.open("ab") as log:
            listens = wanted["listen"] is not None
            self.process = agent_process.start(options, token.strip(), listens=listens, output=log)

    def address(self) -> str | None:
        """Return where its children connect, once it listens; None where it has none, or has ended."""
        return first_line_of(self.process.stdout, LISTEN_PATIENCE_S) or None if self.process.stdout else None

    def said(self) -> str:
        """Return the end of its log."""
        return last_lines(self._log)

    def leave(self) -> None:
        """Ask it to hand back what waits and to finish the rest."""
        with contextlib.suppress(ProcessLookupError):
            if self.process.poll() is None:
                self.process.send_signal(signal.SIGTERM)

    def dismiss(self) -> None:
        """Tell it that it is not needed."""
        assert self.process.stdin is not None  # it was asked for
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()

    def end(self) -> None:
        """End it: it is asked to end, then killed."""
        self.dismiss()
        try:
            self.process.wait(END_PATIENCE_S)
        except subprocess.TimeoutExpired:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.was_ended.set()

    def forget(self) -> str:
        """Take its files away; return the end of its log."""
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

    async def teardown(self, worker: Worker) -> None:
        """Let all agents leave, as the worker closes."""
        for agent in self.agents.values():
            agent.leave()
        await asyncio.gather(*(asyncio.to_thread(agent.process.wait) for agent in self.agents.values()))
        self.end()

    def end(self) -> dict[str, str]:
        """End all agents, side by side; the end of each one's log."""
        for agent in self.agents.values():
            agent.dismiss()
        for agent in self.agents.values():
            agent.end()
        return {name: self.agents.pop(name).forget() for name in list(self.agents)}


def plugin_name(farm: str) -> str:
    """Return what a farm's plugin is called at a worker."""
    return f"crosswind-{farm}"


async def start(farm: str, wanted: dict[str, list[Wanted]], dask_worker: Worker) -> dict[str, str]:
    """Start this worker's agents; where each listens ("" where it does not), by its name.

    Raises
    ------
    AgentLost
        When one that should listen does not, with what it said; when this host has no token for it.
    """
    name = plugin_name(farm)
    if name not in dask_worker.plugins:
        await dask_worker.plugin_add(Carrier(farm), name=name)
    carrier: Carrier = dask_worker.plugins[name]
    listening = {}
    for agent in wanted[dask_worker.address]:
        if agent["name"] in carrier.agents:  # one that has ended
            old = carrier.agents.pop(agent["name"])
            await asyncio.to_thread(old.end)
            old.forget()
        try:
            carried = carrier.agents[agent["name"]] = Carried(agent)
        except DescriptionError as error:  # of the token's file on this host
            raise AgentLost(
                f"the agent {agent['name']} on {dask_worker.address} did not start: {error}", "agent-start", error.hint
            ) from None
        address = await asyncio.to_thread(carried.address)
        if agent["listen"] and address is None:
            raise AgentLost(
                f"the agent {agent['name']} on {dask_worker.address} did not start{carried.said()}", "agent-start"
            )
        listening[agent["name"]] = address or ""
    return listening


async def end(farm: str, dask_worker: Worker) -> dict[str, str]:
    """End this worker's agents of a farm, and leave nothing of it here; the end of each one's log."""
    carrier: Carrier | None = dask_worker.plugins.get(plugin_name(farm))
    if carrier is None:
        return {}
    said = await asyncio.to_thread(carrier.end)
    await dask_worker.plugin_remove(plugin_name(farm))
    return said


def watch(farm: str, name: str) -> None:
    """Be the task that stands for an agent in Dask: as long as it runs, with its error if it fails.

    Takes no thread from other tasks. The agent ends when this task is cancelled or its client is gone, and is asked to
    leave as soon as the worker knows that it is to close.
    """
    worker = get_worker()
    secede()
    carrier: Carrier = worker.plugins[plugin_name(farm)]
    agent, asked = carrier.agents[name], False
    stop = agent_process.Stop(agent.process)
    key = f"{plugin_name(farm)}-{name}"
    while agent.process.poll() is None:
        stop.look(time.monotonic())
        task = worker.state.tasks.get(key)
        if task is None or task.state == "cancelled":
            agent.end()
            return
        if worker.status in _LEAVING and not asked:
            asked = True
            agent.leave()
        agent.was_ended.wait(_LOOK_S)
    if agent.process.returncode != 0:
        raise AgentLost(f"the agent {name} on {worker.address} ended with {agent.process.returncode}{agent.said()}")
