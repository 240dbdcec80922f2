"""Columns of activities from the compiled half, as one table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.experiment import FarmPoint
from crosswind.platform import Platform
from crosswind.run.trace import COLUMNS, SCHEMA_VERSION, Trace

if TYPE_CHECKING:
    from crosswind.documents.shared import Run

KINDS = ("compute", "send", "result")
"""The words of the column `kind`, by their codes."""
NOBODY = 0xFFFF_FFFF
"""Code of a child that is none."""


def traced(columns: Mapping[str, bytes], summary: Run, point: FarmPoint, on: str) -> Trace:
    """Return the trace of a point's run."""
    return as_trace(columns, summary, point.platform, str(point.description["name"]), on)


def as_trace(columns: Mapping[str, bytes], summary: Run, platform: Platform, name: str, on: str) -> Trace:
    """Return columns of activities as a trace, with the header that says of which run."""
    header: Any = {
        "schema_version": SCHEMA_VERSION,
        "experiment": name,
        "on": on,
        "platform": platform.to_dict(),
        "run": summary,
    }
    return Trace(activities(columns, platform), header)


def activities(columns: Mapping[str, bytes], platform: Platform) -> pa.Table:
    """Return activities as a table.

    Parameters
    ----------
    columns : mapping
        Buffers by name: `kind` (u8, place in KINDS), `node`, `child` (u32, places in the platform, NOBODY for none),
        `task` (u64), `start_s`, `end_s`, `mb`, `work` (f64), `cut` (u8; missing or empty: unknown).
    platform : Platform
        Whose nodes they are.
    """
    names = pa.array([node["name"] for node in platform.nodes])

    def words(codes: Any, width: type, dictionary: pa.Array[Any], none: int | None = None) -> pa.Array[Any]:
        places: NDArray[Any] = np.frombuffer(codes, width)
        mask = places == none if none is not None else None
        where = np.where(mask, 0, places) if mask is not None else places
        indices = pa.array(where.astype(np.int32), pa.int32(), mask=mask)
        return pa.DictionaryArray.from_arrays(indices, dictionary)

    arrays = [
        words(columns["kind"], np.uint8, pa.array(KINDS)),
        words(columns["node"], np.uint32, names),
        words(columns["child"], np.uint32, names, NOBODY),
        pa.array(np.frombuffer(columns["task"], np.uint64)),
        *(pa.array(np.frombuffer(columns[name], np.float64)) for name in ("start_s", "end_s", "mb", "work")),
        _flags(columns.get("cut", b""), len(columns["kind"])),
    ]
    return pa.table(arrays, schema=COLUMNS)


def _flags(codes: Any, count: int) -> pa.Array[Any]:
    flags = np.frombuffer(codes, np.uint8) if len(codes) else None
    return pa.nulls(count, pa.bool_()) if flags is None else pa.array(flags.astype(bool))
