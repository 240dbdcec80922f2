"""What the text leaves open, and what stands in its place: named, shown in the study.

The text gives run times, not what they are made of. Times of a ping alone (table 1) give the network and the ping's
start; four more constants are each calibrated on one printed number, named here, and tried on all the others.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from crosswind.documents import Document

Form = Literal["quick", "full"]
MIB = 2**20


@dataclass(frozen=True)
class Calibration:
    """Every constant of the study that the text does not give.

    Attributes
    ----------
    form : str
        quick or full.
    repetitions, variant_repetitions : int
        Runs of each cell, whose processes start at other times, and of each cell of what the paper has not. The paper
        has 3; simulated, three runs of one cell differ by as much as a tenth.
    scheduler : str
        Of the nodes: decay is that of Linux in 2001.
    mb_per_s, latency_s, message_cpu_s : float
        Of the network.
    start_s, start_cpu_s : float
        A ping's start: in all, and of it processor time.
    start_steps : int
        In how many steps, each with a wait.
    buffer_s_per_mb, buffer_cpu_s_per_mb : float
        Preparing the buffer: in all, and of it processor time.
    linger_s : float
        For how long a wait for an event keeps the processor from worse processes.
    """

    form: Form
    repetitions: int = 25
    variant_repetitions: int = 3
    seed: int = 1
    scheduler: str = "decay"
    cpus: int = 2
    burners: int = 2
    burn_s: float = 63.1
    start_spread_s: float = 0.5
    mb_per_s: float = 341.3
    latency_s: float = 5e-6
    message_cpu_s: float = 5e-6
    wake_s: float = 10e-6
    switch_s: float = 5e-6
    start_s: float = 2.3
    start_cpu_s: float = 0.2
    start_steps: int = 545
    buffer_s_per_mb: float = 0.079
    buffer_cpu_s_per_mb: float = 0.024
    linger_s: float = 0.007
    slice_s: float = 0.0005
    exchange_s: float = 20e-6

    def asked(self, scheduler: str, linger_s: float, cells: list[Document]) -> Document:
        """Return what `engine.simulate_overlap` simulates."""
        return {
            "scheduler": scheduler,
            "cpus": self.cpus,
            "burners": self.burners,
            "burn_s": self.burn_s,
            "start_spread_s": self.start_spread_s,
            "seed": self.seed,
            "repetitions": self.repetitions,
            "cells": cells,
            "network": {
                "mb_per_s": self.mb_per_s,
                "latency_s": self.latency_s,
                "message_cpu_s": self.message_cpu_s,
            },
            "costs": {
                "switch_s": self.switch_s,
                "wake_s": self.wake_s,
                "linger_s": linger_s,
                "start_steps": self.start_steps,
                "start_cpu_s": self.start_cpu_s,
                "start_wait_s": self.start_s - self.start_cpu_s,
                "prepare_steps_per_mb": self.buffer_s_per_mb * self.start_steps / self.start_s,
                "prepare_cpu_s_per_mb": self.buffer_cpu_s_per_mb,
                "prepare_wait_s_per_mb": self.buffer_s_per_mb - self.buffer_cpu_s_per_mb,
                "slice_s": self.slice_s,
                "exchange_s": self.exchange_s,
            },
        }

    def table(self) -> list[tuple[str, str, str]]:
        """Return name, value and whence of each constant."""
        return [
            ("nodes", f"2, of {self.cpus} processors and {self.burners} burners each", "the text"),
            ("burners alone", f"{self.burn_s:g} s", "the text"),
            ("runs of each cell", f"{self.repetitions}, started within {self.start_spread_s:g} s", "the text: 3"),
            ("1m, 64m", "1 MiB, 64 MiB", "taken"),
            ("scheduler", self.scheduler, "Linux 2.4, of 2001: the text names Linux and no version"),
            ("rate", f"{self.mb_per_s:g} MB/s", "table 1: (41.7 - 2.4) s for 6400 round trips of 1 MiB"),
            ("latency", f"{1e6 * self.latency_s:g} us", "published of the QsNet; without effect here"),
            ("processor time of a message", f"{1e6 * self.message_cpu_s:g} us", "taken; the text: hardly any"),
            ("waking, switching", f"{1e6 * self.wake_s:g} us, {1e6 * self.switch_s:g} us", "taken"),
            ("start of a ping", f"{self.start_s:g} s", "table 1: 2.4 s for one message of 1 MiB"),
            ("processor time of it", f"{self.start_cpu_s:g} s", "table 2: one message costs the burners 0.1 s on 2"),
            (
                "steps of it",
                f"{self.start_steps}",
                "table 3: 60 s for one message of 1 MiB beside burners at -20 (mean of 25 runs)",
            ),
            ("preparing a buffer", f"{self.buffer_s_per_mb:g} s/MB", "table 1: 8 s for one message of 64 MiB"),
            (
                "processor time of it",
                f"{self.buffer_cpu_s_per_mb:g} s/MB",
                "table 2: burners beside one message of 64 MiB end at 64.1 s (mean of 25 runs)",
            ),
            (
                "lingering",
                f"{1000 * self.linger_s:g} ms, or 0",
                "table 3: burners at +20 end at 82.7 s, as if the ping held a processor in all its round trips of "
                "6.1 ms; two readings",
            ),
            (
                "slices of buffered coscheduling",
                f"{1000 * self.slice_s:g} ms, exchange {1e6 * self.exchange_s:g} us",
                "taken; the paper has built none",
            ),
        ]


QUICK = Calibration("quick")
FULL = Calibration("full", repetitions=100, variant_repetitions=25)


def of(form: Form) -> Calibration:
    """Return the calibration of a form."""
    return FULL if form == "full" else QUICK
