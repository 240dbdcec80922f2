"""A tree of agents on the hosts of a file: a root waits for `crosswind serve --hosts FILE --name NODE` on each."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.description import Description
from crosswind.errors import DescriptionError
from crosswind.platform import Platform
from crosswind.run.deployment import MeanTask, Placing
from crosswind.run.processes import AgentProcesses, Launch
from crosswind.run.this_machine import LINK_MB_PER_S

if TYPE_CHECKING:
    from crosswind.documents.hosts import Host


class Hosts(Description[_core.Hosts]):
    """The hosts of a farm, whose processes people start themselves (`hosts.toml`, docs/reference/files.md).

    Examples
    --------
    >>> root = {"name": "head", "listen": "10.0.0.1:7200"}
    >>> hosts = Hosts.from_dict({"schema_version": 1, "host": [root, {"name": "worker", "parent": "head"}]})
    >>> hosts.dials("worker"), hosts.listens("worker")
    ('10.0.0.1:7200', None)
    """

    _KIND = "hosts"
    _CORE = _core.Hosts

    @property
    def rows(self) -> list[Host]:
        """The hosts as in the file."""
        rows: list[Host] = self.to_dict()["host"]
        return rows

    @property
    def root(self) -> str:
        """Name of the node that holds the tasks."""
        return next(str(host["name"]) for host in self.rows if host.get("parent") is None)

    def _row(self, name: str) -> Host:
        found = next((host for host in self.rows if host["name"] == name), None)
        if found is None:
            there = ", ".join(host["name"] for host in self.rows)
            raise DescriptionError(f"the file of hosts has no {name!r}", "argument", f"there are: {there}")
        return found

    def listens(self, name: str) -> str | None:
        """Return HOST:PORT where the children of a host connect; None where it has none."""
        listen: str | None = self._row(name).get("listen")
        return listen

    def dials(self, name: str) -> str:
        """Return HOST:PORT of a host's parent.

        Raises
        ------
        DescriptionError
            When there is no such host, or it is the root.
        """
        parent = self._row(name).get("parent")
        if parent is None:
            hint = "the root is `crosswind run --on hosts:FILE`"
            raise DescriptionError(f"{name} has no parent in the file of hosts", "argument", hint)
        return str(self.listens(parent))


@dataclass(frozen=True)
class OnHosts:
    """A deployment on hosts whose agents are started by hand.

    Attributes
    ----------
    hosts : Hosts
        The hosts.
    placing : Placing
        Its `token_file` or `tls` must be given.
    """

    hosts: Hosts
    placing: Placing
    on = "hosts"

    @classmethod
    def load(cls, path: str | Path, placing: Placing) -> OnHosts:
        """Read a hosts.toml.

        Raises
        ------
        DescriptionError
            When it is wrong, neither a token's file nor certificates are given, or something else is that hosts of a
            file cannot have.
        """
        if placing.token_file is None and placing.tls is None:
            make = "python -c 'import secrets; print(secrets.token_hex())' > token; chmod 600 token"
            hint = f"{make}; the same file on every host"
            message = "--token-file or --tls is missing; hosts of a file share a token, or have certificates"
            raise DescriptionError(message, "argument", hint)
        if replace(placing, token_file=None, tls=None, trusted=False, allow_loose_token=False):
            raise DescriptionError(
                "a file of hosts cannot be combined with --node, --per, --listen or --links", "argument"
            )
        return cls(Hosts.load(path), placing)

    @property
    def trusted(self) -> bool:
        """Whether nodes may run code in this process."""
        return self.placing.trusted

    @property
    def token(self) -> str | None:
        """What stands in the file of the token, if there is one."""
        return self.placing.token

    @property
    def tls(self) -> Callable[[str], str] | None:
        """The root's directory of certificates; the others name their own."""
        return self.placing.root_tls

    def tree(self) -> Platform:
        """Return the file's tree; of hosts of which nothing is known, all below the root compute at an equal rate."""
        nodes = []
        for host in self.hosts.rows:
            parent = host.get("parent")
            link = {} if parent is None else {"parent": parent, "receive_limit_mb_per_s": LINK_MB_PER_S}
            nodes.append({"name": host["name"], "compute_per_s": 0.0 if parent is None else 1.0, **link})
        return Platform.from_dict({"schema_version": 1, "name": "hosts of a file", "node": nodes})

    def door(self, root: str) -> str:
        """Return where the file says that the root listens."""
        return str(self.hosts.listens(root))

    def agents(self, nodes: Sequence[Mapping[str, Any]], token: str, task: MeanTask) -> AgentProcesses:
        """Return agents that are started elsewhere.

        Raises
        ------
        DescriptionError
            When the platform has another node, or a node another parent, than the file says.
        """
        told = {host["name"]: host.get("parent") for host in self.hosts.rows}
        for node in nodes:
            name, parent = node["name"], node.get("parent")
            if name not in told:
                there = ", ".join(told)
                raise DescriptionError(
                    f"the platform's node {name} is not in the file of hosts", "hosts", f"there are: {there}"
                )
            if told[name] != parent:
                message = f"{name} is below {parent} in the platform and below {told[name]} in the file of hosts"
                raise DescriptionError(message, "hosts", "let both say the same")
        return AgentProcesses(nodes, Launch(by_hand=True), token)
