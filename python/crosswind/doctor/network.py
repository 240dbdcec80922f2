"""Where received bytes are worked on, in which portions, and under which TCP."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from crosswind.doctor.finding import Finding
from crosswind.host import network, processor
from crosswind.host.tree import ROOT, UNKNOWN, number, told

# A smaller rmem_max or wmem_max caps --socket-buffer below what one fast stream needs: a prototype paid twice as much
# per MB with 256 KB as with 4 MB (docs/concepts/measuring.md).
SMALL_BUFFER_BYTES = 1_000_000


def softirq_placement(interface: str, root: Path = ROOT) -> Finding:
    """On which CPUs the packets of an interface are worked on."""
    kind = network.kind(interface, root)
    rps = network.steering(interface, "rps", root)
    code = "softirq-placement"
    if kind == UNKNOWN:
        return Finding(code, "note", f"interface {interface} is not visible: its packets' CPU is unknown")
    steered = "" if rps in ("off", "not available", UNKNOWN) else f"; RPS steers received packets ({rps})"
    if kind in ("loopback", "veth", "bridge", "tun") and not network.cards_below(interface, root):
        seen = f"{interface} is a {kind}: the sender's CPU works on its packets, not one that a network card interrupts"
        hint = f"steer them as a card would: `echo MASK | sudo tee /sys/class/net/{interface}/queues/rx-0/rps_cpus`"
        return Finding(code, "note", seen + steered, hint)
    affinity = network.irq_affinity(interface, root)
    if cards := network.cards_below(interface, root):
        seen = f"{interface} is a {kind} over {', '.join(cards)}, which interrupt CPUs (irq: CPU) {affinity}{steered}"
        return Finding(code, "note", seen)
    seen = f"{interface} ({network.driver(interface, root)}) interrupts CPUs (irq: CPU) {affinity}{steered}"
    hint = "interference depends on it: compute on such a CPU and on another, `--placement explicit --compute-cpus N`"
    return Finding(code, "note", seen, hint)


def offloads(interface: str, states: Mapping[str, str]) -> Finding:
    """Whether segmentation offloads are on: without them each MB costs several times more."""
    off = [name for name in ("tso", "gso", "gro") if states.get(name) == "off"]
    if off:
        seen = f"{interface}: {', '.join(off)} off: each MB costs several times more than usual"
        return Finding("offloads", "warning", seen, f"`sudo ethtool -K {interface} {' '.join(f'{o} on' for o in off)}`")
    seen = ", ".join(f"{name} {state}" for name, state in states.items())
    return Finding("offloads", "ok" if UNKNOWN not in states.values() else "note", f"{interface}: {seen}")


def congestion_control(root: Path = ROOT) -> Finding:
    """Whether the default congestion control paces by timers of its own."""
    now = told(root, "proc/sys/net/ipv4/tcp_congestion_control")
    if not now.startswith("bbr"):
        return Finding("congestion-control", "ok", f"default congestion control {now}")
    seen = f"default congestion control {now}: it paces by timers of its own and costs more per MB"
    hint = "`--congestion-control cubic`, or `sudo sysctl net.ipv4.tcp_congestion_control=cubic`"
    return Finding("congestion-control", "note", seen, hint)


def socket_buffers(root: Path = ROOT) -> Finding:
    """Whether a socket buffer of some size may be asked for."""
    limits = {name: number(root, f"proc/sys/net/core/{name}") for name in ("rmem_max", "wmem_max")}
    seen = ", ".join(f"{name} {'unknown' if limit is None else f'{limit} bytes'}" for name, limit in limits.items())
    small = [name for name, limit in limits.items() if limit is not None and limit < SMALL_BUFFER_BYTES]
    if not small:
        return Finding("socket-buffers", "ok", seen)
    hint = f"`sudo sysctl {' '.join(f'net.core.{name}=4194304' for name in small)}`"
    return Finding("socket-buffers", "note", f"{seen}: caps --socket-buffer (autotuning is not capped)", hint)


def moving_interrupts(names: list[str]) -> list[Finding]:
    """Whether irqbalance moves interrupts while we measure."""
    if "irqbalance" not in names:
        return []
    seen = "irqbalance runs: it may move interrupts to another CPU in the middle of a measurement"
    return [Finding("irqbalance", "note", seen, "`sudo systemctl stop irqbalance` while measuring")]


def path_of(interface: str, states: Mapping[str, str], root: Path = ROOT) -> list[Finding]:
    """All about the interface that the traffic takes."""
    return [softirq_placement(interface, root), offloads(interface, states)]


def isolated(root: Path = ROOT) -> list[Finding]:
    """Whether there are CPUs kept free for us that we do not use."""
    kept = told(root, "sys/devices/system/cpu/isolated")
    if kept == UNKNOWN:
        return []
    allowed = processor.allowed_cpus(root)
    seen = f"CPUs {kept} are isolated from the scheduler (allowed here: {len(allowed)} CPUs)"
    return [Finding("isolated", "note", seen, f"`taskset -c {kept} crosswind ...` to measure on them")]
