"""What is investigated: `pid:`, `cgroup:` or `command:`; what must never be stopped is refused before anything is."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind.cost import processes
from crosswind.cost.hold import ByFreezer, BySignals
from crosswind.cost.watchdog import Watchdog
from crosswind.errors import DescriptionError
from crosswind.host.cgroup import unified_mount

KINDS = ("pid", "cgroup", "command")
HINT = "--of pid:1234, --of cgroup:/system.slice/exporter.service or --of 'command:./exporter --interval 1'"
_LOGIN = ("sshd", "sshd-session", "dropbear")
_PATIENCE_S = 2.0
_BEGUN_S = 0.3
_LONGEST_NAME = 48


def parsed(text: str) -> tuple[str, str]:
    """Return kind and value of a target as it is written.

    Raises
    ------
    DescriptionError
        When it is none.

    Examples
    --------
    >>> parsed("pid:1234")
    ('pid', '1234')
    """
    kind, colon, value = text.partition(":")
    if not colon or kind not in KINDS or not value.strip():
        raise DescriptionError(f"--of is {text!r}; it must be pid:N, cgroup:PATH or command:COMMAND", "target", HINT)
    if kind == "pid" and not (value.isdecimal() and int(value) > 0):
        raise DescriptionError(f"--of is {text!r}; after pid: stands the number of a process", "target", HINT)
    return kind, value


def group_directory(path: str) -> Path:
    """Return the directory of a control group of version 2 by its path in the hierarchy, or its directory.

    Raises
    ------
    DescriptionError
        When there is none.
    """
    mount = group_mount()
    hint = "`systemctl show -p ControlGroup UNIT` shows the path of a unit's group"
    if mount is None:
        raise DescriptionError(f"--of is 'cgroup:{path}'; no control groups of version 2 are mounted", "target", hint)
    found = Path(path) if Path(path).is_relative_to(mount) else mount / path.strip("/")
    if not (found / "cgroup.procs").is_file():
        raise DescriptionError(f"--of is 'cgroup:{path}'; {found} is not a control group", "target", hint)
    if found == mount:
        raise DescriptionError(f"--of is 'cgroup:{path}'; the root group holds everything", "target", hint)
    return found


def group_mount() -> Path | None:
    """Return where control groups of version 2 are mounted, or None."""
    return unified_mount()


def group_members(group: Path) -> set[int]:
    """Return the processes of a group and of the groups below it."""
    found: set[int] = set()
    for procs in [group / "cgroup.procs", *group.glob("**/cgroup.procs")]:
        with contextlib.suppress(OSError):
            found |= {int(word) for word in procs.read_text().split()}
    return found


def refuse(members: Iterable[int], named: str, others: Iterable[int] = ()) -> None:
    """Refuse what must not be stopped: init, threads of the kernel, ourselves, our ancestors, the login's server.

    Raises
    ------
    DescriptionError
        Naming the process and the reason.
    """
    above = set(processes.ancestors(os.getpid()))
    logged_in = "SSH_CONNECTION" in os.environ
    for pid in sorted(members):
        reason = (
            "it is the init process"
            if pid == 1
            else "it is Crosswind itself"
            if pid == os.getpid() or pid in others
            else "Crosswind was started below it"
            if pid in above
            else "it is a thread of the kernel"
            if processes.is_kernel_thread(pid)
            else "it serves this login"
            if logged_in and processes.name(pid) in _LOGIN
            else None
        )
        if reason:
            message = f"{named} would stop process {pid} ({processes.name(pid)}), and {reason}"
            raise DescriptionError(message, "target-refused", "name a process that can be spared for a moment")


@dataclass
class Target:
    """One thing that is investigated, with how it is held.

    Attributes
    ----------
    text : str
        As it was written.
    name : str
        For tables: the command's or the process's name, or the group's path.
    hold : BySignals or ByFreezer
        How it is stopped and continued.
    cpu : CpuTime
        What it uses.
    """

    text: str
    name: str
    hold: BySignals | ByFreezer
    roots: list[int] = field(default_factory=list)
    group: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    cpu: processes.CpuTime = field(default_factory=processes.CpuTime)
    members: set[int] = field(default_factory=set)

    def refresh(self) -> None:
        """Look which processes there are now."""
        found = group_members(self.group) if self.group else processes.with_descendants(self.roots)
        self.members = {pid for pid in found if not processes.has_ended(pid)}
        self.hold.refresh(self.members)
        self.cpu.watch(self.members)

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left to stop."""
        return not self.members

    def close(self) -> None:
        """Continue it, and end it if we started it."""
        self.hold.close()
        if self.process is not None:
            end(self.process)


def opened(text: str, watchdog: Watchdog) -> Target:
    """Return a target that can be held; a command is started.

    Raises
    ------
    DescriptionError
        When it is not there, or must not be stopped.
    """
    kind, value = parsed(text)
    if kind == "cgroup":
        return _opened_group(text, value, watchdog)
    if kind == "pid":
        pid = int(value)
        if processes.stat(pid) is None:
            raise DescriptionError(f"--of is {text!r}; there is no process {pid}", "target", "`ps` lists them")
        refuse(processes.with_descendants([pid]), f"--of {text}", {watchdog.pid})
        target = Target(text, f"{processes.name(pid)} ({pid})", BySignals(watchdog), [pid])
    else:
        process = started(shlex.split(value), f"--of is {text!r}", watchdog)
        time.sleep(_BEGUN_S)  # it may bind itself to a CPU, or fail
        if process.poll() is not None:
            message = f"--of is {text!r}; the command ended by itself, with status {process.returncode}"
            raise DescriptionError(message, "target", "what is investigated must run as long as the measurement")
        target = Target(text, _shortened(value), BySignals(watchdog), [process.pid], process=process)
    target.refresh()
    return target


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST_NAME else text[: _LONGEST_NAME - 3] + "..."


def _opened_group(text: str, value: str, watchdog: Watchdog) -> Target:
    group = group_directory(value)
    members = group_members(group)
    if not members:
        raise DescriptionError(f"--of is {text!r}; no process is in that group", "target", HINT)
    refuse(members, f"--of {text}", {watchdog.pid})
    can_freeze = os.access(group / "cgroup.freeze", os.W_OK)
    hold = ByFreezer(group, watchdog) if can_freeze else BySignals(watchdog)
    target = Target(text, f"/{group.relative_to(group_mount() or group)}", hold, group=group)
    target.refresh()
    return target


def started(command: list[str], subject: str, watchdog: Watchdog) -> subprocess.Popen[bytes]:
    """Start a command in a process group of its own, which the watchdog ends with us; what it prints goes to stderr.

    Raises
    ------
    DescriptionError
        When it cannot be started.
    """
    if not command:
        raise DescriptionError(f"{subject}; there is no command", "target", HINT)
    try:
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno(), process_group=0)
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise DescriptionError(f"{subject}; {command[0]!r} cannot be started: {why}", "target") from None
    watchdog.knows(ends=process.pid)
    return process


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command that we started, with all of its process group."""
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            break
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # what was left of the group
