"""Halos whose ranks compute between their sends and the wait for them: by how an MPI moves a message meanwhile."""

import random

import pytest
from recorded_ranks import call_record
from ring_of_calls import ORIGIN, RANKS, STEPS, Ring, comm_record

from crosswind.blame.recorded import blame_recorded

COPY_NS, LATE = 20_000, 1
SHARED = 77
"""The handle of all sends that are over when they begin, and of messages to nowhere."""


class Halo(Ring):
    """Ranks on a ring or a line that post, compute, and wait for all at once.

    `moves`: when a message moves. "by itself": once it is sent. "receiver": once its receiver waits; the sender waits
    for that. "both": once both wait. "small": once its receiver waits; the send is over at once.
    """

    def __init__(self, moves, late_ns, *, ring=True, every=1):
        self.form, self.moves, self.ring = "halo", moves, ring
        draw = random.Random(7)
        now, cpu = [ORIGIN] * RANKS, [0] * RANKS
        self.records = [bytearray(comm_record(0, 1, range(RANKS))) for _ in range(RANKS)]
        for step in range(STEPS):
            posted = [time + 10_000 for time in now]
            work = [2_000_000 + round(draw.gauss(0, 60_000)) for _ in range(RANKS)]
            work[LATE] += late_ns * (step % every == 0)
            waits = [posted[rank] + work[rank] for rank in range(RANKS)]
            over = [self.over(rank, posted, waits) for rank in range(RANKS)]
            for rank in range(RANKS):
                cpu[rank] += work[rank]
                self.records[rank] += self.calls(rank, step, posted[rank], waits[rank], over[rank], cpu[rank])
            now = over
        self.ends, self.ended = now, max(now)

    def near(self, rank):
        """Return the neighbours to the left and to the right; -2 is nowhere."""
        beside = (rank - 1, rank + 1)
        return [one % RANKS if self.ring else one if 0 <= one < RANKS else -2 for one in beside]

    def over(self, rank, posted, waits):
        near = [one for one in self.near(rank) if one >= 0]
        received = {
            "by itself": [max(posted[one] + COPY_NS, waits[rank]) for one in near],
            "both": [max(waits[one], waits[rank]) + COPY_NS for one in near],
        }
        in_time = [max(posted[one], waits[rank]) + COPY_NS for one in near]
        sent = [max(waits[one], waits[rank]) + COPY_NS for one in near] if self.moves in ("receiver", "both") else []
        return max([waits[rank], *received.get(self.moves, in_time), *sent]) + 1_000

    def calls(self, rank, step, posted, waits, over, used):
        near, text = self.near(rank), b""
        entries = []
        for side, other in enumerate(near):
            handle = 1_000 + 4 * step + side if other >= 0 else SHARED
            about = {"peer": other, "tag": 1 - side, "bytes": 8, "request": handle}
            text += call_record(34, posted - 9_000, posted - 9_000, (used, used), **about)
            entries.append((handle, other, 1 - side))
        for side, other in enumerate(near):
            handle = SHARED if self.moves == "small" or other < 0 else 1_002 + 4 * step + side
            text += call_record(30, posted, posted, (used, used), peer=other, tag=side, bytes=8, request=handle)
            entries.append((handle, -9, -9))
        return text + call_record(51, waits, over, (used, used), extras=entries)


@pytest.mark.parametrize(("ring", "every"), [(True, 1), (True, 5), (False, 1)])
@pytest.mark.parametrize("moves", ["by itself", "receiver", "both", "small"])
def test_a_late_rank_costs_what_its_neighbours_wait(tmp_path, moves, ring, every):
    late = Halo(moves, 4_000_000, ring=ring, every=every)
    found = blame_recorded([late.write(tmp_path / "app.trace")]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[LATE]], found["reason"]
    cost = (late.ended - Halo(moves, 0, ring=ring).ended) * 1e-9
    assert found["culprits"][0]["seconds"] == pytest.approx(cost, rel=0.1)
    assert found["replayed_s"] == pytest.approx(found["recorded_s"], rel=0.01)
    assert max(found["waits"].values()) < found["recorded_s"]


@pytest.mark.parametrize("moves", ["by itself", "receiver", "both", "small"])
def test_no_rank_is_named_where_all_are_even(tmp_path, moves):
    found = blame_recorded([Halo(moves, 0).write(tmp_path / "app.trace")]).data
    assert (found["verdict"], found["culprits"]) == ("none", []), found["reason"]
