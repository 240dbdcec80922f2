"""The section about runs of streams: each stream alone, through one queue and through two, beside the closed form."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosswind.documents import Params, Row
from crosswind.errors import Notice
from crosswind.report.comparisons import shown_value
from crosswind.report.figures.axes import axes
from crosswind.report.figures.figure import Figure, identifier
from crosswind.report.figures.queues import latencies_by_queue, slowdowns_by_queue
from crosswind.report.sections.section import Answer, Kind, Term, grouped
from crosswind.report.words import number, number_range, with_half
from crosswind.run.results import Runs, StreamsRun
from crosswind.statistics.interval import span
from crosswind.tables import Column, Table
from crosswind.terminal.sizes import size

MOST_FIGURES = 8
MOST_ROWS = 200
MOST_STREAMS = 7
WHICH = {"sim": "simulated", "local": "run"}
WHERE = {"sim": "in virtual time", "local": "through the live filter on one machine"}
ONE, TWO, FORM = "one queue", "two queues", "closed form, one queue"
_HOWS = {"alone": "alone", "fifo": ONE, "queued": TWO}


TERMS = (
    Term(
        "t-alone",
        "alone (T1)",
        "From the start until the last timed message of a stream had arrived, with nothing else on the network.",
    ),
    Term(
        "one-queue",
        "one queue (T2)",
        "The same beside all other streams, every network interface serving its frames in the order in which "
        "they came. The path is the one that two queues take, so that its own cost is in both.",
    ),
    Term(
        "two-queues",
        "two queues (T3)",
        "The same with a queue for each class, parallel and local, served as the policy says: the threshold is "
        "parallel frames or bytes to one of local while both wait. A queue that has the link to itself gets all of it.",
    ),
    Term(
        "queue-form",
        "closed form of one queue",
        "1 + the link's time of all messages of others that may stand before one, over the message's own "
        "cycle: an upper bound, reached by a backlogged stream where nothing but the shared link counts (1 + "
        "L local / L test). Where two streams from different hosts meet only at their receiver, a form that "
        "is right there to 10 %.",
    ),
)


@dataclass(frozen=True)
class Spot:
    """All runs of one point, of one stream or job: means, and the ends over the seeds."""

    name: str
    what: str
    parallel: bool
    which: str
    params: Params
    seeds: int
    alone_s: float
    fifo: tuple[float, float, float]
    queued: tuple[float, float, float]
    form: float | None
    latency: dict[str, dict[str, float]] | None

    @property
    def point(self) -> str:
        """What the sweep set, in words."""
        return ", ".join(f"{_word(path)} {_shown(path, value)}" for path, value in self.params.items())


@dataclass(frozen=True)
class StreamedSection:
    """All runs of one experiment of kind streams, wherever they ran."""

    id: str
    title: str
    where: str
    large: list[Answer]
    headline: str
    findings: list[str]
    curves: list[Figure]
    latencies: Figure | None
    table: Table
    warnings: list[Notice]

    @property
    def figures(self) -> list[Figure]:
        """Every figure of the section."""
        return [*self.curves, *([self.latencies] if self.latencies else [])]

    @property
    def terms(self) -> Sequence[Term]:
        """The terms that it links to."""
        return TERMS


def streamed_section(several: Sequence[Runs[StreamsRun]], place: int) -> StreamedSection:
    """Prepare the section of the runs of one experiment at `place` (from 1)."""
    id_ = f"streams-{place}"
    spots = [spot for runs in several for alike in runs.by_point() for spot in _spots(alike, runs.on)]
    first = several[0][0]
    count = "; ".join(
        f"{len(runs):,} run{'' if len(runs) == 1 else 's'} {WHERE.get(runs.on, runs.on)}" for runs in several
    )
    findings = _findings(spots)
    return StreamedSection(
        id=id_,
        title=f"How long do messages of {several[0].experiment} take?",
        where=f"{first.data['hosts']} hosts on one switch; {count}",
        large=_answers(spots),
        headline=findings[0] if findings else "",
        findings=findings if len(findings) > 1 else [],
        curves=_curves(spots, id_),
        latencies=_latencies(spots, id_),
        table=_table(spots),
        warnings=[warning for runs in several for warning in runs.warnings],
    )


def by_experiment(streams: Sequence[Runs[StreamsRun]]) -> list[list[Runs[StreamsRun]]]:
    """Return the runs by experiment, so that what was simulated stands beside what was run."""
    gathered: dict[str, list[Runs[StreamsRun]]] = {}
    for runs in streams:
        if len(runs):
            gathered.setdefault(json.dumps(runs.experiment), []).append(runs)
    return list(gathered.values())


def _spots(alike: Sequence[StreamsRun], on: str) -> list[Spot]:
    rows: dict[tuple[str, str], list[Row]] = {}
    for run in alike:
        for row in run.rows():
            rows.setdefault((row["what"], row["name"]), []).append(row)
    params = {path: value for path, value in alike[0].params.items() if path != "seed"}
    found = []
    for (what, name), same in rows.items():
        forms = [row["form_fifo"] for row in same if row["form_fifo"] is not None]
        found.append(
            Spot(
                name=name,
                what=what,
                parallel=same[0]["class"] == "parallel",
                which=WHICH.get(on, on),
                params=params,
                seeds=len(same),
                alone_s=fmean(row["alone_s"] for row in same),
                fifo=span([row["slowdown_fifo"] for row in same]),
                queued=span([row["slowdown_queued"] for row in same]),
                form=fmean(forms) if forms else None,
                latency=None if what == "job" else _mean_latency(same),
            )
        )
    return found


def _mean_latency(rows: Sequence[Row]) -> dict[str, dict[str, float]]:
    return {
        how: {part: fmean(row[f"latency_{how}_{part}_s"] for row in rows) for part in ("p50", "p99")} for how in _HOWS
    }


def _word(path: str) -> str:
    """Return the words of a dotted path: its place in a list stays, its unit goes."""
    word = path.rsplit(".", maxsplit=1)[-1]
    if word == "message_bytes":
        return "message length"
    for unit in ("_mb_per_s", "_s"):
        word = word.removesuffix(unit)
    return word.replace("_", " ") or path


def _shown(path: str, value: Any) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (int, float)) and path.rsplit(".", maxsplit=1)[-1].endswith("_bytes"):
        return size(int(value))
    if isinstance(value, (dict, list)):
        return json.dumps(value)
    return shown_value(value)


def _findings(spots: Sequence[Spot]) -> list[str]:
    found = []
    for key in list(dict.fromkeys((spot.which, spot.name, spot.what) for spot in spots))[:MOST_STREAMS]:
        shown = [spot for spot in spots if (spot.which, spot.name, spot.what) == key]
        worst = max(shown, key=lambda spot: spot.fifo[0])
        at = f" ({worst.point})" if len(shown) > 1 and worst.params else ""
        times = worst.fifo[0] / worst.queued[0]
        words = (
            f"{number(times)} times less"
            if times >= 1.005
            else f"{number(1.0 / times)} times as much"
            if times <= 0.995
            else "the same"
        )
        real = "" if worst.which == "simulated" else " for real"
        found.append(
            f"{worst.name} takes {number(worst.fifo[0])} times as long as alone{real} when it shares one queue{at}, "
            f"{number(worst.queued[0])} times with two: {words}."
        )
    return found


def _answers(spots: Sequence[Spot]) -> list[Answer]:
    """Return in large type what one queue and two make of the stream that gains most by the second."""
    if not spots:
        return []
    most = max(spots, key=lambda spot: spot.fifo[0] / spot.queued[0])
    at = f" ({most.point})" if most.params else ""
    one = f"times as long as alone: {most.name} behind all others in {ONE}{at}."
    two = f"times as long as alone: {most.name} with {TWO}."
    tone = "good" if most.queued[0] < most.fifo[0] else ""
    return [_answer(most.fifo, one), _answer(most.queued, two, tone)]


def _answer(ends: tuple[float, float, float], text: str, tone: str = "") -> Answer:
    mean, low, high = ends
    value, half = with_half(mean, 0.5 * (high - low))
    return Answer(value, text, half, tone)


def _curves(spots: Sequence[Spot], prefix: str) -> list[Figure]:
    """Draw slowdowns along the axis of what varies; what else varies makes another figure each."""
    varied = axes(spot.params for spot in spots)
    if varied is None:
        return []
    x, others = varied.x, varied.others
    streams = list(dict.fromkeys(spot.name for spot in spots if spot.what == "stream"))
    keys = [json.dumps([spot.params.get(path) for path in others]) for spot in spots]
    drawn = []
    for place, key in enumerate(list(dict.fromkeys(keys))[:MOST_FIGURES], 1):
        shown = [spot for spot, its in zip(spots, keys, strict=True) if its == key]
        names = list(dict.fromkeys(spot.name for spot in shown))[:MOST_STREAMS]
        shown = [spot for spot in shown if spot.name in names]
        rows = [row for spot in shown for row in _points(spot, x)]
        title = _axis(x, streams)
        where = ", ".join(f"{_word(path)} {_shown(path, shown[0].params.get(path))}" for path in others)
        drawn.append(
            Figure(
                identifier(prefix, "slowdown", str(place)),
                f"Slowdown against {title}, with one queue and with two{f' ({where})' if where else ''}",
                f"Slowdowns of {', '.join(names)} over {len(varied.values)} values of {title}: dashed with one queue, "
                "solid with two, dotted the closed form of one.",
                slowdowns_by_queue(rows, title),
            )
        )
    return drawn


def _points(spot: Spot, x: str) -> list[Row]:
    common = {"value": _shown(x, spot.params.get(x)), "stream": spot.name, "which": spot.which}
    rows = [
        {**common, "queue": queue, "middle": span[0], "low": span[1], "high": span[2]}
        for queue, span in ((ONE, spot.fifo), (TWO, spot.queued))
    ]
    if spot.form is not None and spot.which == "simulated":
        rows.append({**common, "queue": FORM, "middle": spot.form, "low": spot.form, "high": spot.form})
    return rows


def _axis(path: str, names: Sequence[str]) -> str:
    """Return what stands below the axis of a path: with its unit, and whose stream it is."""
    unit = next((unit for end, unit in (("_mb_per_s", "MB/s"), ("_s", "s")) if path.endswith(end)), "")
    found = re.match(r"workload\.stream\[(\d+)\]", path)
    whose = f" of {names[int(found[1])]}" if found and int(found[1]) < len(names) else ""
    return f"{_word(path)}{whose}{f', {unit}' if unit else ''}"


def _latencies(spots: Sequence[Spot], prefix: str) -> Figure | None:
    """Draw latencies where there is one point only: with many, the table has them."""
    chosen = [spot for spot in spots if spot.latency is not None][: 2 * MOST_STREAMS]
    if not chosen or len({spot.point for spot in spots}) > 1:
        return None
    places = len({spot.which for spot in chosen}) > 1
    rows: list[Row] = [
        {"name": f"{spot.name}, {spot.which}" if places else spot.name, "how": word, **(spot.latency or {})[how]}
        for spot in chosen
        for how, word in _HOWS.items()
    ]
    rows = [row for row in rows if row["p50"] > 0]
    if not rows:
        return None
    title = "How late messages are, alone, in one queue and in two"
    alt = "Dots at the median latency of each stream, bars up to the 99th percentile."
    return Figure(f"{prefix}-latency", title, alt, latencies_by_queue(rows))


def _table(spots: Sequence[Spot]) -> Table:
    points = any(spot.params for spot in spots)
    places = len({spot.which for spot in spots}) > 1
    columns = [
        Column("stream", numeric=False),
        Column("class", numeric=False),
        *([Column("point", numeric=False)] if points else []),
        *([Column("", numeric=False)] if places else []),
        Column("seeds"),
        Column("alone", "s", "t-alone"),
        Column("one queue", "times", "one-queue"),
        Column("over the seeds"),
        Column("closed form", "times", "queue-form"),
        Column("two queues", "times", "two-queues"),
        Column("over the seeds"),
        Column("p99 alone", "s"),
        Column("one queue", "s"),
        Column("two queues", "s"),
    ]
    rows = [
        [
            spot.name,
            "job" if spot.what == "job" else "parallel" if spot.parallel else "local",
            *([spot.point] if points else []),
            *([spot.which] if places else []),
            str(spot.seeds),
            number(spot.alone_s, 4),
            number(spot.fifo[0], 4),
            number_range(*spot.fifo[1:], 4) if spot.seeds > 1 else "–",
            number(spot.form, 4),
            number(spot.queued[0], 4),
            number_range(*spot.queued[1:], 4) if spot.seeds > 1 else "–",
            *(number(spot.latency[how]["p99"] if spot.latency else None) for how in _HOWS),
        ]
        for spot in spots[:MOST_ROWS]
    ]
    cut = len(spots) > len(rows)
    note = f"The first {len(rows)} of {len(spots)} rows are shown; runs.json has all." if cut else ""
    return Table("Times of each stream", columns, rows, note)


STREAMS = Kind(
    "file of runs of streams",
    "files of runs of streams",
    "streams.html.j2",
    lambda item: isinstance(item, Runs) and item.kind == "streams",
    grouped(by_experiment, streamed_section),
)
