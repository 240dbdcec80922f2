"""The whole study in one directory: `study.json`. Its claims are asked of the printed tables; nothing is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from crosswind.lab.papers import table_2
from crosswind.lab.papers.driver import Form, Work
from crosswind.lab.papers.grading import Claim
from crosswind.lab.papers.interference_in_java import both_directions, linearity, nodes, printed
from crosswind.lab.papers.tabled_study import Part, TabledStudy

PAPER = "interference-in-java"
"""Name of the paper on the command line and in files."""
TITLE = "On the Interference of Communication on Computation in Java"


@dataclass(frozen=True)
class Calibration:
    """Nothing is calibrated: the printed figures are asked.

    Attributes
    ----------
    form : str
        quick or full; both are the same.
    """

    form: Form

    def table(self) -> list[tuple[str, str, str]]:
        """Return how printed numbers are compared."""
        return [
            ("a printed number", "what rounds to its digits", '"about" and "around" say that it is rounded'),
            (
                "marginal, no significant variation",
                "not decided",
                "words that need a number, which the text does not give (3.1, 3.5)",
            ),
        ]


def of(form: Form) -> Calibration:
    """Return the calibration of a form."""
    return Calibration(form)


def expected(chosen: Calibration) -> Mapping[str, int]:
    """Return how many runs there are: none."""
    return {}


def study(chosen: Calibration, work: Work) -> TabledStudy:
    """Grade every claim."""
    return TabledStudy(PAPER, TITLE, chosen.form, chosen.table(), claims(), [_table_2()])


def claims() -> list[Claim]:
    """Return every claim, graded."""
    every = [*linearity.claims(), *both_directions.claims(), *nodes.claims()]
    return sorted(every, key=lambda claim: int(claim.id.removeprefix("K-")))


def _table_2() -> Part:
    columns: list[tuple[str, str]] = [("node", "")]
    for way in ("receiving", "sending"):
        columns += [(f"IR, {way}", "s/MB"), (f"left at 10 MB/s, {way}", "of the full rate")]
    columns.append(("receiving over sending", ""))
    rows: list[list[Any]] = [
        [
            peer.node,
            *(
                part
                for line in (peer.receive, peer.send)
                for part in (line.ir_s_per_mb, line.intercept - 10 * line.ir_s_per_mb)
            ),
            peer.receive.ir_s_per_mb / peer.send.ir_s_per_mb,
        ]
        for peer in table_2.load()
    ]
    note = (
        f"As printed. A link carries at most {printed.RECEIVED_MB_PER_S:g} MB/s. Remote nodes reach less than 1 MB/s:"
        " what is left at 10 MB/s is read off their lines."
    )
    return Part("table-2", "Table 2: what Lab0 loses by node", columns, rows, (), note)


__all__ = ["PAPER", "TITLE", "claims", "expected", "of", "study"]
