"""What only the measuring process can tell about how far to trust it; each warning stands in the result's header.

What can be told from the samples (did it settle, was the host quiet) is told by the fit: `model/trust.py`.
"""

from __future__ import annotations

from typing import Any

from crosswind.errors import warning
from crosswind.measure.placement import Placed
from crosswind.measurement import Measurement


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
        found.append(warning(code, message, hint))

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
