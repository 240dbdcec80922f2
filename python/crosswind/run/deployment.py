"""Deployment: where the agents of a tree run, and how they are started. Each place is a class of this shape.

`deployments` makes one from the user's word; this module depends on none of them.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from crosswind.access import read_token
from crosswind.errors import Notice

if TYPE_CHECKING:
    from crosswind.cluster.hosts import Place
    from crosswind.plan import Ports
    from crosswind.platform import Platform


class MeanTask(NamedTuple):
    """What a farm's tasks are like on average, and how they are sent."""

    size_mb: float
    work: float
    ports: Ports
    result_mb: float = 0.0


class Agents(Protocol):
    """The agents of all nodes below the root."""

    logs: Path
    """Directory with one log per process."""
    spool: Path
    """Directory of the root for tasks' bytes."""

    @property
    def warnings(self) -> Sequence[Notice]: ...  # noqa: D102
    def start(self, root_address: str) -> None:
        """Start all; the root listens at this address."""

    def lost(self, hurried: threading.Event | None = None) -> str:
        """Return how agents have ended, for the error of a run that none is left to carry; empty: nothing is known."""

    def end(self, *, keep_logs: bool, hurried: threading.Event) -> None:
        """End all, and leave nothing behind but, if so asked, the logs.

        Other hosts that do not answer are hardly waited for once `hurried` is set.
        """


class Deployment(Protocol):
    """Where agents run."""

    @property
    def on(self) -> str:
        """What stands in results: local, dask or hosts."""

    @property
    def trusted(self) -> bool:
        """Whether nodes may run code in this process: then their results are pickles, else plain data."""

    @property
    def token(self) -> str | None:
        """What all agents share, where that was agreed on before."""

    @property
    def tls(self) -> Callable[[str], str] | None:
        """The directory of a node's certificates, as that node sees it; None: there are none."""

    def tree(self) -> Platform:
        """Return the tree when the user names none."""

    def door(self, root: str) -> str:
        """Return HOST:PORT at which the root listens; port 0 takes a free one."""

    def agents(self, nodes: Sequence[Mapping[str, Any]], token: str, task: MeanTask) -> Agents:
        """Return the agents of a platform's nodes, not started yet; `task` decides where a host that joins belongs."""


@dataclass(frozen=True)
class Placing:
    """Which node of the platform goes where on a cluster.

    Examples
    --------
    >>> Placing(per="worker").per, bool(Placing())
    ('worker', False)
    """

    nodes: Mapping[str, str] = field(default_factory=dict)
    """Node -> name or address of a host or a worker; the others go by equal name, then in the order of the file."""
    per: Place | None = None
    """One agent per host, per Dask worker, or per thread of each worker. None: per host where a platform is given, else
    per thread, so that as many calls run at a time as Dask would run."""
    listen: str | None = None
    """HOST:PORT of the root, where the one that is found is not the one that the hosts reach."""
    token_file: Path | None = None
    """File with the token, here and on every host, so that it does not travel."""
    tls: Path | None = None
    """Directory of the root's certificates; on its host each node's lies at the same place, under the node's name, as
    `crosswind cert` makes them."""
    links: Path | None = None
    """What was measured between hosts (`links.toml`): says where a host that joins belongs."""
    trusted: bool = False
    """On hosts of a file: take results that are any objects, whose pickles may run code here, as those of Dask and of
    this machine may. Default: only plain data (`crosswind.run.plain_data`)."""
    allow_loose_token: bool = False
    """Take a token's file that others than its owner may read or write, here and on every host."""

    def __post_init__(self) -> None:
        for name in ("token_file", "tls", "links"):  # people write them as text
            if isinstance(path := getattr(self, name), str):
                object.__setattr__(self, name, Path(path))

    @property
    def token(self) -> str | None:
        """What stands in the file of the token, if there is one."""
        return read_token(self.token_file, self.allow_loose_token) if self.token_file is not None else None

    @property
    def root_tls(self) -> Callable[[str], str] | None:
        """The root's directory of certificates, as a deployment knows it."""
        directory = self.tls
        return (lambda root: str(directory)) if directory is not None else None

    def __bool__(self) -> bool:
        return self != Placing()
