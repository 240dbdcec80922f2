"""`crosswind plan tree`: Links -> Platform."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.plan import SendsAtOnce, TaskSize, TaskWork, task_of
from crosswind.cli.verbs import help_of
from crosswind.platform import depth_first
from crosswind.statistics.digits import plain

if TYPE_CHECKING:
    from crosswind.plan.tree import BuiltTree

EXAMPLES = """
Examples:

    crosswind plan tree links.toml --task-size-mb 2 --task-work 5 -o platform.toml

    crosswind plan tree links.toml --task-size-mb 2 --task-work 5 --ports single --root a2

`crosswind measure cluster` makes a links.toml. Up to 10 hosts the tree is the best there is, for more the best that a
search found; both are compared with an upper bound for all trees.
"""

CLOSED = 1e-7
"""Gap to an upper bound, %, that is rounding."""
NAMES = {
    "star": "star",
    "chain": "chain, fastest links",
    "widest": "fastest links first",
    "random-median": "at random, median",
    "random-best": "at random, best",
}


def tree(
    links: Annotated[Path, typer.Argument(help="A links.toml.", metavar="LINKS.toml")],
    task_size_mb: TaskSize = None,
    task_work: TaskWork = None,
    ports: SendsAtOnce = "multi",
    root: Annotated[
        str | None, typer.Option(metavar="HOST", help="The host with the input. [default: the best]")
    ] = None,
    seed: Annotated[int, typer.Option(help="Seed of the search (above 10 hosts) and of random trees.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the tree as a platform.toml.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the tree over measured links whose plan is fastest."""
    from crosswind.plan.tree import plan_tree

    size_mb, work = task_of(task_size_mb, task_work)
    writable(out, "platform", inputs=[links], force=force)
    built = plan_tree(links, task_size_mb=size_mb, task_work=work, ports=ports, root=root, seed=seed)
    if out:
        writable(out, "platform", force=force, of={"name": built.platform.name})
        built.platform.save(out, _comment(built, links))
    show(
        None if json else _answer(built),
        warnings=built.warnings,
        wrote=written(out),
        document=built.to_dict() if json else None,
    )


def _task(built: BuiltTree) -> str:
    d = built.data
    return f"{d['task_size_mb']:g} MB and {d['task_work']:g} work units a task, {d['ports']} port"


def _comment(built: BuiltTree, links: Path) -> str:
    below = f"{100 * built.gap_to_bound:.3g} % below the upper bound for all trees"
    reached = f"{built.throughput_tasks_per_s:.6g} tasks/s, {below}"
    return f"built by `crosswind plan tree {links}` for {_task(built)}: {reached}"


def _sentence(built: BuiltTree) -> str:
    """Return what the tree reaches, against the upper bound and a star."""
    d, best = built.data, built.throughput_tasks_per_s
    gap = 100 * built.gap_to_bound
    line = f"{plain(best)} tasks/s, from {d['root']}: "
    line += (
        "no tree over these links is faster." if gap < CLOSED else f"{plain(gap, 2)} % below the bound for all trees."
    )
    star = next((one["throughput_tasks_per_s"] for one in d["compared"] if one["tree"] == "star"), 0.0)
    return f"{line} A star reaches {100 * star / best:.0f} % of that." if star and best else line


def _answer(built: BuiltTree) -> Answer:
    d, best = built.data, built.throughput_tasks_per_s
    found = "the best tree" if d["method"] == "exact" else "the best tree found"
    gap = f"gap {100 * built.gap_to_bound:.3g} %"
    rows = [[found, f"{best:.4f}", ""], ["upper bound, all trees", f"{built.bound_tasks_per_s:.4f}", gap]]
    rows.append(["upper bound, past the tree too", f"{built.network_bound_tasks_per_s:.4f}", ""])
    for other in built.compared:
        rate = other["throughput_tasks_per_s"]
        rows.append([NAMES[other["tree"]], f"{rate:.4f}", f"{100 * rate / best:.1f} %" if best else ""])
    columns = [("tree", "left"), ("tasks/s", "right"), ("", "right")]
    trees = Section(columns, rows, title=f"{d['platform']['name']}: {_task(built)}")
    rows = []
    for node, depth in depth_first(built.platform.nodes):
        limit = node.get("receive_limit_mb_per_s")
        below = "" if limit is None else f"{limit:.6g}"
        rows.append(["  " * depth + node["name"], f"{node['compute_per_s']:.6g}", below])
    nodes = Section([("node", "left"), ("work/s", "right"), ("MB/s from its parent", "right")], rows)
    return Answer([_sentence(built)], [nodes, trees])


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("tree", help=help_of("plan tree", EXAMPLES))(tree)
