"""An interpreter of GOAL schedules that follows docs/concepts/engine.md alone, one action at a time.

It shares no code and no data structure with the engine. Times are in ns.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True)
class Op:
    """An operation: `calc` of `amount` ns, or `send` or `recv` of `amount` bytes to or from a peer (-1: any)."""

    kind: str
    amount: int
    peer: int
    tag: int
    requires: tuple[int, ...]
    irequires: tuple[int, ...]


@dataclass(frozen=True)
class Network:
    """Latency, overhead, gap and gap per byte, ns; bytes of a packet at most."""

    latency: int
    overhead: int
    gap: int
    per_byte: int
    packet_bytes: int

    def train(self, size: int) -> int:
        """Return how long the bytes after a packet's first take, ns."""
        return max(size - 1, 0) * self.per_byte


class DeadlockError(Exception):
    """Operations are left that cannot begin; `ranks` have them."""

    def __init__(self, ranks: list[int]) -> None:
        super().__init__(ranks)
        self.ranks = ranks


class UnaskedError(Exception):
    """A message arrived that no receive matches."""


@dataclass
class Rank:
    """A rank's operations and what has become of them."""

    me: int
    ops: list[Op]
    waits: list[int] = field(default_factory=list)
    frees_by_begin: list[list[int]] = field(default_factory=list)
    frees_by_end: list[list[int]] = field(default_factory=list)
    queue: list[int] = field(default_factory=list)  # sends and calcs that are free, in order
    posted: list[int] = field(default_factory=list)
    unexpected: list[tuple[int, int]] = field(default_factory=list)  # source and tag
    now: int = 0
    interface: int = 0  # it is free from then on
    inbox: list[tuple[int, int, int, int, bool, int]] = field(default_factory=list)
    """Arrival, source, number, bytes, whether it is the last packet, tag."""
    passed: int | None = None  # when the last packet passed the interface
    over: int | None = None  # an operation that ends now
    sending: tuple[int, list[int]] | None = None  # an operation and its packets left
    sent: int = 0
    last: str = ""  # what the processor did last
    end: dict[int, int] = field(default_factory=dict)
    busy: int = 0

    def __post_init__(self) -> None:
        self.waits = [len(set(op.requires)) + len(set(op.irequires)) for op in self.ops]
        self.frees_by_begin = [[] for _ in self.ops]
        self.frees_by_end = [[] for _ in self.ops]
        for number, op in enumerate(self.ops):
            for other in set(op.requires):
                self.frees_by_end[other].append(number)
            for other in set(op.irequires):
                self.frees_by_begin[other].append(number)

    def step(self, followers: list[int]) -> None:
        """Free what one step frees, and what receives free that it posts: sends first, then in the file's order."""
        free = []
        while followers:
            ready = []
            for number in followers:
                self.waits[number] -= 1
                if self.waits[number] == 0:
                    ready.append(number)
            followers = []
            for number in sorted(ready):
                if self.ops[number].kind != "recv":
                    free.append(number)
                    continue
                followers += self.frees_by_begin[number]
                if (place := self._match(number)) is None:
                    self.posted.append(number)
                else:
                    del self.unexpected[place]
                    self.end[number] = self.now
                    followers += self.frees_by_end[number]
        self.queue += sorted(free, key=lambda number: (self.ops[number].kind != "send", number))

    def _match(self, number: int) -> int | None:
        return next((place for place, message in enumerate(self.unexpected) if _fits(self.ops[number], message)), None)

    def next_packet(self, network: Network) -> tuple[int, tuple[int, int, int, int, bool, int]] | None:
        """Return when the next packet has passed the interface, and the packet."""
        if not self.inbox:
            return None
        packet = min(self.inbox)
        at = packet[0]
        if self.passed is not None:
            at = max(at, self.passed + max(network.gap, network.overhead) + network.train(packet[3]))
        return at, packet

    def when(self, network: Network) -> int | None:
        """Return when it acts next; None: not before a packet comes."""
        coming = self.next_packet(network)
        at = coming[0] if coming else None
        if self.over is not None or (at is not None and at <= self.now):
            return self.now
        if self.sending or self.queue:
            if self.sending is None and any(self.ops[number].kind == "calc" for number in self.queue):
                return self.now
            free = max(self.now, self.interface)
            return free if at is None else min(free, at)
        return at

    def act(self, network: Network) -> tuple[int, tuple[int, int, int, int, bool, int]] | None:
        """Do one thing; return a packet and its destination where it sends one."""
        if self.over is not None:
            number, self.over = self.over, None
            self.last, self.end[number] = self.ops[number].kind, self.now
            self.step(self.frees_by_end[number])
            return None
        coming = self.next_packet(network)
        here = coming is not None and coming[0] <= self.now
        first = self.ops[self.queue[0]].kind if self.queue else ""
        if self.sending is None and first == "calc" and (self.last == "calc" or not here):
            return self._compute(self.queue[0])
        if here:
            return self._handle(*coming, network)  # type: ignore[misc]
        if self.sending is None and first == "send" and self.interface > self.now:
            calc = next((number for number in self.queue if self.ops[number].kind == "calc"), None)
            if calc is not None:
                return self._compute(calc)
        if (self.sending or first == "send") and self.interface <= self.now:
            return self._send(network)
        if coming is not None and (coming[0] < self.interface or not (self.sending or self.queue)):
            return self._handle(*coming, network)
        self.now = self.interface
        return None

    def _compute(self, number: int) -> None:
        self.queue.remove(number)
        self.over = number
        self.step(self.frees_by_begin[number])
        self._work(self.ops[number].amount)

    def _work(self, ns: int) -> None:
        self.now += ns
        self.busy += ns

    def _handle(self, at: int, packet: tuple[int, int, int, int, bool, int], network: Network) -> None:
        self.inbox.remove(packet)
        self.passed, self.now, self.last = at, max(self.now, at), "handle"
        self._work(network.overhead)
        *_, is_last, tag = packet
        if not is_last:
            return
        message = (packet[1], tag)
        place = next((place for place, number in enumerate(self.posted) if _fits(self.ops[number], message)), None)
        if place is None:
            self.unexpected.append(message)
            return
        number = self.posted.pop(place)
        self.end[number] = self.now
        self.step(self.frees_by_end[number])

    def _send(self, network: Network) -> tuple[int, tuple[int, int, int, int, bool, int]]:
        begins = self.sending is None
        if self.sending is None:
            number = self.queue.pop(0)
            left, most = self.ops[number].amount, network.packet_bytes
            self.sending = number, [most] * (left // most) + ([left % most] if left % most or left == 0 else [])
        number, packets = self.sending
        size = packets.pop(0)
        if begins:
            self.step(self.frees_by_begin[number])
        self.interface = self.now + network.gap + network.train(size)
        self._work(network.overhead)
        self.sent += 1
        if not packets:
            self.sending, self.over = None, number
        arrival = self.now + network.train(size) + network.latency
        return self.ops[number].peer, (arrival, self.me, self.sent, size, not packets, self.ops[number].tag)


def _fits(op: Op, message: tuple[int, int]) -> bool:
    return op.peer in (-1, message[0]) and op.tag in (-1, message[1])


def interpret(schedule: list[list[Op]], network: Network) -> list[Rank]:
    """Return the ranks at the end of a schedule.

    Raises
    ------
    DeadlockError, UnaskedError
        When operations cannot begin; when a message has no receive.
    """
    ranks = [Rank(me, ops) for me, ops in enumerate(schedule)]
    for rank in ranks:
        first = [number for number, waits in enumerate(rank.waits) if waits == 0]
        for number in first:
            rank.waits[number] = 1
        rank.step(first)
    while due := [(at, rank.me) for rank in ranks if (at := rank.when(network)) is not None]:
        if sent := ranks[min(due)[1]].act(network):
            ranks[sent[0]].inbox.append(sent[1])
    if stuck := [rank.me for rank in ranks if len(rank.end) < len(rank.ops)]:
        raise DeadlockError(stuck)
    if any(rank.unexpected for rank in ranks):
        raise UnaskedError
    return ranks
