"""Programs of messages and small groups with exact truth, as lines of JSON on clocks that are seconds apart.

A rank is a generator of operations: ("compute", s), ("send", to, tag), ("receive", from, tag), ("meet", group, ranks),
("step",). A message takes TRANSFER_S, and each call OVERHEAD_S.
"""

from __future__ import annotations

import json
import random
from collections import defaultdict, deque

TRANSFER_S, OVERHEAD_S = 4e-5, 2e-6


def run(ranks, program, seed, late_s=lambda rank, step, place: 0.0, noise=0.01):
    """Return the time of the program, and the lines of each rank."""
    offsets = [random.Random(seed).uniform(-1, 1) + 1_000 for _ in range(ranks)]
    offsets = [offset + rank for rank, offset in enumerate(offsets)]
    draws = [random.Random(1_000 * seed + rank) for rank in range(ranks)]
    now, steps, places = [0.0] * ranks, [0] * ranks, [0] * ranks
    mail, arrived = defaultdict(deque), defaultdict(dict)
    met, waits = [defaultdict(int) for _ in range(ranks)], [None] * ranks
    lines = [[{"rank": rank, "world": ranks, "t0": offsets[rank]}] for rank in range(ranks)]
    running = [program(rank) for rank in range(ranks)]

    def note(rank, op, begin, end, **about):
        stamps = {"t0": round(offsets[rank] + begin, 9), "t1": round(offsets[rank] + end, 9)}
        lines[rank].append({"op": op, **stamps, **about})

    def done(rank, op):
        """Perform an operation; whether it could be."""
        begin = now[rank]
        if op[0] == "compute":
            now[rank] += op[1] * (1 + draws[rank].gauss(0, noise)) + late_s(rank, steps[rank], places[rank])
            places[rank] += 1
        elif op[0] == "send":
            mail[rank, op[1], op[2]].append(begin + TRANSFER_S)
            now[rank] += OVERHEAD_S
            note(rank, "send", begin, now[rank], peer=op[1], tag=op[2])
            note(rank, "sendwait", now[rank], now[rank], peer=op[1], tag=op[2])
        elif op[0] == "receive":
            if not mail[op[1], rank, op[2]]:
                return False
            now[rank] = max(begin, mail[op[1], rank, op[2]].popleft()) + OVERHEAD_S
            note(rank, "recv", begin, now[rank], peer=op[1], tag=op[2])
        elif op[0] == "meet":
            key = op[1], met[rank][op[1]]
            arrived[key][rank] = begin
            if len(arrived[key]) < len(op[2]):
                return False
            now[rank] = max(arrived[key].values()) + TRANSFER_S
            met[rank][op[1]] += 1
            note(rank, "allreduce", begin, now[rank], comm=op[1], bytes=8)
        else:
            note(rank, "step", begin, begin)
            steps[rank], places[rank] = steps[rank] + 1, 0
        return True

    moved = True
    while moved:
        moved = False
        for rank in range(ranks):
            while op := waits[rank] or next(running[rank], None):
                if not done(rank, op):
                    waits[rank] = op
                    break
                waits[rank], moved = None, True
    assert not any(waits)
    return max(now), lines


def written(directory, lines):
    """Write the ranks' files and return their paths."""
    paths = [directory / f"rank-{rank:03}.jsonl" for rank in range(len(lines))]
    for path, of_rank in zip(paths, lines, strict=True):
        path.write_text("\n".join(map(json.dumps, of_rank)) + "\n", encoding="utf-8")
    return paths
