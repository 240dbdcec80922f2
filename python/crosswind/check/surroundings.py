"""What surrounds a check: what else uses the host meanwhile, which settings count, what a virtual machine hides."""

from __future__ import annotations

import resource
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from crosswind.host.activity import Snapshot
from crosswind.host.description import describe
from crosswind.host.processor import allowed_cpus, is_virtual
from crosswind.host.tree import ROOT, names, text

if TYPE_CHECKING:
    from crosswind.documents.check import Load
    from crosswind.documents.values import Host

BUSY_SHARE = 0.15
"""CPU time of others, part of all CPUs, from which on the host is called busy."""
STEAL_SHARE = 0.02
_WEAKNESSES = "sys/devices/system/cpu/vulnerabilities"
_TRIVIAL = ("load_average", "steal_share_since_boot", "lo.interrupt_delay_us")
HIDDEN = "a virtual machine hides the clock frequency, performance counters and neighbours in the shared cache"


@dataclass(frozen=True)
class Watch:
    """The counters at the start of a check."""

    before: Snapshot
    own_s: float

    @classmethod
    def begin(cls) -> Watch:
        """Read the counters now."""
        return cls(Snapshot.take(processes=False), _own_s())

    def load(self) -> Load:
        """Return the shares of all allowed CPUs (0 to 1) that others used and that the hypervisor took, until now."""
        activity, own = Snapshot.take(processes=False).since(self.before), _own_s() - self.own_s
        cpus = allowed_cpus()
        total = max(activity.seconds, 1e-9) * max(len(cpus), 1)
        busy = sum(activity.busy(cpu) for cpu in cpus) / max(len(cpus), 1)
        return {"others": round(max(0.0, busy - own / total), 4), "steal": round(activity.mean("steal", cpus), 4)}


def is_busy(load: Load) -> bool:
    """Whether others use so much that lost time says nothing about the node.

    Examples
    --------
    >>> is_busy({"others": 0.05, "steal": 0.0}), is_busy({"others": 0.3, "steal": 0.0})
    (False, True)
    """
    return load["others"] >= BUSY_SHARE or load["steal"] >= STEAL_SHARE


def settings(root: Path = ROOT) -> Host:
    """Describe this host, with the kernel's mitigations among its settings."""
    described = describe((), root=root)
    found = {f"mitigation {name}": text(root, f"{_WEAKNESSES}/{name}") for name in names(root, _WEAKNESSES)}
    described["settings"] |= {name: value.strip() for name, value in found.items() if value}
    return cast("Host", described)


def changes(then: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Return the settings that differ between two descriptions of hosts, each as `name: then -> now`."""
    was, is_now = (
        {name: of.get(name) for name in ("name", "cpu", "cpus", "kernel")} | of["settings"] for of in (then, now)
    )
    differing = [name for name in was | is_now if name not in _TRIVIAL and was.get(name) != is_now.get(name)]
    return [f"{name}: {was.get(name)} -> {is_now.get(name)}" for name in differing]


def hidden(root: Path = ROOT) -> str | None:
    """Say what cannot be seen on this host; None on bare metal."""
    return HIDDEN if is_virtual(root) else None


def _own_s() -> float:
    """CPU time of this process and of its children that ended, s."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(each.ru_utime + each.ru_stime for each in used)
