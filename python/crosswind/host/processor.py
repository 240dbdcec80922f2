"""The processor and the scheduler of this host, as far as they move interference."""

from __future__ import annotations

import functools
import gzip
import math
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path

from crosswind.host.cgroup import cpu_quota
from crosswind.host.tree import ROOT, UNKNOWN, cpu_ticks, list_cpus, number, parse_cpus, text, told

_CPU = "sys/devices/system/cpu"
_SOME = 8  # more caches than this are counted, not listed


def online_cpus(root: Path = ROOT) -> list[int]:
    """Numbers of the CPUs that are online."""
    listed = text(root, f"{_CPU}/online")
    return parse_cpus(listed or "") or sorted(int(name[3:]) for name in cpu_ticks(root) if name != "cpu")


def allowed_cpus(root: Path = ROOT) -> list[int]:
    """Numbers of the CPUs that this process may run on (affinity and cpuset together)."""
    for line in (text(root, "proc/self/status") or "").splitlines():
        if line.startswith("Cpus_allowed_list:"):
            return parse_cpus(line.partition(":")[2]) or online_cpus(root)
    return online_cpus(root)


def model(root: Path = ROOT) -> str:
    """Return the processor's model, e.g. "AMD EPYC"; on ARM implementer and part, where the kernel gives no name.

    Where `/proc/cpuinfo` has neither, the board's name by the firmware.
    """
    facts: dict[str, str] = {}
    for line in (text(root, "proc/cpuinfo") or "").splitlines():
        key, _, value = line.partition(":")
        facts.setdefault(key.strip(), value.strip())
    if "model name" in facts:
        return facts["model name"]
    arm = [facts[key] for key in ("CPU implementer", "CPU part") if key in facts]
    if len(arm) == 2:
        return "ARM implementer {} part {}".format(*arm)
    named = facts.get("cpu") or (text(root, "proc/device-tree/model") or "").strip("\0 ")
    return " ".join(named.split()) or UNKNOWN


def is_virtual(root: Path = ROOT) -> bool:
    """Whether the kernel says that it runs in a virtual machine."""
    return virtualisation(root).split(",")[0] not in ("none", UNKNOWN)


def virtualisation(root: Path = ROOT) -> str:
    """Return the hypervisor ("kvm", ...; "yes" when only its presence is known) or "none"; ", container" inside one."""
    flags = next((line for line in (text(root, "proc/cpuinfo") or "").splitlines() if line.startswith("flags")), "")
    clocks = (text(root, "sys/devices/system/clocksource/clocksource0/available_clocksource") or "").split()
    vendor = f"{told(root, 'sys/class/dmi/id/sys_vendor')} {told(root, 'sys/class/dmi/id/product_name')}".lower()
    tree = [(text(root, f"proc/device-tree/{name}") or "").lower() for name in ("hypervisor/compatible", "compatible")]
    if (kind := text(root, "sys/hypervisor/type")) is not None:
        machine = kind
    elif "kvm-clock" in clocks:
        machine = "kvm"
    elif "hyperv_clocksource_tsc_page" in clocks:
        machine = "hyper-v"
    elif "hypervisor" in flags.split():
        machine = next((name for word, name in _BY_VENDOR.items() if word in vendor), "yes")
    elif not flags and (known := _of_firmware(tree, vendor)):
        machine = known
    else:
        machine = "none" if flags else UNKNOWN
    inside = any((root / mark).exists() for mark in (".dockerenv", "run/.containerenv", "run/systemd/container"))
    return machine + (", container" if inside else "")


_BY_VENDOR = {
    "kvm": "kvm",
    "qemu": "kvm",
    "amazon ec2": "kvm",
    "google compute": "kvm",
    "google": "kvm",
    "apple virtualization": "apple",
    "vmware": "vmware",
    "microsoft": "hyper-v",
    "xen": "xen",
    "openstack": "kvm",
    "parallels": "parallels",
}


def _of_firmware(tree: Sequence[str], vendor: str) -> str | None:
    """Return the hypervisor by device tree or DMI, for processors without a flag for it (ARM); None: not known.

    An instance on bare metal has the cloud's vendor and a product that ends in `.metal`.
    """
    hypervisor, compatible = tree
    for word, name in (("xen", "xen"), ("kvm", "kvm"), ("vmware", "vmware")):
        if word in hypervisor:
            return name
    if hypervisor:
        return "yes"
    if "dummy-virt" in compatible or "qemu" in compatible:
        return "kvm"
    if ".metal" in vendor:
        return "none"
    return next((name for word, name in _BY_VENDOR.items() if word in vendor and word != "microsoft"), None)


def _of_all(found: Sequence[str]) -> str:
    """One value when all agree, all different ones otherwise."""
    return ", ".join(dict.fromkeys(found)) or UNKNOWN


def governor(cpus: Sequence[int], root: Path = ROOT) -> str:
    """Return the frequency governor of `cpus`; "none" where no frequency is scaled (most virtual machines)."""
    policies = [text(root, f"{_CPU}/cpu{cpu}/cpufreq/scaling_governor") for cpu in cpus]
    if not any(policies) and (root / _CPU).is_dir():
        return "none (frequency is not visible)"
    return _of_all([policy or UNKNOWN for policy in policies])


def frequency_driver(cpus: Sequence[int], root: Path = ROOT) -> str:
    """Return the frequency driver of `cpus`, "none" as for the governor."""
    drivers = [text(root, f"{_CPU}/cpu{cpu}/cpufreq/scaling_driver") for cpu in cpus]
    if not any(drivers):
        return "none" if (root / _CPU).is_dir() else UNKNOWN
    return _of_all([driver or UNKNOWN for driver in drivers])


def siblings(cpu: int, root: Path = ROOT) -> list[int]:
    """Return the CPUs that share a core with `cpu`, itself included, as far as the kernel knows."""
    listed = text(root, f"{_CPU}/cpu{cpu}/topology/thread_siblings_list")
    return parse_cpus(listed or "") or [cpu]


def smt(cpus: Sequence[int], root: Path = ROOT) -> str:
    """Threads per core of `cpus`; in a guest with the remark that the truth may be hidden from it."""
    if not any((root / f"{_CPU}/cpu{cpu}/topology").is_dir() for cpu in cpus):
        return UNKNOWN
    threads = max((len(siblings(cpu, root)) for cpu in cpus), default=1)
    seen = f"{threads} thread{'s' if threads > 1 else ''} per core"
    return seen + (" (a guest may not see the true topology)" if is_virtual(root) else "")


def cache(level: int, cpus: Sequence[int], root: Path = ROOT) -> str:
    """Size of the unified or data cache of a level and which CPUs share it, e.g. "1024K shared by 0 | 1"."""
    found: dict[str, str] = {}
    for cpu in cpus:
        for index in range(8):
            at = f"{_CPU}/cpu{cpu}/cache/index{index}"
            if number(root, f"{at}/level") == level and text(root, f"{at}/type") != "Instruction":
                found.setdefault(told(root, f"{at}/shared_cpu_list"), told(root, f"{at}/size"))
    if not found:
        return UNKNOWN
    sharers = " | ".join(found) if len(found) <= _SOME else f"{len(found)} groups of CPUs"
    return f"{_of_all(list(found.values()))} shared by {sharers}"


@functools.cache
def kernel_config(root: Path = ROOT) -> Mapping[str, str]:
    """Options that the kernel was built with (`/proc/config.gz`, `/boot/config-RELEASE`), or nothing."""
    try:
        listed = gzip.decompress((root / "proc/config.gz").read_bytes()).decode(errors="replace")
    except (OSError, EOFError, zlib.error):  # absent, or cut off
        listed = text(root, f"boot/config-{told(root, 'proc/sys/kernel/osrelease')}") or ""
    pairs = (line.partition("=") for line in listed.splitlines() if line.startswith("CONFIG_"))
    return {key: value.strip('"') for key, _, value in pairs}


def preemption(root: Path = ROOT) -> str:
    """Return the kernel's preemption model: "none", "voluntary", "lazy", "full" or "rt".

    What was set since the boot counts first (debugfs, root only), then the boot's command line, then the build.
    "dynamic" is said where the build's choice can be changed but no change could be seen.
    """
    chosen = text(root, "sys/kernel/debug/sched/preempt") or ""
    if "(" in chosen:
        return chosen.partition("(")[2].partition(")")[0]
    for word in (text(root, "proc/cmdline") or "").split():
        if word.startswith("preempt="):
            return word.partition("=")[2]
    config = kernel_config(root)
    built = {"_RT": "rt", "_LAZY": "lazy", "": "full", "_VOLUNTARY": "voluntary", "_NONE": "none"}
    model = next((name for option, name in built.items() if config.get(f"CONFIG_PREEMPT{option}") == "y"), None)
    version = told(root, "proc/sys/kernel/version")
    dynamic = " (dynamic)" if "PREEMPT_DYNAMIC" in version else ""
    if model:
        return model + dynamic
    return "rt" if "PREEMPT_RT" in version else f"{UNKNOWN}{dynamic}"


def accounting(root: Path = ROOT) -> str:
    """How the kernel counts CPU time: "tick" (sampled at HZ) or "precise"; whether interrupts are timed."""
    config = kernel_config(root)
    if not config:
        return UNKNOWN
    how = "tick" if config.get("CONFIG_TICK_CPU_ACCOUNTING") == "y" else "precise"
    return how + (", interrupts timed" if config.get("CONFIG_IRQ_TIME_ACCOUNTING") == "y" else ", interrupts not timed")


def _chosen(bracketed: str) -> str:
    """Return the bracketed word of a list such as `always [madvise] never`."""
    return bracketed.partition("[")[2].partition("]")[0] or bracketed


def huge_pages(root: Path = ROOT) -> str:
    """When the kernel makes huge pages of memory: "always", "madvise" (where a program asks for them) or "never"."""
    return _chosen(told(root, "sys/kernel/mm/transparent_hugepage/enabled"))


def autogroup(root: Path = ROOT) -> str:
    """Whether autogroup is "on": nice levels then count only inside a session."""
    enabled = number(root, "proc/sys/kernel/sched_autogroup_enabled")
    return UNKNOWN if enabled is None else "on" if enabled else "off"


def _empty_is_none(listed: str | None) -> str:
    """Return "none" for an empty list of the kernel."""
    return UNKNOWN if listed is None else listed or "none"


def steal_share(cpus: Sequence[int] = (), root: Path = ROOT) -> float | None:
    """Share of the time since the boot that the hypervisor gave to others, 0..1; of all CPUs when `cpus` is empty."""
    wanted = {f"cpu{cpu}" for cpu in cpus} or {"cpu"}
    stolen = total = 0
    for name, ticks in cpu_ticks(root).items():
        if name in wanted and len(ticks) >= 8:
            stolen += ticks[7]
            total += sum(ticks[:8])  # guest time is inside user time already
    return stolen / total if total else None


def settings(compute_cpus: Sequence[int] = (), root: Path = ROOT) -> dict[str, str]:
    """Everything above by name, for the header of a measurement; of the allowed CPUs when `compute_cpus` is empty."""
    allowed = allowed_cpus(root)
    cpus = list(compute_cpus) or allowed
    quota = cpu_quota(root)
    stolen = steal_share(cpus, root)
    config = kernel_config(root)
    return {
        "cpus_allowed": list_cpus(allowed) or UNKNOWN,
        "cpus_isolated": _empty_is_none(text(root, f"{_CPU}/isolated")),
        "cpu_quota": UNKNOWN if quota is None else "none" if math.isinf(quota.cpus) else f"{quota.cpus:g} CPUs",
        "governor": governor(cpus, root),
        "frequency_driver": frequency_driver(cpus, root),
        "smt": smt(cpus, root),
        "numa_nodes": told(root, "sys/devices/system/node/online"),
        "cache_l2": cache(2, cpus, root),
        "cache_l3": cache(3, cpus, root),
        "autogroup": autogroup(root),
        "preemption": preemption(root),
        "hz": config.get("CONFIG_HZ", UNKNOWN),
        "time_accounting": accounting(root),
        "clock_source": told(root, "sys/devices/system/clocksource/clocksource0/current_clocksource"),
        "virtualisation": virtualisation(root),
        "huge_pages": huge_pages(root),
        "load_average": " ".join(told(root, "proc/loadavg").split()[:3]),
        "steal_share_since_boot": UNKNOWN if stolen is None else f"{stolen:.4f}",
    }
