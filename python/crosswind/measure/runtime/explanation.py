"""Why a runtime's figures are what they are: its scheduler decides what computes when. One sentence a direction."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def explanation(runtime: Mapping[str, Any], direction: str, moves: bool) -> str | None:
    """Return what in this runtime decides how traffic in this direction and computing share the CPU.

    Parameters
    ----------
    runtime : mapping
        `runtime` of a measurement's header.
    direction : {"receive", "send"}
    moves : bool
        Whether any byte moved while it computed.

    Returns
    -------
    str or None
        None where nothing is known of it.

    Examples
    --------
    >>> facts = {"threads": "virtual", "carriers": "1", "yield": "no"}
    >>> print(explanation({"name": "java", "facts": facts}, "send", moves=False))
    virtual threads are not pre-empted: the one that computes never leaves the only carrier, so no other runs
    """
    facts: Mapping[str, str] = runtime["facts"]
    by_name = {"java": _java, "go": _go, "cpython": _python, "node": _node}
    explain = by_name.get(runtime["name"])
    return explain(facts, direction, moves) if explain else None


def _java(facts: Mapping[str, str], direction: str, moves: bool) -> str | None:
    if facts.get("threads") == "virtual" and not moves:
        if facts.get("yield") == "yield":
            return "Thread.yield puts the computing virtual thread back immediately: one carrier never polls I/O"
        return (
            "virtual threads are not pre-empted: the one that computes never leaves the only carrier, so no other runs"
        )
    if facts.get("threads") == "virtual":
        return "virtual threads are not pre-empted: computing keeps one carrier, and traffic has the others"
    if facts.get("threads") == "virtual-traffic":
        return "the computing thread is the kernel's to schedule; virtual threads move bytes on carriers beside it"
    verb = "send" if direction == "send" else "receive"
    by_kind = {
        "direct": "NIO with direct buffers hands memory to the kernel as it is, as C does",
        "heap": "NIO with heap buffers copies each message once more, through a direct buffer",
        "stream": f"Socket streams {verb} in parts of at most 128 KiB, each copied once more",
    }
    return by_kind.get(facts.get("io", "stream"))


def _go(facts: Mapping[str, str], direction: str, moves: bool) -> str | None:
    del moves
    if facts.get("gomaxprocs") != "1":
        return "goroutines on several threads: the kernel decides which of them computes and which moves bytes"
    if direction == "receive":
        return (
            "GOMAXPROCS 1: a computing goroutine keeps the thread for 10 ms, so a receiver has one turn in each 10 ms"
        )
    return "GOMAXPROCS 1: a sender keeps the thread while its buffer has room, and computing gets 10 ms in between"


def _python(facts: Mapping[str, str], direction: str, moves: bool) -> str | None:
    del direction, moves
    if facts.get("io") == "asyncio":
        return "one event loop: after each step of the computing all sockets that are ready have their turn"
    if facts.get("gil") == "no":
        return "free-threaded: the kernel decides which thread runs"
    interval_ms = 1000 * float(facts.get("switch_interval", "0.005"))
    return f"the GIL: traffic lets go of it for each call, then waits {interval_ms:g} ms, the switch interval, for it"


def _node(facts: Mapping[str, str], direction: str, moves: bool) -> str | None:
    del direction, moves
    if facts.get("compute") == "worker":
        return "a worker thread computes: the kernel decides between it and the event loop that moves bytes"
    return "one event loop: all bytes that are there are moved before the next step of the computing"
