"""GpuMeasurement: the timed blocks of a GPU and how they came about (`gpu.parquet`)."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.files.atomic import replaced
from crosswind.files.columns import Column, checked
from crosswind.files.kinds import found_at
from crosswind.files.reading import read_parquet

if TYPE_CHECKING:
    from crosswind.documents.gpu_measurement import GpuMeasurementHeader

_KEY: Final = b"crosswind.gpu"
_CODE: Final = "no-measurement"
_HINT: Final = "`crosswind measure --gpu -o FILE` makes one"
_MOST: Final = 1e18
_MOST_BLOCKS: Final = 10_000_000
_COLUMNS: Final[dict[str, pa.DataType]] = {
    "t_s": pa.float64(),
    "kernel": pa.string(),
    "traffic": pa.string(),
    "phase": pa.string(),
    "cycle": pa.int32(),
    "block": pa.int32(),
    "level": pa.float64(),
    "asked_mb_per_s": pa.float64(),
    "dt_s": pa.float64(),
    "work": pa.float64(),
    "to_device_mb": pa.float64(),
    "to_host_mb": pa.float64(),
    "within_mb": pa.float64(),
    "amount_mb": pa.float64(),
    "moved_s": pa.float64(),
    "sm_mhz": pa.float64(),
    "memory_mhz": pa.float64(),
    "power_w": pa.float64(),
    "celsius": pa.float64(),
    "state": pa.float64(),
    "throttle": pa.float64(),
}
"""Every column; what the device's management library does not know is NaN."""
_FIELDS: Final = ("schema_version", "device", "pairs", "ended", "elapsed_s", "seed", "started", "version")


def _checked(name: str) -> Column:
    """Return what a column must be; amounts are not negative."""
    kind = _COLUMNS[name]
    if pa.types.is_string(kind):
        return Column(name, "word")
    if pa.types.is_integer(kind):
        return Column(name, "whole", least=-1 if name == "cycle" else 0, most=_MOST_BLOCKS)
    if name == "dt_s":
        return Column(name, least=1e-9, most=_MOST, unknown=False)
    return Column(name, least=0.0, most=_MOST)


def is_gpu(path: str | Path) -> bool:
    """Return whether the file at a path is a measurement of a GPU, whatever it holds."""
    try:
        return found_at(path).kind == "gpu-measurement"
    except OSError:
        return False


def _well_formed(header: Mapping[str, Any]) -> bool:
    """Whether a header's pairs and task have what a fit reads."""

    def of(one: Any, words: tuple[str, ...], amounts: tuple[str, ...] = ()) -> bool:
        return isinstance(one, dict) and (
            all(isinstance(one.get(name), str) for name in words)
            and all(isinstance(one.get(name), (int, float)) for name in amounts)
        )

    pairs, task, device = header["pairs"], header.get("task"), header["device"]
    return (
        isinstance(pairs, list)
        and all(of(pair, ("kernel", "traffic", "unit")) for pair in pairs)
        and of(device, ("name",))
        and (task is None or of(task, ("name",), ("gpu_s", "host_s")))
    )


@dataclass(frozen=True)
class GpuMeasurement:
    """Blocks, one row each, with the header that says how they came about.

    Attributes
    ----------
    blocks : pyarrow.Table
        Columns as in docs/reference/files.md; amounts, not rates: divide by `dt_s`.
    header : dict
        `device`, `pairs` (kernel, traffic, rates without a limit and the top level, MB/s per direction), `ended`.
    """

    blocks: pa.Table
    header: GpuMeasurementHeader

    @classmethod
    def of(cls, rows: list[Row], header: GpuMeasurementHeader) -> GpuMeasurement:
        """Return a measurement of these rows; a missing value is NaN."""
        columns = {
            name: pa.array([math.nan if row[name] is None else row[name] for row in rows], kind)
            for name, kind in _COLUMNS.items()
        }
        return cls(pa.table(columns), header)

    @classmethod
    def load(cls, path: str | Path) -> GpuMeasurement:
        """Read a `gpu.parquet`.

        Raises
        ------
        DescriptionError
            When the file is no measurement of a GPU, or one with other columns or impossible amounts.
        """
        path = Path(path)

        def refuse(what: str) -> DescriptionError:
            return DescriptionError(f"{path}: {what}", _CODE, _HINT)

        try:
            blocks = read_parquet(path)
        except OSError as error:
            if not path.exists():
                raise DescriptionError(f"{path}: no such file", "no-file") from None
            raise refuse(f"is not a Parquet file ({str(error).splitlines()[0]})") from None
        text = (blocks.schema.metadata or {}).get(_KEY)
        if text is None:
            raise refuse("is a Parquet file, but no measurement of a GPU")
        try:
            header = json.loads(text)
        except (ValueError, RecursionError):
            raise refuse("its header is not JSON") from None
        missing = [name for name in _FIELDS if not isinstance(header, dict) or name not in header]
        if missing:
            raise refuse(f"its header has no {missing[0]}")
        if not _well_formed(header):
            raise refuse("its header's pairs or task lack a name or an amount")
        found = checked(blocks, [_checked(name) for name in _COLUMNS], path, _CODE, _HINT)
        return cls(found.select(list(_COLUMNS)).cast(pa.schema(_COLUMNS)), header)

    def save(self, path: str | Path) -> None:
        """Write a `gpu.parquet`; an existing file is replaced only once the new one is complete."""
        table = self.blocks.replace_schema_metadata({_KEY: json.dumps(self.header).encode()})
        with replaced(path) as file:
            pq.write_table(table, file, compression="zstd")

    def columns(self) -> dict[str, np.ndarray[Any, Any]]:
        """Return the columns as arrays of shape (blocks,)."""
        return {name: self.blocks.column(name).to_numpy() for name in _COLUMNS}
