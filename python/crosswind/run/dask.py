"""A tree of agents on the hosts of a Dask cluster: Dask places them, watches them and ships the code.

Tasks and results do not go by Dask: agents connect to each other as the tree says. Each thread of a worker, each
worker or each host (`Placing.per`) carries one agent, a process of its own (`crosswind.run.worker_agents`), so that a
busy worker does not delay it. A task in Dask stands for each agent. Workers that join while the farm runs carry
agents, too. One that is retired lets its agents hand back what waits and finish what they compute. What one that dies
costs is up to the tree (docs/concepts/agents.md).
"""

from __future__ import annotations

import contextlib
import itertools
import json
import secrets
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosswind.cluster.client import (
    NONE_YET_S,
    PATIENCE_S,
    SILENT_HINT,
    ask,
    does_not_answer,
    fitting,
    look_at,
    own_address,
    workers_of,
)
from crosswind.cluster.hosts import Host, Place, any_port, hosts_of
from crosswind.errors import AgentLost, CrosswindError, Notice, warning
from crosswind.links import Links
from crosswind.platform import Platform
from crosswind.run.backoff import Backoff
from crosswind.run.deployment import MeanTask, Placing
from crosswind.run.late_joiners import leaf_below
from crosswind.run.places import places, star
from crosswind.run.processes import END_PATIENCE_S, LISTEN_PATIENCE_S
from crosswind.run.spool import Logs, Spool, take_away_abandoned

if TYPE_CHECKING:
    from distributed import Client, Future

    from crosswind.run.worker_agents import Wanted

_LOOK_S, _LOOK_SOON_S = 1.0, 0.1
_WAIT_S = 10.0
_ANSWER_S = 2.0
"""How long a worker may take to answer at the end, s: one that does not is not waited for."""
_NAMED = 3


class OnDask:
    """A deployment on a Dask cluster.

    Parameters
    ----------
    client : distributed.Client
        Of the cluster; it stays open.
    placing : optional
        Which node goes where.

    Raises
    ------
    DescriptionError
        When the cluster has no worker, or one does not fit to this process.
    AgentLost
        When no worker answers.
    """

    on = "dask"
    trusted = True  # Dask itself runs what its workers send

    def __init__(self, client: Client, placing: Placing | None = None) -> None:
        self.client, self.placing = client, placing or Placing()
        self.token = self.placing.token or secrets.token_hex(32)
        self.tls = self.placing.root_tls
        self.links = Links.load(self.placing.links) if self.placing.links is not None else None
        found = fitting(client, all_answer=False)
        self._workers, self.silent = found.fit, found.silent
        self.per: Place = self.placing.per or "host"

    @property
    def hosts(self) -> list[Host]:
        """What may carry an agent."""
        return hosts_of(self._workers, self.per)

    def _all_hosts(self) -> list[Host]:
        """Return what may carry an agent now, then what may when its worker answers."""
        hosts = self.hosts
        known = {host.name for host in hosts}
        return hosts + [host for host in hosts_of(self.silent, self.per) if host.name not in known]

    def tree(self) -> Platform:
        """Return a star: this process hands out, and as many nodes compute as Dask has threads, at equal rates."""
        self.per = self.placing.per or "thread"
        return star("the cluster", [host.name for host in self.hosts])

    def door(self, root: str) -> str:
        """Return where the root listens: the address of this process that the hosts reach."""
        return self.placing.listen or any_port(own_address(self.hosts))

    def agents(self, nodes: Sequence[Mapping[str, Any]], token: str, task: MeanTask) -> DaskAgents:
        """Return the nodes' agents, not started yet."""
        below = [node["name"] for node in nodes if node.get("parent") is not None]
        return DaskAgents(self, nodes, places(below, self._all_hosts(), self.placing.nodes), token, task)


class DaskAgents:
    """The agents of a farm on a cluster.

    Parameters
    ----------
    deployment : OnDask
        Where.
    nodes : sequence of mapping
        The platform's nodes.
    hosts : mapping
        Host of each node below the root.
    token : str
        What all share.
    task : MeanTask
        What the tasks are like.
    """

    def __init__(
        self,
        deployment: OnDask,
        nodes: Sequence[Mapping[str, Any]],
        hosts: dict[str, Host],
        token: str,
        task: MeanTask,
    ) -> None:
        self._client, self._placing, self._token = deployment.client, deployment.placing, token
        self._per = deployment.per
        self._farm = secrets.token_hex(4)
        self._parents = {node["name"]: node.get("parent") for node in nodes}
        self._nodes, self._task, self._links = nodes, task, deployment.links
        self._guests: dict[str, dict[str, Any]] = {}
        self._hosts = hosts
        self._addresses: dict[str, str] = {}
        self.tasks: dict[str, Future] = {}
        self._serial = itertools.count()
        self._backoffs: dict[str, Backoff] = {}
        self._touched: set[str] = set()
        self._last_seen: dict[str, Any] = {}
        """The last sign of life of each worker that did not answer, as the scheduler has it."""
        self._ends: deque[str] = deque(maxlen=_NAMED)
        """How the last agents ended."""
        self._away: AgentLost | None = None
        """Why the cluster cannot be asked."""
        self._over = threading.Event()
        self._changing = threading.Lock()
        self._watcher = threading.Thread(target=self._follow, name="crosswind-dask", daemon=True)
        self.warnings: list[Notice] = []
        self._logs = Logs()
        self.logs = self._logs.path
        self._spool = Spool()
        self.spool = self._spool.path
        if deployment.silent:
            self._note_silent(list(deployment.silent), deployment.silent)

    def start(self, root_address: str) -> None:
        """Start all, each once its parent listens. What a worker carries that does not answer may come later.

        Raises
        ------
        AgentLost
            When one does not start, with what it said.
        """
        root = next(name for name, parent in self._parents.items() if parent is None)
        self._addresses[root] = root_address
        level = self._children([root])
        while level:
            self._start({name: self._hosts[name] for name in level})
            with self._changing:  # below an inner node that does not listen none can be
                level = [name for name in self._children(level) if self._parents[name] in self._addresses]
        with self._changing:
            for name in [name for name in self._hosts if name not in self.tasks]:
                self._hosts.pop(name)
        self._watcher.start()

    def _children(self, names: Sequence[str]) -> list[str]:
        return [name for name, parent in self._parents.items() if parent in names]

    def _start(self, hosts: Mapping[str, Host]) -> None:
        """Start agents whose parents listen."""
        from crosswind.run import worker_agents

        def watched(farm: str, agent: str, key: str) -> None:  # by value: the scheduler need not have Crosswind
            from crosswind.run.worker_agents import watch

            watch(farm, agent, key)

        wanted: dict[str, list[Wanted]] = {}
        for name, host in hosts.items():
            key = f"{worker_agents.plugin_name(self._farm)}-{name}-{next(self._serial)}"
            wanted.setdefault(host.worker, []).append(self._wanted(name, key, host))
            self._backoffs.setdefault(host.name, Backoff()).began(time.monotonic())
        with self._changing:
            self._touched |= wanted.keys()
        given = {worker: (self._farm, agents) for worker, agents in wanted.items()}
        patience_s = PATIENCE_S + (LISTEN_PATIENCE_S if self._children(list(hosts)) else 0.0)
        answers = ask(self._client, worker_agents.start, given, patience_s, NONE_YET_S)
        for error in answers.errors.values():
            if isinstance(error, CrosswindError):
                raise error
            raise AgentLost(f"the Dask cluster did not do what it should: {error}", "cluster") from error
        if answers.silent:
            self._note_silent(answers.silent, workers_of(self._client))
        with self._changing:
            if self._over.is_set():  # without its task, an agent ends by itself
                return
            for addresses in answers.values.values():
                self._addresses |= {name: address for name, address in addresses.items() if address}
            for agent in itertools.chain.from_iterable(wanted.values()):
                name = agent["name"]
                host = self._hosts[name] = hosts[name]
                try:
                    self.tasks[name] = self._client.submit(
                        watched,
                        self._farm,
                        name,
                        agent["key"],
                        workers=[host.worker],
                        allow_other_workers=False,
                        pure=False,
                        retries=0,
                        key=agent["key"],
                    )
                except Exception as error:  # of a client that was closed meanwhile
                    raise AgentLost(f"Dask does not take a task: {error}", "cluster") from error

    def _note_silent(self, workers: Sequence[str], there: Mapping[str, Any]) -> None:
        """Warn of workers that do not answer, and leave them alone until the scheduler has a sign of life from them."""
        for worker in workers:
            self._last_seen[worker] = there.get(worker, {}).get("last_seen")
        message = f"{does_not_answer(workers)}: what it carries joins when it does"
        self._warn("worker-silent", message, SILENT_HINT)

    def _wanted(self, name: str, key: str, host: Host) -> Wanted:
        file, root_tls = self._placing.token_file, self._placing.tls
        guest = self._guests.get(name)
        return {
            "name": name,
            "key": key,
            "parent": self._addresses[self.parent(name)],
            "listen": any_port(host.address) if self._children([name]) else None,
            "about": "" if guest is None else json.dumps(guest),
            "token": self._token if file is None else None,
            "token_file": str(file.absolute()) if file is not None else None,
            "allow_loose_token": self._placing.allow_loose_token,
            "tls": str(root_tls.absolute().parent / name) if root_tls is not None else None,
        }

    def _follow(self) -> None:
        """Give agents to hosts that join or come again, until the farm is over."""
        while not self._over.wait(_LOOK_S):
            try:
                self._look()
                self._away = None
            except Exception as error:  # a scheduler that is away: the tree needs it for nothing else
                if isinstance(error, AgentLost):
                    self._away = self._away or error  # a client that cannot reconnect closes
                self._warn("cluster-away", f"the Dask cluster cannot be asked: {error}", "no host joins meanwhile")

    def _look(self) -> None:
        now = time.monotonic()
        workers = workers_of(self._client)
        hosts = hosts_of(workers, self._per)
        with self._changing:
            self._release(self._gone(workers), now)
            taken = {host.name for host in self._hosts.values()}
            free = [host for host in hosts if host.name not in taken and self._may_start(host, workers, now)]
        free = self._fit(free, workers) if free else []
        vacant = [name for name in self._parents if self._may_be(name)]
        for host in free:
            if self._over.is_set():
                return
            at_home = next((name for name in vacant if name in host.aliases), None)
            name = at_home or (vacant[0] if vacant else self._guest(host))
            if name in vacant:
                vacant.remove(name)
            try:
                self._start({name: host})
            except BaseException as error:
                self._guests.pop(name, None)
                self._backoffs[host.name].failed(time.monotonic())
                if not isinstance(error, AgentLost):
                    raise
                self._warn("agent-start", str(error), error.hint or "the host is tried again")

    def _gone(self, there: Mapping[str, Any]) -> set[str]:
        """Return the nodes whose agent has ended, or whose worker is gone, and note how.

        A worker that is paused keeps its agents, and one that closes lets them finish what they compute.
        """
        gone = set()
        for name, host in self._hosts.items():
            task = self.tasks.get(name)
            if host.worker not in there:
                self._ends.append(f"worker {host.worker} has gone")
            elif task is None or task.done():
                self._ends.append(_how_ended(name, task))
            else:
                continue
            gone.add(name)
        return gone

    def _release(self, gone: set[str], now: float) -> None:
        # Nodes below a lost inner node are of no use: their hosts are free, too.
        orphans = {name for name in self._hosts if self.parent(name) in gone and name not in gone}
        for name in gone | orphans:
            host = self._hosts.pop(name)
            if name in self.tasks:
                self.tasks.pop(name).release()
            self._addresses.pop(name, None)
            self._guests.pop(name, None)
            if name not in orphans:  # those are not to blame
                self._backoffs[host.name].ended(now)

    def _may_start(self, host: Host, workers: Mapping[str, Any], now: float) -> bool:
        if host.worker in self._last_seen:
            if workers[host.worker].get("last_seen") == self._last_seen[host.worker]:
                return False
            self._last_seen.pop(host.worker)
        return host.name not in self._backoffs or self._backoffs[host.name].is_due(now)

    def _fit(self, hosts: Sequence[Host], workers: Mapping[str, Any]) -> list[Host]:
        """Return those of the hosts that joined which have what they need."""
        found = look_at(self._client, {host.worker: workers[host.worker] for host in hosts})
        for error in found.unfit.values():
            hint = error.hint or "look at its versions"
            self._warn("host-unfit", f"a host that joined was left out: {error}", hint)
        if found.silent:
            self._note_silent(list(found.silent), workers)
        return [host for host in hosts if host.worker in found.fit]

    def _may_be(self, name: str) -> bool:
        """Whether a node waits for a host: a leaf without one, whose parent is up."""
        parent = self._parents[name]
        return (
            parent is not None and name not in self._hosts and parent in self._addresses and not self._children([name])
        )

    def _guest(self, host: Host) -> str:
        """Give a host that the platform does not know its place in the tree; its name there."""
        name, again = host.name, 2
        while name in self._parents or name in self._hosts:
            name, again = f"{host.name}-{again}", again + 1
        rows = {row["name"]: row for row in (*self._nodes, *self._guests.values())}

        def stands(name: str) -> bool:
            parent = rows[name].get("parent")
            return parent is None or (name in self._hosts and stands(parent))

        tree = [row for name, row in rows.items() if stands(name)]
        parents = {name: self._called(name) for name in self._addresses if stands(name)}
        leaf = leaf_below([name, *sorted(host.aliases)], tree, parents, self._task, self._links)
        if self._links is not None and not leaf.is_measured:
            self._warn(
                "host-unmeasured",
                f"host {host.name} joined, and the links know no link to it from any of {', '.join(parents)}; "
                "it is taken for the mean of the leaves",
                "links.toml names hosts as measure cluster --on does: by address, or with --per worker by worker",
            )
        self._guests[name] = leaf.row
        return name

    def _called(self, name: str) -> set[str]:
        """Return what links may call the host of a node that is up."""
        host = self._hosts.get(name)
        if host is None:  # the root, which is here
            return {name, self._addresses[name].rpartition(":")[0].strip("[]")}
        return {name, host.name, *host.aliases}

    def parent(self, name: str) -> str:
        """Return whose child a node below the root is."""
        guest = self._guests.get(name)
        return str(guest["parent"] if guest is not None else self._parents[name])

    def lost(self, hurried: threading.Event | None = None) -> str:
        """Return why no agent is left, and what to do."""
        try:
            there = workers_of(self._client, PATIENCE_S, hurried)
        except AgentLost as error:
            first = self._away or error
            return f"{first}; {first.hint}"
        with self._changing:
            ours, ends = [worker for worker in self._touched if worker in there], [*dict.fromkeys(self._ends)]
        silent = ask(self._client, _nothing, dict.fromkeys(ours, ()), hurried=hurried).silent
        if silent:
            return f"{does_not_answer(silent)}; {SILENT_HINT}"
        if not there:
            return f"{', '.join([*ends, 'the cluster has no worker'])}; start some, then run again"
        if not ends:
            return self.warnings[-1]["message"] if self.warnings else ""
        return f"{', '.join(ends)}; run the missing calls again"

    def _warn(self, code: str, message: str, hint: str) -> None:
        if all(known["message"] != message for known in self.warnings):
            self.warnings.append(warning(code, message, hint))

    def end(self, *, keep_logs: bool, hurried: threading.Event) -> None:
        """End all, and leave the cluster as it was.

        What does not answer is not waited for: workers end agents without a task by themselves. Only their logs are
        then missing.
        """
        with self._changing:
            self._over.set()
        if self._watcher.ident is not None:
            until = time.monotonic() + END_PATIENCE_S
            while self._watcher.is_alive() and time.monotonic() < until:
                if hurried.is_set():  # what it starts has no task, and ends by itself
                    break
                self._watcher.join(_LOOK_SOON_S)
        from crosswind.run import worker_agents

        with contextlib.suppress(Exception):  # in a cluster that is gone there is nothing to end
            there = workers_of(self._client, END_PATIENCE_S, hurried)
            with self._changing:
                ours = [worker for worker in self._touched if worker in there]
            # Those that answer at all get the time to end their agents.
            ours = [*ask(self._client, _nothing, dict.fromkeys(ours, ()), _ANSWER_S, hurried=hurried).values]
            patience_s = PATIENCE_S if keep_logs else END_PATIENCE_S
            given = dict.fromkeys(ours, (self._farm,))
            for said in ask(self._client, worker_agents.end, given, patience_s, hurried=hurried).values.values():
                self._keep(said)
        with self._changing:
            tasks = list(self.tasks.values())
            self.tasks.clear()
        for task in tasks:
            task.release()
        self._logs.close(keep=keep_logs)
        self._spool.close()
        with contextlib.suppress(CrosswindError):  # of workers that were killed on this host
            take_away_abandoned()

    def _keep(self, said: Mapping[str, str]) -> None:
        for name, text in said.items():
            if text:
                path = self.logs / (name.replace("/", "_") + ".log")
                path.write_text(text.removeprefix(": ") + "\n", encoding="utf-8")


def _nothing() -> None:
    """Answer."""


def _how_ended(name: str, task: Future | None) -> str:
    """Return how the agent of a task in Dask ended."""
    if task is None or task.status in ("cancelled", "lost"):
        return f"the task of agent {name} was cancelled in Dask (client.restart() does that, too)"
    if task.status != "error":
        return f"agent {name} has ended"
    with contextlib.suppress(Exception):
        return str(task.exception(timeout=_WAIT_S)).partition("\n")[0]
    return f"agent {name} has failed"
