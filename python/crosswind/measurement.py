"""Measurement: the samples of a probe and how they came about (`measurement.parquet`)."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.files.reading import read_parquet
from crosswind.files.stored import replaced
from crosswind.files.tabular import Tabular
from crosswind.files.wrong_kind import read_as

_KEY = b"crosswind"
_MOST = 1e15
"""No amount in a sample is larger; what sums and squares of it are stays within what a float can hold."""


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
    header: dict[str, Any]
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
        except (OSError, pa.ArrowException) as error:
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
        _check_amounts(samples, path)
        return cls(samples, json.loads(_core.read_result("measurement", text, str(path))))

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
    def warnings(self) -> list[dict[str, str]]:
        """What to keep in mind when trusting the figures."""
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


def _check_amounts(samples: pa.Table, path: Path) -> None:
    """Refuse amounts that no probe writes, before figures are made of them; NaN says that one is not known."""
    for name in samples.column_names:
        if not pa.types.is_floating(samples.schema.field(name).type):
            continue
        values = samples.column(name).to_numpy()
        wrong = np.abs(values) > _MOST
        permitted = f"of a size up to {_MOST:g}"
        if name == "dt_s":
            wrong |= ~(values > 0)
            permitted = f"greater than 0 and up to {_MOST:g} s"
        if wrong.any():
            row = int(wrong.argmax())
            message = f"{path}: {name} is {values[row]:g} in row {row + 1}; it must be {permitted}"
            raise DescriptionError(message, "no-measurement", "measure again; the file was damaged or altered")
