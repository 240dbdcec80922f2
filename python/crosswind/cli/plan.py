"""`crosswind plan`: Platform -> Plan."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from crosswind.cli.console import print_json, print_table, print_text, tell_warnings
from crosswind.cli.outputs import Force, Json, writable
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.plan import BOUND, Method, Plan, Ports
from crosswind.plan import plan as find_plan
from crosswind.platform import Platform

EXAMPLES = """
Examples:

    crosswind plan platform.toml --task-size-mb 2 --task-work 5

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --ports single -o plan.json

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --json | jq .throughput_tasks_per_s
"""

ROUNDING = 1e-12
"""Rates this close, as parts of each other, are the same."""

TaskSize = Annotated[float | None, typer.Option(metavar="MB", help="Input of a task, MB (greater than 0).")]
TaskWork = Annotated[float | None, typer.Option(metavar="WORK", help="Work of a task, work units (greater than 0).")]
SendsAtOnce = Annotated[Ports, typer.Option(help="Sends that a node may have under way.")]


def plan(
    platform: Annotated[Path, typer.Argument(help="A platform.toml.", metavar="PLATFORM.toml")],
    task_size_mb: TaskSize = None,
    task_work: TaskWork = None,
    ports: SendsAtOnce = "multi",
    method: Annotated[Method, typer.Option(help="The best rates, or the paper's greedy rule.")] = "exact",
    nodes: Annotated[int, typer.Option(help="Most nodes in the printed table.", min=1)] = 40,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the plan there, as JSON.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the best steady rates of a platform."""
    size_mb, work = task_of(task_size_mb, task_work)
    described = Platform.load(platform)
    of = {"platform": described.name, "task_size_mb": size_mb, "task_work": work, "ports": ports, "method": method}
    writable(out, "plan", inputs=[platform], force=force, of=of)
    result = find_plan(described, task_size_mb=size_mb, task_work=work, ports=ports, method=method)
    if out:
        result.save(out)
    tell_warnings(result.warnings)
    if json:
        print_json(result.to_dict())
    else:
        _print(result, nodes)


def task_of(size_mb: float | None, work: float | None) -> tuple[float, float]:
    """Return the size and the work of a task.

    Raises
    ------
    DescriptionError
        When one is not given.
    """
    if size_mb is None or work is None:
        missing = "--task-size-mb" if size_mb is None else "--task-work"
        hint = "what is best depends on the task: --task-size-mb 2 --task-work 5"
        raise DescriptionError(f"a plan needs {missing}", "usage", hint)
    return size_mb, work


def _print(plan: Plan, most: int) -> None:
    d = plan.data
    print_table(
        [("", "left"), ("", "right")],
        [
            ["throughput", f"{plan.throughput_tasks_per_s:.4f} tasks/s"],
            *_bounds(plan),
            ["root alone", f"{d['root_only_tasks_per_s']:.4f} tasks/s ({_times_less(plan)})"],
        ],
        title=f"{d['platform']}: {d['task_size_mb']:g} MB and {d['task_work']:g} work units a task, "
        f"{d['ports']} port, {d['method']}",
    )
    shown = (
        sorted(plan.nodes, key=lambda n: -n["received_tasks_per_s"])[:most] if len(plan.nodes) > most else plan.nodes
    )
    columns = [("node", "left"), ("parent", "left"), ("receives /s", "right"), ("computes /s", "right")]
    columns += [("rank", "right"), ("limited by", "left")]
    columns += [(f"marginal gain per {unit}", "right") for unit in ("MB/s in", "MB/s out", "work/s")]
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
    print_table(columns, rows, first=("node", "receives /s", "computes /s", "limited by"))
    if len(plan.nodes) > most:
        print_text(f"and {len(plan.nodes) - most} nodes that receive less (--nodes, --json)")
    print_text("Marginal gains are derivatives of the throughput: use them for small changes.")


def _bounds(plan: Plan) -> list[list[str]]:
    """Return the rows of the bounds: of constant rates too, where schedules that send in bursts have another."""

    def row(name: str, bound: float) -> list[str]:
        gap = max(0.0, 1 - plan.throughput_tasks_per_s / bound) if bound else 0.0
        return [name, f"{bound:.4f} tasks/s (gap {100 * gap if gap > ROUNDING else 0:.3g} %)"]

    rows = [row(BOUND[plan.data["ports"]], plan.bound_tasks_per_s)]
    constant = plan.constant_rates_bound_tasks_per_s
    if constant is not None and constant < plan.bound_tasks_per_s * (1 - ROUNDING):
        rows.insert(0, row("upper bound (constant rates)", constant))
    return rows


def _times_less(plan: Plan) -> str:
    alone = plan.data["root_only_tasks_per_s"]
    return f"{plan.throughput_tasks_per_s / alone:.2f} times less" if alone else "it computes nothing"


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan", help=help_of("plan", EXAMPLES))(plan)
