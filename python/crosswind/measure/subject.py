"""What is measured: one probe, or the forks of a runtime one after the other, and all that they have sampled."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from crosswind import _core
from crosswind.documents import Arguments, Row
from crosswind.measure.recording import Recording


class Subject:
    """One that computes and communicates, among perhaps several that take turns.

    Parameters
    ----------
    name : str
        `runtime` or `native`.
    channels : int
        How many there are.
    in_forks : bool
        Whether rows say which fork they belong to.
    """

    def __init__(self, name: str, channels: int, in_forks: bool) -> None:
        self.name = name
        self.recording = Recording(channels)
        self.probe: Any = None
        self.unpaced_mb_per_s: dict[int, float] = {}
        self._in_forks = in_forks
        self._fork = -1
        self._first_s = 0.0
        self._offset_s = 0.0
        self._blocks = 0
        self._next_block = 0
        self._closed = True
        self._facts: dict[str, Any] = {}

    def start(self, configuration: Arguments, task: Callable[[], object] | None) -> None:
        """Start a probe: the next fork, whose rows continue after the last one's."""
        self.probe = _core.Probe(json.dumps(configuration), task)
        self._closed = False
        now = time.monotonic()
        self._fork += 1
        self._first_s = self._first_s or now
        self._offset_s = now - self._first_s
        self._blocks = self._next_block

    def close(self) -> None:
        """Keep what was sampled, and end the probe."""
        if self._closed:
            return
        self.take()
        self.facts()
        self._closed = True
        self.probe.close()

    def take(self) -> list[Row]:
        """Record the rows since the last call, and return them."""
        columns = self.probe.take()
        count = len(columns["t_s"])
        if not count:
            return []
        columns["t_s"] = [t_s + self._offset_s for t_s in columns["t_s"]]
        columns["block"] = [block + self._blocks for block in columns["block"]]
        self._next_block = columns["block"][-1] + 1
        if self._in_forks:
            columns["fork"] = [self._fork] * count
        self.recording.add(columns)
        return [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]

    def facts(self) -> dict[str, Any]:
        """Return what is in force: peers, sockets, work, and what a runtime says of itself; in the end, what was."""
        if not self._closed:
            self._facts = json.loads(self.probe.header())
        return self._facts

    def elapsed_s(self) -> float:
        """Return the time since the first probe's start."""
        elapsed: float = self.facts()["elapsed_s"]
        return elapsed + self._offset_s
