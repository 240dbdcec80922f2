"""The settings that give the filter's weights where the kernel, Cilium or a card's queues can do it.

Text for people to read and run; nothing is changed here. Marks are DSCPs: of parallel traffic and of local traffic.
Sources: tc-ets(8), tc-htb(8), tc-fq(8); Cilium's bandwidth manager (pod priorities, kernel 6.7 or later); NCCL's
NCCL_IB_TC; mlnx_qos. A card sees packets, not frames: its queues are served in bytes (as `drr`), whatever counts here.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

from crosswind import _core
from crosswind.errors import DescriptionError
from crosswind.filter import DEFAULT_DISCIPLINE, Discipline

Target = Literal["tc", "cilium", "nccl"]

PARALLEL_DSCP = 34
"""AF41: what waits for it is a person, or a program."""
"""Best effort: local users need not mark anything."""
_MTU_BYTES = 1514
_CILIUM = {("guaranteed", "burstable"): 3, ("guaranteed", "bestEffort"): 9}
_PAIRS = ((34, "parallel"), (0, "local"))


@dataclass(frozen=True)
class Export:
    """Settings for something else than the filter.

    Attributes
    ----------
    target : str
        "tc", "cilium" or "nccl".
    asked, given : tuple of float, or None
        Weights parallel to local that were asked for, and that these settings give; None: parallel always first.
    text : str
        The settings, with comments.
    undo : str
        What takes them back.
    was_run : bool
        Whether these settings were run for this project; the kernel at hand has HTB, not ets, fq or mqprio.
    """

    target: Target
    asked: tuple[float, float] | None
    given: tuple[float, float] | None
    text: str
    undo: str
    was_run: bool = False

    def to_dict(self) -> dict[str, object]:
        """As `crosswind filter --export TARGET --json` prints it, without checks."""
        return {**vars(self), "marks": {name: {"dscp": dscp, "tos": dscp << 2} for dscp, name in _PAIRS}}


def export(
    target: Target,
    queue: Discipline = DEFAULT_DISCIPLINE,
    threshold: int = 4,
    *,
    device: str = "eth0",
    rate_mb_per_s: float | None = None,
) -> Export:
    """Return the settings that serve two classes as the filter would.

    Parameters
    ----------
    target : str
        "tc" (a queueing discipline of the kernel), "cilium" (pods), "nccl" (RoCE cards).
    queue : str
        "threshold", "drr" (weights), or "strict".
    threshold : int
        The weight of class parallel to one of class local, 1 or more.
    device : str
        The network interface.
    rate_mb_per_s : float, optional
        tc: shape to this rate, MB/s, so that packets wait here and not further on; greater than 0.

    Returns
    -------
    Export

    Raises
    ------
    DescriptionError
        When there is nothing to set (fifo), or a value is out of its range.

    Examples
    --------
    >>> export("tc", device="ens3").text.splitlines()[1]
    'tc qdisc replace dev ens3 root handle 1: ets bands 2 quanta 6056 1514'
    """
    if queue == "fifo":
        raise DescriptionError(
            "fifo is what there is without any settings", "queue", "--policy drr, threshold or strict"
        )
    if threshold < 1:
        raise DescriptionError(f"threshold is {threshold}; it must be at least 1", "threshold")
    if rate_mb_per_s is not None and not rate_mb_per_s > 0:
        raise DescriptionError(f"rate is {rate_mb_per_s} MB/s; it must be greater than 0", "rate")
    if not device or any(sign.isspace() or sign in "/;|&$`'\"\\" for sign in device):
        raise DescriptionError(f"device is {device!r}, which is no network interface", "device")
    weight = None if queue == "strict" else threshold
    if target == "tc" and rate_mb_per_s is not None:
        made = _shaped(weight, device, rate_mb_per_s)
        told = "# These settings were run for this project (Linux 6.18); so is `crosswind filter --in-kernel`.\n"
        return replace(made, text=made.text + told, was_run=True)
    made = {"tc": _tc, "cilium": _cilium, "nccl": _nccl}[target](weight, device)
    return replace(made, text=made.text + "# These settings were not run for this project.\n")


def _asked(weight: int | None) -> tuple[float, float] | None:
    return None if weight is None else (float(weight), 1.0)


def _marking() -> str:
    tos = PARALLEL_DSCP << 2
    return (
        f"# Applications of class parallel mark their sockets: setsockopt(fd, IPPROTO_IP, IP_TOS, {tos:#04x}).\n"
        "# Or the kernel does, by port (here 8001):\n"
        "#   nft add table inet crosswind\n"
        "#   nft 'add chain inet crosswind out { type route hook output priority mangle; }'\n"
        "#   nft 'add rule inet crosswind out tcp dport 8001 ip dscp set af41'\n"
    )


def _filters(device: str) -> str:
    tos = PARALLEL_DSCP << 2
    return (
        f"tc filter add dev {device} parent 1: protocol ip prio 1 u32 match ip dsfield {tos:#04x} 0xfc flowid 1:1\n"
        f"tc filter add dev {device} parent 1: protocol ip prio 2 u32 match u32 0 0 flowid 1:2\n"
    )


def _tc(weight: int | None, device: str) -> Export:
    bands = f"quanta {weight * _MTU_BYTES} {_MTU_BYTES}" if weight else f"strict 1 quanta {_MTU_BYTES}"
    text = (
        f"# Packets wait here only where {device} itself is what limits; else give --rate.\n"
        f"tc qdisc replace dev {device} root handle 1: ets bands 2 {bands}\n" + _filters(device) + _marking()
    )
    return Export("tc", _asked(weight), _asked(weight), text, f"tc qdisc del dev {device} root\n")


def _shaped(weight: int | None, device: str, rate_mb_per_s: float) -> Export:
    bits = round(rate_mb_per_s * 8e6)
    # Strict: all is promised to class parallel but what keeps the other alive; unused, each may have all.
    parallel = round(bits * weight / (weight + 1)) if weight else bits - max(bits // 100, 1)
    first, second = ("", "") if weight else (" prio 0", " prio 1")
    quanta = (f" quantum {max(weight, 1) * _MTU_BYTES}", f" quantum {_MTU_BYTES}") if weight else ("", "")
    classes = (
        f"tc class add dev {device} parent 1: classid 1:10 htb rate {bits}bit ceil {bits}bit\n"
        f"tc class add dev {device} parent 1:10 classid 1:1 htb rate {parallel}bit ceil {bits}bit{first}{quanta[0]}\n"
        f"tc class add dev {device} parent 1:10 classid 1:2 htb rate {bits - parallel}bit ceil {bits}bit"
        f"{second}{quanta[1]}\n"
    )
    text = (
        f"# Shaped to {rate_mb_per_s:g} MB/s, so that packets wait here.\n"
        f"tc qdisc replace dev {device} root handle 1: htb default 2\n" + classes + _filters(device) + _marking()
    )
    given = _asked(weight) if weight else (99.0, 1.0)
    return Export("tc", _asked(weight), given, text, f"tc qdisc del dev {device} root\n")


def _cilium(weight: int | None, device: str) -> Export:
    # The nearest of the ratios that Cilium's priorities have; ratios, so nearest by factors.
    pair = (
        min(_CILIUM, key=lambda pair: abs(_CILIUM[pair] / (weight or 9) - 1))
        if weight
        else ("guaranteed", "bestEffort")
    )
    ratio = _CILIUM[pair]
    exact = ""
    if weight != ratio and weight is not None:
        exact = (
            f"# {weight} to 1 exactly, on each node's {device} (kernel 6.7 or later); Cilium may set it back:\n"
            f"#   tc qdisc replace dev {device} root fq weights {weight * 65536} 65536 65536\n"
        )
    text = (
        "# Needs Cilium with bandwidthManager.enabled=true and kernel 6.7 or later. Pods of class parallel:\n"
        "metadata:\n"
        "  annotations:\n"
        f"    bandwidth.cilium.io/priority: {pair[0]}\n"
        "---\n"
        "# Pods of class local:\n"
        "metadata:\n"
        "  annotations:\n"
        f"    bandwidth.cilium.io/priority: {pair[1]}\n"
        f"# Cilium serves these {ratio} to 1, by packets' priority on the node: nothing of it is on the wire.\n" + exact
    )
    undo = "remove the annotations bandwidth.cilium.io/priority\n"
    return Export("cilium", _asked(weight), (float(ratio), 1.0), text, undo)


def _nccl(weight: int | None, device: str) -> Export:
    priority = PARALLEL_DSCP >> 3
    queues = ",".join("1" if one == priority else "0" for one in range(8))
    percent = None if weight is None else min(max(round(100 * weight / (weight + 1)), 1), 99)
    kinds = ",".join(["ets", "ets" if weight else "strict"] + ["ets"] * 6)
    shares = ",".join(str(one) for one in ([100 - percent, percent] if percent else [100, 0]) + [0] * 6)
    text = (
        "# Of every rank: RoCE packets of NCCL carry the mark.\n"
        f"export NCCL_IB_TC={PARALLEL_DSCP << 2}\n"
        f"# On each host: {device} trusts the mark (DSCP {PARALLEL_DSCP} is priority {priority}) and serves it from a"
        " queue of its own.\n"
        f"mlnx_qos -i {device} --trust dscp --prio_tc {queues} --tsa {kinds} --tcbw {shares}\n"
        "# Switches on the way need the same mapping. On InfiniBand it is NCCL_IB_SL and the subnet manager's.\n"
        "# Over sockets NCCL marks nothing: use --export tc and mark by port or by control group.\n"
    )
    given = None if percent is None else (float(percent), float(100 - percent))
    undo = f"unset NCCL_IB_TC\nmlnx_qos -i {device} --trust pcp --prio_tc 0,1,2,3,4,5,6,7 --tsa " + ",".join(
        ["vendor"] * 8
    )
    return Export("nccl", _asked(weight), given, text, undo + "\n")


def check_marks(
    target: Target, peer: str | None = None, token: str | None = None, tls: str | Path | None = None
) -> list[dict[str, object]]:
    """Send a connection's packets with each class's mark, and see with which they arrive.

    Parameters
    ----------
    target : str
        What the settings are for.
    peer : str, optional
        HOST:PORT of a `crosswind filter --listen` on the other host; None: over loopback, which shows that sockets may
        be marked here, and no more.
    token : str, optional
        What both ends share; off loopback there must be this or `tls`.
    tls : path, optional
        This node's directory of certificates.

    Returns
    -------
    list of dict
        Per class: `class`, `sent_dscp`, `arrived_dscp` (None: the other end cannot tell), `ok`.

    Raises
    ------
    DescriptionError
        For "cilium", whose priorities stay on the node.
    AgentLost
        When the peer can't be reached or does not let us in.

    Examples
    --------
    >>> [one["ok"] for one in check_marks("tc")]
    [True, True]
    """
    if target == "cilium":
        message = "Cilium's priorities stay on the node: nothing on the wire could be checked"
        raise DescriptionError(message, "argument", "`tc -s qdisc show` on a node counts packets per band")
    found = []
    for dscp, name in _PAIRS:
        arrived = _core.arriving_mark(dscp << 2, peer, token, str(tls) if tls else None)
        seen = None if arrived is None else arrived >> 2
        found.append({"class": name, "sent_dscp": dscp, "arrived_dscp": seen, "ok": seen == dscp})
    return found
