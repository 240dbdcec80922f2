"""Tables and drawings of the study, one part for each figure and table of the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from crosswind.documents import Document, Row
from crosswind.lab.engine import effective_ratio
from crosswind.lab.papers.communication_interactions import printed
from crosswind.lab.papers.communication_interactions.calibration import (
    FLOWS,
    PROGRAMS,
    TESTED,
    TIMES,
    Calibration,
    ProgramReading,
    StreamReading,
    link_s,
)
from crosswind.lab.papers.communication_interactions.figures import SIDES
from crosswind.lab.papers.communication_interactions.rows import RECEIVED, Rows, Spread
from crosswind.lab.papers.tabled_study import Cell, Drawing, Part

QUEUES = {"fifo": "one queue", "queued": "two queues"}
DELTA = "Slowdown of δ: the latency of one flow alone over that of flows together; 1 is no loss, as the paper has it."
FORMS: dict[str, Document] = {
    "(2.2) as printed": {"form": "literal", "messages_per_s": 2480},
    "reconstructed (E4-3)": {"form": "reconstructed", "window_messages": 256},
    "50 µs for each other flow (E4-3)": {"form": "linear-latency", "per_flow": 0.1},
}
"""Closed forms of δ beside figure 2, each over its own value for one flow."""
ETA = "η = (T - t) / t (2.1); drawn is 1 + η. Two queues are not in the paper's figures 3 and 4."


TIMES_OF = {
    "sending": "Slowdowns of the time to receive 100 messages (section 6.2).",
    "receiving": "Slowdowns of the time to receive 100 messages (section 6.3).",
    "one-to-all": (
        "Slowdowns of a message's transmission (section 6.4), and of the time to receive 100. There is a local stream"
        " each way; the slower one is shown. One queue's plateau is as long as a connection's window."
    ),
}


def parts(rows: Rows, calibration: Calibration) -> list[Part]:
    """Return every part, in the order of the paper."""
    return [
        _flows(rows, calibration),
        _mixed(rows, calibration),
        _skeletons(rows, calibration),
        _programs(rows, calibration, "figure-3", "Figure 3: MG and FT beside local flows", ("mg", "ft")),
        _programs(rows, calibration, "figure-4", "Figure 4: EP and IS beside local flows", ("ep", "is")),
        *(_side(rows, calibration, side) for side in SIDES),
    ]


def _point(series: str, value: Any, spread: Spread, plus: float = 0.0) -> Row:
    bars = {"low": spread.low + plus, "middle": spread.middle + plus, "high": spread.high + plus}
    return {"series": series, "value": str(value), **bars}


def _flows(rows: Rows, calibration: Calibration) -> Part:
    table: list[Sequence[Cell]] = []
    drawn: dict[str, list[Row]] = {}
    for reading in calibration.flow_arrivals:
        points = drawn.setdefault(reading.waits, [])
        for name in FLOWS:
            series = f"{name}, {FLOWS[name]} bytes"
            if name == "B":
                series = f"B, alone {1e6 * reading.b_alone_s:.0f} µs"
            elif points:
                continue  # B's time alone changes nothing of A.
            for count in calibration.flows:
                found = rows.delta(name, reading, flows=count)
                carries = min(1.0, 1.0 / (count * calibration.rate_per_s * link_s(FLOWS[name])))
                wanted = printed.DELTA_SLOWDOWN.get(count)
                table.append([name, FLOWS[name], count, reading.name, found.middle, wanted, carries])
                points.append(_point(series, count, found))
    drawings = []
    for waits, points in drawn.items():
        points += [
            _point("printed", count, Spread(value, value, value))
            for count, value in printed.DELTA_SLOWDOWN.items()
            if count in calibration.flows
        ]
        for name, form in FORMS.items():
            for count in calibration.flows:
                value = _closed(form, count)
                points.append(_point(name, count, Spread(value, value, value)))
        words = f"Slowdown of δ of flows A and B over the number of flows to one host; a flow {waits}."
        drawings.append(Drawing(f"Figure 2: a flow {waits}", words, points, "flows"))
    table += [
        ["closed form", None, count, name, _closed(form, count), printed.DELTA_SLOWDOWN.get(count), None]
        for name, form in FORMS.items()
        for count in calibration.flows
    ]
    columns = [
        ("type", ""),
        ("message", "bytes"),
        ("flows", ""),
        ("reading", ""),
        ("slowdown of δ", ""),
        ("printed", ""),
        ("the link carries", "of 2000/s each"),
    ]
    return Part("figure-2", "Figure 2: flows of one type to one host", columns, table, drawings, DELTA)


def _closed(form: Mapping[str, Any], flows: int) -> float:
    return effective_ratio(form, flows) / effective_ratio(form, 1)


def _mixed(rows: Rows, calibration: Calibration) -> Part:
    table: list[Sequence[Cell]] = [
        [
            mix[0],
            mix[1],
            reading.name,
            *(rows.delta(name, reading, mix=mix).middle for name in FLOWS),
            *(both[name] for name in FLOWS),
        ]
        for reading in calibration.flow_arrivals
        for mix, both in printed.TABLE_2.items()
    ]
    columns = [("flows A", ""), ("flows B", ""), ("reading", ""), ("A", ""), ("B", "")]
    columns += [("A printed", ""), ("B printed", "")]
    return Part("table-2", "Table 2: flows of both types to one host", columns, table, (), DELTA)


def _skeletons(rows: Rows, calibration: Calibration) -> Part:
    table: list[Sequence[Cell]] = []
    for program in PROGRAMS:
        for hosts in calibration.program_hosts:
            found = rows.skeleton(program, hosts)
            messages, megabytes = printed.COUNTED.get((program, hosts), (None, None))
            shorter = ", ".join(f"{key} {value}" for key, value in calibration.parameters(program).items())
            table.append(
                [
                    *(program.upper(), hosts, shorter or "as printed", found["messages"], messages),
                    *(found["bytes"] / 2**20, megabytes, found["compute_s"]),
                ]
            )
    columns = [("program", ""), ("hosts", ""), ("size", ""), ("messages", ""), ("printed", "")]
    columns += [("sent", "MB of 2^20"), ("printed", "MB"), ("computing of a host", "s")]
    note = "The skeletons are made from these counts: that they agree is an input, and no finding."
    return Part("section-4.3", "Section 4.3: what the programs send", columns, table, (), note)


def _programs(rows: Rows, calibration: Calibration, id_: str, title: str, programs: Sequence[str]) -> Part:
    table: list[Sequence[Cell]] = []
    for program, hosts, reading, alpha in _program_points(calibration, programs):
        one, two = (rows.eta(program, hosts, alpha, reading, queue).middle for queue in QUEUES)
        wanted = printed.ETA.get((program, hosts), {}).get(int(alpha))
        said = 100 * wanted if wanted is not None else None
        table.append([program.upper(), hosts, reading.name, TIMES[program], alpha, 100 * one, 100 * two, said])
    drawings = []
    for reading in calibration.of_programs:
        points = [
            _point(f"{program.upper()} on {hosts}", f"{alpha:g}", rows.eta(program, hosts, alpha, reading), 1.0)
            for program, hosts, used, alpha in _program_points(calibration, programs)
            if used == reading
        ]
        points += [
            _point(f"{program.upper()} on {hosts}, printed", alpha, Spread(value, value, value), 1.0)
            for (program, hosts), wanted in printed.ETA.items()
            for alpha, value in wanted.items()
            if program in programs and alpha in calibration.alphas
        ]
        heading = f"{title.split(':', maxsplit=1)[0]}: {reading.name}"
        words = f"T / t over the rate of local flows; {reading.name}."
        drawings.append(Drawing(heading, words, points, "messages/s of each local flow", log=True))
    columns = [("program", ""), ("hosts", ""), ("network", ""), ("time of", ""), ("local", "messages/s")]
    columns += [("η, one queue", "%"), ("η, two queues", "%"), ("printed", "%")]
    return Part(id_, title, columns, table, drawings, ETA)


def _program_points(
    calibration: Calibration, programs: Sequence[str]
) -> Iterator[tuple[str, int, ProgramReading, float]]:
    for program in programs:
        for hosts in calibration.program_hosts:
            for reading in calibration.of_programs:
                for alpha in calibration.alphas:
                    yield program, hosts, reading, alpha


def _side(rows: Rows, calibration: Calibration, side: str) -> Part:
    titles = {
        "sending": "the sending side",
        "receiving": "the receiving side",
        "one-to-all": "one-to-all and all-to-one",
    }
    title = f"{SIDES[side].replace('-', ' ').capitalize()}: {titles[side]}"
    table: list[Sequence[Cell]] = []
    most = max(calibration.local_kib)
    for reading, name in _named(calibration):
        for tested in TESTED:
            for kib in calibration.local_kib:
                found = [
                    rows.slowdown(side, tested, kib, reading, queue=queue, of=of).middle
                    for of in ("tested", "slower local")
                    for queue in QUEUES
                ]
                found.append(
                    rows.slowdown(side, tested, kib, reading, queue="queued", of="slower local", by=RECEIVED).middle
                )
                wanted = (
                    printed.SLOWDOWNS_16_KB.get(side, {}).get(tested, (None, None)) if kib == most else (None, None)
                )
                table.append([name, tested, kib, *found, *wanted])
    drawings = [
        Drawing(
            f"{SIDES[side].replace('-', ' ').capitalize()}: {tested}, {reading.name}",
            f"Slowdowns of stream {tested} and of the local stream over the length of local messages, {titles[side]}.",
            list(_side_points(rows, calibration, side, tested, reading)),
            "local message, KB",
            log=True,
        )
        for reading in _drawn(calibration)
        for tested in TESTED
    ]
    columns = [("reading", ""), ("stream", ""), ("local message", "KiB"), ("stream, one queue", ""), ("two queues", "")]
    columns += [("slower local, one queue", ""), ("two queues", ""), ("100 received, two queues", "")]
    columns += [("printed, one queue", ""), ("printed, two", "")]
    return Part(SIDES[side], title, columns, table, drawings, TIMES_OF[side])


def _named(calibration: Calibration) -> Iterator[tuple[StreamReading, str]]:
    """Yield every reading with its name, then every variant that the text rules out."""
    yield from ((reading, reading.name) for reading in calibration.streams)
    yield from ((reading, f"variant: {reading.name}") for reading in calibration.variants)


def _drawn(calibration: Calibration) -> list[StreamReading]:
    """Return section 6 as it is written, and the first variant; the table has all."""
    return [calibration.streams[0], *calibration.variants[:1]]


def _side_points(rows: Rows, calibration: Calibration, side: str, tested: str, reading: StreamReading) -> Iterator[Row]:
    for of, stream in (("tested", tested), ("slower local", "local")):
        for queue, words in QUEUES.items():
            for kib in calibration.local_kib:
                yield _point(f"{stream}, {words}", kib, rows.slowdown(side, tested, kib, reading, queue=queue, of=of))
