"""The hosts of a Dask cluster: which worker of each speaks for it, and at which address others reach it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

Per = Literal["host", "worker"]
"""What counts as a host: all workers at one address together, or each worker for itself."""
Place = Literal["host", "worker", "thread"]
"""What carries an agent: a host, a worker, or each thread of a worker (as many as Dask runs tasks there at a time)."""


@dataclass(frozen=True)
class Host:
    """A host of a cluster.

    Attributes
    ----------
    name : str
        Its address; with `per="worker"` the worker's name; with `per="thread"` the worker's name, and of a worker with
        several threads the number of the thread after it.
    worker : str
        Address of the worker that speaks for it, such as `tcp://10.0.0.3:41233`.
    address : str
        Where other hosts reach it.
    aliases : frozenset of str
        Whatever a user may call it: its address, names and addresses of its workers.
    """

    name: str
    worker: str
    address: str
    aliases: frozenset[str]


def hosts_of(workers: Mapping[str, Mapping[str, Any]], per: Place = "host") -> list[Host]:
    """Return the hosts of a cluster, sorted by address and name; of a host's workers the first speaks for it.

    Parameters
    ----------
    workers : mapping
        `client.scheduler_info(n_workers=-1)["workers"]`. Those that are about to leave do not count.
    per : {"host", "worker", "thread"}
        What counts as a host.

    Examples
    --------
    >>> workers = {f"tcp://10.0.0.{h}:{p}": {"name": p, "host": f"10.0.0.{h}"} for h in (1, 2) for p in (70, 71)}
    >>> [host.name for host in hosts_of(workers)], [host.name for host in hosts_of(workers, "worker")]
    (['10.0.0.1', '10.0.0.2'], ['70', '71', '70', '71'])
    >>> two_threads = {"tcp://10.0.0.1:70": {"name": "a", "host": "10.0.0.1", "nthreads": 2}}
    >>> [host.name for host in hosts_of(two_threads, "thread")]
    ['a-0', 'a-1']
    """
    there = {worker: about for worker, about in workers.items() if about.get("status", "running") == "running"}
    places: dict[str, list[str]] = {}
    for worker in sorted(there, key=lambda one: (there[one]["host"], _by_number(there[one]["name"]), one)):
        places.setdefault(there[worker]["host"] if per == "host" else worker, []).append(worker)
    hosts = []
    for members in places.values():
        about = there[members[0]]
        names = {str(there[worker]["name"]) for worker in members}
        aliases = {*members, *names, *(worker.partition("://")[2] for worker in members)}
        if per == "host":
            aliases.add(about["host"])
        name = about["host"] if per == "host" else str(about["name"])
        threads = int(about["nthreads"]) if per == "thread" else 1
        slots = [name] if threads == 1 else [f"{name}-{thread}" for thread in range(threads)]
        hosts += [Host(slot, members[0], about["host"], frozenset({*aliases, slot})) for slot in slots]
    return hosts


def any_port(address: str) -> str:
    """Return HOST:PORT that takes any free port of an address.

    Examples
    --------
    >>> any_port("10.0.0.3"), any_port("fd00::3")
    ('10.0.0.3:0', '[fd00::3]:0')
    """
    return f"[{address}]:0" if ":" in address else f"{address}:0"


def _by_number(name: object) -> tuple[int, str]:
    """Order worker 10 after worker 9."""
    text = str(name)
    return (int(text), "") if text.isdecimal() else (1 << 62, text)
