"""What being seized, frozen and thawed takes, and what it costs a process to be traced.

A target of 1, 16 and 200 threads, one of which computes while the others wake every 5 ms: how long seizing takes, and
freezing and thawing (from the call to its return, all threads stopped), each 200 times, by tracing and by signals. Per
signal: a process that sends itself SIGUSR1, and per child: one that forks, waits and forks again; the time per signal
and child beside that of the same process when nothing traces it, in turns.

    python benchmarks/freezer_costs.py
"""

from __future__ import annotations

import subprocess
import sys
import time
from typing import Any

import record

from crosswind import _core

ROUNDS, TURNS = 200, 11
SIGNALS, FORKS = 20_000, 300
THREADED = """
import sys, threading, time
def wakes():
    while True: time.sleep(0.005)
for _ in range(int(sys.argv[1]) - 1): threading.Thread(target=wakes, daemon=True).start()
print("ready", flush=True)
while True: pass
"""
COUNTED = """
import os, signal, sys, time
signal.signal(signal.SIGUSR1, lambda *_: None)
me, signals, forks = os.getpid(), int(sys.argv[1]), int(sys.argv[2])
def child():
    if (pid := os.fork()) == 0: os._exit(0)
    os.waitpid(pid, 0)
for _ in sys.stdin:
    begun = time.perf_counter()
    for _ in range(signals): os.kill(me, signal.SIGUSR1)
    between = time.perf_counter()
    for _ in range(forks): child()
    print((between - begun) / signals, (time.perf_counter() - between) / forks, flush=True)
"""


def latencies(threads: int, *, by_signals: bool) -> dict[str, Any]:
    """Seize, freeze and thaw a process with this number of threads."""
    command = [sys.executable, "-S", "-c", THREADED, str(threads)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as target:
        assert target.stdout is not None  # it was asked for
        target.stdout.readline()
        freezer = _core.Freezer()
        begun = time.perf_counter()
        found = freezer.seize([target.pid], by_signals=by_signals)
        seize_s = time.perf_counter() - begun
        freeze, thaw = [], []
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            freezer.freeze(found, time.monotonic_ns() + 10**9)
            frozen = time.perf_counter()
            time.sleep(0.005)
            thawing = time.perf_counter()
            freezer.thaw(found)
            thaw.append(time.perf_counter() - thawing)
            freeze.append(frozen - begun)
            time.sleep(0.005)
        freezer.close()
        target.kill()
    shown = {"freeze_s": record.spread(freeze), "thaw_s": record.spread(thaw)}
    print(threads, "signals" if by_signals else "tracing", f"seize {1e6 * seize_s:.0f} us", end="")
    print("".join(f", {name[:-2]} {1e6 * each['median']:.0f} us" for name, each in shown.items()), flush=True)
    return {"threads": threads, "by": "signals" if by_signals else "tracing", "seize_s": seize_s, **shown}


def costs() -> dict[str, Any]:
    """Count what a signal and a child cost a process with and without a tracer."""
    command = [sys.executable, "-S", "-c", COUNTED, str(SIGNALS), str(FORKS)]
    found: dict[str, list[float]] = {"signal_s": [], "signal_traced_s": [], "fork_s": [], "fork_traced_s": []}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as target:
        assert target.stdin is not None  # both were asked for
        assert target.stdout is not None
        for turn in range(2 * TURNS):
            freezer = _core.Freezer() if turn % 2 else None
            if freezer:
                freezer.seize([target.pid])
            target.stdin.write("\n")
            target.stdin.flush()
            of_signal, of_fork = map(float, target.stdout.readline().split())
            traced = "_traced" if freezer else ""
            found[f"signal{traced}_s"].append(of_signal)
            found[f"fork{traced}_s"].append(of_fork)
            if freezer:
                freezer.close()
        target.kill()
    shown = {name: record.spread(values) for name, values in found.items()}
    print(", ".join(f"{name[:-2]} {1e6 * each['median']:.1f} us" for name, each in shown.items()), flush=True)
    return shown


def main() -> None:
    """Measure both, and write the record."""
    cost = costs()
    found = [latencies(threads, by_signals=by) for threads in (1, 16, 200) for by in (False, True)]
    print(record.write("freezer_costs", [], latencies=found, costs=cost))


if __name__ == "__main__":
    main()
