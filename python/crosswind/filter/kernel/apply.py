"""A plan, step by step, to the kernel; and everything back, from the state file alone.

The way back may be taken at any time, from any process, more than once: it looks what there is of the filter and
removes that.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from collections.abc import Iterator

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.filter.kernel import bpf, snapshot, state
from crosswind.filter.kernel import messages as m
from crosswind.filter.kernel.netlink import CREATE, REPLACE, Kernel, KernelError
from crosswind.filter.kernel.plan import (
    MAJOR,
    Device,
    Fifo,
    Htb,
    HtbClass,
    Ifb,
    Ingress,
    Match,
    MatchCgroup,
    MatchMark,
    SegmentSize,
    Step,
)
from crosswind.filter.kernel.state import State

OWN = MAJOR << 16


def device_facts(kernel: Kernel, name: str) -> tuple[Device, dict[str, int]]:
    """Return a device, and its MTU and limits.

    Raises
    ------
    DescriptionError
        When there is none of this name.
    """
    if not 0 < len(name.encode()) < 16:
        raise DescriptionError(f"device is {name!r}; a name has 1 to 15 bytes", "device")
    found = link(kernel, name)
    if found is None:
        import socket

        hint = f"here are {', '.join(there for _, there in socket.if_nameindex())}"
        raise DescriptionError(f"device {name!r} does not exist in this network namespace", "device", hint)
    index, facts = found
    limits = {kind: size for kind, size in facts.items() if kind in ("gso_max_size", "gro_max_size")}
    return Device(name, index, facts["mtu"], **limits), facts


def link(kernel: Kernel, name: str) -> tuple[int, dict[str, int]] | None:
    """Return a device's number and facts, None where there is none of this name."""
    return _asked_link(kernel, m.link(0, m.named(name)))


def link_at(kernel: Kernel, index: int) -> tuple[int, dict[str, int]] | None:
    """Return a device's number and facts, None where there is none of this number."""
    return _asked_link(kernel, m.link(index))


def _asked_link(kernel: Kernel, body: bytes) -> tuple[int, dict[str, int]] | None:
    try:
        found = kernel.get(m.GET_LINK, body)
    except KernelError as error:
        if error.errno == errno.ENODEV:
            return None
        raise
    return None if found is None else m.link_facts(found)


def has_default_route(kernel: Kernel, index: int) -> bool:
    """Whether packets to elsewhere leave through a device."""
    import socket

    families = (socket.AF_INET, socket.AF_INET6)
    return any(
        index in m.default_route_devices(body) for one in families for body in kernel.dump(m.GET_ROUTE, m.routes(one))
    )


def make(kernel: Kernel, step: Step) -> None:
    """Make one step.

    Raises
    ------
    KernelError
        When the kernel refuses it.
    """
    match step:
        case SegmentSize(_, limit, size):
            kernel.ask(m.NEW_LINK, m.limited(_index(kernel, step.device), limit, size))
        case Ifb(device):
            kernel.ask(m.NEW_LINK, m.new_ifb(device), m.NEW)
        case Htb():
            kernel.ask(m.NEW_QDISC, m.htb(step, _index(kernel, step.device)), CREATE | REPLACE)
        case HtbClass():
            kernel.ask(m.NEW_CLASS, m.htb_class(step, _index(kernel, step.device)), m.NEW)
        case Fifo():
            kernel.ask(m.NEW_QDISC, m.fifo(step, _index(kernel, step.device)), m.NEW)
        case Match():
            kernel.ask(m.NEW_FILTER, m.match(step, _index(kernel, step.device)), m.NEW)
        case MatchMark():
            kernel.ask(m.NEW_FILTER, m.match_mark(step, _index(kernel, step.device)), m.NEW)
        case MatchCgroup(device, order, cgroup, level, path, minor):
            program = bpf.load(bpf.cgroup_program(cgroup, level))
            try:
                body = m.match_program(order, minor, _index(kernel, device), program, path)
                kernel.ask(m.NEW_FILTER, body, m.NEW)
            finally:
                os.close(program)
        case Ingress(device, through):
            index = _index(kernel, device)
            kernel.ask(m.NEW_QDISC, m.ingress(index), m.NEW)
            kernel.ask(m.NEW_FILTER, m.redirect(index, _index(kernel, through)), m.NEW)


def _index(kernel: Kernel, name: str) -> int:
    found = link(kernel, name)
    if found is None:
        raise KernelError(errno.ENODEV)
    return found[0]


@contextlib.contextmanager
def _alone() -> Iterator[None]:
    """Let one process at a time take things back."""
    directory = os.open(state.DIRECTORY, os.O_RDONLY | os.O_CLOEXEC)
    try:
        fcntl.flock(directory, fcntl.LOCK_EX)
        yield
    finally:
        os.close(directory)


def undo(there: State) -> str:
    """Take everything back that a state file names, and delete it; what was done, in words.

    Raises
    ------
    CrosswindError
        When the kernel refuses, or the device is not what it was; the file is kept.
    """
    with _alone():
        if not there.path.exists():
            return f"{there.device}: nothing is set"
        namespace = state.namespace_path(there.namespace, there.cookie) if there.boot == state.boot() else None
        if namespace is None:
            there.forget()
            return f"{there.device}: its network namespace does not exist any more, nor what was set in it"
        try:
            with Kernel(namespace) as kernel:
                done = _taken_back(kernel, there)
        except KernelError as error:
            hint = f"`crosswind filter --undo` tries again; {there.path} says what was there"
            raise CrosswindError(f"{there.device}: not restored: {error.strerror}", "undo", hint) from None
        there.forget()
        return done


def _taken_back(kernel: Kernel, there: State) -> str:
    device, before = there.device, there.saved.told()
    _delete_link(kernel, there.rehearsal)
    if link_at(kernel, there.index) is None:
        _delete_link(kernel, there.ifb)
        return f"{device}: the device does not exist any more, nor what was set on it"
    # What arrives must not be redirected any more when the device goes through which it went.
    if there.ifb and snapshot.ingress_of(kernel, there.index) is not None:
        kernel.ask(m.DEL_QDISC, m.traffic(there.index, 0, m.INGRESS))
    _delete_link(kernel, there.ifb)
    _limits_back(kernel, there)
    if not there.root or _as_it_was(kernel, there):
        return f"{device}: restored {before}"
    root = snapshot.root_of(kernel, there.index)
    # The filter's own, or what was there put back in part, or the kernel's choice in between.
    if root is not None and root.handle not in (OWN, there.saved.root, 0):
        return f"{device}: its root qdisc is another's by now ({root.kind} {root.handle >> 16:x}:) and is left alone"
    snapshot.put_back(kernel, there.index, there.saved)
    if not _as_it_was(kernel, there):
        raise KernelError(errno.EIO, f"what stands there now is not what stood there before ({before})")
    return f"{device}: restored {before}"


def _limits_back(kernel: Kernel, there: State) -> None:
    now = (link_at(kernel, there.index) or (0, {}))[1]
    for limit, size in there.limits.items():
        set_to = there.set_limits.get(limit) or there.set_limits.get(limit.replace("ipv4_", ""))
        if now.get(limit) == set_to and size != set_to:
            kernel.ask(m.NEW_LINK, m.limited(there.index, limit, size))  # type: ignore[arg-type]


def _as_it_was(kernel: Kernel, there: State) -> bool:
    now = snapshot.save(kernel, there.index)
    if there.saved.default:
        return bool(now.default)  # a device that is down has another one
    return snapshot.same(now, there.saved)


def _delete_link(kernel: Kernel, name: str) -> None:
    if not name:
        return
    try:
        kernel.ask(m.DEL_LINK, m.link(0, m.named(name)))
    except KernelError as error:
        if error.errno != errno.ENODEV:
            raise
