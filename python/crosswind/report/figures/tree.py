"""The platform as a tree: one row per node, streams of tasks as wide as their rates, and what limits each node.

Rows with an indent, as a file browser draws them, rather than a fan of nodes: labels never overlap, it fits a
telephone, it prints, and it stays readable where a fan of 1,000 leaves would not. Streams are drawn as a river: the
trunk below a node narrows at each child by what that child takes. Where there are more nodes than rows, the largest
streams are shown and the rest of each family is one row.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import altair as alt

from crosswind.plan import LIMITED_BY
from crosswind.report.figures.look import (
    BLUE,
    GREEN,
    GREY,
    INK,
    LILAC,
    MUTED,
    OCHRE,
    ORANGE,
    PINK,
    VIOLET,
    Spec,
    layered,
    records,
)
from crosswind.report.words import number, shortened

MOST_NODES = 20
ROW_PX, TOP_PX, LEFT_PX = 54.0, 16.0, 14.0
WIDEST_PX, THINNEST_PX = 14.0, 1.5

_COLOURS = (BLUE, ORANGE, PINK, OCHRE, VIOLET, GREEN, GREY, LILAC)
LIMITS = {limit: (LIMITED_BY[limit], colour) for limit, colour in zip(LIMITED_BY, _COLOURS, strict=True)}


@dataclass
class Row:
    """A node, or the unshown rest of a family, on its row of the drawing."""

    name: str
    depth: int
    node: Mapping[str, Any] | None
    received: float
    detail: str
    limit: str
    children: list[Row] = field(default_factory=list)
    at: int = 0


def rows_of(nodes: Sequence[Mapping[str, Any]], most: int = MOST_NODES) -> list[Row]:
    """Choose the nodes to draw, in drawing order: depth first, siblings in their order of service.

    Parameters
    ----------
    nodes : sequence of mappings
        `nodes` of a `plan.json`.
    most : int
        Most nodes to draw; those that receive most are chosen, each with all its ancestors.

    Returns
    -------
    list of Row
        The first is the root. A row without `node` stands for the children of its parent that are not drawn.
    """
    children: dict[str | None, list[Mapping[str, Any]]] = {}
    for node in nodes:
        children.setdefault(node.get("parent"), []).append(node)
    for family in children.values():
        family.sort(key=lambda n: (n["rank"] == 0, n["rank"]))
    chosen = _largest(children, most)
    below = _descendants(nodes) if len(chosen) < len(nodes) else {}

    rows: list[Row] = []
    waiting: list[tuple[Row | None, Mapping[str, Any]]] = [(None, node) for node in children.get(None, ())]
    stack: list[tuple[Row | None, Mapping[str, Any] | Row]] = list(reversed(waiting))
    while stack:
        parent, item = stack.pop()
        row = item if isinstance(item, Row) else _row(item, parent)
        row.at = len(rows)
        rows.append(row)
        if parent is not None:
            parent.children.append(row)
        if row.node is None:
            continue
        family = children.get(row.name, [])
        shown = [node for node in family if node["name"] in chosen]
        if not shown and family:
            row.detail += f" · {_nodes(below[row.name] - 1)} below"
        elif len(shown) < len(family):
            hidden = [node for node in family if node["name"] not in chosen]
            stack.append((row, _rest(hidden, row, below)))
        stack.extend((row, node) for node in reversed(shown))
    return rows


def platform_tree(nodes: Sequence[Mapping[str, Any]], most: int = MOST_NODES) -> alt.LayerChart:
    """Draw a plan's nodes as a tree with flows.

    Parameters
    ----------
    nodes : sequence of mappings
        `nodes` of a `plan.json`.
    most : int
        Most nodes to draw.

    Returns
    -------
    altair.LayerChart
        Coordinates are pixels, so that streams keep their width on every screen.
    """
    rows = rows_of(nodes, most)
    deepest = max(row.depth for row in rows)
    indent = max(18.0, min(52.0, 120.0 / max(1, deepest)))
    widest = max((row.received for row in rows if row.depth > 0), default=0.0)
    by_family = {row.name: sum(child.received for child in row.children) for row in rows if row.node is not None}
    widest = max([widest, *by_family.values()])

    def width(flow: float) -> float:
        return max(THINNEST_PX, WIDEST_PX * flow / widest) if flow > 0 and widest > 0 else 0.0

    base = alt.Chart(_streams(rows, indent, width)).encode(
        x=_pixels("x"), x2="x2", y=_pixels("y"), y2="y2", tooltip=[alt.Tooltip("flow:N", title="tasks")]
    )
    flowing = base.transform_filter("datum.flows").mark_rect(color=BLUE, opacity=0.55)
    dry = base.transform_filter("!datum.flows").mark_rect(color=GREY, opacity=0.55)
    labels = alt.Chart(_labels(rows, indent))
    present = [key for key in LIMITS if any(row.node and row.node["limited_by"] == key for row in rows)]
    circles = (
        labels.transform_filter("datum.limit != null")
        .mark_point(filled=True, size=190, opacity=1, stroke="#ffffff", strokeWidth=1.5)
        .encode(
            x=_pixels("x"),
            y=_pixels("y"),
            color=alt.Color(
                "limit:N",
                scale=alt.Scale(domain=[LIMITS[k][0] for k in present], range=[LIMITS[k][1] for k in present]),
                legend=alt.Legend(title=None, symbolType="circle", symbolSize=110),
            ),
            tooltip=[
                alt.Tooltip("full:N", title="node"),
                alt.Tooltip("computed:Q", title="computed, tasks/s", format=",.4~g"),
                alt.Tooltip("received:Q", title="received, tasks/s", format=",.4~g"),
                alt.Tooltip("rank:Q", title="rank among siblings"),
                alt.Tooltip("limit:N", title="limited by"),
            ],
        )
    )
    text: Spec = {"align": "left", "baseline": "middle", "dx": 15, "limit": 420}
    where = {"x": _pixels("x"), "y": _pixels("y")}
    names = labels.mark_text(**text, fontSize=12.5, fontWeight=600, color=INK).encode(**where, text="name:N")
    details = (
        labels.mark_text(**text, dy=14, color=MUTED).encode(**where, text="detail:N").properties(name="muted_details")
    )
    limits = (
        labels.mark_text(**text, dy=27, color=MUTED).encode(**where, text="limited:N").properties(name="muted_limits")
    )
    return layered(dry, flowing, circles, names, details, limits, height=ROW_PX * len(rows))


def _pixels(name: str) -> Any:
    return (alt.X if name == "x" else alt.Y)(f"{name}:Q", scale=None, axis=None)


def _largest(children: Mapping[str | None, Sequence[Mapping[str, Any]]], most: int) -> set[str]:
    """Return the names of the nodes that receive most; a parent always comes before its children."""
    chosen: set[str] = set()
    order = 0
    heap: list[tuple[float, int, Mapping[str, Any]]] = []
    for root in children.get(None, ()):
        heapq.heappush(heap, (0.0, order, root))
    while heap and len(chosen) < most:
        _, _, node = heapq.heappop(heap)
        chosen.add(node["name"])
        for child in children.get(node["name"], ()):
            order += 1
            heapq.heappush(heap, (-float(child["received_tasks_per_s"]), order, child))
    return chosen


def _descendants(nodes: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """Return how many nodes stand below each, itself included."""
    parents = {node["name"]: node.get("parent") for node in nodes}
    waiting = dict.fromkeys(parents, 0)
    for parent in parents.values():
        if parent is not None:
            waiting[parent] += 1
    count = dict.fromkeys(parents, 1)
    ready = [name for name, children in waiting.items() if children == 0]
    while ready:
        name = ready.pop()
        parent = parents[name]
        if parent is not None:
            count[parent] += count[name]
            waiting[parent] -= 1
            if waiting[parent] == 0:
                ready.append(parent)
    return count


def _row(node: Mapping[str, Any], parent: Row | None) -> Row:
    computed, received = float(node["computed_tasks_per_s"]), float(node["received_tasks_per_s"])
    passed = received - computed
    limit = f"limited by {LIMITS[node['limited_by']][0]}"
    if node.get("never_send"):
        detail, limit = "never sent to", "a task costs its parent more than it is worth"
    elif parent is not None and received == 0:
        detail = "gets nothing"
    else:
        detail = f"computes {number(computed)}/s"
        if passed > 1e-9 * received:
            detail += f", passes on {number(passed)}/s"
    return Row(node["name"], 0 if parent is None else parent.depth + 1, node, received, detail, limit)


def _rest(hidden: Sequence[Mapping[str, Any]], parent: Row, below: Mapping[str, int]) -> Row:
    received = float(sum(node["received_tasks_per_s"] for node in hidden))
    detail = f"receive {number(received)}/s together" if received > 0 else "get nothing"
    name = f"and {_nodes(sum(below[node['name']] for node in hidden), 'more ')}"
    return Row(name, parent.depth + 1, None, received, detail, "")


def _nodes(count: int, more: str = "") -> str:
    return f"{count:,} {more}node{'' if count == 1 else 's'}"


def _streams(rows: Sequence[Row], indent: float, width: Any) -> alt.InlineData:
    """Return the rectangles of all streams: from each child back to its parent, and the trunks beside them."""
    out: dict[str, list[Any]] = {name: [] for name in ("x", "x2", "y", "y2", "flow", "flows")}

    def add(x: float, x2: float, y: float, y2: float, flow: float) -> None:
        for name, value in zip(out, (x, x2, y, y2, f"{number(flow)}/s", flow > 0), strict=True):
            out[name].append(value)

    for row in rows:
        remaining = sum(child.received for child in row.children)
        left = LEFT_PX + indent * row.depth - width(remaining) / 2.0
        y = _middle(row)
        dry_end = y
        for child in row.children:
            middle, thick = _middle(child), width(child.received)
            if child.received > 0:
                trunk = width(remaining)
                add(left, left + trunk, y, middle + thick / 2.0, remaining)
                add(
                    left + trunk,
                    LEFT_PX + indent * child.depth,
                    middle - thick / 2.0,
                    middle + thick / 2.0,
                    child.received,
                )
                remaining = max(0.0, remaining - child.received)
                y = dry_end = middle + thick / 2.0
            else:
                axis = LEFT_PX + indent * row.depth
                add(axis - 0.5, axis + 0.5, dry_end, middle + 0.5, 0.0)
                add(axis + 0.5, LEFT_PX + indent * child.depth, middle - 0.5, middle + 0.5, 0.0)
                dry_end = middle
    return records(out)


def _middle(row: Row) -> float:
    return TOP_PX + ROW_PX * row.at


def _labels(rows: Sequence[Row], indent: float) -> alt.InlineData:
    nodes = [row.node for row in rows]
    return records(
        {
            "x": [LEFT_PX + indent * row.depth for row in rows],
            "y": [_middle(row) for row in rows],
            "name": [shortened(row.name) for row in rows],
            "full": [row.name for row in rows],
            "detail": [row.detail for row in rows],
            "limited": [row.limit for row in rows],
            "computed": [None if n is None else n["computed_tasks_per_s"] for n in nodes],
            "received": [row.received for row in rows],
            "rank": [None if n is None else n["rank"] for n in nodes],
            "limit": [None if n is None else LIMITS[n["limited_by"]][0] for n in nodes],
        }
    )
