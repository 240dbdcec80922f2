"""Overlap: whether a machine communicates while it computes, and what each costs the other.

| question | module |
|---|---|
| what is asked for, and which runs does it take? | `asked` |
| how are burners and pings run side by side? | `programs`, `process` |
| which run is next, and what was found? | `live`; in virtual time `simulation` |
| do both overlap, and what should be changed? | `verdict` |
| the matrix itself | `result` |

Source: quadrics-overlap (F3-1 to F3-4): a program that only computes beside one that only sends messages and
waits until they come back.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from crosswind.overlap.live import Session
    from crosswind.overlap.options import On, Options, Scheduler, Wait
    from crosswind.overlap.result import Overlap
    from crosswind.terminal.progress import Advance

LIMIT_S = 600.0


def overlap(
    on: On = "live",
    *,
    waits: Sequence[Wait] = ("event", "poll", "spin-block"),
    nices: Sequence[int] | None = None,
    pings: Sequence[tuple[int, int]] | None = None,
    burn_s: float = 2.0,
    burners: int | None = None,
    repetitions: int = 3,
    seed: int = 1,
    peer: str | None = None,
    token: str | None = None,
    tls: str | Path | None = None,
    cpus: Sequence[int] | int | None = None,
    limit_s: float = LIMIT_S,
    scheduler: Scheduler = "fair",
    model: Mapping[str, Any] | None = None,
    out: str | Path | None = None,
    resume: bool = False,
    force: bool = False,
    progress: Advance | None = None,
) -> Overlap:
    """Measure, or simulate, what messages and computation cost each other on the same processors.

    A program that only sends messages and waits until they come back runs beside programs that only compute, for every
    way to wait, nice level of the computation and kind of messages; each also alone.

    Parameters
    ----------
    on : {"live", "sim"}
        By real processes here, or by the simulator's processors.
    waits : sequence of str
        How both ends wait: "event" (block), "poll", "spin-block" (ask for as long as a wake-up costs, then block); in a
        simulation also "buffered" (block; messages move in slices that both nodes agree on).
    nices : sequence of int, optional
        Nice levels of the computation, -20 to 19; below the permitted one they are refused. Default: those of -20, 0,
        19 that are permitted.
    pings : sequence of (int, int), optional
        Round trips, and bytes each way (1 to 67,108,864). Default: (1, 1 MB), (1, 64 MB), (640, 1 MB), (10, 64 MB).
    burn_s : float
        How long a burner computes alone, about, s, 0.01 to 240.
    burners : int, optional
        How many compute here; default: one for each of `cpus`.
    repetitions : int
        Runs of each kind, at least 1; medians count. 1 in a simulation.
    seed : int
        Of the order of the runs.
    peer : str, optional
        HOST:PORT of a `crosswind serve` that sends the messages back; on another machine it computes too, on all its
        processors. Default: one of our own on this machine.
    token : str, optional
        What the peer asks for; off loopback there must be this or `tls`.
    tls : path, optional
        This node's directory of certificates.
    cpus : sequence of int, or int, optional
        Where everything here runs; default: all that may be used. In a simulation how many a node has, 1 to 1024;
        default: as many as may be used here.
    limit_s : float
        The longest that one run may take, s.
    scheduler : {"fair", "decay"}
        Of the simulated processors.
    model : mapping, optional
        Constants of the simulated machine, dotted path -> value: `nodes` (2, or 1 with both ends), `network.mb_per_s`,
        `network.latency_s`, `costs.switch_s`, `costs.slice_s` and others (docs/guides/overlap.md).
    out : path, optional
        An `overlap.json`, written as runs come in.
    resume : bool
        Keep the runs that stand in `out` already; refused when they are of another matrix.
    force : bool
        Replace a file of another kind, or with another matrix, in `out`; else it is refused.
    progress : callable, optional
        Called as `progress(fraction, message)`, with the time left in the message.

    Returns
    -------
    Overlap

    Raises
    ------
    DescriptionError
        When a setting is out of its range, or `out` holds something else.
    MeasurementError, AgentLost
        When a program fails, a run takes longer than `limit_s`, or the peer goes away; the runs so far stand in `out`.
    KeyboardInterrupt
        After ctrl-C; the runs so far stand in `out`.

    Examples
    --------
    >>> found = overlap(waits=["event"], nices=[0], pings=[(5, 1000)], burn_s=0.05, repetitions=1)
    >>> len(found), found.cells[0]["ping_alone_s"] > 0
    (1, True)
    """
    from crosswind.errors import DescriptionError
    from crosswind.files.output import writable
    from crosswind.overlap import live, simulation
    from crosswind.overlap.options import NICES

    if on not in ("live", "sim"):
        raise DescriptionError(f"on is {on!r}; it must be live or sim", "argument")
    file = Path(out) if out is not None else None
    if on == "live":
        if model:
            raise DescriptionError("model is given; real processes have none", "argument", "--on sim has one")
        session = _session(waits, nices, pings, burn_s, burners, repetitions, seed, peer, cpus, limit_s)
        session.token, session.tls = token, str(tls) if tls is not None else None
        return live.measure(session, file, resume, force, progress)
    if peer is not None or resume:
        word = "peer" if peer is not None else "resume"
        raise DescriptionError(f"{word} is given; a simulation has none", "argument")
    processors = len(os.sched_getaffinity(0)) if cpus is None else cpus
    if not isinstance(processors, int):
        hint = f"{len(processors)} for as many as there are in that list"
        raise DescriptionError(
            f"cpus is {list(processors)}; in a simulation it must be how many a node has", "argument", hint
        )
    levels = NICES if nices is None else nices
    asked = _asked(waits, levels, pings, burn_s, processors if burners is None else burners, 1, seed)
    of = {"on": on, "scheduler": scheduler, "cpus": processors, "burners": asked.burners, "asked_burn_s": asked.burn_s}
    writable(file, "overlap", force=force, of=of)
    found = simulation.simulate(asked, scheduler, processors, model)
    if file is not None:
        found.save(file)
    return found


class Preview(TypedDict):
    """What `overlap` would do: `seconds` is about how long the computation takes alone, `changes` are sentences."""

    runs: int
    cells: int
    seconds: float
    changes: list[str]


def preview(**arguments: Any) -> Preview:
    """Say what `overlap` would do, and do nothing.

    Parameters
    ----------
    **arguments
        As for `overlap`, live.

    Returns
    -------
    dict
        `runs` (how many), `cells`, `seconds` (about how long the computation takes alone, s; messages come on top),
        `changes` (what would be done to this machine, in sentences).
    """
    session = _session(**arguments)
    asked = session.asked
    steps = asked.steps()
    where = session.peer or "a peer of our own on this machine"
    burning = sum(step.what != "ping-alone" for step in steps)
    changes = [
        f"{asked.burners} processes compute on CPUs {', '.join(map(str, session.cpus))}, about {asked.burn_s:g} s",
        f"one process exchanges messages with {where}; it uses a processor whole while it polls",
        f"the computing processes run at nice {', '.join(map(str, asked.nices))}; they end with each run, and with us",
    ]
    if min(asked.nices) < 0:
        changes.append(
            f"at nice {min(asked.nices)} everything else on this machine waits for most of {asked.burn_s:g} s"
        )
    if session.peer is not None:
        changes.append("a peer on another machine computes too, on all its processors, at the same nice levels")
    changes.append(f"a run that takes longer than {session.limit_s:g} s is ended")
    return {"runs": len(steps), "cells": len(asked.cell_keys()), "seconds": burning * asked.burn_s, "changes": changes}


def _session(
    waits: Sequence[Wait] = ("event", "poll", "spin-block"),
    nices: Sequence[int] | None = None,
    pings: Sequence[tuple[int, int]] | None = None,
    burn_s: float = 2.0,
    burners: int | None = None,
    repetitions: int = 3,
    seed: int = 1,
    peer: str | None = None,
    cpus: Sequence[int] | int | None = None,
    limit_s: float = LIMIT_S,
) -> Session:
    from crosswind.errors import DescriptionError
    from crosswind.host import priority
    from crosswind.overlap.live import Session
    from crosswind.overlap.options import NICES

    allowed = sorted(os.sched_getaffinity(0))
    if isinstance(cpus, int):
        cpus = [cpus]
    chosen = tuple(sorted(set(cpus))) if cpus is not None else tuple(allowed)
    if not chosen or any(cpu not in allowed for cpu in chosen):
        raise DescriptionError(f"cpus is {list(chosen)}; it must be some of {allowed}", "argument")
    if not limit_s > 0.0:
        raise DescriptionError(f"limit_s is {limit_s:g} s; it must be greater than 0 s", "argument")
    if "buffered" in waits:
        raise DescriptionError("wait is 'buffered'; only a simulation has it", "argument", "--on sim")
    lowest = priority.lowest_nice()
    levels = nices if nices is not None else [level for level in NICES if level >= lowest]
    asked = _asked(waits, levels, pings, burn_s, len(chosen) if burners is None else burners, repetitions, seed)
    return Session(asked, chosen, peer, limit_s)


def _asked(
    waits: Sequence[Wait],
    nices: Sequence[int],
    pings: Sequence[tuple[int, int]] | None,
    burn_s: float,
    burners: int,
    repetitions: int,
    seed: int,
) -> Options:
    from crosswind.overlap.options import Options, as_exchanges

    return Options(tuple(waits), tuple(nices), as_exchanges(pings), burn_s, burners, repetitions, seed)
