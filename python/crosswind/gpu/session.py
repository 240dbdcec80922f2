"""Which block comes when: every pair of kernel and traffic gets shuffled cycles of short blocks.

A cycle holds two idle blocks, the paced levels, the traffic without a limit, the same traffic without the kernel, and
one step (a fixed amount of bytes, begun with the kernel), in random order: slow drift (clocks, temperature) cancels
within a cycle, and cycles are what intervals exchange. A block is a fixed amount of work, timed between two events of
the device. The pairs take turns, a few cycles each, so that all of them see the same drift.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from random import Random
from typing import Final

from crosswind.documents import Row
from crosswind.errors import DescriptionError
from crosswind.gpu.device import KERNELS, Device, Load, Traffic, traffic_of

LEVELS: Final = (0.0, 0.0, 0.25, 0.5, 0.75, 1.0)
PART_OF_UNPACED: Final = 0.9
SETTLE_S: Final = 0.002
WARM_UP_S: Final = 1.0
CALIBRATION_BLOCKS: Final = 3
CYCLES_A_TURN: Final = 4
STEPS: Final = (0.5, 1.0, 1.5)
"""Bytes of a step, in the time that they take beside the kernel, as parts of the kernel's own; one a cycle, in turn."""

Progress = Callable[[float, str], object]


def checked(kernels: Sequence[str], traffics: Sequence[str], task: str | None = None) -> list[Traffic]:
    """Return the traffics of these names, once every name is known and none stands twice.

    Raises
    ------
    DescriptionError
        Naming the first name that is not known, or all where one stands twice or none is given.
    """
    known = (*KERNELS, *([task] if task else []))
    for one in kernels:
        if one not in known:
            raise DescriptionError(f'kernel is "{one}"; it must be one of {", ".join(known)}', "kernel")
    found = [traffic_of(one) for one in traffics]
    for name, given in (("kernel", list(kernels)), ("traffic", [one.name for one in found])):
        if not given or len(set(given)) < len(given):
            raise DescriptionError(f"{name} is {given}; it must name at least one, each once", name)
    return found


@dataclass
class Pair:
    """One kernel beside one kind of traffic, and what has been found out of it.

    Attributes
    ----------
    kernel : str
        Its name.
    traffic : Traffic
        The traffic.
    load : Load
        The kernel's part of a block.
    alone_mb_per_s, beside_mb_per_s, top_mb_per_s : float
        The traffic's rate without a limit, alone and beside the kernel, and the top of the paced levels, MB/s for each
        direction.
    cycles : int
        How many were run.
    """

    kernel: str
    traffic: Traffic
    load: Load
    alone_mb_per_s: float = math.nan
    beside_mb_per_s: float = math.nan
    top_mb_per_s: float = math.nan
    cycles: int = 0


@dataclass
class Session:
    """Measures pairs on a device until the time is up.

    Attributes
    ----------
    device : Device
        The GPU.
    kernels, traffics : sequence of str
        Names of `KERNELS` and of traffic (`traffic_of`).
    max_seconds : float
        For all pairs together.
    seed : int
        Of the order of blocks.
    progress : callable, optional
        Takes the part that is done and a message.
    clock : callable
        Seconds; tests put their own here.
    task : str, optional
        Name of the user's own kernel, where the device has one.
    """

    device: Device
    kernels: Sequence[str]
    traffics: Sequence[str]
    max_seconds: float
    seed: int = 0
    progress: Progress | None = None
    clock: Callable[[], float] = time.monotonic
    task: str | None = None
    rows: list[Row] = field(default_factory=list)
    pairs: list[Pair] = field(default_factory=list)
    ended: str = "interrupted"
    elapsed_s: float = 0.0

    def __post_init__(self) -> None:
        self._traffics = checked(self.kernels, self.traffics, self.task)
        self._random = Random(self.seed)

    def run(self) -> None:
        """Measure until the time is up, or until interrupted: `ended` says which."""
        self._began = self.clock()
        try:
            self._prepare()
            while self._left_s() > 0:
                for pair in self.pairs:
                    if not self._turn(pair):
                        break
            self.ended = "time-limit"
        except KeyboardInterrupt:
            self.ended = "interrupted"
        finally:
            self.elapsed_s = self.clock() - self._began

    def _left_s(self) -> float:
        return self.max_seconds - (self.clock() - self._began)

    def _tell(self, message: str) -> None:
        if self.progress:
            self.progress(min(1.0 - self._left_s() / self.max_seconds, 1.0), message)

    def _prepare(self) -> None:
        for kernel in self.kernels:
            self._tell(f"warming up {kernel}")
            load = self.device.load(kernel)
            until = self.clock() + min(WARM_UP_S, self.max_seconds / (10 * len(self.kernels)))
            while self.clock() < until:
                self.device.time(self._block(kernel, load, None, None))
            # Clocks have settled now: the same work again, at the rate that blocks will see.
            load = self.device.load(kernel)
            self.pairs += [Pair(kernel, traffic, load) for traffic in self._traffics]
        for pair in self.pairs:
            self._tell(f"finding the rate of {pair.traffic.name} beside {pair.kernel}")
            pair.alone_mb_per_s = self._unpaced(pair, beside=False)
            pair.beside_mb_per_s = self._unpaced(pair, beside=True)
            wanted = PART_OF_UNPACED * min(pair.alone_mb_per_s, pair.beside_mb_per_s)
            pair.top_mb_per_s = float(f"{wanted:.2g}") if wanted >= 1.0 else math.nan

    def _unpaced(self, pair: Pair, *, beside: bool) -> float:
        rates: list[float] = []
        for _ in range(CALIBRATION_BLOCKS):
            row = self._timed(pair, None, "calibrate", -1, beside=beside)
            directions = 2 if pair.traffic.path == "both" else 1
            rates.append((row["to_device_mb"] + row["to_host_mb"] + row["within_mb"]) / row["dt_s"] / directions)
        return sorted(rates)[len(rates) // 2]

    def _turn(self, pair: Pair) -> bool:
        """Run some cycles of a pair; False when the time is up."""
        for _ in range(CYCLES_A_TURN):
            if self._left_s() <= 0:
                return False
            self._tell(f"{pair.traffic.name} beside {pair.kernel}")
            blocks: list[tuple[float | None, str]] = [(level, "level") for level in LEVELS]
            if math.isnan(pair.top_mb_per_s):
                blocks = [(0.0, "level"), (0.0, "level")]  # nothing moves beside this kernel
            blocks += [(None, "unpaced"), (None, "alone"), (None, "step")]
            self._random.shuffle(blocks)
            for level, phase in blocks:
                self._timed(pair, level, phase, pair.cycles, beside=phase != "alone")
            pair.cycles += 1
        return True

    def _timed(self, pair: Pair, level: float | None, phase: str, cycle: int, *, beside: bool) -> Row:
        asked = None if level is None else level * pair.top_mb_per_s if level else 0.0
        kernel = pair.kernel if beside else None
        block = self._block(kernel, pair.load, pair.traffic, asked)
        amount_mb = math.nan
        if phase == "step":
            amount_mb = STEPS[cycle % len(STEPS)] * block["seconds"] * pair.beside_mb_per_s
            block |= {"amount_mb": amount_mb, "settle_s": 0.0}
        found = self.device.time(block)
        row = {
            "t_s": self.clock() - self._began,
            "kernel": pair.kernel,
            "traffic": pair.traffic.name,
            "phase": phase,
            "cycle": cycle,
            "block": len(self.rows),
            "level": math.nan if level is None else level,
            "asked_mb_per_s": math.nan if asked is None else asked,
            "amount_mb": amount_mb,
            **found,
            **self.device.condition(),
        }
        self.rows.append(row)
        return row

    def _block(self, kernel: str | None, load: Load, traffic: Traffic | None, asked_mb_per_s: float | None) -> Row:
        """Return a block as the device takes it; a rate of 0 is no traffic."""
        moves = traffic is not None and asked_mb_per_s != 0.0
        return {
            "kernel": kernel,
            "rounds": load.rounds,
            "launches": load.launches,
            "traffic": traffic.described() if traffic is not None and moves else None,
            "mb_per_s": asked_mb_per_s if moves else None,
            "settle_s": SETTLE_S,
            "seconds": load.seconds,
        }
