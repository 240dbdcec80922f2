"""`crosswind plan`: Platform -> Plan, Links -> Platform, Disturbance -> what a program bears, streams -> queues."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.console import print_json, print_table, tell_warnings
from crosswind.cli.outputs import Force, writable
from crosswind.cli.overlay import plan_tree
from crosswind.cli.thresholds import plan_queues
from crosswind.cli.tolerance import plan_disturbance
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.plan import BOUND, Method, Plan, Ports
from crosswind.plan import plan as find_plan

EXAMPLES = """
Examples:

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --ports single

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --ports multi --json | jq .throughput_tasks_per_s

    crosswind plan --disturbance daemons.toml --ranks 64 --work-per-barrier-s 0.007 --slowdown 1.05

    crosswind plan --streams streams.toml --local-slowdown 1.5

    crosswind plan --build-tree links.toml --task-size-mb 2 --task-work 5 --ports single -o platform.toml
"""


def _without_disturbance(simulate: bool) -> None:
    if simulate:
        raise DescriptionError("--simulate belongs to --disturbance", "usage", "name a disturbance.toml")


def plan(
    platform: Annotated[Path | None, typer.Argument(help="A platform.toml.", metavar="PLATFORM.toml")] = None,
    task_size_mb: Annotated[float | None, typer.Option(help="Input of a task, MB (greater than 0).")] = None,
    task_work: Annotated[float | None, typer.Option(help="Work of a task, work units (greater than 0).")] = None,
    ports: Annotated[Ports, typer.Option(help="Sends that a node may have under way.")] = "multi",
    method: Annotated[Method, typer.Option(help="The best rates, or the paper's greedy rule.")] = "exact",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the plan there, as JSON; --build-tree: a platform.toml.")
    ] = None,
    force: Force = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
    nodes: Annotated[int, typer.Option(help="Most nodes in the printed table.", min=1)] = 40,
    disturbance: Annotated[Path | None, typer.Option(help="A disturbance.toml, instead of a platform.")] = None,
    ranks: Annotated[int | None, typer.Option(help="Ranks of the program (at least 1).")] = None,
    work_per_barrier_s: Annotated[
        float | None, typer.Option(help="What each computes between two barriers, s.")
    ] = None,
    slowdown: Annotated[float, typer.Option(help="Most that each source alone may slow the program.")] = 1.05,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="--disturbance: seek each limit in the simulator too, by bisection.")
    ] = False,
    streams: Annotated[
        Path | None, typer.Option(help="An experiment.toml of kind streams, instead of a platform.")
    ] = None,
    local_slowdown: Annotated[
        float | None, typer.Option(help="Most that the slowest local stream may take over its time alone (above 1).")
    ] = None,
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="PATH=VALUE: a field of --streams; may be repeated.")
    ] = None,
    build_tree: Annotated[
        Path | None, typer.Option(help="A links.toml, instead of a platform: the best tree over it.")
    ] = None,
    root: Annotated[
        str | None, typer.Option(help="--build-tree: the host with the input; else whichever is best.")
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="--build-tree: of the search (above 10 hosts) and of random trees; else 1.")
    ] = None,
) -> None:
    """Find the best steady rates of a platform, the best tree, what a program can bear, or queues for two classes."""
    if build_tree:
        if platform or disturbance or streams or method != "exact":
            hint = "it takes --task-size-mb, --task-work, --ports, --root, --seed, --out and --json"
            raise DescriptionError("--build-tree stands beside another plan", "usage", hint)
        plan_tree(build_tree, task_size_mb, task_work, ports, root, 1 if seed is None else seed, out, force, json)
        return
    if root is not None or seed is not None:
        option = "--root" if root is not None else "--seed"
        raise DescriptionError(f"{option} belongs to --build-tree", "usage", "name a links.toml")
    if streams:
        if platform or disturbance or task_size_mb is not None or task_work is not None:
            hint = "--local-slowdown and --out go with --streams; plan platforms and disturbances separately"
            raise DescriptionError("--streams stands beside another plan", "usage", hint)
        plan_queues(streams, local_slowdown, settings or [], out, force, json)
        return
    if local_slowdown is not None or settings:
        option = "--set" if settings else "--local-slowdown"
        raise DescriptionError(f"{option} belongs to --streams", "usage", "name an experiment of kind streams")
    if disturbance:
        if platform or out or task_size_mb is not None or task_work is not None:
            hint = "a platform, --task-size-mb, --task-work and --out belong to a plan of tasks; plan them separately"
            raise DescriptionError("--disturbance stands beside a plan of tasks", "usage", hint)
        plan_disturbance(disturbance, ranks, work_per_barrier_s, slowdown, simulate, json)
        return
    _without_disturbance(simulate)
    if platform is None or task_size_mb is None or task_work is None:
        missing = "a platform.toml" if platform is None else "--task-size-mb" if task_size_mb is None else "--task-work"
        hint = "see `crosswind plan --help`; or name a --disturbance, with --ranks and --work-per-barrier-s"
        raise DescriptionError(f"a plan needs {missing}", "usage", hint)
    writable(out, "plan", inputs=[platform], force=force)
    result = find_plan(platform, task_size_mb=task_size_mb, task_work=task_work, ports=ports, method=method)
    if out:
        result.save(out)
    tell_warnings(result.warnings)
    if json:
        print_json(result.to_dict())
    else:
        _print(result, nodes)


def _print(plan: Plan, most: int) -> None:
    d = plan.data
    against = plan.throughput_tasks_per_s / d["root_only_tasks_per_s"] if d["root_only_tasks_per_s"] else float("inf")
    print_table(
        [("", "left"), ("", "right")],
        [
            ["throughput", f"{plan.throughput_tasks_per_s:.4f} tasks/s"],
            [BOUND[d["ports"]], f"{plan.bound_tasks_per_s:.4f} tasks/s (gap {100 * plan.gap_to_exact:.3g} %)"],
            ["root alone", f"{d['root_only_tasks_per_s']:.4f} tasks/s ({against:.2f} times less)"],
        ],
        title=f"{d['platform']}: {d['task_size_mb']:g} MB and {d['task_work']:g} work units a task, "
        f"{d['ports']} port, {d['method']}",
    )
    shown = (
        sorted(plan.nodes, key=lambda n: -n["received_tasks_per_s"])[:most] if len(plan.nodes) > most else plan.nodes
    )
    columns = [("node", "left"), ("parent", "left"), ("receives /s", "right"), ("computes /s", "right")]
    columns += [("rank", "right"), ("limited by", "left")]
    columns += [("+1 MB/s in", "right"), ("+1 MB/s out", "right"), ("+1 work/s", "right")]
    rows = [
        [
            n["name"],
            n["parent"] or "",
            f"{n['received_tasks_per_s']:.4f}",
            f"{n['computed_tasks_per_s']:.4f}",
            "never" if n["never_send"] else str(n["rank"] or ""),
            n["limited_by"],
            f"{n['gain_per_receive_mb_per_s']:+.4f}",
            f"{n['gain_per_send_mb_per_s']:+.4f}",
            "a loss" if n["gain_per_work_per_s"] is None else f"{n['gain_per_work_per_s']:+.4f}",
        ]
        for n in shown
    ]
    print_table(columns, rows)
    if len(plan.nodes) > most:
        print_table([("", "left")], [[f"and {len(plan.nodes) - most} nodes that receive less (--nodes, --json)"]])


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan", help=help_of("plan", EXAMPLES))(plan)
