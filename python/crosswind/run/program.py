"""One point of an experiment of kind program in virtual time, beside the same undisturbed and the closed forms."""

from __future__ import annotations

import json
import threading
from typing import Any

from crosswind import _core
from crosswind.experiment import ProgramPoint
from crosswind.run.results import ProgramRun


class Simulator:
    """Simulates points, several at a time; remembers what each program takes undisturbed, which many points share."""

    def __init__(self) -> None:
        self._turn = threading.Lock()
        self._undisturbed: dict[str, _Once] = {}

    def __call__(self, point: ProgramPoint) -> ProgramRun:
        """Simulate one point; the interpreter is free meanwhile, so that threads simulate side by side."""
        undisturbed = self._without_disturbance(point)
        if point.disturbance is None:
            return ProgramRun({**undisturbed, "params": point.params})
        disturbance = json.dumps(point.disturbance.to_dict())
        dedicated_s = undisturbed["makespan_s"]
        text = _core.simulate_program(point.json, disturbance, point.goal, dedicated_s=dedicated_s)
        return ProgramRun({**json.loads(text), "params": point.params})

    def _without_disturbance(self, point: ProgramPoint) -> dict[str, Any]:
        """Return what the point comes to when nothing disturbs it: simulated once, whoever asks."""
        description = {key: value for key, value in point.description.items() if key not in _OF_NO_MATTER}
        bare = json.dumps({**description, "schema_version": 1, "name": "undisturbed"}, sort_keys=True)
        with self._turn:
            once = self._undisturbed.setdefault(f"{bare}\n{point.goal}", _Once())
        with once.turn:
            if once.found is None:
                once.found = json.loads(_core.simulate_program(bare, None, point.goal))
        return once.found


_OF_NO_MATTER = ("schema_version", "name", "disturbance", "repetitions", "sweep")


class _Once:
    """Something that one thread finds while those that ask for the same wait."""

    def __init__(self) -> None:
        self.turn = threading.Lock()
        self.found: dict[str, Any] | None = None
