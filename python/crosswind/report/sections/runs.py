"""The sections about runs of experiments and about traces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import fmean

from crosswind import _core
from crosswind.errors import Notice
from crosswind.plan import BOUND
from crosswind.report.comparisons import Group, Pair, groups_of, pairs_of
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.figures.lanes import MOST_LANES, lane_rows, lanes
from crosswind.report.figures.orders import makespans, predicted_and_run
from crosswind.report.run_tables import events_table, order_table, pair_table, seen_table
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.plan import TERMS as OF_PLANS
from crosswind.report.sections.section import Answer, Contents, Kind, Section, Term, grouped, of_type
from crosswind.report.words import number, percent
from crosswind.run.fastest import in_words
from crosswind.run.ranking import FLOW, Ranking, ranking
from crosswind.run.results import Run, Runs
from crosswind.run.trace import Trace
from crosswind.tables import Table

MOST_GROUPS = 8
MOST_PAIRS = 40
MOST_LARGE = 2
"""Comparisons whose answer is in large type."""
ON = {
    "sim": "in virtual time",
    "local": "by agents on one machine",
    "dask": "by agents on a Dask cluster",
    "hosts": "by agents on several hosts",
}
DONE = {"sim": "Simulated", "local": "On this machine", "dask": "On a Dask cluster", "hosts": "On several hosts"}


def _told(kind: str) -> str:
    """Return what the names of a kind mean."""
    return "; ".join(f"`{name}`: {meaning}" for name, meaning in _core.KINDS[kind]) + "."


_OWN = (
    Term(
        "makespan",
        "makespan",
        "From the start of a run to the end of its last task, or, where results flow back, to the last result "
        "at the root. In seconds of the platform: an emulated run that is ten times as fast as its platform "
        "shows ten times its seconds.",
    ),
    Term(
        "order",
        "order of service",
        "Which child gets the next task when several ask. " + _told("order"),
    ),
    Term(
        "agreement",
        "predicted and run",
        "The simulator and the agents take every decision with the same code; they differ in whether time is "
        "virtual. What is left between them is the real machine: other processes, the network stack, the "
        "clock.",
    ),
    Term(
        "compute",
        "computed by",
        "What an agent did for a task. `emulated`: it slept for as long as the platform's rates and the "
        "interference law say, and links were slowed to the platform's; "
        + ", ".join(f"`{name}`" for name, _ in _core.KINDS["kernel"])
        + ": a real kernel; `command`, `callable`: a user's own.",
    ),
    Term(
        "busy",
        "busy",
        "The time in which a node's processor worked on tasks; the rest of the run it waited for some.",
    ),
)
TERMS = (*_OWN, *(term for term in OF_PLANS if term.id in {"throughput", "bound", "root-only"}))


@dataclass(frozen=True)
class RunsSection:
    """All runs of one experiment, wherever they ran."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    findings: list[str]
    cards: list[Card]
    groups: list[tuple[Figure, Table]]
    repeated: bool
    note: str
    ranks: list[Table]
    pairs: tuple[Figure, Table] | None
    nodes: list[Table]
    events: Table | None
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [*(figure for figure, _ in self.groups), *([self.pairs[0]] if self.pairs else [])]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


@dataclass(frozen=True)
class TraceSection:
    """What each node did when."""

    id: str
    title: str
    where: str
    large: list[Answer]
    text: str
    lanes: Figure
    table: Table
    events: Table | None
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [self.lanes]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def runs_section(several: Sequence[Runs[Run]], place: int) -> RunsSection:
    """Prepare the section of the runs of one experiment at `place` (from 1)."""
    id_ = f"runs-{place}"
    everything = [run for runs in several for run in runs]
    groups = [group for runs in several for group in groups_of(runs)]
    pairs = pairs_of(several)
    single = everything[0] if len(everything) == 1 else None
    compared = [group for group in groups if _is_compared(group, pairs)] if single is None else []
    cut = len(compared) > MOST_GROUPS
    if cut:  # real runs are few, and dear
        compared.sort(key=lambda group: group.on == "sim")
    findings = [*_findings(compared), *_agreement(pairs)] if single is None else [_headline(single)]
    question = "Which order is fastest for" if any(len(one.series) > 1 for one in compared) else "How fast is"
    large = [_large(single)] if single is not None else _large_of(compared, pairs)
    by_flow = [one for runs in several if (one := ranking(runs)) is not None and one.measure == FLOW]
    if by_flow:  # where tasks arrive over time, the run ends soon after the last one comes, whatever the order
        question, large = "Which order has the shortest flow times in", [_shortest(one) for one in by_flow]
        findings = [f"By makespan: {one}" for one in findings]
        findings = [f"{one.value} {one.text}" for one in large] + findings
    return RunsSection(
        id=id_,
        title=f"{question} {several[0].experiment}?",
        where="; ".join(_where(runs) for runs in several),
        large=large,
        headline=findings[0] if findings else "",
        findings=findings[len(large) :],
        cards=_cards(single) if single is not None else [],
        groups=[_compared(group, id_) for group in compared[:MOST_GROUPS]],
        repeated=any(group.repetitions > 1 for group in compared[:MOST_GROUPS]),
        note=f"{MOST_GROUPS} of {len(compared)} comparisons are drawn; runs.json has all." if cut else "",
        ranks=_ranks(several),
        pairs=_pairs(pairs, id_) if pairs else None,
        nodes=_nodes(single) if single is not None else [],
        events=events_table(everything),
        warnings=[warning for runs in several for warning in runs.warnings],
    )


def trace_section(trace: Trace, place: int, until_s: float | None = None, name: str = "") -> TraceSection:
    """Prepare the section of the trace at `place` (from 1)."""
    run = Run(trace.run)
    rows, exact = lane_rows(trace)
    shown = min(len(trace.nodes), MOST_LANES // 2)
    how = "Each bar is one activity" if exact else "Each bar is a stretch of time, the darker the busier"
    cut = f" The {shown} nodes of {len(trace.nodes):,} that computed most are shown."
    which = cut if shown < len(trace.nodes) else ""
    figure = Figure(
        f"trace-{place}-lanes",
        "What each node did when",
        f"Lanes of {shown} nodes over {number(run.makespan_s)} seconds, {len(rows)} marks.",
        lanes(trace, until_s=until_s),
    )
    return TraceSection(
        id=f"trace-{place}",
        title=f"What did each node do in {name or trace.header['experiment']}?",
        where=f"{_how(run)}, {ON[trace.header['on']]}; {trace.activities.num_rows:,} activities",
        large=_large_of_trace(run),
        text=f"{how}.{which}",
        lanes=figure,
        table=run.tables()[0],
        events=events_table([run]),
        warnings=run.warnings,
    )


def _large_of_trace(run: Run) -> list[Answer]:
    """Return how busy the nodes that got tasks were."""
    working = [node for node in run.nodes if node["tasks"]]
    if not working or not run.makespan_s > 0.0:
        return []
    busy = fmean(node["busy_s"] for node in working) / run.makespan_s
    nodes = f"{len(working):,} node{'' if len(working) == 1 else 's'} with tasks"
    return [Answer(percent(busy), f"of {number(run.makespan_s)} s was computing, on average of {nodes}.")]


def _traces(traces: Sequence[Trace], _: Contents) -> list[Section]:
    """Return the sections of all traces: on one axis of time, and with titles that tell them apart."""
    until_s = max((float(trace.run["makespan_s"]) for trace in traces), default=0.0)
    names = [str(trace.header["experiment"]) for trace in traces]
    telling = (
        [f"order {trace.run['order']}" for trace in traces],
        [ON[trace.header["on"]] for trace in traces],
        [str(place) for place in range(1, len(traces) + 1)],
    )
    for words in telling:
        names = [f"{name}, {word}" if names.count(name) > 1 else name for name, word in zip(names, words, strict=True)]
    return [
        trace_section(trace, place, until_s if len(traces) > 1 else None, name)
        for place, (trace, name) in enumerate(zip(traces, names, strict=True), 1)
    ]


def _is_compared(group: Group, pairs: Sequence[Pair]) -> bool:
    """Whether a group needs a figure of its own: real runs that were all predicted stand beside their predictions."""
    if group.on == "sim":
        return len(group.rows) > 1 or not set(group.points) <= {pair.point for pair in pairs}
    return not set(group.points) <= {pair.point for pair in pairs if pair.on == group.on}


def _ranks(several: Sequence[Runs[Run]]) -> list[Table]:
    """Return the ranks of the orders of each file of runs that has several, over all of its points and seeds."""
    found = [(runs, ranking(runs)) for runs in several]
    return [
        replace(table, caption=f"{table.caption}, {ON.get(runs.on, runs.on)}")
        for runs, one in found
        if one is not None and one.points * one.seeds > 1
        for table in one.tables()
    ]


def _nodes(run: Run) -> list[Table]:
    seen = seen_table(run.nodes)
    return [*run.tables(), *([seen] if seen else [])]


def _where(runs: Runs[Run]) -> str:
    computed = sorted({run.data["compute"] for run in runs} - {"simulated"})
    by = f" ({', '.join(computed)})" if computed else ""
    return f"{len(runs):,} run{'' if len(runs) == 1 else 's'} {ON[runs.on]}{by}"


def _how(run: Run) -> str:
    return f"order {run.data['order']}, {run.data['ports']} port, {run.data['compute']}"


def _headline(run: Run) -> str:
    share = f", {percent(run.of_bound)} of the {BOUND[run.data['ports']]}" if run.of_bound else ""
    tasks = f"{run.data['tasks']:,} tasks in {number(run.makespan_s)} s"
    return f"{tasks}: {number(run.throughput_tasks_per_s)} tasks/s{share} ({_how(run)})."


def _large(run: Run) -> Answer:
    share = f": {percent(run.of_bound)} of the {BOUND[run.data['ports']]}" if run.of_bound else ""
    tasks = f"{run.data['tasks']:,} tasks in {number(run.makespan_s)} s"
    return Answer(f"{number(run.throughput_tasks_per_s)} tasks/s", f"{tasks}{share}. {_how(run).capitalize()}.")


def _large_of(groups: Sequence[Group], pairs: Sequence[Pair]) -> list[Answer]:
    """Return for the first comparisons of orders which is fastest; without one, how well runs were predicted."""
    found = []
    for group in groups[:MOST_LARGE]:
        where = _place(group)
        if len(group.series) < 2:
            if (alone := _alone(group)) is None:
                break
            found.append(Answer(alone[0], f"{alone[1]} ({where})."))
            continue
        said = in_words(group.fastest, group.series)
        first = _named_first(group, said)
        rest = f"{_near(group, first)} ({_how_compared(group)})."
        if said.startswith(f"{first} was fastest"):
            found.append(Answer(first, f"{where}: {said.removeprefix(first).strip()}{rest}"))
        else:
            found.append(Answer("No single order", f"is fastest. {where}: {said}{rest}"))
    if not groups and pairs:
        found.append(Answer(_longer(pairs), f"is how much longer real runs took than predicted ({_of(pairs)})."))
    return found


def _shortest(found: Ranking) -> Answer:
    """Return which order has the shortest mean flow times, from a task's arrival to its end."""
    best, *others = found.rows
    tied = [str(row.value) for row in others if row.is_tied]
    points = f" at {best.best_at} of {found.points} points" if found.points > 1 else ""
    if tied:
        names = ", ".join([str(best.value), *tied])
        return Answer("No single order", f"has the shortest mean flow time: {names} are tied.")
    rest = f"; {others[0].value} is {others[0].difference} % longer" if others else ""
    return Answer(str(best.value), f"has the shortest mean flow time{points}{rest}.", tone="good")


def _cards(run: Run) -> list[Card]:
    cards = [
        Card("makespan", number(run.makespan_s), "s", "makespan"),
        Card("throughput", number(run.throughput_tasks_per_s), "tasks/s", "throughput"),
    ]
    if run.bound_tasks_per_s:
        cards.append(Card("bound", number(run.bound_tasks_per_s), f"tasks/s; {percent(run.of_bound)} reached", "bound"))
    if run.of_root_only:
        cards.append(Card("of root alone", number(run.of_root_only), "of its makespan", "root-only"))
    return cards


def _compared(group: Group, prefix: str) -> tuple[Figure, Table]:
    name = f"{group.on}: {group.name}" if group.name else group.on
    # What the root alone needs is 1 by definition, and would squeeze all else into a corner.
    others = [row for row in group.rows if row["series"] != "root-only"]
    shown = others if group.relative and others else group.rows
    figure = Figure(
        identifier(prefix, str(group.number), group.on, "makespan"),
        f"Makespan of each order, {name}",
        f"Dots of the makespan for {len(group.series)} orders at {len(group.applications)} points.",
        makespans(shown, group.title, group.relative),
    )
    return figure, order_table(group, f"Makespan of each order, {name}")


def _pairs(pairs: Sequence[Pair], prefix: str) -> tuple[Figure, Table]:
    shown = pairs[:MOST_PAIRS]
    rows = [
        {"name": pair.name, "planned": pair.planned_s, "predicted": pair.predicted_s, "run": pair.run_s}
        for pair in shown
    ]
    alt = f"The plan's bound, the predicted and the real makespan of {len(shown)} runs."
    figure = Figure(f"{prefix}-predicted", "Planned, predicted and run", alt, predicted_and_run(rows))
    return figure, pair_table(shown, len(pairs))


def _findings(groups: Sequence[Group]) -> list[str]:
    """Say for each comparison of orders which is fastest, and how near to the bound it comes."""
    found = []
    for group in groups[:MOST_GROUPS]:
        where = _place(group)
        if len(group.series) < 2:
            found += [f"{where}: {' '.join(alone)}."] if (alone := _alone(group)) else []
            continue
        said = in_words(group.fastest, group.series)
        found.append(f"{where}: {said} ({_how_compared(group)}){_near(group, _named_first(group, said))}.")
    return found


def _place(group: Group) -> str:
    return f"{DONE.get(group.on, group.on)}{', ' + group.name if group.name else ''}"


def _how_compared(group: Group) -> str:
    return "differences paired by seed, 95 %" if group.repetitions > 1 else "one run each"


def _named_first(group: Group, said: str) -> str:
    """Return the order that a sentence calls fastest first; where all are tied, the one tied at most points."""
    named, was, _ = said.partition(" was fastest")
    return named if was else max(group.series, key=lambda one: sum(one in each.orders for each in group.fastest))


def _near(group: Group, first: str) -> str:
    share = _of_bound(group, first)
    return f"; {first} reaches {percent(share)} of the bound on average" if share else ""


def _of_bound(group: Group, series: str) -> float | None:
    shares = [row["of_bound"] for row in group.rows if row["series"] == series and row["of_bound"]]
    return fmean(shares) if shares else None


def _alone(group: Group) -> tuple[str, str] | None:
    """Return the result of one order: a number, and the rest of the sentence."""
    shares = [row["of_bound"] for row in group.rows if row["of_bound"]]
    if len(group.rows) > 1:
        if len(shares) < len(group.rows):
            return None
        points = f"of the bound is what {group.series[0]} reaches at {len(shares)} points"
        return f"{percent(min(shares)).removesuffix(' %')} to {percent(max(shares))}", points
    row = group.rows[0]
    near = f", {percent(row['of_bound'])} of the bound" if row["of_bound"] else ""
    if group.relative:
        return percent(row["middle"]), f"of what the root alone needs is the makespan of {row['series']}{near}"
    return f"{number(row['middle'])} s", f"is the makespan of {row['series']}{near}"


def _agreement(pairs: Sequence[Pair]) -> list[str]:
    if not pairs:
        return []
    return [f"Real runs took {_longer(pairs)} longer than predicted ({_of(pairs)})."]


def _longer(pairs: Sequence[Pair]) -> str:
    """Return by how much real runs took longer than predicted, from the least to the most."""
    apart = [100 * pair.difference for pair in pairs]
    low, high = (f"{end:+.1f}".replace("-", "−") for end in (min(apart), max(apart)))
    return f"{low} %" if low == high else f"{low} to {high} %"


def _of(pairs: Sequence[Pair]) -> str:
    return f"{len(pairs)} pair{'' if len(pairs) == 1 else 's'}"


def _by_experiment(several: Sequence[Runs[Run]]) -> list[list[Runs[Run]]]:
    """Return the runs by experiment, so that what was predicted stands beside what was run."""
    gathered: dict[str, list[Runs[Run]]] = {}
    for runs in several:
        if len(runs):
            gathered.setdefault(runs.experiment, []).append(runs)
    return list(gathered.values())


RUNS = Kind(
    "file of runs",
    "files of runs",
    "runs.html.j2",
    lambda item: isinstance(item, Runs) and item.kind not in ("program", "streams"),
    grouped(_by_experiment, runs_section),
    {"runs": Runs.load},
    holds=lambda runs: [run.trace for run in runs if run.trace is not None],
)
TRACES = Kind("trace", "traces", "trace.html.j2", of_type(Trace), _traces, {"trace": Trace.load})
