"""GOAL schedules with several processors and interfaces per rank, run by the rules of `docs/concepts/engine.md`.

Written apart from the simulator: time advances to the next moment at which something can happen. At a moment the first
thing that applies is done, until nothing applies.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Network:
    latency: int
    overhead: int
    gap: int
    per_byte: int
    packet_bytes: int = 1_000_000_000
    rendezvous_above: int | None = None

    def train(self, size: int) -> int:
        return (size - 1) * self.per_byte


@dataclass
class Op:
    kind: str
    amount: int
    peer: int = 0
    tag: int = 0
    cpu: int = 0
    nic: int = 0
    requires: list[int] = field(default_factory=list)
    irequires: list[int] = field(default_factory=list)


def text_of(schedule: list[list[Op]]) -> str:
    lines = [f"num_ranks {len(schedule)}"]
    for rank, ops in enumerate(schedule):
        lines.append(f"rank {rank} {{")
        for number, op in enumerate(ops):
            peer = f"b {'to' if op.kind == 'send' else 'from'} {op.peer} tag {op.tag}" if op.kind != "calc" else ""
            nic = f" nic {op.nic}" if op.kind != "calc" else ""
            lines.append(f"l{number}: {op.kind} {op.amount}{peer} cpu {op.cpu}{nic}")
        for number, op in enumerate(ops):
            lines += [f"l{number} requires l{other}" for other in op.requires]
            lines += [f"l{number} irequires l{other}" for other in op.irequires]
        lines.append("}")
    return "\n".join(lines) + "\n"


@dataclass
class Packet:
    source: int
    number: int
    tag: int
    size: int
    last: bool
    cpu: int
    nic: int
    time: int
    receive: int | None = None
    handled: bool = False
    matched: bool = False
    send: int | None = None


class Rank:
    def __init__(self, ops: list[Op], cpus: int, nics: int) -> None:
        self.ops = ops
        self.begun, self.over, self.freed = (set[int]() for _ in range(3))
        self.queues: list[list[int]] = [[] for _ in range(cpus)]
        self.order: dict[int, int] = {}
        self.posted: list[int] = []
        self.unexpected: list[Packet] = []
        self.arriving: list[Packet] = []
        self.passing: list[Packet] = []
        self.waiting: list[list[Packet]] = [[] for _ in range(cpus)]
        self.doing: list[tuple[int, str, Any, int] | None] = [None] * cpus
        self.sending: list[tuple[int, int] | None] = [None] * cpus
        self.computed = [False] * cpus
        self.out, self.passed = [0] * nics, [None] * nics
        self.sent = self.end = self.busy = self.began = 0
        self.matched: list[Packet] = []
        self.release()

    def release(self) -> None:
        """Post the receives that have become free, until none is left; then queue the rest."""
        batch: list[int] = []
        while True:
            free = [
                at
                for at, op in enumerate(self.ops)
                if at not in self.freed and self.over.issuperset(op.requires) and self.begun.issuperset(op.irequires)
            ]
            self.freed.update(free)
            receives = [at for at in free if self.ops[at].kind == "recv"]
            batch += [at for at in free if self.ops[at].kind != "recv"]
            for at in receives:
                self.begun.add(at)
                found = next((one for one in self.unexpected if self.asks(at, one)), None)
                if found is None:
                    self.posted.append(at)
                    continue
                self.unexpected.remove(found)
                if found.handled:
                    self.over.add(at)
                    self.match(found)
                found.receive = at
            if not receives:
                break
        for at in sorted(batch, key=lambda at: (self.ops[at].kind != "send", at)):
            self.queues[self.ops[at].cpu].append(at)
            self.order[at] = len(self.order)

    def match(self, packet: Packet) -> None:
        """Let the send of a rendezvous message end."""
        if packet.send is not None and not packet.matched:
            packet.matched = True
            self.matched.append(packet)

    def asks(self, at: int, packet: Packet) -> bool:
        op = self.ops[at]
        return op.peer in (-1, packet.source) and op.tag in (-1, packet.tag)

    def happened(self, at: int, what: set[int]) -> None:
        what.add(at)
        self.release()


class Run:
    def __init__(self, schedule: list[list[Op]], network: Network) -> None:
        cpus = 1 + max(op.cpu for ops in schedule for op in ops)
        nics = 1 + max(op.nic for ops in schedule for op in ops)
        self.ranks = [Rank(ops, cpus, nics) for ops in schedule]
        self.network, self.now = network, 0

    def run(self) -> list[Rank] | None:
        """Return the ranks at the end; `None` if operations are left, or messages."""
        while True:
            while self.first_thing():
                pass
            times = [time for rank in self.ranks for time in self.times(rank) if time > self.now]
            if not times:
                done = all(len(rank.over) == len(rank.ops) and not rank.unexpected for rank in self.ranks)
                return self.ranks if done else None
            self.now = min(times)

    def times(self, rank: Rank) -> list[int]:
        packets = [packet.time for packet in rank.arriving + rank.passing]
        return packets + [doing[0] for doing in rank.doing if doing] + rank.out

    def first_thing(self) -> bool:
        return (
            self.send_ends()
            or self.packet_arrives()
            or self.activity_ends()
            or self.packet_passes()
            or self.processor_chooses()
        )

    def send_ends(self) -> bool:
        """End the send of a rendezvous message that has matched."""
        for rank in self.ranks:
            if rank.matched:
                packet = rank.matched.pop()
                sender = self.ranks[packet.source]
                sender.end = self.now
                sender.happened(packet.send, sender.over)
                return True
        return False

    def packet_arrives(self) -> bool:
        for rank in self.ranks:
            due = [packet for packet in rank.arriving if packet.time == self.now]
            if due:
                packet = min(due, key=lambda one: (one.source, one.number))
                rank.arriving.remove(packet)
                before = rank.passed[packet.nic]
                if before is not None:
                    packet.time = max(self.now, before + self.network.gap + self.network.train(packet.size))
                rank.passed[packet.nic] = packet.time
                rank.passing.append(packet)
                return True
        return False

    def activity_ends(self) -> bool:
        for rank in self.ranks:
            for cpu, doing in sorted(enumerate(rank.doing), key=lambda one: one[1] is not None and one[1][3]):
                if doing and doing[0] == self.now:
                    _, what, of, _ = doing
                    rank.doing[cpu] = None
                    rank.end = self.now
                    if what == "handles" and of.last:
                        of.handled = True
                        if of.receive is not None:
                            rank.match(of)
                            rank.happened(of.receive, rank.over)
                    elif what == "sends":
                        rank.sending[cpu] = of if of[1] else None
                        if not of[1] and not self.waits(rank.ops[of[0]]):
                            rank.happened(of[0], rank.over)
                    elif what == "computes":
                        rank.happened(of, rank.over)
                    return True
        return False

    def packet_passes(self) -> bool:
        for rank in self.ranks:
            packet = next((packet for packet in rank.passing if packet.time == self.now), None)
            if packet:
                rank.passing.remove(packet)
                receive = next((at for at in rank.posted if rank.asks(at, packet)), None)
                cpu = packet.cpu if receive is None else rank.ops[receive].cpu
                if packet.last and receive is not None:
                    rank.posted.remove(receive)
                    packet.receive = receive
                elif packet.last:
                    rank.unexpected.append(packet)
                rank.waiting[cpu].append(packet)
                return True
        return False

    def processor_chooses(self) -> bool:
        """Let one idle processor begin: one that handles a packet, else the operation that became free first."""
        for rank in self.ranks:
            choices = [(*self.choice(rank, cpu), cpu) for cpu, doing in enumerate(rank.doing) if doing is None]
            for cpu in [cpu for what, _, cpu in choices if what == 3]:
                rank.computed[cpu] = False
            what, order, cpu = min(choices, default=(3, 0, 0))
            if what < 3:
                self.begins(rank, cpu, what, order)
                return True
        return False

    def choice(self, rank: Rank, cpu: int) -> tuple[int, int]:
        """Return what an idle processor does next: 0 handles a packet, 1 an operation, by its position; 3 nothing."""
        queue = rank.queues[cpu]
        goes_on = rank.computed[cpu] and queue and rank.ops[queue[0]].kind == "calc"
        if rank.waiting[cpu] and not goes_on:
            return 0, 0
        if rank.sending[cpu]:
            at, _ = rank.sending[cpu]
            return (3, 0) if rank.out[rank.ops[at].nic] > self.now else (1, rank.order[at])
        able = [at for at in queue if rank.ops[at].kind == "calc" or rank.out[rank.ops[at].nic] <= self.now]
        return (1, rank.order[able[0]]) if able else (3, 0)

    def begins(self, rank: Rank, cpu: int, what: int, order: int) -> None:
        rank.computed[cpu] = False
        if what == 0:
            packet = rank.waiting[cpu].pop(0)
            if packet.receive is not None:
                rank.match(packet)
            self.occupy(rank, cpu, self.network.overhead, "handles", packet)
            return
        if rank.sending[cpu]:
            self.send(rank, cpu, *rank.sending[cpu])
            return
        at = next(at for at in rank.queues[cpu] if rank.order[at] == order)
        rank.computed[cpu] = rank.queues[cpu][0] == at and rank.ops[at].kind == "calc"
        rank.queues[cpu].remove(at)
        if rank.ops[at].kind == "send":
            self.send(rank, cpu, at, max(rank.ops[at].amount, 1))
        else:
            self.occupy(rank, cpu, rank.ops[at].amount, "computes", at)
        rank.happened(at, rank.begun)

    def send(self, rank: Rank, cpu: int, at: int, left: int) -> None:
        op, network = rank.ops[at], self.network
        size = min(left, network.packet_bytes)
        self.occupy(rank, cpu, network.overhead, "sends", (at, left - size))
        rank.out[op.nic] = self.now + network.gap + network.train(size)
        rank.sent += 1
        time = self.now + network.overhead + network.latency + network.train(size)
        number = self.ranks.index(rank)
        packet = Packet(number, rank.sent, op.tag, size, left == size, cpu, op.nic, time)
        packet.send = at if packet.last and self.waits(op) else None
        self.ranks[op.peer].arriving.append(packet)

    def waits(self, op: Op) -> bool:
        return self.network.rendezvous_above is not None and op.amount > self.network.rendezvous_above

    def occupy(self, rank: Rank, cpu: int, ns: int, what: str, of: Any) -> None:
        rank.busy += ns
        rank.began += 1
        rank.doing[cpu] = (self.now + ns, what, of, rank.began)


def drawn(seed: int) -> tuple[list[list[Op]], Network]:
    """Draw a schedule of 2 to 4 ranks with up to 3 processors and interfaces, and a network."""
    draw = random.Random(seed)
    unit = draw.choice([1, 1, 10, 137])
    times = [unit * draw.randint(*between) for between in ((1, 6), (0, 4), (0, 6), (0, 2))]
    network = Network(*times, packet_bytes=draw.choice([1_000_000_000, 3, 8]))
    ranks, cpus, nics, tags = draw.randint(2, 4), draw.randint(1, 3), draw.randint(1, 3), draw.choice([1, 3])
    schedule: list[list[Op]] = [[] for _ in range(ranks)]
    for _ in range(draw.randint(4, 40)):
        source, place = draw.randrange(ranks), (draw.randrange(cpus), draw.randrange(nics))
        if draw.random() < 0.4:
            schedule[source].append(Op("calc", unit * draw.randint(0, 12), cpu=place[0]))
            continue
        to, tag = draw.randrange(ranks), draw.randrange(tags)
        schedule[source].append(Op("send", draw.choice([0, 1, 5, 20]), to, tag, *place))
        asked = [-1 if draw.random() < 0.2 else value for value in (source, tag)]
        schedule[to].append(Op("recv", 1, *asked, draw.randrange(cpus), draw.randrange(nics)))
    for ops in schedule:
        draw.shuffle(ops)
        for at, op in enumerate(ops):
            for before in {draw.randrange(at) for _ in range(draw.choice([0, 1, 1, 2]))} if at else ():
                (op.irequires if draw.random() < 0.3 else op.requires).append(before)
    return [ops or [Op("calc", 0)] for ops in schedule], network
