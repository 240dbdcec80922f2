"""Figure 5 and table 4 of the study: rows and drawings."""

from __future__ import annotations

from collections.abc import Sequence

from crosswind import plan
from crosswind.lab.engine import fork_throughput
from crosswind.lab.papers import table_4
from crosswind.lab.papers.interference_aware_scheduling.calibration import AHEAD, SIZES_MB, WORKS, Reading
from crosswind.lab.papers.interference_aware_scheduling.figures import ALGORITHMS, APPLICATIONS
from crosswind.lab.papers.interference_aware_scheduling.fork_claims import EXCEPTION
from crosswind.lab.papers.interference_aware_scheduling.rows import Rows
from crosswind.lab.papers.tabled_study import Cell, Drawing, Part

OF_ROOT = "time over that of RootComputes"
CLOSED = {"IA:Single": "interference-rate", "BWC": "bandwidth", "CompRate": "compute"}
"""Algorithm -> order of service whose steady state has a closed form."""


def parts(rows: Rows) -> list[Part]:
    """Return every part, in the order of the paper."""
    return [_table_4(), *(_figure_5(rows, size) for size in SIZES_MB), _won(rows), _steady(rows)]


def _table_4() -> Part:
    columns: list[tuple[str, str]] = [("leaf", "")]
    columns += [(f"IR of sending, row 8 {how}", "s/MB") for how in ("printed", "from rows 1, 3, 6")]
    columns += [(f"IR of receiving, row 9 {how}", "s/MB") for how in ("printed", "from rows 2, 4, 6")]
    columns.append(("consistent", ""))
    table: list[Sequence[Cell]] = [
        [
            leaf.leaf,
            leaf.ir_send_both_compute_s_per_mb,
            leaf.ir_send_from_rates,
            leaf.ir_receive_both_compute_s_per_mb,
            leaf.ir_receive_from_rates,
            "yes" if leaf.consistent else "no",
        ]
        for leaf in table_4.load()
    ]
    return Part("table-4", "Table 4: interference, printed and from the other rows", columns, table)


def _drawn(rows: Rows) -> list[Reading]:
    """Return row 7 with a link that one sender fills, and with one of which it fills nine tenths."""
    usual = [reading for reading in rows.calibration.readings if reading.ahead == AHEAD]
    return [reading for reading in usual if reading.row == 7 and reading.share in (1.0, 0.9)]


def _figure_5(rows: Rows, size: int) -> Part:
    letter = "abc"[SIZES_MB.index(size)]
    title = f"Figure 5{letter}: tasks of {size} MB"
    columns: list[tuple[str, str]] = [("reading", ""), ("work", "diagonals")]
    columns += [*((name, "of RootComputes") for name in ALGORITHMS), ("fastest", "")]
    table: list[Sequence[Cell]] = []
    drawings = []
    for reading in rows.calibration.readings:
        for work in WORKS:
            times = rows.times(reading, (size, work))
            table.append([reading.name, work, *times.values(), rows.best(reading, (size, work))])
    for reading in _drawn(rows):
        points = [
            {"name": f"{work} diagonals", "series": name, "low": time, "middle": time, "high": time}
            for work in WORKS
            for name, time in rows.times(reading, (size, work)).items()
        ]
        words = f"Times of 1000 tasks of {size} MB over that of RootComputes; {reading.name}."
        drawings.append(Drawing(f"{title}, {reading.name}", words, points, y=OF_ROOT))
    note = "The bars of the paper's figure are lost; what the text says of them is graded (K-9)."
    return Part(f"figure-5{letter}", title, columns, table, drawings, note)


def _won(rows: Rows) -> Part:
    columns = [
        ("row of table 4", ""),
        ("one sender's share", ""),
        ("tasks ahead", ""),
        *((f"{name} fastest", "of 18") for name in ALGORITHMS),
    ]
    columns += [("several ports best, steady state", "of 18"), ("IA:Multi not the fastest at", "")]
    table: list[Sequence[Cell]] = []
    for reading in rows.calibration.readings:
        won = {name: rows.won(reading, name) for name in ALGORITHMS}
        lost = [one for one in APPLICATIONS if one not in won["IA:Multi"]]
        said = "all but the printed exception" if lost == [EXCEPTION] else ""
        words = said or ", ".join(f"({size}, {work})" for size, work in lost)
        counts = [len(found) for found in won.values()]
        table.append([str(reading.row), reading.share, reading.ahead, *counts, steadily_won(reading), words])
    note = "Over what one sender fills of a near link: 0.85 to 0.95 in section 2.3, 1 in table 4's single sends."
    return Part("fastest", "How often each algorithm is the fastest", columns, table, (), note)


def steadily_won(reading: Reading) -> int:
    """Return at how many applications the best plan with several ports beats every closed form, and the root alone."""
    checked, won = reading.checked, 0
    for size, work in APPLICATIONS:
        several = plan(checked, task_size_mb=size, task_work=work, ports="multi")
        others = [fork_throughput(checked, size, work, order) for order in CLOSED.values()]
        alone = several.data["root_only_tasks_per_s"]
        won += several.throughput_tasks_per_s > max(*others, alone) * (1 + 1e-9)
    return won


def _steady(rows: Rows) -> Part:
    """Return closed forms and exact plans beside the runs, which have a start and an end."""
    columns: list[tuple[str, str]] = [("reading", ""), ("size", "MB"), ("work", "diagonals")]
    columns += [(f"best plan, {ports}", "of RootComputes") for ports in ("one port", "several")]
    for name in CLOSED:
        columns += [(f"{name}, closed form", "of RootComputes"), ("simulated", "of RootComputes")]
    columns.append(("IA:Multi, simulated", "of RootComputes"))
    table: list[Sequence[Cell]] = []
    for reading in _drawn(rows):
        checked = reading.checked
        for size, work in APPLICATIONS:
            single, multi = (
                plan(checked, task_size_mb=size, task_work=work, ports=ports) for ports in ("single", "multi")
            )
            alone, times = single.data["root_only_tasks_per_s"], rows.times(reading, (size, work))
            cells: list[Cell] = []
            for name, order in CLOSED.items():
                cells += [alone / fork_throughput(checked, size, work, order), times[name]]
            plans = [alone / one.throughput_tasks_per_s for one in (single, multi)]
            table.append([reading.name, size, work, *plans, *cells, times["IA:Multi"]])
    note = "Steady states beside runs of 1000 tasks, whose start and end take up to a tenth where a leaf is slow."
    return Part("steady-state", "Figure 5 in the steady state", columns, table, (), note)
