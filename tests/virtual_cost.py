"""Sessions of `crosswind cost` in virtual time: the real `Session`, beside a daemon whose every burst is known.

One CPU. The daemon takes it whenever it has work, the job gets the rest, less what third parties of a fixed demand
take. Nothing sleeps: the session's clock is moved by its own calls.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
from costly import HOST

from crosswind.cost import session as sessions
from crosswind.cost.blocks import FIELDS
from crosswind.cost.result import Cost
from crosswind.statistics.interim import Looks

STEP_S = 0.02
"""No more time than this passes at once, so that noise and bursts meet within it."""
READING_S = 30e-6


@dataclass(frozen=True)
class Daemon:
    """What works in bursts.

    Attributes
    ----------
    burst_s : float
        CPU time of one.
    every_s : float
        From one to the next, on average.
    at_random : bool
        Whether intervals are drawn (exponentially) or all the same, from a random phase on.
    piles_up : bool
        Whether what falls due while it is stopped is done later, or lost.
    kappa : float
        Seconds that the job loses per second of CPU time.
    also : Daemon or None
        More of another kind.
    """

    burst_s: float
    every_s: float
    at_random: bool = False
    piles_up: bool = False
    kappa: float = 1.0
    also: Daemon | None = None

    @property
    def duty(self) -> float:
        """CPU s per s while nothing stops it."""
        return self.burst_s / self.every_s + (self.also.duty if self.also else 0.0)

    def starts(self, draw: np.random.Generator, length_s: float) -> list[tuple[float, float]]:
        """Return when its bursts fall due, and how long each is."""
        if self.at_random:
            gaps = draw.exponential(self.every_s, 10 + int(3 * length_s / self.every_s))
        else:
            gaps = np.full(2 + int(length_s / self.every_s), self.every_s)
            gaps[0] *= draw.uniform()
        found = [(float(at), self.burst_s) for at in np.cumsum(gaps) if at < length_s]
        return sorted(found + (self.also.starts(draw, length_s) if self.also else []))


class World:
    """A CPU, a daemon, a job and a clock."""

    def __init__(
        self, daemon: Daemon, seed: int, length_s: float, *, others: float = 0.0, noise: float = 0.01, rest: float = 1.0
    ) -> None:
        self.draw = np.random.default_rng([seed, 7])
        self.daemon, self.others, self.noise = daemon, others, noise
        self.bursts, self.next = daemon.starts(self.draw, 2.0 * length_s + 60.0), 0
        self.now = self.x_s = self.job_s = self.work = 0.0
        self.waiting: list[float] = []
        self.stopped = False
        self.rest = rest
        self.wander = 0.0

    def sleep(self, seconds: float) -> None:
        """Let time pass."""
        until = self.now + max(seconds, 1e-9)  # the clock must move, as a real one does
        while self.now < until - 1e-12:
            self._pass(min(until - self.now, STEP_S))

    def _pass(self, step: float) -> None:
        end = self.now + step
        used = 0.0
        while self.next < len(self.bursts) and self.bursts[self.next][0] < end:
            self.waiting.append(self.bursts[self.next][1])
            self.next += 1
        free = step * (1.0 - self.others)
        if self.daemon.piles_up:
            if not self.stopped:
                while self.waiting and used < free:
                    part = min(self.waiting[0], free - used)
                    used += part
                    self.waiting[0] -= part
                    if self.waiting[0] <= 1e-12:
                        self.waiting.pop(0)
        elif self.waiting:
            part = min(sum(self.waiting), free)
            used = 0.0 if self.stopped else part
            left = part
            while self.waiting and left > 1e-12:
                gone = min(self.waiting[0], left)
                self.waiting[0] -= gone
                left -= gone
                if self.waiting[0] <= 1e-12:
                    self.waiting.pop(0)
        self.wander = 0.9 * self.wander + 0.1 * self.draw.standard_normal()
        rate = 1.0 + self.noise * (self.wander + self.draw.standard_normal() * (STEP_S / step) ** 0.5)
        had = free - used
        self.x_s += used
        self.job_s += had
        self.work += max(had - (self.daemon.kappa - 1.0) * used, 0.0) * max(rate, 0.0) * 1e6
        self.now = end

    def clock(self) -> Any:
        """Return what stands for the module `time` in a session."""
        return SimpleNamespace(
            monotonic=lambda: self.now, monotonic_ns=lambda: round(self.now * 1e9), sleep=self.sleep, time=lambda: 1.7e9
        )


def _target(world: World) -> Any:
    def freeze(due_ns: int) -> None:
        world.sleep(READING_S)
        world.stopped = True

    def thaw() -> None:
        world.sleep(READING_S)
        world.stopped = False

    used = SimpleNamespace(ns=lambda: round(world.x_s * 1e9), watch=lambda pids: None)
    return SimpleNamespace(
        text="pid:100", name="agent", cpu=used, members={-1}, process=None, is_gone=False, group=None, roots=[],
        incomplete=lambda: None,
        total_s=lambda: world.x_s,
        freeze=freeze, thaw=thaw, defer=lambda due_ns: None, refresh=lambda: None, close=thaw,
    )  # fmt: skip


def _job(world: World) -> Any:
    def progress() -> float:
        world.sleep(READING_S)
        return world.work

    return SimpleNamespace(
        pid=-2, name="solver", members=set(), progress_of="kernel", unit="steps", progress=progress,
        cpu_ns=lambda: round(world.job_s * 1e9), wants_s=lambda: world.now, has_ended=False,
        refresh=lambda without=None: None, close=lambda: None,
    )  # fmt: skip


def measured(
    daemon: Daemon,
    seed: int,
    seconds: float = 60.0,
    *,
    margin: float = 0.01,
    to_the_end: bool = False,
    age_s: float = 0.0,
    change: Callable[[World], None] = lambda world: None,
    **world: Any,
) -> Cost:
    """Return what a session finds beside a daemon.

    Parameters
    ----------
    daemon : Daemon
        What is stopped and continued.
    seed : int
        Of bursts, noise and order of blocks.
    seconds : float
        Time limit of the session, s.
    margin : float
        What is tolerated, as a share.
    to_the_end : bool
        One look.
    age_s : float
        How long the daemon has lived before, s; 0: it is not known.
    change : callable
        Told the world before the session begins.
    """
    from crosswind.cost import undisturbed_part

    it = World(daemon, seed, seconds, **world)
    change(it)
    settings = sessions.Settings(seconds, undisturbed_part(seconds), None, to_the_end, False, seed)
    looks = Looks(planned_s=seconds - settings.undisturbed_s, one=to_the_end)
    lived = np.random.default_rng([seed, 8])
    of = {"text": "pid:100", "name": "agent", "how": "signals", "cpus": [1]}
    if age_s:
        before_s = sum(burst for _, burst in daemon.starts(lived, age_s))
        of |= {"age_s": age_s, "used_s": before_s}
    document = {
        "schema_version": 1,
        "kind": "cost",
        "crosswind": "0.0.0",
        "margin": margin,
        "of": [of],
        "job": {
            "name": "solver", "command": None, "progress": "kernel", "unit": "steps", "cpus": [1], "wants_cpus": 0.0,
            "block_s": 0.0,
        },
        "host": HOST,
        "steal_share": 0.0,
        "looks": looks.to_dict(),
        "undisturbed": {"wall_s": [], "cpu_s": []},
        "quads": {name: [] for name in ("contrast", "at_s", *FIELDS)},
        "warnings": [],
    }  # fmt: skip
    with (
        mock.patch.object(sessions, "time", it.clock()),
        mock.patch.object(sessions.processes, "cpus_of", return_value={1}),
        mock.patch.object(sessions.processes, "is_ready", return_value=True),
        mock.patch.object(sessions, "_stolen", lambda before=None: (1, 0) if before is None else 0.0),
    ):
        session = sessions.Session([_target(it)], _job(it), settings, document)  # type: ignore[arg-type]
        session._begun = it.now
        return session.run()


def slower(daemon: Daemon, factor: float) -> Daemon:
    """Return the same with bursts as many times as long."""
    return replace(daemon, burst_s=daemon.burst_s * factor)
