"""Interference of traffic with computation, by a short `measure`, at a rate that is the baseline's too."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.check.decision import Reading
from crosswind.errors import DescriptionError, MeasurementError, Notice, warning

if TYPE_CHECKING:
    from crosswind.measurement import Measurement

LOOPBACK = "loopback"
MATRIX = 256
_NORMAL_95 = 1.959964
_REACHED = 0.9


def path_name(peer: str | None) -> str:
    """Return what readings call the path: `loopback`, or the peer's address."""
    return peer or LOOPBACK


def names_of_path(peer: str | None) -> list[str]:
    """Return the measures of a path; of loopback the interference only.

    Examples
    --------
    >>> names_of_path("10.0.0.2:7117")
    ['rate from 10.0.0.2:7117', 'interference 10.0.0.2:7117']
    """
    return ([f"rate from {peer}"] if peer else []) + [f"interference {path_name(peer)}"]


def is_always_measured(name: str) -> bool:
    """Return whether every check has this reading; those of a path to a peer must be asked for.

    Examples
    --------
    >>> is_always_measured("interference loopback"), is_always_measured("rate from 10.0.0.2:7117")
    (True, False)
    """
    return name == f"interference {LOOPBACK}" or not name.startswith(("interference ", "rate from "))


def interference(
    peer: str | None, top_mb_per_s: float | None, seconds: float, token: str | None, tls: str | Path | None
) -> tuple[dict[str, Reading], float | None, list[Notice]]:
    """Return the readings of one path, the top of its ladder in MB/s, and what went wrong.

    The loss is a share of the compute rate while bytes are received at the top. With a peer the rate without pacing is
    a reading as well: it is the link's, where the CPU is not what limits it. Without a `top_mb_per_s`, calibration
    finds it.

    Raises
    ------
    MeasurementError
        When a peer that was named cannot be reached.
    """
    from crosswind.measure import measure
    from crosswind.model.fit import fit

    name = path_name(peer)
    try:
        found = measure(
            peer,
            matrix=MATRIX,
            direction="receive",
            top_mb_per_s=top_mb_per_s,
            target=0.02,
            max_seconds=seconds,
            token=token,
            tls=tls,
        )
        if found.header["ended"] == "interrupted":
            raise KeyboardInterrupt
    except MeasurementError as error:
        if peer is not None:
            raise
        return {}, None, [warning("no-loopback", f"interference on loopback is unknown: {error}", "check again")]
    readings: dict[str, Reading] = {}
    if peer is not None:
        readings[f"rate from {name}"] = Reading(_unpaced(found), "MB/s", excusable=True)
    try:
        channel = fit(found).alone("receive")
    except DescriptionError as error:  # a starved CPU gives too few samples: the other measures say what is wrong
        return readings, None, [warning(error.code, f"interference on {name} is unknown: {error}", "more --seconds")]
    if channel is None:
        return readings, None, [warning("no-receive", f"nothing was received from {name}", "more --seconds")]
    top = float(found.header["channels"][0]["top_mb_per_s"])
    if channel.reached < _REACHED:
        message = f"{name}: {100 * channel.reached:.0f} % of {top:.0f} MB/s reached, so interference is not compared"
        return readings, top, [warning("rate-not-reached", message, "the rate itself is compared with --peer")]
    low, high = channel.loss_ci95
    spread = (high - low) / (2 * _NORMAL_95)
    readings[f"interference {name}"] = Reading((), "share", excusable=True, mean=channel.loss_at_top, error=spread)
    return readings, top, []


def _unpaced(found: Measurement) -> tuple[float, ...]:
    """Return the rates of the blocks that asked for all they could get, MB/s."""
    rows = found.samples.select(["phase", "dt_s", "channel0_mb", "channel0_asked_mb_per_s"]).to_pylist()
    return tuple(
        row["channel0_mb"] / row["dt_s"]
        for row in rows
        if row["phase"] == "calibrate"
        and not math.isfinite(row["channel0_asked_mb_per_s"] or math.inf)
        and row["channel0_mb"] > 0
        and row["dt_s"] > 0
    )
