"""Pickles whose large buffers follow them: the data of arrays and tables are copied once here and not at all there.

A pickle without a large buffer stays a pickle. Any other begins with `MARK`, the number of buffers, the size of the
pickle and the size of each buffer; the pickle and the buffers follow. Large bytes alone are a buffer without a pickle.
"""

from __future__ import annotations

import pickle
import struct
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any, Final

import cloudpickle

from crosswind import _core

MARK: Final = b"\xfd"
"""No pickle begins with it, nor a text in UTF-8."""
LARGE: Final = 64 << 10
"""Buffers with fewer bytes stay in the pickle."""
_HEAD: Final = struct.Struct("<cxxxIQ")
_SIZE: Final = struct.Struct("<Q")
_ALIGNED: Final = 64
"""Where buffers begin: what processors and libraries like best."""
_NOTHING: Final = bytes(_ALIGNED)

Data = bytes | memoryview


class Buffers:
    """Takes the large buffers of a value out of its pickle, as a pickler's `buffer_callback`."""

    def __init__(self) -> None:
        self.out: list[memoryview] = []

    def stays(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer belongs into the pickle."""
        with suppress(BufferError):  # it has gaps
            piece = buffer.raw()
            if piece.nbytes >= LARGE:
                self.out.append(piece)
                return False
        return True


def dumps(value: Any) -> bytes:
    """Return a value as bytes.

    Raises
    ------
    Exception
        What pickling it raises.

    Examples
    --------
    >>> dumps({"a": 1}) == pickle.dumps({"a": 1}, pickle.HIGHEST_PROTOCOL)
    True
    >>> value = bytes(100_000)
    >>> loads(dumps(value)) == value
    True
    """
    if type(value) is bytes and len(value) >= LARGE:
        return joined(b"", [memoryview(value)])
    for dump in (pickle.dumps, cloudpickle.dumps):  # what the other side cannot import travels by cloudpickle
        buffers = Buffers()
        try:
            head: bytes = dump(value, protocol=pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.stays)
        except Exception:
            if dump is cloudpickle.dumps:
                raise
        else:
            return joined(head, buffers.out) if buffers.out else head
    raise AssertionError  # one of the two returned or raised


def loads(data: Data) -> Any:
    """Return the value of bytes from a process that may run code here.

    Raises
    ------
    Exception
        What unpickling raises; ValueError where the sizes are wrong.
    """
    if data[:1] != MARK:
        return pickle.loads(data)
    head, buffers = parts_of(data)
    return pickle.loads(head, buffers=map(own, buffers)) if head else bytes(buffers[0])


def joined(head: bytes, buffers: Sequence[memoryview]) -> bytes:
    """Return a pickle with its buffers after it."""
    parts: list[Data] = [_HEAD.pack(MARK, len(buffers), len(head)), *(_SIZE.pack(one.nbytes) for one in buffers), head]
    place = sum(map(len, parts))
    for buffer in buffers:
        gap = -place % _ALIGNED
        parts += [_NOTHING[:gap], buffer]
        place += gap + buffer.nbytes
    return b"".join(parts)


def parts_of(data: Data) -> tuple[memoryview, list[memoryview]]:
    """Return the pickle and the buffers of bytes that begin with `MARK`; the pickle of large bytes alone is empty.

    Raises
    ------
    ValueError
        Where the sizes do not fit.
    """
    view = memoryview(data)
    try:
        _, count, size = _HEAD.unpack_from(view)
        place = _HEAD.size + count * _SIZE.size
        sizes = [one for (one,) in _SIZE.iter_unpack(view[_HEAD.size : place])]
    except struct.error as error:
        raise ValueError(str(error)) from None
    head, place = view[place : place + size], place + size
    buffers = []
    for size in sizes:
        place += -place % _ALIGNED
        buffers.append(view[place : place + size])
        place += size
    if place != view.nbytes or len(sizes) != count or (not head and count != 1):
        raise ValueError("the message is damaged: its sizes do not fit")
    return head, buffers


def are_same(head: Data, buffers: Sequence[memoryview], others: Sequence[Data]) -> bool:
    """Whether a pickle and its buffers are the bytes of others, which are in the same order.

    Examples
    --------
    >>> are_same(b"head", [memoryview(b"abc")], [b"head", b"abc"]), are_same(b"head", [], [b"head", b"abc"])
    (True, False)
    """
    parts = [memoryview(head), *buffers]
    return [one.nbytes for one in parts] == list(map(len, others)) and all(map(_core.same_bytes, parts, others))


def own(buffer: memoryview) -> memoryview | bytearray:
    """Return a buffer that may be changed: a copy of one that others hold."""
    return bytearray(buffer) if buffer.readonly else buffer


def dumps_around(value: Any, items: Sequence[Data]) -> bytes:
    """Return a value that stands for several bytes, by their numbers, with those bytes after it."""
    return joined(pickle.dumps(value, pickle.HIGHEST_PROTOCOL), [memoryview(item) for item in items])


def opened(data: Data, loads: Callable[[Data], Any]) -> tuple[Any, list[memoryview]]:
    """Return what `dumps_around` made bytes of; of other bytes, what `loads` returns, and nothing."""
    if data[:1] != MARK:
        return loads(data), []
    head, buffers = parts_of(data)
    return loads(head), buffers


def apart(items: Sequence[bytes]) -> tuple[list[bytes | int], list[bytes]]:
    """Return bytes with the number of each large one in its place, and the large ones.

    Examples
    --------
    >>> few, large = apart([b"a", bytes(100_000)])
    >>> few, len(large)
    ([b'a', 0], 1)
    """
    large: list[bytes] = []
    few: list[bytes | int] = []
    for item in items:
        is_large = len(item) >= LARGE
        few.append(len(large) if is_large else item)
        if is_large:
            large.append(item)
    return few, large


def together(item: Any, buffers: Sequence[memoryview]) -> Any:
    """Return an item of `apart`, with the bytes of its number.

    Raises
    ------
    ValueError
        When there are none.
    """
    if type(item) is not int:
        return item
    if not 0 <= item < len(buffers):
        raise ValueError("the message is damaged: a part of it is missing")
    return buffers[item]
