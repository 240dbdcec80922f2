"""What a measurement itself tells about how far to trust it; each warning stands in the result's header."""

from __future__ import annotations

from typing import Any

import numpy as np

from crosswind.measurement import Measurement
from crosswind.placement import Placed

FOREIGN_SHARE = 0.05
"""Part of the computing CPU that others may take before it is said."""


def warnings_of(measurement: Measurement, placed: Placed, facts: dict[str, Any]) -> list[dict[str, str]]:
    """Return the warnings of a finished measurement, the gravest first.

    Parameters
    ----------
    measurement : Measurement
        As it ended.
    placed : Placed
        Where the threads were.
    facts : dict
        What the probe tells of its sockets.
    """
    header = measurement.header
    found: list[dict[str, str]] = []

    def warn(code: str, message: str, hint: str) -> None:
        found.append({"code": code, "message": message, "hint": hint})

    if header["ended"] == "time-limit":
        warn(
            "not-settled",
            f"the time was up after {header['elapsed_s']:.0f} s, before every interference rate was known well enough",
            "give it more --max-seconds, or a quieter host",
        )
    share = _foreign_share(measurement)
    if share > FOREIGN_SHARE:
        warn(
            "foreign-load",
            f"other processes took {100 * share:.0f} % of the computing CPU",
            "stop them, or trust only the `available` estimator",
        )
    if placed.crowded:
        warn(
            "one-cpu",
            "sampler and peer had to run on the computing CPU",
            "measure with a peer on another machine, and allow this process a second CPU",
        )
    settings = header["host"]["settings"]
    if settings.get("cpu_quota", "none") not in ("none", "unknown"):
        warn(
            "cpu-quota",
            f"a CPU quota holds here ({settings['cpu_quota']}): it makes several cores one",
            "measure outside the container, or without a quota",
        )
    if any(peer["loopback"] for peer in header["peers"]):
        warn(
            "loopback",
            "the peer runs on this machine: no network card, no interrupts, and the peer's CPU does part of the work",
            "run `crosswind serve` on another machine for figures to plan with",
        )
    for name, value in settings.items():
        if name.endswith(".kind") and "veth" in value:
            warn(
                "veth",
                f"{name.removesuffix('.kind')} is a virtual pair: its soft interrupts run where the sender runs",
                "figures of a real network card will differ",
            )
    asked = header["traffic"]["socket_buffer_bytes"]
    if asked and facts["peers"] and min(facts["send_buffer_bytes"], facts["receive_buffer_bytes"]) < 2 * asked:
        warn(
            "buffers-cut",
            f"the system gives smaller socket buffers than the {asked} bytes asked for",
            "raise net.core.rmem_max and wmem_max, or ask for less",
        )
    return found


def _foreign_share(measurement: Measurement) -> float:
    """Part of the computing CPU's time that went to others; 0 where it cannot be told."""
    if "foreign_cpu_s" not in measurement.samples.column_names:
        return 0.0
    foreign = measurement.samples["foreign_cpu_s"].to_numpy()
    spent = measurement.samples["dt_s"].to_numpy()
    known = np.isfinite(foreign)
    return float(foreign[known].sum() / spent[known].sum()) if known.any() else 0.0
