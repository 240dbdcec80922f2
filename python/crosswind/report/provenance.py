"""How a measurement came about: what its header says, in words."""

from __future__ import annotations

from crosswind.documents.measurement import Kernel, MeasurementHeader, Peer, Placement, Traffic
from crosswind.report.words import plain


def provenance(header: MeasurementHeader) -> list[tuple[str, str]]:
    """Return (name, value) pairs of everything but the host's settings."""
    host = header["host"]
    return [
        ("name", header["name"]),
        ("command", " ".join(header["command"])),
        ("started", header["started"]),
        ("elapsed", f"{plain(header['elapsed_s'])} s, ended: {header['ended']}"),
        ("seed", str(header["seed"])),
        ("host", f"{host['name']}, {host['cpus']} CPUs"),
        ("processor", host["cpu"]),
        ("operating system", host["kernel"]),
        ("kernel", _kernel(header["kernel"])),
        *_placement(header["placement"]),
        *_traffic(header["traffic"], header["variation"]),
        ("blocks", _blocks(header)),
        *(("peer", _peer(peer)) for peer in header["peers"]),
    ]


def _kernel(kernel: Kernel) -> str:
    task = f"; task: {kernel['task']}" if kernel["task"] else ""
    return f"{kernel['name']}; work is counted in {kernel['unit']}{task}"


def _placement(placement: Placement) -> list[tuple[str, str]]:
    each = (placement["compute_cpus"], placement["traffic_cpus"], placement["sampler_cpus"])
    compute, traffic, sampler = (", ".join(map(str, cpus)) or "any" for cpus in each)
    threads = f"computation on CPU {compute}, traffic on {traffic}, sampler on {sampler}"
    nice = f"computation {placement['compute_nice']}, traffic {placement['traffic_nice']}"
    return [("placement", f"{placement['mode']}; {threads}"), ("nice levels", nice)]


def _traffic(traffic: Traffic, variation: str) -> list[tuple[str, str]]:
    streams = f"{traffic['streams']} connection{'' if traffic['streams'] == 1 else 's'} per channel"
    buffers = traffic["socket_buffer_bytes"]
    words = "autotuned" if buffers is None else f"{buffers:,} bytes"
    return [
        ("traffic", f"{traffic['message_bytes']:,} bytes per message, {streams}, waits by {traffic['wait']}"),
        ("pacing", f"{variation}, by the {traffic['paced_by']}, in chunks of {traffic['pacing_chunk_bytes']:,} bytes"),
        ("TCP", f"{traffic['congestion_control']}, socket buffers {words}"),
    ]


def _blocks(header: MeasurementHeader) -> str:
    block, settle, interval = map(plain, (header["block_s"], header["settle_s"], header["interval_s"]))
    return f"{block} s, of which the first {settle} s are not used; samples every {interval} s"


def _peer(peer: Peer) -> str:
    near = "this same machine" if peer["loopback"] else peer["host"]
    return f"{peer['address']} ({near}), round trip {plain(1e6 * peer['rtt_s'])} µs"
