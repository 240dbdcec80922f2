"""An overlap matrix: its runs, the cells that follow from them, and what they say."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any

from crosswind import _core
from crosswind.files.atomic import write_json
from crosswind.files.tabular import Tabular
from crosswind.files.wrong_kind import read_result
from crosswind.overlap import verdict
from crosswind.overlap.options import Key
from crosswind.platform import as_html_table
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    import pyarrow as pa

    from crosswind.documents.overlap import OverlapCell, OverlapDocument
    from crosswind.errors import Notice

SCHEMA_VERSION = 1
TIMES = ("ping_alone_s", "burn_alone_s", "ping_s", "burn_s")
_KEYS = ("wait", "burn_nice", "messages", "message_bytes")


@dataclass(frozen=True)
class Overlap(Tabular):
    """What messages and computation cost each other on the same processors, absolute times alone and together.

    Attributes
    ----------
    summary : dict
        The content of an `overlap.json` (docs/reference/files.md).
    """

    summary: OverlapDocument

    @classmethod
    def load(cls, path: str | Path) -> Overlap:
        """Read an `overlap.json`.

        Raises
        ------
        DescriptionError
            With file, field, value and permitted range of the first thing that is wrong.
        """
        return cls(read_result(path, "overlap", "crosswind overlap -o overlap.json"))

    @classmethod
    def judged(cls, document: Mapping[str, Any], cells: Sequence[Mapping[str, Any]]) -> Overlap:
        """Make it of everything but the cells, and the cells without verdicts."""
        cpus, burners = int(document["cpus"]), int(document["burners"])
        judged = []
        for cell in cells:
            found = verdict.judge(cell, cells, cpus, burners)
            told = {"verdict": found.word, "says": found.says, "change": found.change}
            judged.append({**cell, **{name: value for name, value in told.items() if value is not None}})
        summary = {**document, "cells": judged, "findings": verdict.findings(judged) if judged else []}
        return cls(json.loads(_core.read_result("overlap", json.dumps(summary).encode(), "overlap.json")))

    @property
    def cells(self) -> list[OverlapCell]:
        """The cells: what each is of, its four times in s, `verdict`, `says`, and `change` where there is one."""
        return list(self.summary["cells"])

    @property
    def on(self) -> str:
        """Return "live" or "sim"."""
        return str(self.summary["on"])

    @property
    def findings(self) -> list[str]:
        """What the matrix says as a whole, in sentences."""
        return list(self.summary["findings"])

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this result."""
        return list(self.summary["warnings"])

    @cached_property
    def by_key(self) -> dict[Key, OverlapCell]:
        """The cells, by wait, nice level, messages and bytes."""
        return {
            Key(cell["wait"], cell["burn_nice"], cell["messages"], cell["message_bytes"]): cell for cell in self.cells
        }

    def __len__(self) -> int:
        return len(self.summary["cells"])

    def __iter__(self) -> Iterator[OverlapCell]:
        return iter(self.cells)

    def save(self, path: str | Path) -> None:
        """Write an `overlap.json`; an existing file is replaced only once the new one is complete."""
        write_json(self.summary, path)

    def tables(self) -> list[Table]:
        """Return the times of each cell, and what to change where something is known."""
        columns = [
            Column("messages"),
            Column("of"),
            Column("wait", term="overlap-wait", numeric=False),
            Column("nice"),
            *map(Column, ("messages alone", "together", "computation alone", "together")),
            Column("verdict", term="overlap-verdict", numeric=False),
        ]
        rows = [
            [
                str(cell["messages"]),
                f"{cell['message_bytes']:,} B",
                cell["wait"],
                str(cell["burn_nice"]),
                *(verdict.seconds(cell[name]) for name in ("ping_alone_s", "ping_s", "burn_alone_s", "burn_s")),
                verdict.WORDS[str(cell["verdict"])],
            ]
            for cell in self
        ]
        first = ("verdict", "wait", "nice", "messages", "of", "messages alone")
        found = [Table("Each cell of the matrix", columns, rows, first=first)]
        columns = [
            Column("where", numeric=False),
            Column("what happened", numeric=False),
            Column("what to change", term="overlap-change", numeric=False),
        ]
        rows = [[name_of(cell), cell["says"] or "", change] for cell in self if (change := cell.get("change"))]
        return [*found, Table("What to change", columns, rows)] if rows else found

    def to_arrow(self) -> pa.Table:
        """Return one row per cell, times in s."""
        import pyarrow as pa

        optional = ("ping_cpu_s", "burn_there_s", "verdict", "says", "change")
        names = (*_KEYS, *TIMES, *optional)
        return pa.Table.from_pylist([{name: cell.get(name) for name in names} for cell in self.cells])

    def __repr__(self) -> str:
        return f"Overlap({self.on!r}, {len(self)} cells, {self.summary['burners']} burners)"

    def _repr_html_(self) -> str:
        return as_html_table(f"overlap, {self.on}", self.to_arrow().to_pylist())


def name_of(cell: Mapping[str, Any]) -> str:
    """Return the name of a cell: its messages, wait and nice level."""
    return f"{cell['messages']} x {cell['message_bytes']:,} B, {cell['wait']}, nice {cell['burn_nice']}"


def cells_of(runs: Sequence[Mapping[str, Any]], keys: Sequence[Key]) -> list[OverlapCell]:
    """Return the cells that have runs of all three kinds, medians over repetitions."""
    burn_alone = [run["burn_s"] for run in runs if run["what"] == "burn-alone"]
    found = []
    for key in keys:
        alone = [
            run
            for run in runs
            if run["what"] == "ping-alone"
            and (run["wait"], run["messages"], run["message_bytes"]) == (key[0], *key[2:])
        ]
        together = [
            run for run in runs if run["what"] == "together" and tuple(run[name] for name in _KEYS) == tuple(key)
        ]
        if not (burn_alone and alone and together):
            continue
        cell: OverlapCell = {
            "wait": key.wait,
            "burn_nice": key.burn_nice,
            "messages": key.messages,
            "message_bytes": key.message_bytes,
            "ping_alone_s": median(run["ping_s"] for run in alone),
            "burn_alone_s": median(burn_alone),
            "ping_s": median(run["ping_s"] for run in together),
            "burn_s": median(run["burn_s"] for run in together),
            "ping_cpu_s": median(run["ping_cpu_s"] for run in alone),
        }
        there = [run["burn_there_s"] for run in together if run.get("burn_there_s") is not None]
        if there:
            cell["burn_there_s"] = median(there)
        found.append(cell)
    return found
