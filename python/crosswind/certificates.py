"""A cluster's certificates: an authority of its own, and a directory for each node with all that it needs.

`certs/ca` stays where it was made: a person with `certs/ca/key.pem` can make nodes. `certs/NAME` is copied to the node
NAME, and named there as `--tls`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from crosswind import _core
from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.platform import Platform

DEFAULT_DAYS = 365
LONGEST_DAYS = 3650


@dataclass(frozen=True)
class Node:
    """A node that gets a certificate."""

    name: str
    """Its name in the platform: letters, digits, hyphens, dots."""
    hosts: tuple[str, ...] = ()
    """Names and addresses under which others dial it."""
    parent: bool = False
    """Whether it may have others run code: the root of a farm, or a node with children."""


def nodes_of(platform: Platform) -> list[Node]:
    """Return the nodes of a platform; those with children are parents.

    Examples
    --------
    >>> node = {"name": "a", "compute_per_s": 1.0}
    >>> below = {"name": "b", "parent": "a", "compute_per_s": 1.0, "receive_limit_mb_per_s": 1.0}
    >>> tree = Platform.from_dict({"schema_version": 1, "name": "two", "node": [node, below]})
    >>> [(one.name, one.parent) for one in nodes_of(tree)]
    [('a', True), ('b', False)]
    """
    nodes = platform.to_dict()["node"]
    parents = {node.get("parent") for node in nodes}
    return [Node(node["name"], parent=node["name"] in parents) for node in nodes]


def make_certificates(directory: str | Path, nodes: Iterable[Node], days: int = DEFAULT_DAYS) -> None:
    """Make a certificate and a key for each node, and the authority where there is none; nothing is overwritten.

    Parameters
    ----------
    directory : path
        Directory for them; created if missing.
    nodes : iterable of Node
        The nodes that get one; all do, or none.
    days : int
        How long they are valid, 1 to 3650 days; the authority at least 3650.

    Raises
    ------
    DescriptionError
        When a name is none, or a node has a certificate already.
    CrosswindError
        With code `no-space`, when the disk is full; what was complete stays.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as directory:
    ...     make_certificates(directory, [Node("root", ("10.0.0.1",), parent=True), Node("worker")])
    ...     [(one["name"], one["parent"]) for one in show_certificates(directory)]
    [('ca', False), ('root', True), ('worker', False)]
    """
    if not 1 <= days <= LONGEST_DAYS:
        raise DescriptionError(f"days is {days}; it must be 1 to {LONGEST_DAYS} days", "value")
    described = [{"name": one.name, "hosts": list(one.hosts), "parent": one.parent} for one in nodes]
    _core.make_certificates(str(directory), json.dumps(described), days)


def show_certificates(directory: str | Path) -> list[Row]:
    """Return what stands in the certificates of a directory, the authority's first.

    Parameters
    ----------
    directory : path
        As `make_certificates` made it.

    Returns
    -------
    list of dict
        `name`, `names` (all names and addresses in it), `parent`, `valid_from`, `valid_until` (ISO 8601), `days_left`,
        `problem` (None: nothing is wrong with it).

    Raises
    ------
    DescriptionError
        When there is no authority, or a certificate cannot be read.
    """
    shown = json.loads(_core.show_certificates(str(directory)))
    now = datetime.now(UTC).timestamp()
    for one in shown:
        one["days_left"] = int((one["valid_until"] - now) // 86400)
        for field in ("valid_from", "valid_until"):
            one[field] = datetime.fromtimestamp(one[field], UTC).isoformat()
    return list(shown)
