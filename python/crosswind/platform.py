"""Platform: a tree of nodes, their compute rates, links and interference rates (`platform.toml`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.description import Description, as_json
from crosswind.errors import Notice
from crosswind.files.atomic import write_text
from crosswind.files.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.shared import Node


class Platform(Description[_core.Platform], Tabular):
    """A tree of nodes; the root holds the input data.

    Fields, units and ranges of a node are those of `platform.toml` (docs/reference/files.md).

    Examples
    --------
    >>> root = {"name": "r", "compute_per_s": 2.0}
    >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
    >>> platform = Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]})
    >>> len(platform), platform.nodes[1]["parent"]
    (2, 'r')
    """

    _KIND = "platform"
    _CORE = _core.Platform

    @property
    def name(self) -> str:
        """What people call it."""
        return self._checked.name

    @property
    def nodes(self) -> list[Node]:
        """The nodes as in the file."""
        nodes: list[Node] = self.to_dict()["node"]
        return nodes

    @property
    def links_mb_per_s(self) -> dict[str, float]:
        """Highest rate from its parent of each node below the root, MB/s: what one sender reaches of the receive limit.

        Examples
        --------
        >>> root = {"name": "r", "compute_per_s": 2.0}
        >>> leaf = {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0}
        >>> leaf["one_sender_share"] = 0.9
        >>> Platform.from_dict({"schema_version": 1, "name": "pair", "node": [root, leaf]}).links_mb_per_s
        {'a': 9.0}
        """
        rates = {str(node["name"]): link_mb_per_s(node) for node in self.nodes}
        return {name: rate for name, rate in rates.items() if rate is not None}

    @property
    def warnings(self) -> list[Notice]:
        """What the file says against its figures, and what is allowed but suspicious: code, message, hint."""
        warnings: list[Notice] = json.loads(self._checked.warnings_json())
        return warnings

    def with_warnings(self, told: Sequence[Notice]) -> Platform:
        """Return the same platform with these as its own warnings, each once: they travel into files and plans.

        Examples
        --------
        >>> root = {"name": "r", "compute_per_s": 2.0}
        >>> alone = Platform.from_dict({"schema_version": 1, "name": "alone", "node": [root]})
        >>> guess = {"code": "guess", "message": "r was not measured", "hint": "measure it"}
        >>> alone.with_warnings([guess, guess]).warnings == [guess]
        True
        """
        once = {(w["code"], w["message"]): dict(w) for w in told}
        return Platform.from_dict(self.to_dict() | {"warning": list(once.values())})

    def with_fields(self, fields: Mapping[str, Any]) -> Platform:
        """Return the platform with fields of its nodes replaced.

        Parameters
        ----------
        fields : mapping
            `node[NAME].FIELD`, or `node[PLACE].FIELD` counted from 0, to value.

        Raises
        ------
        DescriptionError
            When there is no such node or field, or the value is not permitted.

        Examples
        --------
        >>> root = {"name": "r", "compute_per_s": 2.0}
        >>> alone = Platform.from_dict({"schema_version": 1, "name": "alone", "node": [root]})
        >>> alone.with_fields({"node[r].compute_per_s": 3}).nodes[0]["compute_per_s"]
        3.0
        """
        return Platform(self._checked.with_fields(as_json(dict(fields), "platform")))

    def __len__(self) -> int:
        return len(self._checked)

    def __repr__(self) -> str:
        return f"Platform({self.name!r}, {len(self)} nodes)"

    def to_toml(self) -> str:
        """Return the content of `platform.toml` as text."""
        return self._checked.to_toml()

    def save(self, path: str | Path, comment: str = "") -> None:
        """Write a `platform.toml`, with a comment on top; an existing file is replaced once the new one is complete."""
        head = "".join(f"# {line}\n".replace("# \n", "#\n") for line in comment.splitlines())
        write_text(head + self.to_toml(), path)

    def to_arrow(self) -> pa.Table:
        """Return one row per node."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.nodes)

    def _repr_html_(self) -> str:
        return as_html_table(self.name, self.nodes)


def link_mb_per_s(node: Mapping[str, Any]) -> float | None:
    """Return the highest rate from a node's parent, MB/s: what one sender reaches of its receive limit.

    Parameters
    ----------
    node : mapping
        A node as in the file.

    Returns
    -------
    float or None
        None at the root.

    Examples
    --------
    >>> link_mb_per_s({"name": "a", "parent": "r", "receive_limit_mb_per_s": 11.0, "one_sender_share": 0.9})
    9.9
    """
    limit = node.get("receive_limit_mb_per_s")
    return None if limit is None else float(limit) * float(node.get("one_sender_share", 1.0))


def depth_first(nodes: Sequence[Node]) -> list[tuple[Node, int]]:
    """Return each node with its depth below the root, children after their parent and in the order of the file.

    Examples
    --------
    >>> nodes = [{"name": "b", "parent": "a"}, {"name": "a", "parent": "r"}, {"name": "r"}]
    >>> [(node["name"], depth) for node, depth in depth_first(nodes)]
    [('r', 0), ('a', 1), ('b', 2)]
    """
    children: dict[str | None, list[Node]] = {}
    for node in nodes:
        children.setdefault(node.get("parent"), []).append(node)
    ordered: list[tuple[Node, int]] = []
    waiting = [(node, 0) for node in children[None]]
    while waiting:
        node, depth = waiting.pop()
        ordered.append((node, depth))
        waiting += [(child, depth + 1) for child in reversed(children.get(node["name"], []))]
    return ordered


def as_html_table(caption: str, rows: Sequence[Mapping[str, object]], most: int = 200) -> str:
    """Return rows as an HTML table for notebooks, at most `most` of them."""
    from html import escape  # few commands need it

    columns = list(dict.fromkeys(key for row in rows[:most] for key in row))

    def cell(value: Any) -> str:
        text = f"{value:.4g}" if isinstance(value, float) else "" if value is None else str(value)
        return f"<td>{escape(text)}</td>"

    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(cell(row.get(c)) for c in columns) + "</tr>" for row in rows[:most])
    more = f"<tr><td>and {len(rows) - most} more</td></tr>" if len(rows) > most else ""
    return f"<table><caption>{escape(caption)}</caption><tr>{head}</tr>{body}{more}</table>"
