"""The matrix of this machine: burners and pings as real processes, run by run, kept as they come in.

How much a burner computes, and for how long spin-block asks before it blocks, is found out first and then stays.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

from crosswind import _core
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.atomic import write_json
from crosswind.files.output import writable
from crosswind.host import priority
from crosswind.host.activity import Snapshot
from crosswind.host.description import describe
from crosswind.measure.peer_process import peer_process
from crosswind.overlap.options import Options, Step, Wait
from crosswind.overlap.programs import run_together
from crosswind.overlap.result import SCHEMA_VERSION, Overlap, cells_of
from crosswind.serve import greet
from crosswind.terminal.progress import Advance

Message = dict[str, Any]

CALIBRATION_S = 0.2
SPIN_MESSAGES = 500
SPIN_TRIALS = 5
SPIN_S = (1e-6, 1e-3)
"""Least and most that spin-block asks: a wake-up takes a few us, and some tens on a virtual machine that sleeps."""
FIRST_GUESS = 0.5
"""How long messages of a kind take alone, of `burn_s`, until it is known: for the time left only."""
QUIET_CPUS = 0.1
"""More of others' work, CPUs' worth in the median run, and the figures are not this matrix's alone."""


@dataclass
class Session:
    """A matrix that is being measured.

    Attributes
    ----------
    asked : Options
        What is measured.
    cpus : tuple of int
        Where burners, pings and a peer of our own run.
    peer : str or None
        HOST:PORT; None: a peer of our own on this machine.
    limit_s : float
        The longest that one run may take, s.
    document : dict
        The file but for its cells.
    token, tls : str or None
        What the peer asks for; in no file.
    """

    asked: Options
    cpus: tuple[int, ...]
    peer: str | None
    limit_s: float
    document: Message = field(default_factory=dict)
    token: str | None = field(default=None, repr=False)
    tls: str | None = None

    def settings(self) -> Message:
        """Return what must be the same for runs to stand in one file."""
        return {
            "waits": list(self.asked.waits),
            "nices": list(self.asked.nices),
            "pings": [list(one) for one in self.asked.exchanges],
            "burn_s": self.asked.burn_s,
            "burners": self.asked.burners,
            "seed": self.asked.seed,
            "cpus": list(self.cpus),
            "peer": self.peer,
        }

    @property
    def result(self) -> Overlap:
        """What is known so far."""
        document = {**self.document, "warnings": self.document["warnings"] + self._warnings_of_runs()}
        return Overlap.judged(document, cells_of(document["runs"], self.asked.cell_keys()))

    def _warnings_of_runs(self) -> list[Notice]:
        runs = self.document["runs"]
        others = median(run["others_cpus"] for run in runs) if runs else 0.0
        if others <= QUIET_CPUS:
            return []
        message = f"others used {others:.2f} CPUs in the median run: they computed beside burners and messages"
        return [warning("overlap-not-quiet", message, "`crosswind doctor` names them; end them, or wait")]


def measure(session: Session, out: Path | None, resume: bool, force: bool, progress: Advance | None) -> Overlap:
    """Make every run that is missing.

    Raises
    ------
    DescriptionError
        When a nice level is not permitted, or `out` holds another matrix.
    MeasurementError, AgentLost
        When a program fails, a run takes longer than `limit_s`, or the peer goes away; the runs so far stand in `out`.
    KeyboardInterrupt
        After ctrl-C; the runs so far stand in `out`.
    """
    lowest = priority.lowest_nice()
    if min(session.asked.nices) < lowest:
        message = f"nice is {min(session.asked.nices)}; the lowest that is permitted here is {lowest}"
        raise DescriptionError(message, "nice", "as root, or after `sudo prlimit --pid $$ --nice=40:40`")
    session.document = _document(session)
    # With resume, reading what is there says whether it is of this matrix.
    of = {} if resume else {"on": "live", "asked": session.settings()}
    writable(out, "overlap", force=force and not resume, of=of)
    least = _held_by(out) if out and not resume and out.exists() else 0
    kept = _kept(session, out) if out and resume else None
    with _other_end(session) as address:
        there = greet(address, session.token, session.tls)
        found = {"host": there["host"], "loopback": there["loopback"], "rtt_s": there["rtt_s"]}
        session.document |= {"peer": found, "warnings": _warnings(session, found)}
        if kept is not None:
            session.document |= kept
        bench = _Bench(session, address)
        if "iterations" not in session.document:
            session.document["iterations"] = max(
                1, round(_core.burn_iterations_per_s(CALIBRATION_S) * session.asked.burn_s)
            )
        if "spin_s" not in session.document and "spin-block" in session.asked.waits:
            session.document["spin_s"] = bench.wake_up_s()
        _run_missing(session, bench, out, least, progress)
    return session.result


def _other_end(session: Session) -> AbstractContextManager[str]:
    return nullcontext(session.peer) if session.peer is not None else peer_process(session.cpus)


def _document(session: Session) -> Message:
    return {
        "schema_version": SCHEMA_VERSION,
        "kind": "overlap",
        "on": "live",
        "cpus": len(session.cpus),
        "burners": session.asked.burners,
        "asked_burn_s": session.asked.burn_s,
        "repetitions": session.asked.repetitions,
        "seed": session.asked.seed,
        "host": describe(session.cpus),
        "asked": session.settings(),
        "runs": [],
        "warnings": [],
    }


def _kept(session: Session, out: Path) -> Message | None:
    """Return what a file holds of this very matrix; None: there is no file."""
    if not out.exists():
        return None
    there = Overlap.load(out).summary
    asked = {**session.settings(), "host": _machine(session.document)}
    theirs = {**(there.get("asked") or {}), "host": _machine(there)}
    differing = [name for name, value in asked.items() if theirs.get(name) != value]
    if differing:
        told = "; ".join(
            f"{name} is {json.dumps(theirs.get(name))} there, {json.dumps(asked[name])} now" for name in differing
        )
        hint = "give the same arguments, another --out, or --force instead of --resume to measure it all again"
        raise DescriptionError(f"{out}: holds another matrix: {told}", "overlap-differs", hint)
    return {name: there[name] for name in ("runs", "iterations", "spin_s") if name in there}


def _held_by(out: Path) -> int:
    """Return how many runs a file of this matrix holds; 0 where it can hold none."""
    try:
        return len(Overlap.load(out).summary.get("runs", []))
    except DescriptionError:
        return 0


def _machine(document: Mapping[str, Any]) -> Message:
    described = document.get("host") or {}
    return {name: described.get(name) for name in ("name", "cpu", "kernel")}


def _warnings(session: Session, peer: Message) -> list[Notice]:
    found = []
    if peer["loopback"]:
        message = "both ends are this machine: the messages are copied by the same processors that compute, by no card"
        there, here = "`crosswind serve --listen HOST:7117 --token-file FILE`", "`--peer HOST:7117 --token-file FILE`"
        hint = f"{there} on another machine, {here} here"
        found.append(warning("overlap-loopback", message, hint))
    own = os.getpriority(os.PRIO_PROCESS, 0)
    if own != 0:
        message = f"this shell runs at nice {own}: so do the messages, and burners at nice 0"
        found.append(warning("overlap-own-nice", message, "start it from a shell at nice 0"))
    return found


class _Bench:
    """Makes single runs."""

    def __init__(self, session: Session, address: str) -> None:
        self._session = session
        self._address = address
        self._seen: list[int] = list(session.cpus)

    def perform(self, step: Step, tick: Callable[[], None] = lambda: None) -> Message:
        """Make a run, and return its row."""
        burners = [] if step.what == "ping-alone" else [self._burner(step.burn_nice or 0)] * self._session.asked.burners
        remote = not self._session.document["peer"]["loopback"]
        programs = list(burners)
        if step.what != "burn-alone" or remote:
            programs.append(self._ping(step, burn=remote and bool(burners)))
        before: list[Snapshot] = []
        ready = lambda: before.append(Snapshot.take(processes=False))  # noqa: E731
        told = run_together(programs, self._session.limit_s, tick, ready)
        activity = Snapshot.take(processes=False).since(before[0])
        row = step.to_dict() | self._times(step, told[: len(burners)], told[len(burners) :])
        row["late_s"] = max(0.0, *((one["began_ns"] - one["start_ns"]) * 1e-9 for one in told))
        used = sum(activity.busy(cpu) for cpu in self._session.cpus)
        row["others_cpus"] = max(0.0, used - self._own_s(told) / activity.seconds)
        return row

    def _burner(self, nice: int) -> Message:
        return {
            "program": "burn",
            "iterations": self._session.document["iterations"],
            "nice": nice,
            "cpus": list(self._session.cpus),
        }

    def _ping(self, step: Step, burn: bool) -> Message:
        iterations = self._session.document.get("iterations")
        return {
            "program": "ping",
            "peer": self._address,
            "token": self._session.token,
            "tls": self._session.tls,
            "cpus": list(self._session.cpus),
            "spec": {
                "messages": step.messages or 0,
                "message_bytes": step.message_bytes or 1,
                "wait": step.wait or "event",
                "spin_ns": round(1e9 * self._session.document.get("spin_s", 0.0)),
                "burn": {"iterations": iterations, "nice": step.burn_nice or 0} if burn else None,
            },
        }

    def _times(self, step: Step, burnt: Sequence[Message], pinged: Sequence[Message]) -> Message:
        row: Message = {}
        if burnt:
            ends = [_since_start(one) for one in burnt]
            row |= {"burn_s": max(ends), "burn_first_s": min(ends)}
            row["burn_cpu_s"] = sum(one["cpu_ns"] for one in burnt) * 1e-9
        for one in pinged:
            if step.what != "burn-alone":
                row |= {"ping_s": _since_start(one), "ping_cpu_s": (one["cpu_ns"] + one["there"]["cpu_ns"]) * 1e-9}
            if one["there"]["burn_ns"]:
                row["burn_there_s"] = max(one["there"]["burn_ns"]) * 1e-9
        return row

    def _own_s(self, told: Sequence[Message]) -> float:
        """Return the CPU time of Crosswind's processes on this machine, s."""
        own = sum(one["cpu_ns"] for one in told)
        if self._session.document["peer"]["loopback"]:
            own += sum(one["there"]["cpu_ns"] for one in told if "there" in one)
        return float(own) * 1e-9

    def wake_up_s(self) -> float:
        """Return what blocking costs a message: half of what a round trip of one byte takes longer than with polling.

        A process that polls for this long before blocking never loses more than twice of what is needed, whenever the
        message comes
        (competitive spinning). Where polling is the slower of the two, as on one processor, the least.
        """
        trips: dict[Wait, float] = {}
        waits: tuple[Wait, ...] = ("event", "poll")
        for wait in waits:
            step = Step("ping-alone", 0, wait, None, SPIN_MESSAGES, 1)
            trips[wait] = min(self.perform(step)["ping_s"] for _ in range(SPIN_TRIALS)) / SPIN_MESSAGES
        blocking_s: float = (trips["event"] - trips["poll"]) / 2.0
        return min(max(blocking_s, SPIN_S[0]), SPIN_S[1])


def _since_start(told: Mapping[str, Any]) -> float:
    return float(told["ended_ns"] - told["start_ns"]) * 1e-9


def _run_missing(session: Session, bench: _Bench, out: Path | None, least: int, progress: Advance | None) -> None:
    """Make the runs; `out` is written as soon as it holds `least` of them, which an older file has."""
    runs: list[Message] = session.document["runs"]
    made = {_identity(run) for run in runs}
    steps = session.asked.steps()
    missing = [step for step in steps if _identity(step.to_dict()) not in made]
    for k, step in enumerate(missing):
        begun = time.monotonic()

        def tick(at: int = k, step: Step = step, begun: float = begun) -> None:
            if progress is not None:
                expected_s = sum(_expected_s(session, runs, one) for one in missing[at:])
                left = _left(max(expected_s - (time.monotonic() - begun), 0.0))
                done = len(steps) - len(missing) + at
                progress(done / len(steps), f"run {done + 1} of {len(steps)}, about {left} left, {_named(step)}")

        tick()
        runs.append(bench.perform(step, tick))
        if out is not None and len(runs) >= least:
            _keep(session, out)
    if out is not None:
        _keep(session, out)


def _keep(session: Session, out: Path) -> None:
    write_json(session.result.summary, out)


def _identity(run: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(run.get(name) for name in Step._fields)


def _expected_s(session: Session, runs: Sequence[Message], step: Step) -> float:
    """Return about how long a run takes, s: as the same one before, else at worst as both one after the other."""
    start_s = 0.5
    same = [run for run in runs if _identity(run)[0] == step.what and _identity(run)[2:] == tuple(step)[2:]]
    if same:
        return start_s + float(max(same[-1].get("ping_s", 0.0), same[-1].get("burn_s", 0.0)))
    exchange = (step.messages, step.message_bytes)
    alone = [run for run in runs if run["what"] == "ping-alone"]
    alike = [float(run["ping_s"]) for run in alone if (run["messages"], run["message_bytes"]) == exchange]
    ping_s = median(alike) if alike else FIRST_GUESS * session.asked.burn_s
    parts = {"ping-alone": ping_s, "burn-alone": session.asked.burn_s, "together": ping_s + session.asked.burn_s}
    return start_s + parts[step.what]


def _left(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 100 else f"{seconds / 60:.0f} min"


def _named(step: Step) -> str:
    what = {"ping-alone": "messages alone", "burn-alone": "computation alone", "together": "both"}[step.what]
    parts = [str(step.wait)] if step.wait else []
    parts += [f"nice {step.burn_nice}"] if step.burn_nice is not None else []
    parts += [f"{step.messages} x {step.message_bytes} B"] if step.messages is not None else []
    return ", ".join([what, *parts])
