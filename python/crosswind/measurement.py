"""Measurement: the samples of a probe and how they came about (`measurement.parquet`)."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq

from crosswind import _core
from crosswind.errors import DescriptionError, Notice
from crosswind.files.atomic import replaced
from crosswind.files.columns import Column, checked
from crosswind.files.reading import read_parquet
from crosswind.files.tabular import Tabular
from crosswind.files.wrong_kind import read_as

if TYPE_CHECKING:
    from crosswind.documents.measurement import MeasurementHeader

_KEY = b"crosswind"
_MOST_BLOCKS = 10_000_000
"""More than weeks of measuring; what is counted by the block takes no more than some 100 MB."""
_AMOUNTS = (
    *("work", "compute_cpu_s", "compute_wait_s", "compute_switches", "traffic_cpu_s", "traffic_wait_s"),
    *("traffic_switches", "calls", "user_s", "system_s", "irq_s", "softirq_s", "steal_s", "idle_s", "context_switches"),
)
_OF_RUNTIME = ("runtime_cpu_s", "carriers_cpu_s", "jit_cpu_s", "gc_cpu_s")


@dataclass(frozen=True)
class Measurement(Tabular):
    """Samples, one row per interval, with the header that says how they came about.

    Attributes
    ----------
    samples : pyarrow.Table
        Columns as in docs/reference/files.md; amounts, not rates: divide by `dt_s`.
    header : dict
        The file's header; its JSON Schema is `crosswind schema measurement`.
    beside : Measurement or None
        What took turns with it, block by block, when it was made; it goes into a file of its own (`beside_file`).
    """

    samples: pa.Table
    header: MeasurementHeader
    beside: Measurement | None = None

    @classmethod
    def load(cls, path: str | Path) -> Measurement:
        """Read a `measurement.parquet`, and of a runtime's what lies beside it.

        Raises
        ------
        DescriptionError
            When the file is no measurement, or one of another schema version.
        """
        path = Path(path)
        with read_as(path, "measurement"):
            found = cls._read(path)
        there = beside_file(path)
        return replace(found, beside=cls.load(there)) if "runtime" in found.header and there.exists() else found

    @classmethod
    def _read(cls, path: Path) -> Measurement:
        try:
            samples = read_parquet(path)
        except OSError as error:
            if not path.exists():
                raise DescriptionError(
                    f"{path}: no such file", "no-file", "`crosswind measure -o FILE` makes one"
                ) from None
            why = str(error).splitlines()[0].split(": ")[-1]
            hint = "`crosswind measure -o FILE` makes one; a file that was cut short cannot be read"
            raise DescriptionError(f"{path}: is not a Parquet file ({why})", "no-measurement", hint) from None
        text = (samples.schema.metadata or {}).get(_KEY)
        if text is None:
            raise DescriptionError(
                f"{path}: is a Parquet file, but no measurement of Crosswind",
                "no-measurement",
                "`crosswind measure -o FILE` makes one",
            )
        header = json.loads(_core.read_result("measurement", text, str(path)))
        hint = "measure again; the file was damaged or altered"
        return cls(checked(samples, _columns(header), path, "no-measurement", hint), header)

    def save(self, path: str | Path) -> None:
        """Write a `measurement.parquet`; an existing file is replaced only once the new one is complete."""
        text = _core.read_result("measurement", json.dumps(self.header).encode(), str(path))
        table = self.samples.replace_schema_metadata({_KEY: text.encode()})
        with replaced(path) as file:
            pq.write_table(table, file, compression="zstd")

    @property
    def partial(self) -> bool:
        """Whether it ended before its time: interrupted, or the peer was lost."""
        return self.header["ended"] in ("interrupted", "peer-lost")

    @property
    def warnings(self) -> list[Notice]:
        """Warnings of this measurement."""
        return list(self.header["warnings"])

    def to_arrow(self) -> pa.Table:
        """Return the samples as an Arrow table."""
        return self.samples

    def _repr_html_(self) -> str:
        h = self.header
        rows = {
            "host": h["host"]["name"],
            "kernel": h["kernel"]["name"],
            "peers": ", ".join(p["address"] for p in h["peers"]),
            "placement": h["placement"]["mode"],
            "samples": f"{self.samples.num_rows} over {h['elapsed_s']:.1f} s",
            "ended": h["ended"],
        }
        cells = "".join(f"<tr><th>{k}</th><td>{html.escape(str(v))}</td></tr>" for k, v in rows.items())
        return f"<table><caption>{html.escape(h['name'])}</caption>{cells}</table>"


def beside_file(path: Path) -> Path:
    """Return where the measurement of our own threads lies, beside that of a runtime.

    Examples
    --------
    >>> str(beside_file(Path("here/java.parquet")))
    'here/java.native.parquet'
    """
    return path.with_suffix(f".native{path.suffix}")


def _columns(header: MeasurementHeader) -> list[Column]:
    """Return what the samples must have; NaN says that an amount is not known."""
    whole = {"kind": "whole", "least": 0, "most": _MOST_BLOCKS}
    found = [
        Column("t_s", unknown=False),
        Column("dt_s", least=1e-9, unknown=False),
        Column("block", **whole),  # type: ignore[arg-type]
        Column("cycle", **whole | {"least": -1}),  # type: ignore[arg-type]
        Column("phase", "word"),
        Column("settling", "flag"),
        *map(Column, _AMOUNTS),
        Column("foreign_cpu_s"),
        Column("fork", **whole | {"optional": True}),  # type: ignore[arg-type]
        *(Column(name, optional=True) for name in _OF_RUNTIME),
    ]
    for place in range(len(header["channels"])):
        found += [Column(f"channel{place}_mb"), Column(f"channel{place}_asked_mb_per_s")]
    return found
