"""`crosswind platform`: what tree a file describes; XML of SimGrid and hwloc, topology.conf -> Platform, and back."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.statistics.digits import plain

if TYPE_CHECKING:
    from crosswind.documents.shared import Node
    from crosswind.platform import Platform

EXAMPLES = """
Examples:

    crosswind platform platform.toml

    crosswind platform cluster.xml --root node-0 -o platform.toml

    crosswind platform topology.conf --compute-per-s 100 --mb-per-s 1250 -o platform.toml

    crosswind platform machine.xml --compute-per-s 20 --mb-per-s 10000 -o platform.toml

    crosswind platform platform.toml -o cluster.xml

The name says the format: `.hwloc.xml` is hwloc's, other `.xml` SimGrid's, `.conf` Slurm's, all else a platform.toml.
What has no counterpart in a tree of nodes is refused with its line. 1 Gflop/s of SimGrid is 1 work unit/s.
"""
MOST_ROWS = 20
RATES = "Of a topology.conf or hwloc's XML"


def platform(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="platform.toml, XML of SimGrid or hwloc, topology.conf.")
    ],
    root: Annotated[
        str | None,
        typer.Option(
            metavar="HOST", help="The host with the tasks. [default: the first of the file; of hwloc's the machine]"
        ),
    ] = None,
    compute_per_s: Annotated[
        float | None, typer.Option(metavar="RATE", help="Of each node, work units/s.", rich_help_panel=RATES)
    ] = None,
    mb_per_s: Annotated[
        float | None, typer.Option(metavar="RATE", help="Of each node's link, MB/s.", rich_help_panel=RATES)
    ] = None,
    uplink_mb_per_s: Annotated[
        float | None,
        typer.Option(metavar="RATE", help="Between switches, MB/s. [default: as nodes]", rich_help_panel=RATES),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the platform there.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Show the tree of a platform."""
    from crosswind.exchange import export_platform, format_named, import_platform

    kind = format_named(out) if out else "platform"
    writable(out, kind, inputs=[file], force=force)
    read = import_platform(
        file, root=root, compute_per_s=compute_per_s, mb_per_s=mb_per_s, uplink_mb_per_s=uplink_mb_per_s
    )
    lost = export_platform(read, out) if out else []
    show(
        None if json else _answer(read),
        warnings=[*read.warnings, *lost],
        wrote=written(out),
        document=read.to_dict() if json else None,
    )


def _answer(read: Platform) -> Answer:
    from crosswind.platform import depth_first

    nodes = read.nodes
    ordered = depth_first(nodes)
    levels = max(depth for _, depth in ordered)
    root = next(node for node in nodes if not node.get("parent"))
    computing = [node for node in nodes if node["compute_per_s"] > 0]
    passing = len(nodes) - len(computing)
    total = plain(sum(node["compute_per_s"] for node in computing))
    line = f"{len(computing)} computing nodes, {total} work units/s in all; the tasks are at {root['name']}."
    below = f"{levels} level{'s' * (levels != 1)} below it."
    if passing:
        below += f" {passing} node{'s' * (passing != 1)} only pass{'es' * (passing == 1)} tasks on."
    rows = [_row(node, depth) for node, depth in ordered]
    columns = [("node", "left"), ("work/s", "right"), ("MB/s in", "right"), ("MB/s out", "right"), ("latency", "right")]
    table = Section(columns, rows[:MOST_ROWS])
    notes = ["MB/s in: from its parent. MB/s out: to all children together, where that is limited."]
    more = len(rows) - MOST_ROWS
    wide = [Section(columns, rows)] if more > 0 else []
    rest = f"{more} more nodes" if more > 0 else ""
    return Answer([line, below], [table], notes, wide, rest)


def _row(node: Node, depth: int) -> list[str]:
    limit, send = node.get("receive_limit_mb_per_s"), node.get("send_limit_mb_per_s")
    latency = float(node.get("latency_s") or 0.0)
    return [
        "  " * depth + node["name"],
        plain(node["compute_per_s"]),
        plain(limit) if limit else "",
        plain(send) if send else "",
        f"{plain(1e6 * latency)} us" if latency else "",
    ]


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("platform", help=help_of("platform", EXAMPLES))(platform)
