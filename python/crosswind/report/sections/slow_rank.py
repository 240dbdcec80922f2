"""The section about recorded ranks: which one is slow, what it costs, and which ranks only wait for it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from crosswind.blame.recorded import RecordedBlame
from crosswind.documents import Row
from crosswind.errors import Notice
from crosswind.report.figures.figure import Figure
from crosswind.report.figures.ranks import CALLS, COMPUTES, DOING, causes, ranks_over_time, savings, waits_by_step
from crosswind.report.sections.blame import listed
from crosswind.report.sections.measurement import Card
from crosswind.report.sections.section import Answer, Kind, Term, each, of_type
from crosswind.report.words import number, number_range, percent, shortened, with_half
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    from crosswind.documents.blame import Culprit, RecordedBlameDocument

MOST_ROWS = 50
WORDS = {"compute": COMPUTES, "call": CALLS}

TERMS = (
    Term(
        "replay",
        "replay",
        "The recording as a program of computing, arriving and waiting, run again in virtual time. A rank's cost is "
        "how much sooner the replay ends with that rank as fast as its peers at the same place of the same step.",
    ),
    Term(
        "caused-wait",
        "cause of a wait",
        "The rank whose lateness against its peers makes up at least half of the wait. It need not be the rank that "
        "arrives last, which may itself have waited.",
    ),
    Term(
        "efficiency",
        "parallel efficiency",
        "Mean computing of a rank as a share of the run: load balance (mean over greatest computing) times "
        "serialisation (greatest computing over the run without transfers) times transfer (that over the run).",
    ),
    Term(
        "interval-ranks",
        "95 % interval of a rank's cost",
        "Over many plausible splits of the rank's times into noise and excess, each replayed.",
    ),
)


@dataclass(frozen=True)
class SlowRankSection:
    """Which recorded rank is slow."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    cards: list[Card]
    lanes: Figure | None
    shown: str
    strip: Figure | None
    savings: Figure | None
    tables: list[Table]
    warnings: list[Notice]
    terms: Sequence[Term] = TERMS

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [figure for figure in (self.lanes, self.strip, self.savings) if figure]


def slow_rank_section(found: RecordedBlame, place: int) -> SlowRankSection:
    """Prepare the section of a verdict at `place` (from 1)."""
    data, prefix = found.data, f"slow-rank-{place}"
    colours = _colours(found)
    return SlowRankSection(
        id=prefix,
        title=f"Which rank{_name(found.traces)} is slow?",
        where=f"{data['ranks']:,} ranks, {data['steps']:,} steps; replayed {number(data['replayed_s'], 4)} of "
        f"{number(data['recorded_s'], 4)} s recorded",
        large=_answers(data),
        headline=_headline(data),
        cards=_cards(data),
        lanes=_lanes(found, prefix, colours),
        shown=_shown(found),
        strip=_strip(found, prefix, colours),
        savings=_savings(data, prefix),
        tables=_tables(found),
        warnings=[{"code": "recording", "message": note, "hint": ""} for note in data["notes"]],
    )


def _name(traces: Sequence[str]) -> str:
    if not traces:
        return ""
    more = f" and {len(traces) - 1} more" if len(traces) > 1 else ""
    return f" of {shortened(traces[0], 40)}{more}"


def _ranks(ranks: Sequence[int]) -> str:
    return f"rank {ranks[0]}" if len(ranks) == 1 else f"ranks {listed([str(rank) for rank in ranks])}"


def _of_run(data: RecordedBlameDocument, seconds: float) -> float | None:
    return seconds / data["recorded_s"] if data["recorded_s"] else None


def _headline(data: RecordedBlameDocument) -> str:
    if data["verdict"] == "unidentifiable":
        return f"Not identifiable: {data['reason']}."
    if data["verdict"] == "none":
        return f"{data['reason'][:1].upper()}{data['reason'][1:]}."
    return " ".join(_costs(one, data) for one in data["culprits"])


def _answers(data: RecordedBlameDocument) -> list[Answer]:
    """Return the ranks that stand out in large type; none where the verdict is a sentence."""
    found = []
    for one in data["culprits"]:
        low, high = one["ci95"]
        _, _, said = _costs(one, data, interval=False).partition(" of the run")
        whole_s = data["recorded_s"] / 100.0
        value, half = with_half(one["seconds"] / whole_s, 0.5 * (high - low) / whole_s, " %")
        ranks = _ranks(one["ranks"])
        text = f"of the run is the cost of {ranks}{said}"
        found.append(Answer(value, text, half, "poor"))
    return found


def _costs(one: Culprit, data: RecordedBlameDocument, interval: bool = True) -> str:
    low, high = one["ci95"]
    costs, together = ("costs", "") if len(one["ranks"]) == 1 else ("cost", " together")
    between = f" (95 %: {number_range(low, high)})" if interval else ""
    said = (
        f"{_ranks(one['ranks']).capitalize()} {costs} {percent(_of_run(data, one['seconds']))} of the run{together}: "
        f"{number(one['seconds'])} s of {number(data['recorded_s'], 4)} s{between}."
    )
    if len(one["ranks"]) > 1:
        said += " They hide each other: without one of them alone the run saves little."
    return said


def _cards(data: RecordedBlameDocument) -> list[Card]:
    cards = []
    for one in data["culprits"][:2]:
        cards.append(Card(f"{_ranks(one['ranks'])} slow in", f"{one['steps']:,}", f"of {data['steps']:,} steps"))
        if one["causes"]:
            cause = one["causes"][0]
            cards.append(Card(cause["name"], f"{number(cause['seconds'])} s", "of its cost"))
    waits = {rank: waited for rank, waited in data["waits"].items() if not _is_culprit(data, rank)}
    if waits:
        most = max(waits, key=lambda rank: waits[rank])
        cards.append(Card("waits longest", f"rank {most}", f"{number(waits[most])} s"))
    if data["recorded_s"]:
        parallel = data["efficiencies"]["parallel"]
        cards.append(Card("parallel efficiency", percent(parallel), "useful computing", "efficiency"))
    return cards


def _is_culprit(data: RecordedBlameDocument, rank: str) -> bool:
    return any(int(rank) in one["ranks"] for one in data["culprits"])


def _colours(found: RecordedBlame) -> dict[str, tuple[str, str]]:
    """Return the word and colour of each cause, the ranks that stand out first."""
    named = list(found.timeline["steps"]["waited_s"]) if found.timeline else []
    return causes(sorted(named, key=lambda name: (not (name.isdigit() and _is_culprit(found.data, name)), name)))


def _lanes(found: RecordedBlame, prefix: str, colours: dict[str, tuple[str, str]]) -> Figure | None:
    timeline = found.timeline
    if not timeline:
        return None
    spans = timeline["spans"]
    rows = [
        {
            "rank": f"rank {rank}",
            "what": WORDS.get(doing) or _cause(cause, colours),
            "from": start,
            "to": end,
            "step": step,
            "operation": operation or "",
            "waits_for": "" if last is None else f"rank {last}",
        }
        for rank, doing, cause, start, end, step, operation, last in zip(
            *(
                spans[name]
                for name in ("rank", "doing", "caused_by", "start_s", "end_s", "step", "operation", "waits_for")
            ),
            strict=True,
        )
    ]
    if not rows:
        return None
    alt = (
        f"A bar for each of {len(timeline['ranks'])} ranks over time: computing, calls, and waits in the colour of the "
        "rank that causes them."
    )
    palette = {**DOING, **dict(colours.values())}
    return Figure(f"{prefix}-time", "Ranks over time", alt, ranks_over_time(rows, palette))


def _cause(cause: int | None, colours: dict[str, tuple[str, str]]) -> str:
    name = "none" if cause is None else str(cause)
    return colours.get(name, colours["other"])[0]


def _shown(found: RecordedBlame) -> str:
    """Say which steps and ranks the figure shows, and why these."""
    timeline = found.timeline
    if not timeline:
        return ""
    first, last, steps = timeline["first_step"], timeline["last_step"], found.data["steps"]
    whose = " for the ranks that stand out" if found.data["culprits"] else ""
    if last - first + 1 >= steps:
        said = f"All {steps} steps." if steps > 1 else "The whole recording."
    else:
        which = f"Step {first}" if first == last else f"Steps {first} to {last}"
        said = f"{which} of {steps:,}, in which the ranks wait longest{whose}."
    if len(timeline["ranks"]) < found.data["ranks"]:
        said += f" {len(timeline['ranks'])} of {found.data['ranks']:,} ranks: those that stand out or wait longest."
    if timeline["left_out"]:
        said += f" {timeline['left_out']:,} shorter spans are left out."
    return said


def _strip(found: RecordedBlame, prefix: str, colours: dict[str, tuple[str, str]]) -> Figure | None:
    timeline = found.timeline
    if not timeline or found.data["steps"] < 2:
        return None
    strip = timeline["steps"]
    rows, lengths = [], []
    order = [name for name in colours if name in strip["waited_s"]]
    for at, (first, count, length) in enumerate(zip(strip["first"], strip["count"], strip["length_s"], strict=True)):
        ends = {"from": first - 0.5, "to": first + count - 0.5}
        lengths.append({**ends, "length": 1e3 * length})
        low = 0.0
        for name in order:
            waited = 1e3 * strip["waited_s"][name][at]
            if waited > 0:
                rows.append({**ends, "what": colours[name][0], "low": low, "high": low + waited})
                low += waited
    alt = f"For each of {found.data['steps']} steps its length, and the time that ranks wait in it, by cause."
    palette = {colours[name][0]: colours[name][1] for name in order}
    return Figure(f"{prefix}-steps", "Waits in each step", alt, waits_by_step(rows, lengths, palette))


def _savings(data: RecordedBlameDocument, prefix: str) -> Figure | None:
    run = data["recorded_s"]
    if not run:
        return None

    def row(name: str, seconds: float, low: float, high: float) -> Row:
        return {"name": name, "saved": seconds / run, "low": low / run, "high": high / run}

    rows = [row(f"{_ranks(one['ranks'])} as fast as peers", one["seconds"], *one["ci95"]) for one in data["culprits"]]
    rows += [
        row(name, seconds, seconds, seconds)
        for name, seconds in (
            ("all ranks as their median", data["uneven_s"]),
            ("transfers as usual", data["transfer_excess_s"]),
            ("no transfers", data["transfers_s"]),
        )
    ]
    alt = f"Bars of how much sooner the run would end in {len(rows)} cases."
    return Figure(f"{prefix}-savings", "How much sooner the run would end", alt, savings(rows))


def _tables(found: RecordedBlame) -> list[Table]:
    data = found.data
    places = [
        [_ranks([place["rank"]]), place["place"], number(place["excess_s"])]
        for one in data["culprits"]
        for place in one["where"]
    ]
    happened = [
        [
            _ranks(one["ranks"]),
            cause["name"],
            number(cause["seconds"]),
            number_range(cause["ci95"][0], cause["ci95"][1]),
        ]
        for one in data["culprits"]
        for cause in one["causes"]
    ]
    order = sorted(data["waits"], key=lambda rank: -data["waits"][rank])
    waits = [
        [f"rank {rank}", number(data["waits"][rank]), percent(_of_run(data, data["waits"][rank]))] for rank in order
    ]
    rest = f"The {MOST_ROWS} of {len(waits):,} ranks that wait longest." if len(waits) > MOST_ROWS else ""
    efficiencies: Mapping[str, Any] = data["efficiencies"]
    parts = [[name.replace("_", " "), percent(value)] for name, value in efficiencies.items()]
    who, seconds = Column("rank", numeric=False), Column("longer than peers", "s")
    tables = [
        Table("Where in the step the time is lost", [who, Column("place", numeric=False), seconds], places),
        Table(
            "What a slow rank did meanwhile",
            [who, Column("", numeric=False), Column("costs", "s"), Column("95 %", "s", "interval-ranks")],
            happened,
        ),
        Table(
            "How long each rank waits",
            [who, Column("waits", "s"), Column("waits", "of the run")],
            waits[:MOST_ROWS],
            rest,
        ),
        Table("Efficiencies", [Column("efficiency", numeric=False, term="efficiency"), Column("share")], parts),
    ]
    return [table for table in tables if table.rows and data["recorded_s"]]


STRAGGLERS = Kind(
    "verdict on recorded ranks",
    "verdicts on recorded ranks",
    "slow_rank.html.j2",
    of_type(RecordedBlame),
    each(slow_rank_section),
    {"recorded-blame": RecordedBlame.load},
)
