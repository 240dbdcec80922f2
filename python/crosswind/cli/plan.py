"""`crosswind plan`: Platform -> Plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from crosswind.cli.answer import Answer, Section, section, show
from crosswind.cli.outputs import Force, Json, writable, written
from crosswind.cli.verbs import help_of
from crosswind.errors import DescriptionError
from crosswind.plan import BOUND, Method, Plan, Ports
from crosswind.plan import plan as find_plan
from crosswind.platform import Platform
from crosswind.statistics.digits import plain

if TYPE_CHECKING:
    from crosswind.documents.plan import PlannedNode

EXAMPLES = """
Examples:

    crosswind plan platform.toml --task-size-mb 2 --task-work 5

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --ports single -o plan.json

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --result-size-mb 0.5

    crosswind plan platform.toml --task-size-mb 2 --task-work 5 --json | jq .throughput_tasks_per_s
"""

ROUNDING = 1e-12
"""Rates this close, as parts of each other, are the same."""
SAME_MACHINE = "same-machine"
"""Code of the warning that two nodes of a platform are one machine."""
NAMED = 4
"""Nodes that compute nothing up to which all are named."""

TaskSize = Annotated[float | None, typer.Option(metavar="MB", help="Input of a task, MB (greater than 0).")]
TaskWork = Annotated[float | None, typer.Option(metavar="WORK", help="Work of a task, work units (greater than 0).")]
ResultSize = Annotated[
    float, typer.Option(metavar="MB", help="Result of a task, which travels back to the root, MB.", show_default=False)
]
SendsAtOnce = Annotated[Ports, typer.Option(help="Sends that a node may have under way.")]


def plan(
    platform: Annotated[Path, typer.Argument(help="A platform.toml.", metavar="PLATFORM.toml")],
    task_size_mb: TaskSize = None,
    task_work: TaskWork = None,
    result_size_mb: ResultSize = 0.0,
    ports: SendsAtOnce = "multi",
    method: Annotated[Method, typer.Option(help="The best rates, or the paper's greedy rule.")] = "exact",
    nodes: Annotated[int, typer.Option(help="Most nodes in the printed table.", min=1)] = 40,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write the plan, as JSON.")] = None,
    force: Force = False,
    json: Json = False,
) -> None:
    """Find the best steady rates of a platform."""
    size_mb, work = task_of(task_size_mb, task_work)
    described = Platform.load(platform)
    of: dict[str, Any] = {
        "platform": described.name,
        "task_size_mb": size_mb,
        "task_work": work,
        "ports": ports,
        "method": method,
    }
    if result_size_mb:
        of["result_size_mb"] = result_size_mb
    writable(out, "plan", inputs=[platform], force=force, of=of)
    result = find_plan(
        described, task_size_mb=size_mb, task_work=work, result_size_mb=result_size_mb, ports=ports, method=method
    )
    if out:
        result.save(out)
    stored = described.to_dict().get("warning", [])
    show(
        None if json else _answer(result, described, nodes),
        warnings=[warning for warning in result.warnings if warning not in stored],
        earlier=[warning for warning in result.warnings if warning in stored],
        source=str(platform),
        wrote=written(out),
        document=result.to_dict() if json else None,
    )


def task_of(size_mb: float | None, work: float | None) -> tuple[float, float]:
    """Return the size and the work of a task.

    Raises
    ------
    DescriptionError
        When one is not given.
    """
    if size_mb is None or work is None:
        missing = "--task-size-mb" if size_mb is None else "--task-work"
        hint = "the best rates depend on the task: --task-size-mb 2 --task-work 5"
        raise DescriptionError(f"a plan needs {missing}", "usage", hint)
    return size_mb, work


def _answer(plan: Plan, platform: Platform, most: int) -> Answer:
    """Return the throughput with what it is compared with, the share of each node, and what would raise it."""
    lines = [f"{plain(plan.throughput_tasks_per_s)} tasks/s{_beside_root(plan)}. {_bound(plan)}"]
    same = [warning for warning in plan.warnings if warning["code"] == SAME_MACHINE]
    if same:
        lines.append("Not reachable: its nodes are one machine and share the CPUs.")
    rows, idle = [], []
    ordered = sorted(plan.nodes, key=lambda one: -one["computed_tasks_per_s"])
    whole = plan.throughput_tasks_per_s
    for one in ordered:
        if one["computed_tasks_per_s"] > ROUNDING * whole:
            name = f"{one['name']} (root)" if one["parent"] is None and one["name"] != "root" else one["name"]
            rate = one["computed_tasks_per_s"]
            rows.append([name, plain(rate), f"{100 * rate / whole:.0f} %", _limit_of(one)])
        else:
            idle.append(one)
    rows = _shortened(rows, idle, most)
    columns = [("node", "left"), ("tasks/s", "right"), ("share", "right"), ("limited by", "left")]
    notes = [line] if (line := _most_to_gain(plan, platform)) else []
    return Answer(lines, [Section(columns, rows)], notes, wide=_details(plan, most), rest="Order of service, all gains")


def _shortened(rows: list[list[str]], idle: list[PlannedNode], most: int) -> list[list[str]]:
    """Return at most `most` rows of nodes that compute, and one for all that do not, by their parents."""
    left = len(rows) - most
    shown = rows[:most]
    if left > 0:
        shown.append([f"{left} more (--nodes, --json)", "", "", ""])
    for why in dict.fromkeys(_why_idle(one) for one in idle):
        names = [one["name"] for one in idle if _why_idle(one) == why]
        name = (
            ", ".join(names)
            if len(names) <= NAMED
            else f"{', '.join(names[: NAMED - 1])}, {len(names) - NAMED + 1} more"
        )
        shown.append([name, "0", "0 %", why])
    return shown


def _limit_of(one: PlannedNode) -> str:
    limit, parent = str(one["limited_by"]), one["parent"]
    words = {"compute": "its CPU", "port": "its port, which is always sending", "send-limit": "its sending rate"}
    words |= {"receive-limit": f"the link from {parent}", "local-compute": "its own CPU, which sending uses up"}
    words |= {"return-link": f"its link, which returns results to {parent}"}
    words |= {"never-send": "never sent to: it would cost its parent more", "parent": f"what {parent} can still send"}
    return words.get(limit, limit)


def _why_idle(one: PlannedNode) -> str:
    if one["limited_by"] == "parent":
        return f"no sending time left at {one['parent']}"
    return "it computes nothing" if one["limited_by"] == "compute" else _limit_of(one)


def _beside_root(plan: Plan) -> str:
    alone = plan.data["root_only_tasks_per_s"]
    if not alone:
        return "; the root computes nothing"
    times = plan.throughput_tasks_per_s / alone
    return f", {times:.2f} times as many as the root alone" if times > 1 + ROUNDING else ", as many as the root alone"


def _bound(plan: Plan) -> str:
    """Return what the upper bound says of other schedules: of constant rates too, where bursts may reach more."""
    sends = "one send at a time" if plan.data["ports"] == "single" else "any number of sends at a time"
    whole, bound = plan.throughput_tasks_per_s, plan.bound_tasks_per_s
    constant = plan.constant_rates_bound_tasks_per_s
    if not bound or whole >= bound * (1 - ROUNDING):
        condition = ", as long as losses are linear" if plan.supposes_linear_losses else ""
        return f"No schedule on this tree is faster{condition} ({sends})."
    if constant is not None and whole >= constant * (1 - ROUNDING):
        return f"No constant rates are faster; sending in bursts reaches at most {plain(bound)} tasks/s ({sends})."
    gap = 100 * (1 - whole / bound)
    return f"That is {plain(gap, 2)} % below the upper bound, {plain(bound)} tasks/s ({sends})."


def _most_to_gain(plan: Plan, platform: Platform) -> str:
    """Return where 1 % more of a resource brings most, by the marginal gains; empty where nothing brings any."""
    described = {node["name"]: node for node in platform.to_dict()["node"]}
    found: list[tuple[float, str]] = []
    nodes: Sequence[Mapping[str, Any]] = plan.nodes
    for one in nodes:
        node, name = described[one["name"]], one["name"]
        for gain, field, what, unit in (
            ("gain_per_receive_mb_per_s", "receive_limit_mb_per_s", f"a faster link to {name}", "MB/s"),
            ("gain_per_send_mb_per_s", "send_limit_mb_per_s", f"a higher sending rate of {name}", "MB/s"),
            ("gain_per_work_per_s", "compute_per_s", f"a faster CPU of {name}", "work unit/s"),
        ):
            if one[gain] and one[gain] > 0 and node.get(field):
                share = one[gain] * node[field] / plan.throughput_tasks_per_s
                found.append(
                    (share, f"{what} (1 % faster brings {share:.2g} %; {plain(one[gain], 2)} tasks/s per {unit})")
                )
    best = max(found, default=(0.0, ""))
    return f"Most to gain: {best[1]}" if best[0] > ROUNDING else ""


def _details(plan: Plan, most: int) -> list[Section]:
    d = plan.data
    head = Section(
        [("", "left"), ("", "right")],
        [
            ["throughput", f"{plan.throughput_tasks_per_s:.4f} tasks/s"],
            *_bounds(plan),
            ["root alone", f"{d['root_only_tasks_per_s']:.4f} tasks/s"],
        ],
        title=f"{d['platform']}: {d['task_size_mb']:g} MB and {d['task_work']:g} work units a task, {_results(plan)}"
        f"{d['ports']} port, {d['method']}",
    )
    [nodes] = plan.tables(most)
    return [head, section(nodes, title=nodes.note)]


def _results(plan: Plan) -> str:
    size_mb = plan.data.get("result_size_mb", 0.0)
    return f"{size_mb:g} MB returned, " if size_mb else ""


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


def add_to(app: typer.Typer) -> None:
    """Add the verb to the command line."""
    app.command("plan", help=help_of("plan", EXAMPLES))(plan)
