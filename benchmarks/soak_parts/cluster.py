"""A farm on a Dask cluster that loses its scheduler, a worker or its agents, again and again."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import cloudpickle

import crosswind
from crosswind.errors import AgentLost
from crosswind.run.agents import Limits
from crosswind.run.deployment import Placing
from soak_parts.left import Ground

KINDS = ("scheduler closed", "scheduler killed", "worker closed", "worker killed", "all agents killed")
CALLS = 400
MOST_BEFORE_A_FAULT = 150
ENDS_S = 90.0
"""After a fault every future ends within this."""
UP_S = 60.0

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def slowly(number: int) -> int:
    """Take a while."""
    import time

    time.sleep(0.01)
    return number * number


@contextlib.contextmanager
def _cluster(folder: Path) -> Iterator[list[subprocess.Popen[bytes]]]:
    """Start a scheduler and two workers as processes; end them."""
    where = ["--scheduler-file", str(folder / "scheduler.json"), "--no-dashboard"]
    kinds = [["dask_scheduler", "--host", "127.0.0.1", "--port", "0"]]
    kinds += [["dask_worker", "--nthreads", "1", "--no-nanny"]] * 2
    with (folder / "cluster.log").open("wb") as log:
        processes = [
            subprocess.Popen(
                [sys.executable, "-m", f"distributed.cli.{kind}", *words, *where],
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=folder,
            )
            for kind, *words in kinds
        ]
    try:
        yield processes
    finally:
        for process in processes:
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _agents(ground: Ground) -> list[int]:
    found = []
    for pid in ground.processes():
        with contextlib.suppress(OSError):
            if b"crosswind.run.agent" in Path(f"/proc/{pid}/cmdline").read_bytes():
                found.append(pid)
    return found


def _happen(kind: str, processes: list[subprocess.Popen[bytes]], ground: Ground, draw: random.Random) -> None:
    if kind == "all agents killed":
        for pid in _agents(ground):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        return
    what, how = kind.split()
    chosen = processes[0] if what == "scheduler" else draw.choice(processes[1:])
    chosen.send_signal(signal.SIGTERM if how == "closed" else signal.SIGKILL)


def _round(kind: str, folder: Path, ground: Ground, draw: random.Random) -> dict[str, Any]:
    """Have one thing happen to a fresh cluster; what became of the calls."""
    from distributed import Client

    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with _cluster(folder) as processes, contextlib.ExitStack() as stack:
        until = time.monotonic() + UP_S
        while not (folder / "scheduler.json").exists():
            if time.monotonic() > until:
                raise RuntimeError(f"no scheduler: {(folder / 'cluster.log').read_text()[-1000:]}")
            time.sleep(0.05)
        client = stack.enter_context(
            Client(scheduler_file=str(folder / "scheduler.json"), set_as_default=False, timeout=5)
        )
        client.wait_for_workers(2, timeout=UP_S)
        farm = crosswind.Farm(client, placing=Placing(per="worker"), limits=Limits(start_s=5.0, silence_s=1.0))
        calls: list[Future[int]] = [farm.submit(slowly, number) for number in range(CALLS)]
        before = draw.randint(0, MOST_BEFORE_A_FAULT)
        with contextlib.suppress(AgentLost):
            calls[before].result(UP_S)
        happened = time.monotonic()
        _happen(kind, processes, ground, draw)
        for number, call in enumerate(calls):
            try:
                value = call.result(max(happened + ENDS_S - time.monotonic(), 0.0))
                outcomes["done"] += 1
                if value != number * number:
                    wrong.append(f"call {number} gave {value}")
            except AgentLost:
                outcomes["AgentLost"] += 1
            except TimeoutError:
                outcomes["hanging"] += 1
            except Exception as error:  # no call of these raises
                wrong.append(f"call {number} raised {error!r}")
        ended_s = time.monotonic() - happened
        ending = threading.Thread(target=farm.shutdown, daemon=True)
        ending.start()
        ending.join(ENDS_S)
        if ending.is_alive():
            wrong.append(f"{kind}: the farm's shutdown took more than {ENDS_S:.0f} s")
    return {"outcomes": outcomes, "wrong": wrong, "ended_s": ended_s}


def soak(seconds: float, seed: int, ground: Ground) -> dict[str, Any]:
    """Run once; what happened, and what became of the calls."""
    draw, until = random.Random(f"cluster {seed}"), time.monotonic() + seconds
    faults: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    longest_s, gone_s = 0.0, 0.0
    while time.monotonic() < until:
        # Each kind once before any comes again.
        kind = draw.choice([kind for kind in KINDS if faults[kind] == min(faults[kind] for kind in KINDS)])
        folder = ground.path / f"cluster-{faults.total()}"
        folder.mkdir()
        found = _round(kind, folder, ground, draw)
        faults[kind] += 1
        outcomes.update(found["outcomes"])
        wrong += found["wrong"]
        took_s, left = ground.gone()
        if left:
            wrong.append(f"after {kind} there is: {left}")
        longest_s, gone_s = max(longest_s, found["ended_s"]), max(gone_s, took_s)
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "tasks": CALLS * faults.total(),
        "faults": dict(sorted(faults.items())),
        "outcomes": dict(sorted(outcomes.items())),
        "hanging": outcomes["hanging"],
        "wrong": wrong,
        "longest_until_every_future_ended_s": round(longest_s, 3),
        "longest_until_all_processes_are_gone_s": round(gone_s, 3),
    }
