"""The whole study in one directory: `study.json`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from crosswind.documents import Document, Row
from crosswind.lab.papers.driver import Work
from crosswind.lab.papers.quadrics_overlap.calibration import Calibration, of
from crosswind.lab.papers.quadrics_overlap.claims import claims
from crosswind.lab.papers.quadrics_overlap.matrix import Matrix, simulate
from crosswind.lab.papers.quadrics_overlap.tables import BURN_S, CELLS, SETTINGS, in_words, printed
from crosswind.lab.papers.tabled_study import Drawing, Part, TabledStudy
from crosswind.terminal.waiting import as_done, threads

__all__ = ["PAPER", "TITLE", "expected", "of", "studied", "study"]

PAPER = "quadrics-overlap"
"""Name of the paper on the command line and in files."""
TITLE = "Overlapping of Computation and Communication in the Quadrics Network"
MATRICES = "matrices"
WAITS = ("event", "poll", "spin-block", "buffered")
FAIR = "a fair share, without lingering"
LINGERS, PROMPT = "an event wait lingers", "an event wait gives the processor away at once"


def expected(chosen: Calibration) -> dict[str, int]:
    """Return how many matrices there are."""
    return {MATRICES: len(_wanted(chosen))}


def study(chosen: Calibration, work: Work) -> TabledStudy:
    """Simulate every table of the paper, matrices side by side, and grade its claims."""
    wanted, found = _wanted(chosen), dict[str, Matrix]()
    tell = work.tell(MATRICES, len(wanted))
    with threads(work.workers) as pool:
        futures = {pool.submit(simulate, **how): name for name, how in wanted.items()}
        for future in as_done(futures):
            found[futures[future]] = future.result()
            tell(len(found) / len(wanted), f"{len(found)} of {len(wanted)} matrices")
    return studied(chosen, found)


def _wanted(chosen: Calibration) -> dict[str, Document]:
    waits = {wait: (wait, 0) for wait in WAITS}
    fewer = {"calibration": replace(chosen, repetitions=chosen.variant_repetitions)}
    return {
        LINGERS: {"calibration": chosen},
        PROMPT: {"calibration": chosen, "linger_s": 0.0},
        FAIR: {**fewer, "scheduler": "fair", "linger_s": 0.0},
        "waits, decay": {**fewer, "settings": waits},
        "waits, fair": {**fewer, "settings": waits, "scheduler": "fair", "linger_s": 0.0},
    }


def studied(chosen: Calibration, found: Mapping[str, Matrix]) -> TabledStudy:
    """Return the study of such matrices."""
    return TabledStudy(
        paper=PAPER,
        title=TITLE,
        form=chosen.form,
        calibration=chosen.table(),
        claims=claims({name: found[name] for name in (LINGERS, PROMPT, FAIR)}),
        parts=[
            _tables(found[LINGERS], found[PROMPT]),
            _schedulers(found[PROMPT], found[FAIR]),
            _waits(found["waits, decay"], found["waits, fair"]),
        ],
    )


def _tables(matrix: Matrix, prompt: Matrix) -> Part:
    columns = [
        ("setting", ""),
        ("messages", ""),
        ("ping, printed", "s"),
        ("ping, simulated", "s"),
        ("off by", "%"),
        ("burners, printed", "s"),
        ("burners, simulated", "s"),
        ("off by", "%"),
        ("burners without lingering", "s"),
    ]
    rows: list[list[str | float]] = []
    ping: list[Row] = []
    burn: list[Row] = []
    for setting in SETTINGS:
        for cell in CELLS:
            paper, simulated, other = printed(setting, cell), matrix[setting, cell], prompt[setting, cell]
            off = [100 * (a / b - 1) for a, b in ((simulated.ping_s, paper.ping_s), (simulated.burn_s, paper.burn_s))]
            times = (paper.ping_s, simulated.ping_s, off[0], paper.burn_s, simulated.burn_s, off[1], other.burn_s)
            rows.append([setting, in_words(cell), *times])
            name = f"{setting}, {in_words(cell)}"
            alone = printed("alone", cell)
            ping += [
                _point(name, "printed", paper.ping_s / alone.ping_s),
                _point(name, "simulated", simulated.ping_slowdown),
            ]
            burn += [
                _point(name, "printed", paper.burn_s / BURN_S),
                _point(name, "simulated", simulated.burn_slowdown),
            ]
    close = sum(abs(row[at]) <= 10 for row in rows for at in (4, 7))  # type: ignore[arg-type]
    return Part(
        "tables",
        "Tables 2 to 4",
        columns,
        rows,
        [
            Drawing("Tables 2 to 4: the ping", "Slowdown of the ping, printed and simulated.", ping, log=True),
            Drawing("Tables 2 to 4: the burners", "Slowdown of the burners, printed and simulated.", burn),
        ],
        f"{close} of {2 * len(rows)} simulated times lie within 10 % of the printed ones, four of them calibrated on.",
    )


def _schedulers(decay: Matrix, fair: Matrix) -> Part:
    columns = [("setting", ""), ("messages", "")]
    columns += [(f"{program}, {name}", "slowdown") for name in ("decay", "fair") for program in ("ping", "burners")]
    rows: list[list[str | float]] = []
    points = []
    for setting in SETTINGS:
        for cell in CELLS:
            times = (decay[setting, cell], fair[setting, cell])
            slowdowns = [value for one in times for value in (one.ping_slowdown, one.burn_slowdown)]
            rows.append([setting, in_words(cell), *slowdowns])
            for name, one in zip(("decay", "fair"), times, strict=True):
                points.append(_point(f"{setting}, {in_words(cell)}", name, one.ping_slowdown))
    words = "Slowdown of the ping under the scheduler of 2001 and under a fair share."
    drawing = Drawing("The ping under two schedulers", words, points, log=True)
    note = "The same cells, without lingering, where processors are shared fairly: the paper had no such scheduler."
    return Part("schedulers", "The same under a fair-share scheduler", columns, rows, [drawing], note)


def _waits(decay: Matrix, fair: Matrix) -> Part:
    columns = [("scheduler", ""), ("wait", ""), ("messages", ""), ("ping alone", "s"), ("ping", "s"), ("burners", "s")]
    columns += [("processor time of the ping", "s")]
    rows: list[list[str | float]] = []
    points = []
    for name, matrix in (("decay", decay), ("fair", fair)):
        for wait in WAITS:
            for cell in CELLS:
                one = matrix[wait, cell]
                rows.append(
                    [name, wait, in_words(cell), one.ping_alone_s, one.ping_s, one.burn_s, one.ping_cpu_beside_s]
                )
                if cell[0] > 1:
                    points.append(_point(f"{name}, {in_words(cell)}", wait, one.burn_slowdown))
    drawing = Drawing("The burners beside each wait", "Slowdown of the burners, all at nice 0.", points)
    note = (
        "What the paper wanted the overlap for, buffered coscheduling (messages are posted and move in slices that all "
        "nodes agree on), beside its two waits and beside a spin for as long as blocking costs. All at nice 0."
    )
    return Part("waits", "Buffered coscheduling beside the other waits", columns, rows, [drawing], note)


def _point(name: str, series: str, slowdown: float) -> Row:
    return {"name": name, "series": series, "low": slowdown, "middle": slowdown, "high": slowdown}
