"""Which processes belong to a target now: by name, by a control group, of a unit of systemd, of a job of Slurm."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from pathlib import Path

from crosswind.cost.naming import names_of
from crosswind.errors import DescriptionError
from crosswind.host import processes
from crosswind.host.cgroup import mounts, unified_mount
from crosswind.host.tree import ROOT

_MOST_NEAR = 4
_UNIT_KINDS = (".service", ".scope", ".slice", ".socket", ".mount", ".swap")
_CONTROLLERS = ("freezer", "memory", "cpuset", "cpu", "cpuacct", "pids", "devices")
"""Hierarchies of version 1 in which jobs of Slurm are looked for, in this order: the first one tracks processes."""


@dataclass(frozen=True)
class Found:
    """What a target is.

    Attributes
    ----------
    name : str
        The same in the next session, for tables.
    members : callable
        Returns the processes that belong to it at the time of the call.
    group : Path or None
        Its control group of version 2, which can be frozen as a whole.
    """

    name: str
    members: Callable[[], set[int]]
    group: Path | None = None


def by_name(pattern: str) -> Found:
    """Return the processes whose script, module or program a pattern matches, such as `loader*`.

    Other users' processes count for root only. Threads of the kernel, this process and what it started do not count.

    Raises
    ------
    DescriptionError
        When no process matches; near matches are listed.
    """
    if not _matching(pattern):
        near = _near(pattern.strip("*?"), Counter(name for names in _names().values() for name in set(names)))
        message = f"--of is 'name:{pattern}'; no process is called that{near}"
        raise DescriptionError(message, "target", "a pattern is matched as a whole: name:'loader*'")
    return Found(pattern, lambda: _matching(pattern))


def _matching(pattern: str) -> set[int]:
    return {pid for pid, names in _names().items() if any(fnmatchcase(name, pattern) for name in names)}


def _names() -> dict[int, list[str]]:
    """Return what each process that may belong to a target is called."""
    ours = processes.with_descendants([os.getpid()])
    user = os.geteuid()
    found = {}
    for entry in processes.PROC.iterdir():
        if not entry.name.isdecimal() or (pid := int(entry.name)) in ours:
            continue
        with contextlib.suppress(OSError):
            if (
                user in (0, entry.stat().st_uid)
                and not processes.has_ended(pid)
                and not processes.is_kernel_thread(pid)
            ):
                found[pid] = names_of(pid)
    return found


def _near(wanted: str, names: Counter[str], what: str = "near") -> str:
    """Return the end of a sentence that lists the names closest to the wanted one, with how often each is there."""
    holding = [name for name in sorted(names) if wanted and wanted.lower() in name.lower()]
    close = get_close_matches(wanted, sorted(names), _MOST_NEAR, 0.5)
    listed = [f"{name} ({names[name]})" if names[name] > 1 else name for name in dict.fromkeys([*close, *holding])]
    return f"; {what}: {', '.join(listed[:_MOST_NEAR])}" if listed else ""


def group_directory(path: str) -> Path:
    """Return the directory of a control group of version 2 by its path in the hierarchy, or its directory.

    Raises
    ------
    DescriptionError
        When there is none.
    """
    mount = unified_mount()
    hint = "`systemctl show -p ControlGroup UNIT` shows the path of a unit's group"
    if mount is None:
        raise DescriptionError(f"--of is 'cgroup:{path}'; no control groups of version 2 are mounted", "target", hint)
    found = Path(path) if Path(path).is_relative_to(mount) else mount / path.strip("/")
    if not (found / "cgroup.procs").is_file():
        raise DescriptionError(f"--of is 'cgroup:{path}'; {found} is not a control group", "target", hint)
    if found == mount:
        raise DescriptionError(f"--of is 'cgroup:{path}'; the root group holds everything", "target", hint)
    return found


def group_members(group: Path) -> set[int]:
    """Return the processes of a group and of the groups below it."""
    found: set[int] = set()
    for procs in [group / "cgroup.procs", *group.glob("**/cgroup.procs")]:
        with contextlib.suppress(OSError):
            found |= {int(word) for word in procs.read_text().split()}
    return found


def by_group(path: str) -> Found:
    """Return a control group of version 2, named by its path."""
    group = group_directory(path)
    return Found(f"/{group.relative_to(unified_mount() or group)}", lambda: group_members(group), group)


def by_unit(name: str, root: Path = ROOT) -> Found:
    """Return a unit of systemd by its name; `exporter` is `exporter.service`.

    Its control group is looked for by that name, in version 2 and in systemd's own hierarchy of version 1.

    Raises
    ------
    DescriptionError
        When there is no such unit, several users have one, or no process is in it.
    """
    unit = name if name.endswith(_UNIT_KINDS) else f"{name}.service"
    text, hint = f"--of is 'unit:{name}'", "`systemctl list-units --state=running` lists them"
    units: Counter[str] = Counter()
    for mount, unified in _hierarchies(root, ("name=systemd",)):
        every = sorted(group for group in _groups(mount) if group.name.endswith(_UNIT_KINDS))
        units.update({group.name: 1 for group in every})
        found = [group for group in every if group.name in (unit, f"_{unit}")]
        if len(found) > 1:
            paths = ", ".join(f"cgroup:/{group.relative_to(mount)}" for group in found)
            raise DescriptionError(f"{text}; several groups are called {unit}: {paths}", "target", "name one of them")
        if found:
            return _with_members(found[0], unit, unified, text, hint)
    raise DescriptionError(f"{text}; no unit is called {unit}{_near(name, units)}", "target", hint)


def by_job(number: str, root: Path = ROOT) -> Found:
    """Return a job of Slurm on this host by its number, all steps together.

    Its control group is `.../slurmstepd.scope/job_N` in version 2, and `/slurm/uid_U/job_N` in version 1; with several
    daemons on a host, their node's name is part of it.

    Raises
    ------
    DescriptionError
        When no such job has a control group on this host; the jobs that have are listed.
    """
    text = f"--of is 'slurm:{number}'"
    if not number.isdecimal():
        raise DescriptionError(f"{text}; after slurm: stands the number of a job", "target", "`squeue -o %A` prints it")
    here: set[str] = set()
    for mount, unified in _hierarchies(root, _CONTROLLERS):
        for group in _groups(mount):
            if group.name.startswith("job_") and any("slurm" in part for part in group.relative_to(mount).parts[:-1]):
                if group.name == f"job_{number}":
                    hint = "the job may just have ended: `squeue -j JOB`"
                    return _with_members(group, f"Slurm job {number}", unified, text, hint)
                here.add(group.name.removeprefix("job_"))
    jobs = f"jobs here: {', '.join(sorted(here)[:10])}" if here else "no job of Slurm has a control group here"
    raise DescriptionError(f"{text}; no such job is on this host; {jobs}", "target", "run it on a node of the job")


def _with_members(group: Path, name: str, unified: bool, text: str, hint: str) -> Found:
    if not group_members(group):
        raise DescriptionError(f"{text}; no process is in its group, {group}", "target", hint)
    return Found(name, lambda: group_members(group), group if unified else None)


def _hierarchies(root: Path, controllers: tuple[str, ...]) -> Iterator[tuple[Path, bool]]:
    """Yield where control groups are mounted, and whether they are of version 2, which comes first."""
    if (unified := unified_mount(root)) is not None:
        yield unified, True
    first = [mount for mount in mounts(root) if mount.kind == "cgroup"]
    for controller in controllers:
        for mount in first:
            if controller in mount.options.split(","):
                yield root / mount.at.lstrip("/"), False


def _groups(mount: Path) -> Iterator[Path]:
    """Yield the groups below a mount; one that is removed meanwhile is left out."""
    for directory, below, _ in os.walk(mount):
        yield from (Path(directory) / name for name in sorted(below))
