"""The sections about plans and platforms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from crosswind.errors import Notice
from crosswind.plan import Plan
from crosswind.platform import Platform
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.links import MOST_ROWS, links_tree
from crosswind.report.figures.nodes import MOST_BARS, node_bars
from crosswind.report.figures.tree import MOST_NODES, platform_tree
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.tables import platform_nodes
from crosswind.report.words import number, percent, plain
from crosswind.tables import Table

EXACT = 1e-9  # a gap below this is rounding


TERMS = (
    Term(
        "throughput",
        "throughput",
        "Tasks per second that all nodes compute together, in the steady state.",
    ),
    Term(
        "bound",
        "bound and gap",
        "No schedule on this tree with the same number of simultaneous sends is faster than the bound: the dual of the "
        "linear program proves it. One that sends past the tree may be. The gap is (bound − throughput) / bound.",
    ),
    Term(
        "root-only",
        "root alone",
        "The throughput if the root computed everything itself and sent nothing: the yardstick of the papers.",
    ),
    Term(
        "rank",
        "rank",
        "The place of a node among its siblings in the order of service.",
    ),
    Term(
        "limited-by",
        "limited by",
        "What keeps a node from doing more: its own compute rate, its receive or send limit, its single port, "
        "what its parent gives, or that its own computation cannot fall below 0.",
    ),
    Term(
        "never-send",
        "never sent to",
        "A task sent there costs its parent more computation than the task is worth.",
    ),
    Term(
        "gain",
        "marginal gain",
        "The derivative of the whole tree's throughput for more of this limit, for small changes: a whole unit more "
        "may bring less. 0: more of it would bring nothing.",
    ),
)


@dataclass(frozen=True)
class PlanSection:
    """One plan."""

    id: str
    title: str
    large: list[Answer]
    headline: str
    answer_note: str
    caution: str
    note: str
    others: str
    cards: list[Card]
    tree: Figure
    bars: Figure
    table: Table
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.tree, self.bars]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


@dataclass(frozen=True)
class PlatformSection:
    """One platform."""

    id: str
    title: str
    where: str
    large: list[Answer]
    tree: Figure
    note: str
    table: Table
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.tree]

    @property
    def terms(self) -> Sequence[Term]:
        """None: what interference is stands on every page."""
        return ()


def plan_section(plan: Plan, place: int) -> PlanSection:
    """Prepare the section of the plan at `place` (from 1)."""
    data, nodes = plan.to_dict(), plan.nodes
    id_ = f"plan-{place}"
    alone = float(data["root_only_tasks_per_s"])
    throughput, gap, bound = plan.throughput_tasks_per_s, plan.gap_to_exact, number(plan.bound_tasks_per_s)
    busy = sum(1 for node in nodes if node["computed_tasks_per_s"] > 0)
    times = f", {number(throughput / alone)} times the root alone" if alone > 0 else ""
    constant = plan.constant_rates_bound_tasks_per_s
    condition = ", as long as losses are linear" if plan.supposes_linear_losses else ""
    proof = (
        f"No schedule along this tree is faster{condition}: the plan reaches the upper bound."
        if gap <= EXACT
        else f"No schedule along this tree is faster than {bound} tasks/s{condition}; the gap to that bound is "
        f"{percent(gap)}."
    )
    if constant is not None and throughput >= constant * (1 - EXACT) and gap > EXACT:
        proof = (
            f"No constant rates along this tree are faster. {proof} Only schedules that send in bursts may come closer."
        )
    cut = f"The {MOST_NODES} nodes that receive most are drawn, the rest of each family as one."
    task = f"{plain(data['task_size_mb'])} MB and {plain(data['task_work'])} work units a task"
    if results := data.get("result_size_mb"):
        task += f", {plain(results)} MB returned"
    return PlanSection(
        id=id_,
        title=f"How fast can {data['platform']} work?",
        large=[
            Answer(
                f"{number(throughput)} tasks/s",
                f"{times.removeprefix(', ') or 'in all'}: {task}, {data['ports']}-port sends.",
            )
        ],
        headline=f"{number(throughput)} tasks/s{times} ({task}, {data['ports']}-port sends).",
        answer_note=proof,
        caution=_caution(plan.warnings),
        note=cut if len(nodes) > MOST_NODES else "",
        cards=[
            Card("bound", bound, f"tasks/s, gap {percent(gap) if gap > EXACT else '0 %'}", "bound"),
            Card("root alone", number(alone), "tasks/s", "root-only"),
            Card("nodes that compute", f"{busy:,}", f"of {len(nodes):,}"),
            _without_tasks(nodes),
        ],
        tree=Figure(
            f"{id_}-tree",
            "Where the tasks go",
            f"Tree of {len(nodes)} nodes with streams of tasks from the root, {number(throughput)} tasks/s in all.",
            platform_tree(nodes),
            export_width=460,
        ),
        bars=Figure(
            f"{id_}-nodes",
            "Tasks per second by node",
            f"Bars of the tasks per second that each node computes; {busy} of {len(nodes)} nodes compute.",
            node_bars(nodes),
        ),
        table=plan.tables()[0],
        others=_others(nodes),
        warnings=plan.warnings,
    )


def _without_tasks(nodes: Sequence[Mapping[str, Any]]) -> Card:
    """Count what the tree calls `gets nothing` and `never sent to`, together."""
    without = sum(1 for node in nodes if node.get("parent") and not node["received_tasks_per_s"] > 0)
    never = sum(1 for node in nodes if node["never_send"])
    return Card("nodes without tasks", f"{without:,}", f"of them never sent to: {never:,}", "never-send")


def _caution(warnings: Sequence[Notice]) -> str:
    """Say beside the throughput that it cannot be reached, where nodes share one machine; else nothing."""
    shared = [warning["message"] for warning in warnings if warning["code"] == "same-machine"]
    return f"Not reachable as planned: {'; '.join(shared)}." if shared else ""


def _others(nodes: Sequence[Mapping[str, Any]]) -> str:
    rates = sorted((float(node["computed_tasks_per_s"]) for node in nodes), reverse=True)[MOST_BARS:]
    return f"The {len(rates):,} other nodes compute {number(sum(rates))} tasks/s together." if rates else ""


def platform_section(platform: Platform, place: int) -> PlatformSection:
    """Prepare the section of the platform at `place` (from 1)."""
    nodes = platform.nodes
    root = next(node["name"] for node in nodes if not node.get("parent"))
    return PlatformSection(
        id=f"platform-{place}",
        title=f"What is {platform.name} made of?",
        large=[
            Answer(f"{len(nodes):,} node{'' if len(nodes) == 1 else 's'}", _computing(nodes)),
        ],
        where=f"{len(nodes):,} node{'' if len(nodes) == 1 else 's'}; {root} is the root and holds the input data",
        tree=Figure(
            f"platform-{place}-tree",
            "Nodes and links",
            f"Tree of {len(nodes)} nodes below {root} with the rate of each node and link.",
            links_tree(nodes),
            export_width=520,
        ),
        note=f"The {MOST_ROWS} nodes nearest to the root are drawn." if len(nodes) > MOST_ROWS else "",
        table=platform_nodes(nodes),
        warnings=platform.warnings,
    )


def _computing(nodes: Sequence[Mapping[str, Any]]) -> str:
    """Say what all nodes compute together, and what does not count there."""
    rate = sum(float(node.get("compute_per_s", 0.0)) for node in nodes)
    return f"that compute {number(rate)} work units/s together, before any traffic."


PLANS = Kind("plan", "plans", "plan.html.j2", of_type(Plan), each(plan_section), {"plan": Plan.load})
PLATFORMS = Kind(
    "platform",
    "platforms",
    "platform.html.j2",
    of_type(Platform),
    each(platform_section),
    {"platform": Platform.load},
)
