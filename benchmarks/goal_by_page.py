"""Claim: GOAL schedules end when docs/concepts/engine.md says, by an interpreter that was written from that page alone.

Random schedules of 2 to 4 ranks and 10 to 60 operations, with messages of several packets, of one packet, and with any
source and any tag: the end of each rank and its busy time, to the ns; of a deadlock, which ranks are stuck. Half of the
schedules have small round times, so that much happens at one moment.

    python benchmarks/goal_by_page.py [SCHEDULES OF EACH KIND]

Without an argument 300 of each, printed and not recorded.
"""

from __future__ import annotations

import collections
import json
import random
import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from goal_schedules.interpreter import DeadlockError, Network, Op, UnaskedError, interpret

from crosswind import _core
from crosswind.errors import CrosswindError, InfeasibleError

KINDS = ("several packets", "any source and tag", "one packet")
FAR_NS = 1_000_000_000


def network_of(draw: random.Random, kind: str, is_round: bool) -> Network:
    if is_round:
        unit = draw.choice([1, 1, 5, 10])
        times = [unit * draw.randint(*most) for most in ((1, 6), (0, 4), (0, 6), (0, 2))]
    else:
        times = [draw.randint(1, 400), draw.randint(0, 90), draw.randint(0, 150), draw.choice([0, draw.randint(1, 17)])]
    packet = 1_000_000_000 if kind == "one packet" else draw.choice([1, 2, 3, 4, 8, 16])
    return Network(*times, packet)


def schedule_of(seed: int, kind: str) -> tuple[list[list[Op]], Network]:
    """Draw a schedule: messages and computations in one order, shuffled on each rank in six of ten, dependencies."""
    draw = random.Random(f"{kind} {seed}")
    is_round = seed % 2 == 0
    network = network_of(draw, kind, is_round)
    ranks, count, most_ns = draw.randint(2, 4), draw.randint(10, 60), 12 if is_round else 1500
    share, to_itself, one_receiver = draw.uniform(0.1, 0.7), draw.random() < 0.25, draw.random() < 0.25
    tags, unit = draw.choice([1, 2, 4]), network.latency if is_round else 1
    placed: list[tuple[float, int, tuple[str, int, int, int]]] = []
    while len(placed) < count:
        if draw.random() < share:
            ns = draw.choice([0, draw.randint(0, most_ns // 4), draw.randint(0, most_ns)]) * unit
            placed.append((len(placed), draw.randrange(ranks), ("calc", ns, 0, 0)))
            continue
        to = 0 if one_receiver else draw.randrange(ranks)
        source = to if to_itself and draw.random() < 0.3 else (to + draw.randint(1, ranks - 1)) % ranks
        tag, size = draw.randrange(tags), draw.choice([0, 1, draw.randint(0, 12), draw.randint(0, 40)])
        at = draw.uniform(0, count)
        placed.append((at, source, ("send", size, to, tag)))
        asked = (-1 if kind == "any source and tag" and draw.random() < 0.4 else value for value in (source, tag))
        placed.append((at + draw.expovariate(5 / count), to, ("recv", size, *asked)))
    placed.sort(key=lambda one: one[0])
    often, seldom = draw.choice([0.3, 0.8, 1.5]), draw.choice([0.0, 0.2, 0.6])
    return [
        _depending([what for _, at, what in placed if at == rank], draw, (often, seldom)) for rank in range(ranks)
    ], network


def _depending(
    operations: list[tuple[str, int, int, int]], draw: random.Random, means: tuple[float, float]
) -> list[Op]:
    place = list(range(len(operations)))
    if draw.random() < 0.6:
        draw.shuffle(place)
    found: dict[int, Op] = {}
    for number, what in enumerate(operations):
        needs, begun = (
            {place[draw.randrange(number)] for _ in range(int(mean) + (draw.random() < mean % 1))} if number else set()
            for mean in means
        )
        found[place[number]] = Op(*what, tuple(sorted(needs)), tuple(sorted(begun - needs)))
    return [found[number] for number in range(len(operations))]


def text_of(schedule: list[list[Op]], late: int | None = None) -> str:
    """Return a schedule in GOAL; on rank `late` with a computation of `FAR_NS` after all else, which shows its end."""
    lines = [f"num_ranks {len(schedule)}"]
    for rank, ops in enumerate(schedule):
        lines.append(f"rank {rank} {{")
        for number, op in enumerate(ops):
            peer = f"b {'to' if op.kind == 'send' else 'from'} {op.peer} tag {op.tag}" if op.kind != "calc" else ""
            lines.append(f"l{number}: {op.kind} {op.amount}{peer}")
        lines += [f"x: calc {FAR_NS}", *(f"x requires l{number}" for number in range(len(ops)))] if rank == late else []
        for number, op in enumerate(ops):
            lines += [f"l{number} requires l{other}" for other in op.requires]
            lines += [f"l{number} irequires l{other}" for other in op.irequires]
        lines.append("}")
    return "\n".join(lines) + "\n"


def simulated(schedule: list[list[Op]], network: Network) -> Any:
    seconds = {"latency_s": network.latency, "overhead_s": network.overhead, "gap_s": network.gap}
    experiment = {
        "schema_version": 1,
        "name": "goal",
        "network": {
            **{name: ns * 1e-9 for name, ns in seconds.items()},
            "gap_per_byte_s": network.per_byte * 1e-9,
            "packet_bytes": network.packet_bytes,
        },
        "workload": {"kind": "program", "program": "goal", "parameters": {"file": "s.goal"}},
    }

    def run(late: int | None) -> Any:
        text = text_of(schedule, late)
        return json.loads(_core.simulate_program(json.dumps(experiment), None, text, dedicated_s=1.0))

    try:
        whole = run(None)
        ends = [round(run(rank)["makespan_s"] * 1e9) - FAR_NS for rank in range(len(schedule))]
    except InfeasibleError as error:
        return "deadlock", sorted(map(int, re.findall(r"rank (\d+):", str(error))))
    except CrosswindError as error:
        if "no recv asked" not in str(error):
            raise
        return "unasked", []
    return ends, [round(whole["busy_s"][name] * 1e9, 2) for name in ("min", "mean", "max")]


def by_page(schedule: list[list[Op]], network: Network) -> Any:
    try:
        ranks = interpret(schedule, network)
    except DeadlockError as error:
        return "deadlock", error.ranks
    except UnaskedError:
        return "unasked", []
    busy = [rank.busy for rank in ranks]
    ends = [max(rank.end.values(), default=0) for rank in ranks]
    return ends, [round(value, 2) for value in (min(busy), sum(busy) / len(busy), max(busy))]


def main() -> None:
    recorded = len(sys.argv) > 1
    count = int(sys.argv[1]) if recorded else 300
    found = {}
    for kind in KINDS:
        counts: collections.Counter[str] = collections.Counter()
        for seed in range(count):
            drawn = schedule_of(seed, kind)
            page, engine = by_page(*drawn), simulated(*drawn)
            counts[page[0] if isinstance(page[0], str) else "ran"] += 1
            if page != engine:
                counts["differ"] += 1
                print(f"{kind} {seed}: by the page {page}, simulated {engine}\n{drawn[1]}\n{text_of(drawn[0])}")
        found[kind] = {"schedules": count, "differ": 0, **counts}
        print(kind, found[kind])
    if recorded:
        import record

        print(record.write("goal_by_page", [], kinds=found))
    if any(kind["differ"] for kind in found.values()):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
