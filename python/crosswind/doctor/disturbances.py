"""What recording and injecting disturbances can do on this host, and what they have left on it."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from crosswind.absences import leftovers
from crosswind.doctor.finding import Finding
from crosswind.host.tree import ROOT, number, text
from crosswind.inject import means
from crosswind.noise import no_trace

if TYPE_CHECKING:
    from crosswind.documents.noise import InjectionMeans

_MARK = "user.frozen-by-undo-watchdog"  # crates/linux/src/freezer/group.rs


def left_frozen(mount: Path | None) -> list[Finding]:
    """Name control groups that a killed session of `crosswind cost` left frozen; none on nearly every host."""
    left = [str(group) for group in _left(mount)] if mount else []
    if not left:
        return []
    names = ", ".join(left[:3]) + (f" and {len(left) - 3} more" if len(left) > 3 else "")
    seen = f"{names} {'is' if len(left) == 1 else 'are'} frozen: `crosswind cost` and its watchdog were killed there"
    by_hand = f"`echo 0 > {left[0]}/cgroup.freeze` and `setfattr -x {_MARK} {left[0]}`"
    return [Finding("left-frozen", "problem", seen, f"`crosswind cost` of it thaws it; by hand: {by_hand}")]


def _left(mount: Path) -> Iterator[Path]:
    """Yield groups that are frozen, bear the mark of a session, and are locked by none."""
    for directory, _, _ in os.walk(mount):
        with suppress(OSError):
            os.getxattr(directory, _MARK)
            if Path(directory, "cgroup.freeze").read_text().strip() != "1":
                continue
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                yield Path(directory)
            finally:
                os.close(descriptor)


def recording(why_not: Callable[[], str | None] = no_trace) -> Finding:
    """Whether `crosswind record` can name causes."""
    why = why_not()
    if why is None:
        return Finding("record", "ok", "`crosswind record` can use the kernel's trace: causes by name")
    seen = f"`crosswind record` cannot use the kernel's trace ({why}): it finds other threads, without names"
    return Finding("record", "note", seen, "run it as root, on a kernel with tracefs and its own /sys")


def injecting(found: Callable[[], InjectionMeans] = means) -> list[Finding]:
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
    "trace": "trace instance",
    "frozen-group": "frozen control group",
    "occupied-group": "control group that holds processes",
    "group": "control group",
    "stopped": "stopped process",
}
# Groups that are neither frozen nor harmful have none: groups below them, or processes there, would refuse a `rmdir`.
_BY_HAND = {"trace": "rmdir {name}", "frozen-group": "echo 0 | tee {name}/cgroup.freeze {name}/*/cgroup.freeze"}
_MOST_NAMED = 5


def left_behind(found: Callable[[], list[dict[str, str]]] = leftovers) -> Finding:
    """Whether killed commands have left anything in the kernel, with the command that removes it."""
    left = found()
    if not left:
        return Finding("leftovers", "ok", "no earlier `crosswind record`, `inject` or `cost` has left anything behind")
    named = [f"{_LEFT[one['kind']]} {one['name']}" for one in left[:_MOST_NAMED]]
    more = f" and {len(left) - _MOST_NAMED} more" if len(left) > _MOST_NAMED else ""
    seen = f"left by commands that were killed: {', '.join(named)}{more}"
    of = {kind: [one["name"] for one in left if one["kind"] == kind] for kind in _LEFT}
    hints = []
    if of["trace"] or of["frozen-group"] or of["group"]:
        by_hand = [f"`{command.format(name=of[kind][0])}`" for kind, command in _BY_HAND.items() if of[kind]]
        removes = "the next `crosswind record` or `inject` of its user removes it"
        hints.append(f"{removes}; by hand: {by_hand[0]}" if by_hand else removes)
    if occupied := of["occupied-group"]:
        hints.append(f"`cat {occupied[0]}/cgroup.procs` lists processes that outlived their task: end them first")
    if stopped := of["stopped"]:
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
    return Finding(
        "real-time-limit",
        "ok" if runtime >= 0.9 * period else "note",
        seen,
        "longer ones: `crosswind inject --how stop`",
    )
