"""GpuMeasurement -> GpuFit: what each kind of traffic costs each kernel, and what the kernel costs the traffic."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from crosswind.errors import DescriptionError, Notice, warning
from crosswind.gpu.measurement import GpuMeasurement
from crosswind.gpu.words import gb_per_s, per_cent, with_half
from crosswind.model.interval import slope_interval
from crosswind.statistics.bootstrap import of_cycles
from crosswind.tables import Column, Table

if TYPE_CHECKING:
    from crosswind.documents.gpu_measurement import Pair

Floats = NDArray[np.float64]
Columns = dict[str, NDArray[Any]]

LEAST_CYCLES: Final = 8
BENT: Final = 0.01
"""A level that lies so far from the line, as a part of the full rate and beyond its interval, makes the loss bent."""
CLOCK_MOVED: Final = 0.01
_HELD_DOWN: Final = 0x4 | 0x8 | 0x20 | 0x40 | 0x80
"""Bits of `nvmlClocksEventReasons` by which power or heat hold the clocks down."""
_PATHS: Final = ("to_device_mb", "to_host_mb", "within_mb")


@dataclass(frozen=True)
class Loss:
    """What a kernel loses at one rate of traffic.

    Attributes
    ----------
    mb_per_s : float
        Rate reached, both directions together.
    loss, ci95 : float, tuple of float
        Part of the kernel's own rate that is lost, and its 95 % interval.
    """

    mb_per_s: float
    loss: float
    ci95: tuple[float, float]


@dataclass(frozen=True)
class PairFit:
    """One kernel beside one kind of traffic.

    Attributes
    ----------
    kernel, traffic, unit : str
        Names, and what the kernel's work is counted in.
    work_per_s : float
        The kernel's rate without traffic.
    losses : tuple of Loss
        At the paced levels, ascending.
    unpaced : Loss
        At the rate that the traffic reaches without a limit.
    ir_s_per_gb, ir_ci95 : float, tuple of float
        Interference rate: compute lost per GB/s of traffic, by a line through the paced levels, s/GB; NaN where no
        level moved bytes.
    bent : bool
        Whether some level lies off that line by more than 1 % of the full rate and beyond chance: then use `losses`.
    traffic_loss, traffic_ci95 : float, tuple of float
        Part of the traffic's rate without a limit that is lost beside the kernel.
    alone_mb_per_s : float
        The traffic's rate without a limit and without the kernel, both directions together.
    cycles : int
        Cycles that all this rests on.
    """

    kernel: str
    traffic: str
    unit: str
    work_per_s: float
    losses: tuple[Loss, ...]
    unpaced: Loss
    ir_s_per_gb: float
    ir_ci95: tuple[float, float]
    bent: bool
    traffic_loss: float
    traffic_ci95: tuple[float, float]
    alone_mb_per_s: float
    cycles: int

    @property
    def hull_mb_per_s(self) -> float:
        """Highest rate at which the loss was measured."""
        return max([self.unpaced.mb_per_s, *(loss.mb_per_s for loss in self.losses)])

    @property
    def costs(self) -> bool | None:
        """Whether the traffic costs the kernel anything: None where the interval at the highest rate holds 0."""
        low, high = self.unpaced.ci95
        return None if low <= 0.0 <= high else low > 0.0

    def loss_at(self, mb_per_s: float) -> float:
        """Return the loss at a rate within the hull, by straight lines between the levels; NaN beyond it."""
        known = sorted([*self.losses, self.unpaced], key=lambda loss: loss.mb_per_s)
        x, y = [0.0, *(loss.mb_per_s for loss in known)], [0.0, *(loss.loss for loss in known)]
        return float(np.interp(mb_per_s, x, y)) if 0.0 <= mb_per_s <= x[-1] else math.nan


@dataclass(frozen=True)
class Additivity:
    """Both directions at once against the sum of each alone.

    Attributes
    ----------
    kernel : str
        The kernel.
    mb_per_s, measured, ci95, added : float
        Rate of both together, the loss measured there with its interval, and the sum of the losses of `h2d` and `d2h`
        at the same rates.
    """

    kernel: str
    mb_per_s: float
    measured: float
    ci95: tuple[float, float]
    added: float


@dataclass(frozen=True)
class GpuFit:
    """The fit of a GPU's measurement.

    Attributes
    ----------
    measurement : GpuMeasurement
        What was fitted.
    pairs : tuple of PairFit
        Those with enough cycles, in the order in which they were asked for.
    additive : tuple of Additivity
        One for each level of `both` where `h2d` and `d2h` were measured as fast.
    warnings : list of dict
        code, message, hint.
    """

    measurement: GpuMeasurement
    pairs: tuple[PairFit, ...]
    additive: tuple[Additivity, ...]
    warnings: list[Notice]

    @property
    def trustworthy(self) -> bool:
        """Whether every pair is known and no clock was held down; else the command line exits with 3."""
        return not self.warnings

    def pair(self, kernel: str, traffic: str) -> PairFit | None:
        """Return one pair, or None where it was not measured."""
        return next((one for one in self.pairs if (one.kernel, one.traffic) == (kernel, traffic)), None)

    def tables(self) -> list[Table]:
        """Return a row per pair of kernel and traffic."""
        columns = [
            Column("kernel", numeric=False),
            Column("traffic", numeric=False),
            Column("at", "GB/s"),
            Column("kernel loses", term="gpu-kernel-loss"),
            Column("traffic loses", term="gpu-traffic-loss"),
            Column("IR", "s/GB", "gpu-ir"),
            Column("line", numeric=False),
            Column("cycles"),
        ]
        rows = [
            [
                one.kernel,
                one.traffic,
                gb_per_s(one.unpaced.mb_per_s),
                per_cent(one.unpaced.loss, one.unpaced.ci95),
                per_cent(one.traffic_loss, one.traffic_ci95),
                with_half(one.ir_s_per_gb, one.ir_ci95),
                "bent" if one.bent else "straight" if math.isfinite(one.ir_s_per_gb) else "-",
                str(one.cycles),
            ]
            for one in self.pairs
        ]
        first = ("kernel loses", "kernel", "traffic")
        return [Table("Each pair of kernel and traffic", columns, rows, first=first)]

    def to_arrow(self) -> pa.Table:
        """Return one row per pair."""
        return pa.Table.from_pylist(
            [
                {
                    "kernel": one.kernel,
                    "traffic": one.traffic,
                    "ir_s_per_gb": one.ir_s_per_gb,
                    "ir_low": one.ir_ci95[0],
                    "ir_high": one.ir_ci95[1],
                    "bent": one.bent,
                    "unpaced_gb_per_s": one.unpaced.mb_per_s / 1e3,
                    "loss_unpaced": one.unpaced.loss,
                    "loss_low": one.unpaced.ci95[0],
                    "loss_high": one.unpaced.ci95[1],
                    "traffic_loss": one.traffic_loss,
                    "traffic_low": one.traffic_ci95[0],
                    "traffic_high": one.traffic_ci95[1],
                    "cycles": one.cycles,
                }
                for one in self.pairs
            ]
        )

    def to_dict(self) -> dict[str, object]:
        """Return the JSON document of `crosswind measure --gpu --json`; what is not known is null."""
        return {
            "schema_version": 1,
            "device": self.measurement.header["device"],
            "pairs": [
                {name: _plain(value) for name, value in vars(one).items() if name not in ("losses", "unpaced")}
                | {"hull_mb_per_s": one.hull_mb_per_s, "losses": [_loss(loss) for loss in one.losses]}
                | {"unpaced": _loss(one.unpaced)}
                for one in self.pairs
            ],
            "additive": [{name: _plain(value) for name, value in vars(one).items()} for one in self.additive],
            "warnings": self.warnings,
        }


def fit_gpu(measurement: GpuMeasurement | str | Path, *, seed: int = 0) -> GpuFit:
    """Fit what each kind of traffic costs each kernel.

    A kernel's loss is 1 - (its rate beside the traffic) / (its rate in the idle blocks of the same cycles). Intervals
    are bootstraps over cycles, as for processors (`crosswind.model.interval`).

    Parameters
    ----------
    measurement : GpuMeasurement or path
        A path is that of a `gpu.parquet`.
    seed : int
        Of the bootstraps: same seed, same figures.

    Returns
    -------
    GpuFit

    Raises
    ------
    DescriptionError
        When no pair has 8 cycles, or the file is no measurement of a GPU.
    """
    if not isinstance(measurement, GpuMeasurement):
        measurement = GpuMeasurement.load(measurement)
    columns = measurement.columns()
    pairs, few = [], []
    for described in measurement.header["pairs"]:
        rows = (columns["kernel"] == described["kernel"]) & (columns["traffic"] == described["traffic"])
        whole = _whole_cycles({name: values[rows & (columns["cycle"] >= 0)] for name, values in columns.items()})
        if np.unique(whole["cycle"]).size >= LEAST_CYCLES:
            pairs.append(_pair(described, whole, seed))
        else:
            few.append(f"{described['traffic']} beside {described['kernel']}")
    if not pairs:
        raise DescriptionError(f"no pair has {LEAST_CYCLES} cycles", "too-few-points", "measure longer, or fewer pairs")
    return GpuFit(measurement, tuple(pairs), tuple(_additive(pairs)), _warnings(measurement, few))


def _whole_cycles(rows: Columns) -> Columns:
    """Return the rows of cycles that have all of their blocks: the last one may have been cut off."""
    cycle, member, count = np.unique(rows["cycle"], return_inverse=True, return_counts=True)
    whole = count == count.max() if cycle.size else np.zeros(0, bool)
    return {name: values[whole[member]] for name, values in rows.items()}


def _pair(described: Pair, rows: Columns, seed: int) -> PairFit:
    _, cycle = np.unique(rows["cycle"], return_inverse=True)
    paced = rows["phase"] == "level"
    parts = [float(level) for level in np.unique(rows["level"][paced]) if level > 0]
    groups = [paced & (rows["level"] == 0), *(paced & (rows["level"] == part) for part in parts)]
    groups += [rows["phase"] == "unpaced", rows["phase"] == "alone"]
    moved = np.sum([rows[name] for name in _PATHS], axis=0)
    sums = np.zeros((int(cycle.max()) + 1, len(groups), 3))
    for at, group in enumerate(groups):
        for place, amount in enumerate((rows["dt_s"], rows["work"], moved)):
            np.add.at(sums[:, at, place], cycle[group], amount[group])

    def of(drawn: Floats) -> Floats:
        """Losses of the levels and without a limit, then the loss of the traffic."""
        work = drawn[..., 1] / drawn[..., 0]
        rate = drawn[..., 2] / drawn[..., 0]
        lost = 1.0 - work[:, 1:-1] / work[:, :1]
        return np.column_stack([lost, 1.0 - rate[:, -2] / rate[:, -1]])

    whole = sums.sum(axis=0)
    rates = whole[:, 2] / whole[:, 0]
    *found, (slower, slower_low, slower_high) = of_cycles(of, sums, seed=seed)
    losses = [
        Loss(float(rate), value, (low, high)) for rate, (value, low, high) in zip(rates[1:-1], found, strict=True)
    ]
    ir, ir_ci95, bent = math.nan, (math.nan, math.nan), False
    if parts:
        line = slope_interval(
            moved[paced] / rows["dt_s"][paced],
            rows["work"][paced] / rows["dt_s"][paced],
            rows["cycle"][paced],
            rows["block"][paced],
            seed=seed,
        )
        ir, ir_ci95 = -1e3 * line.slope, (-1e3 * line.high, -1e3 * line.low)
        gaps = [(loss, 1.0 - line.intercept - line.slope * loss.mb_per_s) for loss in losses[:-1]]
        bent = any(abs(l.loss - by) > BENT and not l.ci95[0] <= by <= l.ci95[1] for l, by in gaps)
    return PairFit(
        kernel=described["kernel"],
        traffic=described["traffic"],
        unit=described["unit"],
        work_per_s=float(whole[0, 1] / whole[0, 0]),
        losses=tuple(sorted(losses[:-1], key=lambda loss: loss.mb_per_s)),
        unpaced=losses[-1],
        ir_s_per_gb=ir,
        ir_ci95=ir_ci95,
        bent=bent,
        traffic_loss=slower,
        traffic_ci95=(slower_low, slower_high),
        alone_mb_per_s=float(rates[-1]),
        cycles=int(sums.shape[0]),
    )


def _additive(pairs: list[PairFit]) -> list[Additivity]:
    found = []
    for both in (one for one in pairs if one.traffic == "both"):
        alone = [one for one in pairs if one.kernel == both.kernel and one.traffic in ("h2d", "d2h")]
        if len(alone) < 2:
            continue
        for loss in (*both.losses, both.unpaced):
            added = sum(one.loss_at(loss.mb_per_s / 2.0) for one in alone)
            if math.isfinite(added):
                found.append(Additivity(both.kernel, loss.mb_per_s, loss.loss, loss.ci95, added))
    return found


def _warnings(measurement: GpuMeasurement, few: list[str]) -> list[Notice]:
    found, columns = [], measurement.columns()
    if few:
        shown = ", ".join(few[:3]) + (f" and {len(few) - 3} more" if len(few) > 3 else "")
        message = f"fewer than {LEAST_CYCLES} cycles, so no figures: {shown}"
        found.append(warning("too-few-points", message, "measure longer, or name fewer --gpu-kernel and --gpu-traffic"))
    call = measurement.header.get("task")
    if call and call["host_s"] > call["gpu_s"]:
        host, device = f"{1e3 * call['host_s']:.2g} ms", f"{1e3 * call['gpu_s']:.2g} ms"
        message = (
            f'enqueueing one call of "{call["name"]}" takes {host} of the processor, and its work {device} of the GPU'
        )
        hint = "its losses are those of a kernel that waits for the processor; a CUDA graph enqueues it at once"
        found.append(warning("gpu-host-bound", message, hint))
    in_cycles = columns["cycle"] >= 0
    reasons = columns["throttle"][in_cycles & np.isfinite(columns["throttle"])].astype(np.int64)
    if reasons.size and (share := float(np.mean((reasons & _HELD_DOWN) != 0))) > 0:
        message = f"power or heat held the clocks down in {100 * share:.0f} % of the blocks"
        found.append(warning("gpu-throttled", message, "part of a loss may be a lower clock; `nvidia-smi -q -d CLOCK`"))
    clocks = columns["sm_mhz"][in_cycles & np.isfinite(columns["sm_mhz"])]
    if clocks.size and clocks.max() - clocks.min() > CLOCK_MOVED * clocks.max():
        message = f"the clock moved between {clocks.min():.0f} and {clocks.max():.0f} MHz"
        found.append(warning("gpu-clock", message, "lock it: `nvidia-smi -lgc MHZ`"))
    return found


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [_plain(one) for one in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _loss(loss: Loss) -> dict[str, object]:
    return {name: _plain(value) for name, value in vars(loss).items()}
