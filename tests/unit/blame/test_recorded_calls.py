"""What calls of MPI mean to the verdict: a rank that waits is not accused, and what is not modelled is refused."""

from __future__ import annotations

import json
import struct

import pytest
from recorded_ranks import block, call_record

from crosswind.blame.recorded import blame_recorded

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


def judged(tmp_path, form, **about):
    return blame_recorded([Ring(form).write(tmp_path / "app.trace", **about)]).data


@pytest.mark.parametrize(
    "form",
    [
        "messages",
        "messages to nowhere",
        "Mprobe",
        "Isendrecv",
        "sleeps between tests",
        "between groups",
        "nonblocking",
        "persistent collective",
        "Comm_idup",
        "neighbours",
        "neighbours, nonblocking",
        "neighbours, persistent",
        "scans",
        "scans without one's own",
        "scans, nonblocking",
        "scans, persistent",
        "scans in which ranks exchange",
        "fences",
        "post and start",
        "post and start in MPICH",
        "post and start, tested",
        "post and start, unchecked",
    ],
)
def test_the_rank_that_is_late_is_named_however_the_others_wait_for_it(tmp_path, form):
    found = judged(tmp_path, form)
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[LATE]], found["reason"]
    cost = (Ring(form).ended - Ring(form, 0).ended) * 1e-9
    assert found["culprits"][0]["seconds"] == pytest.approx(cost, rel=0.05)
    assert found["replayed_s"] == pytest.approx(found["recorded_s"], rel=0.01)


@pytest.mark.parametrize(
    "form",
    [
        "fences that end no epoch",
        "one-sided communication",
        "MPI files",
        "operations between groups",
        "an unknown request",
        "post and start in another MPI",
    ],
)
def test_waits_that_are_not_modelled_are_refused_by_name(tmp_path, form):
    known = {"an unknown request": "messages and an unknown request"}
    found = judged(tmp_path, known.get(form, form))
    assert (found["verdict"], found["culprits"]) == ("unidentifiable", [])
    name = "waits for calls that are not modelled" if form in known else form
    name = "one-sided communication" if form.startswith("post") else name
    assert found["reason"].startswith(name), found["reason"]
    assert found["reason"].endswith("not modelled: the waits in them are not seen")


@pytest.mark.parametrize("form", ["scans", "scans in which ranks exchange"])
@pytest.mark.parametrize("late", range(RANKS))
def test_in_a_scan_ranks_above_the_late_one_wait_and_those_below_do_not(tmp_path, form, late):
    ring = Ring(form, late=late)
    found = blame_recorded([ring.write(tmp_path / "app.trace")]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[late]], found["reason"]
    cost = (ring.ended - Ring(form, 0).ended) * 1e-9
    assert found["culprits"][0]["seconds"] == pytest.approx(cost, rel=0.02)
    waits = {int(rank): seconds for rank, seconds in found["waits"].items()}
    assert waits == pytest.approx({rank: ns * 1e-9 for rank, ns in enumerate(ring.waited_ns)}, abs=1e-6)
    waiting = {rank for rank, seconds in waits.items() if seconds > 0.02}
    assert waiting == {rank for rank in range(RANKS) if rank > late or (form != "scans" and rank != late)}


@pytest.mark.parametrize("form", ["scans", "scans in which ranks exchange"])
def test_no_rank_of_a_scan_is_named_where_all_are_even(tmp_path, form):
    found = blame_recorded([Ring(form, 0).write(tmp_path / "app.trace")]).data
    assert (found["verdict"], found["culprits"]) == ("none", []), found["reason"]


@pytest.mark.parametrize("late", range(RANKS))
def test_the_ends_of_a_line_are_compared_with_each_other(tmp_path, late):
    """A rank at an end has one neighbour, those between two: each kind has two ranks here."""
    ring = Ring("a line", late=late)
    found = blame_recorded([ring.write(tmp_path / "app.trace")]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[late]], found["reason"]
    cost = (ring.ended - Ring("a line", 0).ended) * 1e-9
    assert found["culprits"][0]["seconds"] == pytest.approx(cost, rel=0.05)
    assert not found["culprits"][0]["against_itself"]
    assert blame_recorded([Ring("a line", 0).write(tmp_path / "even.trace")]).data["verdict"] == "none"


def test_a_rank_that_sleeps_is_not_said_to_compute_for_longer_since_it_did_in_some_steps(tmp_path):
    [culprit] = blame_recorded([Ring("nonblocking", asleep=True).write(tmp_path / "app.trace")]).data["culprits"]
    causes = {cause["name"]: cause["seconds"] for cause in culprit["causes"]}
    assert culprit["ranks"] == [LATE]
    assert causes.pop("off the processor") == pytest.approx(20 * EXTRA_NS * 1e-9, rel=0.05)
    assert causes == {"computing takes longer": pytest.approx(3 * 0.002, rel=0.5)}


def test_no_rank_is_named_for_time_that_the_recorder_took(tmp_path):
    ring = Ring("nonblocking", 0, taken=1)
    for recorder, named in ((False, [[1]]), (True, [])):
        causes = [{"name": "crosswind record", "pid": 77, "recorder": recorder}]
        found = blame_recorded([ring.write(tmp_path / "app.trace", away=ring.away, causes=causes)]).data
        assert [culprit["ranks"] for culprit in found["culprits"]] == named, found["reason"]
        said = any(
            note.startswith("the recording took part: it had the processor of rank 1 for 0.060 s")
            for note in found["notes"]
        )
        assert said is recorder
    both = Ring("nonblocking", taken=1)
    found = blame_recorded([both.write(tmp_path / "app.trace", away=both.away, causes=causes)]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[LATE]], found["reason"]


def test_ranks_whose_threads_call_mpi_are_refused(tmp_path):
    found = judged(tmp_path, "messages", threads=2)
    assert found["verdict"] == "unidentifiable"
    assert found["reason"] == "several threads of rank 0 call MPI: which of them waits for which is not known"


@pytest.mark.parametrize(
    ("pid", "ranks", "note"),
    [
        (77, 3, "the host was busy: other processes had the processors of 3 of 4 ranks for 0.015 s, most 0.015 s"),
        (77, 1, None),
        (1002, 2, "ranks shared processors: 2 of 4 could not run for 0.010 s because another rank did"),
    ],
)
def test_a_busy_host_is_said_where_several_ranks_were_kept_from_running(tmp_path, pid, ranks, note):
    # Two of the rank's threads at a time: they count once.
    away = [(rank, ORIGIN + 100_000, ORIGIN + 5_100_000, 0) for rank in (0, 1, 3)[:ranks] for _ in range(2)]
    file = Ring("messages", 0).write(tmp_path / "app.trace", away=away, causes=[{"name": "stress", "pid": pid}])
    notes = blame_recorded([file]).data["notes"]
    assert [one for one in notes if "processors" in one] == (
        [note + f" preempted by stress ({pid})" * (pid == 77)] if note else []
    )
