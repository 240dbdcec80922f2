"""Fit the interference rates of a host (the compute lost for each MB/s sent or received) to a measurement.

`fit` fits each direction by itself (`channel`), and both together where a measurement has both (`plane`). A `Fit` holds
the rates with their confidence intervals, the model with which they were fitted, and warnings where the measurement
contradicts it. `Fit.platform` writes the rates as a platform, which `plan` and `run` read.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from crosswind.errors import DescriptionError, Notice
from crosswind.files.tabular import Tabular
from crosswind.measurement import Measurement
from crosswind.model import document, trust
from crosswind.model.additive import Additivity, check_additivity
from crosswind.model.baseline import Baseline, baseline
from crosswind.model.channel import ChannelFit, fit_channel
from crosswind.model.concurrent_blocks import Blocks, blocks
from crosswind.model.curve import with_earlier
from crosswind.model.hull import Hull
from crosswind.model.normalise import Normalise
from crosswind.model.plane import PlaneFit, fit_plane
from crosswind.model.three_point import ThreePointFit, fit_three_points

if TYPE_CHECKING:
    from crosswind.platform import Platform


@dataclass(frozen=True)
class Prediction:
    """A normalised compute rate, and whether it was interpolated.

    Attributes
    ----------
    rate : float
        Part of the idle compute rate, never below 0.
    inside : bool
        Whether the transfer rates lie in the convex hull of measured ones; outside, the law is extrapolated.
    """

    rate: float
    inside: bool


@dataclass(frozen=True)
class Fit(Tabular):
    """Interference fitted to a measurement.

    Attributes
    ----------
    measurement : Measurement
        What was fitted.
    channels : tuple of ChannelFit
        One per direction of each peer that was measured alone.
    plane, three_point : PlaneFit or None, ThreePointFit or None
        Both directions at once; None where that was not measured.
    additive : tuple of Additivity or None
        Several peers at once, one entry per direction; None where that was not measured.
    baseline : Baseline
        The computation without traffic.
    hull : Hull
        Of all measured (received, sent) totals, MB/s.
    normalise : str
        What a rate of 1 means: `idle` or `max`.
    warnings : list of dict
        code, message, hint; the measurement's own first.
    """

    measurement: Measurement
    channels: tuple[ChannelFit, ...]
    plane: PlaneFit | None
    additive: tuple[Additivity, ...] | None
    three_point: ThreePointFit | None
    baseline: Baseline
    hull: Hull
    normalise: Normalise
    warnings: list[Notice]

    @property
    def trustworthy(self) -> bool:
        """Whether every rate settled on a host quiet enough; else the command line exits with 3."""
        return not any(w["code"] in trust.UNTRUSTED for w in self.warnings)

    def alone(self, direction: str) -> ChannelFit | None:
        """Return the first channel of this direction, `receive` or `send`."""
        return next((c for c in self.channels if c.direction == direction), None)

    def predict(self, received_mb_per_s: float = 0.0, sent_mb_per_s: float = 0.0) -> Prediction:
        """Predict the compute rate at total transfer rates, MB/s.

        By the plane where both directions are asked for and were measured at once, else by 1 - sum IR TR with the
        rates of each direction's first channel alone.

        Raises
        ------
        DescriptionError
            When a direction is asked for that was not measured.
        """
        if self.plane and received_mb_per_s and sent_mb_per_s:
            rate = float(self.plane.rate(np.array(received_mb_per_s), np.array(sent_mb_per_s)))
        else:
            rate = 1.0
            for direction, amount in (("receive", received_mb_per_s), ("send", sent_mb_per_s)):
                channel = self.alone(direction)
                if channel is None and amount:
                    raise DescriptionError(f"{direction} was not measured", "not-measured", f"--direction {direction}")
                rate -= channel.ir_s_per_mb * amount if channel else 0.0
        return Prediction(max(rate, 0.0), bool(self.hull.contains(received_mb_per_s, sent_mb_per_s)))

    def platform(self, name: str | None = None) -> Platform:
        """Return the platform that was measured; see `crosswind.model.calibrate.platform_of`."""
        from crosswind.model.calibrate import platform_of

        return platform_of(self, name).platform

    def to_dict(self) -> dict[str, object]:
        """Return the JSON document of `crosswind measure --json`."""
        return document.as_dict(self)

    def table(self) -> str:
        """Return the interference rates as text, in the form of table 2 of the papers."""
        return document.as_table_2(self)

    def to_arrow(self) -> pa.Table:
        """Return one row per channel."""
        return pa.Table.from_pylist(document.rows(self))

    def _repr_html_(self) -> str:
        return document.as_html(self)

    def __repr__(self) -> str:
        rates = ", ".join(f"{c.direction} {c.peer}: {c.ir_s_per_gb:.4g} s/GB" for c in self.channels)
        return f"Fit({self.measurement.header['name']!r}: {rates})"


def fit(
    measurement: Measurement | str | Path,
    *,
    normalise: Normalise = "idle",
    seed: int = 0,
    earlier: Sequence[Measurement | str | Path] = (),
) -> Fit:
    """Fit interference rates to a measurement.

    The normalised compute rate is taken as c - IR TR for each direction of each peer alone; together, as a plane, as
    the law through three points, and as the sum of the parts, each compared with what was measured.

    Parameters
    ----------
    measurement : Measurement or path
        A path is that of a `measurement.parquet`.
    normalise : {"idle", "max"}
        What a compute rate of 1 means: the mean of idle blocks, or the highest rate seen, as in the papers.
    seed : int
        Of the bootstraps: same seed, same figures.
    earlier : sequence of Measurement or path
        Other measurements of the same host, made in the same way: they widen the interval for the next one by what
        changes from measurement to measurement.

    Returns
    -------
    Fit

    Raises
    ------
    DescriptionError
        When too little was sampled for any fit, the file is not a measurement, or an earlier one is of another host or
        made in another way.

    Notes
    -----
    Validity: rates hold for this kernel, placement, message size and pacing; the header records them. Source:
    interference-in-java, sections 2 and 3; interference-aware-scheduling, sections 2 and 3.1; docs/papers/.
    """
    if normalise not in ("idle", "max"):
        raise DescriptionError(f'normalise is "{normalise}"; it must be "idle" or "max"', "normalise")
    if not isinstance(measurement, Measurement):
        measurement = Measurement.load(measurement)
    unknown: dict[int, str] = {}
    fitted: list[ChannelFit] = []
    for place in range(len(measurement.header["channels"])):
        found = _channel(measurement, place, normalise, seed)
        if isinstance(found, ChannelFit):
            fitted.append(found)
        else:
            unknown[place] = found
    before = [_like(measurement, one) for one in earlier]
    channels = tuple(_knowing(c, before, normalise, seed) for c in fitted)
    estimator = channels[0].estimator if channels else "wall"
    every = blocks(measurement, estimator)
    plane, three_point, additive = _together(every, channels)
    if not channels and plane is None:
        hint = "measure longer, with idle and busy blocks"
        why = next((reason for reason in unknown.values() if reason), "")
        raise DescriptionError(f"too few samples for a fit{why and f': {why}'}", "too-few-points", hint)
    base = baseline(measurement, estimator)
    return Fit(
        measurement=measurement,
        channels=channels,
        plane=plane,
        additive=additive,
        three_point=three_point,
        baseline=base,
        hull=Hull(every.received_mb_per_s, every.sent_mb_per_s),
        normalise=normalise,
        warnings=trust.judge(measurement, channels, unknown, base, plane=plane, additive=additive),
    )


def _channel(measurement: Measurement, place: int, normalise: Normalise, seed: int) -> ChannelFit | str:
    """Return the fit of one channel, or why there is none; empty where its points are simply too few."""
    try:
        return fit_channel(measurement, place, normalise, seed) or ""
    except DescriptionError as error:
        if error.code not in ("no-idle", "no-traffic", "too-few-points"):
            raise
        return str(error)


def _like(measurement: Measurement, earlier: Measurement | str | Path) -> Measurement:
    """Return an earlier measurement, which must be of the same host and made in the same way."""
    other = earlier if isinstance(earlier, Measurement) else Measurement.load(earlier)
    theirs: Mapping[str, Any] = other.header
    ours: Mapping[str, Any] = measurement.header
    for section, field in (("host", "name"), ("kernel", "name"), ("placement", "mode")):
        there, here = theirs[section][field], ours[section][field]
        if there != here:
            message = f'the earlier measurement is of {section} "{there}", this one of "{here}"'
            raise DescriptionError(message, "other-kind", "only measurements of the same host tell how it changes")
    return other


def _knowing(channel: ChannelFit, before: Sequence[Measurement], normalise: Normalise, seed: int) -> ChannelFit:
    """Return a copy of the fit whose loss intervals include earlier measurements at the same rates."""
    found: dict[float, list[float]] = {}
    for one in before:
        for place in range(len(one.header["channels"])):
            other = _channel(one, place, normalise, seed)
            if isinstance(other, ChannelFit) and (other.direction, other.peer) == (channel.direction, channel.peer):
                for loss in other.losses:
                    found.setdefault(loss.mb_per_s, []).append(loss.loss)
    losses = tuple(with_earlier(loss, found.get(loss.mb_per_s, ())) for loss in channel.losses)
    return replace(channel, losses=losses)


def _together(
    every: Blocks, channels: tuple[ChannelFit, ...]
) -> tuple[PlaneFit | None, ThreePointFit | None, tuple[Additivity, ...] | None]:
    """Fit what needs several channels at once."""
    rest = every.work_per_s[~every.used.any(axis=1)]
    if not rest.size or not rest.mean() > 0 or len(every.receives) < 2:
        return None, None, None
    reference = float(rest.mean())
    receive, send = (_mean_rate([c for c in channels if c.direction == d]) for d in ("receive", "send"))
    plane = fit_plane(every, reference, (receive[0], send[0]), (receive[1], send[1]))
    three_point = None
    if plane:
        flat = plane.rate(every.received_mb_per_s, every.sent_mb_per_s)
        three_point = fit_three_points(every, reference, flat)
    # The estimators of all channels agree, since validity is a property of the placement.
    additive = check_additivity(every, reference, {c.channel: c.line for c in channels})
    return plane, three_point, additive or None


def _mean_rate(channels: list[ChannelFit]) -> tuple[float, float]:
    """Return the mean interference rate of these channels and half of its 95 % interval, s/MB; NaN without any."""
    if not channels:
        return float("nan"), float("nan")
    halves = [(c.ir_ci95[1] - c.ir_ci95[0]) / 2.0 for c in channels]
    return float(np.mean([c.ir_s_per_mb for c in channels])), float(np.linalg.norm(halves)) / len(channels)
