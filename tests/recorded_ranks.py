"""Recorded programs whose slow rank is known, in the forms that profilers write."""

from __future__ import annotations

import gzip
import json
import struct
from collections.abc import Mapping
from pathlib import Path
from typing import Any

STEPS = 6
TRANSFER_S = 0.002
LATE_S = 0.030
BASE_NS = 1_790_857_026_000_000_000


def lateness(case: str, rank: int, step: int, bucket: int, ranks: int) -> float:
    """Return how much longer a rank computes before a bucket is reduced."""
    if case in ("late", "missing", "clock", "torn"):
        return LATE_S if (rank, bucket) == (1, 1) else 0.0
    if case == "pair":
        return LATE_S if (rank, bucket) in ((1, 0), (2, 1)) else 0.0
    if case == "turn":
        return LATE_S if rank == step % ranks and bucket == 1 else 0.0
    return 0.0


def job(case: str, ranks: int = 3) -> tuple[list[list[dict[str, Any]]], float]:
    """Return the steps of each rank, and when the last rank ended."""
    now = [0.0] * ranks
    steps: list[list[dict[str, Any]]] = [[] for _ in now]
    for step in range(STEPS):
        begun, issue = list(now), [[0.0, 0.0] for _ in now]
        for rank in range(ranks):
            now[rank] += 0.040
            for bucket in range(2):
                now[rank] += 0.025 + lateness(case, rank, step, bucket, ranks) + 0.0002 * ((rank + step + bucket) % 3)
                issue[rank][bucket] = now[rank]
        done, before = [], 0.0
        for bucket in range(2):
            slow = 0.060 if case == "network" and step % 3 == 2 else 0.0
            before = max(before, *(issue[rank][bucket] for rank in range(ranks))) + TRANSFER_S + slow
            done.append(before)
        for rank in range(ranks):
            resumed = max(now[rank], done[-1]) + 0.0003
            now[rank] = resumed + 0.004
            steps[rank].append(
                {"begin": begun[rank], "issue": issue[rank], "done": done, "resumed": resumed, "end": now[rank]}
            )
    return steps, max(now)


def answer_s(case: str, ranks: int = 3) -> float:
    """Return what the case costs, s."""
    return job(case, ranks)[1] - job("even", ranks)[1]


def profile(rank: int, steps: list[dict[str, Any]], case: str, ranks: int = 3, base: str = "split") -> dict[str, Any]:
    """Return a trace as PyTorch's profiler writes it; `base`: split, float or integer (times since 1970)."""
    origin = 0.0 if base == "split" else BASE_NS / 1e9
    events: list[dict[str, Any]] = []

    def add(category: str, name: str, thread: int, begin: float, end: float) -> None:
        offset = rank * 0.25 if case == "clock" else 0.0
        start, length = (begin + offset) * 1e6, (end - begin) * 1e6
        if base == "integer":
            ts: float = round(origin) * 1_000_000 + round(start)
            event = {"ts": ts, "dur": round(length)}
        elif base == "float":
            event = {
                "ts": json.loads(f"{round(origin) * 1_000_000 + int(start)}.{int(start * 1000) % 1000:03d}"),
                "dur": round(length, 3),
            }
        else:
            event = {"ts": round(start, 3), "dur": round(length, 3)}
        events.append({"ph": "X", "cat": category, "name": name, "pid": 100 + rank, "tid": thread, **event, "args": {}})

    for number, step in enumerate(steps):
        add("user_annotation", f"ProfilerStep#{number + 1}", 1, step["begin"], step["end"])
        add("cpu_op", "aten::linear", 1, step["begin"] + 0.010, step["begin"] + 0.040)
        last = step["begin"] + 0.040
        for bucket, issue in enumerate(step["issue"]):
            add("cpu_op", "AddmmBackward0", 1, last + 2e-6, issue - 5e-6)
            add("cpu_op", "c10d::allreduce_", 1, issue - 4e-6, issue)
            if not (case == "torn" and rank == 2 and number == 3 and bucket == 0):
                add("user_annotation", "gloo:all_reduce", 200 + bucket, issue, step["done"][bucket])
            last = issue
        copied = step["resumed"] - 0.0002
        add("cpu_op", "torch.distributed.ddp.reducer::copy_bucket_to_grad", 1, copied, copied + 0.0001)
        add("cpu_op", "aten::add_", 1, step["resumed"] + 1e-5, step["end"])
    document: dict[str, Any] = {
        "schemaVersion": 1,
        "distributedInfo": {"backend": "gloo", "rank": rank, "world_size": ranks},
    }
    if base == "split":
        document["baseTimeNanoseconds"] = BASE_NS
    return document | {"traceEvents": events}


def write_profiles(directory: Path, case: str, ranks: int = 3, base: str = "split") -> list[Path]:
    """Write the traces of a case; the paths."""
    steps, _ = job(case, ranks)
    paths = []
    for rank in range(ranks):
        if not (case == "missing" and rank == 1):
            path = directory / f"rank-{rank}.json.gz"
            path.write_bytes(gzip.compress(json.dumps(profile(rank, steps[rank], case, ranks, base)).encode(), 1))
            paths.append(path)
    return paths


def block(kind: int, rank: int, payload: bytes, thread: int = 0) -> bytes:
    """Return a block of an `app.trace`."""
    payload += b" " * (-len(payload) % 8)
    return struct.pack("<4sIIIQQ", b"CWTB", kind, rank, thread, len(payload), 0) + payload


def call_record(kind: int, t0: int, t1: int, cpu: tuple[int, int], **about: Any) -> bytes:
    """Return the record of a call."""
    extras = about.get("extras", ())
    head = struct.pack("<HHI", kind, 8 + 3 * len(extras), about.get("comm", 0))
    fields = struct.pack(
        "<QQQQiiQQ",
        t0,
        t1,
        *cpu,
        about.get("peer", -9),
        about.get("tag", -9),
        about.get("bytes", 0),
        about.get("request", 0),
    )
    return head + fields + b"".join(struct.pack("<QiiQ", value, peer, tag, 8) for value, peer, tag in extras)


NODE_EXPORTER: Mapping[str, Any] = {"name": "node_exporter", "pid": 77}


def app_trace(
    ranks: int = 4,
    steps: int = 10,
    late: int = 2,
    extra_ns: int = 4_000_000,
    drop: int | None = None,
    *,
    kind: int = 0,
    cause: Mapping[str, Any] = NODE_EXPORTER,
    inside: bool = False,
    every: int = 1,
    traced: bool = True,
) -> tuple[bytes, float]:
    """Return an `app.trace` of a halo exchange with a reduction, one rank late, and what that costs.

    `drop`: a rank whose recording ends early. `kind`, `cause`: what keeps the late rank from running, as AWAY and
    CAUSES have it; `inside`: in the reduction, once all are there; `every`: in
    each second, third, ... step. `traced`: whether the kernel's trace was read.
    """
    head = {"format": "crosswind-trace", "version": 1, "world_size": ranks, "ranks": list(range(ranks))}
    head["kernel_trace"] = {"used": traced}
    text = json.dumps(head).encode() + b" " * 8
    text = text[: len(text) - (len(text) + 1) % 8] + b"\n"
    origin = 5_000_000_000
    records = [bytearray() for _ in range(ranks)]
    members = [*range(ranks), *([0] * (ranks % 2))]
    fields = (310, 5 + len(members) // 2, 0, 1, origin, 0xFFFFFFFF, ranks, 0, 0)
    world = struct.pack(f"<HHIQQIIII{len(members)}i", *fields, *members)
    for rank in range(ranks):
        records[rank] += world
    away = b""
    now, cpu = [origin] * ranks, [0] * ranks
    for step in range(steps):
        work = [2_000_000 + 20_000 * ((rank + step) % 3) for rank in range(ranks)]
        extra = extra_ns if step % every == 0 else 0
        before = 0 if inside else extra
        posted = [now[rank] + work[rank] + (before if rank == late else 0) for rank in range(ranks)]
        arrived = [
            max(posted[rank], posted[rank - 1] + 5_000, posted[(rank + 1) % ranks]) + 10_000 for rank in range(ranks)
        ]
        joined = [arrived[rank] + 1_000_000 for rank in range(ranks)]
        over = max(joined) + 30_000 + extra - before
        begin = max(joined) + 5_000 if inside else now[late] + 500_000
        if extra and traced:
            away += struct.pack("<QQIHHIIQ", begin, begin + extra, 1000 + late, kind, 0, 0, 0, 0)
            # Threads of MPI itself are no rank's work.
            away += struct.pack("<QQIHHIIQ", begin - 400_000, begin + extra, 2000 + late, kind, 0, 0, 0, 0)
        for rank in range(ranks):
            used = (cpu[rank] + work[rank], cpu[rank] + work[rank])
            right, left = (rank + 1) % ranks, (rank - 1) % ranks
            at, left_request, right_request = posted[rank], 100 + step, 200 + step
            records[rank] += call_record(
                34, at - 2_000, at - 1_000, used, peer=left, tag=3, bytes=8, request=left_request
            )
            records[rank] += call_record(30, at - 1_000, at, used, peer=right, tag=3, bytes=8, request=right_request)
            done = ((left_request, left, 3), (right_request, -1, -1))
            records[rank] += call_record(51, at, arrived[rank], used, extras=done)
            used = (used[1] + 1_000_000,) * 2
            records[rank] += call_record(73, joined[rank], over, used, bytes=8)
            records[rank] += struct.pack("<HHIQQQ", 301, 4, 0, over, used[1], step)
            now[rank], cpu[rank] = over, used[1]
    blocks = []
    for rank in range(ranks):
        about = {
            "rank": rank,
            "world_size": ranks,
            "host_id": "one",
            "init_ns": origin,
            "finalize_ns": now[rank],
            "cpu_clock": "switches",
            "threads": [{"thread": 0, "tid": 1000 + rank}],
            "lost": 0,
        }
        blocks += [block(1, rank, json.dumps(about).encode()), block(2, rank, bytes(records[rank]))]
        if rank == late:
            blocks.append(block(3, rank, away))
        if rank != drop:
            blocks.append(block(5, rank, struct.pack("<QQ", 0, 1)))
    blocks.append(block(4, 0xFFFFFFFF, json.dumps([dict(cause)]).encode()))
    return text + b"".join(blocks), -(-steps // every) * extra_ns / 1e9
