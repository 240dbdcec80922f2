"""Claims about `crosswind overlap` on this machine, beside programs that compute on all its processors.

1. Polling costs messages and computation together more than waiting for events does.
2. The computation at nice 19 instead of 0 delays messages less; at nice -20 it is hardly faster (at most 2 %), which
   quadrics-overlap found (F-2). What is not permitted here is left out.
3. The simulator's matrix (fair shares) with this machine's rate of messages gives the same words.

The matrix: waiting for events, polling, spin-then-block; nice -20, 0, 19; one message, some hundreds, some long ones.
About four minutes; the machine has to be quiet.

    python benchmarks/overlap_matrix.py [repetitions]
"""

from __future__ import annotations

import os
import sys
from typing import Any

import record

from crosswind.overlap import overlap
from crosswind.overlap.options import Key
from crosswind.overlap.result import Overlap

PINGS = [(1, 1_000_000), (400, 1_000_000), (2_000, 1_000), (6, 64_000_000)]
BURN_S = 1.0
FASTER = 0.02


def simulated(live: Overlap) -> Overlap:
    """Return the matrix of simulated processors whose messages take what they take here alone, waiting for events."""
    waits, nices = ({cell[name] for cell in live} for name in ("wait", "burn_nice"))
    alone = {cell["messages"]: cell for cell in live if cell["wait"] == "event"}
    long, short = alone[400], alone[2_000]
    one_way_s = {size: cell["ping_alone_s"] / cell["messages"] / 2 for size, cell in ((1e6, long), (1e3, short))}
    cpu_s = {size: cell["ping_cpu_s"] / cell["messages"] / 4 for size, cell in ((1e6, long), (1e3, short))}
    # Both ends are here: what their processors take of a message stands in the way of its flight.
    flight_s = {size: max(one_way_s[size] - 2 * cpu_s[size], 1e-7) for size in one_way_s}
    per_mb = max(flight_s[1e6] - flight_s[1e3], 1e-6)
    model = {
        "nodes": 1,
        "network.mb_per_s": 1.0 / per_mb,
        "network.latency_s": flight_s[1e3],
        "network.message_cpu_s": cpu_s[1e3],
        "network.cpu_s_per_mb": max(cpu_s[1e6] - cpu_s[1e3], 0.0),
    }
    asked = {"waits": sorted(waits), "nices": sorted(nices), "pings": PINGS, "burn_s": BURN_S}
    return overlap("sim", **asked, cpus=live.summary["cpus"], model=model)


def lost_s(cell: dict[str, Any]) -> float:
    """Return what both lost together."""
    return float(cell["ping_s"] - cell["ping_alone_s"] + cell["burn_s"] - cell["burn_alone_s"])


def main() -> None:
    repetitions = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    live = overlap(pings=PINGS, burn_s=BURN_S, repetitions=repetitions)
    model = simulated(live)
    cells = live.by_key
    even = [key for key in cells if key.burn_nice == 0]
    polled = {
        "events_lost_s": sum(lost_s(cells[key]) for key in even if key.wait == "event"),
        "polling_lost_s": sum(lost_s(cells[key]) for key in even if key.wait == "poll"),
    }
    levels: dict[str, dict[str, float]] = {}
    for level in sorted({key.burn_nice for key in cells} - {0}):
        nice, base = ([cells[key._replace(burn_nice=at)] for key in even] for at in (level, 0))
        burn, ping = (sum(c[name] for c in nice) / sum(c[name] for c in base) for name in ("burn_s", "ping_s"))
        levels[str(level)] = {"burn_of_that_at_0": burn, "ping_of_that_at_0": ping}
    alike = {key: model.by_key[key]["verdict"] == cells[key]["verdict"] for key in cells}
    found: dict[str, Any] = {
        "polling_costs_more": {**polled, "holds": polled["polling_lost_s"] > polled["events_lost_s"]},
        "levels": levels,
        "raised_priority_does_not_speed_up": (
            1.0 - levels["-20"]["burn_of_that_at_0"] <= FASTER if "-20" in levels else None
        ),
        "lowered_priority_delays_messages_less": levels["19"]["ping_of_that_at_0"] < 1.0 if "19" in levels else None,
        "verdicts_as_simulated": {"same": sum(alike.values()), "of": len(alike), "not": _names(alike)},
    }
    print(*live.findings, found, sep="\n")
    matrices = {"live": live.summary, "simulated": model.summary}
    print(record.write("overlap_matrix", [], repetitions=repetitions, cpus=os.cpu_count(), claims=found, **matrices))


def _names(alike: dict[Key, bool]) -> list[str]:
    return [
        f"{key.messages} x {key.message_bytes} B, {key.wait}, {key.burn_nice}"
        for key, same in alike.items()
        if not same
    ]


if __name__ == "__main__":
    main()
