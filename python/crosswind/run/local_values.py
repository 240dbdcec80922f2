"""Large values between processes of one machine: a copy into shared memory and one out of it, no way through sockets.

An agent that the root has started on the same machine keeps a large value in memory that has no name in any file
system (memfd), and sends where it is. The root reads texts and objects there, and maps the buffers of arrays, which
become its own. It then changes the size of the memory, by which the agent sees that it need not keep it. The kernel
frees what is not held any more, however both end. An agent keeps 256 MiB at most; further values travel as others do,
and so does what cannot be kept.

Bytes alone stay where they are: the root copies them out of the agent's own memory, once. What has no name is empty
then, and only stands for them. Where the root may not read that memory, it says so by its size, and the agent keeps
bytes as other values.
"""

from __future__ import annotations

import io
import os
import pickle
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import cloudpickle

from crosswind import _core
from crosswind.run.batches import NUMBERS

MARK: Final = b"\xfe"
"""How the bytes of a value that is kept begin: no pickle does, nor a text in UTF-8."""
LARGE: Final = 1 << 20
"""Values with more bytes are kept."""
MOST_KEPT: Final = 256 << 20
"""Further values are sent once more bytes than this are kept."""
_PART: Final = 1 << 16
"""Buffers with fewer bytes are in the pickle."""
_MOST_SHARED: Final = 64
"""Each takes a descriptor."""
_ALIGNED: Final = 64
"""Where buffers begin: what processors and libraries like best."""
_READ: Final = 1
_REFUSED: Final = 2
"""Size of memory that stands for bytes, once the root has read them, or may not."""
_PTRACE: Final = "/proc/sys/kernel/yama/ptrace_scope"
_CHILDREN_ONLY: Final = 1
"""With larger values there, no process may read another one's memory."""
_LOOK_S: Final = 0.1
_MOST_AT_ONCE: Final = 1 << 30
_NAME: Final = "crosswind-value-"


class GoneError(Exception):
    """A value that an agent kept cannot be read, since the agent has ended for example: the call is done again."""


class _Kept(NamedTuple):
    """A value that is kept."""

    file_size: int
    """Until it is read."""
    size: int
    held: bytes = b""
    """Bytes that stay where they are."""


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
        if self._forget_read() <= MOST_KEPT:
            with suppress(OSError):  # no memory is left for it
                if type(value) is bytes and len(value) > LARGE and self._is_memory_readable and _may_be_read():
                    return self._in_place(value)
                memory, places = _written(value, may_be_kept=True)
                if memory.descriptor is not None:
                    self._keep(memory.descriptor, _Kept(memory.size, memory.size))
                    return _place(memory.descriptor, memory.name, memory.size, places)
                if not places:
                    return bytes(memory.held)
        return bytes(_written(value, may_be_kept=False)[0].held)

    def _in_place(self, value: bytes) -> bytes:
        name = _new_name()
        descriptor = os.memfd_create(name)
        self._keep(descriptor, _Kept(0, len(value), value))
        return _place(descriptor, name, len(value), [], _core.address_of(value))

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
                    self._is_memory_readable &= not (kept.held and file_size == _REFUSED)
                    del self._kept[descriptor]
                    os.close(descriptor)
            return sum(kept.size for kept in self._kept.values())


def _new_name() -> str:
    return _NAME + os.urandom(8).hex()


def _place(descriptor: int, name: str, size: int, places: list[tuple[int, int]], address: int = 0) -> bytes:
    """Return where a value is, as `value_at` takes it; with an address, bytes that stay where they are."""
    return MARK + pickle.dumps((os.getpid(), descriptor, name, size, places, address))


def _ptrace_scope() -> int:
    """Return how much the kernel limits reading of another process's memory; 0 where it has no such limit."""
    try:
        with open(_PTRACE, "rb") as file:  # noqa: PTH123 (no import that a task does not need)
            return int(file.read())
    except (OSError, ValueError):
        return 0


def _written(value: Any, *, may_be_kept: bool) -> tuple[_Memory, list[tuple[int, int]]]:
    """Return a pickle followed by the large buffers that are not in it, and where each of those begins and ends."""
    for pickler in (pickle.Pickler, cloudpickle.Pickler):  # what the other side cannot import travels by cloudpickle
        memory, buffers = _Memory(may_be_kept=may_be_kept), _Buffers(may_be_kept=may_be_kept)
        try:
            pickler(memory, pickle.HIGHEST_PROTOCOL, buffer_callback=buffers.stays).dump(value)
            places = []
            for buffer in buffers.out:
                memory.write(bytes(-memory.size % _ALIGNED))
                places.append((memory.size, memory.size + buffer.nbytes))
                memory.write(buffer)
        except BaseException as error:
            memory.close()
            if pickler is cloudpickle.Pickler or not isinstance(error, Exception):
                raise
        else:
            return memory, places
    raise AssertionError  # one of the two returned or raised


class _Buffers:
    """The large buffers of a value, which are not in its pickle."""

    def __init__(self, *, may_be_kept: bool) -> None:
        self._may_be_kept = may_be_kept
        self.out: list[memoryview] = []

    def stays(self, buffer: pickle.PickleBuffer) -> bool:
        """Whether a buffer belongs into the pickle."""
        with suppress(BufferError):  # it has gaps
            piece = buffer.raw()
            if self._may_be_kept and piece.nbytes >= _PART:
                self.out.append(piece)
                return False
        return True


class _Memory:
    """A file for a pickler: this process's own memory, and once it is large, memory that another process can read."""

    def __init__(self, *, may_be_kept: bool) -> None:
        self._may_be_kept = may_be_kept
        self.held = bytearray()
        self.descriptor: int | None = None
        self.name = ""
        self.size = 0

    def write(self, data: Any) -> int:
        """Write what the pickler hands over: large bytes as they are, without a copy."""
        size = memoryview(data).nbytes
        self.size += size
        if self.descriptor is None:
            if not self._may_be_kept or self.size <= LARGE:
                self.held += data
                return size
            if not _may_be_read():
                raise PermissionError("other processes may not read the memory of this one")
            self.name = _new_name()
            self.descriptor = os.memfd_create(self.name)
            _write(self.descriptor, self.held)
            self.held = bytearray()
        _write(self.descriptor, data)
        return size

    def close(self) -> None:
        """Give back the memory of a pickle that could not be written."""
        if self.descriptor is not None:
            os.close(self.descriptor)


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
        name = _new_name()
        if cls.alive >= _MOST_SHARED or not _may_be_read():
            return None
        try:
            descriptor = os.memfd_create(name)
        except OSError:
            return None
        places, size = [], len(head)
        try:
            _write(descriptor, head)
            for buffer in buffers:
                _write(descriptor, gap := bytes(-size % _ALIGNED))
                begin = size + len(gap)
                places.append((begin, size := begin + buffer.nbytes))
                _write(descriptor, buffer)
            content = _buffers(descriptor, size, [(0, len(head)), *places])
        except OSError:
            os.close(descriptor)
            return None
        found = cls(_place(descriptor, name, size, places))
        found.descriptor, found.size, found.content = descriptor, size, content
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
    process, descriptor, name, size, places, address = pickle.loads(place[len(MARK) :])
    path = f"/proc/{process}/fd/{descriptor}"
    try:
        opened = open(path, "r+b", buffering=0)  # noqa: PTH123, SIM115 (it is no path)
    except OSError as error:  # also: no descriptor is left here
        raise GoneError(str(error)) from error
    with opened as file:
        if name not in str(Path(f"/proc/self/fd/{file.fileno()}").readlink()):  # of a process with the same number
            raise GoneError(f"process {process} is another one")
        if os.fstat(file.fileno()).st_size != (0 if address else size):
            raise GoneError("it has been read already")
        if address:
            return _read_in_place(file, path, name, process, address, size)
        try:
            return pickle.Unpickler(_Source(file), buffers=_buffers(file.fileno(), size, places)).load()
        finally:
            if not keep:
                os.ftruncate(file.fileno(), size + 1 if places else 0)  # what is mapped must stay as large


def _read_in_place(file: io.FileIO, path: str, name: str, process: int, address: int, size: int) -> bytes:
    try:
        value = _core.bytes_of_process(process, address, size)
        if name not in str(Path(path).readlink()):  # it has ended, and another one has its number
            raise GoneError(f"process {process} has ended")
    except OSError as error:
        os.ftruncate(file.fileno(), _REFUSED)
        raise GoneError(str(error)) from error
    os.ftruncate(file.fileno(), _READ)
    return value


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
    return int(pickle.loads(data[len(MARK) :])[3]) if data[:1] == MARK else 0


def _buffers(descriptor: int, size: int, places: Sequence[tuple[int, int]]) -> list[memoryview]:
    """Return the buffers that are not in the pickle: this process's own, and copied only where they are written."""
    if not places:
        return []
    # Python's own `mmap` would keep a descriptor for each.
    mapped = memoryview(_core.Buffer.mapped(descriptor, size))
    return [mapped[begin:end] for begin, end in places]


KEEPER: Final = Keeper()
