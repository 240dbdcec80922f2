"""Callables that are objects: each call gets a copy of what was submitted, as it does from a process pool.

A method, an instance with `__call__` or a `functools.partial` may change its own object. If calls shared one object,
the value of a call would depend on the calls that the same process did before. So an agent keeps the pickle and reads
it anew for each call. Functions and classes that travel with the object are read once: what a call leaves in their
globals stays in the process, as in a module that a pool's worker has imported.

A callable whose pickle has more than `MOST_BYTES` is read once, and its calls in a process share it: reading it again
would take longer than many calls.
"""

from __future__ import annotations

import functools
import io
import pickle
import threading
import types
from typing import Any, Final

from crosswind.run.calls import function_of

MOST_BYTES: Final = 64 << 10
"""Bytes of the largest pickle that is read anew for each call."""
_ATOMS: Final = (type(None), bool, int, float, complex, str, bytes)
_READING: Final = threading.local()


class Copied:
    """A callable that is read anew from its pickle for each call.

    Parameters
    ----------
    data : bytes
        The pickle, in which `kept` stands for each function and class that travels with it.
    functions : bytes
        Those functions and classes: the pickle of a tuple. Empty: there are none.
    """

    def __init__(self, data: bytes, functions: bytes) -> None:
        self._data, self._functions = data, functions
        self._kept: tuple[Any, ...] | None = None

    def __reduce__(self) -> tuple[Any, tuple[bytes, bytes]]:
        return _read, (self._data, self._functions)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Call a new copy."""
        return self.copy()(*args, **kwargs)

    def copy(self) -> Any:
        """Return the callable as it was when it was pickled.

        Raises
        ------
        Exception
            What unpickling it raises.
        """
        if self._kept is None:
            self._kept = function_of(self._functions) if self._functions else ()
        before, _READING.kept = getattr(_READING, "kept", ()), self._kept
        try:
            return pickle.loads(self._data)
        finally:
            _READING.kept = before


def _read(data: bytes, functions: bytes) -> Any:
    """Return what is called: a `Copied`, or the callable itself where unpickling finds the same object each time."""
    copied = Copied(data, functions)
    first = copied.copy()
    return first if copied.copy() is first else copied


def kept(number: int) -> Any:
    """Return a function or class of the callable that is being read, by its number."""
    return _READING.kept[number]


def is_fixed(value: Any) -> bool:
    """Whether a call cannot change a callable or an argument, apart from what functions keep in their globals.

    Examples
    --------
    >>> is_fixed(abs), is_fixed(functools.partial(pow, 2)), is_fixed(functools.partial(max, []))
    (True, True, False)
    >>> is_fixed("a".join), is_fixed([].append)
    (True, False)
    """
    kind = type(value)
    if kind in _ATOMS or isinstance(value, (types.FunctionType, types.ModuleType, type)):
        return True
    if kind in {tuple, frozenset}:
        return all(map(is_fixed, value))
    if kind in {types.BuiltinFunctionType, types.MethodType}:
        return is_fixed(value.__self__)
    if kind is functools.partial:
        return not vars(value) and all(map(is_fixed, (value.func, *value.args, *value.keywords.values())))
    return False


class Small(io.BytesIO):
    """A file for a pickle of at most `MOST_BYTES`."""

    def write(self, data: Any) -> int:
        """Write bytes.

        Raises
        ------
        TooLargeError
            When there are too many.
        """
        size = memoryview(data).nbytes
        if self.tell() + size > MOST_BYTES:
            raise TooLargeError
        return super().write(data)


class TooLargeError(Exception):
    """A pickle has more than `MOST_BYTES`."""
