"""Results of the runs: slowdowns and delay ratios by what a point sets, means over the seeds."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from crosswind import Runs
from crosswind.documents import Document
from crosswind.lab import engine
from crosswind.lab.papers.communication_interactions.calibration import (
    TIMES,
    Calibration,
    FlowReading,
    ProgramReading,
    StreamReading,
)
from crosswind.lab.papers.communication_interactions.figures import SIDES, program_params, side_params
from crosswind.lab.papers.figure import key

Entry = Mapping[str, Any]

RECEIVED, TRANSMISSION = "received", "transmission"
TIMED = {"sending": RECEIVED, "receiving": RECEIVED, "one-to-all": TRANSMISSION}
"""Side -> the time that its section measures (6.2, 6.3: "receiving time"; 6.4: "message transmission times")."""


@dataclass(frozen=True)
class Spread:
    """A value over the seeds.

    Attributes
    ----------
    middle, low, high : float
        Mean, least, most.
    """

    middle: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        """Return the spread of some values, at least one."""
        return cls(fmean(values), min(values), max(values))


class Rows:
    """The runs of every figure, found by what they set.

    Parameters
    ----------
    runs : mapping
        Id of a figure -> its runs.
    calibration : Calibration
        With which they were run.
    """

    def __init__(self, runs: Mapping[str, Runs[Any]], calibration: Calibration) -> None:
        self.calibration = calibration
        self._alike: dict[tuple[str, str], list[Entry]] = {}
        for figure, own in runs.items():
            for run in own:
                self._alike.setdefault((figure, key(run.params)), []).append(run.data)

    def entries(self, figure: str, **params: Any) -> list[Entry]:
        """Return the runs of a point, one for each seed.

        Raises
        ------
        KeyError
            When there is no such point.
        """
        return self._alike[figure, key(params)]

    def delta(self, name: str, reading: FlowReading, *, flows: int = 0, mix: tuple[int, int] = (0, 0)) -> Spread:
        """Return the slowdown of δ of the flows of a type (section 4.2): latency alone over latency together.

        Of `flows` of this type (figure 2), or of a mix of A and B (table 2).
        """
        if flows:
            entries = self.entries("figure-2", type=name, flows=flows, **reading.setting)
        else:
            entries = self.entries("table-2", flows_a=mix[0], flows_b=mix[1], **reading.setting)
        return Spread.of([_delta(entry, name, reading.hosts_s(name)) for entry in entries])

    def eta(self, program: str, hosts: int, alpha: float, reading: ProgramReading, queue: str = "fifo") -> Spread:
        """Return η = (T - t) / t, of communication or of the run (`TIMES`), with one queue (fifo) or two (queued)."""
        entries = self.entries("figures-3-4", **program_params(program, hosts, alpha, reading))
        compute_s = self.skeleton(program, hosts)["compute_s"] if TIMES[program] == "communication" else 0.0

        def eta(job: Entry) -> float:
            alone_s, together_s = float(job["alone_s"]), float(job[f"{queue}_s"])
            return (together_s - alone_s) / (alone_s - compute_s)

        return Spread.of([eta(entry["jobs"][0]) for entry in entries])

    def skeleton(self, program: str, hosts: int, *, as_printed: bool = False) -> Document:
        """Return messages, bytes and compute_s of a program of this study, or of the size that the text gives."""
        parameters = {} if as_printed else self.calibration.parameters(program)
        return engine.skeleton(program, hosts, json.dumps(parameters))

    def slowdown(
        self,
        side: str,
        tested: str,
        kib: int,
        reading: StreamReading,
        *,
        queue: str = "fifo",
        of: str = "tested",
        by: str = "",
    ) -> Spread:
        """Return T2 / T1 (fifo) or T3 / T1 (queued) of a stream: the tested one, a local one, or the slower local one.

        Parameters
        ----------
        side, tested, kib, reading
            The point.
        queue : {"fifo", "queued"}
        of : {"tested", "local", "local back", "slower local"}
            Section 6.4 sends a local stream each way between two hosts; elsewhere there is one.
        by : {"received", "transmission"}, optional
            The time to receive 100 messages, or the mean time of a message from its creation to its arrival; by default
            what the side's section says.
        """
        entries = self.entries(SIDES[side], **side_params(tested, kib, reading))
        measure = by or TIMED[side]
        values = {
            stream["name"]: [_slowdown(entry["streams"][place], queue, measure) for entry in entries]
            for place, stream in enumerate(entries[0]["streams"])
        }
        if of == "tested":
            return Spread.of(next(iter(values.values())))
        if of == "slower local":
            found = [Spread.of(own) for name, own in values.items() if name.startswith("local")]
            return max(found, key=lambda one: one.middle)
        return Spread.of(values[of])

    def locals_of(self, side: str, tested: str, kib: int, reading: StreamReading) -> list[str]:
        """Return the names of a point's local streams."""
        entries = self.entries(SIDES[side], **side_params(tested, kib, reading))
        return [stream["name"] for stream in entries[0]["streams"] if stream["name"].startswith("local")]

    def bound(self, side: str, tested: str, kib: int, reading: StreamReading, name: str) -> float | None:
        """Return a closed form of the point, None where it does not apply."""
        entries = self.entries(SIDES[side], **side_params(tested, kib, reading))
        found: float | None = entries[0].get("bounds", {}).get(name)
        return found


def _delta(entry: Entry, name: str, hosts_s: float) -> float:
    own = [stream["latency_s"] for stream in entry["streams"] if stream["name"].startswith(f"{name} ")]
    together: Callable[[str], float] = lambda when: fmean(latency[when]["mean"] for latency in own)  # noqa: E731
    return (hosts_s + together("alone")) / (hosts_s + together("fifo"))


def _slowdown(stream: Mapping[str, Any], queue: str, by: str) -> float:
    if by == RECEIVED:
        return float(stream[f"slowdown_{queue}"])
    latency = stream["latency_s"]
    return float(latency[queue]["mean"]) / float(latency["alone"]["mean"])
