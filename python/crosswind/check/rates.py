"""Rates of the built-in kernels, all CPUs at the same time, in blocks in turn.

`python -m crosswind.check.rates CPU SECONDS` is the process of one CPU: it prints JSON with a list per measure,
one value a batch.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time

from crosswind import _core
from crosswind.cost.kernel import KERNELS, stepper
from crosswind.errors import MeasurementError

BATCHES = 5
"""Of one look."""
_BLOCK_S = 0.05
_NAMES = {"burn": "compute", "triad": "memory"}
LOST = "lost time"
_PATIENCE_S = 20.0


def measured(cpus: list[int], seconds: float) -> dict[str, list[float]]:
    """Return steps per own CPU second of each kernel and the share of time lost, by CPU ("compute cpu 0").

    Raises
    ------
    MeasurementError
        When a kernel does not run.
    """
    running = {
        cpu: subprocess.Popen(
            [sys.executable, "-m", "crosswind.check.rates", str(cpu), str(seconds)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for cpu in cpus
    }
    found: dict[str, list[float]] = {}
    try:
        for cpu, process in running.items():
            try:
                out, err = process.communicate(timeout=seconds + _PATIENCE_S)
            except subprocess.TimeoutExpired as error:
                raise MeasurementError(f"the kernels on CPU {cpu} did not end in time") from error
            if process.returncode:
                last = (err.strip().splitlines() or ["no message"])[-1]
                raise MeasurementError(f"the kernels did not run on CPU {cpu}: {last}")
            found |= {f"{name} cpu {cpu}": values for name, values in json.loads(out).items()}
    finally:
        for process in running.values():
            if process.poll() is None:
                process.kill()
            process.wait()
    return found


def main() -> None:
    """Measure and print JSON."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # ctrl-C is for the parent process, which ends this one
    _core.end_with_parent()
    cpu, seconds = int(sys.argv[1]), float(sys.argv[2])
    steps = {kernel: stepper(kernel, cpu) for kernel in KERNELS}
    for step in steps.values():
        step()  # pages are mapped, and the clock has risen
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
        wall = time.monotonic() - began
        found[LOST].append(max(0.0, 1.0 - (time.thread_time() - began_own) / wall))
        for kernel in steps:
            found[_NAMES[kernel]].append(done[kernel] / max(own[kernel], 1e-9))
    print(json.dumps(found))


if __name__ == "__main__":
    main()
