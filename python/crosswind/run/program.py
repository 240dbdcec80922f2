"""One point of an experiment of kind program in virtual time, beside the same undisturbed and the closed forms."""

from __future__ import annotations

import json
from functools import partial

from crosswind import _core
from crosswind.experiment import ProgramPoint
from crosswind.run.results import ProgramRun
from crosswind.run.side_by_side import Columns, Simulator

_OF_NO_MATTER = ("schema_version", "name", "disturbance", "repetitions", "sweep")


def simulator(threads: int = 1) -> Simulator:
    """Return how programs are simulated: one alone by `threads` threads."""
    return Simulator(partial(simulate_program, threads=threads), _put, run_of)


def simulate_program(point: ProgramPoint, *, threads: int = 1) -> ProgramRun:
    """Simulate one point by `threads` threads, which change nothing in the run; the interpreter is free meanwhile.

    What the program takes undisturbed is simulated once and remembered: a sweep over disturbances asks for it again
    and again.

    Raises
    ------
    InfeasibleError
        When the program deadlocks, naming the ranks and what they wait for.
    DescriptionError
        When the disturbance names a rank that does not exist.
    """
    disturbance, bare = _disturbance(point), _bare(point)
    text = _core.simulate_program(point.json, disturbance, point.goal, point.recording, bare=bare, threads=threads)
    return run_of(point, text)


def _put(pool: _core.Simulations, point: ProgramPoint) -> None:
    pool.program(point.number, point.json, _disturbance(point), point.goal, point.recording, _bare(point))


def run_of(point: ProgramPoint, text: str, _: Columns = None) -> ProgramRun:
    """Return the run of a point that was simulated: its entry of `runs.json` as JSON."""
    return ProgramRun(json.loads(text) | {"params": point.params})


def remember(point: ProgramPoint, run: ProgramRun) -> None:
    """Keep the result of a point of another process, if nothing disturbs it, so that it is not simulated again."""
    if point.disturbance is not None or point.recording is not None:
        return
    _core.remember_undisturbed(_bare(point), point.goal, json.dumps(run.summary()))


def _disturbance(point: ProgramPoint) -> str | None:
    return None if point.disturbance is None else json.dumps(point.disturbance.to_dict())


def _bare(point: ProgramPoint) -> str:
    """Return the description of a point that nothing disturbs: of its seeds only that of the data matters."""
    description = {key: value for key, value in point.description.items() if key not in _OF_NO_MATTER}
    seed = point.description["workload"].get("seed")
    own = {"schema_version": 1, "name": "undisturbed", "seed": point.seed if seed is None else seed}
    return json.dumps({**description, **own}, sort_keys=True)
