"""The limits that the simulator finds: closed forms keep a slowdown safely, this is how far one may really go.

A limit by closed form supposes the worst that is possible of a source (no two daemons coincide, all ranks wait for
each other at once), so it is conservative. Here the program itself, barriers
with nothing else or a recorded one, runs in virtual time under the source alone, and the field is moved until the mean
slowdown is the stated one.
"""

from __future__ import annotations

import copy
import math
import statistics
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, cast

from crosswind.disturbance import Disturbance
from crosswind.documents import Document
from crosswind.errors import CrosswindError
from crosswind.experiment import Experiment, ProgramPoint
from crosswind.run.program import simulate_program
from crosswind.terminal.waiting import mapped, threads

if TYPE_CHECKING:
    from crosswind.documents.tolerance import Limit

PRECISION = 0.02
"""Bisection ends when a limit is known to this part of itself."""
FURTHEST = 1e4
"""Factor from the closed form beyond which a limit is not sought: the slowdown hardly depends on the field."""
MOST_RANKS = 20_000
STRIKES = 200
"""Times that a source strikes a run's ranks, all together and about; and periods of what strikes all at once."""
LEAST_BARRIERS = 100
REPLAYS = (10, 100)
"""Least and most replays of a recorded program whose mean is its slowdown: a source may strike it seldom."""
MOST_STEPS = 600_000
"""Barriers times ranks of a run: half a second of one core."""


def simulated_limits(
    asked: Sequence[tuple[Limit, Disturbance, int]],
    *,
    ranks: int,
    work_per_barrier_s: float,
    slowdown: float,
    seeds: int,
    recorded: ProgramPoint | None = None,
    progress: Callable[[float, str], None] | None = None,
) -> list[Limit]:
    """Find by bisection what each field may be before the simulated slowdown is more than the stated one.

    Parameters
    ----------
    asked : sequence of (Limit, Disturbance, int)
        Limits by closed forms, each with the disturbance to simulate and the place of the source in it.
    ranks, work_per_barrier_s, slowdown
        As of `crosswind.plan_tolerance`.
    seeds : int
        How often everything that is drawn is drawn anew; each has a limit of its own.
    recorded : ProgramPoint, optional
        The recorded program that runs instead of barriers.
    progress : callable, optional
        Called as `progress(fraction, message)`.

    Returns
    -------
    list of Limit
        With `simulated`: the mean over the seeds, or None where the slowdown is never reached, or is always passed,
        within a factor `FURTHEST`; `simulated_low`, `simulated_high`: least and most over the seeds; `at_limit`: the
        mean simulated slowdown at the limit of the closed form.
    """
    limits = []
    for number, (limit, alone, place) in enumerate(asked):
        if progress:
            progress(number / len(asked), f"{limit['cause']}: {limit['field']}")
        slowed = partial(_slowed, alone, {**limit, "source": place}, ranks, work_per_barrier_s, recorded)
        limits.append(_simulated(limit, slowed, slowdown, seeds))
    return limits


def _simulated(limit: Limit, slowed: Callable[[int, float], float], most: float, seeds: int) -> Limit:
    with threads(seeds) as pool:
        found = list(mapped(pool, lambda seed: _bisected(partial(slowed, seed), limit, most), range(seeds)))
        at_limit = list(mapped(pool, lambda seed: slowed(seed, limit["limit"]), range(seeds)))
    known = [value for value in found if value is not None]
    every = len(known) == len(found)
    return {
        **limit,
        "simulated": statistics.fmean(known) if every else None,
        "simulated_low": min(known) if every else None,
        "simulated_high": max(known) if every else None,
        "at_limit": statistics.fmean(at_limit) if all(map(math.isfinite, at_limit)) else None,
    }


def _bisected(slowed: Callable[[float], float], limit: Limit, most: float) -> float | None:
    """Return where the slowdown passes `most`, from the closed form's limit on; None: nowhere within `FURTHEST`."""
    outwards = 1.0 if limit["relation"] == "at most" else -1.0  # the closed form is safe: the limit lies further out
    whole = limit["field"] == "ranks"
    start, step = float(limit["limit"]), 1.05
    safe: float | None = start
    unsafe: float | None = None
    if start <= 0:
        return None  # nothing is permitted, or anything
    if slowed(start) > most:  # not safe after all: a form that holds only about
        outwards = -outwards
        safe, unsafe = None, start
    value = start
    while safe is None or unsafe is None:
        value *= step**outwards
        step = min(
            step * step, 2.0
        )  # small first: the slowdown under local scheduling is a saw, with teeth to be missed
        if not 1.0 / FURTHEST < value / start < FURTHEST or (whole and not 1 <= value <= MOST_RANKS):
            return None
        if limit["field"].endswith(".share") and value > 1.0:
            return None
        if slowed(value) > most:
            unsafe = value
        else:
            safe = value
    while abs(math.log(unsafe / safe)) > PRECISION and not (whole and abs(unsafe - safe) <= 1):
        middle = math.sqrt(safe * unsafe)
        if slowed(middle) > most:
            unsafe = middle
        else:
            safe = middle
    return float(math.floor(safe)) if whole else safe


def _slowed(
    disturbance: Disturbance,
    limit: Limit,
    ranks: int,
    work_s: float,
    recorded: ProgramPoint | None,
    seed: int,
    value: float,
) -> float:
    """Return the simulated slowdown with one source alone and its field at `value`; infinite where that can't be."""
    description = disturbance.to_dict()
    place = limit["source"]
    source = copy.deepcopy(description["source"][place])
    field = limit["field"]
    if field == "ranks":
        ranks = max(round(value), 1)
    elif field == "work_per_barrier_s":
        work_s = value
    else:
        _put(source, field.rsplit(".", 1)[1], value)
    try:
        alone = Disturbance.from_dict({**description, "source": [source]})
        if recorded is not None:
            count = replays(source, recorded)
            return statistics.fmean(_replayed(recorded, alone, seed * REPLAYS[1] + number) for number in range(count))
        point = replace(_barriers(source, ranks, work_s, seed), disturbance=alone)
        return simulate_program(point).slowdown
    except CrosswindError:
        return math.inf  # the field can't be so: away longer than it is there, say


def strikes(source: Document, recorded: ProgramPoint) -> float:
    """Return about how often a source strikes the ranks of a recorded program in all of its replays."""
    assert recorded.recording is not None, "the program is a recorded one"
    ranks, _, replayed_s, _ = recorded.recording.facts()
    hit = len(source.get("ranks") or range(ranks)) if source["kind"] in ("daemon", "job") else 1
    return replays(source, recorded) * hit * replayed_s / _period(source)


def replays(source: Document, recorded: ProgramPoint) -> int:
    """Return the number of replays in which a source strikes a recorded program often enough, within `REPLAYS`."""
    assert recorded.recording is not None, "the program is a recorded one"
    ranks, _, replayed_s, _ = recorded.recording.facts()
    return math.ceil(min(max(STRIKES * _period(source) / (ranks * replayed_s), REPLAYS[0]), REPLAYS[1]))


def _replayed(recorded: ProgramPoint, alone: Disturbance, seed: int) -> float:
    point = replace(recorded, description={**recorded.description, "seed": seed}, disturbance=alone)
    return simulate_program(point).slowdown


def _barriers(source: Document, ranks: int, work_s: float, seed: int) -> ProgramPoint:
    """Return a program of barriers that is long enough for a source to strike it often."""
    struck = STRIKES * _period(source) / (ranks if source["kind"] in ("daemon", "job") else 1)
    barriers = max(min(struck / work_s, MOST_STEPS / ranks), LEAST_BARRIERS)
    parameters = {"iterations": math.ceil(barriers), "work_s": work_s}
    workload = {"kind": "program", "program": "bsp", "ranks": ranks}
    workload["parameters"] = parameters | {"dimensions": 0, "allreduce": "none", "barrier": True}
    experiment = {"schema_version": 1, "name": "tolerance", "seed": seed, "network": _NETWORK, "workload": workload}
    return cast(ProgramPoint, Experiment.from_dict(experiment).point(0))


_NETWORK = {"latency_s": 1e-9, "overhead_s": 0, "gap_s": 0, "packet_bytes": 4096}
"""Messages cost nothing, as in the closed forms."""


def _put(source: Document, name: str, value: float) -> None:
    """Set a field; of a distribution all lengths, in the same proportion."""
    given = source[name]
    if isinstance(given, dict):
        factor = value / _mean(given)
        shapes = ("distribution", "sigma")
        source[name] = {key: part if key in shapes else part * factor for key, part in given.items()}
    else:
        source[name] = value


def _mean(given: Document) -> float:
    if "mean" in given:
        return float(given["mean"])
    if "median" in given:
        return float(given["median"]) * math.exp(float(given["sigma"]) ** 2 / 2.0)
    return (float(given["low"]) + float(given["high"])) / 2.0


def _period(source: Document) -> float:
    """Return about how long it takes a source to strike again, s."""
    given = next(source[name] for name in ("interval_s", "slice_s", "length_s", "quantum_s") if name in source)
    period = _mean(given) if isinstance(given, dict) else float(given)
    return period * float(source.get("jobs", 1))
