"""The file that says what is set on a device and how to take it back: written before anything is changed.

One file for each device of each network namespace, in /run/crosswind/filter. It is made whole or not at all, and only
where there is none: that is what keeps two filters off one device.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from crosswind.errors import DescriptionError
from crosswind.filter.kernel.messages import Traffic
from crosswind.filter.kernel.netlink import in_namespace
from crosswind.filter.kernel.snapshot import Saved
from crosswind.host.processes import has_ended, started

DIRECTORY = Path("/run/crosswind/filter")
VERSION = 1
_SO_NETNS_COOKIE = 71


@dataclass(frozen=True)
class Process:
    """A process; its start time distinguishes it from a later one with the same number."""

    pid: int
    started: int

    @classmethod
    def here(cls) -> Process:
        """Return this one."""
        return cls(os.getpid(), _started(os.getpid()) or 0)

    def lives(self) -> bool:
        """Whether it runs."""
        return _started(self.pid) == self.started


def _started(pid: int) -> int | None:
    return None if has_ended(pid) else started(pid)


@dataclass(frozen=True)
class State:
    """What was there and what is set.

    Parameters
    ----------
    boot : str
        The kernel's boot id: after another boot nothing of it is left.
    namespace : int
        Number of the network namespace, which another one may have later.
    cookie : int
        Its cookie, which no other has until the next boot.
    device : str
        The device's name.
    index : int
        Its number.
    owner : Process
        Which process holds it.
    saved : Saved
        The root qdisc that was there.
    limits : dict
        The device's limits as they were, those that are changed.
    set_limits : dict
        What they are set to.
    root : bool
        Whether the root qdisc is replaced.
    ifb : str
        The device to which what arrives is redirected; empty where that is left alone.
    rehearsal : str
        The device on which the way back is tried.
    """

    boot: str
    namespace: int
    cookie: int
    device: str
    index: int
    owner: Process
    saved: Saved
    limits: dict[str, int]
    set_limits: dict[str, int]
    root: bool
    ifb: str
    rehearsal: str

    @property
    def path(self) -> Path:
        """Its file."""
        return path_of(self.cookie, self.index)

    def write(self, *, again: bool = False) -> None:
        """Make the file; only where there is none, or, again, in place of the one that this process has made.

        Raises
        ------
        FileExistsError
            When there is one: a filter is on the device already.
        DescriptionError
            When the directory cannot be written.
        """
        told = {"version": VERSION, **asdict(self), "saved": _saved_to(self.saved)}
        new = DIRECTORY / f".{self.path.name}.{os.getpid()}"
        try:
            DIRECTORY.mkdir(mode=0o700, parents=True, exist_ok=True)
            with new.open("w", encoding="utf-8") as file:
                json.dump(told, file)
                file.flush()
                os.fsync(file.fileno())
            if again:
                new.replace(self.path)
            else:
                os.link(new, self.path)
        except FileExistsError:
            raise
        except OSError as error:
            message = f"{DIRECTORY}: {error.strerror}; what is set could not be taken back without it"
            raise DescriptionError(message, "state", "run it as root, with /run writable") from None
        finally:
            with contextlib.suppress(OSError):
                new.unlink()

    def forget(self) -> None:
        """Delete the file: nothing is left to take back."""
        self.path.unlink(missing_ok=True)


def path_of(cookie: int, index: int) -> Path:
    """Return the file of a device of a network namespace."""
    return DIRECTORY / f"{cookie}-{index}.json"


def read(path: Path) -> State | None:
    """Return what a file says, None where there is none.

    Raises
    ------
    DescriptionError
        When it is not a file of this version.
    """
    try:
        told = json.loads(path.read_text(encoding="utf-8"))
        if told.pop("version") != VERSION:
            raise KeyError("version")
        owner, saved = Process(**told.pop("owner")), _saved_from(told.pop("saved"))
        return State(**told, owner=owner, saved=saved)
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        hint = f"look at `tc qdisc show` and `ip link`, then delete {path}"
        raise DescriptionError(f"{path} is not a state file of version {VERSION}: {error}", "state", hint) from None


def all_there() -> Iterator[State]:
    """Yield the state of each device on which a filter is or was."""
    for path in sorted(DIRECTORY.glob("*.json")):
        if (state := read(path)) is not None:
            yield state


def boot() -> str:
    """Return the kernel's boot id."""
    return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="utf-8").strip()


def namespace_here() -> int:
    """Return the number of this thread's network namespace."""
    return Path("/proc/thread-self/ns/net").stat().st_ino


def cookie_here() -> int:
    """Return the cookie of this thread's network namespace; its number on a kernel before 5.14."""
    with socket.socket(socket.AF_UNIX) as one:
        try:
            return int.from_bytes(one.getsockopt(socket.SOL_SOCKET, _SO_NETNS_COOKIE, 8), sys.byteorder)
        except OSError:
            return namespace_here()


def namespace_path(number: int, cookie: int) -> Path | None:
    """Return where a network namespace can be entered; None where it does not exist any more."""
    names = [Path("/proc/thread-self/ns/net"), *Path("/run/netns").glob("*"), *Path("/proc").glob("[0-9]*/ns/net")]
    for name in names:
        with contextlib.suppress(OSError):
            if name.stat().st_ino == number and in_namespace(name, cookie_here) == cookie:
                return name
    return None


def _saved_to(saved: Saved) -> dict[str, object]:
    def packed(parts: tuple[Traffic, ...]) -> list[str]:
        return [part.packed().hex() for part in parts]

    return {"default": saved.default, "queues": packed(saved.queues), "filters": packed(saved.filters)}


def _saved_from(told: dict[str, Any]) -> Saved:
    def read_all(parts: list[str]) -> tuple[Traffic, ...]:
        return tuple(Traffic.read(bytes.fromhex(part)) for part in parts)

    return Saved(told["default"], read_all(told["queues"]), read_all(told["filters"]))
