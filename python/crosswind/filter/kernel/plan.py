"""What is to be set on a network device so that the kernel serves two classes: a list of steps, from numbers alone.

Nothing is asked of the kernel here and nothing is changed: `commands` renders the steps as tc and ip, `apply` makes
them. Egress is the device's root: HTB, shaped a little below the link, so that packets wait where the classes are.
Ingress is the same on an IFB device, to which what arrives is redirected.

The weights: HTB serves classes of equal priority in turn, `quantum` bytes each (deficit round robin), as soon as both
borrow. The classes' own rates are therefore next to nothing, and all is borrowed. A turn is counted in whole segments,
of up to 64 KB, so a quantum below the largest segment would not be kept: the quantum of class local is the largest
segment, that of class parallel `threshold` times as much, and the largest segment is made smaller where the link is
slow. Source: tc-htb(8), net/sched/sch_htb.c (htb_dequeue_tree).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from crosswind.errors import DescriptionError
from crosswind.filter import DEFAULT_DISCIPLINE, Discipline
from crosswind.filter.kernel.selector import Selector

MAJOR = 0xC5
"""Major number of the filter's qdisc, by which it is known on a device."""
PARALLEL, LOCAL, WHOLE = 1, 2, 0x10
"""Minor numbers of the classes: SO_PRIORITY 0xc50001 puts a socket into class parallel."""
SEGMENT_S = 0.25e-3
"""The longest that one segment may hold the link, s."""
FRAME_OVERHEAD = 14
OWN_RATE = 1000
"""Bytes/s that a class has without borrowing: HTB needs a rate."""
BURST_S = 50e-6
LEAST_RATE, MOST_RATE = 0.1, 100_000.0
MOST_QUANTUM = 1 << 30
EGRESS_QUEUE_S = 0.02
INGRESS_QUEUE_S = 0.02
LEAST_QUEUE_FRAMES = 16
ETH_P_ALL, ETH_P_IP, ETH_P_ARP, ETH_P_IPV6 = 0x3, 0x800, 0x806, 0x86DD
TCP, UDP = 6, 17

Limit = Literal["gso_max_size", "gro_max_size", "gso_ipv4_max_size", "gro_ipv4_max_size"]


@dataclass(frozen=True)
class Device:
    """What a plan must know of a device.

    Parameters
    ----------
    name : str
        Its name.
    index : int
        Its number.
    mtu : int
        Longest packet, bytes, without the frame's header.
    gso_max_size, gro_max_size : int
        Longest segments that leave and arrive, bytes.
    """

    name: str
    index: int
    mtu: int
    gso_max_size: int = 65536
    gro_max_size: int = 65536

    @property
    def ifb(self) -> str:
        """Name of the device to which what arrives is redirected."""
        return f"cw{self.index}ifb"


@dataclass(frozen=True)
class SegmentSize:
    """A limit of a device, in bytes."""

    device: str
    limit: Limit
    size: int


@dataclass(frozen=True)
class Ifb:
    """A new IFB device, up."""

    device: str


@dataclass(frozen=True)
class Htb:
    """The root qdisc; what no filter matches belongs to class local."""

    device: str


@dataclass(frozen=True)
class HtbClass:
    """A class below the root (`parent` 0) or below another class; rates in bytes/s."""

    device: str
    minor: int
    parent: int
    rate: int
    ceiling: int
    quantum: int
    burst: int
    priority: int = 0


@dataclass(frozen=True)
class Fifo:
    """The queue of a class, in bytes."""

    device: str
    minor: int
    limit: int


@dataclass(frozen=True)
class Key:
    """Four bytes of a packet at an offset from its network header: masked, they are equal to the value."""

    offset: int
    mask: int
    value: int


@dataclass(frozen=True)
class Match:
    """Packets of a protocol that fit all keys belong to a class; `order` says which filter is asked first."""

    device: str
    order: int
    protocol: int
    keys: tuple[Key, ...]
    minor: int


@dataclass(frozen=True)
class MatchMark:
    """Packets with a mark, read by classic BPF."""

    device: str
    order: int
    mark: int
    minor: int


@dataclass(frozen=True)
class MatchCgroup:
    """Packets of sockets of a control group and of those below it, by BPF."""

    device: str
    order: int
    cgroup: int
    level: int
    path: str
    minor: int


@dataclass(frozen=True)
class Ingress:
    """All that arrives at a device goes through another one first."""

    device: str
    through: str


Step = SegmentSize | Ifb | Htb | HtbClass | Fifo | Match | MatchMark | MatchCgroup | Ingress


@dataclass(frozen=True)
class Plan:
    """What is to be set, in order.

    Attributes
    ----------
    device : Device
        Where.
    queue : str
        "drr" or "strict".
    threshold : int
        Bytes of class parallel to one of class local.
    rate_mb_per_s, rate_in_mb_per_s : float or None
        What leaves and what arrives is shaped to this, MB/s.
    segment_bytes, segment_in_bytes : int
        The largest segment that leaves and that arrives, bytes.
    steps : tuple of Step
        What is set.
    """

    device: Device
    queue: Discipline
    threshold: int
    rate_mb_per_s: float | None
    rate_in_mb_per_s: float | None
    segment_bytes: int
    segment_in_bytes: int
    steps: tuple[Step, ...]


def segment_bytes(device: Device, rate_mb_per_s: float, most: int) -> int:
    """Return the largest segment: what goes in 0.25 ms, in whole packets, at least one and at most what there is now.

    Examples
    --------
    >>> segment_bytes(Device("eth0", 2, 1500), 12.5, 65536)
    3000
    """
    whole = int(rate_mb_per_s * 1e6 * SEGMENT_S) // device.mtu
    return max(min(whole * device.mtu, most), device.mtu)


def plan(
    device: Device,
    parallel: Sequence[Selector],
    local: Sequence[Selector] = (),
    *,
    rate_mb_per_s: float | None = None,
    rate_in_mb_per_s: float | None = None,
    queue: Discipline = DEFAULT_DISCIPLINE,
    threshold: int = 4,
) -> Plan:
    """Return what is to be set.

    Parameters
    ----------
    device : Device
        Where.
    parallel, local : sequence of Selector
        Which packets belong to which class. What `local` names is not looked up in `parallel`; what neither names is
        local. `SO_PRIORITY` 0xc50001 (parallel) and 0xc50002 (local) of a socket go before both.
    rate_mb_per_s, rate_in_mb_per_s : float, optional
        What leaves and what arrives is shaped to this, MB/s, 0.1 to 100000. One must be given.
    queue : str
        "drr" (bytes in the ratio of the threshold) or "strict" (local only while no parallel packet waits).
    threshold : int
        Bytes of class parallel to one of class local while both wait, at least 1.

    Returns
    -------
    Plan

    Raises
    ------
    DescriptionError
        When a value is out of its range, or nothing says what is parallel.

    Examples
    --------
    >>> from crosswind.filter.kernel.selector import parse
    >>> made = plan(Device("eth0", 2, 1500), parse(["8001"], "--parallel"), rate_mb_per_s=12.25)
    >>> made.segment_bytes, [step.quantum for step in made.steps if isinstance(step, HtbClass)][1:]
    (3000, [12056, 3014])
    """
    _check(parallel, local, rate_mb_per_s, rate_in_mb_per_s, queue, threshold)
    steps: list[Step] = []
    out = arriving = 0
    if rate_mb_per_s is not None:
        out = segment_bytes(device, rate_mb_per_s, device.gso_max_size)
        if out < device.gso_max_size:
            steps.append(SegmentSize(device.name, "gso_max_size", out))
        weights = (queue, threshold)
        steps += _queues(device.name, rate_mb_per_s, out, weights, EGRESS_QUEUE_S, parallel, local)
    if rate_in_mb_per_s is not None:
        arriving = segment_bytes(device, rate_in_mb_per_s, device.gro_max_size)
        if arriving < device.gro_max_size:
            steps.append(SegmentSize(device.name, "gro_max_size", arriving))
        steps.append(Ifb(device.ifb))
        weights = (queue, threshold)
        steps += _queues(device.ifb, rate_in_mb_per_s, arriving, weights, INGRESS_QUEUE_S, parallel, local)
        steps.append(Ingress(device.name, device.ifb))
    return Plan(device, queue, threshold, rate_mb_per_s, rate_in_mb_per_s, out, arriving, tuple(steps))


def _check(
    parallel: Sequence[Selector],
    local: Sequence[Selector],
    rate_mb_per_s: float | None,
    rate_in_mb_per_s: float | None,
    queue: Discipline,
    threshold: int,
) -> None:
    if queue not in ("drr", "strict"):
        hint = "--policy drr, or strict"
        raise DescriptionError(
            f"queue is {queue!r}; the kernel counts bytes in two queues: drr or strict", "queue", hint
        )
    if rate_mb_per_s is None and rate_in_mb_per_s is None:
        hint = "--rate MB/S shapes what leaves, --rate-in MB/S what arrives; --rate auto measures"
        raise DescriptionError("neither --rate nor --rate-in is given", "rate", hint)
    for option, rate in {"rate": rate_mb_per_s, "rate-in": rate_in_mb_per_s}.items():
        if rate is not None and not LEAST_RATE <= rate <= MOST_RATE:
            raise DescriptionError(f"{option} is {rate:g} MB/s; it must be {LEAST_RATE} to {MOST_RATE:g}", "rate")
    if not 1 <= threshold <= MOST_QUANTUM >> 17:
        raise DescriptionError(f"threshold is {threshold}; it must be 1 to {MOST_QUANTUM >> 17}", "threshold")
    if not parallel and not local:
        hint = "such as --parallel 8001, --parallel dscp:af41 or --parallel cgroup:/jobs"
        raise DescriptionError("nothing says which packets are parallel", "argument", hint)
    both = {(one.kind, one.value) for one in parallel} & {(one.kind, one.value) for one in local}
    if both:
        twice = next(one.text for one in local if (one.kind, one.value) in both)
        raise DescriptionError(f"{twice} is given to both classes", "argument")
    if rate_in_mb_per_s is not None:
        for one in (*parallel, *local):
            if one.kind in ("mark", "cgroup"):
                hint = "use ports or dscp:N, or leave out --rate-in"
                raise DescriptionError(
                    f"{one.text} is not known of packets that arrive, before a socket has them", "argument", hint
                )


def _queues(
    device: str,
    rate_mb_per_s: float,
    segment: int,
    weights: tuple[Discipline, int],
    queue_s: float,
    parallel: Sequence[Selector],
    local: Sequence[Selector],
) -> list[Step]:
    queue, threshold = weights
    rate = round(rate_mb_per_s * 1e6)
    frame = segment + FRAME_OVERHEAD
    burst = max(round(rate * BURST_S), 2 * frame)
    own = min(OWN_RATE, rate)
    second = 1 if queue == "strict" else 0
    limit = max(round(rate * queue_s), LEAST_QUEUE_FRAMES * frame)
    steps: list[Step] = [
        Htb(device),
        HtbClass(device, WHOLE, 0, rate, rate, frame, burst),
        HtbClass(device, PARALLEL, WHOLE, own, rate, (1 if second else threshold) * frame, burst),
        HtbClass(device, LOCAL, WHOLE, own, rate, frame, burst, second),
        Fifo(device, PARALLEL, limit),
        Fifo(device, LOCAL, limit),
    ]
    for first, minor, selectors in ((1, LOCAL, local), (5, PARALLEL, parallel)):
        for selector in selectors:
            steps += _matches(device, selector, first, minor)
    # An answer to "which host has this address?" is short, and all wait for it.
    steps.append(Match(device, 9, ETH_P_ARP, (Key(0, 0, 0),), PARALLEL))
    return steps


def _matches(device: str, selector: Selector, first: int, minor: int) -> list[Step]:
    """Return the filters of one selector; those of one order and protocol are asked together."""
    if selector.kind == "mark":
        return [MatchMark(device, first + 2, selector.value, minor)]
    if selector.kind == "cgroup":
        return [MatchCgroup(device, first + 3, selector.value, selector.level, selector.text, minor)]
    if selector.kind == "dscp":
        ip = Key(0, 0x00FC0000, selector.value << 18)
        ipv6 = Key(0, 0x0FC00000, selector.value << 22)
        return [
            Match(device, first, ETH_P_IP, (ip,), minor),
            Match(device, first + 1, ETH_P_IPV6, (ipv6,), minor),
        ]
    found: list[Step] = []
    ports = ((0xFFFF0000, selector.value << 16), (0x0000FFFF, selector.value))
    for transport in (TCP, UDP):
        # IPv4: no options, the first fragment, the transport; IPv6: the transport is the next header.
        ip4 = (Key(0, 0x0F000000, 0x05000000), Key(4, 0x1FFF, 0), Key(8, 0x00FF0000, transport << 16))
        ip6 = (Key(4, 0x0000FF00, transport << 8),)
        found += [Match(device, first, ETH_P_IP, (*ip4, Key(20, *port)), minor) for port in ports]
        found += [Match(device, first + 1, ETH_P_IPV6, (*ip6, Key(40, *port)), minor) for port in ports]
    return found
