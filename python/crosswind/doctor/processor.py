"""Whether the processor is free for the measurement, keeps its speed, and has its time counted as it is."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from crosswind.doctor.finding import Finding, Level
from crosswind.host import cgroup, processor
from crosswind.host.activity import Activity
from crosswind.host.tree import ROOT, UNKNOWN, list_cpus, number, text, told

# CPUs' worth of other people's work, machine-wide. A prototype's runs that agreed with each other had at most 0.24;
# with about 1 the estimator per wall time found no slope at all (docs/concepts/measuring.md).
QUIET_CPUS = 0.25
# Below this the counters' own granularity (1 tick of 10 ms in 1 s on 2 CPUs) is most of what is seen.
SILENT_CPUS = 0.05
STEAL_SHARE = 0.01
SOFTIRQ_SHARE = 0.05
NAMED = 5  # busy processes that are named
_CPU = "sys/devices/system/cpu"
# Clocks that are read without a system call: reading them costs nanoseconds, and they do not drift between CPUs.
_FAST_CLOCKS = ("tsc", "kvm-clock", "hyperv_clocksource_tsc_page", "arch_sys_counter")


def enough_cpus(root: Path = ROOT) -> Finding:
    """Whether computation, sampler and peer can have a CPU each."""
    allowed, online = processor.allowed_cpus(root), processor.online_cpus(root)
    seen = f"{len(allowed)} of {len(online)} CPUs may be used ({list_cpus(allowed)})"
    if len(allowed) < 2:
        hint = "run where 2 or more CPUs are allowed: `taskset -c 0-1 crosswind ...`, docker `--cpuset-cpus 0-1`"
        return Finding("cpus", "problem", f"{seen}: sampler and peer will compute on the measured CPU", hint)
    if len(allowed) < 3:
        there = "`crosswind serve --listen HOST:7117 --token-file FILE` there"
        hint = f"measure against another machine: {there}, `--peer HOST:7117` here"
        seen += ": a peer on this machine shares the second CPU with the sampler and, on other-core, with the traffic"
        return Finding("cpus", "note", seen, hint)
    return Finding("cpus", "ok", seen)


def quota(root: Path = ROOT) -> Finding:
    """Whether a control group takes CPU time away."""
    found = cgroup.cpu_quota(root)
    if found is None:
        return Finding("cpu-quota", "note", "whether a CPU quota holds is not known: no control group is visible")
    if math.isinf(found.cpus):
        return Finding("cpu-quota", "ok", "no CPU quota")
    stopped = cgroup.throttled(root)
    seen = f"a quota of {found.cpus:g} CPUs holds ({found.group})"
    seen += f"; it has stopped this group {stopped} times" if stopped else ""
    file, value = ("cpu.max", "max") if (found.group / "cpu.max").exists() else ("cpu.cfs_quota_us", "-1")
    hint = f"`echo {value} | sudo tee {found.group / file}`, or start the container without `--cpus`"
    if found.cpus >= len(processor.allowed_cpus(root)):
        return Finding("cpu-quota", "note", f"{seen}, no less than the allowed CPUs", hint)
    seen += ": traffic on another core takes its time from the computation"
    return Finding("cpu-quota", "warning", seen, hint)


def frequency(root: Path = ROOT) -> list[Finding]:
    """Whether the processor keeps its speed."""
    cpus = processor.allowed_cpus(root)
    governor = processor.governor(cpus, root)
    driver = processor.frequency_driver(cpus, root)
    if driver == "none":
        where = "virtual machine: the host may change it unseen" if processor.is_virtual(root) else "not scaled"
        return [Finding("frequency", "note" if processor.is_virtual(root) else "ok", f"no frequency visible ({where})")]
    seen = f"frequency governor {governor} ({driver})"
    if governor == "performance":
        found = [Finding("frequency", "ok", seen)]
    else:
        hint = f"`echo performance | sudo tee /{_CPU}/cpu*/cpufreq/scaling_governor`"
        found = [Finding("frequency", "warning", f"{seen}: the clock follows the load that is measured", hint)]
    for file, boosting, calm in (("cpufreq/boost", 1, 0), ("intel_pstate/no_turbo", 0, 1)):
        if number(root, f"{_CPU}/{file}") == boosting:
            hint = f"`echo {calm} | sudo tee /{_CPU}/{file}`"
            found.append(Finding("boost", "note", "boost is on: the clock depends on how many cores are busy", hint))
    return found


def threads_per_core(root: Path = ROOT) -> Finding:
    """Whether two CPUs may be one core."""
    cpus = processor.allowed_cpus(root)
    seen = processor.smt(cpus, root)
    pairs = {list_cpus(processor.siblings(cpu, root)) for cpu in cpus}
    if all(pair.isdigit() for pair in pairs):
        return Finding("smt", "note" if processor.is_virtual(root) else "ok", seen)
    hint = f"`--placement explicit` with CPUs of different cores, or `echo off | sudo tee /{_CPU}/smt/control`"
    return Finding("smt", "note", f"{seen}: CPUs {' and '.join(sorted(pairs)[:NAMED])} share a core each", hint)


def steal(activity: Activity, root: Path = ROOT) -> Finding:
    """Whether the hypervisor gives our CPUs to others."""
    now, ever = activity.mean("steal"), processor.steal_share((), root)
    seen = f"steal {100 * now:.1f} % now" + (f", {100 * ever:.2f} % since the boot" if ever is not None else "")
    if now >= STEAL_SHARE:
        hint = "measure on a machine of your own or with dedicated CPUs, or longer: `--max-seconds 300`"
        return Finding("steal", "warning", seen, hint)
    if ever is not None and ever >= STEAL_SHARE:
        return Finding("steal", "note", seen, "measure again at another time: agreement is the proof")
    blind = (
        " (it does not show a slower clock or a neighbour in the shared cache)" if processor.is_virtual(root) else ""
    )
    return Finding("steal", "ok", seen + blind)


def foreign_load(activity: Activity, own: Sequence[int], root: Path = ROOT) -> list[Finding]:
    """Find what else computes on the allowed CPUs, by pid and name, and which CPUs take softirqs."""
    allowed = processor.allowed_cpus(root)
    own_cpus = sum(process.cpu_s for process in activity.processes if process.pid in own) / max(activity.seconds, 1e-9)
    busy = max(0.0, sum(activity.busy(cpu) for cpu in allowed) - own_cpus)
    others = [process for process in activity.processes if process.pid not in own][:NAMED]
    names = ", ".join(
        f"{process.name} (pid {process.pid}, {process.cpu_s / activity.seconds:.2f} CPU on CPU {process.cpu})"
        for process in others
    )
    load = " ".join(told(root, "proc/loadavg").split()[:3])
    seen = f"others use {busy:.2f} of {len(allowed)} CPUs (load average {load})"
    if busy < SILENT_CPUS:
        found = [Finding("foreign-load", "ok", seen)]
    else:
        rest = busy - sum(process.cpu_s for process in others) / max(activity.seconds, 1e-9)
        short = f", {rest:.2f} in others and in short-lived processes" if rest >= SILENT_CPUS else ""
        named = f"{seen}: {names}{short}" if names else f"{seen}, by no process that is visible from here"
        end = f"end or pause it (`kill -STOP {others[0].pid}`, later `kill -CONT`)" if others else "look on the host"
        level: Level = "warning" if busy >= QUIET_CPUS else "note"
        found = [Finding("foreign-load", level, named, f"{end}, or wait until it is over")]
    taking = {cpu: activity.shares[cpu]["softirq"] for cpu in sorted(activity.shares)}
    most = max(taking, key=lambda cpu: taking[cpu], default=None)
    if most is not None and taking[most] >= SOFTIRQ_SHARE:
        seen = f"CPU {most} spends {100 * taking[most]:.0f} % in softirqs now: network traffic of others"
        hint = (
            f"compute elsewhere: `--placement explicit --compute-cpus {next((c for c in allowed if c != most), most)}`"
        )
        found.append(Finding("softirq-load", "warning", seen, hint))
    return found


def autogroup(root: Path = ROOT) -> Finding:
    """Whether nice levels count between sessions."""
    state = processor.autogroup(root)
    if state != "on":
        return Finding("autogroup", "ok", f"autogroup is {state}")
    seen = "autogroup is on: a nice level counts only inside one session, not against other people's processes"
    return Finding("autogroup", "note", seen, "`sudo sysctl kernel.sched_autogroup_enabled=0`")


def clock(root: Path = ROOT) -> Finding:
    """Whether time can be read quickly."""
    at = "sys/devices/system/clocksource/clocksource0"
    now = told(root, f"{at}/current_clocksource")
    if now in _FAST_CLOCKS:
        return Finding("clock", "ok", f"clock source {now}")
    if now == UNKNOWN:
        return Finding("clock", "note", "the clock source cannot be read")
    available = (text(root, f"{at}/available_clocksource") or "").split()
    seen = f"clock source {now}: each look at the clock is slow, and pacing and sampling look often"
    hint = f"`echo tsc | sudo tee /{at}/current_clocksource`" if "tsc" in available else "boot with `tsc=reliable`"
    return Finding("clock", "warning", seen, hint)


def accounting(root: Path = ROOT) -> list[Finding]:
    """Whether the kernel counts the CPU time of threads and of interrupts."""
    counted = text(root, "proc/self/schedstat")
    if counted is not None and not counted.replace("0", "").split():
        seen = "/proc/self/schedstat reads 0 0 0: the kernel does not count how long threads wait, nor their switches"
        hint = "`sudo sysctl kernel.task_delayacct=1`, or boot with `delayacct`; without, `measure` uses wall time only"
        return [Finding("schedstat", "problem", seen, hint)]
    if counted is None:
        seen = "/proc/self/schedstat cannot be read: CPU and waiting time of the threads would be missing"
        return [
            Finding("schedstat", "problem", seen, "use a kernel built with CONFIG_SCHED_INFO=y, and a readable /proc")
        ]
    found = [Finding("schedstat", "ok", "CPU and waiting time of each thread can be read (schedstat)")]
    how = processor.accounting(root)
    if "not timed" in how:
        seen = f"CPU time is counted by {how}: softirq and system shares are estimates, most of all on the measured CPU"
        found.append(
            Finding("time-accounting", "note", seen, "they explain the answer, but no rate is computed from them")
        )
    return found
