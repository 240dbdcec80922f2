"""All visits of a cluster, round after round: pairs without a common host at the same time, what is done kept at once.

A host that dies is named and visited no more, a visit that fails is named, and the others continue.
"""

from __future__ import annotations

import contextlib
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from crosswind.errors import AgentLost, CrosswindError, DescriptionError
from crosswind.measure.cluster import at_host
from crosswind.measure.cluster.pairs import Visit
from crosswind.measure.cluster.rounds import rounds
from crosswind.terminal.progress import duration
from crosswind.terminal.waiting import wait_for_all

Progress = Callable[[float, str], None]
Keep = Callable[[Visit, bytes], None]

LOOK_S = 0.5
"""How often it is looked whether a host that owes an answer is still there."""
START_S = 60.0
"""Most that a call may take beyond what it measures: starting Python on a host with a slow file system."""


class Future(Protocol):
    """What a call on a host will give; futures of `concurrent.futures` and of Dask are such."""

    def result(self, timeout: float | None = None) -> Any:
        """Return it, or raise what the call raised; TimeoutError when it takes longer."""


class Cluster(Protocol):
    """Hosts on which functions can be called: one call at a time on each, all on a host in the same process."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def hosts(self) -> Mapping[str, str]:
        """Each host's name, and the address at which the others reach it."""

    def submit(self, host: str, function: Callable[..., Any], *arguments: Any) -> Future:
        """Call a function of `crosswind.measure.cluster.at_host` on a host."""

    def is_alive(self, host: str) -> bool:
        """Whether calls still reach a host."""


def call(
    cluster: Cluster,
    host: str,
    function: Callable[..., Any],
    *arguments: Any,
    within_s: float,
    beside: str | None = None,
    ended: threading.Event | None = None,
) -> Any:
    """Call a function on a host; give up when it, or the one beside it, goes away, after `within_s`, or on `ended`.

    Raises
    ------
    AgentLost
        When no answer will come.
    CrosswindError
        What the function raised.
    """
    until = time.monotonic() + within_s
    try:
        future = cluster.submit(host, function, *arguments)
        while True:
            try:
                return future.result(LOOK_S)
            except TimeoutError:
                gone = next((one for one in (host, beside) if one and not cluster.is_alive(one)), None)
                if gone:
                    raise AgentLost(f"{gone} went away", "host-lost") from None
                if ended is not None and ended.is_set():
                    raise AgentLost("interrupted", "interrupted") from None
                if time.monotonic() > until:
                    raise AgentLost(f"{host} does not answer", "host-silent", "is it overloaded?") from None
    except CrosswindError:
        raise
    except Exception as error:  # whatever carries the calls says in its own way that it could not
        raise AgentLost(f"{host}: {error or type(error).__name__}", "host-lost") from error


@dataclass
class Tour:
    """Visits under way.

    Attributes
    ----------
    cluster : Cluster
        Where.
    arguments : mapping
        Of each measurement, as `crosswind.measure` takes them; `max_seconds` among them.
    keep : callable
        Called with each visit and the content of its `measurement.parquet`, from several threads.
    progress : callable, optional
        Called with the fraction done and a message with the time left.
    lost : list of str
        Hosts that went away.
    failed : dict
        What went wrong, by visit.
    """

    cluster: Cluster
    arguments: Mapping[str, Any]
    keep: Keep
    progress: Progress | None = None
    lost: list[str] = field(default_factory=list)
    failed: dict[Visit, str] = field(default_factory=dict)
    _peers: dict[str, str] = field(default_factory=dict)
    _ended: threading.Event = field(default_factory=threading.Event)
    _done: int = 0
    _held: threading.Lock = field(default_factory=threading.Lock)

    def go(self, visits: Sequence[Visit], at_once: int | None = None) -> None:
        """Make all visits.

        Raises
        ------
        KeyboardInterrupt
            After ending what is under way; what was kept stays.
        """
        by_pair: dict[tuple[str, str], list[Visit]] = {}
        for visit in visits:
            by_pair.setdefault(visit.pair, []).append(visit)
        planned = rounds(by_pair, at_once)
        began = time.monotonic()
        with ThreadPoolExecutor(max(map(len, planned), default=1), "crosswind-pair") as threads:
            try:
                for number, one in enumerate(planned, 1):
                    self._tell(number, len(planned), len(visits), time.monotonic() - began)
                    wait_for_all(visited := [threads.submit(self._visit_pair, by_pair[pair]) for pair in one])
                    for each in visited:
                        each.result()
            except BaseException:
                self._end()
                raise
        for visit in self.failed:
            self._lose(visit)  # a host's end may be seen only after its last call
        if self.progress:
            self.progress(1.0, f"{self._done} of {len(visits)} measured")

    def _tell(self, number: int, of: int, visits: int, elapsed_s: float) -> None:
        if not self.progress:
            return
        over = (number - 1) / of
        left = f", about {duration(elapsed_s / over - elapsed_s)} left" if over else ""
        self.progress(over, f"round {number} of {of}, {self._done} of {visits} measured{left}")

    def _visit_pair(self, visits: Sequence[Visit]) -> None:
        for visit in visits:
            gone = [host for host in (visit.at, visit.peer) if host in self.lost]
            if gone or self._ended.is_set():
                self.failed[visit] = f"{gone[0]} went away" if gone else "interrupted"
                continue
            try:
                content = self._visit(visit)
            except CrosswindError as error:
                self._lose(visit)
                self.failed[visit] = str(error)
            else:
                self._keep(visit, content)

    def _keep(self, visit: Visit, content: bytes) -> None:
        """Keep what a host sent; what is no measurement costs this visit only."""
        try:
            self.keep(visit, content)
        except CrosswindError as error:
            if not isinstance(error, DescriptionError):  # it cannot be written
                raise
            self.failed[visit] = f"{visit.at} sent no measurement: {error}"
        except Exception as error:
            self.failed[visit] = f"{visit.at} sent no measurement: {type(error).__name__}: {error}"
        else:
            with self._held:
                self._done += 1

    def _visit(self, visit: Visit) -> bytes:
        seconds = float(self.arguments["max_seconds"]) + START_S
        # Of this visit alone; it travels as the calls do, masked where those may be read on the way.
        token = getattr(self.cluster, "secret", str)(secrets.token_hex(16))
        peer = self._call(visit.peer, at_host.start_peer, self.cluster.hosts[visit.peer], 2 * seconds, token)
        self._peers[peer] = visit.peer
        try:
            arguments = {**self.arguments, "direction": visit.direction, "name": f"{visit.at} with {visit.peer}"}
            arguments["token"] = token
            content: bytes = self._call(visit.at, at_host.measured, peer, arguments, seconds, beside=visit.peer)
            return content
        finally:
            if self._peers.pop(peer, None):
                with contextlib.suppress(CrosswindError):  # it ends after its time, too
                    self._call(visit.peer, at_host.end_peer, peer)

    def _call(self, host: str, function: Callable[..., Any], *arguments: Any, beside: str | None = None) -> Any:
        """Call a function on a host; give up when it, or the one beside it, goes away."""
        within_s = 2 * (float(self.arguments["max_seconds"]) + START_S)
        return call(self.cluster, host, function, *arguments, within_s=within_s, beside=beside)

    def _lose(self, visit: Visit) -> None:
        for host in (visit.at, visit.peer):
            if host not in self.lost and not self.cluster.is_alive(host):
                self.lost.append(host)

    def _end(self) -> None:
        """End what is under way: a measurement whose peer is gone ends by itself."""
        self._ended.set()
        for address, host in list(self._peers.items()):
            if self._peers.pop(address, None):
                with contextlib.suppress(Exception):
                    self.cluster.submit(host, at_host.end_peer, address).result(START_S)
