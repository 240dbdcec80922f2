"""The far end of a check: takes bulk, gives bulk, answers messages; `crosswind filter check --listen`.

Each connection proves that it knows the token before anything else is read from it (HMAC-SHA256 over what both ends
drew), and has a process of its own. What is sent means nothing: it is measured.
"""

from __future__ import annotations

import contextlib
import errno
import hmac
import ipaddress
import json
import os
import secrets
import selectors
import signal
import socket
import struct
import time
from collections.abc import Callable, Mapping

from crosswind.errors import AgentLost, DescriptionError

BLOCK = 1 << 18
LARGEST_MESSAGE = 1 << 20
LONGEST_S = 600.0
_DRAWN = 32
_PATIENCE_S = 5.0
_PORT_PATIENCE_S = 2.0  # the caller before may have closed only now
_IDLE_S = 60.0
_MOST_CONNECTIONS = 256
_LONGEST_REQUEST = 1024
_CLIENT, _SERVER = b"crosswind filter check, client", b"crosswind filter check, server"
_LEAST_TOKEN = 16


def address_of(text: str, option: str, token: str | None) -> tuple[str, int]:
    """Return host and port; off loopback there must be a token.

    Raises
    ------
    DescriptionError
        When it is not HOST:PORT, or others reach it and there is no token.
    """
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65535:
        raise DescriptionError(
            f"{option} is {text!r}; it must be HOST:PORT", "argument", f"such as {option} there:7300"
        )
    host = host.strip("[]")
    if token is not None and len(token) < _LEAST_TOKEN:
        raise DescriptionError(f"the token has {len(token)} bytes; it must have {_LEAST_TOKEN} or more", "token")
    if token is None and not _is_loopback(host):
        hint = "--token-file FILE, the same on both hosts"
        raise DescriptionError(f"{text} is off loopback, and there is no token", "open", hint)
    return host, int(port)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def received(connection: socket.socket, count: int) -> bytes:
    """Return exactly `count` bytes.

    Raises
    ------
    AgentLost
        When the connection ends before.
    """
    parts = bytearray()
    while len(parts) < count:
        if not (part := connection.recv(count - len(parts))):
            raise AgentLost("the far end closed the connection", "lost")
        parts += part
    return bytes(parts)


def dial(
    address: tuple[str, int],
    token: str | None,
    request: Mapping[str, str | int | float],
    prepare: Callable[[socket.socket], None] = lambda _: None,
) -> socket.socket:
    """Return a connection on which the far end does what is requested.

    Parameters
    ----------
    address : tuple
        Host and port.
    token : str, optional
        What both ends share.
    request : mapping
        `do`: "take" (`warm_s`, `seconds`), "give", "answer" (`bytes`) or "listen" (`port`); `tos`: the mark of what it
        sends.
    prepare : function
        Marks the socket before it connects.

    Raises
    ------
    AgentLost
        When the far end cannot be reached, is something else, or does not know the token.
    """
    named = f"{address[0]}:{address[1]}"
    hint = f"`crosswind filter check --listen {named}` there"
    connection = None
    try:
        family, kind, protocol, _, place = socket.getaddrinfo(*address, type=socket.SOCK_STREAM)[0]
        connection = socket.socket(family, kind, protocol)
        prepare(connection)
        connection.settimeout(_PATIENCE_S)
        connection.connect(place)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        theirs, own = received(connection, _DRAWN), secrets.token_bytes(_DRAWN)
        connection.sendall(own + _proof(token, _CLIENT, theirs, own))
        if not hmac.compare_digest(received(connection, _DRAWN), _proof(token, _SERVER, theirs, own)):
            raise AgentLost(f"{named} does not know the token", "refused")
        text = json.dumps(request).encode()
        connection.sendall(struct.pack("!H", len(text)) + text)
        if received(connection, 1) != b"+":
            raise AgentLost(f"{named} cannot do that: {connection.recv(200).decode(errors='replace')}", "refused")
    except OSError as error:
        _close(connection)
        why = "no answer in 5 s" if isinstance(error, TimeoutError) else error.strerror or str(error)
        raise AgentLost(f"{named} cannot be reached: {why}", "unreachable", hint) from None
    except AgentLost as error:
        _close(connection)
        raise AgentLost(f"{named}: {error}", error.code, error.hint or f"{hint}, with the same token") from None
    connection.settimeout(_IDLE_S)
    return connection


def _close(connection: socket.socket | None) -> None:
    if connection is not None:
        connection.close()


def _proof(token: str | None, end: bytes, theirs: bytes, own: bytes) -> bytes:
    return hmac.digest((token or "").encode(), end + theirs + own, "sha256")


class FarEnd:
    """A listener whose connections each get a process; `serve` until it is asked to end."""

    def __init__(self, listen: str, token: str | None, *, option: str = "--listen", patience_s: float = 0.0) -> None:
        host, port = address_of(listen, option, token)
        self._token = token
        try:
            self._listener = _listening(host, port, patience_s)
        except OSError as error:
            why = str(error.strerror).partition(" (while")[0]
            raise DescriptionError(f"{option} is {listen!r}: {why}", "listen") from None
        self._children: set[int] = set()
        self.address = f"{host}:{self._listener.getsockname()[1]}"

    def serve(self, ended: Callable[[], bool]) -> None:
        """Serve until it is to end; then end all connections."""
        with selectors.DefaultSelector() as ready:
            ready.register(self._listener, selectors.EVENT_READ)
            try:
                while not ended():
                    self._reap()
                    if ready.select(0.1) and len(self._children) < _MOST_CONNECTIONS:
                        self._take()
            finally:
                self._listener.close()
                for child in self._children:
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(child, signal.SIGKILL)
                        os.waitpid(child, 0)

    def _take(self) -> None:
        try:
            connection, _ = self._listener.accept()
        except OSError:
            return
        child = os.fork()
        if child:
            self._children.add(child)
            connection.close()
            return
        code = 1
        try:
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
                signal.signal(number, signal.SIG_DFL)
            self._listener.close()
            _served(connection, self._token)
            code = 0
        except (OSError, AgentLost, ValueError, KeyError, TypeError):
            pass
        finally:
            os._exit(code)

    def _reap(self) -> None:
        for child in list(self._children):
            if os.waitpid(child, os.WNOHANG)[0]:
                self._children.discard(child)


def _listening(host: str, port: int, patience_s: float) -> socket.socket:
    family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
    until = time.monotonic() + patience_s
    while True:
        try:
            listener = socket.create_server((host, port), family=family, backlog=128)
        except OSError as error:
            if error.errno != errno.EADDRINUSE or time.monotonic() >= until:
                raise
            time.sleep(0.02)
        else:
            listener.setblocking(False)
            return listener


def _served(connection: socket.socket, token: str | None) -> None:
    """Let one connection prove itself, and do what it requests."""
    connection.settimeout(_PATIENCE_S)
    signal.setitimer(signal.ITIMER_REAL, _PATIENCE_S)  # however slowly bytes come; the default ends the process
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    own = secrets.token_bytes(_DRAWN)
    connection.sendall(own)
    theirs = received(connection, _DRAWN)
    if not hmac.compare_digest(received(connection, _DRAWN), _proof(token, _CLIENT, own, theirs)):
        return
    connection.sendall(_proof(token, _SERVER, own, theirs))
    (length,) = struct.unpack("!H", received(connection, 2))
    request = json.loads(received(connection, min(length, _LONGEST_REQUEST)))
    signal.setitimer(signal.ITIMER_REAL, 0)
    connection.settimeout(_IDLE_S)
    tos = int(request.get("tos", 0)) & 0xFC
    if tos and connection.family == socket.AF_INET:
        connection.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, tos)
    match request["do"]:
        case "take":
            _take_bulk(connection, float(request["warm_s"]), min(float(request["seconds"]), LONGEST_S))
        case "give":
            _give_bulk(connection)
        case "answer":
            _answer(connection, min(int(request["bytes"]), LARGEST_MESSAGE))
        case "listen":
            _listen(connection, int(request["port"]), token)


def _take_bulk(connection: socket.socket, warm_s: float, seconds: float) -> None:
    """Read, and say how many bytes came in the time that was asked for, and what that was in s."""
    connection.sendall(b"+")
    buffer = bytearray(BLOCK)
    begin = time.monotonic() + min(max(warm_s, 0.0), LONGEST_S)
    taken, since, last = 0, None, begin
    while (now := time.monotonic()) < begin + seconds:
        count = connection.recv_into(buffer)
        if not count:
            break
        if since is None and now >= begin:
            since = now
        elif since is not None:
            taken += count
            last = time.monotonic()
    told = {"bytes": taken, "seconds": max(last - (since or begin), 1e-9)}
    connection.sendall(json.dumps(told).encode() + b"\n")
    while connection.recv_into(buffer):  # until the sender has read it and closes
        pass


def _give_bulk(connection: socket.socket) -> None:
    connection.sendall(b"+")
    block = bytes(BLOCK)
    while True:
        connection.sendall(block)


def _answer(connection: socket.socket, size: int) -> None:
    """Answer each message, whose first four bytes are its length, with a fixed number of bytes."""
    connection.sendall(b"+")
    answer = bytes(size)
    while True:
        (length,) = struct.unpack("!I", received(connection, 4))
        received(connection, min(length, LARGEST_MESSAGE))
        connection.sendall(answer)


def _listen(connection: socket.socket, port: int, token: str | None) -> None:
    """Serve on another port, for as long as this connection stands: the port itself may be what marks a class."""
    host = connection.getsockname()[0]
    try:
        if not 1024 <= port <= 65535:
            raise DescriptionError(f"port {port} is not 1024 to 65535", "listen")
        place = f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
        there = FarEnd(place, token, patience_s=_PORT_PATIENCE_S)
    except DescriptionError as error:
        connection.sendall(b"-" + str(error).encode()[:199])
        return
    connection.sendall(b"+")
    connection.setblocking(False)

    def ended() -> bool:
        try:
            return connection.recv(1) == b""
        except BlockingIOError:
            return False
        except OSError:
            return True

    there.serve(ended)
