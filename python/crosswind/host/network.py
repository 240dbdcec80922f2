"""The network of this host, as far as it moves interference: interfaces, softirq placement, offloads, TCP settings."""

from __future__ import annotations

import array
import contextlib
import fcntl
import re
import socket
import struct
from collections.abc import Callable, Sequence
from pathlib import Path

from crosswind.host.tree import ROOT, UNKNOWN, names, number, text, told

_NET = "sys/class/net"
_LOOPBACK_TYPE = 772  # ARPHRD_LOOPBACK
_SIOCETHTOOL = 0x8946
_RTF_REJECT = 0x200
_OFFLOADS = {"tso": 0x1E, "gso": 0x23, "gro": 0x2B, "rx-checksum": 0x14, "tx-checksum": 0x16}  # ETHTOOL_G...
_COALESCE, _COALESCE_WORDS = 0x0E, 23  # ETHTOOL_GCOALESCE: command, rx_coalesce_usecs, 21 more


def kind(interface: str, root: Path = ROOT) -> str:
    """Return what an interface is: "loopback", "veth", "bridge", "bond", "tun", "vlan", ..., "virtual" or "device".

    On loopback and veth the bytes never meet a network card: the receive softirq runs on the sender's core.
    """
    at = f"{_NET}/{interface}"
    if not (root / at).exists():
        return UNKNOWN
    if number(root, f"{at}/type") == _LOOPBACK_TYPE:
        return "loopback"
    for mark, name in (("bridge", "bridge"), ("bonding", "bond"), ("tun_flags", "tun"), ("wireless", "wireless")):
        if (root / at / mark).exists():
            return name
    declared = re.search(r"^DEVTYPE=(\w+)$", text(root, f"{at}/uevent") or "", re.MULTILINE)
    if declared:
        return declared.group(1)
    if (root / at / "device").exists():
        return "device"
    # A veth end names its other end as its link, and unlike a VLAN or macvlan it has no lower device.
    linked = number(root, f"{at}/iflink") != number(root, f"{at}/ifindex")
    return "veth" if linked and not any(n.startswith("lower_") for n in names(root, at)) else "virtual"


def driver(interface: str, root: Path = ROOT) -> str:
    """Name of an interface's driver; "none" for one without a device."""
    device = root / _NET / interface / "device"
    if not device.exists():
        return "none" if (root / _NET / interface).exists() else UNKNOWN
    try:
        return (device / "driver").resolve(strict=True).name
    except OSError:
        return UNKNOWN


def _ask_ethtool(interface: str, command: int, words: int) -> list[int]:
    """Answer of the kernel's ethtool interface, as 32-bit words after the command; no privilege is needed to ask."""
    asked = array.array("I", [command] + [0] * words)
    address, _ = asked.buffer_info()
    request = struct.pack("16sP16x", interface.encode(), address)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SIOCETHTOOL, request)
    return asked.tolist()[1:]


def offloads(interface: str, ask: Callable[[str, int, int], list[int]] = _ask_ethtool) -> dict[str, str]:
    """State of the segmentation, coalescing and checksum offloads of an interface: "on", "off" or "unknown" by name."""
    found = {}
    for name, command in _OFFLOADS.items():
        try:
            found[name] = "on" if ask(interface, command, 1)[0] else "off"
        except OSError:
            found[name] = UNKNOWN
    return found


def interrupt_delay_us(interface: str, ask: Callable[[str, int, int], list[int]] = _ask_ethtool) -> str:
    """Microseconds for which an interface holds its receive interrupt back; "unknown" where its driver does not say."""
    try:
        return str(ask(interface, _COALESCE, _COALESCE_WORDS - 1)[0])
    except OSError:
        return UNKNOWN


def interrupts(interface: str, root: Path = ROOT) -> list[int]:
    """Numbers of the interrupts of an interface's device."""
    device = root / _NET / interface / "device"
    numbers: set[int] = set()
    with contextlib.suppress(OSError):
        real = device.resolve(strict=True)
        for holder in (real, real.parent):  # a virtio device's interrupts belong to the PCI device above it
            if (holder / "msi_irqs").is_dir():
                numbers.update(int(n) for n in names(holder, "msi_irqs") if n.isdecimal())
                break
        for line in (text(root, "proc/interrupts") or "").splitlines():
            irq, colon, rest = line.partition(":")
            named = rest.split()[-1] if rest.split() else ""
            # A word of its own or followed by a queue's name: eth1 must not find eth10.
            if (
                colon
                and irq.strip().isdigit()
                and re.match(rf"({re.escape(interface)}|{re.escape(real.name)})\b", named)
            ):
                numbers.add(int(irq))
    return sorted(numbers)


def irq_affinity(interface: str, root: Path = ROOT) -> str:
    """CPUs that take each interrupt of an interface, e.g. "38: 1, 39: 0"; "none" without a device.

    Of a bond, a VLAN, a bridge: those of the cards below it.
    """
    taken = []
    for irq in sorted({irq for one in (interface, *cards_below(interface, root)) for irq in interrupts(one, root)}):
        at = f"proc/irq/{irq}"
        taken.append(f"{irq}: {text(root, f'{at}/effective_affinity_list') or told(root, f'{at}/smp_affinity_list')}")
    if taken:
        return ", ".join(taken)
    return "none" if driver(interface, root) == "none" else UNKNOWN


def steering(interface: str, which: str, root: Path = ROOT) -> str:
    """CPU masks that received ("rps") or sent ("xps") packets of each queue go to; "off" where all are empty."""
    prefix = {"rps": "rx-", "xps": "tx-"}[which]
    masks = {
        queue: mask
        for queue in names(root, f"{_NET}/{interface}/queues")
        if queue.startswith(prefix) and (mask := text(root, f"{_NET}/{interface}/queues/{queue}/{which}_cpus"))
    }
    if not masks:
        return "not available" if (root / _NET / interface).exists() else UNKNOWN
    if not any(mask.replace(",", "").strip("0") for mask in masks.values()):
        return "off"
    return ", ".join(f"{queue}: {mask}" for queue, mask in masks.items())


def cards_below(interface: str, root: Path = ROOT) -> list[str]:
    """Return the network cards that an interface stands on (bond, team, VLAN, bridge, ...), through several layers.

    Ports of a bridge that are no cards, such as those of containers, are left out.
    """
    found: list[str] = []
    layer = [interface]
    seen = {interface}
    while layer:
        below = [n.removeprefix("lower_") for one in layer for n in names(root, f"{_NET}/{one}") if n[:6] == "lower_"]
        layer = [name for name in dict.fromkeys(below) if name not in seen and (root / _NET / name).exists()]
        seen.update(layer)
        found += [name for name in layer if (root / _NET / name / "device").exists()]
    return found


def with_cards(interfaces: Sequence[str], root: Path = ROOT) -> list[str]:
    """Return interfaces, each followed by the cards below it, none twice."""
    return list(dict.fromkeys(one for name in interfaces for one in (name, *cards_below(name, root))))


def default_interfaces(root: Path = ROOT) -> list[str]:
    """Loopback, the interfaces of the default routes of IPv4 and IPv6, and the cards below them."""
    routed = [line.split() for line in (text(root, "proc/net/route") or "").splitlines()[1:]]
    default = [fields[0] for fields in routed if len(fields) > 7 and fields[1] == fields[7] == "00000000"]
    for line in (text(root, "proc/net/ipv6_route") or "").splitlines():
        fields = line.split()
        # Destination and its length, source and its length, next hop, metric, references, use, flags, interface.
        if len(fields) == 10 and set(fields[0]) == {"0"} and fields[1] == "00" and not _rejects(fields[8]):
            default.append(fields[9])
    return with_cards([name for name in dict.fromkeys(["lo", *default]) if (root / _NET / name).exists()], root)


def _rejects(flags: str) -> bool:
    """Whether a route of IPv6 only says that there is none, as the kernel's own entry on `lo` does."""
    try:
        return bool(int(flags, 16) & _RTF_REJECT)
    except ValueError:
        return True


def settings(interfaces: Sequence[str] | None = None, root: Path = ROOT) -> dict[str, str]:
    """TCP's settings and those of each interface ("eth0.mtu"), by name; of `default_interfaces` when none are given.

    Each interface is followed by the cards that it stands on.
    Offloads can be asked only of the running system: below another root they are "unknown".
    """
    ipv4, core = "proc/sys/net/ipv4", "proc/sys/net/core"
    found = {
        "congestion_control": told(root, f"{ipv4}/tcp_congestion_control"),
        "congestion_control_available": told(root, f"{ipv4}/tcp_available_congestion_control"),
        "tcp_rmem": told(root, f"{ipv4}/tcp_rmem"),
        "tcp_wmem": told(root, f"{ipv4}/tcp_wmem"),
        "rmem_max": told(root, f"{core}/rmem_max"),
        "wmem_max": told(root, f"{core}/wmem_max"),
        "default_qdisc": told(root, f"{core}/default_qdisc"),
        "busy_poll_us": told(root, f"{core}/busy_poll"),
        "rps_sock_flow_entries": told(root, f"{core}/rps_sock_flow_entries"),
        "softirq_budget_packets": told(root, f"{core}/netdev_budget"),
        "softirq_budget_us": told(root, f"{core}/netdev_budget_usecs"),
    }
    for name in default_interfaces(root) if interfaces is None else with_cards(interfaces, root):
        at = f"{_NET}/{name}"
        states = offloads(name) if root == ROOT else dict.fromkeys(_OFFLOADS, UNKNOWN)
        found |= {
            f"{name}.kind": kind(name, root),
            f"{name}.driver": driver(name, root),
            f"{name}.mtu": told(root, f"{at}/mtu"),
            f"{name}.speed_mbit_per_s": told(root, f"{at}/speed"),
            f"{name}.rps": steering(name, "rps", root),
            f"{name}.xps": steering(name, "xps", root),
            f"{name}.irq_affinity": irq_affinity(name, root),
            f"{name}.interrupt_delay_us": interrupt_delay_us(name) if root == ROOT else UNKNOWN,
            f"{name}.threaded_napi": told(root, f"{at}/threaded"),
            f"{name}.offloads": " ".join(f"{offload}={state}" for offload, state in states.items()),
        }
    return found
