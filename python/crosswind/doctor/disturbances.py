"""What recording and injecting disturbances can do on this host, and what they have left on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from crosswind.doctor.finding import Finding
from crosswind.host.tree import ROOT, number, text
from crosswind.inject import means
from crosswind.noise import no_trace
from crosswind.observed import leftovers


def recording(why_not: Callable[[], str | None] = no_trace) -> Finding:
    """Whether `crosswind record` can name causes."""
    why = why_not()
    if why is None:
        return Finding("record", "ok", "`crosswind record` can use the kernel's trace: causes by name")
    seen = f"`crosswind record` cannot use the kernel's trace ({why}): it tells other threads from interrupts, no names"
    return Finding("record", "note", seen, "run it as root, on a kernel with tracefs and its own /sys")


def injecting(found: Callable[[], dict[str, Any]] = means) -> list[Finding]:
    """Whether `crosswind inject` can burn CPUs at a priority that counts, and freeze ranks rather than stop them."""
    can = found()
    priority, no_freezer = can["priority"], can["no_freezer"]
    if priority == "real-time":
        burns = Finding("inject-priority", "ok", "`crosswind inject` keeps time and burns CPUs at real-time priority")
    else:
        worth = "a daemon takes half of the CPU only" if priority == "ordinary" else "a daemon takes 98.9 % of the CPU"
        seen = f"`crosswind inject` runs at {priority} priority: {worth}, and intervals may begin late"
        hint = "`sudo prlimit --pid $$ --rtprio=50:50` in the shell that will inject, or --how stop"
        burns = Finding("inject-priority", "note", seen, hint)
    if no_freezer is None:
        return [burns, Finding("inject-freezer", "ok", "`crosswind inject --how freeze` can freeze control groups")]
    seen = f"`crosswind inject --how freeze` cannot be had ({no_freezer}); --how stop needs nothing"
    hint = "as root, or in a control group of version 2 that is delegated: `systemd-run --user --scope -p Delegate=yes`"
    return [burns, Finding("inject-freezer", "note", seen, hint)]


_LEFT = {
    "trace": ("trace instance", "rmdir {name}"),
    "frozen-group": ("frozen control group", "echo 0 > {name}/cgroup.freeze"),
    "group": ("control group", "rmdir {name}"),
    "stopped": ("stopped process", "kill -CONT {name}"),
}
_MOST_NAMED = 5


def left_behind(found: Callable[[], list[dict[str, str]]] = leftovers) -> Finding:
    """Whether killed commands have left anything in the kernel, with the command that removes it."""
    left = found()
    if not left:
        return Finding("leftovers", "ok", "no earlier `crosswind record`, `inject` or `cost` has left anything behind")
    named = [f"{_LEFT[one['kind']][0]} {one['name']}" for one in left[:_MOST_NAMED]]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    seen = f"left by commands that were killed: {', '.join(named)}{more}"
    stopped = [one["name"] for one in left if one["kind"] == "stopped"]
    hints = []
    if len(stopped) < len(left):
        first = next(one for one in left if one["kind"] != "stopped")
        by_hand = _LEFT[first["kind"]][1].format(name=first["name"])
        hints.append(f"the next `crosswind record` or `inject` of its user removes it; by hand: `{by_hand}`")
    if stopped:
        hints.append(f"if you did not stop it: `kill -CONT {' '.join(stopped[:_MOST_NAMED])}`")
    return Finding("leftovers", "warning", seen, "; ".join(hints))


def real_time_limit(root: Path = ROOT) -> Finding:
    """Whether the kernel lets real-time threads have a CPU for as long as a daemon is to run."""
    runtime = number(root, "proc/sys/kernel/sched_rt_runtime_us")
    period = number(root, "proc/sys/kernel/sched_rt_period_us")
    if text(root, "proc/sys/kernel/sched_rt_runtime_us") == "-1":
        return Finding("real-time-limit", "ok", "real-time threads may have a CPU for as long as they like")
    if not runtime or not period:
        return Finding("real-time-limit", "note", "how long real-time threads may have a CPU cannot be read")
    seen = (
        f"real-time threads may have a CPU for {runtime / 1e6:g} s of each {period / 1e6:g} s: longer daemons are cut"
    )
    return Finding("real-time-limit", "ok" if runtime >= 0.9 * period else "note", seen, "longer ones: --how stop")
