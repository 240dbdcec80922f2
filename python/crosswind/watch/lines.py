"""The state of a watched run in a few lines of text."""

from __future__ import annotations

from typing import Any

from crosswind.documents import Row
from crosswind.terminal.printable import printable
from crosswind.terminal.progress import done_of, duration

_NAMED = 3


def lines_of(snapshot: Row, width: int = 80) -> list[str]:
    """Return at most five lines, none longer than `width` columns.

    Examples
    --------
    >>> lines_of({"state": "starting"})
    ['agents start']
    """
    if snapshot["state"] == "starting":
        return ["agents start"]
    done, total, rate, bound = (snapshot[name] for name in ("done", "total", "tasks_per_s", "bound_tasks_per_s"))
    tasks = done_of(done, total, "task") if total is not None else f"{done} tasks"
    left = f", {duration(snapshot['left_s'])} left" if snapshot["left_s"] is not None and total is not None else ""
    of_bound = f" of at most {bound:.4g} ({rate / bound:.0%})" if bound else ""
    lines = [f"{tasks}{left}", f"{rate:.4g} tasks/s{of_bound}"]
    links = sorted((node for node in snapshot["nodes"] if node["link"]), key=lambda node: -node["link"])
    if links:
        lines.append("links: " + _named(f"{node['name']} {node['link']:.0%}" for node in links))
    for state in ("behind", "lost"):
        names = [node["name"] for node in snapshot["nodes"] if node["state"] == state]
        if names:
            lines.append(f"{state}: {_named(names)}")
    return [_cut(printable(line), width) for line in lines]


def _named(words: Any) -> str:
    told = list(words)
    more = f" and {len(told) - _NAMED} more" if len(told) > _NAMED else ""
    return ", ".join(told[:_NAMED]) + more


def _cut(line: str, width: int) -> str:
    return line if len(line) <= width else line[: width - 1] + "…"
