"""What copies cost a GPU's kernels, and kernels the copies: measured for each pair of kernel and traffic."""

from __future__ import annotations

import datetime
import math
from collections.abc import Sequence

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.gpu.device import KERNELS, TRAFFICS, CudaDevice, Device
from crosswind.gpu.measurement import GpuMeasurement
from crosswind.gpu.session import Progress, Session

LEAST_S, MOST_S = 5.0, 86_400.0


def measure_gpu(
    index: int = 0,
    *,
    kernels: Sequence[str] = KERNELS,
    traffics: Sequence[str] = tuple(TRAFFICS),
    max_seconds: float = 240.0,
    seed: int = 0,
    progress: Progress | None = None,
    device: Device | None = None,
) -> GpuMeasurement:
    """Measure what each kind of traffic costs each kernel on a GPU, and what the kernel costs the traffic.

    Parameters
    ----------
    index : int
        Number of the device, as `nvidia-smi -L` counts.
    kernels : sequence of str
        Of `KERNELS`: compute-bound `tensor` and `fma`, memory-bound `triad`, latency-bound `chase`, and `mixed16` and
        `mixed64` between the first two kinds.
    traffics : sequence of str
        Of `TRAFFICS`.
    max_seconds : float
        For all pairs together, from 5 s to a day.
    seed : int
        Of the order of blocks.
    progress : callable, optional
        Takes the part that is done and a message.
    device : Device, optional
        A device that is open already.

    Returns
    -------
    GpuMeasurement
        With what was measured so far when it is interrupted.

    Raises
    ------
    MeasurementError
        Where the machine has no NVIDIA driver, or one that is too old.
    DescriptionError
        When an argument is out of range.
    """
    if not LEAST_S <= max_seconds <= MOST_S:
        raise DescriptionError(f"max_seconds is {max_seconds:g}; it must be {LEAST_S:g} to {MOST_S:g} s", "max_seconds")
    opened = device or CudaDevice(index)
    started = datetime.datetime.now(datetime.UTC)
    session = Session(opened, kernels, traffics, max_seconds, seed, progress)
    session.run()
    header = {
        "schema_version": 1,
        "version": _core.__version__,
        "started": started.isoformat().replace("+00:00", "Z"),
        "device": opened.about(),
        "pairs": [
            {
                "kernel": pair.kernel,
                "unit": _core.Gpu.unit(pair.kernel),
                "traffic": pair.traffic.name,
                "path": pair.traffic.path,
                "by": f"{pair.traffic.blocks} blocks" if pair.traffic.blocks else "copy engine",
                "memory": pair.traffic.memory,
                "chunk_bytes": pair.traffic.chunk_bytes,
                "alone_mb_per_s": _known(pair.alone_mb_per_s),
                "beside_mb_per_s": _known(pair.beside_mb_per_s),
                "top_mb_per_s": _known(pair.top_mb_per_s),
                "cycles": pair.cycles,
            }
            for pair in session.pairs
        ],
        "seed": seed,
        "ended": session.ended,
        "elapsed_s": session.elapsed_s,
    }
    return GpuMeasurement.of(session.rows, header)


def _known(value: float) -> float | None:
    """Return a rate, or None for NaN, which JSON does not have."""
    return value if math.isfinite(value) else None


__all__ = ["KERNELS", "TRAFFICS", "GpuMeasurement", "measure_gpu"]
