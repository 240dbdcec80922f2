"""Stand for PyTorch above the scripted driver: a current stream, and work on it."""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator

_DRIVER = ctypes.CDLL("libcuda.so.1")


class cuda:
    """The current stream, and what makes one of a number."""

    current = 0

    @staticmethod
    def ExternalStream(pointer: int, device: str) -> int:
        """Return a stream of another library."""
        return pointer

    @staticmethod
    @contextlib.contextmanager
    def stream(one: int) -> Iterator[None]:
        """Make a stream the current one."""
        before, cuda.current = cuda.current, one
        try:
            yield
        finally:
            cuda.current = before

    @staticmethod
    def synchronize() -> None:
        """Wait until the current stream is free."""
        _DRIVER.cuStreamSynchronize(ctypes.c_void_p(cuda.current))


def work(ns: float, stream: int | None = None) -> None:
    """Enqueue work that takes this long."""
    takes = ctypes.c_double(ns)
    arguments = (ctypes.c_void_p * 1)(ctypes.addressof(takes))
    on = ctypes.c_void_p(cuda.current if stream is None else stream)
    _DRIVER.cuLaunchKernel(b"task", 1, 1, 1, 1, 1, 1, 0, on, arguments, None)
