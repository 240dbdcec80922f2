"""How a host and the root of a measurement know each other, before anything else is read of the connection.

Both prove that they know the token of the file of hosts, by HMAC-SHA256 over what both drew at random, which end it is
and the host's name. The token never travels, and a recorded exchange is useless later. Frames have a fixed form:
nothing of an unauthenticated connection is parsed beyond its lengths.
"""

from __future__ import annotations

import hmac
import secrets
import socket
import struct
import time
from dataclasses import dataclass

from crosswind.errors import AgentLost

PATIENCE_S = 5.0
"""Time from the connection to the proof, however slowly bytes come (SECURITY.md)."""
UNAUTHENTICATED = 64
"""Connections at a time that have proved nothing; more wait in the kernel."""
_MAGIC = b"CWCL\x00\x01"
_DRAWN, _PROOF, _LONGEST_NAME = 32, 32, 1024
_HEAD = struct.Struct(f"!{len(_MAGIC)}s{_DRAWN}sH")
_HOST, _ROOT = b"crosswind, a host calls ", b"crosswind, a root answers "


@dataclass(frozen=True)
class Session:
    """A connection whose ends know each other: the host's name, and a key that only both can compute."""

    name: str
    key: bytes


def announce(line: socket.socket, name: str, token: str) -> Session:
    """Give the root a host's name, and prove it.

    Raises
    ------
    AgentLost
        When the root does not prove that it knows the token.
    OSError
        When the connection ends, or the time is over.
    """
    until = time.monotonic() + PATIENCE_S
    own, named = secrets.token_bytes(_DRAWN), name.encode()
    line.settimeout(PATIENCE_S)
    line.sendall(_HEAD.pack(_MAGIC, own, len(named)) + named)
    theirs = _exactly(line, _DRAWN, until)
    if not hmac.compare_digest(_exactly(line, _PROOF, until), _proof(token, _ROOT, own, theirs, named)):
        raise AgentLost("the root does not know the token", "not-authenticated")
    line.sendall(_proof(token, _HOST, own, theirs, named))
    return Session(name, _proof(token, b"key", own, theirs, named))


def meet(line: socket.socket, token: str, known: frozenset[str]) -> Session:
    """Return at the root which host has connected.

    Raises
    ------
    AgentLost
        When it is none of these hosts, or does not prove it.
    OSError
        When the connection ends, or the time is over.
    """
    until = time.monotonic() + PATIENCE_S
    magic, theirs, length = _HEAD.unpack(_exactly(line, _HEAD.size, until))
    if magic != _MAGIC or length > _LONGEST_NAME:
        raise AgentLost("it is no host of a measurement", "not-authenticated")
    named = _exactly(line, length, until)
    own = secrets.token_bytes(_DRAWN)
    line.settimeout(max(until - time.monotonic(), 0.001))
    line.sendall(own + _proof(token, _ROOT, theirs, own, named))
    proof = _exactly(line, _PROOF, until)
    name = named.decode(errors="replace")
    if not hmac.compare_digest(proof, _proof(token, _HOST, theirs, own, named)) or name not in known:
        raise AgentLost("it does not prove that it is a host of the file", "not-authenticated")
    return Session(name, _proof(token, b"key", theirs, own, named))


def _proof(token: str, end: bytes, of_host: bytes, of_root: bytes, name: bytes) -> bytes:
    return hmac.digest(token.strip().encode(), _MAGIC + end + of_host + of_root + name, "sha256")


def _exactly(line: socket.socket, count: int, until: float) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        left = until - time.monotonic()
        if left <= 0.0:
            raise TimeoutError("the time for the proof is over")
        line.settimeout(left)
        if not (part := line.recv(count - len(parts))):
            raise AgentLost("the connection ended", "host-lost")
        parts += part
    return bytes(parts)
