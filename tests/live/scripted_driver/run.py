"""Print what the probe does above the scripted driver, as JSON; started by test_gpu_probe.py."""

from __future__ import annotations

import json

from crosswind.errors import CrosswindError
from crosswind.gpu import measure_gpu
from crosswind.gpu.device import KERNELS, CudaDevice, traffic_of
from crosswind.gpu.task import Task

MOVED = ("h2d", "loader:1", "loader:8", "d2h-sm:4")
CHUNKS = 24
BLOCK = {"kernel": None, "rounds": 1, "launches": 1, "mb_per_s": None, "settle_s": 0.0, "seconds": 0.2}


def said(name: str) -> str:
    """Return what is said of a function."""
    try:
        CudaDevice(0, Task.of(f"tasks:{name}", KERNELS)).load(name)
    except CrosswindError as error:
        return str(error)
    return "measured"


def amount(device: CudaDevice, traffic: str, chunks: int) -> dict[str, float]:
    """Move a number of chunks, or for as long as the block lasts."""
    kind = traffic_of(traffic)
    limit = {"amount_mb": chunks * kind.chunk_bytes / 1e6} if chunks else {}
    return device.time(BLOCK | {"traffic": kind.described(), **limit})


def main() -> None:
    """Print it."""
    layered = CudaDevice(0, Task.of("tasks:layer", KERNELS))
    load = layered.load("layer")
    block = BLOCK | {"kernel": "layer", "launches": load.launches, "traffic": traffic_of("loader:2").described()}
    measured = measure_gpu(task="tasks:layer", traffics=["h2d", "loader:2"], max_seconds=5.0, device=layered)
    print(
        json.dumps(
            {
                "said": {name: said(name) for name in ("waits", "elsewhere", "fails")},
                "load": vars(load),
                "call": vars(layered.call),
                "task": layered.time(block),
                "amount": {name: amount(layered, name, CHUNKS) for name in MOVED},
                "moved": {name: amount(layered, name, 0) for name in MOVED},
                "step": layered.time(BLOCK | {"kernel": "step", "rounds": 2, "launches": 3, "traffic": None}),
                "pairs": measured.header["pairs"],
                "phases": sorted(set(measured.columns()["phase"])),
            }
        )
    )


main()
