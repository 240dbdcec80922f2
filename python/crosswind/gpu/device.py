"""What a session needs of a GPU, and the real one. Tests use a scripted one in its place."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final, Protocol

from crosswind import _core
from crosswind.errors import DescriptionError

MIB: Final = 1 << 20
KERNELS: Final = ("tensor", "fma", "triad", "mixed16", "mixed64", "chase")


@dataclass(frozen=True)
class Traffic:
    """One kind of traffic beside a kernel.

    Attributes
    ----------
    name : str
        On the command line and in files.
    path : str
        `host-to-device`, `device-to-host`, `both` (each at the asked rate) or `device-to-device`.
    blocks : int
        Blocks of threads that copy; 0: the driver's copy, by a copy engine where the path has one.
    memory : str
        Of the host: `pinned` or `pageable`.
    chunk_bytes : int
        Moved at a time.
    """

    name: str
    path: str
    blocks: int = 0
    memory: str = "pinned"
    chunk_bytes: int = 2 * MIB

    def described(self) -> dict[str, Any]:
        """Return it as `_core.Gpu.time` takes it."""
        engine = {"multiprocessors": self.blocks} if self.blocks else "copy-engine"
        return {"path": self.path, "engine": engine, "memory": self.memory, "chunk_bytes": self.chunk_bytes}


TRAFFICS: Final = {
    traffic.name: traffic
    for traffic in (
        Traffic("h2d", "host-to-device"),
        Traffic("d2h", "device-to-host"),
        Traffic("both", "both"),
        Traffic("d2d", "device-to-device", chunk_bytes=32 * MIB),
        Traffic("h2d-sm", "host-to-device", blocks=16),
        Traffic("d2h-sm", "device-to-host", blocks=16),
        Traffic("d2d-sm", "device-to-device", blocks=16, chunk_bytes=16 * MIB),
        Traffic("h2d-pageable", "host-to-device", memory="pageable"),
        Traffic("d2h-pageable", "device-to-host", memory="pageable"),
    )
}
"""Every kind, by its name; `-sm`: moved by 16 blocks of threads instead of a copy engine."""


class Device(Protocol):
    """A GPU as a session uses it."""

    def about(self) -> dict[str, Any]:
        """Return what it is."""

    def condition(self) -> dict[str, Any]:
        """Return its clocks, power, temperature and throttling now; None where one is not known."""

    def rounds_for(self, kernel: str, seconds: float) -> int:
        """Return the rounds with which one launch of a kernel lasts about so long."""

    def time(self, block: dict[str, Any]) -> dict[str, float]:
        """Run one block: `dt_s`, `work`, `to_device_mb`, `to_host_mb`, `within_mb`, `moved_s`."""


class CudaDevice:
    """A device of the NVIDIA driver.

    Raises
    ------
    MeasurementError
        Without a driver, or one or a device that is too old, with code `no-gpu` or `gpu-too-old`.
    DescriptionError
        When the machine has fewer devices.
    """

    def __init__(self, index: int = 0) -> None:
        if index < 0:
            raise DescriptionError(f"gpu is {index}; it must be 0 or above", "no-gpu", "`nvidia-smi -L` lists them")
        self._gpu = _core.Gpu(index)

    def about(self) -> dict[str, Any]:
        """Return what it is."""
        found: dict[str, Any] = json.loads(self._gpu.about())
        return found

    def condition(self) -> dict[str, Any]:
        """Return its clocks, power, temperature and throttling now; None where one is not known."""
        found: dict[str, Any] = json.loads(self._gpu.condition())
        return found

    def rounds_for(self, kernel: str, seconds: float) -> int:
        """Return the rounds with which one launch of a kernel lasts about so long."""
        return self._gpu.rounds_for(kernel, seconds)

    def time(self, block: dict[str, Any]) -> dict[str, float]:
        """Run one block: `dt_s`, `work`, `to_device_mb`, `to_host_mb`, `within_mb`, `moved_s`."""
        return self._gpu.time(json.dumps(block))
