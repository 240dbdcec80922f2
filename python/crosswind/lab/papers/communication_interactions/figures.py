"""The runs that the paper's figures and table 2 need: experiments of kind streams."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from crosswind.documents import Document
from crosswind.lab.papers.communication_interactions.calibration import (
    FLOWS,
    LOCAL_BYTES,
    PROGRAMS,
    TESTED,
    Calibration,
    FlowReading,
    ProgramReading,
    StreamReading,
    message_s,
)
from crosswind.lab.papers.figure import Figure, Setting

LOCAL_STREAMS = ("local", "local back")
"""Of one-to-all: "from the source workstation and another workstation" (section 6.4)."""

SIDES = {"sending": "figure-8", "receiving": "figure-9", "one-to-all": "figure-10"}


def all_figures(calibration: Calibration) -> list[Figure]:
    """Return every figure, in the order in which they are run."""
    return [alike(calibration), mixed(calibration), programs(calibration), *(side(calibration, name) for name in SIDES)]


def alike(calibration: Calibration) -> Figure:
    """Figure 2: flows of one type from different hosts to one."""
    settings = [
        (
            {"type": name, "flows": count, **reading.setting},
            _meeting([name] * count, calibration, reading),
        )
        for reading in calibration.flow_arrivals
        for name in FLOWS
        for count in calibration.flows
    ]
    return Figure(
        "figure-2", "flows of one type to one host", settings, "streams", calibration.repetitions, calibration.seed
    )


def mixed(calibration: Calibration) -> Figure:
    """Table 2: flows of types A and B to one host."""
    settings = [
        (
            {"flows_a": flows_a, "flows_b": flows_b, **reading.setting},
            _meeting(["A"] * flows_a + ["B"] * flows_b, calibration, reading),
        )
        for reading in calibration.flow_arrivals
        for flows_a in (1, 2)
        for flows_b in (1, 2)
    ]
    return Figure(
        "table-2", "flows of both types to one host", settings, "streams", calibration.repetitions, calibration.seed
    )


def _meeting(types: list[str], calibration: Calibration, reading: FlowReading) -> Document:
    """Return an experiment of flows that meet at the receiver's input link."""
    streams = []
    for host, name in enumerate(types, 1):
        size = FLOWS[name]
        arrivals = "open" if reading.arrivals == "open" else "closed"
        stream = {"name": f"{name} of host {host}", "class": "parallel", "from": host, "to": 0, "message_bytes": size}
        gap = reading.gap_s(name, calibration.rate_per_s)
        streams.append({**stream, "arrivals": arrivals, "gap_s": gap, "messages": calibration.messages})
    return _experiment(f"{'+'.join(types)}, {reading.arrivals}", len(types) + 1, streams)


def programs(calibration: Calibration) -> Figure:
    """Figures 3 and 4: MG, FT, EP and IS on 4 and 8 hosts, PP at every host; under every reading."""
    settings: list[Setting] = []
    for program in PROGRAMS:
        for hosts in calibration.program_hosts:
            for reading in calibration.of_programs:
                for alpha in calibration.alphas:
                    params = program_params(program, hosts, alpha, reading)
                    settings.append((params, _beside_pp(program, hosts, reading, alpha, calibration)))
    return Figure(
        "figures-3-4", "NAS programs beside local flows", settings, "streams", calibration.repetitions, calibration.seed
    )


def program_params(program: str, hosts: int, alpha: float, reading: ProgramReading) -> Document:
    """Return what a point of figures 3 and 4 sets."""
    each_us = {} if reading.each_us is None else {"each_us": reading.each_us}
    return {"program": program, "hosts": hosts, "transport": reading.transport, "alpha": alpha, **each_us}


def _beside_pp(program: str, hosts: int, reading: ProgramReading, alpha: float, calibration: Calibration) -> Document:
    local: Document = {"class": "local", "message_bytes": LOCAL_BYTES, "messages": 1}
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
    return Figure(SIDES[name], titles[name], settings, "streams", calibration.stream_repetitions, calibration.seed)


def side_params(tested: str, kib: int, reading: StreamReading) -> Document:
    """Return what a point of figures 8 to 10 sets."""
    return {"stream": tested, "local_kib": kib, **reading.setting}


def _tested(side_: str, tested: str, kib: int, reading: StreamReading, calibration: Calibration) -> Document:
    size = TESTED[tested]
    others = list(range(1, calibration.hosts))
    ways: dict[str, tuple[Document, Document]] = {
        "sending": ({"from": 0, "to": 1}, {"from": 0, "to": 2}),
        "receiving": ({"from": 0, "to": 2}, {"from": 1, "to": 2}),
        "one-to-all": ({"from": 0, "to": others, "answer_bytes": size}, {"from": 0, "to": 1}),
    }
    way, local_way = ways[side_]
    local = {"name": LOCAL_STREAMS[0], "class": "local", "message_bytes": 1024 * kib, **local_way}
    locals_ = [{**local, **_pace(reading, side_, kib)}]
    if side_ == "one-to-all":
        # "From the source workstation and another workstation": both ways (section 6.4).
        locals_.append({**locals_[0], "name": LOCAL_STREAMS[1], "from": local["to"], "to": local["from"]})
    pace: Document = {"arrivals": "backlogged"}
    if reading.tested_gap_ms is not None:
        pace = {"arrivals": "open", "gap_s": _exponential(1e-3 * reading.tested_gap_ms)}
    test = {"name": tested, "class": "parallel", "message_bytes": size, **way, **pace}
    timed = [{**stream, "messages": calibration.messages} for stream in (test, *locals_)]
    if reading.drawn_lengths:
        lengths = ("message_bytes", "answer_bytes")
        timed = [
            {name: _exponential(value) if name in lengths else value for name, value in stream.items()}
            for stream in timed
        ]
    policy: Document = {"queue": "threshold", "threshold": calibration.threshold, "batch": reading.batch}
    if side_ != "sending" and reading.credits:
        # A receiver that grants less than a batch would keep it apart.
        policy |= {"credits": "receiver", "receive_threshold": reading.batch}
    name = f"{side_}: {tested} beside {kib} KiB"
    return _experiment(name, calibration.hosts, timed, policy=policy, network=reading.network())


def _pace(reading: StreamReading, side_: str, kib: int) -> Document:
    """Return how often the local stream sends."""
    if reading.receiving is None:
        return {"arrivals": "backlogged", "outstanding": reading.local_outstanding}
    slower = 1.0 if side_ == "sending" else max(1.0, reading.receiving)
    return {"arrivals": "open", "gap_s": reading.gap_s(slower, kib)}


def _exponential(mean: float) -> Document:
    return {"distribution": "exponential", "mean": mean}


def _experiment(
    name: str,
    hosts: int,
    streams: list[Document],
    *,
    jobs: list[Document] | None = None,
    policy: Mapping[str, Any] | None = None,
    network: Mapping[str, Any] | None = None,
) -> Document:
    links = dict(network or ProgramReading("reliable").network())
    workload = {"kind": "streams", "hosts": hosts, "stream": streams, **({"job": jobs} if jobs else {})}
    whole = {"schema_version": 1, "name": name, "network": links, "workload": workload}
    return {**whole, "policy": dict(policy)} if policy else whole
