"""A farm on a Dask cluster to which something happens, a fresh one each time.

The scheduler, a worker or agents are closed, killed or stopped, calls are cancelled, all get a part of a CPU, or the
files of a command change.
"""

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
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from pathlib import Path
from typing import Any

import cloudpickle

import crosswind
from crosswind.errors import AgentLost
from crosswind.run.agents import Limits
from crosswind.run.deployment import Placing
from crosswind.run.deployments import deployed
from soak_parts.files import FILES, map_changing_files
from soak_parts.left import Ground
from soak_parts.quota import Quota

LOSING = ("scheduler closed", "scheduler killed", "worker closed", "worker killed", "all agents killed")
"""After these a call may end with `AgentLost`; after the others it has its value."""
STOPPING = ("scheduler stopped", "worker stopped", "worker stopped for good", "agent stopped", "agent stopped for good")
CHANGING = "files change"
KINDS = (*LOSING, *STOPPING, "calls cancelled", "quota", CHANGING)
CALLS = 400
CANCELS = 60
LASTS_S = (0.2, 4.0)
"""A stop or a quota: from much less than the silence after which an agent is given up to much more."""
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


def _happen(
    kind: str, processes: list[subprocess.Popen[bytes]], ground: Ground, draw: random.Random, held: contextlib.ExitStack
) -> None:
    """Have something happen to processes; what lasts is undone in time, and at the latest when `held` is closed."""
    what, _, how = kind.partition(" ")
    if kind == "all agents killed":
        chosen = _agents(ground)
    elif what == "agent":
        chosen = [draw.choice(_agents(ground))]
    else:
        chosen = [processes[0].pid if what == "scheduler" else draw.choice(processes[1:]).pid]
    number = {"closed": signal.SIGTERM, "killed": signal.SIGKILL, "agents killed": signal.SIGKILL}.get(
        how, signal.SIGSTOP
    )

    def send(number: int) -> None:
        for pid in chosen:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)

    send(number)
    if how == "stopped":
        _later(draw, held, lambda: send(signal.SIGCONT))


def _later(draw: random.Random, held: contextlib.ExitStack, undo: Callable[[], None]) -> None:
    timer = threading.Timer(draw.uniform(*LASTS_S), undo)
    timer.start()
    held.callback(timer.join)


def _starve(ground: Ground, draw: random.Random, held: contextlib.ExitStack) -> None:
    """Give all processes a part of a CPU for a while, where there is a control group for that."""
    quota = Quota(ground)
    held.callback(quota.remove)
    if quota.is_there:
        quota.begin()
        _later(draw, held, quota.lift)


def _cancel(calls: list[Future[int]], draw: random.Random) -> set[int]:
    """Cancel some calls, and return which."""
    return {number for number in draw.sample(range(CALLS), CANCELS) if calls[number].cancel()}


def _round(kind: str, folder: Path, ground: Ground, draw: random.Random) -> dict[str, Any]:
    """Have one thing happen to a fresh cluster; what became of the calls."""
    from distributed import Client

    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    with _cluster(folder) as processes, contextlib.ExitStack() as stack, contextlib.ExitStack() as held:
        until = time.monotonic() + UP_S
        while not (folder / "scheduler.json").exists():
            if time.monotonic() > until:
                raise RuntimeError(f"no scheduler: {(folder / 'cluster.log').read_text()[-1000:]}")
            time.sleep(0.05)
        client = stack.enter_context(
            Client(scheduler_file=str(folder / "scheduler.json"), set_as_default=False, timeout=5)
        )
        client.wait_for_workers(2, timeout=UP_S)
        placing = Placing(per="worker")
        if kind == CHANGING:
            launch = stack.enter_context(deployed(client, placing))
            found = map_changing_files(folder / "files", draw, launch=launch)
            return {"outcomes": outcomes, "wrong": found["wrong"], "odd": found["odd"], "ended_s": 0.0}
        limits = Limits(start_s=5.0 if kind in LOSING else UP_S, silence_s=1.0)
        farm = crosswind.Farm(client, placing=placing, limits=limits)
        calls: list[Future[int]] = [farm.submit(slowly, number) for number in range(CALLS)]
        before = draw.randint(0, MOST_BEFORE_A_FAULT)
        with contextlib.suppress(AgentLost):
            calls[before].result(UP_S)
        happened, cancelled = time.monotonic(), set[int]()
        if kind == "calls cancelled":
            cancelled = _cancel(calls, draw)
        elif kind == "quota":
            _starve(ground, draw, held)
        else:
            _happen(kind, processes, ground, draw, held)
        for number, call in enumerate(calls):
            try:
                value = call.result(max(happened + ENDS_S - time.monotonic(), 0.0))
                outcomes["done"] += 1
                if value != number * number or number in cancelled:
                    wrong.append(f"{kind}: call {number} gave {value}")
            except AgentLost as error:
                outcomes["AgentLost"] += 1
                if kind not in LOSING:
                    wrong.append(f"{kind}: call {number}: {error!r}")
            except CancelledError:
                outcomes["cancelled"] += 1
                if number not in cancelled:
                    wrong.append(f"{kind}: call {number} is cancelled")
            except TimeoutError:
                outcomes["hanging"] += 1
            except Exception as error:  # no call of these raises
                wrong.append(f"{kind}: call {number} raised {error!r}")
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
    odd: Counter[str] = Counter()
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
        odd.update(found.get("odd", {}))
        wrong += found["wrong"]
        took_s, left = ground.gone()
        if left:
            wrong.append(f"after {kind} there is: {left}")
        longest_s, gone_s = max(longest_s, found["ended_s"]), max(gone_s, took_s)
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "tasks": CALLS * (faults.total() - faults[CHANGING]) + FILES * faults[CHANGING],
        "faults": dict(sorted(faults.items())),
        "files": dict(sorted(odd.items())),
        "outcomes": dict(sorted(outcomes.items())),
        "hanging": outcomes["hanging"],
        "wrong": wrong,
        "longest_until_every_future_ended_s": round(longest_s, 3),
        "longest_until_all_processes_are_gone_s": round(gone_s, 3),
    }
