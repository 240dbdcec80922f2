"""A pickle in the memory of one process, read by another one of the same user."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from crosswind import _core

_APART: Final = 1 << 18
"""Bytes in a value that are as many or more are not copied by the process that has them."""


class GoneError(Exception):
    """A value that an agent kept cannot be read, since the agent has ended for example: the call is done again."""


class Pieces:
    """A file for a pickler, which hands large bytes over as they are: those are not copied."""

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self._small: list[bytes] = []

    def write(self, data: Any) -> int:
        """Take a part of the pickle."""
        if type(data) is not bytes:  # it may change
            data = bytes(data)
        if len(data) >= _APART:
            self._join()
            self._pieces.append(data)
        else:
            self._small.append(data)
        return len(data)

    def _join(self) -> None:
        if self._small:
            self._pieces.append(b"".join(self._small))
            self._small.clear()

    def all(self) -> list[bytes]:
        """Return all that was written."""
        self._join()
        return self._pieces


class ProcessMemory:
    """A value in the memory of another process, which keeps it as long as a file is empty.

    Parameters
    ----------
    process : int
        Its number.
    path : str
        The file, which it has open, below its `/proc/NUMBER/fd`.
    name : str
        A name of that file that no file of another process has: by it the process is known.
    descriptor : int
        The same file, opened here.
    """

    def __init__(self, process: int, path: str, name: str, descriptor: int) -> None:
        self._process, self._path, self._name, self._descriptor = process, path, name, descriptor
        self.is_refused = False
        """Whether this process may not read it."""

    def copy(self, address: int, size: int) -> memoryview:
        """Return a copy of some bytes, which may be written.

        Raises
        ------
        GoneError
            When they cannot be read.
        """
        try:
            found = _core.Buffer.of_process(self._process, address, size)
            self._check()
        except OSError as error:
            raise self._gone(error) from error
        return memoryview(found)

    def fill(self, into: memoryview, address: int) -> None:
        """Copy as many bytes as there is room for.

        Raises
        ------
        GoneError
            When they cannot be read.
        """
        try:
            _core.read_process(self._process, address, into)
            self._check()
        except OSError as error:
            raise self._gone(error) from error

    def _check(self) -> None:
        if self._name not in str(Path(self._path).readlink()):
            raise GoneError(f"process {self._process} has ended")  # and another one has its number
        if os.fstat(self._descriptor).st_size:  # the memory may hold another value by now
            raise GoneError("it has been read already")

    def _gone(self, error: OSError) -> GoneError:
        self.is_refused = True
        return GoneError(str(error))


class PickleThere:
    """A file for an unpickler: a pickle whose large pieces are in the memory of another process.

    Parameters
    ----------
    pieces : iterable of bytes or (int, int)
        The pieces themselves, or their address and size there.
    memory : ProcessMemory
        Where those are.
    """

    def __init__(self, pieces: Iterable[bytes | tuple[int, int]], memory: ProcessMemory) -> None:
        self._pieces: deque[memoryview | tuple[int, int]] = deque(
            memoryview(piece) if isinstance(piece, bytes) else piece for piece in pieces
        )
        self._left = sum(piece.nbytes if isinstance(piece, memoryview) else piece[1] for piece in self._pieces)
        self._memory = memory

    def readinto(self, into: Any) -> int:
        """Read until there is no room, or nothing; a whole piece is copied once, to where it is to be."""
        room = memoryview(into).cast("B")
        size = room.nbytes
        while room and self._pieces:
            piece = self._pieces.popleft()
            if not isinstance(piece, memoryview):
                address, length = piece
                if length <= room.nbytes:
                    self._memory.fill(room[:length], address)
                    room = room[length:]
                    continue
                piece = self._memory.copy(address, length)
            count = min(room.nbytes, piece.nbytes)
            room[:count] = piece[:count]
            room = room[count:]
            if count < piece.nbytes:
                self._pieces.appendleft(piece[count:])
        self._left -= size - room.nbytes
        return size - room.nbytes

    def read(self, size: int) -> bytes:
        """Read bytes; the unpickler may ask for more than there are."""
        found = bytearray(min(size, self._left))
        self.readinto(found)
        return bytes(found)

    def readline(self) -> bytes:
        """Read a line, which no pickle of today has."""
        raise ValueError("the pickle is damaged")
