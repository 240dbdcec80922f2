"""Links: what hosts compute, and what each pair of them can exchange, in each direction (`links.toml`)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from crosswind import _core
from crosswind.description import Description
from crosswind.files.atomic import write_text
from crosswind.files.tabular import Tabular
from crosswind.platform import as_html_table

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.links import Host, Link


class Links(Description[_core.Links], Tabular):
    """Hosts of a cluster and the links between ordered pairs of them, before a tree of them is chosen.

    `crosswind measure cluster --on` makes them, `crosswind plan tree` makes a platform of them. Fields, units and
    ranges are those of `links.toml` (docs/reference/files.md). Pairs may be missing.

    Examples
    --------
    >>> hosts = [{"name": "a", "compute_per_s": 2.0}, {"name": "b", "compute_per_s": 4.0}]
    >>> link = {"from": "a", "to": "b", "receive_limit_mb_per_s": 10.0}
    >>> Links.from_dict({"schema_version": 1, "name": "pair", "host": hosts, "link": [link]})
    Links('pair', 2 hosts, 1 of 2 links)
    """

    _KIND = "links"
    _CORE = _core.Links

    @property
    def hosts(self) -> list[Host]:
        """The hosts as in the file."""
        hosts: list[Host] = self.to_dict()["host"]
        return hosts

    @property
    def links(self) -> list[Link]:
        """The links as in the file."""
        links: list[Link] = self.to_dict()["link"]
        return links

    def __repr__(self) -> str:
        hosts = len(self.hosts)
        return f"Links({self.name!r}, {hosts} hosts, {len(self.links)} of {hosts * (hosts - 1)} links)"

    def to_toml(self) -> str:
        """Return the content of `links.toml` as text."""
        return self._checked.to_toml()

    def save(self, path: str | Path, comment: str = "") -> None:
        """Write a `links.toml`, with a comment on top; an existing file is replaced once the new one is complete."""
        head = "".join(f"# {line}".rstrip() + "\n" for line in comment.splitlines())
        write_text(head + self.to_toml(), path)

    def to_arrow(self) -> pa.Table:
        """Return one row per link."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.links)

    def _repr_html_(self) -> str:
        return as_html_table(self.name, self.links)
