"""Claim: at the receiving side, too, two queues lower the slowdown of stream A at least 3 times.

Stream A (64 bytes) and local streams of 16 KB messages come from different hosts to one. With one local sender hardly a
frame waits: its link is no faster than the receiver's. With two and three whole messages do, and credits hold them
back. Live, over emulated links on this machine (`crosswind run --on local`), beside the simulator.

    python benchmarks/credits.py [runs]
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

import record

from crosswind import _core

LINK_MB_PER_S = 4.0
MOST_SENDERS = 3


def point(senders: int, seed: int) -> str:
    """Return an experiment of A beside so many local senders, all to the last host."""
    common = {"to": senders + 1, "messages": 100}
    streams: list[dict[str, Any]] = [{"name": "A", "class": "parallel", "from": 0, "message_bytes": 64, **common}]
    local = {"class": "local", "message_bytes": 16384, "arrivals": "backlogged", **common}
    streams += [{"name": f"local {host}", "from": host, **local} for host in range(1, senders + 1)]
    return json.dumps(
        {
            "schema_version": 1,
            "name": "all to one",
            "seed": seed,
            "network": {"link_mb_per_s": LINK_MB_PER_S, "frame_bytes": 1024, "pad": True},
            "policy": {"queue": "drr", "threshold": 4, "credits": "receiver"},
            "workload": {"kind": "streams", "hosts": senders + 2, "stream": streams},
        }
    )


def slowdowns(text: str) -> dict[str, Any]:
    """Return slowdowns of A and of the slowest local stream, with one queue and with two, of a run's JSON."""
    run = json.loads(text)
    a, *local = run["streams"]
    worst = {which: max(one[f"slowdown_{which}"] for one in local) for which in ("fifo", "queued")}
    mine = {which: a[f"slowdown_{which}"] for which in ("fifo", "queued")}
    return {"A": mine, "local": worst, "warnings": [one["message"] for one in run["warnings"]]}


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    found = {}
    for senders in range(1, MOST_SENDERS + 1):
        live = [slowdowns(_core.run_streams(point(senders, seed))) for seed in range(1, runs + 1)]
        lowered = [one["A"]["fifo"] / one["A"]["queued"] for one in live]
        found[senders] = {
            "live": live,
            "simulated": slowdowns(_core.simulate_streams(point(senders, 1))),
            "slowdown_of_a_lowered": record.spread(lowered),
            "local_of_one_queue": record.spread([one["local"]["queued"] / one["local"]["fifo"] for one in live]),
            "reached": statistics.median(lowered) >= 3.0,
        }
        print(f"{senders} local senders: A lowered {statistics.median(lowered):.1f} times", flush=True)
    print(record.write("credits", [], runs=runs, link_mb_per_s=LINK_MB_PER_S, local_senders=found))


if __name__ == "__main__":
    main()
