"""How far is the job? Counters that can be read from outside within microseconds.

| progress | what is read |
|---|---|
| `file:PATH` | size of a file that grows, bytes |
| `count:PATH` | the decimal number that a file holds |
| `u64:PATH` | 8 bytes of a file in memory (`/dev/shm`) that the job maps and counts in, in the machine's order |
| `stdin-position` | where the job's standard input, a file, is read, bytes |
| `io` | bytes read and written by all its processes (`rchar` + `wchar` of `/proc/PID/io`) |
| `cpu` | its CPU time, s: sees what is taken, not what is slowed |
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from crosswind.errors import DescriptionError, MeasurementError

WAYS = ("file:PATH", "count:PATH", "u64:PATH", "stdin-position", "io", "cpu")
COUNTS_PER_BLOCK = 10
SHORTEST_BLOCK_S, LONGEST_CHOSEN_BLOCK_S, LONGEST_BLOCK_S = 0.02, 0.2, 5.0


class Job(Protocol):
    """What counters need to know of a job."""

    @property
    def pid(self) -> int: ...  # noqa: D102
    @property
    def members(self) -> set[int]: ...  # noqa: D102
    def cpu_ns(self) -> int: ...  # noqa: D102


def counter(text: str, job: Job) -> tuple[Callable[[], float], str]:
    """Return what reads a counter, and its unit.

    Raises
    ------
    DescriptionError
        When there is no such counter, or it cannot be read.
    """
    kind, colon, path = text.partition(":")
    if colon and kind in ("file", "count", "u64") and path:
        return {"file": _size_of, "count": _number_in, "u64": _mapped}[kind](Path(path), text)
    if text == "stdin-position":
        return _position(job)
    if text == "io":
        return _transferred(job)
    if text == "cpu":
        return (lambda: job.cpu_ns() * 1e-9), "CPU s"
    raise DescriptionError(f"--progress is {text!r}; it must be one of {', '.join(WAYS)}", "progress")


def _refused(text: str, why: str, hint: str | None = None) -> DescriptionError:
    return DescriptionError(f"--progress is {text!r}; {why}", "progress", hint)


def _opened(path: Path, text: str, flags: int = os.O_RDONLY) -> int:
    try:
        return os.open(path, flags | os.O_CLOEXEC)
    except OSError as error:
        why = f"{path} cannot be opened: {(error.strerror or str(error)).lower()}"
        raise _refused(text, why, "the job must have made it before the measurement begins") from None


def _size_of(path: Path, text: str) -> tuple[Callable[[], float], str]:
    descriptor = _opened(path, text)
    return (lambda: float(os.fstat(descriptor).st_size)), "bytes"


def _number_in(path: Path, text: str) -> tuple[Callable[[], float], str]:
    os.close(_opened(path, text))
    last = 0.0

    def read() -> float:
        nonlocal last
        try:
            last = float(path.read_bytes())
        except (OSError, ValueError):  # the job is just writing it
            return last
        return last

    read()
    return read, "counts"


def _mapped(path: Path, text: str) -> tuple[Callable[[], float], str]:
    descriptor = _opened(path, text)
    try:
        shared = mmap.mmap(descriptor, 8, prot=mmap.PROT_READ)
    except (OSError, ValueError):
        raise _refused(text, f"{path} holds less than 8 bytes") from None
    finally:
        os.close(descriptor)
    words, last = memoryview(shared).cast("Q"), 0

    def read() -> float:
        nonlocal last
        last = words[0] or last  # `struct.pack_into` stores zeros before the number
        return float(last)

    return read, "counts"


def _position(job: Job) -> tuple[Callable[[], float], str]:
    text = "stdin-position"
    if not os.path.isfile(f"/proc/{job.pid}/fd/0"):  # noqa: PTH113 (a link of /proc)
        raise _refused(
            text, f"the standard input of process {job.pid} is not a file", "crosswind cost ... -- JOB < FILE"
        )
    descriptor = _opened(Path(f"/proc/{job.pid}/fdinfo/0"), text)

    last = 0.0

    def read() -> float:
        nonlocal last
        try:
            last = float(os.pread(descriptor, 64, 0).split(None, 2)[1])
        except (OSError, IndexError):  # it has ended: what it did stays
            return last
        return last

    return read, "bytes"


def _transferred(job: Job) -> tuple[Callable[[], float], str]:
    known: dict[int, int] = {}
    latest: dict[int, int] = {}
    for pid in job.members:
        known[pid] = _opened(Path(f"/proc/{pid}/io"), "io")

    def read() -> float:
        for pid in job.members - known.keys():
            try:
                known[pid] = os.open(f"/proc/{pid}/io", os.O_RDONLY | os.O_CLOEXEC)
            except OSError:
                continue
        for pid, descriptor in known.items():
            try:
                words = os.pread(descriptor, 256, 0).split()
                latest[pid] = int(words[1]) + int(words[3])
            except (OSError, IndexError):
                continue  # it has ended: what it did stays
        return float(sum(latest.values()))

    return read, "bytes"


def block_for(changes_per_s: float) -> float:
    """Return how long a block must be, s, for a counter with that many changes a second: 20 ms, or about 10 counts.

    Raises
    ------
    MeasurementError
        When it moves so seldom that a block would take more than 5 s.

    Examples
    --------
    >>> block_for(10_000.0), block_for(250.0), block_for(20.0)
    (0.02, 0.04, 0.5)
    """
    needed = COUNTS_PER_BLOCK / changes_per_s if changes_per_s > 0.0 else float("inf")
    if needed > LONGEST_BLOCK_S:
        message = f"the progress of the job moves {changes_per_s:.2g} times a second; it must move at least 2 times"
        raise MeasurementError(message, "no-progress", "another --progress may tell more: " + ", ".join(WAYS))
    return max(SHORTEST_BLOCK_S, needed)
