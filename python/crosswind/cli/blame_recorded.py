"""`crosswind blame TRACE...`: a recorded program -> which rank is slow, and which ranks only wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.cli.answer import Answer, Section, show
from crosswind.cli.console import number_of
from crosswind.cli.outputs import writable, written
from crosswind.errors import warning
from crosswind.files.output import distinct
from crosswind.statistics.digits import half_of, plain, with_half

if TYPE_CHECKING:
    from crosswind.documents.blame import Culprit, RecordedBlameDocument

SCHEDULED = "the times are those of the schedule, not measured ones, and its network costs nothing here"
"""Note of a GOAL schedule."""
MOST_CULPRITS = 3
"""Slow ranks, or groups of them, each with a sentence; the rest is summarised."""
MOST_WAITING = 3
"""Ranks that wait, each printed with its time; the rest is summarised."""


def blame_of_traces(traces: Sequence[Path], out: Path | None, perfetto: Path | None, force: bool, json: bool) -> int:
    """Judge a recorded program, print the verdict, write the files, and return the exit code."""
    from crosswind.blame.recorded import blame_recorded

    distinct({"--out": out, "--perfetto": perfetto})
    writable(out, "recorded-blame", inputs=traces, force=force)
    writable(perfetto, "perfetto", "--perfetto", inputs=traces, force=force)
    found = blame_recorded(traces, timeline=out is not None, perfetto=perfetto)
    if out:
        found.save(out)
    notes = [warning("recording", note, "") for note in found.data["notes"]]
    show(
        None if json else answer_of(found.data),
        warnings=notes,
        wrote=[*written(out), *written(perfetto)],
        document=found.to_dict() if json else None,
    )
    return found.exit_code


def answer_of(found: RecordedBlameDocument) -> Answer:
    """Return which rank is slow and what that costs, then where it loses the time, and which ranks wait for it."""
    culprits = found["culprits"]
    if culprits:
        lines = [_sentence(culprit, found) for culprit in culprits[:MOST_CULPRITS]]
        if len(culprits) > MOST_CULPRITS:
            lines.append(f"{len(culprits) - MOST_CULPRITS} more cost less each: --json")
    elif found["verdict"] == "unidentifiable":
        lines = [f"Not identifiable: {found['reason']}."]
    else:
        lines = [f"{found['reason'][:1].upper()}{found['reason'][1:]}."]
    if following := _next(found):
        lines.append(f"Next: {following}.")
    rows = [row for culprit in culprits[:MOST_CULPRITS] for row in _where(culprit)]
    tables = [Section([("rank", "left"), ("seconds", "right"), ("", "left")], rows, first=("seconds", ""))]
    tables = tables if rows else []
    waits = _waits_for(culprits, found)
    notes = [f"Waiting: {_waiting(waits)}"] if waits else []
    details = [_details(found)] if found["recorded_s"] else []
    rest = "The replay, efficiencies, clocks" if details else ""
    return Answer(lines, tables, notes, wide=[*tables, *details], rest=rest)


def _sentence(culprit: Culprit, found: RecordedBlameDocument) -> str:
    ranks, whole = culprit["ranks"], found["recorded_s"]
    cost = with_half(culprit["seconds"], half_of(culprit["seconds"], culprit["ci95"]), " s")
    share = f" ({plain(100 * culprit['seconds'] / whole, 2)} %)" if whole else ""
    of = f"{cost} of {plain(whole)} s{share}, in {culprit['steps']} of {number_of(found['steps'], 'step')}"
    if len(ranks) == 1:
        return f"Rank {ranks[0]} costs {of}."
    alone = " or ".join(f"{plain(seconds)} s" for seconds in culprit["alone_s"])
    line = f"Ranks {' and '.join(map(str, ranks))} cost {of}, together."
    return f"{line} They hide each other: without one of them the program saves only {alone}."


def _where(culprit: Culprit) -> list[list[str]]:
    """Return a row for each place at which time is lost, and for each cause."""
    than = "its own other steps" if culprit["against_itself"] else "its peers"
    rows = [
        [str(place["rank"]), plain(place["excess_s"]), f"longer than {than} {place['place']}"]
        for place in culprit["where"]
    ]
    name = " and ".join(map(str, culprit["ranks"]))
    return rows + [[name, plain(cause["seconds"]), cause["name"]] for cause in culprit["causes"]]


def _waits_for(culprits: Sequence[Culprit], found: RecordedBlameDocument) -> dict[int, float]:
    """Return how long each rank waits that is not named; nothing where none is."""
    named = {rank for culprit in culprits for rank in culprit["ranks"]}
    return {int(rank): seconds for rank, seconds in found["waits"].items() if named and int(rank) not in named}


def _waiting(waits: dict[int, float]) -> str:
    order = sorted(waits, key=lambda rank: -waits[rank])
    named = [f"rank {rank} {plain(waits[rank])} s" for rank in order[:MOST_WAITING]]
    if rest := order[MOST_WAITING:]:
        least, most = plain(waits[rest[-1]]), plain(waits[rest[0]])
        named.append(f"{number_of(len(rest), 'other')} {least} to {most} s")
    return ", ".join(named)


def _details(found: RecordedBlameDocument) -> Section:
    """Return what the verdict rests on: the replay, what is uneven, where the time goes, the clocks."""
    parts, clocks = found["efficiencies"], found["clocks"]
    known = clocks["known_to_s"]
    bound = "not bounded by the events" if known is None else f"known to {1e3 * known:.3f} ms"
    drift = f", drifting by {clocks['drift_ppm']:.1f} ppm" if clocks["drift_ppm"] else ""
    rows = [
        ["recorded", f"{number_of(found['ranks'], 'rank')}, {number_of(found['steps'], 'step')}"],
        ["replayed", f"{found['replayed_s']:.3f} s of {found['recorded_s']:.3f} s"],
        ["all ranks as their median", f"{found['uneven_s']:.3f} s less"],
        ["transfers", f"{found['transfers_s']:.3f} s, {found['transfer_excess_s']:.3f} s of it slower than usual"],
        ["parallel efficiency", f"{parts['parallel']:.1%}, the product of the next three"],
        ["load balance", f"{parts['load_balance']:.1%}"],
        ["serialisation", f"{parts['serialisation']:.1%}"],
        ["transfer", f"{parts['transfer']:.1%}"],
        ["clocks", f"at most {1e3 * clocks['apart_s']:.3f} ms apart ({bound}){drift}"],
    ]
    return Section([("", "left"), ("", "left")], rows)


def _next(found: RecordedBlameDocument) -> str:
    if SCHEDULED in found["notes"]:
        return ""  # no host ran it
    if found["verdict"] == "straggler":
        ranks = sorted(rank for culprit in found["culprits"] for rank in culprit["ranks"])
        hosts = (
            f"the host of rank {ranks[0]}" if len(ranks) == 1 else f"the hosts of ranks {', '.join(map(str, ranks))}"
        )
        return f"crosswind check, on {hosts}"
    if found["verdict"] == "unidentifiable" and found["transfer_excess_s"] > found["uneven_s"]:
        return "crosswind check --on HOSTS, which compares hosts and links"
    return ""
