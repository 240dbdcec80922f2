"""What calls of MPI mean to the verdict: a rank that waits is not accused, and what is not modelled is refused."""

from __future__ import annotations

import pytest
from ring_of_calls import EXTRA_NS, LATE, ORIGIN, RANKS, Ring

from crosswind.blame.recorded import blame_recorded


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
