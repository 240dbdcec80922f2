"""One direction of one peer: everything that its points tell about the interference of its traffic."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from crosswind.errors import DescriptionError
from crosswind.measurement import Measurement
from crosswind.model.cost import Attribution, CostFit, attribute, fit_cost
from crosswind.model.curve import LeftOut, LossAt, left_out, losses
from crosswind.model.interval import TOP_ABOVE, SlopeInterval, slope_interval
from crosswind.model.line import LineFit, QuadraticFit, fit_line, fit_quadratic
from crosswind.model.normalise import Normalise, reference_rate
from crosswind.model.points import (
    Estimator,
    Points,
    available_is_valid,
    computing_s,
    foreign,
    points,
    samples,
    time_base,
)
from crosswind.model.robust import theil_sen
from crosswind.statistics.bootstrap import mean_of_cycles

FEWEST_POINTS = 6
BENT = 0.02
"""Gap of check points from the line, parts of the full rate, that is reported when it is also beyond chance."""
SETTLED_IR = 0.05
"""Settled when the 95 % interval is within this part of IR ..."""
SETTLED_LOSS = 0.01
"""... or the loss at the top is known to this part of the compute rate."""


@dataclass(frozen=True)
class LackOfFit:
    """Check points, which the line did not see, against the line.

    Attributes
    ----------
    level : float
        Part of the top rate.
    gap, ci95 : float, tuple of float
        Mean of measured - line, parts of the full rate, and its interval over cycles.
    points : int
        Number of check points at this level.
    """

    level: float
    gap: float
    ci95: tuple[float, float]
    points: int


@dataclass(frozen=True)
class ChannelFit:
    """Interference of one direction of one peer. Rates in MB/s, interference in s/MB, losses as parts of the full rate.

    Attributes
    ----------
    channel, peer, direction : int, str, str
        Index into the header's `channels`, the peer's address, `receive` or `send`.
    estimator : str
        Time base of the headline figures: `available` where it is valid, else `wall`.
    lines, points : dict by estimator
        Lines by least squares and the points behind them, both time bases where both are valid.
    ir_s_per_mb, ir_ci95 : float, tuple of float
        Interference rate by least squares over ladder points, and its interval by bootstrap over cycles.
    upper_bound : float or None
        Where the interval holds 0: IR is at most this, s/MB; a relative interval would mean nothing.
    intercept, std_dev, max_error, max_error_relative, r_squared : float
        Of that line; see `LineFit`.
    quadratic : QuadraticFit or None
        The parabola through ladder and check points; None with fewer than three levels.
    lack_of_fit : tuple of LackOfFit
        Check points against the line, one entry per level.
    losses : tuple of LossAt
        What is lost at rates that do not depend on the top, ascending: what measurements are compared by.
    left_out : tuple of LeftOut
        Each level between idle and top against what the others predict, by a curve and by a line.
    theil_sen, chord : float
        Interference rate by the median of pairs within cycles, and by the chord from idle to the top, s/MB.
    transfer_max_mb_per_s : float
        Highest rate reached alone, on wall time, unpaced included.
    range_mb_per_s : tuple of float
        Lowest and highest rate with traffic among the points, on their time base: what the line stands on.
    top_mb_per_s, loss_at_top, loss_ci95 : float, float, tuple of float
        The top level as reached, and the loss measured there.
    reached : float
        Rate reached over rate asked at the top level; NaN where unpaced.
    cost : CostFit or None
        CPU time of the traffic's threads per call, per GB, per wake-up.
    displacement, slow_down : float
        Parts of the full rate lost at the top because the traffic's threads took the CPU, and because the computing
        thread did less per CPU second; together about `loss_at_top`. NaN where CPU time is not known.
    compute_per_s : float
        The compute rate called 1, work units/s of the estimator's time base.
    foreign_share : float
        Part of the sampling intervals dropped because of foreign load.
    settled : bool
        Whether the interval is within 5 % of IR, or the loss at the top is known to 1 % of the full rate.
    interval : SlopeInterval
        The bootstrap itself.
    """

    channel: int
    peer: str
    direction: str
    estimator: Estimator
    lines: dict[Estimator, LineFit]
    points: dict[Estimator, Points]
    ir_s_per_mb: float
    ir_ci95: tuple[float, float]
    upper_bound: float | None
    intercept: float
    std_dev: float
    max_error: float
    max_error_relative: float
    r_squared: float
    quadratic: QuadraticFit | None
    lack_of_fit: tuple[LackOfFit, ...]
    losses: tuple[LossAt, ...]
    left_out: tuple[LeftOut, ...]
    theil_sen: float
    chord: float
    transfer_max_mb_per_s: float
    range_mb_per_s: tuple[float, float]
    top_mb_per_s: float
    loss_at_top: float
    loss_ci95: tuple[float, float]
    reached: float
    cost: CostFit | None
    displacement: float
    slow_down: float
    compute_per_s: float
    foreign_share: float
    settled: bool
    interval: SlopeInterval

    @property
    def line(self) -> LineFit:
        """The headline line."""
        return self.lines[self.estimator]

    @property
    def headline(self) -> LossAt | None:
        """The loss at the highest rate of `losses`; None without any."""
        return self.losses[-1] if self.losses else None

    @property
    def bent(self) -> bool:
        """Whether check points lie off the line: IR then holds for the range that it was fitted to, as a whole."""
        return any(abs(lack.gap) > BENT and not lack.ci95[0] <= 0 <= lack.ci95[1] for lack in self.lack_of_fit)

    @property
    def ir_s_per_gb(self) -> float:
        """Interference rate, s/GB."""
        return 1000.0 * self.ir_s_per_mb

    @property
    def cost_per_call_us(self) -> float:
        """CPU time of the traffic's threads per call, microseconds."""
        return self.cost.per_call_us if self.cost else float("nan")

    @property
    def cost_per_gb_s(self) -> float:
        """CPU time of the traffic's threads per GB, seconds, beyond that of calls and wake-ups."""
        return self.cost.per_gb_s if self.cost else float("nan")

    @property
    def cost_per_wakeup_us(self) -> float:
        """CPU time of the traffic's threads each time they are switched in, microseconds."""
        return self.cost.per_wakeup_us if self.cost else float("nan")

    def rate(self, mb_per_s: float) -> float:
        """Return the normalised compute rate that the line gives at this transfer rate, MB/s."""
        return self.intercept - self.ir_s_per_mb * mb_per_s


def fit_channel(
    measurement: Measurement, channel: int, normalise: Normalise = "idle", seed: int = 0
) -> ChannelFit | None:
    """Fit one channel.

    Parameters
    ----------
    measurement : Measurement
    channel : int
        Index into the header's `channels`.
    normalise : {"idle", "max"}
        What a compute rate of 1 means.
    seed : int
        Of the bootstraps.

    Returns
    -------
    ChannelFit or None
        None where this channel was never alone for long enough (a measurement of both directions at once only).
    """
    wanted: tuple[Estimator, ...] = ("wall",) if available_is_valid(measurement) else ("available", "wall")
    found: dict[Estimator, Points] = {}
    lines: dict[Estimator, LineFit] = {}
    for estimator in wanted:
        candidate = points(measurement, channel, estimator)
        ladder = _ladder(candidate)
        try:
            line = fit_line(ladder.x_mb_per_s, ladder.y_work_per_s / reference_rate(ladder, normalise))
        except DescriptionError:
            continue  # all intervals foreign on this time base, say; the other may stand
        if len(ladder) >= FEWEST_POINTS:
            found[estimator], lines[estimator] = candidate, line
    if not lines:
        return None
    estimator = next(iter(lines))
    every, line = found[estimator], lines[estimator]
    ladder = _ladder(every)
    reference = reference_rate(ladder, normalise)
    x = ladder.x_mb_per_s
    interval = slope_interval(x, ladder.y_work_per_s, ladder.cycle, ladder.block, seed=seed)
    # The interval is normalised by the idle mean; another reference scales it.
    scale = reference_rate(ladder, "idle") / reference
    ir_low, ir_high = -interval.high * scale, -interval.low * scale
    parts = _attribution(measurement, ladder)
    wall = points(measurement, channel, "wall", drop_foreign=False)
    about_zero = ir_low <= 0.0 or not np.isfinite(ir_high)
    half = (ir_high - ir_low) / 2.0
    loss_half = (interval.at_top_high - interval.at_top_low) / 2.0
    header = measurement.header["channels"][channel]
    return ChannelFit(
        channel=channel,
        peer=measurement.header["peers"][header["peer"]]["address"],
        direction=header["direction"],
        estimator=estimator,
        lines=lines,
        points=found,
        ir_s_per_mb=line.ir_s_per_mb,
        ir_ci95=(ir_low, ir_high),
        upper_bound=max(ir_high, 0.0) if about_zero and np.isfinite(ir_high) else None,
        intercept=line.intercept,
        std_dev=line.std_dev,
        max_error=line.max_error,
        max_error_relative=line.max_error_relative,
        r_squared=line.r_squared,
        quadratic=_quadratic(every, reference),
        lack_of_fit=_lack_of_fit(every, line, reference),
        losses=losses(every, seed),
        left_out=left_out(every),
        theil_sen=-theil_sen(x, ladder.y_work_per_s, ladder.cycle)
        / (float(np.median(ladder.y_work_per_s[ladder.idle])) / scale),
        chord=interval.at_top / interval.top_mb_per_s,
        transfer_max_mb_per_s=max(float(wall.x_mb_per_s.max()), float(header["unpaced_mb_per_s"])),
        range_mb_per_s=(float(every.x_mb_per_s[~every.idle].min()), float(every.x_mb_per_s.max())),
        top_mb_per_s=interval.top_mb_per_s,
        loss_at_top=interval.at_top,
        loss_ci95=(interval.at_top_low, interval.at_top_high),
        reached=_reached(wall),
        cost=fit_cost(measurement, channel, seed=seed),
        displacement=parts.displacement,
        slow_down=parts.slow_down,
        compute_per_s=reference,
        foreign_share=every.foreign_intervals / every.intervals if every.intervals else float("nan"),
        settled=bool(half <= SETTLED_IR * abs(line.ir_s_per_mb) or loss_half <= SETTLED_LOSS),
        interval=interval,
    )


def _ladder(every: Points) -> Points:
    """Leave out check points: the line must not see what it is checked against."""
    return every.where(~every.check)


def _quadratic(every: Points, reference: float) -> QuadraticFit | None:
    try:
        return fit_quadratic(every.x_mb_per_s, every.y_work_per_s / reference)
    except DescriptionError:
        return None


def _lack_of_fit(every: Points, line: LineFit, reference: float) -> tuple[LackOfFit, ...]:
    found = []
    gap = every.y_work_per_s / reference - (line.intercept - line.ir_s_per_mb * every.x_mb_per_s)
    checks = every.check & ~every.idle
    for level in np.unique(np.round(every.level[checks], 6)):
        at = checks & np.isclose(every.level, level)
        mean, low, high = mean_of_cycles(gap[at], every.cycle[at])
        found.append(LackOfFit(float(level), mean, (low, high), int(np.count_nonzero(at))))
    return tuple(found)


def _reached(wall: Points) -> float:
    """Return MB moved over MB asked at the top level, on wall time, which is the pacer's."""
    top = (wall.level >= TOP_ABOVE) & np.isfinite(wall.asked_mb_per_s)
    asked = float((wall.asked_mb_per_s * wall.seconds)[top].sum())
    return float((wall.x_mb_per_s * wall.seconds)[top].sum()) / asked if asked > 0 else float("nan")


def _attribution(measurement: Measurement, ladder: Points) -> Attribution:
    """Split the loss between idle and top blocks, on the time base of the points."""
    columns = samples(measurement)
    usable = ~columns["settling"].astype(bool) & ~foreign(columns, ladder.estimator)
    cpu, work, seconds = [], [], []
    for state in (ladder.idle, ladder.level >= TOP_ABOVE):
        rows = usable & np.isin(columns["block"], ladder.block[state])
        cpu.append(float(computing_s(columns)[rows].sum()))
        work.append(float(columns["work"][rows].sum()))
        seconds.append(float(time_base(measurement, ladder.estimator)[rows].sum()))
    return attribute((cpu[0], cpu[1]), (work[0], work[1]), (seconds[0], seconds[1]))
