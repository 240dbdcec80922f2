"""Large values between processes of one machine: copied from memory to memory, no way through sockets.

An agent that the root has started on the same machine keeps a large value in its own memory, and sends where it is:
bytes as they are, and an array that nothing else refers to; other buffers as copies, since the task may change those
later. The root copies them out of that memory (process_vm_readv). An open file without a name and without content
(memfd) stands for the value: the root sees by it that the process is still the same one, and changes its size once it
has read the value, by which the agent sees that it need not keep it. An agent keeps 256 MiB at most; further values
travel as others do.

Where the root may not read the agent's memory, it says so by that size. From then on the file holds the values: the
root reads texts and objects there, and maps the buffers of arrays, which become its own. The kernel frees what is not
held any more, however both end. This takes several times as long, because the kernel makes such memory page by page.
"""

from __future__ import annotations

import io
import os
import pickle
import sys
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import cloudpickle

from crosswind import _core
from crosswind.run.batches import NUMBERS
from crosswind.run.pieces import Buffers, joined
from crosswind.run.process_memory import GoneError, PickleThere, Pieces, ProcessMemory

MARK: Final = b"\xfe"
"""How the bytes of a value that is kept begin: no pickle does, nor a text in UTF-8."""
LARGE: Final = 1 << 20
"""Values with more bytes are kept."""
MOST_KEPT: Final = 256 << 20
"""Further values are sent once more bytes than this are kept."""
_SENT: Final = 1 << 12
"""Pieces of a pickle with fewer bytes are sent with the place of the others."""
_MOST_SHARED: Final = 64
"""Each takes a descriptor."""
_ALIGNED: Final = 64
"""Where buffers begin: what processors and libraries like best."""
_READ: Final = 1
_REFUSED: Final = 2
"""Sizes of the file that stands for a value, once the root has read it, or may not."""
_PTRACE: Final = "/proc/sys/kernel/yama/ptrace_scope"
_CHILDREN_ONLY: Final = 1
"""With larger values there, no process may read another one's memory."""
_LOOK_S: Final = 0.1
_MOST_AT_ONCE: Final = 1 << 30
_NAME: Final = "crosswind-value-"


class _Kept(NamedTuple):
    """A value that is kept."""

    file_size: int
    """Until it is read."""
    size: int
    held: Sequence[bytes | memoryview] = ()
    """What is kept in this process's own memory."""


class _Place(NamedTuple):
    """Where a value is: what is sent in its place, as a plain tuple."""

    process: int
    descriptor: int
    name: str
    size: int
    places: Sequence[tuple[int, int]]
    """Where each buffer begins and ends in the file, after the pickle, if the file holds them."""
    pickle: Sequence[bytes | tuple[int, int]]
    """The pickle in pieces: themselves, or their address and size in the memory of the process."""
    buffers: Sequence[tuple[int, int]]
    """The same of the buffers."""

    def to_bytes(self) -> bytes:
        return MARK + pickle.dumps(tuple(self))

    @classmethod
    def of_bytes(cls, data: bytes | memoryview) -> _Place:
        return cls(*pickle.loads(data[len(MARK) :]))


class Keeper:
    """The values that this process keeps until they are read."""

    def __init__(self) -> None:
        self._kept: dict[int, _Kept] = {}
        """By descriptor."""
        self._held = threading.Lock()
        self._looks = False
        self._is_memory_readable = _ptrace_scope() <= _CHILDREN_ONLY
        """Whether the root may read this process's own memory, as far as is known."""

    def pickled(self, value: Any) -> bytes:
        """Return a value as a pickle, or where it is kept, if it is large.

        Raises
        ------
        Exception
            What pickling it raises.
        """
        if type(value) in NUMBERS:
            return pickle.dumps(value, pickle.HIGHEST_PROTOCOL)
        is_own = sys.getrefcount(value) <= _ALONE and _owns_its_memory(value)
        pieces, buffers = _pickled(value)
        size = sum(map(len, pieces)) + sum(buffer.nbytes for buffer in buffers)
        if size > LARGE and self._forget_read() <= MOST_KEPT and _may_be_read():
            with suppress(OSError, MemoryError):  # there is not enough for it
                if self._is_memory_readable:
                    return self._in_memory(size, pieces, buffers if is_own else list(map(_copy_of, buffers)))
                return self._in_file(pieces, buffers)
        return joined(b"".join(pieces), buffers) if buffers else b"".join(pieces)

    def _in_memory(self, size: int, pieces: Sequence[bytes], buffers: Sequence[memoryview]) -> bytes:
        name = _new_name()
        descriptor = os.memfd_create(name)
        self._keep(descriptor, _Kept(0, size, [*pieces, *buffers]))
        parts = [piece if len(piece) < _SENT else (_core.address_of(piece), len(piece)) for piece in pieces]
        there = [(_core.address_of(buffer), buffer.nbytes) for buffer in buffers]
        return _Place(os.getpid(), descriptor, name, size, [], parts, there).to_bytes()

    def _in_file(self, pieces: Sequence[bytes], buffers: Sequence[memoryview]) -> bytes:
        descriptor, place = _file_of(pieces, buffers)
        self._keep(descriptor, _Kept(place.size, place.size))
        return place.to_bytes()

    def _keep(self, descriptor: int, kept: _Kept) -> None:
        with self._held:
            self._kept[descriptor] = kept
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, name="crosswind-values", daemon=True).start()

    def _look(self) -> None:
        """Forget what has been read, soon after it was, also if no value follows."""
        while True:
            time.sleep(_LOOK_S)
            self._forget_read()
            with self._held:
                if not self._kept:
                    self._looks = False
                    return

    def _forget_read(self) -> int:
        """Close what has been read, and return how many bytes are kept."""
        with self._held:
            for descriptor, kept in list(self._kept.items()):
                if (file_size := os.fstat(descriptor).st_size) != kept.file_size:
                    self._is_memory_readable &= not (kept.file_size == 0 and file_size == _REFUSED)
                    del self._kept[descriptor]
                    os.close(descriptor)
            return sum(kept.size for kept in self._kept.values())


class _Fresh:
    """Counts references to a value that only its caller has made, as `Keeper.pickled` gets it."""

    def pickled(self, value: Any) -> int:
        return sys.getrefcount(value)


_ALONE: Final = _Fresh().pickled(object())
"""References to a value that nothing refers to but the call."""


def _owns_its_memory(value: Any) -> bool:
    """Whether a value is an array of numbers whose memory no other object gives or may still get."""
    kind = type(value)
    if (kind.__module__, kind.__name__) != ("numpy", "ndarray"):
        return False
    return value.base is None and bool(value.flags.owndata) and not weakref.getweakrefcount(value)


def _copy_of(buffer: memoryview) -> memoryview:
    return memoryview(_core.Buffer.copied(buffer))


def _new_name() -> str:
    return _NAME + os.urandom(8).hex()


def _ptrace_scope() -> int:
    """Return how much the kernel limits reading of another process's memory; 0 where it has no such limit."""
    try:
        with open(_PTRACE, "rb") as file:  # noqa: PTH123 (no import that a task does not need)
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _pickled(value: Any) -> tuple[list[bytes], list[memoryview]]:
    """Return a pickle in pieces, and the large buffers that are not in it."""
    for pickler in (pickle.Pickler, cloudpickle.Pickler):  # what the other side cannot import travels by cloudpickle
        pieces, buffers = Pieces(), Buffers()
        try:
            pickler(pieces, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.stays).dump(value)
        except Exception:
            if pickler is cloudpickle.Pickler:
                raise
        else:
            return pieces.all(), buffers.out
    raise AssertionError  # one of the two returned or raised


def _file_of(pieces: Sequence[bytes], buffers: Sequence[memoryview]) -> tuple[int, _Place]:
    """Return a descriptor of memory that holds a pickle and the buffers after it, and where they are."""
    name = _new_name()
    descriptor = os.memfd_create(name)
    try:
        for piece in pieces:
            _write(descriptor, piece)
        places, size = [], sum(map(len, pieces))
        for buffer in buffers:
            _write(descriptor, gap := bytes(-size % _ALIGNED))
            begin = size + len(gap)
            places.append((begin, size := begin + buffer.nbytes))
            _write(descriptor, buffer)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor, _Place(os.getpid(), descriptor, name, size, places, [], [])


def _may_be_read() -> bool:
    """Whether processes of the same user may read what this one keeps: not once it has changed its user."""
    try:
        return os.stat("/proc/self/fd").st_uid == os.geteuid()  # noqa: PTH116 (no import that a task does not need)
    except OSError:  # there is no /proc
        return False


def _write(descriptor: int, data: Any) -> None:
    left = memoryview(data).cast("B")
    while left:
        left = left[os.write(descriptor, left[:_MOST_AT_ONCE]) :]


class Shared(bytes):
    """Where a pickle of this process is, for agents of this machine. It is there as long as this object."""

    descriptor: int
    size: int
    content: list[memoryview]
    """The pickle, and the large buffers that are not in it."""
    alive = 0
    """How many there are."""

    @classmethod
    def of(cls, head: bytes, buffers: Sequence[memoryview]) -> Shared | None:
        """Return where a pickle and the large buffers outside of it are; None if there is no memory for them."""
        if cls.alive >= _MOST_SHARED or not _may_be_read():
            return None
        try:
            descriptor, place = _file_of([head], buffers)
        except OSError:
            return None
        try:
            content = _buffers(descriptor, place.size, [(0, len(head)), *place.places])
        except OSError:
            os.close(descriptor)
            return None
        found = cls(place.to_bytes())
        found.descriptor, found.size, found.content = descriptor, place.size, content
        Shared.alive += 1
        return found

    def __del__(self) -> None:
        with suppress(AttributeError, OSError):  # of a copy
            os.close(self.descriptor)
            Shared.alive -= 1


def value_at(place: bytes, *, keep: bool = False) -> Any:
    """Return a value that another process of this machine keeps, and unless `keep`, have it keep it no longer.

    Raises
    ------
    GoneError
        When that process has ended.
    """
    there = _Place.of_bytes(place)
    path = f"/proc/{there.process}/fd/{there.descriptor}"
    try:
        opened = open(path, "r+b", buffering=0)  # noqa: PTH123, SIM115 (it is no path)
    except OSError as error:  # also: no descriptor is left here
        raise GoneError(str(error)) from error
    with opened as file:
        if there.name not in str(Path(f"/proc/self/fd/{file.fileno()}").readlink()):  # a process with the same number
            raise GoneError(f"process {there.process} is another one")
        is_in_memory = bool(there.pickle)
        if os.fstat(file.fileno()).st_size != (0 if is_in_memory else there.size):
            raise GoneError("it has been read already")
        if is_in_memory:
            return _read_in_memory(file, path, there)
        try:
            buffers = _buffers(file.fileno(), there.size, there.places)
            return pickle.Unpickler(_Source(file), buffers=buffers).load()
        finally:
            if not keep:  # what is mapped must stay as large
                os.ftruncate(file.fileno(), there.size + 1 if there.places else 0)


def _read_in_memory(file: io.FileIO, path: str, there: _Place) -> Any:
    memory = ProcessMemory(there.process, path, there.name, file.fileno())
    try:
        buffers = [memory.copy(*part) for part in there.buffers]
        return pickle.Unpickler(PickleThere(there.pickle, memory), buffers=buffers).load()
    finally:
        os.ftruncate(file.fileno(), _REFUSED if memory.is_refused else _READ)


class _Source:
    """What the unpickler reads; large bytes go where they are to be without a copy between."""

    def __init__(self, file: io.FileIO) -> None:
        self._file = file

    def readinto(self, into: Any) -> int:
        """Read until there is no room, or nothing: a call of the system reads 2 GiB at most."""
        left = memoryview(into).cast("B")
        size = left.nbytes
        while left and (count := self._file.readinto(left[:_MOST_AT_ONCE])):
            left = left[count:]
        return size - left.nbytes

    def read(self, size: int) -> bytes:
        """Read bytes; the unpickler may ask for more than there are."""
        data = self._file.read(min(size, _MOST_AT_ONCE)) or b""
        return data if len(data) in {size, 0} else data + self.read(size - len(data))

    def readline(self) -> bytes:
        """Read a line, which no pickle of today has."""
        return self._file.readline()


def kept_bytes(data: bytes | memoryview) -> int:
    """Return how many bytes an agent of this machine keeps of a value; 0 of one that was sent."""
    return _Place.of_bytes(data).size if data[:1] == MARK else 0


def _buffers(descriptor: int, size: int, places: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return the buffers that are not in the pickle: this process's own, and copied only where they are written."""
    if not places:
        return []
    # Python's own `mmap` would keep a descriptor for each.
    mapped = memoryview(_core.Buffer.mapped(descriptor, size))
    return [mapped[begin:end] for begin, end in places]


KEEPER: Final = Keeper()
