"""A platform as described: its tree, with the rate of each node and of the link to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt

from crosswind.platform import link_mb_per_s
from crosswind.report.figures.look import BLUE, GREY, INK, MUTED, Spec, layered, records
from crosswind.report.words import number, shortened

MOST_ROWS = 30
ROW_PX, TOP_PX, LEFT_PX, STEP_PX = 46.0, 14.0, 12.0, 26.0
WIDEST_PX, THINNEST_PX = 10.0, 1.5


def rows_of(nodes: Sequence[Mapping[str, Any]], most: int = MOST_ROWS) -> list[tuple[Mapping[str, Any], int]]:
    """Return nodes and their depths, depth first in the order of the file; breadth decides what is left out of many."""
    children: dict[str, list[Mapping[str, Any]]] = {}
    for node in nodes:
        children.setdefault(str(node.get("parent") or ""), []).append(node)
    level, chosen = list(children.get("", ())), set[str]()
    while level and len(chosen) < most:
        chosen |= {str(node["name"]) for node in level[: most - len(chosen)]}
        level = [child for node in level for child in children.get(str(node["name"]), ())]
    found: list[tuple[Mapping[str, Any], int]] = []
    stack = [(node, 0) for node in reversed(children.get("", ()))]
    while stack:
        node, depth = stack.pop()
        if str(node["name"]) not in chosen:
            continue
        found.append((node, depth))
        stack += [(child, depth + 1) for child in reversed(children.get(str(node["name"]), ()))]
    return found


def links_tree(nodes: Sequence[Mapping[str, Any]], most: int = MOST_ROWS) -> alt.LayerChart:
    """Draw a platform's tree.

    Parameters
    ----------
    nodes : sequence of mappings
        `node` of a `platform.toml`.
    most : int
        Most nodes to draw.

    Returns
    -------
    altair.LayerChart
        Links are as wide as their rates; rates and prices stand beside each node in words.
    """
    rows = rows_of(nodes, most)
    at = {str(node["name"]): k for k, (node, _) in enumerate(rows)}
    fastest = max((link_mb_per_s(node) or 0.0 for node, _ in rows), default=0.0)
    spots = {name: (LEFT_PX + STEP_PX * rows[k][1], TOP_PX + ROW_PX * k) for name, k in at.items()}
    lines, dots = [], []
    for node, _ in rows:
        name, (x, y) = str(node["name"]), spots[str(node["name"])]
        dots.append({"x": x, "y": y, "name": shortened(name), "compute": _computes(node), "link": _link(node)})
        if node.get("parent") in spots:
            px, py = spots[str(node["parent"])]
            limit = link_mb_per_s(node) or 0.0
            width = max(WIDEST_PX * limit / fastest, THINNEST_PX) if fastest else THINNEST_PX
            lines.append({"x": px, "x2": px, "y": py, "y2": y, "width": THINNEST_PX})
            lines.append({"x": px, "x2": x, "y": y, "y2": y, "width": width})
    height = TOP_PX + ROW_PX * len(rows)
    pixels: Spec = {"scale": None, "axis": None}
    base = alt.Chart(records({key: [dot[key] for dot in dots] for key in dots[0]})).encode(
        x=alt.X("x:Q", **pixels), y=alt.Y("y:Q", **pixels)
    )
    layers: list[alt.Chart] = []
    if lines:
        layers.append(
            alt.Chart(records({key: [line[key] for line in lines] for key in lines[0]}))
            .mark_rule(color=GREY, opacity=0.7)
            .encode(
                x=alt.X("x:Q", **pixels),
                x2="x2:Q",
                y=alt.Y("y:Q", **pixels),
                y2="y2:Q",
                strokeWidth=alt.StrokeWidth("width:Q", scale=None, legend=None),
            )
        )
    layers.append(base.mark_point(filled=True, size=80, color=BLUE, opacity=1))
    words: Spec = {"align": "left", "dx": 12, "baseline": "middle"}
    layers += [
        base.mark_text(**words, fontWeight="bold", color=INK).encode(text="name:N"),
        base.mark_text(**words, dy=14, fontSize=10.5, color=MUTED)
        .encode(text="compute:N")
        .properties(name="muted_compute"),
        base.mark_text(**words, dy=27, fontSize=10.5, color=MUTED).encode(text="link:N").properties(name="muted_link"),
    ]
    return layered(*layers, height=height)


def _computes(node: Mapping[str, Any]) -> str:
    sends = node.get("send_limit_mb_per_s")
    out = f", sends at most {number(sends)} MB/s" if sends else ""
    return f"computes {number(node.get('compute_per_s'))} work units/s{out}"


def _link(node: Mapping[str, Any]) -> str:
    if not node.get("parent"):
        return "root: holds the input data"
    prices = (1e3 * float(node.get(f"ir_{way}_s_per_mb") or 0.0) for way in ("receive", "send"))
    received, sent = (number(price) for price in prices)
    return f"link {number(link_mb_per_s(node))} MB/s, IR {received} here, {sent} s/GB at the parent"
