"""Arguments that are futures: a call waits for them and gets their results, as calls of Dask do.

Futures of `concurrent.futures` (a farm's own and those of any other executor) and of a Dask client, also within lists,
tuples, sets and dicts. One that is elsewhere (an attribute, a closure) is refused: finding it would take a look at
everything that is sent.
"""

from __future__ import annotations

import io
import pickle
import sys
import threading
import types
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from typing import Any, Final

import cloudpickle

from crosswind.errors import DescriptionError
from crosswind.run import copies
from crosswind.run.pieces import Buffers, joined

Arguments = tuple[tuple[Any, ...], dict[str, Any]]

_CONTAINERS: Final = (list, tuple, set, frozenset, dict)
_PLAIN: Final = frozenset({type(None), bool, int, float, complex, str, bytes})
_DEPTH: Final = 4
_LONG: Final = 1_000
"""Containers that are deeper or longer are taken as data: looking through them would cost more than most calls."""


def futures_in(args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
    """Return the futures among the arguments, and within their lists, tuples, sets and dicts.

    Raises
    ------
    DescriptionError
        For one that cannot be waited for from a thread: of asyncio, or of an asynchronous Dask client.

    Examples
    --------
    >>> len(futures_in([1, Future(), [Future()]], {"key": {"a": (Future(),)}}))
    3
    """
    if not kwargs and _PLAIN.issuperset(map(type, args)):
        return []
    named = [*((f"argument {place}", one) for place, one in enumerate(args, 1)), *kwargs.items()]
    found: list[Any] = []
    for name, argument in named:
        for one in _leaves(argument, _DEPTH):
            if _is_asynchronous(one):
                message = (
                    f"{name} is an asyncio future, or one of an asynchronous Dask client: a farm cannot wait for it"
                )
                raise DescriptionError(message, "argument", "await it, and pass what it returns")
            if is_future(one):
                found.append(one)
    return found


def _leaves(value: Any, depth: int) -> Iterator[Any]:
    """Yield a value, or what is in it if it is a container of Python's own that may hold a future."""
    kind = type(value)
    if depth == 0 or kind not in _CONTAINERS or len(value) > _LONG:
        yield value
        return
    for one in value.values() if kind is dict else value:
        if type(one) not in _PLAIN:
            yield from _leaves(one, depth - 1)


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
    >>> resolved([done, 10], {"mod": [done, {"a": done}]})
    ((2, 10), {'mod': [2, {'a': 2}]})
    """

    def value(one: Any, depth: int = _DEPTH) -> Any:
        if is_future(one):
            return one.result()
        kind = type(one)
        if depth == 0 or kind not in _CONTAINERS or len(one) > _LONG:
            return one
        if kind is dict:
            return {key: value(held, depth - 1) for key, held in one.items()}
        return kind(value(held, depth - 1) for held in one)

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


def pickled_function(function: Any, buffer_callback: Callable[[pickle.PickleBuffer], Any] | None = None) -> bytes:
    """Return a function as a pickle, by cloudpickle; `buffer_callback` as of `pickle.Pickler`.

    A callable that its calls may change becomes one of which each call gets a copy (`crosswind.run.copies`).

    Raises
    ------
    DescriptionError
        When there is a future in it.
    """
    copied = None if copies.is_fixed(function) else _copied(function)
    if copied is not None:
        return pickle.dumps(copied, pickle.HIGHEST_PROTOCOL)
    with io.BytesIO() as file:
        _Pickler(file, buffer_callback=buffer_callback).dump(function)
        return file.getvalue()


def _copied(function: Any) -> copies.Copied | None:
    """Return what makes a copy of a callable for each call; None where its pickle is too large for that."""
    with copies.Small() as file, io.BytesIO() as functions:
        pickler = _PicklerApart(file)
        try:
            pickler.dump(function)
        except copies.TooLargeError:
            return None
        if pickler.functions:
            _Pickler(functions).dump(tuple(pickler.functions))
        return copies.Copied(file.getvalue(), functions.getvalue())


def pickled(value: Any) -> bytes:
    """Return arguments as bytes (`crosswind.run.pieces`), by cloudpickle.

    Raises
    ------
    DescriptionError
        When there is a future in it.
    """
    buffers = Buffers()
    with io.BytesIO() as file:
        _Pickler(file, buffer_callback=buffers.stays).dump(value)
        return joined(file.getvalue(), buffers.out) if buffers.out else file.getvalue()


def pickled_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> bytes:
    """Return the arguments of a call as bytes; as `pickled`, but quicker where all are numbers and texts."""
    if not kwargs and _PLAIN.issuperset(map(type, args)):
        return pickle.dumps((args, kwargs), pickle.HIGHEST_PROTOCOL)
    return pickled((args, kwargs))


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # untyped
    def reducer_override(self, obj: Any) -> Any:
        if is_future(obj) or _is_asynchronous(obj):
            message = "a call holds a future in an attribute or in its function: a farm cannot wait for it"
            raise DescriptionError(message, "argument", "pass the future itself as an argument, or its result()")
        return super().reducer_override(obj)


class _PicklerApart(_Pickler):
    """Leaves the functions and classes that would travel by value out of a pickle.

    A closure stays in it: what it holds may be the object that is pickled.
    """

    def __init__(self, file: io.BytesIO) -> None:
        super().__init__(file)
        self.functions: list[Any] = []

    def reducer_override(self, obj: Any) -> Any:
        found = super().reducer_override(obj)
        if found is NotImplemented or not _is_class_or_function(obj):
            return found
        self.functions.append(obj)
        return copies.kept, (len(self.functions) - 1,)


def _is_class_or_function(value: Any) -> bool:
    return isinstance(value, type) or (isinstance(value, types.FunctionType) and not value.__closure__)


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
