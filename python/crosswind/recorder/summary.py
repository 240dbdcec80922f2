"""What is said of a recording, beside what is in its file."""

from __future__ import annotations

from typing import NotRequired, TypedDict

from crosswind.errors import Notice


class Cause(TypedDict):
    """What had the processors while ranks could have run."""

    name: str
    pid: int | None
    """None: no process, such as a quota."""
    cgroup: str | None
    container: NotRequired[str]
    recorder: NotRequired[bool]
    """Whether it is the recorder itself."""
    seconds: NotRequired[float]
    """How long all ranks together were away for it."""


class KernelTrace(TypedDict):
    """Whether the kernel's trace was read."""

    used: bool
    why: str | None
    """Why it was not."""
    lost_events: int
    full: NotRequired[bool]
    host_id: NotRequired[str]


class Head(TypedDict):
    """What a file's first line has, beside its format and its ranks."""

    command: list[str]
    started: str
    seconds: float
    exit: int | None
    crosswind: str
    library: str | None
    kernel_trace: KernelTrace


class Summary(TypedDict):
    """What was recorded."""

    command: list[str]
    files: list[str]
    """One for each MPI program that the command ran."""
    seconds: float
    exit_status: int | None
    """None: a signal ended it."""
    exit_signal: int | None
    interrupted: bool
    world_size: int
    ranks: int
    unfinished: list[int]
    """Ranks that did not reach MPI_Finalize."""
    missing: list[int]
    lost: int
    """Records that could not be written."""
    cpu_clock: str
    records: int
    bytes: int
    library: str | None
    kernel_trace: KernelTrace
    causes: list[Cause]
    """What kept ranks from running, the worst first, 20 at most."""
    complete: bool
    worlds: int
    """How many MPI programs there were."""
    skipped: int
    """How many of them are in no file."""
    removed: list[Notice]
