"""A plan as the commands of tc and ip that set the same, for people to read and run."""

from __future__ import annotations

from crosswind.filter.kernel.bpf import mark_program
from crosswind.filter.kernel.plan import (
    ETH_P_ARP,
    ETH_P_IP,
    ETH_P_IPV6,
    LOCAL,
    MAJOR,
    Fifo,
    Htb,
    HtbClass,
    Ifb,
    Ingress,
    Key,
    Match,
    MatchCgroup,
    MatchMark,
    Plan,
    SegmentSize,
    Step,
)

_PROTOCOLS = {ETH_P_IP: "ip", ETH_P_IPV6: "ipv6", ETH_P_ARP: "arp"}


def commands(plan: Plan) -> list[str]:
    """Return what a shell would run, one command a line; comments say what a command cannot.

    Examples
    --------
    >>> from crosswind.filter.kernel.plan import Device, plan
    >>> from crosswind.filter.kernel.selector import parse
    >>> made = plan(Device("eth0", 2, 1500), parse(["dscp:34"], "--parallel"), rate_mb_per_s=12.25)
    >>> commands(made)[:2]
    ['ip link set dev eth0 gso_max_size 3000', 'tc qdisc replace dev eth0 root handle c5: htb default 2']
    """
    return [line for step in plan.steps for line in command(step)]


def undo_commands(plan: Plan) -> list[str]:
    """Return the commands that take the plan back on a device that had the default qdisc."""
    device, lines = plan.device, []
    if plan.rate_in_mb_per_s is not None:
        lines += [f"tc qdisc del dev {device.name} ingress", f"ip link del {device.ifb}"]
    if plan.rate_mb_per_s is not None:
        lines.append(f"tc qdisc del dev {device.name} root")
    sizes = [step for step in plan.steps if isinstance(step, SegmentSize)]
    return lines + [f"ip link set dev {one.device} {one.limit} {getattr(device, one.limit)}" for one in sizes]


def command(step: Step) -> list[str]:
    """Return the commands of one step."""
    match step:
        case SegmentSize(device, limit, size):
            lines = [f"ip link set dev {device} {limit} {size}"]
        case Ifb(device):
            lines = [f"ip link add {device} type ifb", f"ip link set dev {device} up"]
        case Htb(device):
            lines = [f"tc qdisc replace dev {device} root handle {MAJOR:x}: htb default {LOCAL:x}"]
        case HtbClass():
            lines = [_class(step)]
        case Fifo(device, minor, limit):
            lines = [
                f"tc qdisc add dev {device} parent {MAJOR:x}:{minor:x} handle {_leaf(minor):x}: bfifo limit {limit}"
            ]
        case Match(device, order, protocol, keys, minor):
            told = " ".join(_key(key) for key in keys)
            lines = [f"{_filter(device, order, _PROTOCOLS[protocol])} u32 {told} flowid {MAJOR:x}:{minor:x}"]
        case MatchMark(device, order, mark, minor):
            program = mark_program(mark)
            told = ",".join([str(len(program)), *(" ".join(map(str, line)) for line in program)])
            lines = [f"{_filter(device, order, 'all')} bpf bytecode '{told}' flowid {MAJOR:x}:{minor:x}"]
        case MatchCgroup(device, order, _, _, path, minor):
            start = _filter(device, order, "all")
            lines = [f"# {path}, by a program that bpf(2) loads: {start} bpf fd N flowid {MAJOR:x}:{minor:x}"]
        case Ingress(device, through):
            redirected = f"u32 match u32 0 0 action mirred egress redirect dev {through}"
            lines = [f"tc qdisc add dev {device} ingress", f"{_filter(device, 1, 'all', 'ffff:')} {redirected}"]
    return lines


def _leaf(minor: int) -> int:
    """Return the major number of a class's own queue."""
    return MAJOR + minor


def _filter(device: str, order: int, protocol: str, parent: str = f"{MAJOR:x}:") -> str:
    return f"tc filter add dev {device} parent {parent} protocol {protocol} prio {order}"


def _key(key: Key) -> str:
    return f"match u32 {key.value:#x} {key.mask:#x} at {key.offset}" if key.mask else "match u32 0 0"


def _class(step: HtbClass) -> str:
    parent = f"{MAJOR:x}:{step.parent:x}" if step.parent else f"{MAJOR:x}:"
    return (
        f"tc class add dev {step.device} parent {parent} classid {MAJOR:x}:{step.minor:x} htb rate {step.rate * 8}bit"
        f" ceil {step.ceiling * 8}bit burst {step.burst} cburst {step.burst} quantum {step.quantum}"
        f" prio {step.priority}"
    )
