"""Requests to the kernel's rtnetlink socket: framing, attributes, acknowledgements.

What is said in them is in `messages`; docs/decisions/0021-filter-in-kernel.md says why no library does it. Source: RFC
3549, rtnetlink(7).
"""

from __future__ import annotations

import ctypes
import os
import socket
import struct
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import TypeVar

T = TypeVar("T")

REQUEST, ACK, DUMP = 0x1, 0x4, 0x300
CREATE, EXCLUSIVE, REPLACE = 0x400, 0x200, 0x100

_HEADER = struct.Struct("=IHHII")
_ATTRIBUTE = struct.Struct("=HH")
_NESTED = 0x8000
_ERROR, _DONE = 2, 3
_HAS_TEXT = 0x200  # attributes follow in an acknowledgement
_TEXT = 1
_SOL_NETLINK, _CAP_ACK, _EXT_ACK = 270, 10, 11
_BUFFER = 1 << 20
_CLONE_NEWNET = 0x40000000


class KernelError(OSError):
    """The kernel refused a request; its own words where it has any.

    Parameters
    ----------
    number : int
        The error's number (errno).
    words : str
        What the kernel says; empty where it says nothing.
    """

    def __init__(self, number: int, words: str = "") -> None:
        super().__init__(number, words or os.strerror(number))
        self.words = words


class Kernel:
    """A socket to the kernel about a network namespace; closed with its block.

    Parameters
    ----------
    namespace : path, optional
        Such as /run/netns/NAME or /proc/PID/ns/net; None: the one in which this thread is.

    Raises
    ------
    KernelError
        When the namespace cannot be entered.
    """

    def __init__(self, namespace: Path | None = None) -> None:
        self._socket = _opened() if namespace is None else in_namespace(namespace, _opened)
        self._socket.bind((0, 0))
        for option in (_CAP_ACK, _EXT_ACK):
            self._socket.setsockopt(_SOL_NETLINK, option, 1)
        self._sequence = 0

    def ask(self, kind: int, body: bytes, flags: int = 0) -> None:
        """Make a request; return once the kernel has done it.

        Raises
        ------
        KernelError
            When the kernel refuses it.
        """
        for _ in self._answers(kind, body, ACK | flags):
            pass

    def dump(self, kind: int, body: bytes) -> list[bytes]:
        """Return the body of each object that the kernel lists."""
        return list(self._answers(kind, body, DUMP))

    def get(self, kind: int, body: bytes) -> bytes | None:
        """Return the body of one object, or None if the message has none."""
        return next(iter(list(self._answers(kind, body, ACK))), None)

    def _answers(self, kind: int, body: bytes, flags: int) -> Iterator[bytes]:
        self._sequence += 1
        header = _HEADER.pack(_HEADER.size + len(body), kind, REQUEST | flags, self._sequence, 0)
        self._socket.send(header + body)
        while True:
            packet = self._socket.recv(_BUFFER)
            at = 0
            while at + _HEADER.size <= len(packet):
                length, answer, marks, sequence, _ = _HEADER.unpack_from(packet, at)
                content = packet[at + _HEADER.size : at + length]
                at += (length + 3) & ~3
                if sequence != self._sequence:
                    continue  # of a request that was interrupted
                if answer in (_ERROR, _DONE):
                    number = -struct.unpack_from("=i", content)[0] if len(content) >= 4 else 0
                    if number:
                        raise KernelError(number, _text(content, answer) if marks & _HAS_TEXT else "")
                    return
                yield content

    def close(self) -> None:
        """End it."""
        self._socket.close()

    def __enter__(self) -> Kernel:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _opened() -> socket.socket:
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)


def in_namespace(namespace: Path, call: Callable[[], T]) -> T:
    """Return what a call returns in a network namespace, on a thread of its own: only that one enters it.

    Raises
    ------
    KernelError
        When the namespace cannot be entered.
    """

    def entered() -> T:
        libc = ctypes.CDLL(None, use_errno=True)
        with namespace.open("rb") as opened:
            if libc.setns(opened.fileno(), _CLONE_NEWNET) != 0:
                raise KernelError(ctypes.get_errno(), f"{namespace}: {os.strerror(ctypes.get_errno())}")
        return call()

    with ThreadPoolExecutor(1) as threads:
        return threads.submit(entered).result()


def _text(content: bytes, answer: int) -> str:
    start = 4 + (_HEADER.size if answer == _ERROR else 0)
    return attributes(content[start:]).get(_TEXT, b"").rstrip(b"\0").decode(errors="replace")


def attribute(kind: int, content: bytes | str | int) -> bytes:
    """Return one attribute: bytes as they are, text with its final zero, a number as 32 bits."""
    if isinstance(content, int):
        content = struct.pack("=I", content)
    elif isinstance(content, str):
        content = content.encode() + b"\0"
    return _ATTRIBUTE.pack(_ATTRIBUTE.size + len(content), kind) + content + bytes(-len(content) % 4)


def attributes(content: bytes) -> dict[int, bytes]:
    """Return attributes by their kind; the last of those of one kind."""
    found, at = {}, 0
    while at + _ATTRIBUTE.size <= len(content):
        length, kind = _ATTRIBUTE.unpack_from(content, at)
        if length < _ATTRIBUTE.size:
            break
        found[kind & ~_NESTED] = content[at + _ATTRIBUTE.size : at + length]
        at += (length + 3) & ~3
    return found
