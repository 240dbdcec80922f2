"""One point of an experiment of kind program in virtual time, beside the same undisturbed and the closed forms."""

from __future__ import annotations

import json
import threading
from collections import OrderedDict
from typing import Any

from crosswind import _core
from crosswind.experiment import ProgramPoint
from crosswind.run.results import ProgramRun

_OF_NO_MATTER = ("schema_version", "name", "disturbance", "repetitions", "sweep")
_MOST_REMEMBERED = 4096  # runs of about a kilobyte


def simulate_program(point: ProgramPoint) -> ProgramRun:
    """Simulate one point; the interpreter is free meanwhile, so that threads simulate side by side.

    What the program takes undisturbed is simulated once and remembered: a sweep over disturbances asks for it again
    and again.

    Raises
    ------
    InfeasibleError
        When the program deadlocks, naming the ranks and what they wait for.
    DescriptionError
        When the disturbance names a rank that is not there.
    """
    undisturbed = _UNDISTURBED.of(point)
    if point.disturbance is None:
        return ProgramRun({**undisturbed, "params": point.params, "seed": point.seed})
    disturbance = json.dumps(point.disturbance.to_dict())
    text = _core.simulate_program(point.json, disturbance, point.goal, dedicated_s=undisturbed["makespan_s"])
    return ProgramRun({**json.loads(text), "params": point.params})


def remember(point: ProgramPoint, run: ProgramRun) -> None:
    """Take note of what an undisturbed point came to earlier, in another process: it is not simulated again."""
    _UNDISTURBED.remember(point, run)


class _Once:
    """Something that one thread finds while those that ask for the same wait."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.found: dict[str, Any] | None = None


class _Undisturbed:
    """What programs come to when nothing disturbs them."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._known: OrderedDict[str, _Once] = OrderedDict()

    def of(self, point: ProgramPoint) -> dict[str, Any]:
        bare = _bare(point)
        once = self._once(bare, point.goal)
        with once.turn:
            if once.found is None:
                once.found = json.loads(_core.simulate_program(bare, None, point.goal))
        return once.found

    def remember(self, point: ProgramPoint, run: ProgramRun) -> None:
        once = self._once(_bare(point), point.goal)
        with once.turn:
            once.found = once.found or dict(run.data)

    def _once(self, bare: str, goal: str | None) -> _Once:
        key = f"{bare}\n{goal}"
        with self._turn:
            once = self._known.setdefault(key, _Once())
            self._known.move_to_end(key)
            while len(self._known) > _MOST_REMEMBERED:
                self._known.popitem(last=False)
        return once


def _bare(point: ProgramPoint) -> str:
    """Return the description of a point that nothing disturbs: of its seeds only that of the data matters."""
    description = {key: value for key, value in point.description.items() if key not in _OF_NO_MATTER}
    seed = point.description["workload"].get("seed")
    own = {"schema_version": 1, "name": "undisturbed", "seed": point.seed if seed is None else seed}
    return json.dumps({**description, **own}, sort_keys=True)


_UNDISTURBED = _Undisturbed()
