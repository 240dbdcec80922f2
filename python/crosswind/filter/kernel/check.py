"""What each class gets over a path, before and after the classes are set: a proof for the operator.

Messages of both classes, of 64 bytes and 16 KB, there and back, alone; beside bulk of class local; beside bulk of both.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from crosswind.errors import DescriptionError
from crosswind.filter.kernel.far_end import address_of, dial
from crosswind.filter.kernel.selector import Selector
from crosswind.filter.kernel.traffic import SIZES, Job, Mark, Sender

SCHEMA_VERSION = 1
MessageClass = Literal["parallel", "local"]
CLASSES: tuple[MessageClass, ...] = ("parallel", "local")
PHASES: dict[str, tuple[MessageClass, ...]] = {"none": (), "local": ("local",), "both": ("parallel", "local")}
"""Whose bulk there is beside the messages."""
_P50, _P99 = 0.5, 0.99


class RoundTrips(TypedDict):
    """Messages of one size, there and back, s; None where too few were answered."""

    count: int
    p50_s: float | None
    p99_s: float | None


class OfClass(TypedDict):
    """What one class gets: the rate of its bulk, and its messages by size in bytes."""

    bulk_mb_per_s: float | None
    messages: dict[str, RoundTrips]


Measured = dict[str, dict[str, OfClass]]
"""By whose bulk there is, then by class."""


class FilterCheck(TypedDict):
    """What `crosswind filter check --json` prints."""

    schema_version: int
    kind: str
    peer: str
    connections: int
    seconds: float
    bulk: str
    before: Measured
    after: Measured | None
    lowered: dict[str, float | None] | None
    promised: dict[str, dict[str, float]] | None


@dataclass(frozen=True)
class Path:
    """A path to a far end, and how the classes are marked on it.

    Parameters
    ----------
    peer : str
        HOST:PORT of a `crosswind filter check --listen`.
    token : str, optional
        What both ends share; off loopback there must be one.
    marks : dict
        Of each class.
    connections : int
        Bulk connections of a class, 1 to 64.
    seconds : float
        How long each phase is measured, s, 0.2 to 600.
    arriving : bool
        Whether bulk comes from the far end instead of going there.
    """

    peer: str
    token: str | None = None
    marks: dict[MessageClass, Mark] = field(default_factory=dict)
    connections: int = 8
    seconds: float = 2.0
    arriving: bool = False

    def __post_init__(self) -> None:
        address_of(self.peer, "--peer", self.token)
        if not 1 <= self.connections <= 64:
            raise DescriptionError(f"connections is {self.connections}; it must be 1 to 64", "argument")
        if not 0.2 <= self.seconds <= 600:
            raise DescriptionError(f"seconds is {self.seconds:g}; it must be 0.2 to 600", "argument")

    def job(self, message_class: MessageClass, what: Literal["bulk", "answer"]) -> Job:
        """Return what a sender of a class does."""
        host, port = address_of(self.peer, "--peer", self.token)
        mark = self.marks.get(message_class, Mark())
        if what == "answer":
            return Job("answer", host, port, self.token, mark, seconds=self.seconds)
        bulk: Literal["give", "take"] = "give" if self.arriving else "take"
        return Job(bulk, host, port, self.token, mark, self.connections, seconds=self.seconds)


def mark_of(selectors: Sequence[Selector]) -> Mark:
    """Return how a sender is marked so that the first selector of its class takes it."""
    if not selectors:
        return Mark()
    first = selectors[0]
    match first.kind:
        case "port":
            return Mark(port=first.value)
        case "dscp":
            return Mark(dscp=first.value)
        case "mark":
            return Mark(socket_mark=first.value)
        case "cgroup":
            return Mark(cgroup=first.path)


@contextmanager
def reachable(path: Path) -> Iterator[None]:
    """Have the far end listen at the ports that mark a class, too.

    Raises
    ------
    AgentLost
        When it cannot be reached, or cannot listen there.
    """
    address = address_of(path.peer, "--peer", path.token)
    ports = {mark.port for mark in path.marks.values() if mark.port} - {address[1]}
    with ExitStack() as stack:
        for port in sorted(ports):
            stack.enter_context(dial(address, path.token, {"do": "listen", "port": port}))
        yield


def phase(path: Path, bulk: Sequence[MessageClass]) -> dict[str, OfClass]:
    """Return what each class gets beside bulk of some.

    Returns
    -------
    dict
        By class: `bulk_mb_per_s` (of all its connections; None without bulk) and `messages`, by size in bytes: `count`,
        `p50_s`, `p99_s`, there and back.
    """
    with ExitStack() as stack:
        senders = {one: stack.enter_context(Sender(path.job(one, "bulk"))) for one in bulk}
        asking = {one: stack.enter_context(Sender(path.job(one, "answer"))) for one in CLASSES}
        every = [*senders.values(), *asking.values()]
        for one in every:
            one.ready()
        for one in every:
            one.go()
        rates = {name: sum(one.found()["mb_per_s"]) for name, one in senders.items()}
        times = {name: one.found()["times_s"] for name, one in asking.items()}
    return {
        one: {
            "bulk_mb_per_s": rates.get(one),
            "messages": {str(size): _spread(times[one][str(size)]) for size in SIZES},
        }
        for one in CLASSES
    }


def measured(path: Path, tell: Callable[[str], None] = lambda _: None) -> Measured:
    """Return what each class gets, by whose bulk there is: "none", "local", "both"."""
    found = {}
    with reachable(path):
        for name, bulk in PHASES.items():
            tell(f"beside bulk of {name}" if bulk else "without bulk")
            found[name] = phase(path, bulk)
    return found


def _spread(times: Sequence[float]) -> RoundTrips:
    if len(times) < 2:
        return {"count": len(times), "p50_s": times[0] if times else None, "p99_s": None}
    cuts = statistics.quantiles(times, n=100, method="inclusive")
    return {"count": len(times), "p50_s": cuts[round(_P50 * 100) - 1], "p99_s": cuts[round(_P99 * 100) - 1]}


def lowered(before: Measured, after: Measured) -> dict[str, float | None]:
    """Return how many times shorter parallel messages take beside bulk of class local, by size: medians."""
    found: dict[str, float | None] = {}
    for size in map(str, SIZES):
        was, is_now = (one["local"]["parallel"]["messages"][size]["p50_s"] for one in (before, after))
        found[size] = was / is_now if was and is_now else None
    return found
