"""Which rank is slow, from the lines of NCCL's Inspector."""

from __future__ import annotations

import json

import pytest

from crosswind.blame.recorded import blame_recorded
from crosswind.errors import DescriptionError

RANKS, STEPS, LATE, LATE_US = 4, 12, 1, 3_000
START_US = 1_752_867_229_000_000
CLOCK_US = 2_500
KINDS = ("AllReduce", "ReduceScatter")


def line(rank, kind, number, start, end, comm="0xe62", ranks=RANKS, channels=2, **changed):
    """One operation, whose kernels are on several channels."""
    kernels = [
        {"channel_id": at, "kernel_start_ts": start + at, "kernel_stop_ts": end - at, "kernel_record_ts": end}
        for at in range(channels)
    ]
    operation = {"coll": kind, "coll_sn": number, "coll_msg_size_bytes": 4096, "coll_exec_time_us": end - start}
    operation |= {"event_trace_sn": {"coll_start_sn": 1, "kernel_events": []}}
    operation |= {"event_trace_ts": {"coll_start_ts": start - 60, "coll_stop_ts": start - 50, "kernel_events": kernels}}
    header = {"id": comm, "rank": rank, "n_ranks": ranks, "nnodes": 1}
    metadata = {"inspector_output_format_version": "v4.0", "hostname": "a", "pid": 100 + rank}
    return {"header": header, "metadata": metadata, "coll_perf": operation | changed}


def job(late_us=LATE_US):
    """Return the lines of each rank, and when the last one ended; clocks are apart."""
    lines, now = [[] for _ in range(RANKS)], [START_US] * RANKS
    for step in range(STEPS):
        for at, kind in enumerate(KINDS):
            came = [
                now[rank] + 5_000 + 20 * ((rank + step + at) % 3) + (late_us if (rank, at) == (LATE, 0) else 0)
                for rank in range(RANKS)
            ]
            over = max(came) + 400
            for rank in range(RANKS):
                clock = CLOCK_US * rank
                lines[rank].append(line(rank, kind, step + 7, came[rank] + clock, over + clock))
                now[rank] = over
    return lines, max(now)


def write(tmp_path, lines):
    paths = []
    for rank, one in enumerate(lines):
        paths.append(tmp_path / f"host-pid{100 + rank}.log")
        paths[-1].write_text("".join(json.dumps(each) + "\n" for each in one))
    return paths


def test_the_late_rank_is_named_with_its_cost(tmp_path):
    lines, ended = job()
    found = blame_recorded(write(tmp_path, lines)).data
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[LATE]], found["reason"]
    # What comes before the first operation is not in the logs.
    cost = (ended - job(0)[1]) * 1e-6 * (STEPS - 1) / STEPS
    assert found["culprits"][0]["seconds"] == pytest.approx(cost, rel=0.01)
    assert found["clocks"]["apart_s"] == pytest.approx(0.0075, abs=5e-4)


def test_no_rank_is_named_where_none_is_late(tmp_path):
    assert blame_recorded(write(tmp_path, job(0)[0])).verdict == "none"


def test_operations_that_the_plug_in_lost_are_missed(tmp_path):
    lines, _ = job()
    del lines[2][10]
    found = blame_recorded(write(tmp_path, lines)).data
    assert found["verdict"] == "unidentifiable"
    assert "has 11 of the 12 AllReduce operations from 7 to 18" in found["reason"]


def test_operations_without_their_root_are_refused(tmp_path):
    lines, ended = job()
    for rank, one in enumerate(lines):
        one.append(line(rank, "Broadcast", 1, ended + 100, ended + 40_000))
    assert blame_recorded(write(tmp_path, lines)).data["reason"].startswith("broadcasts, reductions to one rank")


def test_a_smaller_group_has_numbers_of_its_own(tmp_path):
    lines, _ = job()
    for rank in (0, 1):
        begin = START_US - 900 + CLOCK_US * rank
        lines[rank].insert(0, line(rank, "AllReduce", 1, begin, begin + 400, comm="0xaa", ranks=2))
    found = blame_recorded(write(tmp_path, lines)).data
    assert found["ranks"] == RANKS
    assert [culprit["ranks"] for culprit in found["culprits"]] == [[LATE]], found["reason"]


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"event_trace_ts": None}, "line 1: event_trace_ts is missing: record with NCCL_INSPECTOR_DUMP_VERBOSE=1"),
        ({"coll_sn": -1}, "line 1: coll_sn must be a whole number"),
        ({"event_trace_ts": {"kernel_events": []}}, "line 1: AllReduce 7 has no kernel"),
    ],
)
def test_a_line_that_is_wrong_is_named(tmp_path, changed, message):
    one = line(0, "AllReduce", 7, START_US, START_US + 5, **changed)
    if changed.get("event_trace_ts", 0) is None:
        del one["coll_perf"]["event_trace_ts"]
    path = tmp_path / "a.log"
    path.write_text(json.dumps(one) + "\n")
    with pytest.raises(DescriptionError) as error:
        blame_recorded([path])
    assert message in str(error.value)


def test_several_gpus_in_one_file_are_refused(tmp_path):
    lines, _ = job()
    path = tmp_path / "a.log"
    path.write_text("".join(json.dumps(each) + "\n" for each in [*lines[0][:2], *lines[1][:2]]))
    with pytest.raises(DescriptionError, match="several GPUs are in one file"):
        blame_recorded([path])
