"""Switches processors between jobs that run: one is stopped, then the next continues, as `Quanta` says.

Ranks are stopped by the guard of `crosswind inject` and `crosswind cost`: it continues them however this process ends.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TYPE_CHECKING

from crosswind import _core
from crosswind.errors import CrosswindError
from crosswind.run.quanta import Quanta

if TYPE_CHECKING:
    from crosswind.documents.program_runs import Switches

_SPIN_NS = 200_000
_PRIORITY = 1  # of the real-time policy: above everything ordinary, below the kernel's own threads


@dataclass(frozen=True)
class Switched:
    """One processor's change of jobs; times in ns of the monotonic clock, None where that job has ended.

    Attributes
    ----------
    planned_ns : int
    processor, job : int
        Which job has the processor from then on.
    stopped_ns : int or None
        When the job before was known to be stopped.
    continued_ns : int or None
        When the job was continued.
    """

    planned_ns: int
    processor: int
    job: int
    stopped_ns: int | None
    continued_ns: int | None


class Switcher:
    """Switches processors at the times of some quanta.

    Parameters
    ----------
    freezer : Freezer
        What stops and continues.
    pids : sequence of sequence of int
        By job and rank: its process. Rank r has processor r.
    quanta : Quanta
        Which job has which processor when.
    """

    def __init__(self, freezer: _core.Freezer, pids: Sequence[Sequence[int]], quanta: Quanta) -> None:
        self._freezer, self._quanta = freezer, quanta
        self._frozen = [[freezer.seize([pid]) for pid in of_job] for of_job in pids]
        self._left = quanta.switches()
        self._zero_ns = 0
        self._next: tuple[int, list[int]] = next(self._left)
        self.done: list[Switched] = []

    @property
    def how(self) -> str:
        """How ranks are stopped: "tracing" or "signals"."""
        return self._frozen[0][0].how

    @property
    def exposed(self) -> bool:
        """Whether only a watchdog process would continue them."""
        return any(target.exposed for of_job in self._frozen for target in of_job)

    def begin(self, zero_ns: int) -> None:
        """Stop whatever does not run at time 0, ns of the monotonic clock."""
        self._zero_ns = zero_ns
        for processor in range(len(self._quanta.shifts_ns)):
            for job in range(self._quanta.jobs):
                if job != self._quanta.job_at(processor, 0):
                    self._stop(job, processor, zero_ns + self._quanta.round_ns)

    def left_s(self) -> float:
        """Return the time until the next switch, s; 0 where it is due."""
        return max(self._zero_ns + self._next[0] - time.monotonic_ns(), 0) * 1e-9

    def switch(self) -> None:
        """Wait for the next switch and perform it: first all stops, then all continuations."""
        at_ns, processors = self._next
        planned_ns = self._zero_ns + at_ns
        while (left_ns := planned_ns - time.monotonic_ns()) > 0:
            if left_ns > _SPIN_NS:
                time.sleep((left_ns - _SPIN_NS) * 1e-9)
        stopped = [
            self._stop(self._quanta.job_at(processor, at_ns - 1), processor, planned_ns + self._quanta.round_ns)
            for processor in processors
        ]
        for processor, stopped_ns in zip(processors, stopped, strict=True):
            job = self._quanta.job_at(processor, at_ns)
            self.done.append(Switched(planned_ns, processor, job, stopped_ns, self._continue(job, processor)))
        self._next = next(self._left)

    def _stop(self, job: int, processor: int, due_ns: int) -> int | None:
        if processor >= len(self._frozen[job]):
            return None
        try:
            self._freezer.freeze(self._frozen[job][processor], due_ns)
        except CrosswindError as error:
            if error.code != "gone":
                raise
            return None
        return time.monotonic_ns()

    def _continue(self, job: int, processor: int) -> int | None:
        if processor >= len(self._frozen[job]):
            return None
        self._freezer.thaw(self._frozen[job][processor])
        return time.monotonic_ns()


def summary(done: Sequence[Switched], quantum_s: float) -> Switches | None:
    """Return how exactly jobs were switched; None where nothing was.

    Examples
    --------
    >>> both = [Switched(1_000, processor, 1, 1_200, 1_300 + 100 * processor) for processor in (0, 1)]
    >>> found = summary(both, 0.1)
    >>> found["count"], round(found["skew_max_s"] * 1e9), round(found["late_max_s"] * 1e9)
    (1, 100, 400)
    """
    together: dict[int, list[int]] = {}
    for one in done:
        if one.continued_ns is not None:
            together.setdefault(one.planned_ns, []).append(one.continued_ns)
    if not together:
        return None
    skews = [(max(times) - min(times)) * 1e-9 for times in together.values()]
    lates = [(max(times) - planned_ns) * 1e-9 for planned_ns, times in together.items()]
    return {
        "count": len(together),
        "skew_mean_s": fmean(skews),
        "skew_max_s": max(skews),
        "late_mean_s": fmean(lates),
        "late_max_s": max(lates),
        "quantum_s": quantum_s,
    }


@contextlib.contextmanager
def urgent() -> Iterator[bool]:
    """Give this thread real-time priority where that is permitted; whether it is."""
    before, parameters = os.sched_getscheduler(0), os.sched_getparam(0)
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, os.sched_param(_PRIORITY))
    except OSError:
        yield False
        return
    try:
        yield True
    finally:
        os.sched_setscheduler(0, before, parameters)
