"""The runs that the paper's figures and table 2 need: experiments of kind streams."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from crosswind import Experiment, Point
from crosswind.lab.engine import build_digest
from crosswind.lab.papers.communication_interactions.calibration import (
    FLOWS,
    LOCAL_BYTES,
    PROGRAMS,
    TESTED,
    Calibration,
    ProgramReading,
    StreamReading,
    message_s,
)

Setting = tuple[dict[str, Any], dict[str, Any]]
"""What a point of a figure sets, and the experiment that it is."""

LOCAL_STREAMS = ("local", "local back")
"""Of one-to-all: "from the source workstation and another workstation" (section 6.4)."""

SIDES = {"sending": "figure-8", "receiving": "figure-9", "one-to-all": "figure-10"}


@dataclass(frozen=True)
class Figure:
    """A figure of the paper.

    Attributes
    ----------
    id, title : str
        Such as figure-2.
    settings : list of Setting
        Its points.
    repetitions : int
        Runs of each.
    """

    id: str
    title: str
    settings: list[Setting]
    repetitions: int


class FigureGrid:
    """A figure's points as a grid (`crosswind.Grid`), each for the calibration's seeds."""

    kind = "streams"

    def __init__(self, figure: Figure, calibration: Calibration) -> None:
        self.name = f"{figure.id}: {figure.title}"
        self._figure, self._calibration = figure, calibration

    def __len__(self) -> int:
        """How many runs."""
        return len(self._figure.settings) * self._figure.repetitions

    def points(self) -> Iterator[Point]:
        """Yield every run."""
        number = 0
        for params, description in self._figure.settings:
            whole = {"seed": self._calibration.seed, "repetitions": self._figure.repetitions, **description}
            for point in Experiment.from_dict(whole).points():
                yield replace(point, number=number, params=dict(params))
                number += 1

    def digest(self, on: str) -> str:
        """Return what identifies these runs, the build included."""
        parts = {"on": on, "settings": self._figure.settings, "seed": self._calibration.seed, "build": build_digest()}
        parts["repetitions"] = self._figure.repetitions
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()


def all_figures(calibration: Calibration) -> list[Figure]:
    """Return every figure, in the order in which they are run."""
    return [alike(calibration), mixed(calibration), programs(calibration), *(side(calibration, name) for name in SIDES)]


def alike(calibration: Calibration) -> Figure:
    """Figure 2: flows of one type from different hosts to one."""
    settings = [
        (
            {"type": name, "flows": count, "arrivals": reading.arrivals},
            _meeting([name] * count, calibration, reading.arrivals),
        )
        for reading in calibration.flow_arrivals
        for name in FLOWS
        for count in calibration.flows
    ]
    return Figure("figure-2", "flows of one type to one host", settings, calibration.repetitions)


def mixed(calibration: Calibration) -> Figure:
    """Table 2: flows of types A and B to one host."""
    settings = [
        (
            {"flows_a": flows_a, "flows_b": flows_b, "arrivals": reading.arrivals},
            _meeting(["A"] * flows_a + ["B"] * flows_b, calibration, reading.arrivals),
        )
        for reading in calibration.flow_arrivals
        for flows_a in (1, 2)
        for flows_b in (1, 2)
    ]
    return Figure("table-2", "flows of both types to one host", settings, calibration.repetitions)


def _meeting(types: list[str], calibration: Calibration, arrivals: str) -> dict[str, Any]:
    """Return an experiment of flows that meet at the receiver's input link."""
    streams = []
    for host, name in enumerate(types, 1):
        size = FLOWS[name]
        # Closed: with the time of the message the gap makes the rate; a message that takes longer leaves no gap.
        gap = 1.0 / calibration.rate_per_s - (message_s(size) if arrivals == "closed" else 0.0)
        stream = {"name": f"{name} of host {host}", "class": "parallel", "from": host, "to": 0, "message_bytes": size}
        streams.append({**stream, "arrivals": arrivals, "gap_s": _exponential(gap), "messages": calibration.messages})
    return _experiment(f"{'+'.join(types)}, {arrivals}", len(types) + 1, streams)


def programs(calibration: Calibration) -> Figure:
    """Figures 3 and 4: MG, FT, EP and IS on 4 and 8 hosts, PP at every host; under every reading."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for hosts in calibration.program_hosts:
            for reading in calibration.of_programs:
                for alpha in calibration.alphas:
                    params = program_params(program, hosts, alpha, reading)
                    settings.append((params, _beside_pp(program, hosts, reading, alpha, calibration)))
    return Figure("figures-3-4", "NAS programs beside local flows", settings, calibration.repetitions)


def program_params(program: str, hosts: int, alpha: float, reading: ProgramReading) -> dict[str, Any]:
    """Return what a point of figures 3 and 4 sets."""
    each_us = {} if reading.each_us is None else {"each_us": reading.each_us}
    return {"program": program, "hosts": hosts, "transport": reading.transport, "alpha": alpha, **each_us}


def _beside_pp(
    program: str, hosts: int, reading: ProgramReading, alpha: float, calibration: Calibration
) -> dict[str, Any]:
    local: dict[str, Any] = {"class": "local", "message_bytes": LOCAL_BYTES, "messages": 1}
    if reading.each_us is None:
        many = calibration.local_outstanding
        gap = many / alpha - message_s(LOCAL_BYTES)
        local |= {"arrivals": "closed", "outstanding": many, "gap_s": _exponential(gap)}
    else:
        # A source that is late sends what it has planned as soon as its window lets it.
        local |= {"arrivals": "open", "gap_s": _exponential(1.0 / alpha)}
    streams = [{"name": f"PP of host {host}", "from": host, "to": (host + 1) % hosts, **local} for host in range(hosts)]
    job = {"program": program, "hosts": list(range(hosts)), "parameters": calibration.parameters(program)}
    return _experiment(f"{program} on {hosts}, {alpha:g}/s", hosts, streams, jobs=[job], network=reading.network())


def side(calibration: Calibration, name: str) -> Figure:
    """Figures 8, 9 and 10: a stream beside a local one that meets it at the sender, the receiver, or both."""
    settings = [
        (
            side_params(tested, kib, reading),
            _tested(name, tested, kib, reading, calibration),
        )
        for reading in (*calibration.streams, *calibration.variants)
        for tested in TESTED
        for kib in calibration.local_kib
    ]
    titles = {
        "sending": "a stream and a local one from one host",
        "receiving": "a stream and a local one to one host",
        "one-to-all": "one-to-all and all-to-one beside a local stream",
    }
    return Figure(SIDES[name], titles[name], settings, calibration.stream_repetitions)


def side_params(tested: str, kib: int, reading: StreamReading) -> dict[str, Any]:
    """Return what a point of figures 8 to 10 sets."""
    return {"stream": tested, "local_kib": kib, **reading.setting}


def _tested(side_: str, tested: str, kib: int, reading: StreamReading, calibration: Calibration) -> dict[str, Any]:
    size = TESTED[tested]
    others = list(range(1, calibration.hosts))
    ways: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
        "sending": ({"from": 0, "to": 1}, {"from": 0, "to": 2}),
        "receiving": ({"from": 0, "to": 2}, {"from": 1, "to": 2}),
        "one-to-all": ({"from": 0, "to": others, "answer_bytes": size}, {"from": 0, "to": 1}),
    }
    way, local_way = ways[side_]
    local = {"name": LOCAL_STREAMS[0], "class": "local", "message_bytes": 1024 * kib, **local_way}
    locals_ = [{**local, **_pace(reading, side_)}]
    if side_ == "one-to-all":
        # "From the source workstation and another workstation": both ways (section 6.4).
        locals_.append({**locals_[0], "name": LOCAL_STREAMS[1], "from": local["to"], "to": local["from"]})
    test = {"name": tested, "class": "parallel", "message_bytes": size, **way, "arrivals": "backlogged"}
    timed = [{**stream, "messages": calibration.messages} for stream in (test, *locals_)]
    policy: dict[str, Any] = {"queue": "threshold", "threshold": calibration.threshold, "batch": reading.batch}
    if side_ != "sending" and reading.credits:
        # A receiver that grants less than a batch would keep it apart.
        policy |= {"credits": "receiver", "receive_threshold": reading.batch}
    name = f"{side_}: {tested} beside {kib} KiB"
    return _experiment(name, calibration.hosts, timed, policy=policy, network=reading.network())


def _pace(reading: StreamReading, side_: str) -> dict[str, Any]:
    """Return how often the local stream sends."""
    if reading.receiving is None:
        return {"arrivals": "backlogged", "outstanding": reading.local_outstanding}
    slower = 1.0 if side_ == "sending" else max(1.0, reading.receiving)
    return {"arrivals": "open", "gap_s": reading.gap_s(slower)}


def _exponential(mean: float) -> dict[str, Any]:
    return {"distribution": "exponential", "mean": mean}


def _experiment(
    name: str,
    hosts: int,
    streams: list[dict[str, Any]],
    *,
    jobs: list[dict[str, Any]] | None = None,
    policy: Mapping[str, Any] | None = None,
    network: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    links = dict(network or ProgramReading("reliable").network())
    workload = {"kind": "streams", "hosts": hosts, "stream": streams, **({"job": jobs} if jobs else {})}
    whole = {"schema_version": 1, "name": name, "network": links, "workload": workload}
    return {**whole, "policy": dict(policy)} if policy else whole
