"""The steps of a plan, and what is looked up before them, as rtnetlink messages.

Source: linux/rtnetlink.h, linux/pkt_sched.h, linux/pkt_cls.h, linux/if_link.h.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from crosswind.filter.kernel import bpf
from crosswind.filter.kernel.netlink import CREATE, EXCLUSIVE, attribute, attributes
from crosswind.filter.kernel.plan import (
    ETH_P_ALL,
    LOCAL,
    MAJOR,
    Fifo,
    Htb,
    HtbClass,
    Key,
    Limit,
    Match,
    MatchMark,
)

NEW_LINK, DEL_LINK, GET_LINK, NEW_ADDRESS, GET_ROUTE = 16, 17, 18, 20, 26
NEW_QDISC, DEL_QDISC, GET_QDISC = 36, 37, 38
NEW_CLASS, GET_CLASS = 40, 42
NEW_FILTER, GET_FILTER = 44, 46
NEW = CREATE | EXCLUSIVE

ROOT, INGRESS = 0xFFFFFFFF, 0xFFFFFFF1
INGRESS_HANDLE = 0xFFFF0000
TCA_KIND, TCA_OPTIONS, TCA_CHAIN = 1, 2, 11

_TC = struct.Struct("=BxxxIIII")
_LINK = struct.Struct("=BxHiII")
_ROUTE = struct.Struct("=BBBBBBBBI")
_HOP = struct.Struct("=HxxI")
_UNICAST, _RTA_OIF, _RTA_MULTIPATH = 1, 4, 9
_IFLA_NAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_STATS64 = 3, 4, 18, 23
_IFLA_LIMITS: dict[Limit, int] = {
    "gso_max_size": 41,
    "gro_max_size": 58,
    "gso_ipv4_max_size": 63,
    "gro_ipv4_max_size": 64,
}
_IFLA_MASTER, _IFLA_NET_NS_FD = 10, 28
_INFO_KIND, _INFO_DATA, _VETH_PEER = 1, 2, 1
_ADDRESS = struct.Struct("=BBBBI")
_IFA_ADDRESS, _IFA_LOCAL = 1, 2
_AF_INET = 2
_UP = 1
_TICKS_PER_S = 1e9 / 64
_ETHERNET = 1
_LARGEST_RATE = 2**32 - 1
_HTB_PARMS, _HTB_INIT, _HTB_RATE64, _HTB_CEIL64 = 1, 2, 6, 7
_U32_CLASS, _U32_SEL, _U32_ACT = 1, 5, 7
_BPF_CLASS, _BPF_LENGTH, _BPF_CODE, _BPF_FD, _BPF_NAME = 3, 4, 5, 6, 7
_TERMINAL = 1
_MIRRED_PARMS, _REDIRECT, _STOLEN = 2, 1, 4


@dataclass(frozen=True)
class Traffic:
    """A qdisc, a class or a filter, as the kernel lists it: the header and the attributes.

    Parameters
    ----------
    index, handle, parent, info : int
        The header's fields: the device, the own number, that of what it hangs below, order and protocol of a filter.
    content : bytes
        The attributes.
    """

    index: int
    handle: int
    parent: int
    info: int
    content: bytes

    @classmethod
    def read(cls, body: bytes) -> Traffic:
        """Return what a body says."""
        _, index, handle, parent, info = _TC.unpack_from(body)
        return cls(index, handle, parent, info, body[_TC.size :])

    def packed(self) -> bytes:
        """Return it as a body."""
        return _TC.pack(0, self.index, self.handle, self.parent, self.info) + self.content

    @property
    def kind(self) -> str:
        """Its kind, such as "htb"."""
        return attributes(self.content).get(TCA_KIND, b"").rstrip(b"\0").decode()

    @property
    def options(self) -> bytes | None:
        """Its options, None where it has none."""
        return attributes(self.content).get(TCA_OPTIONS)


def traffic(index: int, handle: int, parent: int, kind: str = "", options: bytes | None = None, info: int = 0) -> bytes:
    """Return a body about a qdisc, a class or a filter."""
    content = attribute(TCA_KIND, kind) if kind else b""
    return Traffic(
        index, handle, parent, info, content + (b"" if options is None else attribute(TCA_OPTIONS, options))
    ).packed()


def _id(minor: int) -> int:
    return MAJOR << 16 | minor


def htb(step: Htb, index: int) -> bytes:
    """Return the root qdisc."""
    return traffic(index, _id(0), ROOT, "htb", attribute(_HTB_INIT, struct.pack("=5I", 3, 10, LOCAL, 0, 0)))


def htb_class(step: HtbClass, index: int) -> bytes:
    """Return a class below it."""

    def ratespec(rate: int) -> bytes:
        return struct.pack("=BBHhHI", 0, _ETHERNET, 0, 0, 0, min(rate, _LARGEST_RATE))

    def ticks(rate: int) -> int:
        return min(round(step.burst / rate * _TICKS_PER_S), 2**32 - 1)

    numbers = (ticks(step.rate), ticks(step.ceiling), step.quantum, 0, step.priority)
    options = attribute(_HTB_PARMS, ratespec(step.rate) + ratespec(step.ceiling) + struct.pack("=5I", *numbers))
    for kind, rate in ((_HTB_RATE64, step.rate), (_HTB_CEIL64, step.ceiling)):
        if rate > _LARGEST_RATE:
            options += attribute(kind, struct.pack("=Q", rate))
    return traffic(index, _id(step.minor), _id(step.parent), "htb", options)


def fifo(step: Fifo, index: int) -> bytes:
    """Return a class's queue."""
    return traffic(index, (MAJOR + step.minor) << 16, _id(step.minor), "bfifo", struct.pack("=I", step.limit))


def _info(order: int, protocol: int) -> int:
    return order << 16 | int.from_bytes(struct.pack(">H", protocol), "little" if struct.pack("=H", 1)[0] else "big")


def _u32(keys: tuple[Key, ...], flags: int = _TERMINAL) -> bytes:
    header = struct.pack("=BBBx", flags, 0, len(keys)) + bytes(12)
    packed = b"".join(struct.pack(">II", key.mask, key.value) + struct.pack("=ii", key.offset, 0) for key in keys)
    return attribute(_U32_SEL, header + packed)


def match(step: Match, index: int) -> bytes:
    """Return a filter by what stands in the packet."""
    options = attribute(_U32_CLASS, _id(step.minor)) + _u32(step.keys)
    return traffic(index, 0, _id(0), "u32", options, _info(step.order, step.protocol))


def match_mark(step: MatchMark, index: int) -> bytes:
    """Return a filter by the packet's mark."""
    program = bpf.mark_program(step.mark)
    options = attribute(_BPF_LENGTH, struct.pack("=H", len(program))) + attribute(_BPF_CODE, bpf.packed(program))
    return _bpf(step.order, step.minor, index, options)


def match_program(order: int, minor: int, index: int, descriptor: int, name: str) -> bytes:
    """Return a filter by a program that is loaded."""
    return _bpf(order, minor, index, attribute(_BPF_FD, descriptor) + attribute(_BPF_NAME, name))


def _bpf(order: int, minor: int, index: int, options: bytes) -> bytes:
    options += attribute(_BPF_CLASS, _id(minor))
    return traffic(index, 0, _id(0), "bpf", options, _info(order, ETH_P_ALL))


def ingress(index: int) -> bytes:
    """Return the qdisc to which filters for what arrives belong."""
    return traffic(index, INGRESS_HANDLE, INGRESS, "ingress")


def redirect(index: int, through: int) -> bytes:
    """Return the filter that sends all that arrives through another device."""
    parms = struct.pack("=5i", 0, 0, _STOLEN, 0, 0) + struct.pack("=iI", _REDIRECT, through)
    action = attribute(1, "mirred") + attribute(2, attribute(_MIRRED_PARMS, parms))
    options = _u32((Key(0, 0, 0),)) + attribute(_U32_ACT, attribute(1, action))
    return traffic(index, 0, INGRESS_HANDLE, "u32", options, _info(1, ETH_P_ALL))


def link(index: int = 0, content: bytes = b"", *, up: bool = False) -> bytes:
    """Return a body about a device."""
    return _LINK.pack(0, 0, index, _UP if up else 0, _UP if up else 0) + content


def named(name: str) -> bytes:
    """Return the attribute that names a device."""
    return attribute(_IFLA_NAME, name)


def new_ifb(name: str) -> bytes:
    """Return the request for an IFB device that is up."""
    return link(0, named(name) + attribute(_IFLA_LINKINFO, attribute(_INFO_KIND, "ifb")), up=True)


def new_bridge(name: str) -> bytes:
    """Return the request for a bridge that is up."""
    return link(0, named(name) + attribute(_IFLA_LINKINFO, attribute(_INFO_KIND, "bridge")), up=True)


def new_veth(name: str, mtu: int, peer: str, namespace: int) -> bytes:
    """Return the request for a pair of devices, the peer in the namespace of a descriptor."""
    size = attribute(_IFLA_MTU, mtu)
    other = link(0, named(peer) + size + attribute(_IFLA_NET_NS_FD, namespace))
    info = attribute(_INFO_KIND, "veth") + attribute(_INFO_DATA, attribute(_VETH_PEER, other))
    return link(0, named(name) + size + attribute(_IFLA_LINKINFO, info))


def enslaved(index: int, bridge: int) -> bytes:
    """Return the request that a device be up, as a port of a bridge."""
    return link(index, attribute(_IFLA_MASTER, bridge), up=True)


def address(index: int, packed: bytes, prefix: int) -> bytes:
    """Return the request for a device's IPv4 address."""
    both = attribute(_IFA_LOCAL, packed) + attribute(_IFA_ADDRESS, packed)
    return _ADDRESS.pack(_AF_INET, prefix, 0, 0, index) + both


def limited(index: int, limit: Limit, size: int) -> bytes:
    """Return the request for a device's largest segment."""
    return link(index, attribute(_IFLA_LIMITS[limit], size))


def link_facts(body: bytes) -> tuple[int, dict[str, int]]:
    """Return a device's number; its `mtu`, `rx_bytes`, `tx_bytes`, and limits as the kernel has them."""
    index = _LINK.unpack_from(body)[2]
    found = attributes(body[_LINK.size :])
    kinds = {"mtu": _IFLA_MTU} | {str(limit): kind for limit, kind in _IFLA_LIMITS.items()}
    facts = {name: int(struct.unpack("=I", found[kind])[0]) for name, kind in kinds.items() if kind in found}
    _, _, facts["rx_bytes"], facts["tx_bytes"] = struct.unpack_from("=4Q", found[_IFLA_STATS64])
    return index, facts


def routes(family: int) -> bytes:
    """Return the request for all routes of a family."""
    return _ROUTE.pack(family, 0, 0, 0, 0, 0, 0, 0, 0)


def default_route_devices(body: bytes) -> list[int]:
    """Return the numbers of the devices of a route to everywhere; none of other routes."""
    _, prefix, *_, kind, _ = _ROUTE.unpack_from(body)
    if prefix != 0 or kind != _UNICAST:
        return []
    found = attributes(body[_ROUTE.size :])
    devices = [struct.unpack("=I", found[_RTA_OIF])[0]] if _RTA_OIF in found else []
    hops = found.get(_RTA_MULTIPATH, b"")
    while len(hops) >= _HOP.size:
        length, index = _HOP.unpack_from(hops)
        devices.append(index)
        hops = hops[max((length + 3) & ~3, _HOP.size) :]
    return devices
