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
        self._dedicated: dict[str, tuple[threading.Lock, list[float]]] = {}

    def __call__(self, point: ProgramPoint) -> ProgramRun:
        """Simulate one point; the interpreter is free meanwhile, so that threads simulate side by side."""
        disturbance = json.dumps(point.disturbance.to_dict()) if point.disturbance else None
        text = _core.simulate_program(point.json, disturbance, point.goal)
        summary: dict[str, Any] = {**json.loads(text), "params": point.params}
        return ProgramRun(summary)
