"""What a sweep found: one row per value, peer and direction."""

from __future__ import annotations

import functools
import html
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from crosswind.documents import Row
from crosswind.errors import DescriptionError, Notice, warning
from crosswind.files.tabular import Tabular
from crosswind.measure.sweep.index import Index
from crosswind.measure.sweep.kinds import Value, kind_of
from crosswind.measurement import Measurement
from crosswind.model.curve import levels, loss_at
from crosswind.tables import Column, Table
from crosswind.terminal.sizes import size

_FIGURES = (
    "ir_s_per_mb",
    "ir_low",
    "ir_high",
    "upper_bound_s_per_mb",
    "intercept",
    "transfer_max_mb_per_s",
    "loss_at_top",
    "matched_mb_per_s",
    "loss_at_matched",
)

_NO_FIT = [warning("too-few-points", "too few samples for a fit", "measure longer (--max-seconds)")]


def _fit(measurement: Measurement) -> Any:
    from crosswind.model.fit import fit

    return fit(measurement)


@dataclass(frozen=True)
class Sweep(Tabular):
    """The measurements of a sweep that are complete.

    Attributes
    ----------
    kind : str
        footprint, message-size, streams, wait or placement.
    values : tuple
        Every value that was asked for, in the order in which they are shown.
    points : list of (value, Measurement)
        Those that are complete, in the same order.
    directory : Path
        Where they lie.
    """

    kind: str
    values: tuple[Value, ...]
    points: list[tuple[Value, Measurement]]
    directory: Path
    fit: Callable[[Measurement], Any] = field(default=_fit, repr=False, compare=False)

    @classmethod
    def load(cls, directory: str | Path, *, fit: Callable[[Measurement], Any] = _fit) -> Sweep:
        """Read a directory of `crosswind measure sweep`, finished or not.

        Raises
        ------
        DescriptionError
            When it holds no sweep, or a file in it is damaged.
        """
        directory = Path(directory)
        index = Index.load(directory)
        shown = tuple(sorted(index.values, key=kind_order(index.swept)))
        points = [(value, found) for value in shown if (found := complete(index.file(directory, value)))]
        return cls(index.swept, shown, points, directory, fit)

    @property
    def unit(self) -> str:
        """Unit of the values; empty for names."""
        return kind_of(self.kind).unit

    @property
    def complete(self) -> bool:
        """Whether every value that was asked for has been measured."""
        return len(self.points) == len(self.values)

    @property
    def fits(self) -> list[tuple[Value, Any]]:
        """The fits of the points that have one; computed once."""
        return [(value, found) for (value, _), found in zip(self.points, self._fits, strict=True) if found]

    @functools.cached_property
    def _fits(self) -> list[Any]:
        """The fit of each point, None where too little was sampled for one."""
        return [self._fit_of(measurement) for _, measurement in self.points]

    def _fit_of(self, measurement: Measurement) -> Any:
        try:
            return self.fit(measurement)
        except DescriptionError:
            return None

    @property
    def trustworthy(self) -> bool:
        """Whether every complete point has a fit that is; else the command line exits with 3."""
        return all(found is not None and found.trustworthy for found in self._fits)

    @property
    def warnings(self) -> list[Notice]:
        """Each warning of the points once, with the values that it was given at."""
        found: dict[str, tuple[Notice, list[str]]] = {}
        for (value, _), fitted in zip(self.points, self._fits, strict=True):
            for told in _NO_FIT if fitted is None else fitted.warnings:
                found.setdefault(told["code"], (told, []))[1].append(self._shown(value))
        warnings: list[Notice] = [
            {**told, "message": f"at {', '.join(dict.fromkeys(values))}: {told['message']}"}
            for told, values in found.values()
        ]
        missing = len(self.values) - len(self.points)
        if missing:
            message = f"{missing} of {len(self.values)} points are missing"
            hint = "run the same command again: it measures what is missing"
            warnings.insert(0, {"code": "sweep-incomplete", "message": message, "hint": hint})
        return warnings

    def _shown(self, value: Value) -> str:
        return size(value) if isinstance(value, int) and self.unit == "bytes" else str(value)

    def matched_rate_mb_per_s(self) -> dict[tuple[int, str], float]:
        """Return the highest rate that every point reached, by (index of the peer, direction), MB/s.

        Interference is curved: slopes over different ranges do not compare, losses at one rate do. On the time base of
        each point's estimator, as the points themselves.
        """
        reached: dict[tuple[int, str], float] = {}
        for (_, measurement), fitted in zip(self.points, self._fits, strict=True):
            for channel in fitted.channels if fitted else ():
                key = _key(measurement, channel.channel)
                rates, _ = levels(channel.points[channel.estimator])
                reached[key] = min(reached.get(key, np.inf), float(rates.max(initial=0.0)))
        return reached

    def tables(self) -> list[Table]:
        """Return a row per value, peer and direction: what is not known is a hyphen."""
        columns = [
            Column(self.kind),
            Column("peer", numeric=False),
            Column("direction", numeric=False),
            Column("IR", "s/GB", "ir"),
            Column("95 %", term="interval"),
            Column("up to", "MB/s", "range"),
            Column("loss there", term="loss"),
            Column("all reach", "MB/s", "matched-rate"),
            Column("loss there", term="matched-rate"),
            Column("settled", numeric=False),
        ]
        rows = []
        for row in self.to_arrow().to_pylist():
            low, high, bound = 1000 * row["ir_low"], 1000 * row["ir_high"], row["upper_bound_s_per_mb"]
            ir = f"< {1000 * bound:.4f}" if bound is not None else known(1000 * row["ir_s_per_mb"], ".4f")
            interval = f"{low:.4f} .. {high:.4f}" if math.isfinite(low + high) else "-"
            reached, matched = (known(row[name], ".0f") for name in ("transfer_max_mb_per_s", "matched_mb_per_s"))
            at_top, at_matched = (known(row[name], ".1%") for name in ("loss_at_top", "loss_at_matched"))
            where = [str(row["value"]), row["peer"], row["direction"]]
            rows.append([*where, ir, interval, reached, at_top, matched, at_matched, "yes" if row["settled"] else "no"])
        return [Table("Each point of the sweep", columns, rows)]

    def to_arrow(self) -> pa.Table:
        """One row per value, peer and direction.

        Columns: `value`, `peer`, `direction`, `estimator`, `ir_s_per_mb` with its 95 % interval `ir_low`, `ir_high`,
        `upper_bound_s_per_mb` (null unless IR is about 0), `intercept`, `transfer_max_mb_per_s`, `loss_at_top`,
        `matched_mb_per_s` and `loss_at_matched` (see `matched_rate_mb_per_s`), `settled`, `elapsed_s`. Figures are NaN
        where too little was sampled for a fit.
        """
        return pa.Table.from_pylist(list(self._rows()), schema=self._schema())

    def _rows(self) -> Iterator[Row]:
        matched, names = self.matched_rate_mb_per_s(), self._peer_names()
        for (value, measurement), fitted in zip(self.points, self._fits, strict=True):
            if fitted is None:
                yield from _without_fit(value, measurement, names)
                continue
            for channel in fitted.channels:
                low, high = channel.ir_ci95
                peer, direction = _key(measurement, channel.channel)
                rate = matched[peer, direction]
                yield {
                    "value": value,
                    "peer": names[peer],
                    "direction": direction,
                    "estimator": channel.estimator,
                    "ir_s_per_mb": channel.ir_s_per_mb,
                    "ir_low": low,
                    "ir_high": high,
                    "upper_bound_s_per_mb": channel.upper_bound,
                    "intercept": channel.intercept,
                    "transfer_max_mb_per_s": channel.transfer_max_mb_per_s,
                    "loss_at_top": channel.loss_at_top,
                    "matched_mb_per_s": rate,
                    "loss_at_matched": loss_at(channel.points[channel.estimator], rate),
                    "settled": channel.settled,
                    "elapsed_s": measurement.header["elapsed_s"],
                }

    def _peer_names(self) -> list[str]:
        """Each peer's address; its host where the address is another one at each point (a peer started for each)."""
        peers = [measurement.header["peers"] for _, measurement in self.points]
        seen = zip(*peers, strict=False)
        return [p[0]["address"] if len({each["address"] for each in p}) == 1 else str(p[0]["host"]) for p in seen]

    def _schema(self) -> pa.Schema:
        named = isinstance(kind_of(self.kind).values[0], str)
        return pa.schema(
            [("value", pa.string() if named else pa.int64())]
            + [(name, pa.string()) for name in ("peer", "direction", "estimator")]
            + [(name, pa.float64()) for name in _FIGURES]
            + [("settled", pa.bool_()), ("elapsed_s", pa.float64())]
        )

    def _repr_html_(self) -> str:
        rows = self.to_arrow().to_pylist()
        shown = ("value", "direction", "ir_s_per_mb", "ir_low", "ir_high", "transfer_max_mb_per_s", "loss_at_matched")
        head = "".join(f"<th>{name}</th>" for name in shown)
        body = "".join("<tr>" + "".join(f"<td>{_cell(row[name])}</td>" for name in shown) + "</tr>" for row in rows)
        title = f"{self.kind} ({len(self.points)} of {len(self.values)} points{', ' + self.unit if self.unit else ''})"
        return f"<table><caption>{html.escape(title)}</caption><tr>{head}</tr>{body}</table>"


def known(value: float, form: str) -> str:
    """Return a number, or a hyphen where it is not known."""
    return format(value, form) if math.isfinite(value) else "-"


def _key(measurement: Measurement, channel: int) -> tuple[int, str]:
    """Index of the peer, and direction."""
    found = measurement.header["channels"][channel]
    return int(found["peer"]), str(found["direction"])


def _without_fit(value: Value, measurement: Measurement, names: list[str]) -> Iterator[Row]:
    """Rows that say what was measured, and nothing more: a point must not be missing in silence."""
    header = measurement.header
    for channel in header["channels"]:
        row = {"value": value, "peer": names[channel["peer"]], "direction": channel["direction"]}
        figures = dict.fromkeys(_FIGURES, float("nan")) | {"upper_bound_s_per_mb": None}
        yield row | {"estimator": "none", "settled": False, "elapsed_s": header["elapsed_s"]} | figures


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else html.escape(str(value))


def complete(path: Path) -> Measurement | None:
    """Return the measurement in a file; None when there is none, or only a part of one."""
    if not path.exists():
        return None
    try:
        found = Measurement.load(path)
    except DescriptionError:
        return None  # damaged, or of another version: measured again
    return None if found.partial else found


def kind_order(kind: str) -> Callable[[Value], tuple[int, str]]:
    """Return a sort key: numbers ascending, names as the kind lists them."""
    listed = kind_of(kind).values

    def key(value: Value) -> tuple[int, str]:
        return (value, "") if isinstance(value, int) else (listed.index(value), value)

    return key
