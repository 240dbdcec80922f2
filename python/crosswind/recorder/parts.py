"""Makes one file of what the ranks wrote: `app.trace`, whose format is `docs/reference/recorded-programs.md`.

A rank's part file is a head and chunks of one size. Each chunk is a block of the final file, filled as far as its
length says. It is complete at any moment, so a rank that was killed leaves all that it did until then. Chunks are
numbered in the order in which they were begun; the one that a thread fills stands before those that it filled.
"""

from __future__ import annotations

import json
import os
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from crosswind.recorder.summary import Cause, Head

FORMAT, VERSION = "crosswind-trace", 1
INFO, RECORDS, AWAY, CAUSES, END = 1, 2, 3, 4, 5
NO_RANK = 0xFFFFFFFF

MAGIC, HEAD_BYTES = b"CWPART1\0", 4096
HEAD = struct.Struct("<8s10I6Q256s64s512s256s")
"""The struct `head` of shim/core.c."""
BLOCK = struct.Struct("<4s3IQ2I")
"""Magic, kind, rank, thread, length; in part files the chunk's number in place of the kind, then the thread's number in
the kernel, and how many records."""
BLOCK_MAGIC = b"CWTB"
_CPU_CLOCKS = {1: "switches", 2: "sampled"}


class _Head(NamedTuple):
    """Where a chunk's records are in the part file."""

    at: int
    length: int
    thread: int
    tid: int
    records: int


class Chunk(NamedTuple):
    """Records of one thread, in the order of their times."""

    payload: bytes
    thread: int
    tid: int
    records: int


@dataclass(frozen=True)
class Part:
    """What one rank wrote, as its head says."""

    path: Path
    chunk_bytes: int
    rank: int
    world_size: int
    pid: int
    thread_level: int
    cpu_clock: str
    mpi_version: tuple[int, int]
    run_delay: bool
    clocks_ns: tuple[int, int]
    init_ns: int
    finalize_ns: int
    lost: int
    world_id: int
    host: str
    host_id: str
    library: str
    program: str

    @classmethod
    def read(cls, path: Path) -> Part | None:
        """Return the head of a part file; None where the rank ended before it had one."""
        with path.open("rb") as file:
            data = file.read(HEAD.size)
        if len(data) < HEAD.size or not data.startswith(MAGIC):
            return None
        _, chunk, rank, size, pid, level, clock, major, minor, delay, _, *rest = HEAD.unpack(data)
        monotonic, real, init, finalize, lost, world, *texts = rest
        host, host_id, library, program = (text.split(b"\0")[0].decode(errors="replace") for text in texts)
        return cls(
            path=path,
            chunk_bytes=chunk,
            rank=rank,
            world_size=size,
            pid=pid,
            thread_level=level,
            cpu_clock=_CPU_CLOCKS.get(clock, "none"),
            mpi_version=(major, minor),
            run_delay=bool(delay),
            clocks_ns=(monotonic, real),
            init_ns=init,
            finalize_ns=finalize,
            lost=lost,
            world_id=world,
            host=host,
            host_id=host_id,
            library=library,
            program=program,
        )

    @property
    def complete(self) -> bool:
        """Whether the rank reached the end of its program."""
        return self.finalize_ns != 0

    def _heads(self, file: IO[bytes]) -> list[_Head]:
        """Return the heads of all chunks in which something was recorded, in the order in which they were begun."""
        found: dict[int, _Head] = {}
        size, at = file.seek(0, os.SEEK_END), HEAD_BYTES
        while at + BLOCK.size <= size:
            magic, number, _, thread, length, tid, records = BLOCK.unpack(_at(file, at, BLOCK.size))
            fits = 0 < length <= min(self.chunk_bytes, size - at) - BLOCK.size
            if magic == BLOCK_MAGIC and fits:
                # Of a rank that was killed while it wrote a chunk, the same one stands behind again, perhaps in part.
                found.setdefault(number, _Head(at + BLOCK.size, length, thread, tid, records))
            at += self.chunk_bytes
        return [found[number] for number in sorted(found)]

    def chunks(self) -> Iterator[Chunk]:
        """Yield the chunks in which something was recorded."""
        with self.path.open("rb") as file:
            for head in self._heads(file):
                yield Chunk(_at(file, head.at, head.length), head.thread, head.tid, head.records)

    def threads(self) -> dict[int, int]:
        """Return the kernel's number of each thread that recorded something."""
        with self.path.open("rb") as file:
            return {head.thread: head.tid for head in self._heads(file)}

    def info(self) -> dict[str, object]:
        """Return what the final file says of this rank."""
        return {
            "rank": self.rank,
            "world_size": self.world_size,
            "pid": self.pid,
            "host": self.host,
            "host_id": self.host_id,
            "clock": "monotonic",
            "realtime_ns": list(self.clocks_ns),
            "init_ns": self.init_ns,
            "finalize_ns": self.finalize_ns or None,
            "complete": self.complete,
            "cpu_clock": self.cpu_clock,
            "run_delay": self.run_delay,
            "thread_level": self.thread_level,
            "library": self.library or None,
            "mpi_version": list(self.mpi_version),
            "threads": [{"thread": thread, "tid": tid} for thread, tid in sorted(self.threads().items())],
            "program": self.program,
            "lost": self.lost,
        }


@dataclass(frozen=True)
class Absences:
    """When a rank could run and did not, as blocks have it, and how many shorter ones there were, of how many s."""

    intervals: bytes = b""
    short: int = 0
    short_s: float = 0.0


def _at(file: IO[bytes], at: int, length: int) -> bytes:
    file.seek(at)
    return file.read(length)


def parts_in(directory: Path) -> list[Part]:
    """Return the parts of all ranks, in the order of worlds and ranks."""
    found = (Part.read(path) for path in directory.glob("*.part"))
    return sorted((part for part in found if part), key=lambda part: (part.world_id, part.rank, part.init_ns))


def write(
    file: IO[bytes],
    head: Head,
    parts: Sequence[Part],
    absences: dict[int, Absences] | None = None,
    causes: Sequence[Cause] = (),
) -> int:
    """Write the final file.

    Parameters
    ----------
    file : file
        Open for writing; nothing is read back.
    head : Head
        What is known of the whole: command, library, the kernel's trace.
    parts : sequence of Part
        One a rank.
    absences : dict, optional
        By process.
    causes : sequence of Cause
        What absences name by their place in it.

    Returns
    -------
    int
        Number of records.
    """
    every = 0
    line = {
        "format": FORMAT,
        "version": VERSION,
        "world_size": parts[0].world_size,
        "ranks": [part.rank for part in parts],
        **head,
        "complete": is_complete(parts),
    }
    file.write(_padded(json.dumps(line, ensure_ascii=False) + "\n"))
    for part in parts:
        of_rank = (absences or {}).get(part.pid, Absences())
        short = {"away_short": {"intervals": of_rank.short, "seconds": of_rank.short_s}} if absences else {}
        _block(file, INFO, part.rank, 0, _padded(json.dumps(part.info() | short, ensure_ascii=False)))
        records = 0
        for chunk in part.chunks():
            _block(file, RECORDS, part.rank, chunk.thread, chunk.payload)
            records += chunk.records
        if of_rank.intervals:
            _block(file, AWAY, part.rank, 0, of_rank.intervals)
        _block(file, END, part.rank, 0, struct.pack("<QQ", records, part.complete))
        every += records
    if absences is not None:
        _block(file, CAUSES, NO_RANK, 0, _padded(json.dumps(list(causes), ensure_ascii=False)))
    return every


def is_complete(parts: Sequence[Part]) -> bool:
    """Whether every rank is there, reached its end and lost nothing."""
    ranks = [part.rank for part in parts]
    return ranks == list(range(parts[0].world_size)) and all(part.complete and not part.lost for part in parts)


def _block(file: IO[bytes], kind: int, rank: int, thread: int, payload: bytes) -> None:
    file.write(BLOCK.pack(BLOCK_MAGIC, kind, rank, thread, len(payload), 0, 0))
    file.write(payload)


def _padded(text: str) -> bytes:
    """Return text of a length that is a multiple of 8, padded with spaces; a line's end stays at its end."""
    data = text.encode()
    return data.removesuffix(b"\n") + b" " * (-len(data) % 8) + (b"\n" if text.endswith("\n") else b"")
