"""Whether the other end is there, speaks our language, and is really elsewhere."""

from __future__ import annotations

import socket
import statistics
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from crosswind.doctor.finding import Finding
from crosswind.errors import CrosswindError, DescriptionError
from crosswind.host import network
from crosswind.host.route import interface_to, is_same_machine, split_address
from crosswind.host.tree import ROOT

DEFAULT_PORT = 7117
_TRIES = 5
_PATIENCE_S = 3.0
# Blocks last at least 20 round trips: beyond this, several times the 40 ms that a local network allows.
LONG_RTT_S = 0.005
# Never reach a network card: both ends work on the same CPUs.
_WITHOUT_CARD = ("loopback", "veth", "bridge", "tun")

# Shakes hands with a peer: {"host": its name, "loopback": whether it runs on this same kernel, "rtt_s"}. Raises
# MeasurementError when it is no peer, or one of another version.
Greet = Callable[[str], Mapping[str, Any]]


def connect_times_s(host: str, port: int, tries: int = _TRIES) -> list[float]:
    """Seconds that each of some TCP connections took to open: one round trip each.

    Raises
    ------
    OSError
        When one could not be opened.
    """
    taken = []
    for _ in range(tries):
        start = time.perf_counter()
        with socket.create_connection((host, port), timeout=_PATIENCE_S):
            taken.append(time.perf_counter() - start)
    return taken


def reachable(address: str) -> list[Finding]:
    """Whether the peer accepts connections, how far away it is, and by which interface it is reached."""
    try:
        host, port = split_address(address, DEFAULT_PORT)
        assert port is not None  # a default was given
        there = is_same_machine(host)
    except DescriptionError as error:
        return [Finding("peer", "problem", str(error), error.hint)]
    try:
        rtt_s = statistics.median(connect_times_s(host, port))
    except OSError as error:
        start = f"`crosswind serve --listen 0.0.0.0:{port} --token-file FILE`"
        hint = f"start it there: {start}; or let a firewall pass TCP port {port}"
        return [Finding("peer", "problem", f"peer {host}:{port} does not answer: {error}", hint)]
    seen = f"peer {host}:{port} accepts connections, {1e3 * rtt_s:.3f} ms to open one"
    if rtt_s > LONG_RTT_S:
        hint = "give it more time: `--max-seconds 300`"
        return [
            Finding("peer", "note", f"{seen}: blocks last 20 round trips, so it takes longer", hint),
            _place(host, there),
        ]
    return [Finding("peer", "ok", seen), _place(host, there)]


def _place(host: str, same: bool, root: Path = ROOT) -> Finding:
    interface = interface_to(host)
    kind = network.kind(interface, root)
    if not same and kind not in _WITHOUT_CARD:
        return Finding("peer-place", "ok", f"peer {host} is reached by {interface} ({kind})")
    seen = f"peer {host} is reached by {interface} ({kind})" + (", this same machine" if same else "")
    seen += ": its own work and the receive softirq run on CPUs of this machine, unlike with a network card"
    hint = "use it for a first look; for figures that hold, run `crosswind serve` on another machine"
    return Finding("peer-place", "warning", seen, hint)


def greeting(address: str, greet: Greet) -> list[Finding]:
    """Return whether the peer is a Crosswind that speaks our language, and whether it runs on our own kernel."""
    try:
        answer = greet(address)
    except (CrosswindError, OSError) as error:
        hint = "install the same version of Crosswind there; is another program listening on that port?"
        mend = error.hint if isinstance(error, CrosswindError) and error.hint else hint
        return [Finding("peer-handshake", "problem", f"peer {address} does not answer as Crosswind: {error}", mend)]
    seen = f"peer {address} is {answer['host']}, round trip {1e3 * answer['rtt_s']:.3f} ms"
    found = [Finding("peer-handshake", "ok", seen)]
    if answer["loopback"] and not is_same_machine(address):
        seen = f"peer {address} has another address but runs on this same kernel (container or network namespace)"
        hint = "for figures that hold, run `crosswind serve` on another machine"
        found.append(Finding("peer-kernel", "warning", seen, hint))
    return found
