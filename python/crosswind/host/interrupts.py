"""What the kernel counts per CPU: interrupts by name, and time that the hypervisor gave to others."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypedDict

from crosswind.host.tree import ROOT, cpu_ticks, text


class Counted(TypedDict):
    """What was counted in a time, by CPU."""

    interrupts: dict[str, dict[str, int]]
    steal_s: dict[str, float]


@dataclass(frozen=True)
class Counts:
    """Counters at one moment.

    Attributes
    ----------
    interrupts : dict
        CPU -> name -> how many since the machine started.
    steal_s : dict
        CPU -> seconds since the machine started in which the hypervisor ran others.
    """

    interrupts: dict[int, dict[str, int]]
    steal_s: dict[int, float]

    @classmethod
    def take(cls, root: Path = ROOT) -> Counts:
        """Read the counters; those that cannot be read are missing."""
        return cls(_interrupts(root), _steal(root))

    def since(self, before: Counts, cpus: Sequence[int]) -> Counted:
        """Return what was counted since, on these CPUs.

        Returns
        -------
        dict
            `interrupts`: CPU as text -> name -> number, the most frequent first, without those that did not come;
            `steal_s`: CPU as text -> seconds.
        """
        counted = {}
        for cpu in cpus:
            earlier = before.interrupts.get(cpu, {})
            grown = {name: now - earlier.get(name, 0) for name, now in self.interrupts.get(cpu, {}).items()}
            ordered = sorted(grown.items(), key=lambda item: -item[1])
            counted[str(cpu)] = {name: number for name, number in ordered if number > 0}
        steal = {str(c): max(self.steal_s[c] - before.steal_s.get(c, 0.0), 0.0) for c in cpus if c in self.steal_s}
        return {"interrupts": counted, "steal_s": steal}


def _interrupts(root: Path) -> dict[int, dict[str, int]]:
    lines = (text(root, "proc/interrupts") or "").splitlines()
    if not lines:
        return {}
    numbers = [word.removeprefix("CPU") for word in lines[0].split()]
    if not all(number.isdecimal() for number in numbers):
        return {}
    cpus = [int(number) for number in numbers]
    found: dict[int, dict[str, int]] = {cpu: {} for cpu in cpus}
    for line in lines[1:]:
        number, _, rest = line.partition(":")
        words = rest.split()
        counts = words[: len(cpus)]
        if len(counts) < len(cpus) or not all(word.isdigit() for word in counts):
            continue  # the sums over all CPUs
        described = words[len(cpus) :]
        # A line with a number names its chip, its trigger and then its device; one with a word describes itself.
        name = (described[-1] if described else number) if number.strip().isdigit() else " ".join(described)
        for cpu, count in zip(cpus, counts, strict=True):
            found[cpu][name or number.strip()] = found[cpu].get(name, 0) + int(count)
    return found


def _steal(root: Path) -> dict[int, float]:
    per_s = os.sysconf("SC_CLK_TCK")
    return {int(name[3:]): ticks[7] / per_s for name, ticks in cpu_ticks(root).items() if name != "cpu" and ticks[7:]}
