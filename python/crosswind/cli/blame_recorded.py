"""`crosswind blame TRACE...`: a recorded program -> which rank is slow, and which ranks only wait for it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from crosswind.cli.console import number_of, print_json, print_text, tell

MOST_WAITING = 3
"""Ranks that wait, each printed with its time; the rest is summarised."""


def blame_of_traces(traces: Sequence[Path], json: bool) -> int:
    """Judge a recorded program, print the verdict, and return the exit code."""
    from crosswind.blame.recorded import blame_recorded

    found = blame_recorded(traces)
    if json:
        print_json(found.to_dict())
    else:
        for line in lines(found.data):
            print_text(line)
        for note in found.data["notes"]:
            tell(f"note: {note}")
    return found.exit_code


def lines(found: dict[str, Any]) -> list[str]:
    """Return the verdict for a terminal."""
    told = []
    if found["recorded_s"]:
        whole = f"{number_of(found['ranks'], 'rank')}, {number_of(found['steps'], 'step')}"
        told.append(f"{whole}; replayed {found['replayed_s']:.3f} s of {found['recorded_s']:.3f} s")
    if found["verdict"] == "unidentifiable":
        told.append(f"not identifiable: {found['reason']}")
    elif found["verdict"] == "none":
        told.append(found["reason"])
    for culprit in found["culprits"]:
        told += _culprit(culprit, found)
    if found["recorded_s"]:
        excess = f", of which {found['transfer_excess_s']:.3f} s slower than usual"
        told.append(
            f"all ranks as the median of them: {found['uneven_s']:.3f} s less; "
            f"transfers {found['transfers_s']:.3f} s{excess}"
        )
        parts = found["efficiencies"]
        told.append(
            f"parallel efficiency {parts['parallel']:.1%} = load balance {parts['load_balance']:.1%} x "
            f"serialisation {parts['serialisation']:.1%} x transfer {parts['transfer']:.1%}"
        )
        told.append(_clocks(found["clocks"]))
    if following := _next(found):
        told.append(f"next: {following}")
    return told


def _culprit(culprit: dict[str, Any], found: dict[str, Any]) -> list[str]:
    ranks = culprit["ranks"]
    low, high = culprit["ci95"]
    cost = f"{culprit['seconds']:.3f} s"
    steps = f"in {culprit['steps']} of {number_of(found['steps'], 'step')}"
    told = []
    if len(ranks) == 1:
        told.append(
            f"rank {ranks[0]} costs {cost} of {found['recorded_s']:.3f} s ({low:.3f} to {high:.3f}, 95 %), {steps}"
        )
    else:
        alone = " or ".join(f"{seconds:.3f} s" for seconds in culprit["alone_s"])
        told.append(
            f"ranks {' and '.join(map(str, ranks))} cost {cost} together ({low:.3f} to {high:.3f}, 95 %), {steps}"
        )
        told.append(f"  they hide each other: without one of them the program saves only {alone}")
    for place in culprit["where"]:
        of = f"rank {place['rank']}: " if len(ranks) > 1 else ""
        than = "its own other steps" if culprit["against_itself"] else "its peers"
        told.append(f"  {of}{place['excess_s']:.3f} s longer than {than} {place['place']}")
    if causes := culprit["causes"]:
        told.append("  " + "; ".join(f"{cause['name']}: {cause['seconds']:.3f} s" for cause in causes))
    waits = {int(rank): seconds for rank, seconds in found["waits"].items() if int(rank) not in ranks}
    if waits:
        told.append("  waiting: " + _waiting(waits))
    return told


def _waiting(waits: dict[int, float]) -> str:
    order = sorted(waits, key=lambda rank: -waits[rank])
    named = [f"rank {rank} {waits[rank]:.3f} s" for rank in order[:MOST_WAITING]]
    if rest := order[MOST_WAITING:]:
        named.append(f"{number_of(len(rest), 'other')} {waits[rest[-1]]:.3f} to {waits[rest[0]]:.3f} s")
    return ", ".join(named)


def _clocks(clocks: dict[str, Any]) -> str:
    known = clocks["known_to_s"]
    drift = f", drifting by {clocks['drift_ppm']:.1f} ppm" if clocks["drift_ppm"] else ""
    bound = "not bounded by the events" if known is None else f"known to {1e3 * known:.3f} ms"
    return f"clocks: at most {1e3 * clocks['apart_s']:.3f} ms apart ({bound}){drift}"


def _next(found: dict[str, Any]) -> str:
    if found["verdict"] == "straggler":
        ranks = sorted(rank for culprit in found["culprits"] for rank in culprit["ranks"])
        hosts = (
            f"the host of rank {ranks[0]}" if len(ranks) == 1 else f"the hosts of ranks {', '.join(map(str, ranks))}"
        )
        return f"crosswind check, on {hosts}"
    if found["verdict"] == "unidentifiable" and found["transfer_excess_s"] > found["uneven_s"]:
        return "crosswind check --on HOSTS, which compares hosts and links"
    return ""
