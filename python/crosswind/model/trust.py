"""Reasons to doubt a fit: warnings as data, each with a code, what was seen, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from crosswind.errors import Notice, warning
from crosswind.measurement import Measurement
from crosswind.model.additive import Additivity
from crosswind.model.baseline import Baseline
from crosswind.model.channel import BENT, SETTLED_IR, SETTLED_LOSS, ChannelFit
from crosswind.model.interval import IDLE_BELOW
from crosswind.model.plane import PlaneFit
from crosswind.model.points import available_is_valid, in_phases

FOREIGN_SHARE = {"wall": 0.05, "available": 0.5}
"""Mean part of the computing CPU in other people's hands, above which figures on this time base are not trustworthy."""
DRIFT = 0.10
"""Change of the idle rate over the measurement, parts of its mean, that is reported."""
UNEVEN = 0.04
"""Standard deviation of a cycle's idle blocks, parts of their mean, reported without others' use of the CPU."""
SHORT = 0.9
"""Part of the asked rate that must be reached."""

LONGER = "measure longer (--max-seconds), or on a quieter host"
ALONE = "--direction both measures no direction alone"

UNTRUSTED = frozenset({"not-settled", "not-quiet", "partial", "too-few-points", "jit-compiles"})
"""Codes that make a fit not trustworthy (exit code 3)."""


def judge(
    measurement: Measurement,
    channels: tuple[ChannelFit, ...],
    missing: dict[int, str],
    base: Baseline,
    *,
    plane: PlaneFit | None,
    additive: tuple[Additivity, ...] | None,
) -> list[Notice]:
    """Return the measurement's own warnings, then those of the fit; each code and message once."""
    told = list(measurement.header["warnings"])
    known = {w["code"] for w in told}
    about = _about_measurement(measurement, base, channels[0].estimator if channels else "wall")
    told += [w for w in about if w["code"] not in known]
    for channel in channels:
        told += _about_channel(channel)
        if not channel.settled and measurement.header["ended"] != "settled":
            told.append(_not_settled(channel))
    told += _about_missing(measurement, missing)
    told += _about_together(plane, additive or ())
    unique = {(w["code"], w["message"]): w for w in told}
    return list(unique.values())


def _about_measurement(measurement: Measurement, base: Baseline, estimator: str) -> Iterator[Notice]:
    if measurement.partial:
        yield warning("partial", f"the measurement ended early ({measurement.header['ended']})", "measure again")
    if base.foreign_share > FOREIGN_SHARE[estimator]:
        yield warning(
            "not-quiet",
            f"other processes had {100 * base.foreign_share:.0f} % of the computing CPU; figures on the time base"
            f' "{estimator}" bear {100 * FOREIGN_SHARE[estimator]:.0f} %',
            "stop them, or measure when the host is quiet; `crosswind doctor` names the busy ones",
        )
    why = available_is_valid(measurement)
    if why:
        yield warning(
            "wall-only",
            f"figures are on wall time only, since {why}: whatever else ran on this host is in them",
            "pin both threads to one CPU each, e.g. --placement same-core",
        )
    if abs(base.drift) > DRIFT:
        yield warning(
            "drift",
            f"CPU speed drifted by {100 * base.drift:+.0f} % during the measurement",
            "cycles cancel slow drift, but the next run may give another result; repeat on a quiet host",
        )
    if not why and base.noise > UNEVEN:
        yield warning(
            "uneven-speed",
            f"CPU speed varies by {100 * base.noise:.0f} % without traffic and without other processes on this CPU:"
            " likely a neighbour on the host, or the clock",
            "another hour may differ by more than the interval says; repeat, or use dedicated hardware",
        )
    left = 100 * base.intercept_against_bare
    if left < 100 * (1 - BENT):
        yield warning(
            "idle-cost",
            f"with idle connections open, compute runs at {left:.0f} % of its rate before any socket existed; losses"
            " count from there",
            "a thread that polls for messages does this; wait for events instead",
        )
    if any(peer["loopback"] for peer in measurement.header["peers"]):
        yield warning(
            "loopback",
            "no network card was involved: the peer is this same machine",
            "before you plan with these numbers: `crosswind serve --listen HOST:7117 --token-file FILE` on another"
            " host, `crosswind measure --peer HOST:7117 --token-file FILE` here",
        )


def _not_settled(channel: ChannelFit) -> Notice:
    low, high = channel.ir_ci95
    loss_low, loss_high = channel.loss_ci95
    name = f"{'sending to' if channel.direction == 'send' else 'receiving from'} {channel.peer}"
    known = f"too few cycles to know the interval of {name}"
    if np.isfinite([low, high, loss_low, loss_high]).all() and channel.ir_s_per_mb:
        half = 50 * (high - low) / abs(channel.ir_s_per_mb)
        points = 50 * (loss_high - loss_low)
        known = f"the IR of {name} is known to {_two(half)} % (wanted: {100 * SETTLED_IR:g} %)"
        known += f", its highest loss to {_two(points)} points (or {100 * SETTLED_LOSS:g})"
    return warning("not-settled", known, LONGER)


def _two(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"


def _about_channel(channel: ChannelFit) -> Iterator[Notice]:
    name = f"{channel.direction} {channel.peer}"
    for lack in channel.lack_of_fit:
        if abs(lack.gap) > BENT and not lack.ci95[0] <= 0 <= lack.ci95[1]:
            side = "more" if lack.gap < 0 else "less"
            yield warning(
                "not-linear",
                f"{name}: at {100 * lack.level:.0f} % of the top rate it costs {100 * abs(lack.gap):.1f} points {side}"
                " than the linear fit says",
                "use the loss measured near your rate, not IR; `plan` does so",
            )
    every = channel.points[channel.estimator]
    left = float(every.x_mb_per_s[every.idle].mean())
    if left > IDLE_BELOW * channel.top_mb_per_s:
        yield warning(
            "idle-carries-traffic",
            f"{name}: blocks without traffic still carried {left:.4g} MB/s that were under way: losses are"
            f" too small by about what {left:.4g} MB/s cost",
            "measure on a quieter host, or ask for less (--top-mb-per-s)",
        )
    if channel.reached < SHORT:
        yield warning(
            "rate-not-reached",
            f"{name}: only {100 * channel.reached:.0f} % of the asked top rate was reached",
            "little interference may mean little communication: look at the achieved range",
        )
    if channel.upper_bound is not None:
        yield warning(
            "about-zero",
            f"{name}: IR is about 0: at most {1000 * channel.upper_bound:.4f} s/GB",
            "a relative interval means nothing here; use the bound",
        )
    if channel.cost and not channel.cost.separable:
        yield warning(
            "costs-not-separable",
            f"{name}: calls, bytes and wake-ups rose together, so their costs cannot be separated; all in all"
            f" {channel.cost.all_in_per_gb_s:.3f} s/GB",
            "vary the message size (`crosswind measure sweep message-size`), or measure longer",
        )
    if channel.cost and channel.cost.median_error > 0.25:
        yield warning(
            "cost-model",
            f"{name}: calls, bytes and wake-ups explain the traffic's CPU time only to"
            f" {100 * channel.cost.median_error:.0f} %",
            "do not extrapolate the costs per call, GB and wake-up",
        )


def _about_together(plane: PlaneFit | None, additive: tuple[Additivity, ...]) -> Iterator[Notice]:
    if plane and plane.synergy_ci95[1] < 0:
        more = -100 * plane.synergy
        yield warning(
            "no-synergy",
            f"receiving and sending at once costs {more:.1f} % of the idle rate more than the sum of each alone",
            "a plan that adds both rates up is too hopeful for nodes that do both",
        )
    for part in additive:
        low, high = part.bias_ci95
        if abs(part.bias) > BENT and not low <= 0 <= high:
            off = f"{100 * part.bias:+.1f} % of the idle rate off the sum of what each peer costs alone"
            yield warning(
                "not-additive",
                f"with several peers ({part.direction}) the compute rate is {off}",
                "compare at matched rates first: on a bent curve, slopes over different ranges differ",
            )


def _about_missing(measurement: Measurement, missing: dict[int, str]) -> Iterator[Notice]:
    """Warn of channels without a fit, each with the reason where it is more than too few points."""
    for channel, why in missing.items():
        entry = measurement.header["channels"][channel]
        peer = measurement.header["peers"][entry["peer"]]["address"]
        yield warning(
            "too-few-points",
            f"{entry['direction']} {peer}: {why or 'too few usable points for a fit of its own'}",
            mend_of_missing(measurement),
        )


def mend_of_missing(measurement: Measurement) -> str:
    """Return what to do about channels that could not be fitted alone.

    Only a measurement with --direction both settles without a block of one channel alone; one that ran out of time may
    not have come to any.
    """
    if in_phases(measurement).any():
        return LONGER
    settled = measurement.header["ended"] == "settled"
    return f"{ALONE}: measure with --direction each too" if settled else f"{LONGER}; {ALONE}"
