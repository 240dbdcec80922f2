"""A tree of agents on the hosts of a Dask cluster: Dask places them, watches them and ships the code.

Tasks and results do not go by Dask: agents connect to each other as the tree says. Each thread of a worker, each
worker or each host (`Placing.per`) carries one agent, a process of its own (`crosswind.run.worker_agents`), so that a
busy worker does not delay it. A task in Dask stands for each agent. Workers that join while the farm runs carry
agents, too. One that is retired lets its agents hand back what waits and finish what they compute. What one that dies
costs is up to the tree (docs/concepts/agents.md).
"""

from __future__ import annotations

import contextlib
import json
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from crosswind.cluster.client import fitting, own_address, workers_of
from crosswind.cluster.hosts import Host, Place, any_port, hosts_of
from crosswind.errors import AgentLost, CrosswindError, DescriptionError, Told, warning
from crosswind.links import Links
from crosswind.platform import Platform
from crosswind.run.backoff import Backoff
from crosswind.run.deployment import MeanTask, Placing
from crosswind.run.late_joiners import leaf_below
from crosswind.run.places import places, star
from crosswind.run.spool import Logs, Spool

if TYPE_CHECKING:
    from distributed import Client, Future

    from crosswind.run.worker_agents import Wanted

_LOOK_S = 1.0
_WAIT_S = 10.0


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
    """

    on = "dask"
    trusted = True  # Dask itself runs what its workers send

    def __init__(self, client: Client, placing: Placing | None = None) -> None:
        if getattr(client, "asynchronous", False):
            message = "the client of Dask is asynchronous, which a farm cannot wait for"
            raise DescriptionError(
                message, "argument", "Client(..., asynchronous=False), or give its scheduler's address"
            )
        self.client, self.placing = client, placing or Placing()
        self.token = self.placing.token or secrets.token_hex(32)
        self.tls = self.placing.root_tls
        self.links = Links.load(self.placing.links) if self.placing.links is not None else None
        self._workers = fitting(client)
        self.per: Place = self.placing.per or "host"

    @property
    def hosts(self) -> list[Host]:
        """What may carry an agent."""
        return hosts_of(self._workers, self.per)

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
        return DaskAgents(self, nodes, places(below, self.hosts, self.placing.nodes), token, task)


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
        self._backoffs: dict[str, Backoff] = {}
        self._touched: set[str] = set()
        self._over = threading.Event()
        self._watcher = threading.Thread(target=self._follow, name="crosswind-dask", daemon=True)
        self.warnings: list[Told] = []
        self._logs = Logs()
        self.logs = self._logs.path
        self._spool = Spool()
        self.spool = self._spool.path

    def start(self, root_address: str) -> None:
        """Start all, each once its parent listens.

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
            level = self._children(level)
        self._watcher.start()

    def _children(self, names: Sequence[str]) -> list[str]:
        return [name for name, parent in self._parents.items() if parent in names]

    def _start(self, hosts: Mapping[str, Host]) -> None:
        """Start agents whose parents listen."""
        from crosswind.run import worker_agents

        def watched(farm: str, agent: str) -> None:  # travels by value: the scheduler need not have Crosswind
            from crosswind.run.worker_agents import watch

            watch(farm, agent)

        wanted: dict[str, list[Wanted]] = {}
        for name, host in hosts.items():
            wanted.setdefault(host.worker, []).append(self._wanted(name, host))
            self._backoffs.setdefault(host.name, Backoff()).began(time.monotonic())
        self._touched |= wanted.keys()
        listening = self._run(worker_agents.start, self._farm, wanted, workers=list(wanted))
        for addresses in listening.values():
            self._addresses |= {name: address for name, address in addresses.items() if address}
        for name, host in hosts.items():
            self._hosts[name] = host
            self.tasks[name] = self._client.submit(
                watched,
                self._farm,
                name,
                workers=[host.worker],
                allow_other_workers=False,
                pure=False,
                retries=0,
                key=f"{worker_agents.plugin_name(self._farm)}-{name}",
            )

    def _run(self, function: Any, *arguments: Any, workers: list[str]) -> dict[str, Any]:
        """Have workers do something at once, however busy they are."""
        try:
            found: dict[str, Any] = self._client.run(function, *arguments, workers=workers)
        except CrosswindError:
            raise
        except Exception as error:
            raise AgentLost(f"the Dask cluster did not do what it should: {error}", "cluster") from error
        return found

    def _wanted(self, name: str, host: Host) -> Wanted:
        file, root_tls = self._placing.token_file, self._placing.tls
        guest = self._guests.get(name)
        return {
            "name": name,
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
            except Exception as error:  # a scheduler that is away: the tree needs it for nothing else
                self._warn("cluster-away", f"the Dask cluster cannot be asked: {error}", "no host joins meanwhile")

    def _look(self) -> None:
        now = time.monotonic()
        workers = workers_of(self._client)
        hosts = hosts_of(workers, self._per)
        there = {host.worker for host in hosts_of(workers, "worker")}
        gone = {name for name, task in self.tasks.items() if task.done()}
        gone |= {name for name, host in self._hosts.items() if host.worker not in there}
        # Nodes below a lost inner node are of no use: their hosts are free, too.
        orphans = {name for name in self._hosts if self.parent(name) in gone and name not in gone}
        for name in gone | orphans:
            host = self._hosts.pop(name)
            self.tasks.pop(name).release()
            self._addresses.pop(name, None)
            self._guests.pop(name, None)
            if name not in orphans:  # those are not to blame
                self._backoffs[host.name].ended(now)
        taken = {host.name for host in self._hosts.values()}
        free = [host for host in hosts if host.name not in taken and self._may_start(host, now)]
        if not free or not self._fit(free):
            return
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
            except BaseException:
                self._guests.pop(name, None)
                self._backoffs[host.name].failed(time.monotonic())
                raise

    def _may_start(self, host: Host, now: float) -> bool:
        return host.name not in self._backoffs or self._backoffs[host.name].is_due(now)

    def _fit(self, hosts: Sequence[Host]) -> bool:
        """Whether hosts that joined have what they need."""
        try:
            fitting(self._client, list({host.worker: None for host in hosts}))
        except CrosswindError as error:
            self._warn("host-unfit", f"a host that joined was left out: {error}", error.hint or "look at its versions")
            return False
        return True

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

    def lost(self) -> str:
        """Return what the cluster last said."""
        return self.warnings[-1]["message"] if self.warnings else ""

    def _warn(self, code: str, message: str, hint: str) -> None:
        if all(known["message"] != message for known in self.warnings):
            self.warnings.append(warning(code, message, hint))

    def end(self, *, keep_logs: bool) -> None:
        """End all, and leave the cluster as it was."""
        from distributed import wait

        self._over.set()
        if self._watcher.ident is not None:
            self._watcher.join(_WAIT_S)
        there: dict[str, Any] = {}
        with contextlib.suppress(Exception):  # in a cluster that is gone there is nothing to end
            there = workers_of(self._client)
        touched = [worker for worker in self._touched if worker in there]
        if touched:
            with contextlib.suppress(Exception):
                for said in self._ended(touched).values():
                    self._keep(said)
                wait(list(self.tasks.values()), timeout=_WAIT_S)
        for task in self.tasks.values():
            task.release()
        self.tasks.clear()
        self._logs.close(keep=keep_logs)
        self._spool.close()

    def _ended(self, workers: list[str]) -> dict[str, Mapping[str, str]]:
        """End the agents of workers, and return the ends of their logs.

        A worker that is stopped does not answer, and must not hold up the others or this process: its agents end when
        it continues.
        """
        from crosswind.run import worker_agents

        found: dict[str, Mapping[str, str]] = {}

        def end(worker: str) -> None:
            with contextlib.suppress(Exception):
                found.update(self._client.run(worker_agents.end, self._farm, workers=[worker], on_error="ignore"))

        asking = [threading.Thread(target=end, args=[worker], daemon=True) for worker in workers]
        for thread in asking:
            thread.start()
        until = time.monotonic() + _WAIT_S
        for thread in asking:
            thread.join(max(until - time.monotonic(), 0.0))
        return dict(found)

    def _keep(self, said: Mapping[str, str]) -> None:
        for name, text in said.items():
            if text:
                path = self.logs / (name.replace("/", "_") + ".log")
                path.write_text(text.removeprefix(": ") + "\n", encoding="utf-8")
