"""A GPU that keeps to a law, in place of a real one: what a session and a fit are held against."""

from __future__ import annotations

import math
from collections.abc import Callable
from random import Random
from typing import Any

from crosswind.gpu.device import KERNELS, Load

# MB/s of each path without a limit.
RATES = {"host-to-device": 48_000.0, "device-to-host": 49_000.0, "device-to-device": 1_200_000.0}
OF_PATH = {"host-to-device": "to_device_mb", "device-to-host": "to_host_mb", "device-to-device": "within_mb"}
Law = Callable[[str, float], float]


def straight(kernel: str, mb_per_s: float) -> float:
    """Part of a kernel's rate that is lost at a rate of traffic, all directions together."""
    return {"triad": 4e-7, "chase": 1e-6}.get(kernel, 0.0) * mb_per_s


class ScriptedGpu:
    """Loses by a law, slows traffic by a fixed part beside a kernel, with noise and drift; its clock is its own."""

    def __init__(self, law: Law = straight, *, noise: float = 0.001, slowed: float = 0.3, seed: int = 0) -> None:
        self.law, self.noise, self.slowed = law, noise, slowed
        self.random = Random(seed)
        self.now_s = 0.0
        self.throttle = 0
        self.blocks: list[dict[str, Any]] = []
        self.interrupt_after: int | None = None

    def clock(self) -> float:
        """Return the time that blocks have taken."""
        return self.now_s

    def about(self) -> dict[str, Any]:
        """Return what it is."""
        return {"name": "Scripted", "uuid": "GPU-0", "capability": "9.0", "multiprocessors": 132}

    def condition(self) -> dict[str, Any]:
        """Return a steady clock, and throttling if a test says so."""
        steady = {"sm_mhz": 1980, "memory_mhz": 2600, "power_w": 300.0, "celsius": None, "state": 0}
        return steady | {"throttle": self.throttle}

    def load(self, kernel: str) -> Load:
        """Return 40 launches of 500 rounds of a microsecond, or 4 calls of 5,000."""
        return Load(5000, 4, 0.02) if kernel not in KERNELS else Load(500, 40, 0.02)

    def time(self, block: dict[str, Any]) -> dict[str, float]:
        """Return what the law says, by the noise off."""
        if self.interrupt_after is not None and len(self.blocks) >= self.interrupt_after:
            raise KeyboardInterrupt
        self.blocks.append(block)
        found = dict.fromkeys(("dt_s", "work", "moved_s", *OF_PATH.values()), 0.0)
        rates: dict[str, float] = {}
        if block["traffic"]:
            path = block["traffic"]["path"]
            for one in ("host-to-device", "device-to-host") if path == "both" else (path,):
                most = RATES[one] * (1.0 - (self.slowed if block["kernel"] else 0.0))
                engine = block["traffic"]["engine"]
                if isinstance(engine, dict):  # each block or thread adds its own rate
                    most = min(most, 2500.0 * engine.get("multiprocessors", 0) + 6000.0 * engine.get("loader", 0))
                rates[one] = min(block["mb_per_s"] or most, most)
        seconds = block["seconds"]
        if block["kernel"]:
            drift = 1.0 + 0.02 * (self.now_s % 60.0) / 60.0
            lost = self.law(block["kernel"], sum(rates.values()))
            found["work"] = float(block["rounds"] * block["launches"])
            seconds = found["work"] * 1e-6 * drift / (1.0 - lost) * (1.0 + self.noise * self.random.gauss(0, 1))
        found["dt_s"] = seconds
        for one, rate in rates.items():
            amount = block.get("amount_mb")
            found[OF_PATH[one]] = min(rate * seconds, math.inf if amount is None else amount)
            found["moved_s"] = seconds if amount is None else amount / max(rate, 1e-9)
        self.now_s += seconds + block["settle_s"]
        return found
