"""Which rank is slow: written traces whose answer is known, and refusals where there is none."""

from __future__ import annotations

import gzip
import json
import random

import pytest
from recorded_ranks import answer_s, app_trace, write_profiles
from typer.testing import CliRunner

from crosswind import _core
from crosswind.blame.recorded import blame_recorded
from crosswind.cli import app
from crosswind.errors import DescriptionError


def judged(tmp_path, case, **how):
    return blame_recorded(write_profiles(tmp_path, case, **how)).data


@pytest.mark.parametrize("base", ["split", "float", "integer"])
@pytest.mark.parametrize("case", ["late", "clock"])
def test_the_late_rank_is_named_with_its_cost(tmp_path, case, base):
    found = judged(tmp_path, case, base=base)
    assert found["verdict"] == "straggler"
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[1]]
    culprit = found["culprits"][0]
    assert culprit["seconds"] == pytest.approx(answer_s(case), abs=1e-3)
    assert culprit["steps"] == 6
    assert culprit["where"][0]["place"] == "before all_reduce 2 of 2"
    assert found["waits"]["0"] > 0.15 > 0.03 > found["waits"]["1"]


def test_ranks_that_hide_each_other_are_named_together(tmp_path):
    found = judged(tmp_path, "pair")
    assert [sorted(culprit["ranks"]) for culprit in found["culprits"]] == [[1, 2]]
    culprit = found["culprits"][0]
    assert culprit["seconds"] == pytest.approx(answer_s("pair"), abs=1e-3)
    assert max(culprit["alone_s"]) < 0.01


@pytest.mark.parametrize("ranks", [3, 5])
def test_no_rank_stands_out_where_all_take_turns_or_none_is_late(tmp_path, ranks):
    even = judged(tmp_path, "even", ranks=ranks)
    assert (even["verdict"], even["culprits"]) == ("none", [])
    turns = judged(tmp_path, "turn")
    assert (turns["verdict"], turns["culprits"]) == ("none", [])
    assert turns["uneven_s"] == pytest.approx(answer_s("turn"), abs=1e-3)


@pytest.mark.parametrize(
    ("case", "reason"),
    [
        ("missing", "rank 1, whose trace is missing"),
        ("torn", "events are missing: rank 2 recorded 11 collective operations of world, others 12"),
        ("network", "no rank is late, but 0.194 s pass in operations in which all ranks already were"),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(tmp_path, case, reason):
    found = judged(tmp_path, case)
    assert (found["verdict"], found["culprits"]) == ("unidentifiable", [])
    assert reason in found["reason"]


def test_one_rank_says_nothing(tmp_path):
    found = blame_recorded(write_profiles(tmp_path, "late")[:1]).data
    assert found["verdict"] == "unidentifiable"
    assert found["reason"].startswith("one rank")


def calls(rank, extra, steps=8, offset=0.0):
    """A ring: compute, send to the right, receive from the left, reduce; `extra`: s before the reduction."""
    lines, now = [{"rank": rank, "world": 3, "t0": offset}], 0.0
    for step in range(steps):
        sent = now + 0.020 + 0.0001 * ((rank + step) % 3)
        arrived = now + 0.0202 + 0.0001
        over = arrived + 0.010 + extra + 0.001
        mine = arrived + 0.010 + (extra if rank == 2 else 0.0)
        lines += [
            {"op": "send", "t0": sent, "t1": sent + 1e-5, "peer": (rank + 1) % 3, "tag": 7},
            {"op": "recv", "t0": sent + 1e-5, "t1": arrived + 0.0002, "peer": (rank - 1) % 3, "tag": 7},
            {"op": "allreduce", "t0": mine + 0.0002, "t1": over + 0.0002, "bytes": 8},
            {"op": "step", "t0": over + 0.0002, "t1": over + 0.0002},
        ]
        now = over + 0.0002
    return "\n".join(
        json.dumps({name: at + offset if name in ("t0", "t1") and "op" in line else at for name, at in line.items()})
        for line in lines
    )


def test_calls_as_lines_of_json(tmp_path):
    for rank in range(3):
        (tmp_path / f"rank-{rank}.jsonl").write_text(calls(rank, 0.025, offset=rank * 3.7))
    found = blame_recorded([tmp_path]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[2]]
    assert found["culprits"][0]["seconds"] == pytest.approx(8 * 0.025, abs=1e-3)
    assert found["clocks"]["apart_s"] == pytest.approx(7.4, abs=0.01)


def test_step_times_are_the_smallest_input(tmp_path):
    rows = [
        f"{rank},{step},{0.1 + 0.001 * ((rank + step) % 3) + (0.05 if rank == 3 else 0)}"
        for rank in range(5)
        for step in range(12)
    ]
    path = tmp_path / "steps.csv"
    path.write_text("rank,step,seconds\n" + "\n".join(rows) + "\n")
    found = blame_recorded([path]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[3]]
    assert found["culprits"][0]["seconds"] == pytest.approx(0.6 - 0.012, abs=0.012)
    lines = [
        json.dumps({"rank": rank, "step": step, "start_s": step * 0.1, "end_s": (step + 1) * 0.1})
        for rank in range(3)
        for step in range(9)
    ]
    (tmp_path / "all.jsonl").write_text("\n".join(lines))
    hidden = blame_recorded([tmp_path / "all.jsonl"]).data
    assert hidden["verdict"] == "unidentifiable"
    assert hidden["reason"].startswith("the step times include the waiting")


def varying(ranks, steps, late):
    """Steps whose work differs alike on all ranks, one of which takes `late` longer; and what that costs, s."""
    draw = random.Random(4)
    common = [0.02 + 0.03 * draw.random() for _ in range(steps)]
    noise = [[0.001 * draw.gauss(0, 1) for _ in range(ranks)] for _ in range(steps)]
    files = [[{"rank": rank, "world": ranks, "t0": 0.0}] for rank in range(ranks)]
    now = cost = 0.0
    for usual, own in zip(common, noise, strict=True):
        came = [now + usual + mine + (late if rank == 1 else 0.0) for rank, mine in enumerate(own)]
        now = max(came) + 0.001
        cost += max(came) - max(at - (late if rank == 1 else 0.0) for rank, at in enumerate(came))
        for rank, at in enumerate(came):
            files[rank].append({"op": "allreduce", "t0": at, "t1": now, "bytes": 8})
            files[rank].append({"op": "step", "t0": now, "t1": now})
    return files, cost


@pytest.mark.parametrize("ranks", [3, 4, 6])
def test_a_slow_rank_does_not_move_what_is_usual_at_a_step(tmp_path, ranks):
    files, cost = varying(ranks, 60, late=0.004)
    for rank, lines in enumerate(files):
        (tmp_path / f"rank-{rank}.jsonl").write_text("\n".join(map(json.dumps, lines)))
    found = blame_recorded([tmp_path]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[1]]
    culprit = found["culprits"][0]
    assert culprit["seconds"] == pytest.approx(cost, rel=0.1)
    assert culprit["ci95"][0] < cost < culprit["ci95"][1]
    assert culprit["ci95"][1] - culprit["ci95"][0] < 0.3 * cost


def allprof(rank, late):
    lines = ["# liballprof", f"MPI_Comm_rank:0:100,{rank},3:0"]
    for step in range(8):
        begin = step * 50_000
        mine = begin + 20_000 + 100 * ((rank + step) % 3) + (late if rank == 1 else 0)
        lines.append(f"MPI_Allreduce:{mine}:1:2:3:4:5:100,{rank},3:{begin + 20_500 + late}")
    return "\n".join(lines)


def test_liballprof_text(tmp_path):
    for rank in range(3):
        (tmp_path / f"rank-{rank}.txt").write_text(allprof(rank, 9_000))
    found = blame_recorded([tmp_path]).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[1]]
    (tmp_path / "rank-1.txt").write_text(allprof(1, 9_000) + "\nMPI_Isend:400000:1:2:3:4:5:400010\n")
    refused = blame_recorded([tmp_path]).data
    assert refused["reason"] == "1 calls of MPI_Isend are not modelled: the waits in them are not seen"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "the file is empty"),
        (b"\x7fELF", "the format is not known"),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "ts": "x", "dur": 1}]}',
            'event at byte 17: ts is "x"; it must be',
        ),
        (
            b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "ts": 1, "dur": -1}]}',
            "event at byte 17: dur is -1; it must be",
        ),
        (b'{"traceEvents": [', "byte 17: the file ends in the middle"),
        (b'{"traceEvents": [1]}', "byte 17: an event must be an object"),
        (b'{"rank": 0, "world": 2, "t0": 0}\n{"op": "send", "t0": 1, "t1": 2}', "line 2: peer is missing"),
        (
            b'{"rank": 0, "world": 2, "t0": 0}\n{"op": "barrier", "t0": 2, "t1": 1}',
            "line 2: t1 is 1.000000000 s before t0",
        ),
        (b'{"rank": -1, "world": 2, "t0": 0}\n', "line 1: rank is -1; it must be a whole number from 0"),
        (b"rank,step,seconds\n0,0,-1\n", "line 2: the step lasts -1.000000000 s"),
        (b"rank,step,seconds\n0,0,1\n0,0,1\n", "line 3: step 0 of rank 0 is given twice"),
        (b"MPI_Send:5:1:1:1:3:7:9\n", "line 1: MPI_Comm_rank must come before"),
        (gzip.compress(b'{"traceEvents": []}', mtime=0)[:20], "the gzip file is damaged or cut short"),
    ],
)
def test_a_damaged_file_is_named_with_the_place(tmp_path, text, message):
    path = tmp_path / "rank-0.json"
    path.write_bytes(text)
    with pytest.raises(DescriptionError) as error:
        blame_recorded([path])
    assert str(error.value).startswith(f"{path}: {message}")


def test_two_files_of_one_rank_are_refused(tmp_path):
    paths = write_profiles(tmp_path, "even")
    with pytest.raises(DescriptionError, match="are both of rank 0; name one file of each rank"):
        blame_recorded([paths[0], paths[0]])


def test_a_reader_takes_a_file_in_any_pieces(tmp_path):
    paths = write_profiles(tmp_path, "late")
    files = []
    for number, path in enumerate(paths):
        content, file = gzip.decompress(path.read_bytes()), _core.RecordedFile(path.name)
        piece = 700 + 13 * number
        for at in range(0, len(content), piece):
            file.feed(content[at : at + piece])
        file.finish()
        files.append(file)
    assert json.loads(_core.judge_recorded(files)) == blame_recorded(paths).data


def test_the_verb_prints_the_verdict_and_exits_with_it(tmp_path):
    runner = CliRunner()
    for case, code, words in (
        ("late", 4, "Rank 1 costs 0.1791 s ± 0.0003 of 0.760 s (24 %), in 6 of 6 steps."),
        ("even", 0, "o rank stands out"),
        ("torn", 3, "Not identifiable: events are missing"),
    ):
        (tmp_path / case).mkdir()
        paths = [str(path) for path in write_profiles(tmp_path / case, case)]
        done = runner.invoke(app, ["blame", *paths])
        assert (done.exit_code, words in done.output) == (code, True), done.output
        told = runner.invoke(app, ["blame", *paths, "--json"])
        assert (told.exit_code, json.loads(told.stdout)["verdict"]) == (
            code,
            {4: "straggler", 0: "none", 3: "unidentifiable"}[code],
        )


def test_a_recording_of_our_own_names_the_late_rank(tmp_path):
    content, cost = app_trace()
    path = tmp_path / "app.trace"
    path.write_bytes(content)
    found = blame_recorded([path]).data
    assert found["replayed_s"] == pytest.approx(found["recorded_s"], rel=1e-6)
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[2]]
    assert found["culprits"][0]["seconds"] == pytest.approx(cost, rel=0.02)
    assert found["culprits"][0]["causes"][0]["name"] == "preempted by node_exporter (77)"
    assert found["clocks"]["known_to_s"] == 0


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize(
    ("kind", "cause", "phrase"),
    [
        (0, {"name": "node_exporter", "pid": 77}, "preempted by node_exporter (77)"),
        (1, {"name": "gdb", "pid": 78}, "stopped by gdb (78)"),
        (1, {"name": "stopped by a signal or a tracer", "pid": None}, "stopped by a signal or a tracer"),
        (2, {"name": "disk or page", "pid": None}, "waiting for a disk or a page"),
        (3, {"name": "quota", "pid": None, "cgroup": "/a/job"}, "held back by the CPU quota of /a/job"),
        (3, {"name": "idle processor", "pid": None}, "held back while its processor was idle"),
    ],
)
def test_what_keeps_a_rank_from_running_now_and_then_is_known(tmp_path, kind, cause, phrase, inside):
    content, cost = app_trace(steps=24, every=4, kind=kind, cause=cause, inside=inside)
    path = tmp_path / "app.trace"
    path.write_bytes(content)
    (culprit,) = blame_recorded([path]).data["culprits"]
    assert (culprit["ranks"], culprit["steps"]) == ([2], 6)
    assert culprit["seconds"] == pytest.approx(cost, rel=0.01)
    assert culprit["ci95"][0] <= culprit["seconds"] <= culprit["ci95"][1]
    assert culprit["causes"][0]["name"] == phrase
    assert culprit["causes"][0]["seconds"] == pytest.approx(cost, rel=0.02)
    places = [place["place"] for place in culprit["where"]]
    assert places == (["in allreduce, kept from running"] if inside else ["before recv"])


def test_without_the_kernels_trace_a_rank_is_only_known_to_be_off_its_processor(tmp_path):
    path = tmp_path / "app.trace"
    path.write_bytes(app_trace(steps=24, every=2, traced=False)[0])
    (culprit,) = blame_recorded([path]).data["culprits"]
    assert [cause["name"] for cause in culprit["causes"]] == ["off the processor"]


def test_a_recording_that_ends_early_is_refused(tmp_path):
    path, (whole, _) = tmp_path / "app.trace", app_trace()
    path.write_bytes(whole[:50])
    with pytest.raises(DescriptionError, match="the file ends in its head"):
        blame_recorded([path])
    for cut in (5_000, -20):
        path.write_bytes(whole[:cut])
        assert blame_recorded([path]).verdict == "unidentifiable"
    path.write_bytes(app_trace(drop=1)[0])
    assert blame_recorded([path]).data["reason"] == "events are missing: the recording of rank 1 ends early"
