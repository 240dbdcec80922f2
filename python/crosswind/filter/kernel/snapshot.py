"""What stands on a device before anything is changed, and how to put it back byte for byte.

Qdiscs, classes and filters are kept as the kernel lists them and handed back as they are, but for the few fields that
it lists and does not take. Whether that gives the same again is tried beforehand, on a device made for it: kinds need
not be known here. A qdisc with handle 0 is the kernel's own choice, which comes back when the root is deleted.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass, replace

from crosswind.filter.kernel import messages as m
from crosswind.filter.kernel.messages import Traffic
from crosswind.filter.kernel.netlink import CREATE, REPLACE, Kernel, KernelError, attribute, attributes

_TCA_RATE, _TCA_STAB, _TCA_INGRESS_BLOCK, _TCA_EGRESS_BLOCK = 5, 8, 13, 14
_KEPT = (m.TCA_KIND, m.TCA_OPTIONS, _TCA_RATE, _TCA_STAB, m.TCA_CHAIN, _TCA_INGRESS_BLOCK, _TCA_EGRESS_BLOCK)
_OWN_CLASSES = ("htb", "hfsc", "drr", "qfq")
"""Kinds whose classes are made one by one; those of others come with the qdisc."""
_HTB_INIT, _HTB_QLEN = 2, 5
_U32_DIVISOR, _U32_SEL, _U32_PCNT = 4, 5, 9
_FLAGS = {"u32": 11, "bpf": 9}
_SETTABLE_FLAGS = 0b10011


@dataclass(frozen=True)
class Saved:
    """Root qdisc of a device with all below it; empty where it is the kernel's own choice.

    Parameters
    ----------
    default : str
        Kind of the root qdisc where it is the kernel's choice, such as "noqueue"; else empty.
    queues : tuple of Traffic
        Qdiscs and classes, each after what it hangs below.
    filters : tuple of Traffic
        Filters, in the order in which they are made.
    """

    default: str
    queues: tuple[Traffic, ...] = ()
    filters: tuple[Traffic, ...] = ()

    @property
    def root(self) -> int:
        """Handle of the root qdisc, 0 where it is the kernel's choice."""
        return 0 if self.default else self.queues[0].handle

    def told(self) -> str:
        """Say what it is."""
        return self.default or f"{self.queues[0].kind} {self.root >> 16:x}:"


def root_of(kernel: Kernel, index: int) -> Traffic | None:
    """Return a device's root qdisc."""
    return next((one for one in _qdiscs(kernel, index) if one.parent == m.ROOT), None)


def ingress_of(kernel: Kernel, index: int) -> Traffic | None:
    """Return a device's qdisc for what arrives (ingress or clsact)."""
    return next((one for one in _qdiscs(kernel, index) if one.parent == m.INGRESS), None)


def _qdiscs(kernel: Kernel, index: int) -> list[Traffic]:
    found = map(Traffic.read, kernel.dump(m.GET_QDISC, m.traffic(0, 0, 0)))
    return [one for one in found if one.index == index]


def save(kernel: Kernel, index: int) -> Saved:
    """Return what stands on a device."""
    qdiscs = [one for one in _qdiscs(kernel, index) if one.parent != m.INGRESS]
    root = next((one for one in qdiscs if one.parent == m.ROOT), None)
    if root is None or root.handle == 0:
        return Saved(root.kind if root else "none")
    classes = [
        one for one in map(Traffic.read, kernel.dump(m.GET_CLASS, m.traffic(index, 0, 0))) if one.kind in _OWN_CLASSES
    ]
    # The root first, then whatever hangs below what is there already.
    pending = [one for one in (*classes, *qdiscs) if one is not root and one.handle]
    queues, there = [root], {root.handle}
    while pending:
        ready = [one for one in pending if (root.handle if one.parent == m.ROOT else one.parent) in there]
        if not ready:
            break
        queues += ready
        there |= {one.handle for one in ready}
        pending = [one for one in pending if one not in ready]
    filters = []
    for one in queues:
        listed = kernel.dump(m.GET_FILTER, m.traffic(index, 0, one.handle))
        filters += [found for found in map(Traffic.read, listed) if found.handle and found.parent == one.handle]
    settled = [one for one in map(_settable, filters) if one is not None]
    return Saved("", tuple(map(_settled, queues)), tuple(sorted(settled, key=lambda one: one.handle)))


def put_back(kernel: Kernel, index: int, saved: Saved) -> None:
    """Make a device's root what it was.

    Raises
    ------
    KernelError
        When the kernel refuses a part of it.
    """
    root = root_of(kernel, index)
    if saved.default:
        if root is not None and root.handle:
            kernel.ask(m.DEL_QDISC, m.traffic(index, 0, m.ROOT))
        return
    if root is not None and root.handle == saved.root:
        kernel.ask(m.DEL_QDISC, m.traffic(index, 0, m.ROOT))  # half put back
    for one in saved.queues:
        kind = m.NEW_CLASS if one.handle & 0xFFFF else m.NEW_QDISC
        kernel.ask(kind, replace(one, index=index).packed(), CREATE | REPLACE)
    for one in saved.filters:
        kernel.ask(m.NEW_FILTER, replace(one, index=index).packed(), m.NEW)


def rehearse(kernel: Kernel, saved: Saved, device: str) -> str | None:
    """Put it on a device made for this; why that does not give the same, None where it does."""
    if saved.default:
        return None
    kernel.ask(m.NEW_LINK, m.new_ifb(device), m.NEW)
    try:
        body = kernel.get(m.GET_LINK, m.link(0, m.named(device)))
        assert body is not None  # it was made just now
        index = m.link_facts(body)[0]
        put_back(kernel, index, saved)
        return None if same(save(kernel, index), saved) else "the kernel makes something else of it"
    except KernelError as error:
        return f"{error.strerror}"
    finally:
        kernel.ask(m.DEL_LINK, m.link(0, m.named(device)))


def same(one: Saved, other: Saved) -> bool:
    """Whether two devices have the same."""

    def forms(of: Iterable[Traffic]) -> set[Traffic]:
        return {replace(part, index=0) for part in of}

    if one.default or other.default:
        return one.default == other.default
    return forms(one.queues) == forms(other.queues) and forms(one.filters) == forms(other.filters)


def _kept(one: Traffic, options: bytes | None) -> Traffic:
    found = attributes(one.content)
    if options is not None:
        found[m.TCA_OPTIONS] = options
    content = b"".join(attribute(kind, found[kind]) for kind in _KEPT if kind in found)
    return replace(one, content=content)


def _settled(one: Traffic) -> Traffic:
    """Return a qdisc or class without what the kernel counts."""
    is_class = bool(one.handle & 0xFFFF)
    options = one.options
    if one.kind == "htb" and options is not None and not is_class:
        found = attributes(options)
        version, *numbers, _ = struct.unpack("=5I", found[_HTB_INIT])
        found[_HTB_INIT] = struct.pack("=5I", version >> 16 or version, *numbers, 0)
        options = b"".join(
            attribute(kind, content) for kind, content in found.items() if kind in (_HTB_INIT, _HTB_QLEN)
        )
    info = 0  # of a qdisc its users, of a class its leaf
    return replace(_kept(one, options), info=info)


def _settable(one: Traffic) -> Traffic | None:
    """Return a filter without what the kernel counts; None for the table that comes with the first filter."""
    found = attributes(one.options or b"")
    if one.kind == "u32":
        if _U32_SEL not in found and struct.unpack("=I", found.get(_U32_DIVISOR, bytes(4)))[0] <= 1:
            return None
        found.pop(_U32_PCNT, None)
    if (flags := _FLAGS.get(one.kind)) in found:
        assert flags is not None
        found[flags] = struct.pack("=I", struct.unpack("=I", found[flags])[0] & _SETTABLE_FLAGS)
    if one.kind not in _FLAGS:
        return _kept(one, None)
    return _kept(one, b"".join(attribute(kind, content) for kind, content in found.items()))
