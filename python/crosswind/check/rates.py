"""Rates of the built-in kernels, all CPUs at the same time, in blocks in turn.

`python -m crosswind.check.rates CPU` is the process of one CPU: for each line of stdin, which says how many seconds,
it prints JSON with a list per measure, one value a batch.
"""

from __future__ import annotations

import json
import resource
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress

from crosswind import _core
from crosswind.cost.kernel import KERNELS, Kernel, stepper

BATCHES = 5
"""Of one look."""
_BLOCK_S = 0.05
_NAMES = {"burn": "compute", "triad": "memory"}
LOST = "lost time"
_OTHER_FILES = 32
"""Open files that what follows in a check needs, beside three pipes a CPU."""


class Kernels:
    """The kernels of all CPUs, each CPU's in a process of its own. A context manager.

    Processes are started once and wait between looks: on a busy host a start of Python takes longer than a look.

    Parameters
    ----------
    cpus : list of int

    Attributes
    ----------
    failed : dict
        Why a CPU was given up: its process could not be started, ended, or did not answer in time.
    """

    def __init__(self, cpus: list[int]) -> None:
        self.failed: dict[int, str] = {}
        self._running: dict[int, subprocess.Popen[str]] = {}
        self._limits = resource.getrlimit(resource.RLIMIT_NOFILE)
        soft, hard = self._limits
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
            soft = hard
        for cpu in cpus:
            if soft != resource.RLIM_INFINITY and 3 * (len(self._running) + 1) + _OTHER_FILES > soft:
                self.failed[cpu] = f"its process was not started: at most {soft} files may be open (ulimit -n)"
                continue
            try:
                self._running[cpu] = self._started(cpu)
            except OSError as error:
                self.failed[cpu] = f"its process cannot be started: {(error.strerror or str(error)).lower()}"

    def _started(self, cpu: int) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "crosswind.check.rates", str(cpu)]
        pipe = subprocess.PIPE
        return subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True)

    def wait_until_ready(self, until: float) -> None:
        """Wait until all kernels can begin at the same time; not beyond `until`, on the monotonic clock."""
        for cpu in list(self._running):
            self._line(cpu, until)

    def measured(self, seconds: float, until: float) -> dict[str, list[float]]:
        """Return steps per own CPU second of each kernel and the share of time lost, by CPU ("compute cpu 0")."""
        for cpu, process in list(self._running.items()):
            assert process.stdin is not None  # it was asked for
            try:
                process.stdin.write(f"{seconds}\n")
                process.stdin.flush()
            except OSError:
                self._give_up(cpu, "its process ended")
        found: dict[str, list[float]] = {}
        for cpu in list(self._running):
            if line := self._line(cpu, until):
                try:
                    answer = json.loads(line)
                except ValueError:
                    self._give_up(cpu, "its process ended within an answer")
                    continue
                found |= {f"{name} cpu {cpu}": values for name, values in answer.items()}
        return found

    def _line(self, cpu: int, until: float) -> str:
        """Return the next line of a process; empty where none comes."""
        process = self._running[cpu]
        assert process.stdout is not None  # it was asked for
        readable = select.poll()  # select() takes no descriptor from 1024 on, which 340 CPUs reach
        readable.register(process.stdout, select.POLLIN)
        if not readable.poll(1000 * max(until - time.monotonic(), 0.0)):
            self._give_up(cpu, "not done within the time limit: this host is overloaded")
            return ""
        if not (line := process.stdout.readline()):
            _, complaint = process.communicate()
            self._give_up(cpu, (complaint.strip().splitlines() or ["its process ended"])[-1])
        return line

    def _give_up(self, cpu: int, why: str) -> None:
        self.failed[cpu] = why
        _end(self._running.pop(cpu))

    def __enter__(self) -> Kernels:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._running.values():
            _end(process)
        with suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, self._limits)


def _end(process: subprocess.Popen[str]) -> None:
    process.kill()
    for pipe in (process.stdin, process.stdout, process.stderr):
        if pipe:
            with suppress(OSError):  # what waits in it is for no process any more
                pipe.close()
    process.wait()


def names_of(cpu: int) -> list[str]:
    """Return the measures of a CPU.

    Examples
    --------
    >>> names_of(0)
    ['compute cpu 0', 'memory cpu 0', 'lost time cpu 0']
    """
    return [f"{name} cpu {cpu}" for name in (*_NAMES.values(), LOST)]


def main() -> None:
    """Measure for as many seconds as each line of stdin says, and print JSON; at first a line when it can begin."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process, which ends this one
    _core.end_with_parent()
    steps = {kernel: stepper(kernel, int(sys.argv[1])) for kernel in KERNELS}
    for step in steps.values():
        step()  # pages are mapped, and the clock has risen
    print("ready", flush=True)
    for line in sys.stdin:
        print(json.dumps(_look(steps, float(line))), flush=True)


def _look(steps: dict[Kernel, Callable[[], object]], seconds: float) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {**{_NAMES[kernel]: [] for kernel in KERNELS}, LOST: []}
    for _ in range(BATCHES):
        done, own = dict.fromkeys(steps, 0), dict.fromkeys(steps, 0.0)
        began, began_own = time.monotonic(), time.thread_time()
        while time.monotonic() < began + seconds / BATCHES or not all(done.values()):
            for kernel, step in steps.items():
                end, before = time.monotonic() + _BLOCK_S, time.thread_time()
                while time.monotonic() < end:
                    step()
                    done[kernel] += 1
                own[kernel] += time.thread_time() - before
        wall = max(time.monotonic() - began, 1e-9)
        found[LOST].append(max(0.0, 1.0 - (time.thread_time() - began_own) / wall))
        for kernel in steps:
            found[_NAMES[kernel]].append(done[kernel] / max(own[kernel], 1e-9))
    return found


if __name__ == "__main__":
    main()
