"""Stops and continues processes: by the freezer of their control group, or else by signals.

The watchdog knows what may be stopped before it is. Signals go through descriptors of the processes, so that a number
that was given to another process meanwhile is not hit.
"""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Protocol

from crosswind.cost import processes
from crosswind.cost.watchdog import Watchdog
from crosswind.errors import MeasurementError

_STOPPED_WITHIN_S = 0.02
_STOPPED = "TtZX"


class Hold(Protocol):
    """How one target is held."""

    how: str

    def refresh(self, members: set[int]) -> None:
        """Learn which processes there are now."""

    def stop(self) -> None:
        """Stop all, and return when they are."""

    def go_on(self) -> None:
        """Continue all."""


class BySignals:
    """SIGSTOP and SIGCONT. A process's parent sees both."""

    how = "signals"

    def __init__(self, watchdog: Watchdog) -> None:
        self._watchdog = watchdog
        self._descriptors: dict[int, int] = {}
        self._stopped = False

    def refresh(self, members: set[int]) -> None:
        """Learn which processes there are now; the watchdog is told first."""
        self._watchdog.knows(members)
        for gone in self._descriptors.keys() - members:
            os.close(self._descriptors.pop(gone))
        for pid in members - self._descriptors.keys():
            with contextlib.suppress(OSError):
                self._descriptors[pid] = os.pidfd_open(pid)

    def stop(self) -> None:
        """Stop all, and return when the kernel says that they are, or after 20 ms.

        Raises
        ------
        MeasurementError
            When one may not be signalled.
        """
        self._stopped = True
        for pid, descriptor in self._descriptors.items():
            try:
                signal.pidfd_send_signal(descriptor, signal.SIGSTOP)
            except ProcessLookupError:
                continue
            except PermissionError:
                message = f"process {pid} ({processes.name(pid)}) may not be stopped: it is another user's"
                raise MeasurementError(message, "not-permitted", "run as its user, or as root") from None
        until = time.monotonic() + _STOPPED_WITHIN_S
        for pid in self._descriptors:
            while (found := processes.stat(pid)) is not None and found[0] not in _STOPPED and time.monotonic() < until:
                pass

    def go_on(self) -> None:
        """Continue all that we stopped."""
        if self._stopped:
            for descriptor in self._descriptors.values():
                with contextlib.suppress(ProcessLookupError):
                    signal.pidfd_send_signal(descriptor, signal.SIGCONT)
        self._stopped = False

    def close(self) -> None:
        """Continue all and let go of the processes."""
        self.go_on()
        for descriptor in self._descriptors.values():
            os.close(descriptor)
        self._descriptors.clear()


class ByFreezer:
    """`cgroup.freeze` of a control group of version 2. Neither the processes nor their parents see it."""

    how = "freezer"

    def __init__(self, group: Path, watchdog: Watchdog) -> None:
        watchdog.knows(group=group)
        self._freeze = os.open(group / "cgroup.freeze", os.O_WRONLY | os.O_CLOEXEC)
        self._events = os.open(group / "cgroup.events", os.O_RDONLY | os.O_CLOEXEC)
        self._stopped = False

    def refresh(self, members: set[int]) -> None:
        """Do nothing: the group holds whatever is born in it."""

    def stop(self) -> None:
        """Freeze, and return when the kernel says that all are frozen, or after 20 ms."""
        self._stopped = True
        os.pwrite(self._freeze, b"1", 0)
        until = time.monotonic() + _STOPPED_WITHIN_S
        while b"frozen 1" not in os.pread(self._events, 4096, 0) and time.monotonic() < until:
            pass

    def go_on(self) -> None:
        """Thaw, if we froze it."""
        if self._stopped:
            os.pwrite(self._freeze, b"0", 0)
        self._stopped = False

    def close(self) -> None:
        """Thaw and let go of the group."""
        self.go_on()
        os.close(self._freeze)
        os.close(self._events)
