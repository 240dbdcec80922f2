"""`crosswind.record_step()`: marks the end of a step, in MPI programs under the recorder and in any other.

Light on purpose: a program under measurement imports this.
"""

from __future__ import annotations

import atexit
import ctypes
import json
import mmap
import os
import socket
import struct
import time
from pathlib import Path
from typing import IO

_PARTS, _STEPS = "CROSSWIND_TRACE_PARTS", "CROSSWIND_STEPS"
_RANKS = (
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("RANK", "WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("PMIX_RANK", "PMIX_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
    ("PALS_RANKID", "PALS_SIZE"),
    ("FLUX_TASK_RANK", "FLUX_JOB_SIZE"),
    ("SLURM_PROCID", "SLURM_NTASKS"),
)
"""Variables by which launchers tell a process its rank, and how many there are."""
_CHUNK_BYTES = 1 << 16
_HEAD_BYTES = 4096
_HEAD = struct.Struct("<8s10I6Q256s64s512s256s")
_BLOCK = struct.Struct("<4s3IQ2I")
_STEP = struct.Struct("<HHI3Q")
_FINALIZE_AT = 48 + 3 * 8


def record_step() -> None:
    """Mark the end of a step: of an iteration of a training loop, of a time step of a simulation.

    Call it once per iteration in every rank, always at the same place. Step n lasts from the n-th call to the next.
    Under `crosswind record -- COMMAND` the marks go into its file. Otherwise, with `CROSSWIND_STEPS=DIR` in the
    environment, each rank writes `DIR/rank-R.jsonl`: lines of `rank`, `world_size`, `step`, `start_s`, `end_s` and
    `host`. Without either it does nothing, so it may stay in the program.

    Examples
    --------
    >>> record_step()
    """
    global _mark  # noqa: PLW0603 (found once)
    if _mark is None or _mark.pid != os.getpid():
        _mark = _found(None if _mark is None else _mark.pid)
    _mark.step()


class _Nothing:
    """No recording; or a forked child, whose parent is the rank."""

    def __init__(self) -> None:
        self.pid = os.getpid()

    def step(self) -> None:
        pass


class _InShim(_Nothing):
    """An MPI rank under the recorder."""

    def __init__(self, function: ctypes._NamedFuncPointer) -> None:
        super().__init__()
        function.restype = None
        self.step = function  # type: ignore[method-assign]


class _InPart(_Nothing):
    """A rank of a program without MPI: writes a part file as MPI ranks do."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._rank, self._size = _rank()
        path = Path(directory) / f"0-{self._rank}-{self.pid}.part"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._steps, self._chunks, self._bytes = 0, 0, _HEAD_BYTES
        os.posix_fallocate(self._file, 0, _HEAD_BYTES)
        self._head = mmap.mmap(self._file, _HEAD_BYTES)
        self._chunk: mmap.mmap | None = None
        now = time.monotonic_ns()
        host_id = Path("/proc/sys/kernel/random/boot_id").read_bytes().strip()
        about = (_CHUNK_BYTES, self._rank, self._size, self.pid, 0, 2, 0, 0, 0, 0, now, time.time_ns(), now, 0, 0, 0)
        program = Path("/proc/self/exe").readlink()
        self._head[: _HEAD.size] = _HEAD.pack(
            b"CWPART1\0", *about, socket.gethostname().encode(), host_id, b"", os.fsencode(program)[:255]
        )
        atexit.register(self._end)

    def step(self) -> None:
        if self._chunk is None or self._length + _STEP.size > _CHUNK_BYTES - _BLOCK.size:
            self._next_chunk()
        chunk = self._chunk
        if chunk is None:
            return
        at = _BLOCK.size + self._length
        _STEP.pack_into(chunk, at, 301, 4, 0xFFFFFFFF, time.monotonic_ns(), time.thread_time_ns(), self._steps)
        self._steps += 1
        self._length += _STEP.size
        # Only now does the step belong to the file.
        _BLOCK.pack_into(
            chunk, 0, b"CWTB", self._chunks, self._rank, 0, self._length, self.pid, self._length // _STEP.size
        )

    def _next_chunk(self) -> None:
        self._length = 0
        try:
            os.posix_fallocate(self._file, self._bytes, _CHUNK_BYTES)
            self._chunk = mmap.mmap(self._file, _CHUNK_BYTES, offset=self._bytes)
            self._bytes += _CHUNK_BYTES
            self._chunks += 1
        except OSError:  # a full disk must not end the program
            self._chunk = None
            at = _FINALIZE_AT + 8
            struct.pack_into("<Q", self._head, at, struct.unpack_from("<Q", self._head, at)[0] + 1)

    def _end(self) -> None:
        if self.pid == os.getpid():
            struct.pack_into("<Q", self._head, _FINALIZE_AT, time.monotonic_ns())


class _InLines(_Nothing):
    """A program without a recording, with a directory for its steps."""

    def __init__(self, directory: str) -> None:
        super().__init__()
        self._rank, self._size = _rank()
        self._host = socket.gethostname()
        self._steps, self._before = 0, 0.0
        Path(directory).mkdir(parents=True, exist_ok=True)
        self._file: IO[str] = (Path(directory) / f"rank-{self._rank}.jsonl").open("w")

    def step(self) -> None:
        now = time.monotonic()
        if self._steps:
            line: dict[str, int | float | str] = {"rank": self._rank, "world_size": self._size, "step": self._steps}
            line |= {"start_s": round(self._before, 9), "end_s": round(now, 9), "host": self._host}
            self._file.write(json.dumps(line) + "\n")
            self._file.flush()
        self._steps += 1
        self._before = now


_mark: _Nothing | None = None


def _found(of_parent: int | None) -> _Nothing:
    """Return where marks go in this process."""
    if of_parent is not None:
        return _Nothing()
    shim = getattr(ctypes.CDLL(None), "crosswind_record_step", None)
    if shim is not None:
        return _InShim(shim)
    if parts := os.environ.get(_PARTS):
        return _InPart(parts)
    if steps := os.environ.get(_STEPS):
        return _InLines(steps)
    return _Nothing()


def _rank() -> tuple[int, int]:
    """Return this process's rank and the number of ranks, by what its launcher has set; one of one otherwise."""
    for rank, size in _RANKS:
        try:
            return int(os.environ[rank]), int(os.environ[size])
        except (KeyError, ValueError):
            continue
    return 0, 1
