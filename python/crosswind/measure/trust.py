"""What only the measuring process can tell about how far to trust it; each warning stands in the result's header.

What follows from the samples (did it settle, was the host quiet) is reported by the fit: `model/trust.py`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from crosswind.errors import Notice, warning
from crosswind.measure.placement import Placed
from crosswind.measure.runtime.warm_up import JIT_SHARE
from crosswind.measurement import Measurement

DESIGNED = pa.array(["ladder", "check", "together"])
ERGONOMICS = ("gc", "carriers", "gomaxprocs")
"""What runtimes decide by the CPUs that they see at their start."""


def warnings_of(measurement: Measurement, placed: Placed, facts: dict[str, Any]) -> list[Notice]:
    """Return the warnings of a finished measurement, the gravest first.

    Parameters
    ----------
    measurement : Measurement
        As it ended.
    placed : Placed
        Where the threads were.
    facts : dict
        What the probe reports of its sockets.
    """
    header = measurement.header
    found: list[Notice] = []

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
    runtime = header.get("runtime")
    if runtime:
        found += _of_runtime(measurement)
    if (
        asked
        and facts["peers"]
        and (not runtime or runtime["sockets_set"])
        and min(facts["send_buffer_bytes"], facts["receive_buffer_bytes"]) < 2 * asked
    ):
        warn(
            "buffers-cut",
            f"the system gives smaller socket buffers than the {asked} bytes asked for",
            "raise net.core.rmem_max and wmem_max, or ask for less",
        )
    return found


def _of_runtime(measurement: Measurement) -> Iterator[Notice]:
    runtime = measurement.header["runtime"]
    assert runtime is not None
    samples = measurement.samples
    used = pc.and_(pc.is_in(samples["phase"].cast(pa.string()), DESIGNED), pc.invert(samples["settling"]))
    ladder = samples.filter(used)
    if ladder.num_rows:
        share = pc.sum(ladder["jit_cpu_s"]).as_py() / pc.sum(ladder["dt_s"]).as_py()
        if share > JIT_SHARE:
            yield warning(
                "jit-compiles",
                f"{runtime['name']}: its compilers had {100 * share:.1f} % of the CPU while it was measured",
                "give it longer (--max-seconds), or fewer --forks: what is still being compiled is no headline",
            )
    if not runtime["sockets_set"]:
        yield warning(
            "sockets-not-set",
            "the system does not let a process set its child's socket buffers: the runtime's own hold",
            "figures are not those of another machine's; allow pidfd_getfd (a container: --cap-add SYS_PTRACE)",
        )
    if runtime["pin"] == "process" and len(measurement.header["placement"]["compute_cpus"]) == 1:
        facts = ", ".join(f"{key} {value}" for key, value in runtime["facts"].items() if key in ERGONOMICS)
        if facts:
            yield warning(
                "one-cpu-at-start",
                f"{runtime['name']} saw one CPU when it started: {facts}",
                "--pin threads starts it on all of them first",
            )
