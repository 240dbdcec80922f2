"""What copies cost a GPU's kernels, and kernels the copies: measured for each pair of kernel and traffic."""

from __future__ import annotations

import datetime
import math
import shlex
import time
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.gpu.device import KERNELS, TRAFFICS, CudaDevice, Device
from crosswind.gpu.measurement import GpuMeasurement
from crosswind.gpu.session import Progress, Session, checked
from crosswind.gpu.task import Task

if TYPE_CHECKING:
    from crosswind.documents.gpu_measurement import GpuMeasurementHeader

LEAST_S, MOST_S = 5.0, 86_400.0


def measure_gpu(
    index: int = 0,
    *,
    kernels: Sequence[str] | None = None,
    traffics: Sequence[str] = tuple(TRAFFICS),
    max_seconds: float = 240.0,
    seed: int = 0,
    progress: Progress | None = None,
    task: str | Callable[[], object] | None = None,
    device: Device | None = None,
    clock: Callable[[], float] = time.monotonic,
) -> GpuMeasurement:
    """Measure what each kind of traffic costs each kernel on a GPU, and what the kernel costs the traffic.

    Parameters
    ----------
    index : int
        Number of the device, as `nvidia-smi -L` counts.
    kernels : sequence of str
        Of `KERNELS`: compute-bound `tensor` and `fma`, memory-bound `triad`, latency-bound `chase`, `mixed16` and
        `mixed64` between the first two kinds, and `step`, a small model's training step. Default: all, or none beside a
        `task`.
    traffics : sequence of str
        Of `TRAFFICS`; `d2h-sm:4` is moved by 4 blocks of threads, `loader:2` by 2 threads of the host.
    max_seconds : float
        For all pairs together, from 5 s to a day.
    seed : int
        Of the order of blocks.
    progress : callable, optional
        Takes the part that is done and a message.
    task : callable, or str "module:function", optional
        A kernel of your own: a function without arguments that enqueues work of PyTorch or CuPy on the current stream
        and waits for nothing. Its pairs bear the function's name.
    device : Device, optional
        A device that is open already.
    clock : callable
        Seconds that count against `max_seconds`.

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
    own = None if task is None else Task.of(task, KERNELS)
    asked = asked_for(kernels, traffics, task)
    kernels = (*([own.name] if own else []), *(kernels or (() if own else KERNELS)))
    checked(kernels, traffics, own.name if own else None)
    opened = device or CudaDevice(index, own)
    started = datetime.datetime.now(datetime.UTC)
    session = Session(opened, kernels, traffics, max_seconds, seed, progress, clock, task=own.name if own else None)
    session.run()
    header: GpuMeasurementHeader = {
        "schema_version": 1,
        "version": _core.__version__,
        "asked": asked,
        "started": started.isoformat().replace("+00:00", "Z"),
        "device": opened.about(),
        "pairs": [
            {
                "kernel": pair.kernel,
                "unit": "calls" if own and pair.kernel == own.name else _core.Gpu.unit(pair.kernel),
                "traffic": pair.traffic.name,
                "path": pair.traffic.path,
                "by": pair.traffic.by,
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
    call = getattr(opened, "call", None)
    if own and call is not None:
        header["task"] = {"name": own.name, "gpu_s": call.gpu_s, "host_s": call.host_s}
    return GpuMeasurement.of(session.rows, header)


def asked_for(kernels: Sequence[str] | None, traffics: Sequence[str], task: str | Callable[[], object] | None) -> str:
    """Return what a measurement is of, as typed: a file of another one is replaced only by force.

    Examples
    --------
    >>> asked_for(None, ("h2d", "d2h"), "train:step")
    '--task train:step --gpu-traffic h2d --gpu-traffic d2h'
    """
    words = [] if task is None else ["--task", task if isinstance(task, str) else getattr(task, "__qualname__", "task")]
    words += [word for kernel in kernels or () for word in ("--gpu-kernel", kernel)]
    return shlex.join([*words, *(word for traffic in traffics for word in ("--gpu-traffic", traffic))])


def _known(value: float) -> float | None:
    """Return a rate, or None for NaN, which JSON does not have."""
    return value if math.isfinite(value) else None


__all__ = ["KERNELS", "TRAFFICS", "GpuMeasurement", "measure_gpu"]
