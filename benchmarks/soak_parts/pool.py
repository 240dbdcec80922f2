"""A farm used as a pool on this machine: calls are cancelled, agents are stopped, killed, and get a part of a CPU."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import CancelledError, Future
from functools import partial
from pathlib import Path
from typing import Any

import cloudpickle

import crosswind
from crosswind.errors import AgentLost
from crosswind.run.agents import Limits
from crosswind.run.calls import CallError
from soak_parts.files import FILES, map_changing_files
from soak_parts.left import Ground
from soak_parts.quota import Quota

CALLS = 600
NODES = 3
ENDS_S = 120.0
"""Every future of a round, and the round, ends within this."""
EVERY_S = 0.4
"""Mean time between two things that happen to a farm."""
STOPPED_S = 0.3
KINDS = ("agent stopped", "agent stopped for good", "agent killed", "call cancelled", "quota", "quota lifted")
_FATES = ("stops itself", "ends itself", "raises", "leaves a process")

cloudpickle.register_pickle_by_value(sys.modules[__name__])


def fate(seed: str, number: int) -> str:
    """Return what a call does beside its work, the same each time."""
    draw = random.Random(f"{seed} fate {number}").random()
    return _FATES[int(draw * 100)] if draw * 100 < len(_FATES) else ""


def work(seed: str, number: int) -> int:
    """Return the square of a number, in some milliseconds, if its fate lets it."""
    import os
    import signal
    import subprocess
    import time

    what = fate(seed, number)
    if what == "stops itself":
        os.kill(os.getpid(), signal.SIGSTOP)
    elif what == "ends itself":
        os._exit(3)
    elif what == "raises":
        raise ValueError(number)
    elif what == "leaves a process":
        subprocess.Popen(["sleep", "1000"])
    time.sleep(0.002 * (number % 10))
    return number * number


class _Happenings:
    """Has things happen to the agents and calls of a farm while it is entered."""

    def __init__(self, ground: Ground, draw: random.Random, calls: list[Future[int]], quota: Quota) -> None:
        self._ground, self._draw, self._calls, self._quota = ground, draw, calls, quota
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="happenings")
        self.happened: Counter[str] = Counter()
        self.cancelled: set[int] = set()
        self.error: BaseException | None = None

    def _run(self) -> None:
        kinds = [kind for kind in KINDS if self._quota.is_there or "quota" not in kind]
        try:
            while not self._over.wait(self._draw.expovariate(1 / EVERY_S)):
                kind = self._draw.choice(kinds)
                if self._do(kind):
                    self.happened[kind] += 1
        except BaseException as error:  # it fails the round, in the thread that waits
            self.error = error

    def _do(self, kind: str) -> bool:
        if kind == "call cancelled":
            number = self._draw.randrange(CALLS)
            if self._calls[number].cancel():
                self.cancelled.add(number)
                return True
            return False
        if kind == "quota":
            self._quota.begin()
            return True
        if kind == "quota lifted":
            self._quota.lift()
            return True
        agents = [pid for pid in self._ground.processes() if b"crosswind.run.agent" in _command_line(pid)]
        if not agents:
            return False
        pid = self._draw.choice(agents)
        number = signal.SIGKILL if kind == "agent killed" else signal.SIGSTOP
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, number)
            if kind == "agent stopped":
                self._over.wait(STOPPED_S)
                os.kill(pid, signal.SIGCONT)
        return True

    def __enter__(self) -> _Happenings:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()


def _command_line(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def _calls(seed: str, ground: Ground, draw: random.Random) -> dict[str, Any]:
    """Submit calls while things happen; what became of them."""
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    quota, until = Quota(ground), time.monotonic() + ENDS_S
    happened: Counter[str] = Counter()
    try:
        with crosswind.Farm(max_workers=NODES, limits=Limits(silence_s=1.0, start_s=60.0), quiet=True) as farm:
            calls = [farm.submit(work, seed, number) for number in range(CALLS)]
            with _Happenings(ground, draw, calls, quota) as happenings:
                for number, call in enumerate(calls):
                    outcome = _outcome(call, until)
                    outcomes[outcome if isinstance(outcome, str) else "done"] += 1
                    if fault := _fault(outcome, number, fate(seed, number), number in happenings.cancelled):
                        wrong.append(f"{seed}: call {number}: {fault}")
            happened = happenings.happened
            if happenings.error is not None:
                raise happenings.error
            if outcomes["hanging"]:
                farm.interrupt()
    finally:
        quota.remove()
    return {"outcomes": outcomes, "happened": happened, "wrong": wrong}


def _outcome(call: Future[int], until: float) -> int | str:
    try:
        return call.result(max(until - time.monotonic(), 0.0))
    except CancelledError:
        return "cancelled"
    except TimeoutError:
        return "hanging"
    except CallError:
        return "given up"
    except AgentLost:
        return "AgentLost"
    except ValueError:
        return "raised"


def _fault(outcome: int | str, number: int, fated: str, is_cancelled: bool) -> str | None:
    """Return what is wrong with an outcome. A call that is not cancelled and does no harm must have its value."""
    if is_cancelled:
        return None if outcome == "cancelled" else f"cancelled, and {outcome}"
    if fated == "stops itself" and outcome == number * number:
        return None  # a stop from outside ended, and with it its own
    expected = {"stops itself": "given up", "ends itself": "given up", "raises": "raised"}.get(fated, number * number)
    return None if outcome == expected else f"{outcome} instead of {expected}"


def _within(what: str, run: Callable[[], dict[str, Any]]) -> dict[str, Any]:
    """Run a part of a round on a thread, which may take so long and no longer."""
    found: dict[str, Any] = {"wrong": [f"{what}: it did not end within {2 * ENDS_S:.0f} s"]}

    def keep() -> None:
        try:
            found.update(run())
        except BaseException as error:
            found["wrong"] = [f"{what}: {error!r}"]

    thread = threading.Thread(target=keep, daemon=True)
    thread.start()
    thread.join(2 * ENDS_S)
    return found


def soak(seconds: float, seed: int, ground: Ground) -> dict[str, Any]:
    """Run rounds until the time is over; what happened, and what became of calls and files."""
    until = time.monotonic() + seconds
    happened: Counter[str] = Counter()
    outcomes: Counter[str] = Counter()
    wrong: list[str] = []
    gone_s, rounds = 0.0, 0
    while time.monotonic() < until and not wrong:
        name = f"{seed}-{rounds}"
        draw, folder = random.Random(f"pool {name}"), ground.path / f"pool-{name}"
        calls = _within(f"calls {name}", partial(_calls, name, ground, draw))
        files = _within(f"files {name}", partial(map_changing_files, folder, draw, max_workers=NODES))
        happened += calls.get("happened", Counter()) + files.get("odd", Counter())
        outcomes += calls.get("outcomes", Counter())
        wrong += calls["wrong"] + files["wrong"]
        took_s, left = ground.gone()
        if left:
            wrong.append(f"after round {name} there is: {left}")
        gone_s, rounds = max(gone_s, took_s), rounds + 1
        shutil.rmtree(folder, ignore_errors=True)
    return {
        "rounds": rounds,
        "tasks": rounds * (CALLS + FILES),
        "faults": dict(sorted(happened.items())),
        "outcomes": dict(sorted(outcomes.items())),
        "hanging": outcomes["hanging"],
        "wrong": wrong,
        "longest_until_all_processes_are_gone_s": round(gone_s, 3),
    }
