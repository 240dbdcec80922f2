"""Which rate a link gives: bulk of eight connections to a far end, with headers, as the qdisc counts it."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Literal

from crosswind.errors import MeasurementError
from crosswind.filter.kernel.apply import link_at
from crosswind.filter.kernel.check import Path
from crosswind.filter.kernel.netlink import Kernel
from crosswind.filter.kernel.plan import FRAME_OVERHEAD, Device
from crosswind.filter.kernel.traffic import Sender

SHARE, SHARE_IN = 0.98, 0.95
"""Part of the link's rate to which what leaves and what arrives is shaped: at 100 % packets wait in the link again."""
SECONDS = 3.0
_HEADERS = 20 + 32  # IPv4, TCP with time stamps


@dataclass(frozen=True)
class LinkRate:
    """What was measured.

    Attributes
    ----------
    link_mb_per_s : float
        What the link gives, MB/s, with the headers of longest packets.
    rate_mb_per_s : float
        What to shape to, MB/s.
    """

    link_mb_per_s: float
    rate_mb_per_s: float


def measured(device: Device, peer: str, token: str | None = None, *, arriving: bool = False) -> LinkRate:
    """Return the rate of the path to a peer, from 3 s of bulk of eight connections.

    Bytes are counted where they arrive: what a device has sent may have been dropped on the way.

    Parameters
    ----------
    device : Device
        The network device, whose longest packets say what headers add.
    peer : str
        HOST:PORT of a `crosswind filter check --listen` beyond it.
    token : str, optional
        What both ends share.
    arriving : bool
        Of what arrives, instead of what leaves.

    Raises
    ------
    AgentLost
        When the peer cannot be reached.
    MeasurementError
        When next to nothing goes through the device: the peer is not behind it.
    """
    kind: Literal["rx_bytes", "tx_bytes"] = "rx_bytes" if arriving else "tx_bytes"
    path = Path(peer, token, seconds=SECONDS, arriving=arriving)
    with ExitStack() as stack:
        kernel = stack.enter_context(Kernel())
        sender = stack.enter_context(Sender(path.job("local", "bulk")))
        sender.ready()
        before, begin = _counted(kernel, device, kind), time.monotonic()
        sender.go()
        received = sum(sender.found()["mb_per_s"])
        counted = (_counted(kernel, device, kind) - before) / (time.monotonic() - begin) / 1e6
    link = received * (device.mtu + FRAME_OVERHEAD) / (device.mtu - _HEADERS)
    if counted < received / 2:
        message = f"{counted:.3g} MB/s went through {device.name} while {received:.3g} MB/s were exchanged with {peer}"
        raise MeasurementError(message, "rate", f"is {peer} reached through {device.name}? `ip route get` shows it")
    return LinkRate(link, link * (SHARE_IN if arriving else SHARE))


def _counted(kernel: Kernel, device: Device, kind: Literal["rx_bytes", "tx_bytes"]) -> int:
    found = link_at(kernel, device.index)
    if found is None:
        raise MeasurementError(f"{device.name} does not exist any more", "gone")
    return found[1][kind]
