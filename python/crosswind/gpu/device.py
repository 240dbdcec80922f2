"""What a session needs of a GPU, and the real one. Tests use a scripted one in its place."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol

from crosswind import _core
from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.gpu.task import Call, Task, examined

MIB: Final = 1 << 20
KERNELS: Final = ("tensor", "fma", "triad", "mixed16", "mixed64", "chase", "step")
LAUNCH_S: Final = 0.0005
LAUNCHES: Final = 40
MOST_CALLS: Final = 1000
SM_BLOCKS: Final = 16
LOADERS: Final = 4
MOST_SM_BLOCKS: Final = 132
MOST_LOADERS: Final = 8


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
    loaders : int
        Threads of the host that fill page-locked memory and have it copied, as a data loader has; 0: none.
    memory : str
        Of the host: `pinned` or `pageable`.
    chunk_bytes : int
        Moved at a time.
    """

    name: str
    path: str
    blocks: int = 0
    loaders: int = 0
    memory: str = "pinned"
    chunk_bytes: int = 2 * MIB

    @property
    def by(self) -> str:
        """What moves the bytes, in words."""
        if self.loaders:
            return f"{self.loaders} threads"
        return f"{self.blocks} blocks" if self.blocks else "copy engine"

    def described(self) -> dict[str, object]:
        """Return it as `_core.Gpu.time` takes it."""
        engine: Any = {"multiprocessors": self.blocks} if self.blocks else "copy-engine"
        if self.loaders:
            engine = {"loader": self.loaders}
        return {"path": self.path, "engine": engine, "memory": self.memory, "chunk_bytes": self.chunk_bytes}


TRAFFICS: Final = {
    traffic.name: traffic
    for traffic in (
        Traffic("h2d", "host-to-device"),
        Traffic("d2h", "device-to-host"),
        Traffic("both", "both"),
        Traffic("d2d", "device-to-device", chunk_bytes=32 * MIB),
        Traffic("h2d-sm", "host-to-device", blocks=SM_BLOCKS),
        Traffic("d2h-sm", "device-to-host", blocks=SM_BLOCKS),
        Traffic("d2d-sm", "device-to-device", blocks=SM_BLOCKS, chunk_bytes=16 * MIB),
        Traffic("h2d-pageable", "host-to-device", memory="pageable"),
        Traffic("d2h-pageable", "device-to-host", memory="pageable"),
        Traffic("loader", "host-to-device", loaders=LOADERS),
    )
}
"""Every kind, by its name; `-sm`: moved by 16 blocks of threads instead of a copy engine; `loader`: by 4 threads."""
_NUMBERED: Final = re.compile(r"([^:]*):([0-9]{1,4})")


def traffic_of(name: str) -> Traffic:
    """Return the traffic of a name, with a number of blocks or threads where one follows a colon.

    Raises
    ------
    DescriptionError
        When there is no such traffic, or the number is out of range.

    Examples
    --------
    >>> traffic_of("d2h-sm:4").blocks, traffic_of("loader:2").loaders, traffic_of("d2h-sm:16").name
    (4, 2, 'd2h-sm')
    """
    numbered = _NUMBERED.fullmatch(name)
    base = TRAFFICS.get(numbered[1] if numbered else name)
    if base is None or (numbered and not (base.blocks or base.loaders)):
        known = ", ".join(TRAFFICS)
        hint = f"d2h-sm:4 has 4 blocks instead of {SM_BLOCKS}, loader:2 has 2 threads instead of {LOADERS}"
        raise DescriptionError(f'traffic is "{name}"; it must be one of {known}', "traffic", hint)
    if not numbered:
        return base
    number, usual = int(numbered[2]), base.blocks or base.loaders
    most, what = (MOST_SM_BLOCKS, "blocks") if base.blocks else (MOST_LOADERS, "threads")
    if not 1 <= number <= most:
        message = f'traffic is "{name}"; the number of {what} must be 1 to {most}'
        raise DescriptionError(message, "traffic", f"without a number {base.name} has {usual} {what}")
    if number == usual:
        return base
    called = f"{base.name}:{number}"
    return replace(base, name=called, blocks=number) if base.blocks else replace(base, name=called, loaders=number)


def base_of(name: str) -> str:
    """Return the kind of traffic of a name, without its number of blocks or threads."""
    return name.partition(":")[0]


@dataclass(frozen=True)
class Load:
    """A kernel's part of a block: the same in every block of it.

    Attributes
    ----------
    rounds, launches : int
        Rounds of one launch, and launches.
    seconds : float
        About how long they take without traffic.
    """

    rounds: int
    launches: int
    seconds: float


class Device(Protocol):
    """A GPU as a session uses it."""

    def about(self) -> dict[str, object]:
        """Return what it is."""

    def condition(self) -> dict[str, float | None]:
        """Return its clocks, power, temperature and throttling now; None where one is not known."""

    def load(self, kernel: str) -> Load:
        """Return a kernel's part of a block, as long as a block is to be."""

    def time(self, block: Row) -> dict[str, float]:
        """Run one block: `dt_s`, `work`, `to_device_mb`, `to_host_mb`, `within_mb`, `moved_s`."""


class CudaDevice:
    """A device of the NVIDIA driver.

    Parameters
    ----------
    index : int
        Its number.
    task : Task, optional
        The user's own kernel; its name is a kernel of this device.

    Raises
    ------
    MeasurementError
        Without a driver, or one or a device that is too old, with code `no-gpu` or `gpu-too-old`.
    DescriptionError
        When the machine has fewer devices.
    """

    def __init__(self, index: int = 0, task: Task | None = None) -> None:
        if index < 0:
            raise DescriptionError(f"gpu is {index}; it must be 0 or above", "no-gpu", "`nvidia-smi -L` lists them")
        self._gpu = _core.Gpu(index)
        self._index, self._task = index, task
        self.call: Call | None = None

    def about(self) -> dict[str, object]:
        """Return what it is."""
        found: dict[str, object] = json.loads(self._gpu.about())
        return found

    def condition(self) -> dict[str, float | None]:
        """Return its clocks, power, temperature and throttling now; None where one is not known."""
        found: dict[str, float | None] = json.loads(self._gpu.condition())
        return found

    def load(self, kernel: str) -> Load:
        """Return a kernel's part of a block, as long as a block is to be."""
        if self._task is None or kernel != self._task.name:
            return Load(self._gpu.rounds_for(kernel, LAUNCH_S), LAUNCHES, LAUNCHES * LAUNCH_S)
        task = self._task
        if self.call is None:
            with task.told(), task.on_stream(self._gpu.stream(), self._index):
                self.call = examined(task.name, lambda calls, lead_s: self._gpu.ahead(task.enqueue, calls, lead_s))
        calls = min(max(math.ceil(LAUNCHES * LAUNCH_S / self.call.seconds), 1), MOST_CALLS)
        return Load(1, calls, calls * self.call.seconds)

    def time(self, block: Row) -> dict[str, float]:
        """Run one block: `dt_s`, `work`, `to_device_mb`, `to_host_mb`, `within_mb`, `moved_s`."""
        task = self._task
        if task is None or block["kernel"] != task.name:
            return self._gpu.time(json.dumps(block))
        with task.told(), task.on_stream(self._gpu.stream(), self._index):
            return self._gpu.time(json.dumps(block | {"kernel": None}), task.enqueue)
