"""What this host lacks, or what will disturb a measurement, with the command that mends it.

Judges what `crosswind.host` describes. Changes nothing that stays, needs no privilege, and sends nothing but a greeting
to a peer that is named.
"""

from __future__ import annotations

import os
import time
from functools import partial
from pathlib import Path

from crosswind.doctor import disturbances, kernel, network, processor, surroundings
from crosswind.doctor.finding import Finding, Level
from crosswind.doctor.peer import DEFAULT_PORT, Greet, greeting, reachable
from crosswind.errors import CrosswindError
from crosswind.host.activity import Snapshot
from crosswind.host.cgroup import unified_mount
from crosswind.host.network import default_interfaces, with_cards
from crosswind.host.network import offloads as offload_states
from crosswind.host.route import interface_to, split_address
from crosswind.host.tree import ROOT, UNKNOWN
from crosswind.serve import greet as greet_peer

__all__ = ["Finding", "Level", "doctor"]


def doctor(
    peer: str | None = None,
    seconds: float = 1.0,
    *,
    token: str | None = None,
    tls: str | Path | None = None,
    root: Path = ROOT,
    greet: Greet | None = None,
) -> list[Finding]:
    """Look at this host, and at a peer when one is named.

    Parameters
    ----------
    peer : str, optional
        HOST:PORT of a `crosswind serve`. Without one, the interface of the default route is looked at.
    seconds : float
        How long to watch the CPUs, s, greater than 0; 1 s distinguishes loads of 0.02 CPU.
    token, tls : str or path, optional
        What the peer asks for; this node's directory of certificates.
    root : Path
        Where `proc` and `sys` lie.
    greet : callable
        Shakes hands with a peer; default: for real.

    Returns
    -------
    list of Finding
        The worst first; what is in order is there too, with the value that was seen.

    Examples
    --------
    >>> findings = doctor(seconds=0.1)
    >>> {"cpus", "cpu-quota", "steal", "foreign-load"} <= {finding.code for finding in findings}
    True
    """
    before = Snapshot.take(root)
    time.sleep(seconds)
    activity = Snapshot.take(root).since(before)
    found = [
        processor.enough_cpus(root),
        processor.quota(root),
        *processor.frequency(root),
        processor.threads_per_core(root),
        processor.steal(activity, root),
        *processor.foreign_load(activity, [os.getpid()], root),
        processor.autogroup(root),
        processor.clock(root),
        *processor.accounting(root),
        *kernel.huge_pages(root),
        *kernel.numa_balancing(root),
        *kernel.idle_states(root),
        *kernel.without_ticks(root),
        network.congestion_control(root),
        network.socket_buffers(root),
        *network.isolated(root),
        *network.moving_interrupts([process.name for process in activity.present]),
        surroundings.memory(root),
        *surroundings.permissions(root),
        surroundings.open_files(),
        *surroundings.programs(),
        *surroundings.runtimes_at_start(),
        disturbances.real_time_limit(root),
    ]
    if root == ROOT:  # these try it
        found += [disturbances.recording(), *disturbances.injecting(), disturbances.left_behind()]
        found += disturbances.left_frozen(unified_mount())
    for interface in _interfaces(peer, root):
        states = offload_states(interface) if root == ROOT else {}
        found += network.path_of(interface, states, root)
    found += _peer(peer, greet or partial(greet_peer, token=token, tls=tls))
    worst = ("problem", "warning", "note", "ok")
    return sorted(found, key=lambda finding: worst.index(finding.level))


def _interfaces(peer: str | None, root: Path) -> list[str]:
    if peer is None:
        return [name for name in default_interfaces(root) if name != "lo"] or ["lo"]
    try:
        name = interface_to(peer)
    except CrosswindError:
        return []  # the peer's own finding says so
    return [] if name == UNKNOWN else with_cards([name], root)


def _peer(peer: str | None, greet: Greet) -> list[Finding]:
    if peer is None:
        seen = "no peer was named: `crosswind measure` would start one on this machine, on loopback"
        hint = (
            "run `crosswind serve --listen 0.0.0.0:7117 --token-file FILE` on another machine, then "
            "`crosswind doctor --peer HOST:7117 --token-file FILE`"
        )
        return [Finding("peer", "note", seen, hint)]
    found = reachable(peer)
    if found[0].level != "problem":
        host_, port = split_address(peer, DEFAULT_PORT)
        found += greeting(f"[{host_}]:{port}" if ":" in host_ else f"{host_}:{port}", greet)
    return found
