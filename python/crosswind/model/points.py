"""From samples to points: one (transfer rate, compute rate) per block, on one time base for both.

Two time bases stand side by side:

`wall`
    work / wall time against MB / wall time: the papers' way, and what a user feels. Whatever else runs on the
    computing CPU moves it.
`available`
    both divided by the CPU seconds of the computing CPU that were left to our own threads: what other processes took is
    out, while what our traffic displaced and what slowed the computation down stays in. Valid only where threads are
    pinned, no CPU quota throttles, and the computation never sleeps.

Source: interference-in-java, section 2.2 (averages over regular intervals); docs/concepts/prototype.md.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Rows = NDArray[np.bool_]
Estimator = Literal["available", "wall"]

FOREIGN_LIMIT_WALL = 0.10
"""Part of an interval in which the computing CPU ran other people's work, above which `wall` drops the interval."""
FOREIGN_LIMIT_AVAILABLE = 0.85
"""The same for `available`, which needs only that our own threads got enough of the CPU to be timed."""
CPU_BOUND = 0.9
"""Part of the time left to it that the computation must use while idle, for `available` to be valid."""

DESIGNED = ("ladder", "check")


@dataclass(frozen=True)
class Points:
    """One point per block, ordered by block; all arrays have shape (n,).

    Attributes
    ----------
    x_mb_per_s, y_work_per_s : numpy.ndarray
        Transfer rate of the channel and compute rate, on the time base of `estimator`.
    cycle, block : numpy.ndarray of int
        The unit of resampling (of a runtime with several forks: the fork), and the block's number.
    asked_mb_per_s, level : numpy.ndarray
        Rate asked (0: none; NaN: unpaced), and it as a part of the channel's top (unpaced: 1).
    check : numpy.ndarray of bool
        Whether the block is a check point, from outside the ladder.
    t_s, seconds : numpy.ndarray
        Middle of the block, and the length of its time base, s.
    estimator : str
        `available` or `wall`.
    intervals, foreign_intervals : int
        Sampling intervals considered, and those among them dropped because of foreign load.
    """

    x_mb_per_s: Floats
    y_work_per_s: Floats
    cycle: Ints
    block: Ints
    asked_mb_per_s: Floats
    level: Floats
    check: Rows
    t_s: Floats
    seconds: Floats
    estimator: Estimator
    intervals: int
    foreign_intervals: int

    def __len__(self) -> int:
        return self.block.size

    @property
    def idle(self) -> Rows:
        """Which points had no traffic asked for."""
        idle: Rows = self.level == 0
        return idle

    def where(self, rows: Rows) -> Points:
        """Return the points of `rows` only."""
        arrays = {name: value[rows] for name, value in vars(self).items() if isinstance(value, np.ndarray)}
        return Points(
            **arrays, estimator=self.estimator, intervals=self.intervals, foreign_intervals=self.foreign_intervals
        )


def points(
    measurement: Measurement,
    channel: int,
    estimator: Estimator = "available",
    phase: Sequence[str] | None = None,
    drop_foreign: bool = True,
) -> Points:
    """Return one point per block in which `channel` was the only one that could move bytes.

    Intervals at the start of a block (settling) are left out, and so are those with more foreign load on the computing
    CPU than `FOREIGN_LIMIT_WALL` or `FOREIGN_LIMIT_AVAILABLE`; the rest of a block's intervals are merged. Where
    foreign load is unknown (free placement: NaN), nothing is dropped.

    Parameters
    ----------
    measurement : Measurement
    channel : int
        Index into the header's `channels`.
    estimator : {"available", "wall"}
        The time base. See `available_is_valid` for whether `available` means anything here.
    phase : sequence of str, optional
        Phases to use; by default `ladder` and `check`, or `contention` in a measurement made that way.
    drop_foreign : bool
        Whether intervals with foreign load are left out.

    Returns
    -------
    Points
        Perhaps none, when the measurement ended early.

    Raises
    ------
    DescriptionError
        When there is no such channel.
    """
    columns = samples(measurement)
    channels = measurement.header["channels"]
    if not 0 <= channel < len(channels):
        raise DescriptionError(f"channel is {channel}; the measurement has {len(channels)}", "channel")
    rows = in_phases(measurement, phase) & alone(measurement, channel) & ~columns["settling"].astype(bool)
    quiet = ~foreign(columns, estimator) | (not drop_foreign)
    kept = rows & quiet
    block, first, member = np.unique(columns["block"][kept], return_index=True, return_inverse=True)

    def per_block(amount: Floats) -> Floats:
        return np.bincount(member, amount[kept], block.size).astype(float)

    seconds = per_block(time_base(measurement, estimator))
    asked = columns[f"channel{channel}_asked_mb_per_s"][kept][first]
    top = float(channels[channel]["top_mb_per_s"])
    whole = seconds > 0
    with np.errstate(divide="ignore", invalid="ignore"):
        found = Points(
            x_mb_per_s=per_block(columns[f"channel{channel}_mb"]) / seconds,
            y_work_per_s=per_block(columns["work"]) / seconds,
            cycle=unit_of_resampling(columns)[kept][first].astype(np.int64),
            block=block.astype(np.int64),
            asked_mb_per_s=asked,
            level=np.where(np.isnan(asked), 1.0, asked / top),
            check=in_phases(measurement, ("check",))[kept][first],
            t_s=per_block(columns["t_s"] + columns["dt_s"] / 2) / np.bincount(member, minlength=block.size),
            seconds=seconds,
            estimator=estimator,
            intervals=int(np.count_nonzero(rows)),
            foreign_intervals=int(np.count_nonzero(rows & ~quiet)),
        )
    return found if whole.all() else found.where(whole)


def samples(measurement: Measurement) -> dict[str, NDArray[Any]]:
    """Return the samples' columns as numpy arrays by name."""
    return {name: measurement.samples.column(name).to_numpy() for name in measurement.samples.column_names}


def in_phases(measurement: Measurement, phase: Sequence[str] | None = None) -> Rows:
    """Return which rows lie in these phases, by default those of the design."""
    phases = measurement.samples.column("phase").to_numpy().astype(str)
    if phase is None:
        phase = DESIGNED if np.isin(phases, DESIGNED).any() else ("contention",)
    return np.isin(phases, list(phase))


def alone(measurement: Measurement, channel: int) -> Rows:
    """Return which rows belong to cycles in which no other channel was ever asked to move bytes.

    Idle blocks belong to the channel of their cycle; those outside any cycle (-1) belong to every channel.
    """
    columns = samples(measurement)
    cycle = columns["cycle"]
    count = len(measurement.header["channels"])
    asked = np.column_stack([columns[f"channel{i}_asked_mb_per_s"] for i in range(count)]) != 0
    label, member = np.unique(cycle, return_inverse=True)
    used = np.zeros((label.size, count), bool)
    np.logical_or.at(used, member, asked)
    used = np.where((cycle < 0)[:, None], asked, used[member])
    others = np.delete(used, channel, axis=1).any(axis=1)
    mine: Rows = ~others & (used[:, channel] | (cycle < 0))
    return mine


def foreign(columns: dict[str, NDArray[Any]], estimator: Estimator) -> Rows:
    """Return which intervals had too much foreign load on the computing CPU for this time base."""
    limit = FOREIGN_LIMIT_AVAILABLE if estimator == "available" else FOREIGN_LIMIT_WALL
    with np.errstate(invalid="ignore"):
        marked: Rows = columns["foreign_cpu_s"] > limit * columns["dt_s"]  # NaN compares false: unknown, not dropped
    return marked


def time_base(measurement: Measurement, estimator: Estimator) -> Floats:
    """Return the seconds that amounts are divided by, one per row."""
    columns = samples(measurement)
    if estimator == "wall":
        wall: Floats = columns["dt_s"]
        return wall
    own: Floats = computing_s(columns)
    return own + columns["traffic_cpu_s"] if shares_core(measurement) else own


def computing_s(columns: dict[str, NDArray[Any]]) -> Floats:
    """Return the computation's CPU time, that of its runtime's own threads included: without them it would not run."""
    own: Floats = columns["compute_cpu_s"]
    return own + columns["runtime_cpu_s"] if "runtime_cpu_s" in columns else own


def unit_of_resampling(columns: dict[str, NDArray[Any]]) -> NDArray[Any]:
    """Return the column of what an interval draws: cycles, or the forks of a runtime where there are several.

    What a fork draws at its start (memory, what was compiled how) stays as long as it lives, so cycles of one fork are
    no independent draws of it.
    """
    return columns["fork"] if has_forks(columns) else columns["cycle"]


def has_forks(columns: dict[str, NDArray[Any]]) -> bool:
    """Return whether a runtime was started more than once."""
    return "fork" in columns and np.unique(columns["fork"]).size > 1


def shares_core(measurement: Measurement) -> bool:
    """Return whether the traffic's threads run on the computing thread's CPU, and only there."""
    placement = measurement.header["placement"]
    computing, traffic = placement["compute_cpus"], placement["traffic_cpus"]
    return len(computing) == 1 and list(computing) == list(traffic)


def available_is_valid(measurement: Measurement) -> str | None:
    """Return why `available` would mislead for this measurement, or None where it is valid."""
    header = measurement.header
    placement = header["placement"]
    computing, traffic = set(placement["compute_cpus"]), set(placement["traffic_cpus"])
    if placement["mode"] == "free" or len(computing) != 1 or not traffic:
        return "threads may move between CPUs"
    if computing & traffic and computing != traffic:
        return "the traffic's threads are only sometimes on the computing CPU"
    quota = quota_cpus(header["host"]["settings"])
    if quota is not None and quota < len(computing | traffic | set(placement["sampler_cpus"])):
        return f"a quota of {quota:g} CPUs takes time away from both"
    columns = samples(measurement)
    scheduled = ("compute_wait_s", "compute_switches", "traffic_wait_s", "traffic_switches")
    if len(columns["calls"]) and not any(columns[name].any() for name in scheduled) and columns["calls"].any():
        return "the kernel counts neither waiting nor switches of threads (schedstat reads 0 0 0)"
    rest = in_phases(measurement) & ~columns["settling"].astype(bool)
    for channel in range(len(header["channels"])):
        rest &= columns[f"channel{channel}_asked_mb_per_s"] == 0
    own = float(computing_s(columns)[rest].sum())
    left = float((columns["dt_s"] - columns["foreign_cpu_s"])[rest].sum())
    if not own >= CPU_BOUND * left:  # also when either is NaN
        return "the computation sleeps, or runs where its CPU time is not counted"
    return None


def quota_cpus(settings: dict[str, str]) -> float | None:
    """Return the CPU quota among a host's settings, in CPUs, or None where there is none or none is known."""
    value = settings.get("cpu_quota", "unknown")
    return None if value in ("none", "unknown") else float(value.split()[0])
