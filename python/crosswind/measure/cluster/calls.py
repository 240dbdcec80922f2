"""Calls of a few known functions on another host, over a connection: each a document of JSON, and so is its answer.

Nothing that comes over the connection is unpickled, and no other function is called.
"""

from __future__ import annotations

import base64
import hmac
import json
import secrets
import socket
import struct
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

from crosswind import errors
from crosswind.errors import AgentLost, CrosswindError

MODULES = ("crosswind.measure.cluster.at_host", "crosswind.check.at_host")
"""Whose functions may be called."""
LARGEST_BYTES = 1 << 28
_MASKED, _DRAWN = "masked", 32


class Secret(str):
    """A text of at most 32 bytes in ASCII that must not be read on the way, such as the token of a visit."""

    __slots__ = ()


def send(line: socket.socket, document: Mapping[str, Any]) -> None:
    """Send a document, with its length before it."""
    text = json.dumps(document).encode()
    line.sendall(struct.pack("!I", len(text)) + text)


def receive(line: socket.socket, largest: int = LARGEST_BYTES) -> dict[str, Any]:
    """Return the next document.

    Raises
    ------
    AgentLost
        When the connection ends before, or what comes is no document of at most `largest` bytes.
    """
    (length,) = struct.unpack("!I", _exactly(line, 4))
    if length > largest:
        raise AgentLost(f"{length} bytes were announced; {largest} is the most", "host-lost")
    try:
        document = json.loads(_exactly(line, length))
    except (ValueError, RecursionError) as error:
        raise AgentLost(f"what came is no document: {error}", "host-lost") from None
    if not isinstance(document, dict):
        raise AgentLost("what came is no document", "host-lost")
    return document


def _exactly(line: socket.socket, count: int) -> bytes:
    parts = bytearray()
    while len(parts) < count:
        if not (part := line.recv(min(count - len(parts), 1 << 20))):
            raise AgentLost("the connection ended", "host-lost")
        parts += part
    return bytes(parts)


def request(function: Callable[..., Any], arguments: Sequence[Any]) -> dict[str, Any]:
    """Return the document that asks for a call."""
    return {"module": function.__module__, "function": function.__name__, "arguments": list(arguments)}


def masked(value: Any, key: bytes) -> Any:
    """Return arguments in which each `Secret` can be read with the key only, and is written anew each time.

    Examples
    --------
    >>> sent = masked(["peer", {"token": Secret("0" * 32)}], b"key")
    >>> "0000" in str(sent), unmasked(sent, b"key") == ["peer", {"token": "0" * 32}]
    (False, True)
    """
    if isinstance(value, Secret):
        drawn = secrets.token_bytes(_DRAWN)
        return {_MASKED: [drawn.hex(), _mixed(value.encode().ljust(_DRAWN), drawn, key).hex()]}
    if isinstance(value, dict):
        return {name: masked(each, key) for name, each in value.items()}
    return [masked(each, key) for each in value] if isinstance(value, list) else value


def unmasked(value: Any, key: bytes) -> Any:
    """Return what `masked` was given."""
    if isinstance(value, dict):
        if set(value) == {_MASKED}:
            drawn, text = (bytes.fromhex(each) for each in value[_MASKED])
            return _mixed(text, drawn, key).decode().rstrip()
        return {name: unmasked(each, key) for name, each in value.items()}
    return [unmasked(each, key) for each in value] if isinstance(value, list) else value


def _mixed(text: bytes, drawn: bytes, key: bytes) -> bytes:
    if len(text) != _DRAWN:
        raise ValueError(f"a secret has {len(text)} bytes; {_DRAWN} are permitted")
    return bytes(one ^ other for one, other in zip(text, hmac.digest(key, drawn, "sha256"), strict=True))


def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
    """Do what is asked for, and return the document that answers it; what was raised is an answer, too.

    Examples
    --------
    >>> from crosswind.measure.cluster import at_host
    >>> sorted(value(answer(request(at_host.look, []))))
    ['crosswind', 'name', 'python']
    >>> value(answer({"module": "os", "function": "system", "arguments": ["true"]}))
    Traceback (most recent call last):
    ...
    crosswind.errors.CrosswindError: os.system is not one of the functions that may be called
    """
    try:
        module, name = asked["module"], asked["function"]
        if module not in MODULES or str(name).startswith("_"):
            raise CrosswindError(f"{module}.{name} is not one of the functions that may be called", "refused")
        found = getattr(import_module(module), name)(*asked["arguments"])
    except CrosswindError as error:
        kind, code, hint = type(error).__name__, error.code, error.hint
        return {"error": {"kind": kind, "message": str(error), "code": code, "hint": hint}}
    except Exception as error:  # whatever the function raised is for its caller
        message = f"{type(error).__name__}: {error}"
        return {"error": {"kind": "CrosswindError", "message": message, "code": "failed", "hint": None}}
    return {"bytes": base64.b64encode(found).decode()} if isinstance(found, bytes) else {"value": found}


def value(answered: Mapping[str, Any]) -> Any:
    """Return what a call returned, or raise what it raised."""
    if error := answered.get("error"):
        kind = getattr(errors, str(error["kind"]), CrosswindError)
        raise kind(error["message"], error["code"], error["hint"])
    return base64.b64decode(answered["bytes"]) if "bytes" in answered else answered.get("value")
