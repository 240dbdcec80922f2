"""Hosts of a streams experiment as network namespaces around a switch, with the queues of the filter in the kernel.

The namespaces have no names: they end with this process, however it ends, and with them all that is set. A host's
device is shaped to the link's rate, so that packets wait there; so is the switch's port to it, where they wait in one
queue.
"""

from __future__ import annotations

import ctypes
import ipaddress
import os
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.filter.kernel import apply, messages
from crosswind.filter.kernel.netlink import Kernel, KernelError
from crosswind.filter.kernel.plan import (
    FRAME_OVERHEAD,
    LEAST_RATE,
    LOCAL,
    MOST_RATE,
    WHOLE,
    Device,
    Fifo,
    Htb,
    HtbClass,
    Step,
    plan,
)
from crosswind.filter.kernel.selector import Selector

_CLONE_NEWNET = 0x40000000
_LEAST_FRAME, _MOST_FRAME = 590, 65_000
_SUBNET = "10.80.0"
_PARALLEL = Selector("dscp", 34, "dscp:34")
_KNOWN = {
    "atm155": {"link_mb_per_s": 19.375, "frame_bytes": 1024},
    "gigabit": {"link_mb_per_s": 125.0, "frame_bytes": 1500},
}
_BUFFER_FRAMES = 64
MOST_HOSTS = 16

Host = tuple[str, str]
"""Where its namespace can be entered, and its address."""


@contextmanager
def hosts_of(point: Mapping[str, Any]) -> Iterator[list[Host]]:
    """Yield the hosts of an experiment's point with `policy.filter = "kernel"`.

    Raises
    ------
    DescriptionError
        When the links or the queues cannot be set in a kernel, or this is not root.
    CrosswindError
        When this kernel refuses a step.
    """
    network = point.get("network", "atm155")
    links = _KNOWN.get(network, {}) if isinstance(network, str) else network
    rate = float(links.get("link_mb_per_s", _KNOWN["atm155"]["link_mb_per_s"]))
    frame = int(links.get("frame_bytes", _KNOWN["atm155"]["frame_bytes"]))
    if not _LEAST_FRAME <= frame <= _MOST_FRAME:
        message = f"network.frame_bytes is {frame} bytes; it must be {_LEAST_FRAME} to {_MOST_FRAME}"
        raise DescriptionError(f'{message} with policy.filter = "kernel"', "network")
    if not LEAST_RATE <= rate <= MOST_RATE:
        message = f"network.link_mb_per_s is {rate:g} MB/s; it must be {LEAST_RATE} to {MOST_RATE:g}"
        raise DescriptionError(f'{message} with policy.filter = "kernel"', "network")
    policy = point.get("policy", {})
    queues = {"queue": policy.get("queue", "drr"), "threshold": int(policy.get("threshold", 4))}
    buffer = int(links.get("buffer_frames", _BUFFER_FRAMES)) * frame
    with ExitStack() as stack:
        try:
            count = min(int(point.get("workload", {}).get("hosts", 2)), MOST_HOSTS)  # more are refused with the rest
            spaces = [_namespace(stack) for _ in range(count + 1)]
            yield _connected(spaces, frame - FRAME_OVERHEAD, rate, queues, buffer)
        except KernelError as error:
            if error.errno == 1:
                hint = 'run it as root, or leave policy.filter at "user-space"'
                message = 'policy.filter is "kernel", which needs network namespaces: not permitted'
                raise DescriptionError(message, "permission", hint) from None
            raise CrosswindError(f"network namespaces: {error.strerror}", "kernel") from None


def _namespace(stack: ExitStack) -> int:
    """Return a descriptor of a new network namespace, which ends with the descriptor."""

    def made() -> int:
        if ctypes.CDLL(None, use_errno=True).unshare(_CLONE_NEWNET) != 0:
            raise KernelError(ctypes.get_errno())
        return os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)

    with ThreadPoolExecutor(1) as threads:
        descriptor = threads.submit(made).result()
    stack.callback(os.close, descriptor)
    return descriptor


def _path(descriptor: int) -> Path:
    return Path(f"/proc/self/fd/{descriptor}")


def _connected(spaces: list[int], mtu: int, rate: float, queues: Mapping[str, Any], buffer: int) -> list[Host]:
    switch, *spaces = spaces
    found = []
    with Kernel(_path(switch)) as there:
        there.ask(messages.NEW_LINK, messages.new_bridge("br0"), messages.NEW)
        bridge = _index(there, "br0")
        for host, space in enumerate(spaces):
            port, address = f"p{host}", f"{_SUBNET}.{host + 1}"
            there.ask(messages.NEW_LINK, messages.new_veth(port, mtu, "eth0", space), messages.NEW)
            there.ask(messages.NEW_LINK, messages.enslaved(_index(there, port), bridge))
            for step in _one_queue(port, mtu, rate, buffer):
                apply.make(there, step)
            with Kernel(_path(space)) as here:
                device, _ = apply.device_facts(here, "eth0")
                packed = ipaddress.IPv4Address(address).packed
                here.ask(messages.NEW_ADDRESS, messages.address(device.index, packed, 24), messages.NEW)
                for name in ("lo", "eth0"):
                    here.ask(messages.NEW_LINK, messages.link(_index(here, name), up=True))
                small = Device(device.name, device.index, mtu, device.gso_max_size, device.gro_max_size)
                for step in plan(small, [_PARALLEL], rate_mb_per_s=rate, **queues).steps:
                    apply.make(here, step)
            found.append((str(_path(space)), address))
    return found


def _one_queue(device: str, mtu: int, rate: float, buffer: int) -> list[Step]:
    bytes_per_s, frame = round(rate * 1e6), mtu + FRAME_OVERHEAD
    burst = 2 * frame
    # A queue shorter than one segment would never let it through.
    limit = max(buffer, 65_536 + frame)
    return [
        Htb(device),
        HtbClass(device, WHOLE, 0, bytes_per_s, bytes_per_s, frame, burst),
        HtbClass(device, LOCAL, WHOLE, bytes_per_s, bytes_per_s, frame, burst),
        Fifo(device, LOCAL, limit),
    ]


def _index(kernel: Kernel, name: str) -> int:
    found = apply.link(kernel, name)
    if found is None:
        raise KernelError(19, f"device {name}")
    return found[0]


def beside(simulated: Mapping[str, Any]) -> dict[str, float]:
    """Return what a simulated run predicts, by the names under which it stands beside a live one.

    Examples
    --------
    >>> beside({"streams": [{"name": "A", "slowdown_fifo": 3.0, "slowdown_queued": 1.5}]})
    {'simulated fifo A': 3.0, 'simulated queued A': 1.5}
    """
    return {
        f"simulated {which} {one['name']}": one[f"slowdown_{which}"]
        for one in simulated["streams"]
        for which in ("fifo", "queued")
    }
