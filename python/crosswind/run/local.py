"""A tree of agents, one process per node, on this machine or wherever a launch prefix puts them.

`run_farm` runs a whole workload and ends; `LiveFarm` stays open and takes tasks as they come. Both have the root in this
process: results are handed over without another hop.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, NamedTuple

from crosswind.platform import Platform


class Task(NamedTuple):
    """A task of the user: its input, and its work where that is known (work units; 0: not known)."""

    data: bytes | Path
    """Bytes, or a file that is streamed as it is sent."""
    work: float = 0.0
    name: str = ""
    """Names the result's file in `out`; default: the task's number."""


class Result(NamedTuple):
    """What came back of a task."""

    task: int
    """Number of the task, from 0 in the order of the source."""
    ok: bool
    data: bytes | Path
    """The result; a file where it was large or stands in `out`. Where not `ok`, the error's text in UTF-8."""
    node: str
    """Which node computed it."""


@dataclass(frozen=True)
class Work:
    """What agents do for the work of a task."""

    kind: Literal["emulated", "diagonals", "burn", "triad", "noop", "command", "callable"]
    command: str | None = None
    """Of kind command: `CMD {input} {output}`; without `{output}`, what it prints is the result."""
    function: Callable[[Any], Any] | None = None
    """Of kind callable: takes the unpickled input; sent to the agents by cloudpickle."""


@dataclass(frozen=True)
class Launch:
    """How a node's process is started."""

    prefix: Callable[[str], Sequence[str]] = lambda node: ()
    """Words before the command, by node: `["testbed.py", "exec", node, "--"]`."""
    address: Callable[[str], str] = lambda node: "127.0.0.1"
    """The address at which a node listens, as its children see it."""
    logs: Path | None = None
    """Directory of one log per process; default: one of its own, kept when something went wrong."""
    by_hand: bool = False
    """Start nobody: wait for `crosswind serve --parent` of each node."""


@dataclass(frozen=True)
class Limits:
    """When somebody is given up, s."""

    start_s: float = 30.0
    """Agents that are not there by then are done without."""
    silence_s: float = 5.0
    """An agent that says nothing for so long is lost."""
    retries: int = 0
    """How often a task that raised is tried again."""


class LiveFarm:
    """A tree of agents that takes tasks until it is closed.

    >>> with LiveFarm(platform, point, Work("callable", function=f)) as farm:  # doctest: +SKIP
    ...     farm.submit(Task(pickle.dumps(1)))
    ...     for result in farm.results(): ...
    """

    def __init__(
        self,
        platform: Platform,
        point: Mapping[str, Any],
        work: Work,
        *,
        launch: Launch = Launch(),
        limits: Limits = Limits(),
        out: Path | None = None,
        journal: Path | None = None,
        resume: bool = False,
        trace: bool = False,
        token: str | None = None,
    ) -> None:
        raise NotImplementedError

    def submit(self, task: Task) -> int:
        """Hand a task over; waits while as many wait already as the tree's buffers ask for. Its number."""
        raise NotImplementedError

    def end_of_tasks(self) -> None:
        """No more will be submitted: `results` ends with the last one."""
        raise NotImplementedError

    def results(self, timeout_s: float | None = None) -> list[Result]:
        """Results that have come, as completed; waits for at least one. Empty: all are there (or the time is over)."""
        raise NotImplementedError

    def done_before(self) -> frozenset[int]:
        """Tasks whose results the journal has already (`resume`); do not submit them again, count on."""
        raise NotImplementedError

    def close(self) -> tuple[dict[str, Any], dict[str, bytes] | None]:
        """End all agents; summary (an entry of `runs` in runs.json, params and bound left out) and trace's columns."""
        raise NotImplementedError

    def __enter__(self) -> LiveFarm:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        raise NotImplementedError


def run_farm(
    platform: Platform,
    point: Mapping[str, Any],
    work: Work,
    *,
    source: Iterable[Task] | None = None,
    sink: Callable[[Result], None] = lambda result: None,
    launch: Launch = Launch(),
    limits: Limits = Limits(),
    out: Path | None = None,
    journal: Path | None = None,
    resume: bool = False,
    trace: bool = False,
    progress: Callable[[int, int | None], None] | None = None,
) -> tuple[dict[str, Any], dict[str, bytes] | None]:
    """Run a workload on a tree of agents, one process per node.

    Parameters
    ----------
    platform : Platform
        The tree. Its root is this process.
    point : mapping
        An experiment without sweep (`Experiment` as a dict), its platform left out of account: workload, policy,
        execution (`time_scale`), seed. With a `source`, the workload's sizes are what the policy reckons with.
    work : Work
        What agents do.
    source : iterable of Task, optional
        Taken lazily, as places become free. Default: the workload's own tasks, of as many blank bytes as it says.
    sink : callable
        Called with each result, as completed, in the thread that called this.
    launch, limits
        How processes are started, and when somebody is given up.
    out : Path, optional
        Directory for results, one file each.
    journal : Path, optional
        File in which delivered results are noted; `resume` goes on where it ends.
    trace : bool
        Gather what every node did when.
    progress : callable, optional
        Called with tasks done, and how many there are where that is known.

    Returns
    -------
    dict, dict or None
        The summary: an entry of `runs` in `runs.json`, but for `params` and the bounds. The trace's columns, as
        `crosswind.run.columns.activities` takes them.

    Raises
    ------
    DescriptionError
        A wrong description; a journal of another workload.
    AgentLost
        Nobody is left who could compute.
    MeasurementError
        The disk is full, or a file of the root cannot be read or written. The journal is intact.
    """
    raise NotImplementedError
