"""The hosts of a file, as `measure_cluster` calls them: on each, a task of a farm stays and takes calls.

A farm gives a task to whichever node asks for one, so that no node can be chosen. Here every node gets a task that
reports its node to the root over a connection of its own, and then serves calls until the root ends it. As long as it
stays, its node computes nothing else, and takes no second one.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any

from crosswind.cluster.hosts import Host
from crosswind.errors import AgentLost, DescriptionError
from crosswind.measure.cluster.calls import Secret, masked, receive, request, send, value
from crosswind.measure.cluster.handshake import UNAUTHENTICATED, meet
from crosswind.measure.cluster.resident import reside
from crosswind.run.deployment import Placing
from crosswind.run.farm import Farm
from crosswind.run.hosts import OnHosts

GATHER_S = 30.0
"""How long hosts are waited for, s; those that have not connected by then count as lost."""
_START = "on each: crosswind serve --hosts FILE --name HOST --token-file FILE"
_LOOK_S = 0.5
_FULL = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


class _Line:
    """A connection to a host; one call at a time."""

    def __init__(self, host: str, line: socket.socket, key: bytes) -> None:
        self._key = key
        self.address: str = line.getpeername()[0]
        self.is_alive = True
        self._host, self._line = host, line
        self._thread = ThreadPoolExecutor(1, f"crosswind-{host}")

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._thread.submit(self._call, request(function, arguments))

    def _call(self, asked: Mapping[str, Any]) -> Any:
        try:
            send(self._line, masked(asked, self._key))
            answered = receive(self._line)
        except (AgentLost, OSError):
            self.is_alive = False
            raise AgentLost(f"{self._host} went away", "host-lost") from None
        return value(answered)

    def close(self) -> None:
        self.is_alive = False
        with contextlib.suppress(OSError):
            self._line.shutdown(socket.SHUT_RDWR)  # a call under way gets no answer
        self._line.close()
        self._thread.shutdown(wait=False, cancel_futures=True)


class _Here:
    """The root's own host."""

    is_alive = True

    def __init__(self, address: str) -> None:
        self.address = address
        self._thread = ThreadPoolExecutor(1, "crosswind-here")

    def submit(self, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        return self._thread.submit(function, *arguments)

    def close(self) -> None:
        self._thread.shutdown(wait=False, cancel_futures=True)


class HostsCluster:
    """The hosts of a file, on each of which `crosswind serve --hosts` waits. A context manager.

    Parameters
    ----------
    hosts : OnHosts
        The file, with the file of the token that all share.
    gather_s : float
        How long hosts are waited for, s.

    Raises
    ------
    DescriptionError
        When certificates are given: calls are not sealed.
    """

    secret = Secret
    """What marks a text that must not be read on its way to a host."""

    def __init__(self, hosts: OnHosts, gather_s: float = GATHER_S) -> None:
        if hosts.tls is not None:
            message = "certificates do not go with measurements on hosts of a file: what is asked is not sealed"
            raise DescriptionError(message, "argument", "--token-file FILE")
        self._hosts, self._gather_s = hosts, gather_s
        self._unauthenticated = threading.BoundedSemaphore(UNAUTHENTICATED)
        self._lines: dict[str, _Line | _Here] = {}
        self._held, self._is_over = threading.Lock(), False
        self._stack = contextlib.ExitStack()

    @classmethod
    def load(cls, path: str | Path, token_file: str | Path | None, *, allow_loose_token: bool = False) -> HostsCluster:
        """Return the cluster of a hosts.toml, whose hosts share the token in a file.

        Raises
        ------
        DescriptionError
            When the file is wrong, or no token's file is given.
        """
        token = Path(token_file) if token_file is not None else None
        return cls(OnHosts.load(path, Placing(token_file=token, allow_loose_token=allow_loose_token)))

    @property
    def name(self) -> str:
        """Where the root listens."""
        return str(self._hosts.door(self._hosts.hosts.root))

    @property
    def hosts(self) -> Mapping[str, str]:
        """Each host's name and address; "" where one has not come."""
        names = [str(row["name"]) for row in self._hosts.hosts.rows]
        return {name: self._lines[name].address if name in self._lines else "" for name in names}

    @property
    def places(self) -> list[Host]:
        """The hosts that a node of a platform may be on."""
        return [Host(name, name, address, frozenset({name, address})) for name, address in self.hosts.items()]

    def submit(self, host: str, function: Callable[..., Any], *arguments: Any) -> Future[Any]:
        """Call one of the functions of `crosswind.measure.cluster.calls.MODULES` on a host."""
        if host not in self._lines:
            raise AgentLost(f"{host} was not there within {self._gather_s:g} s", "host-lost", _START)
        return self._lines[host].submit(function, *arguments)

    def is_alive(self, host: str) -> bool:
        """Whether calls still reach a host."""
        return host in self._lines and self._lines[host].is_alive

    def __enter__(self) -> HostsCluster:
        with contextlib.ExitStack() as stack:
            own = self._hosts.hosts.root
            place = self.name.rpartition(":")[0].strip("[]")
            self._lines[own] = _Here(place)
            door = stack.enter_context(_open_door(place))
            farm = stack.enter_context(Farm(launch=self._hosts, order="arrival", buffer_tasks=1))
            stack.callback(self._close, door)  # before the farm ends: its tasks end with their lines
            threading.Thread(target=self._attend, args=(door,), name="crosswind-door", daemon=True).start()
            try:
                self._gather(farm, door.getsockname()[:2])
            except BaseException:  # there is nothing to wait for
                farm.interrupt()
                raise
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.__exit__(kind, error, trace)

    def _gather(self, farm: Farm, root: tuple[str, int]) -> None:
        """Send a task to every node, and again while one has not come: a node may hold two."""
        until = time.monotonic() + self._gather_s
        wanted = len(self.hosts)
        while len(self._lines) < wanted and time.monotonic() < until:
            for _ in range(wanted - len(self._lines)):
                farm.submit(reside, root)
            waited = time.monotonic() + _LOOK_S
            while len(self._lines) < wanted and time.monotonic() < waited:
                time.sleep(0.02)
        if len(self._lines) < 2:
            raise AgentLost(f"no other host was there within {self._gather_s:g} s", "no-hosts", _START)

    def _attend(self, door: socket.socket) -> None:
        while True:
            self._unauthenticated.acquire()  # beyond the limit, connections wait in the kernel
            try:
                line, _ = door.accept()
            except OSError as error:
                self._unauthenticated.release()
                if error.errno in _FULL:  # no descriptor is free: one will be
                    time.sleep(_LOOK_S)
                    continue
                return  # it was closed
            threading.Thread(target=self._greet, args=(line,), name="crosswind-greeting", daemon=True).start()

    def _greet(self, line: socket.socket) -> None:
        try:
            session = meet(line, self._hosts.token or "", frozenset(self.hosts))
        except (AgentLost, OSError):
            line.close()
            return
        finally:
            self._unauthenticated.release()
        with self._held:
            if not self.is_alive(session.name) and not self._is_over:
                line.settimeout(None)
                line.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
                self._lines[session.name] = _Line(session.name, line, session.key)
            else:
                line.close()

    def _close(self, door: socket.socket) -> None:
        with contextlib.suppress(OSError):
            door.shutdown(socket.SHUT_RDWR)  # or what waits in `accept` keeps it open
        door.close()
        with self._held:
            self._is_over = True
        for line in self._lines.values():
            line.close()


def _open_door(place: str) -> socket.socket:
    try:
        return socket.create_server((place, 0), family=socket.AF_INET6 if ":" in place else socket.AF_INET)
    except OSError as error:
        message = f"the root cannot listen on {place}: {error.strerror or error}"
        raise DescriptionError(message, "listen", "the file of hosts says where the root listens") from None
