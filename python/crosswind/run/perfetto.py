"""A trace as a time line that https://ui.perfetto.dev and chrome://tracing open: one track per processor and link.

Format: Trace Event Format of Chrome, JSON; complete events (`ph` X) with times in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from io import TextIOWrapper
from pathlib import Path

import pyarrow as pa

from crosswind.documents import Row
from crosswind.files.atomic import replaced
from crosswind.run.trace import Trace

_AT_ONCE = 10_000
_MICROSECONDS = 1e6


def write_perfetto(trace: Trace, path: str | Path) -> None:
    """Write a trace as JSON for Perfetto; an existing file is replaced only once the new one is complete.

    Each node is a process with the thread `processor` and one thread `link to CHILD` per child; results that come up
    stand on `link from CHILD`. Sends that overlap on one link get further threads, since events of a thread may only
    nest.
    """
    with replaced(path) as new:
        file = TextIOWrapper(new, encoding="utf-8", write_through=True)
        file.write('{"displayTimeUnit":"ms","otherData":')
        file.write(json.dumps({"experiment": trace.header["experiment"], "on": trace.header["on"]}))
        file.write(',"traceEvents":[\n')
        for number, event in enumerate(_events(trace)):
            file.write((",\n" if number else "") + json.dumps(event, separators=(",", ":")))
        file.write("\n]}\n")
        file.detach()  # the file below stays open, to be synced


def _events(trace: Trace) -> Iterator[Row]:
    pids = {node["name"]: number for number, node in enumerate(trace.nodes, 1)}
    for name, pid in pids.items():
        yield {"ph": "M", "pid": pid, "name": "process_name", "args": {"name": name}}
        yield {"ph": "M", "pid": pid, "name": "process_sort_index", "args": {"sort_index": pid}}
    tracks = _Tracks()
    for batch in trace.activities.sort_by("start_s").to_batches(_AT_ONCE):
        for row in _rows(batch):
            pid = pids.setdefault(row["node"], len(pids) + 1)
            start, end = row["start_s"] * _MICROSECONDS, row["end_s"] * _MICROSECONDS
            tid, new = tracks.place(pid, _track(row), start, end)
            if new is not None:
                yield {"ph": "M", "pid": pid, "tid": tid, "name": "thread_name", "args": {"name": new}}
            args = {key: row[key] for key in ("task", "mb", "work") if row[key] is not None}
            shown = f"task {row['task']}"
            if row["cut"]:
                args["cut"], shown = True, f"{shown} (cut short)"
            yield {
                "ph": "X", "pid": pid, "tid": tid, "ts": start, "dur": end - start, "name": shown,
                "cat": row["kind"], "args": args,
            }  # fmt: skip


def _rows(batch: pa.RecordBatch) -> Iterator[Row]:
    yield from batch.to_pylist()


def _track(row: Row) -> str:
    match row["kind"]:
        case "compute":
            return "processor"
        case "send":
            return f"link to {row['child']}"
    return f"link from {row['child']}"


class _Tracks:
    """Threads of each process: the first of a name that is free, or a new one."""

    def __init__(self) -> None:
        self._free_at: dict[tuple[int, str], list[tuple[int, float]]] = {}
        self._count: dict[int, int] = {}

    def place(self, pid: int, name: str, start: float, end: float) -> tuple[int, str | None]:
        lanes = self._free_at.setdefault((pid, name), [])
        for at, (tid, free) in enumerate(lanes):
            if free <= start + 1e-6:
                lanes[at] = (tid, end)
                return tid, None
        self._count[pid] = tid = self._count.get(pid, 0) + 1
        lanes.append((tid, end))
        return tid, name if len(lanes) == 1 else f"{name} ({len(lanes)})"
