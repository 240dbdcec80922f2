"""A paper run again whose results are tables: calibration, graded claims, parts with rows and drawings; `study.json`.

What a part means, its study knows; the report prints and draws every part alike.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from crosswind.documents import Row
from crosswind.files.atomic import write_json
from crosswind.files.tabular import Plotted
from crosswind.lab.papers.grading import HINT, Claim

SCHEMA_VERSION = 1
SLOWDOWN = "slowdown"
Cell = str | float | int | None


@dataclass(frozen=True)
class Drawing:
    """Slowdowns that are drawn: curves over a value, or, without `x`, dots in rows.

    Attributes
    ----------
    title, words : str
        What stands above it; what it shows, in a sentence.
    x : str
        What is varied, with its unit; empty for dots.
    log : bool
        Whether slowdowns stand on a logarithmic scale.
    y : str
        What is drawn, where it is no slowdown.
    points : list of dict
        `series`, `low`, `middle`, `high`; `value` (curves) or `name` (dots).
    """

    title: str
    words: str
    points: Sequence[Mapping[str, Any]]
    x: str = ""
    log: bool = False
    y: str = SLOWDOWN

    def summary(self) -> Row:
        """Return it as JSON could hold it."""
        points = [dict(point) for point in self.points]
        return {"title": self.title, "words": self.words, "points": points, "x": self.x, "log": self.log, "y": self.y}


@dataclass(frozen=True)
class Part:
    """A table or figure of the paper, run again.

    Attributes
    ----------
    id, title : str
        Such as `table-3`; what stands above it.
    columns : sequence of (str, str)
        Label and unit of each.
    rows : sequence of sequences
        Words and numbers; None where there is nothing.
    drawings : sequence of Drawing
    note : str
        What must be known to read it.
    """

    id: str
    title: str
    columns: Sequence[tuple[str, str]]
    rows: Sequence[Sequence[Cell]]
    drawings: Sequence[Drawing] = ()
    note: str = ""

    def summary(self) -> Row:
        """Return it as JSON could hold it."""
        return {
            "id": self.id,
            "title": self.title,
            "columns": [list(column) for column in self.columns],
            "rows": [list(row) for row in self.rows],
            "drawings": [drawing.summary() for drawing in self.drawings],
            "note": self.note,
        }

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Part:
        """Make it of what `summary` returned."""
        columns = [(label, unit) for label, unit in entry["columns"]]
        drawings = [Drawing(**drawing) for drawing in entry["drawings"]]
        return cls(entry["id"], entry["title"], columns, entry["rows"], drawings, entry["note"])


@dataclass(frozen=True)
class TabledStudy(Plotted):
    """The result of reproducing a paper.

    Attributes
    ----------
    paper, title : str
        Its name on the command line; its title.
    form : str
        quick or full.
    calibration : list of (str, str, str)
        What stands in the place of what the text leaves open: name, value, whence.
    claims : list of Claim
        Graded.
    parts : list of Part
        Tables and figures.
    """

    paper: str
    title: str
    form: str
    calibration: Sequence[tuple[str, str, str]]
    claims: Sequence[Claim]
    parts: Sequence[Part] = field(default_factory=list)

    @classmethod
    def load(cls, path: str | Path) -> TabledStudy:
        """Read a `study.json` of such a paper.

        Raises
        ------
        DescriptionError
            When it is none, one of another version, or with the first field that is wrong.
        """
        from crosswind.documents.reading import read_document
        from crosswind.lab.papers.document import TabledStudyDocument

        document = read_document(path, "study", SCHEMA_VERSION, HINT, TabledStudyDocument)
        return cls(
            paper=document["paper"],
            title=document["title"],
            form=document["form"],
            calibration=[(name, value, whence) for name, value, whence in document["calibration"]],
            claims=[Claim.from_dict(entry) for entry in document["claims"]],
            parts=[Part.from_dict(entry) for entry in document["parts"]],
        )

    def part(self, name: str) -> Part:
        """Return the part of this id.

        Raises
        ------
        KeyError
            When there is none.
        """
        found = [part for part in self.parts if part.id == name]
        if not found:
            raise KeyError(name)
        return found[0]

    def summary(self) -> Row:
        """Return the content of `study.json`: what `crosswind reproduce --json` prints."""
        return {
            "schema_version": SCHEMA_VERSION,
            "kind": "study",
            "paper": self.paper,
            "title": self.title,
            "form": self.form,
            "calibration": [list(one) for one in self.calibration],
            "claims": [claim.summary() for claim in self.claims],
            "parts": [part.summary() for part in self.parts],
        }

    def save(self, path: str | Path) -> None:
        """Write a `study.json`; an existing file is replaced only once the new one is complete."""
        write_json(self.summary(), path)

    def __repr__(self) -> str:
        return f"TabledStudy({self.paper}, {self.form}, {len(self.claims)} claims)"
