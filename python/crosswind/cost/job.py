"""The job whose progress is measured: a command that is started, a process that runs already, or built-in kernels."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Sequence

from crosswind.cost import counters
from crosswind.cost.naming import shortened, stable_name
from crosswind.cost.targets import end
from crosswind.errors import DescriptionError, MeasurementError
from crosswind.host import processes
from crosswind.run.agent_process import environment

_READY_S = 30.0


class Job:
    """A job: its processes, its CPU time, its progress."""

    def __init__(self, pid: int, name: str, *, started: Sequence[subprocess.Popen[bytes]] = ()) -> None:
        self.pid, self.name = pid, name
        self._started = list(started)
        self.began = time.monotonic()
        self._cpu = processes.CpuTime()
        self._progress: Callable[[], float] | None = None
        self.progress_of, self.unit = "", ""
        self.members: set[int] = set()
        self.refresh()

    @classmethod
    def of_command(cls, command: Sequence[str]) -> Job:
        """Start a command; it inherits a standard input that is a file; what it prints goes to stderr.

        Raises
        ------
        DescriptionError
            When it cannot be started.
        """
        stdin = None if not sys.stdin.isatty() and os.path.isfile("/proc/self/fd/0") else subprocess.DEVNULL  # noqa: PTH113
        try:
            process = subprocess.Popen(list(command), stdin=stdin, stdout=sys.stderr.fileno(), process_group=0)
        except OSError as error:
            why = (error.strerror or str(error)).lower()
            raise DescriptionError(f"the job {command[0]!r} cannot be started: {why}", "job") from None
        return cls(process.pid, shortened(shlex.join(command)), started=[process])

    @classmethod
    def of_pid(cls, pid: int) -> Job:
        """Take a process that runs already, with all that descends from it.

        Raises
        ------
        DescriptionError
            When there is none.
        """
        if processes.has_ended(pid):
            raise DescriptionError(f"--job is 'pid:{pid}'; there is no such process", "job", "`ps` lists them")
        if (leader := processes.leader(pid)) != pid:
            message = f"--job is 'pid:{pid}'; {pid} is a thread of process {leader}, not a process"
            raise DescriptionError(message, "job", f"--job pid:{leader}")
        return cls(pid, stable_name(pid))

    @classmethod
    def of_kernels(cls, kernel: str, cpus: Sequence[int]) -> Job:
        """Start one built-in kernel on each of these CPUs.

        Raises
        ------
        MeasurementError
            When one does not begin within 30 s.
        """
        started, memories = [], []
        for cpu in cpus:
            memory = os.memfd_create("crosswind-counter")  # not a file: write-back to a busy disk delays the kernel
            memories.append(memory)
            os.ftruncate(memory, 8)
            command = [sys.executable, "-m", "crosswind.cost.kernel", kernel, str(cpu), f"/proc/self/fd/{memory}"]
            command.append(str(os.getpid()))
            started.append(
                subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, env=environment(), process_group=0, pass_fds=[memory]
                )
            )
        job = cls(started[0].pid, f"{kernel} on CPU {', '.join(map(str, cpus))}", started=started)
        read = [counters.counter(f"u64:/proc/self/fd/{memory}", job)[0] for memory in memories]
        for memory in memories:
            os.close(memory)
        job._progress = lambda: sum(one() for one in read)
        job.progress_of, job.unit = "kernel", "steps"
        until = time.monotonic() + _READY_S
        while not all(one() for one in read):
            if job.has_ended or time.monotonic() > until:
                job.close()
                raise MeasurementError(f"the kernel {kernel} did not begin", "no-progress")
            time.sleep(0.01)
        job.refresh()
        return job

    def measure_by(self, progress: str) -> None:
        """Read this counter from now on.

        Raises
        ------
        DescriptionError
            When it cannot be read.
        """
        self._progress, self.unit = counters.counter(progress, self)
        self.progress_of = progress

    def progress(self) -> float:
        """How far it is, in the counter's unit."""
        assert self._progress is not None  # chosen before anything is measured
        return self._progress()

    def refresh(self, without: set[int] | None = None) -> None:
        """Look which processes it has now; `without` those that are investigated, which may descend from it."""
        roots = [process.pid for process in self._started] or [self.pid]
        found = processes.with_descendants(roots) - (without or set())
        self.members = {pid for pid in found if not processes.has_ended(pid)}
        self._cpu.forget(without or set())
        self._cpu.watch(self.members)

    def cpu_ns(self) -> int:
        """CPU time of all its processes, ns."""
        return self._cpu.ns()

    def wants_s(self) -> float:
        """CPU time that it had, and that it was ready for and waited, s."""
        return self.cpu_ns() * 1e-9 + processes.waiting_s(self.members)

    @property
    def has_ended(self) -> bool:
        """Whether it, or one of its kernels, is no more."""
        if self._started:
            return any(process.poll() is not None for process in self._started)
        return processes.has_ended(self.pid)

    def close(self) -> None:
        """End what we started."""
        for process in self._started:
            end(process)


def ended_early(job: Job) -> MeasurementError:
    """Return the error of a job that ended before anything was measured."""
    message = f"the job ended within {max(time.monotonic() - job.began, 0.1):.1f} s, before anything was measured"
    hint = "the job must run longer than the measurement: a larger input, or fewer --seconds"
    return MeasurementError(message, "job-ended", hint)


def changes_per_s(job: Job, seconds: float = 0.3) -> float:
    """Return how often a job's counter moves, times a second: looked at each ms for a while, longer for a slow one.

    A job that waits for a processor moves it less often than it would: that counts by its share of what it wants.

    Raises
    ------
    MeasurementError
        When the job ends meanwhile.
    """
    had, wanted, read = job.cpu_ns(), job.wants_s(), job.progress
    begun, last, moved = time.monotonic(), read(), 0
    while (elapsed := time.monotonic() - begun) < seconds or (moved < 5 and elapsed < 4.0):
        time.sleep(0.001)
        if job.has_ended:
            raise ended_early(job)
        if (now := read()) != last:
            last, moved = now, moved + 1
    had_s, wanted_s = (job.cpu_ns() - had) * 1e-9, job.wants_s() - wanted
    return moved / elapsed * (wanted_s / had_s if 0.0 < had_s < wanted_s else 1.0)


def choose_progress(job: Job) -> None:
    """Take the most precise counter, where none was named: its input's position, its transfers, or its CPU time."""
    for progress in ("stdin-position", "io"):
        try:
            job.measure_by(progress)
        except DescriptionError:
            continue
        if changes_per_s(job) >= counters.COUNTS_PER_BLOCK / counters.LONGEST_CHOSEN_BLOCK_S:
            return
    job.measure_by("cpu")
