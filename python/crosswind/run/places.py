"""Places: which host carries which node of the platform, and the tree when the user names none."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence

from crosswind.cluster.hosts import Host
from crosswind.errors import DescriptionError
from crosswind.platform import Platform
from crosswind.run.this_machine import LINK_MB_PER_S


def star(name: str, hosts: Sequence[str], root: str = "root") -> Platform:
    """Return a tree of two levels: a root that hands out, and hosts of which nothing is known, all alike."""
    leaf = {"parent": root, "compute_per_s": 1.0, "receive_limit_mb_per_s": LINK_MB_PER_S}
    nodes = [{"name": root, "compute_per_s": 0.0}, *({"name": host, **leaf} for host in hosts)]
    return Platform.from_dict({"schema_version": 1, "name": name, "node": nodes})


def places(nodes: Sequence[str], hosts: Sequence[Host], given: Mapping[str, str]) -> dict[str, Host]:
    """Return the host of each node.

    Parameters
    ----------
    nodes : sequence of str
        The nodes below the root, in the order of the file.
    hosts : sequence of Host
        The hosts that are there.
    given : mapping
        Node -> one of a host's aliases. The others get the host of their own name, then those left, in order.

    Raises
    ------
    DescriptionError
        For a node or a host that does not exist, two nodes on one host, or too few hosts.

    Examples
    --------
    >>> there = [Host(name, f"tcp://{name}:1", name, frozenset({name})) for name in ("x", "b", "y")]
    >>> {node: host.name for node, host in places(["a", "b"], there, {}).items()}
    {'b': 'b', 'a': 'x'}
    """
    found: dict[str, Host] = {}
    for node, alias in given.items():
        if node not in nodes:
            raise DescriptionError(
                f"--node {node}={alias}: the platform has no node {node!r} below its root", "place", _near(node, nodes)
            )
        named = [host for host in hosts if alias in host.aliases]
        if not named:
            known = sorted({name for there in hosts for name in there.aliases})
            raise DescriptionError(
                f"--node {node}={alias}: the cluster has no host {alias!r}", "place", _near(alias, known)
            )
        host = next((host for host in named if host not in found.values()), None)
        if host is None:
            other = next(name for name, taken in found.items() if taken in named)
            message = f"--node {node}={alias}: that host carries {other} already"
            raise DescriptionError(message, "place", "--per worker has one agent per Dask worker, --per thread more")
        found[node] = host
    for node in nodes:
        namesake = next((host for host in hosts if node in host.aliases and host not in found.values()), None)
        if node not in found and namesake is not None:
            found[node] = namesake
    left = (host for host in hosts if host not in found.values())
    for node in nodes:
        if node not in found:
            host = next(left, None)
            if host is None:
                message = f"the platform has {len(nodes)} nodes below its root, and the cluster has {len(hosts)} hosts"
                hint = "add workers, take a smaller platform, or --per worker or --per thread"
                raise DescriptionError(message, "place", hint)
            found[node] = host
    return found


def _near(name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, 1)
    return f"did you mean {near[0]!r}?" if near else f"there are: {', '.join(known) or 'none'}"
