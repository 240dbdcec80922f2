"""Ranks that compute and then wait for others in calls of MPI, as `crosswind record` writes them."""

from __future__ import annotations

import json
import struct

from recorded_ranks import block, call_record

RANKS, STEPS, LATE, EXTRA_NS = 4, 20, 2, 4_000_000
ORIGIN = 5_000_000_000
LINKED, RING, NO_COMM = 1, 2, 0xFFFFFFFF
WINDOW, OPENS, UNCHECKED = 4_242, 1, 4
"""Communicators beside the world: one that links two groups, one with a topology."""


def comm_record(index, number, members, remote=()):
    ranks = [*members, *remote, *([0] * ((len(members) + len(remote)) % 2))]
    fields = (310, 5 + len(ranks) // 2, index, number, ORIGIN, 0xFFFFFFFF, len(members), len(remote), 0)
    return struct.pack(f"<HHIQQIIII{len(ranks)}i", *fields, *ranks)


def topology_record(index, sources, targets):
    ranks = [*sources, *targets, *([0] * ((len(sources) + len(targets)) % 2))]
    return struct.pack(f"<HHIII{len(ranks)}i", 312, 2 + len(ranks) // 2, index, len(sources), len(targets), *ranks)


def poll_record(t0, t1, cpu, request):
    return struct.pack("<HHIQQQQIIQQ", 300, 8, 0xFFFFFFFF, t0, t1, cpu, cpu, 1, 0, t1 - t0, request)


class Ring:
    """Ranks that compute and then wait for others, in one form or another."""

    def __init__(self, form, extra_ns=EXTRA_NS, taken=None, taken_ns=3_000_000, asleep=False, late=LATE):
        """`taken`: a rank that loses its processor for `taken_ns` in each step: `away`.

        `asleep`: the late rank sleeps for what it takes longer, and computes for 2 ms more in every sixth step.
        """
        self.form, self.away, self.waited_ns = form, [], [0] * RANKS
        self.records = [self.begun(rank) for rank in range(RANKS)]
        now, cpu = [ORIGIN] * RANKS, [0] * RANKS
        for step in range(STEPS):
            work = [2_000_000 + 20_000 * ((rank + step) % 3) + extra_ns * (rank == late) for rank in range(RANKS)]
            posted = [now[rank] + work[rank] for rank in range(RANKS)]
            for rank in range(RANKS):
                cpu[rank] += work[rank]
                if asleep and rank == late:
                    more = 2_000_000 * (step % 6 == 5)
                    cpu[rank] += more - extra_ns
                    posted[rank] += more
                if rank == taken:
                    begin = now[rank] + 100_000
                    self.away.append((rank, begin, begin + taken_ns, 0))
                    posted[rank] += taken_ns
            for rank in range(RANKS):
                ready = max(posted[one] for one in self.needed(rank))
                self.waited_ns[rank] += ready - posted[rank]
                over = ready + 10_000
                # Of windows: the rank's neighbours have posted.
                self.near_posted = max(posted[one] for one in (rank - 1, rank, (rank + 1) % RANKS)) + 4_000
                self.records[rank] += self.step(rank, step, posted[rank], over, (cpu[rank],) * 2)
                now[rank] = over
        self.ends, self.ended = now, max(now)

    def needed(self, rank):
        """Return the ranks that a rank waits for."""
        if self.form.startswith(("messages", "Mprobe", "Isendrecv", "sleeps")):
            return rank, (rank - 1) % RANKS
        if self.form == "between groups":
            return rank, (rank + 2) % RANKS
        if self.form.startswith("neighbours") or self.form == "post and start, unchecked":
            return rank, (rank - 1) % RANKS, (rank + 1) % RANKS
        if self.form == "a line":
            return [one for one in (rank - 1, rank, rank + 1) if 0 <= one < RANKS]
        if self.form.startswith("scans") and "exchange" not in self.form:
            return range(rank + 1)
        return range(RANKS)

    def begun(self, rank):
        side = [0, 1] if rank < 2 else [2, 3]
        near = [(rank - 1) % RANKS, (rank + 1) % RANKS]
        text = comm_record(0, 1, range(RANKS)) + comm_record(RING, 6, range(RANKS)) + topology_record(RING, near, near)
        text += comm_record(LINKED, 7, side, [one for one in range(RANKS) if one not in side])
        made = {"persistent collective": (473, 0), "neighbours, persistent": (489, RING)}
        made = (made | {"scans, persistent": (485, 0)}).get(self.form)
        if "fences" in self.form or self.form.startswith("post"):
            text += call_record(205, ORIGIN, ORIGIN, (0, 0), comm=0, request=WINDOW)
        if "fences" in self.form:
            text += call_record(206, ORIGIN, ORIGIN, (0, 0), comm=NO_COMM, tag=OPENS, request=WINDOW)
        if made:
            text += call_record(made[0], ORIGIN, ORIGIN, (0, 0), comm=made[1], bytes=64, request=900)
        return text

    def step(self, rank, step, at, over, used):
        text = self.wait(rank, step, at, over, used)
        return text + struct.pack("<HHIQQQ", 301, 4, 0, over, used[1], step)

    def wait(self, rank, step, at, over, used):
        form, request = self.form, 100 + step
        right, left = (rank + 1) % RANKS, (rank - 1) % RANKS

        def call(kind, t0, t1, **about):
            return call_record(kind, t0, t1, used, **about)

        def done(*handles, kind=50, t0=at):
            return call(kind, t0, over, extras=[(handle, -9, -9) for handle in handles])

        blocking = {"neighbours": (89, RING), "scans": (85, 0), "scans without one's own": (86, 0)}
        blocking |= {"scans in which ranks exchange": (85, 0), "one-sided communication": (200, 0)}
        blocking |= {"MPI files": (202, 0), "operations between groups": (73, LINKED)}
        begun = {"neighbours, nonblocking": (189, RING), "Comm_idup": (126, 0), "nonblocking": (173, 0)}
        begun |= {"scans, nonblocking": (186, 0)}
        if form == "a line":
            beside = [one if 0 <= one < RANKS else -2 for one in (rank - 1, rank + 1)]
            handles = [1_000 + 4 * step + number for number in range(4)]
            to_come, sent = zip(handles[:2], beside, strict=True), zip(handles[2:], beside, strict=True)
            came = [(handle, one, 5) for handle, one in to_come]
            posted = [call(34, at, at, peer=one, tag=5, bytes=8, request=handle) for handle, one, _ in came]
            sent = [call(30, at, at, peer=one, tag=5, bytes=8, request=handle) for handle, one in sent]
            both = [*came, *((handle, -9, -9) for handle in handles[2:])]
            return b"".join([*posted, *sent, call(51, at, over, extras=both)])
        if "fences" in form:
            put = call(201, at, at, comm=NO_COMM)
            tag = OPENS if form == "fences that end no epoch" else 0
            return put + call(206, at, over, comm=NO_COMM, tag=tag, request=WINDOW)
        if form.startswith("post"):
            return self.epoch(rank, at, over, used)
        if form in blocking:
            kind, comm = blocking[form]
            return call(kind, at, over, comm=comm, bytes=64)
        if form in begun:
            kind, comm = begun[form]
            return call(kind, at - 500, at, comm=comm, bytes=64, request=request) + done(request)
        if "persistent" in form:
            return call(45, at - 500, at, extras=[(900, -9, -9)]) + done(900)
        if form == "between groups":
            found = (0, rank % 2, 5)
            return call(15, at, over, comm=LINKED, peer=rank % 2, tag=5, bytes=8, extras=[found, found])
        if form == "Isendrecv":
            asked = [(0, left, 5)]
            return call(36, at, at, peer=right, tag=5, bytes=8, request=request, extras=asked) + call(
                50, at, over, extras=[(request, left, 5)]
            )
        sent = call(30, at - 500, at, peer=right, tag=5, bytes=8, request=request)
        if form == "Mprobe":
            matched = [(4_000 + step, left, 5)]
            probe = call(19, at, over - 5_000, peer=-1, tag=5, extras=matched)
            return (
                sent
                + probe
                + call(21, over - 4_000, over, comm=0xFFFFFFFF, bytes=8, extras=matched)
                + done(request, t0=over)
            )
        posted = call(34, at, at, peer=-1, tag=5, bytes=8, request=500 + step)
        came = [(500 + step, left, 5)]
        if form == "sleeps between tests":
            looks = b"".join(
                poll_record(t0, t0 + 900, used[0], 500 + step) for t0 in range(at, over - 200_000, 200_000)
            )
            return sent + posted + looks + call(54, over - 500, over, extras=came) + done(request, t0=over)
        if form == "messages to nowhere":  # one handle for all of them
            sent += call(30, at, at, peer=-2, tag=5, bytes=8, request=77) * 2
            return sent + posted + call(51, at, over, extras=[*came, (request, -9, -9), (77, -2, -1), (77, -2, -1)])
        if form == "messages and an unknown request":
            return sent + posted + call(51, at, over, extras=[*came, (request, -9, -9), (888, -9, -9)])
        return sent + posted + call(51, at, over, extras=[*came, (request, -9, -9)])

    def epoch(self, rank, at, over, used):
        """Each rank posts to its neighbours and writes to them, and waits until they have written."""
        unchecked = self.form == "post and start, unchecked"
        near = [(0, (rank + 1) % RANKS, -9), (0, (rank - 1) % RANKS, -9), (0, rank, -9)]
        begun = at if unchecked else self.near_posted

        def call(kind, t0, t1, group=False):
            about = {"tag": UNCHECKED if unchecked else 0, "extras": near} if group else {}
            return call_record(kind, t0, t1, used, comm=NO_COMM, request=WINDOW, **about)

        text = call(209, at, at, group=True) + call(208, at, begun, group=True)
        text += call_record(201, begun, begun, used, comm=NO_COMM) + call(210, begun, begun)
        if self.form != "post and start, tested":
            return text + call(211, begun, over)
        looks = range(begun, over - 200_000, 200_000)
        return text + b"".join(poll_record(t0, t0 + 900, used[0], WINDOW) for t0 in looks) + call(211, over - 500, over)

    @property
    def library(self):
        mpich = "MPICH Version: 5.0.1 MPICH Device: ch4:ofi"
        known = {
            "post and start in MPICH": mpich,
            "post and start in another MPI": mpich.replace("ch4:ofi", "ch3:nemesis"),
        }
        return known.get(self.form, "Open MPI v5.0.10")

    def write(self, path, threads=1, away=(), causes=()):
        """Write it; `away`: rank, from when to when (ns), and the place of the cause in `causes`."""
        head = {"format": "crosswind-trace", "version": 1, "world_size": RANKS, "ranks": list(range(RANKS))}
        text = json.dumps(head).encode()
        whole = text + b" " * (-(len(text) + 1) % 8) + b"\n"
        for rank, records in enumerate(self.records):
            about = {"rank": rank, "world_size": RANKS, "host_id": "one", "cpu_clock": "switches", "init_ns": ORIGIN}
            about["library"] = self.library
            about["threads"] = [{"thread": 0, "tid": 1000 + rank}]
            whole += block(1, rank, json.dumps(about | {"finalize_ns": self.ends[rank]}).encode())
            whole += b"".join(block(2, rank, bytes(records), thread=thread) for thread in range(threads))
            mine = [one for one in away if one[0] == rank]
            intervals = [struct.pack("<QQIHHIIQ", t0, t1, 1000 + rank, 0, 0, cause, 0, 0) for _, t0, t1, cause in mine]
            whole += block(3, rank, b"".join(intervals)) + block(5, rank, struct.pack("<QQ", 1, 1))
        whole += block(4, 0xFFFFFFFF, json.dumps(list(causes)).encode())
        path.write_bytes(whole)
        return path
