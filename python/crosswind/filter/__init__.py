"""The message filter: a proxy on each host that queues the traffic of two classes, so that small messages go first.

Framing, queues and credits are Rust (`crates/live/src/filter`); this describes what is wanted and looks on. The
settings that give the same weights where the kernel or the card can do it: `crosswind.filter.export`.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Literal, TypedDict

from crosswind import _core
from crosswind.errors import DescriptionError

MessageClass = Literal["parallel", "local"]
Discipline = Literal["fifo", "threshold", "drr", "strict"]
Credits = Literal["none", "receiver"]

DEFAULT_DISCIPLINE: Discipline = "drr"
DEFAULT_FRAME_BYTES = 16_384
DEFAULT_WINDOW_BYTES = 512 * 1024
DEFAULT_CONNECTIONS = 256


class ClassCounters(TypedDict):
    """What was done for messages of one class."""

    sent_frames: int
    sent_bytes: int
    received_frames: int
    received_bytes: int
    waiting_frames: int
    longest_wait_s: float
    waited_s: float
    credits_sent: int


class FilterCounters(TypedDict):
    """What a filter has done so far; bytes, and seconds."""

    parallel: ClassCounters
    local: ClassCounters
    peers: int
    connections: int
    connections_made: int
    refused: int
    peers_dropped: int
    held_bytes: int
    paced_frames: int
    late_s: float


@dataclass(frozen=True)
class Forward:
    """A port whose connections go to a target that a peer reaches, as with `ssh -L`.

    Parameters
    ----------
    message_class : str
        Whose messages its connections carry: "parallel" or "local".
    listen : str
        HOST:PORT here; port 0 takes a free one.
    target : str
        HOST:PORT as the peer reaches it.
    peer : int
        Place of the peer among those that are dialled.
    """

    message_class: MessageClass
    listen: str
    target: str
    peer: int = 0

    @classmethod
    def parse(cls, text: str, message_class: MessageClass, peers: Sequence[str]) -> Forward:
        """Return what PORT=HOST:PORT says, or PORT=HOST:PORT@PEER where there are several peers.

        PORT may be HOST:PORT too: where to listen, if not on loopback.

        Raises
        ------
        DescriptionError
            When it says nothing of the kind, or the peer is not one that is dialled.

        Examples
        --------
        >>> Forward.parse("8001=db:5432", "local", ["10.0.0.2:7200"]).target
        'db:5432'
        """
        option = f"--{message_class}"
        port, sign, rest = text.partition("=")
        target, _, named = rest.partition("@")
        hint = f"such as {option} 8001=localhost:5432"
        if not sign or not port or ":" not in target:
            raise DescriptionError(f"{option} is {text!r}; it must be PORT=HOST:PORT", "argument", hint)
        if not peers:
            message = f"{option} {text} needs a peer to go through"
            raise DescriptionError(message, "argument", "--peer HOST:PORT names it")
        if named and named not in peers:
            message = f"{option} is {text!r}, but {named!r} is no peer"
            raise DescriptionError(message, "argument", f"the peers are {', '.join(peers)}")
        if not named and len(peers) > 1:
            raise DescriptionError(
                f"{option} is {text!r}; with {len(peers)} peers it must say which", "argument", "PORT=HOST:PORT@PEER"
            )
        listen = port if ":" in port else f"127.0.0.1:{port}"
        number = listen.rpartition(":")[2]
        if not number.isdecimal() or int(number) > 65535:
            raise DescriptionError(f"{option} is {text!r}; {number!r} is no port", "argument", hint)
        return cls(message_class, listen, target, peers.index(named) if named else 0)


@dataclass(frozen=True)
class Queues:
    """How the queues are served; the fields are those of `[policy]` in an experiment of kind streams.

    Parameters
    ----------
    queue : str
        "fifo", "threshold", "drr" or "strict".
    threshold : int
        Parallel frames (threshold) or bytes (drr) to one of local while both wait, at least 1.
    literal : bool
        As the paper prints it, which starves.
    credits : str
        "none", or "receiver": this end limits what comes of class local while parallel frames come.
    receive_frames : int
        Frames of each class that this end holds, at least 1.
    receive_threshold : int
        Local frames that may be on their way to here and have not arrived meanwhile, 1 to `receive_frames`.
    idle_s : float
        Time without a parallel frame after which local senders get their full credit again, s.
    """

    queue: Discipline = DEFAULT_DISCIPLINE
    threshold: int = 4
    literal: bool = False
    credits: Credits = "none"
    receive_frames: int = 16
    receive_threshold: int = 1
    idle_s: float = 0.01


@dataclass
class Filter:
    """A filter at work until `stop`, or the end of a `with`.

    Parameters
    ----------
    forwards : sequence of Forward
        What is forwarded through the peers.
    peers : sequence of str
        HOST:PORT of the filters that are dialled, again and again.
    listen : str, optional
        HOST:PORT where peers connect; None: no listener.
    queues : Queues
        How frames are chosen.
    frame_bytes : int
        Longest frame, 1 to 262144 bytes.
    rate_mb_per_s, rate_in_mb_per_s : float, optional
        The link that frames leave (come) through, MB/s, emulated, or a real one shaped just below its rate.
    pad : bool
        Each frame takes a whole frame's time on such a link.
    token : str, optional
        What both ends share, 16 bytes or more. Off loopback there must be this or `tls`.
    tls : path, optional
        This node's directory of certificates (`crosswind cert`): the peer must have one of the same set that names the
        host which is dialled, and all between the two is sealed.
    connections : int
        Most connections of applications at a time.
    window_bytes : int
        Bytes of one connection that may be under way to here. `connections * window_bytes` bounds the memory.
    log : path, optional
        Where its log goes; default stderr.

    Raises
    ------
    DescriptionError
        When a value is out of its range, or an address is off loopback and there is neither token nor `tls`.
    MeasurementError
        When a port can't be had.

    Examples
    --------
    >>> with Filter(listen="127.0.0.1:0") as there:
    ...     with Filter([Forward("parallel", "127.0.0.1:0", "127.0.0.1:9")], [there.address]) as here:
    ...         here.wait_for_peers(10.0), here.counters()["peers"]
    (True, 1)
    """

    forwards: Sequence[Forward] = ()
    peers: Sequence[str] = ()
    listen: str | None = None
    queues: Queues = field(default_factory=Queues)
    frame_bytes: int = DEFAULT_FRAME_BYTES
    rate_mb_per_s: float | None = None
    rate_in_mb_per_s: float | None = None
    pad: bool = False
    token: str | None = field(default=None, repr=False)
    tls: str | Path | None = None
    connections: int = DEFAULT_CONNECTIONS
    window_bytes: int = DEFAULT_WINDOW_BYTES
    log: Path | None = None

    def __post_init__(self) -> None:
        config = {
            "listen": self.listen,
            "peers": list(self.peers),
            "forwards": [
                {"class": one.message_class, "listen": one.listen, "target": one.target, "peer": one.peer}
                for one in self.forwards
            ],
            "policy": vars(self.queues),
            "frame_bytes": self.frame_bytes,
            "pad": self.pad,
            "rate_mb_per_s": self.rate_mb_per_s,
            "rate_in_mb_per_s": self.rate_in_mb_per_s,
            "window_bytes": self.window_bytes,
            "connections": self.connections,
            "log": str(self.log) if self.log else None,
        }
        self._filter = _core.Filter(json.dumps(config), self.token, str(self.tls) if self.tls else None)
        self._last: FilterCounters | None = None

    @property
    def address(self) -> str:
        """HOST:PORT where peers connect; empty without a listener."""
        return self._filter.address or ""

    @property
    def ports(self) -> list[str]:
        """HOST:PORT of each forward."""
        return self._filter.ports

    def wait_for_peers(self, patience_s: float) -> bool:
        """Wait until all dialled peers are there, at most `patience_s`; whether they are."""
        return self._filter.wait_for_peers(patience_s)

    @property
    def at_work(self) -> bool:
        """Whether it still works."""
        return self._last is None and self._filter.is_at_work()

    def counters(self) -> FilterCounters:
        """Return what it has done so far.

        Returns
        -------
        dict
            `parallel` and `local` (frames and bytes sent and received, frames that wait, longest and total wait in s,
            credits sent), `peers`, `connections`, `connections_made`, `refused`, `peers_dropped`, `held_bytes`,
            `paced_frames`, `late_s` (how late frames left an emulated link, all together).
        """
        if self._last is not None:
            return self._last
        found: FilterCounters = json.loads(self._filter.counters())
        return found

    def stop(self) -> FilterCounters:
        """End it, all its connections with it; what it has done."""
        if self._last is None:
            last: FilterCounters = json.loads(self._filter.stop())
            self._last = last
        return self._last

    def __enter__(self) -> Filter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
