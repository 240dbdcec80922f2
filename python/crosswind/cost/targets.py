"""What is investigated, such as `pid:` or `name:`; what must never be stopped is refused before anything is.

It is frozen and thawed by a process of its own (`crates/linux/src/freezer`), which outlives this one.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path

from crosswind import _core
from crosswind.cost import finding
from crosswind.cost.lifetime import group_used_s
from crosswind.cost.naming import shortened, stable_name
from crosswind.errors import CrosswindError, DescriptionError, Notice, warning, watchdog_only
from crosswind.host import processes
from crosswind.terminal.waiting import join

KINDS = ("pid", "name", "unit", "slurm", "cgroup", "command")
HINT = "--of pid:1234, --of name:'loader*', --of unit:exporter or --of 'command:./exporter --interval 1'"
_FINDERS: dict[str, Callable[[str], finding.Found]] = {
    "name": finding.by_name,
    "unit": finding.by_unit,
    "slurm": finding.by_job,
    "cgroup": finding.by_group,
}
_LOGIN = ("sshd", "sshd-session", "dropbear")
_PATIENCE_S = 2.0
_BEGUN_S = 0.3
_LOOK_S = 0.5
"""How often processes that began since are looked for."""
_RETURN_S = 2.0
"""How long workers may be away, as between two epochs, before they count as ended."""


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
        hint = f"--of pid:{text.strip()}" if text.strip().isdecimal() else HINT
        kinds = "pid:N, name:PATTERN, unit:NAME, slurm:JOB, cgroup:PATH or command:COMMAND"
        raise DescriptionError(f"--of is {text!r}; it must be {kinds}", "target", hint)
    if kind == "pid" and not (value.isdecimal() and int(value) > 0):
        raise DescriptionError(f"--of is {text!r}; after pid: stands the number of a process", "target", HINT)
    return kind, value


def refuse_absent(text: str) -> None:
    """Refuse what is no target, or names nothing on this host, before anything is started.

    Raises
    ------
    DescriptionError
        With the text and what is near it.

    Examples
    --------
    >>> refuse_absent("pid:1"), refuse_absent("command:sleep 60")
    (None, None)
    """
    kind, value = parsed(text)
    if kind == "pid":
        _refuse_no_process(text, int(value))
    elif kind in _FINDERS:
        _FINDERS[kind](value)


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
    """One thing that is investigated, with how it is frozen.

    Attributes
    ----------
    text : str
        As it was written.
    name : str
        For tables: the command's, script's, program's or unit's name, or the group's path.
    freezer : Freezer
        The process that freezes it.
    frozen : Frozen
        What it is to the freezer; its attribute `how` is "tracing", "freezer" (of a control group) or "signals".
    roots : list of int
        Processes that were named or started.
    group : Path or None
        Directory of the control group.
    process : Popen or None
        A command that we started.
    cpu : CpuTime
        What it uses.
    find : callable or None
        Returns what belongs to it now, beside what descends from that; None where nothing else can.
    left_out : dict
        Processes that belong to it and cannot be stopped, with the reason.
    """

    text: str
    name: str
    freezer: _core.Freezer
    frozen: _core.Frozen
    roots: list[int] = field(default_factory=list)
    group: Path | None = None
    process: subprocess.Popen[bytes] | None = None
    cpu: processes.CpuTime = field(default_factory=processes.CpuTime)
    members: set[int] = field(default_factory=set)
    find: Callable[[], set[int]] | None = None
    left_out: dict[int, str] = field(default_factory=dict)
    _look_at: float = 0.0

    def refresh(self) -> None:
        """Look which processes there are now."""
        if self.find is not None and time.monotonic() >= self._look_at:
            self._look_at = time.monotonic() + _LOOK_S
            for pid in sorted(self.find() - self.members - self.left_out.keys()):
                try:
                    self.freezer.extend(self.frozen, [pid])
                except CrosswindError as error:
                    if not processes.has_ended(pid):
                        self.left_out[pid] = str(error)
        self.members = {pid for pid in self.freezer.members(self.frozen) if not processes.has_ended(pid)}
        self.cpu.watch(self.members)

    def freeze(self, due_ns: int) -> None:
        """Stop all of it until it is thawed, which is to be at that time (CLOCK_MONOTONIC, ns).

        Raises
        ------
        MeasurementError
            When a process of it may no longer be stopped; then all of it runs.
        """
        try:
            self.freezer.freeze(self.frozen, due_ns)
        except DescriptionError as error:
            if error.code != "gone":
                raise
            self.members = set()

    def thaw(self) -> None:
        """Continue all of it."""
        self.freezer.thaw(self.frozen)

    def defer(self, due_ns: int) -> None:
        """Keep it frozen until a later time."""
        self.freezer.defer(self.frozen, due_ns)

    def total_s(self) -> float:
        """Return its CPU time so far with that of children which ended between two looks, s."""
        counted = group_used_s(self.group) if self.group is not None else None
        return processes.total_s(self.members) if counted is None else counted

    @property
    def is_gone(self) -> bool:
        """Whether nothing of it is left to stop."""
        return not self.members

    def returns(self) -> bool:
        """Whether it has processes again within 2 s: workers end and start anew between two epochs."""
        until = time.monotonic() + (_RETURN_S if self.find is not None else 0.0)
        while self.is_gone and time.monotonic() < until:
            time.sleep(0.02)
            self._look_at = 0.0
            self.refresh()
        return not self.is_gone

    def incomplete(self) -> Notice | None:
        """Return a warning where processes of it began that cannot be stopped; None where there are none."""
        if not self.left_out:
            return None
        [(_, why), *_] = self.left_out.items()
        count = f"{len(self.left_out)} process{'es' if len(self.left_out) > 1 else ''}"
        message = f"{count} of {self.name} began meanwhile and cannot be stopped: {why}"
        return warning("left-out", message, "the cost is that of the others; measure again")

    def warning(self) -> Notice | None:
        """Return what a `kill -9` of all of Crosswind would leave; None where it would leave nothing."""
        if not self.frozen.exposed:
            return None
        undo = f"`echo 0 > {self.group}/cgroup.freeze`" if self.frozen.how == "freezer" else "`kill -CONT PID`"
        watchdog = f"a watchdog (process {self.freezer.pid})"
        return watchdog_only(f"{self.name} may not be traced, so only {watchdog} continues it", undo)

    def close(self) -> None:
        """Continue it, and end it if we started it."""
        with contextlib.suppress(CrosswindError):  # a freezer that has ended has left nothing stopped
            self.thaw()
            self.refresh()
        if self.process is not None:
            end(self.process, self.members)
            with contextlib.suppress(CrosswindError):
                self.freezer.forget(self.process.pid)


def opened(text: str, freezer: _core.Freezer) -> Target:
    """Return a target that can be frozen; a command is started.

    Raises
    ------
    DescriptionError
        When it does not exist, or must not be stopped.
    """
    kind, value = parsed(text)
    if kind == "command":
        target = _opened_command(text, value, freezer)
    elif kind == "pid":
        target = _opened_process(text, int(value), freezer)
    else:
        target = _opened_found(text, _FINDERS[kind](value), freezer)
    target.refresh()
    return target


def _opened_process(text: str, pid: int, freezer: _core.Freezer) -> Target:
    _refuse_no_process(text, pid)
    refuse(processes.with_descendants([pid]), f"--of {text}", {freezer.pid})
    frozen = _taken(text, lambda: freezer.seize([pid]))
    return Target(text, stable_name(pid), freezer, frozen, [pid])


def _refuse_no_process(text: str, pid: int) -> None:
    if processes.stat(pid) is None:
        raise DescriptionError(f"--of is {text!r}; there is no process {pid}", "target", "`ps` lists them")


def _taken(text: str, take: Callable[[], _core.Frozen]) -> _core.Frozen:
    """Return what the freezer takes; what it refuses is wrong with `--of`."""
    try:
        return take()
    except CrosswindError as error:
        raise DescriptionError(f"--of is {text!r}; {error}", error.code, error.hint) from None


def _opened_found(text: str, found: finding.Found, freezer: _core.Freezer) -> Target:
    """Take what was found: a group of version 2 as a whole, else each process, and later those that begin."""
    members = found.members()
    if not members:
        raise DescriptionError(f"--of is {text!r}; no process is in that group", "target", HINT)
    if found.group is not None:
        group = found.group
        refuse(members, f"--of {text}", {freezer.pid})
        frozen = _taken(text, lambda: freezer.seize_group(group))
        return Target(text, found.name, freezer, frozen, group=group)
    refuse(processes.with_descendants(members), f"--of {text}", {freezer.pid})
    frozen = _taken(text, lambda: freezer.seize(sorted(members)))
    return Target(text, found.name, freezer, frozen, sorted(members), find=found.members)


def _opened_command(text: str, value: str, freezer: _core.Freezer) -> Target:
    """Start a command, and take it before it does anything: what it forks at once belongs to it."""
    try:
        command = shlex.split(value)
    except ValueError as error:
        raise DescriptionError(f"--of is {text!r}; {str(error).lower()}", "target", HINT) from None
    process, frozen = started(command, f"--of is {text!r}", freezer)
    target = Target(text, shortened(value), freezer, frozen, [process.pid], process=process)
    try:
        status = process.wait(_BEGUN_S)  # it may bind itself to a CPU, or fail
    except subprocess.TimeoutExpired:
        return target
    target.close()
    message = f"--of is {text!r}; the command ended, with status {status}"
    raise DescriptionError(message, "target", "the target must run as long as the measurement")


def started(command: list[str], subject: str, freezer: _core.Freezer) -> tuple[subprocess.Popen[bytes], _core.Frozen]:
    """Start a command in a process group of its own, which the freezer ends with us; what it prints goes to stderr.

    Between fork and exec it waits until the freezer has taken it.

    Raises
    ------
    DescriptionError
        When it cannot be started, or taken.
    """
    if not command:
        raise DescriptionError(f"{subject}; there is no command", "target", HINT)
    born_in, born_out = os.pipe()
    taken_in, taken_out = os.pipe()
    taken: list[_core.Frozen | BaseException] = []
    tracer = freezer.pid

    def in_the_child() -> None:
        os.close(taken_out)  # so that the end of this command ends the wait below
        _core.permit_tracing(tracer)
        os.write(born_out, str(os.getpid()).encode())
        if not os.read(taken_in, 1):
            os._exit(1)

    def take() -> None:
        if born := os.read(born_in, 32):
            try:
                found = freezer.seize([int(born)])
                freezer.end_with_command(int(born))
                taken.append(found)
            except BaseException as error:  # whatever it is, the thread that waits raises it
                taken.append(error)
            finally:
                os.write(taken_out, b"\n")

    taking = threading.Thread(target=take)
    taking.start()
    try:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            process_group=0,
            preexec_fn=in_the_child,  # noqa: PLW1509 (it calls the kernel only)
        )
    except (OSError, subprocess.SubprocessError) as error:
        why = (getattr(error, "strerror", None) or str(error)).lower()
        raise DescriptionError(f"{subject}; {command[0]!r} cannot be started: {why}", "target") from None
    finally:
        os.close(born_out)
        join(taking)
        for each in (born_in, taken_in, taken_out):
            os.close(each)
    [frozen] = taken
    if isinstance(frozen, BaseException):
        end(process)
        if isinstance(frozen, CrosswindError):
            raise DescriptionError(f"{subject}; {frozen}", frozen.code, frozen.hint)
        raise frozen
    return process, frozen


def end(process: subprocess.Popen[bytes], others: Iterable[int] = ()) -> None:
    """End a command that we started, with all of its process group, and with what has left the group."""
    others = set(others) - {process.pid}
    for number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(OSError):
            os.killpg(process.pid, number)
        for pid in others:
            with contextlib.suppress(OSError):
                os.kill(pid, number)
        until = time.monotonic() + _PATIENCE_S
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_PATIENCE_S)
            while time.monotonic() < until and not all(processes.has_ended(pid) for pid in others):
                time.sleep(0.01)
            if all(processes.has_ended(pid) for pid in others):
                break
    with contextlib.suppress(OSError):
        os.killpg(process.pid, signal.SIGKILL)  # what was left of the group
