"""Arguments that are futures: a call waits for them and gets their results, as calls of Dask do.

Futures of `concurrent.futures` (a farm's own and those of any other executor) and of a Dask client. One that is inside
of an argument (a list, an attribute, a closure) is refused: finding it would take a look at everything that is sent.
"""

from __future__ import annotations

import io
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from typing import Any

import cloudpickle

from crosswind.errors import DescriptionError

Arguments = tuple[tuple[Any, ...], dict[str, Any]]


def futures_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the arguments that are futures.

    Raises
    ------
    DescriptionError
        For one that cannot be waited for from a thread: of asyncio, or of an asynchronous Dask client.

    Examples
    --------
    >>> len(futures_in([1, Future()], {"key": Future()}))
    2
    """
    named = [*((f"argument {place}", one) for place, one in enumerate(args, 1)), *kwargs.items()]
    for name, one in named:
        if _is_asynchronous(one):
            message = f"{name} is an asyncio future, or one of an asynchronous Dask client: a farm cannot wait for it"
            raise DescriptionError(message, "argument", "await it, and pass what it returns")
    return [one for _, one in named if is_future(one)]


def is_future(value: Any) -> bool:
    """Whether a value is a future that a call can wait for.

    Examples
    --------
    >>> is_future(Future()), is_future(3)
    (True, False)
    """
    return isinstance(value, (Future, *_of("distributed", "Future")))


def resolved(args: Sequence[Any], kwargs: Mapping[str, Any]) -> Arguments:
    """Return arguments with the result of each future in its place; all are done. Raises what one of them raised.

    Examples
    --------
    >>> done = Future()
    >>> done.set_result(2)
    >>> resolved([done, 10], {"mod": done})
    ((2, 10), {'mod': 2})
    """

    def value(one: Any) -> Any:
        return one.result() if is_future(one) else one

    return tuple(map(value, args)), {name: value(one) for name, one in kwargs.items()}


def when_all_done(futures: Sequence[Any], then: Callable[[], None]) -> None:
    """Have `then` called once, as soon as all futures are done, in the thread that ends the last one."""
    lock, left = threading.Lock(), len(futures)

    def one_less(_: Any) -> None:
        nonlocal left
        with lock:
            left -= 1
            last = left == 0
        if last:
            then()

    for future in futures:
        future.add_done_callback(one_less)


def pickled(value: Any) -> bytes:
    """Return a function or arguments as bytes, by cloudpickle.

    Raises
    ------
    DescriptionError
        When there is a future inside.
    """
    with io.BytesIO() as file:
        _Pickler(file).dump(value)
        return file.getvalue()


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # untyped
    def reducer_override(self, obj: Any) -> Any:
        if is_future(obj) or _is_asynchronous(obj):
            message = "a call holds a future inside of an argument or of its function: a farm cannot wait for it"
            raise DescriptionError(message, "argument", "pass the future itself as an argument, or its result()")
        return super().reducer_override(obj)


def _is_asynchronous(value: Any) -> bool:
    if isinstance(value, _of("asyncio", "Future")):
        return True
    client = getattr(value, "client", None) if isinstance(value, _of("distributed", "Future")) else None
    return bool(getattr(client, "asynchronous", False))


def _of(module: str, name: str) -> tuple[type, ...]:
    """Return a class of a module that is imported; what is not cannot have made the value."""
    there = sys.modules.get(module)
    found = getattr(there, name, None)
    return (found,) if isinstance(found, type) else ()
