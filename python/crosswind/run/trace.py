"""Trace: what each node did when, one row per activity (`trace.parquet`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.files.atomic import replaced
from crosswind.files.columns import Column, checked
from crosswind.files.reading import parquet_metadata, read_parquet
from crosswind.files.tabular import Tabular
from crosswind.platform import Platform, as_html_table

if TYPE_CHECKING:
    from crosswind.documents.shared import Node, Run
    from crosswind.documents.trace import TraceHeader

KEY = b"crosswind.trace"
SCHEMA_VERSION = 1
WORD = pa.dictionary(pa.int32(), pa.string())
COLUMNS = pa.schema(
    [
        ("kind", WORD),
        ("node", WORD),
        ("child", WORD),
        ("task", pa.uint64()),
        ("start_s", pa.float64()),
        ("end_s", pa.float64()),
        ("mb", pa.float64()),
        ("work", pa.float64()),
        ("cut", pa.bool_()),
    ]
)
_CHECKED = (
    Column("kind", "word"),
    Column("node", "word"),
    Column("child", "word", empty=True),
    Column("task", "whole", least=0, most=2**63),
    *(Column(name, least=0.0, unknown=False) for name in ("start_s", "end_s", "mb", "work")),
    Column("cut", "flag", empty=True, optional=True),  # older files lack it
)


_ALIKE = ["kind", "node", "child", "mb", "work"]
"""Columns in which values repeat."""
_ENCODINGS = {"task": "DELTA_BINARY_PACKED", "start_s": "BYTE_STREAM_SPLIT", "end_s": "BYTE_STREAM_SPLIT"}
"""Of the others: written in a third of the time, and two thirds as long as with Parquet's defaults."""


@dataclass(frozen=True)
class Trace(Tabular):
    """Activities of a run, one row each, with the header that says of which run.

    Attributes
    ----------
    activities : pyarrow.Table
        `kind` (compute, send, result), `node`, `child` (of a send or a result), `task`, `start_s`, `end_s`, `mb`,
        `work`, `cut` (whether it was cut short, since a node left; null: unknown).
    header : dict
        The file's header; its JSON Schema is `crosswind schema trace`.
    """

    activities: pa.Table
    header: TraceHeader

    @classmethod
    def load(cls, path: str | Path) -> Trace:
        """Read a `trace.parquet`.

        Raises
        ------
        DescriptionError
            When the file is no trace, or one of another schema version.
        """
        path = Path(path)
        hint = "`crosswind run EXPERIMENT --trace FILE` makes one"
        try:
            table = read_parquet(path)
        except OSError as error:
            if not path.exists():
                raise DescriptionError(f"{path}: no such file", "no-file", hint) from None
            why = str(error).splitlines()[0].split(": ")[-1]
            raise DescriptionError(f"{path}: is no Parquet file ({why})", "no-trace", hint) from None
        text = (table.schema.metadata or {}).get(KEY)
        if text is None:
            raise DescriptionError(f"{path}: is a Parquet file, but no trace of Crosswind", "no-trace", hint)
        header = json.loads(_core.read_result("trace", text, str(path)))
        Platform.from_dict(header["platform"])
        found = checked(table, _CHECKED, path, "no-trace", hint)
        if "cut" not in found.column_names:
            found = found.append_column("cut", pa.nulls(found.num_rows, pa.bool_()))
        return cls(found.select(COLUMNS.names).cast(COLUMNS), header)

    @staticmethod
    def is_one(path: str | Path) -> bool:
        """Whether a file is a Parquet file with a trace's header."""
        return KEY in parquet_metadata(path)

    def save(self, path: str | Path) -> None:
        """Write a `trace.parquet`; an existing file is replaced only once the new one is complete."""
        text = _core.read_result("trace", json.dumps(self.header).encode(), str(path))
        with replaced(path) as file:
            table = self.activities.replace_schema_metadata({KEY: text.encode()})
            pq.write_table(
                table,
                file,
                compression="zstd",
                use_dictionary=_ALIKE,  # type: ignore[arg-type]  # the stubs know a bool only
                column_encoding=_ENCODINGS,
                write_statistics=False,
            )

    @property
    def run(self) -> Run:
        """The run's result: its entry in `runs.json`."""
        return self.header["run"]

    @property
    def nodes(self) -> list[Node]:
        """The platform's nodes."""
        return self.header["platform"]["node"]

    def of_kind(self, kind: str) -> pa.Table:
        """Return the activities of one kind: compute, send or result."""
        return self.activities.filter(pc.equal(self.activities["kind"], pa.scalar(kind)))

    def to_arrow(self) -> pa.Table:
        """Return the activities as an Arrow table."""
        return self.activities

    def __repr__(self) -> str:
        return f"Trace({self.header['experiment']!r}, on {self.header['on']}, {self.activities.num_rows} activities)"

    def _repr_html_(self) -> str:
        caption = f"{self.header['experiment']}: {self.activities.num_rows} activities"
        return as_html_table(caption, self.activities.slice(0, 20).to_pylist())
