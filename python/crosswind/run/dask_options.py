"""Options of Dask's `submit` and `map` that calls of a farm do not have: each is refused with what to write instead."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any, Final

from crosswind.errors import DescriptionError

_NODES: Final = "the tree decides which node computes"
_PLACING: Final = f"{_NODES}: placing=crosswind.Placing(nodes={{...}}) says which node goes where"
_RATES: Final = f"{_NODES}: give its nodes their rates in a platform"
_ACTORS: Final = "keep the object in a global of the function's module: each node is a process that stays"
_INSTEAD: Final = {
    "key": "a call is known by its future: keep that",
    "pure": "calls are not looked up: keep the future of the first one, or crosswind.map(..., out=DIR, resume=True)",
    "workers": _PLACING,
    "allow_other_workers": _PLACING,
    "resources": _RATES,
    "priority": "calls are taken in the order in which they are submitted",
    "fifo_timeout": "calls are taken in the order in which they are submitted",
    "retries": "for all calls of a farm: Farm(client, retries=3)",
    "actor": _ACTORS,
    "actors": _ACTORS,
    "batch_size": "short calls travel together by themselves; crosswind.map takes chunksize",
}
OF_DASK: Final = frozenset(_INSTEAD)
METHODS_OF_DASK: Final = {
    "gather": "[future.result() for future in futures]",
    "scatter": "submit the value itself: a function and large values travel to each node once",
    "compute": "dask.compute(..., scheduler=farm)",
    "persist": "dask.persist(..., scheduler=farm)",
    "close": "shutdown(), or `with`",
}
"""Of a client, and what a farm has instead."""
ATTRIBUTES_OF_DASK: Final = {
    "status": "done(), running() and cancelled() tell it",
    "key": "a call is known by its future: keep that",
    "release": "a result is kept as long as its future is",
    "retry": "Farm(client, retries=3) tries each call that fails again",
}
"""Of a future, and what a call of a farm has instead."""
_OF_COLLECTIONS: Final = "__dask_graph__"
"""The attribute that Dask looks up in what is no future of its own: in `wait`, `compute` and `delayed`."""


def refuse_of_submit(function: Callable[..., Any], kwargs: Mapping[str, Any]) -> None:
    """Refuse options of Dask's `submit` that would go to a function which does not take them.

    Raises
    ------
    DescriptionError
        With what to write instead.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of a builtin function nothing is known
        return
    if any(one.kind is one.VAR_KEYWORD for one in parameters):
        return
    for name in sorted(OF_DASK.intersection(kwargs) - {one.name for one in parameters}):
        called = getattr(function, "__name__", "the function")
        message = f"{name} is an option of Dask's submit, and {called} takes none"
        raise DescriptionError(message, "argument", _INSTEAD[name])


def refuse_of_map(options: Mapping[str, object]) -> None:
    """Refuse options that a map does not have.

    Raises
    ------
    DescriptionError
        For one of Dask's `map`, with what to write instead.
    TypeError
        For any other.
    """
    for name in options:
        if name in OF_DASK:
            raise DescriptionError(f"{name} is an option of Dask's map", "argument", _INSTEAD[name])
        raise TypeError(f"map() got an unexpected keyword argument {name!r}")


def no_attribute(call: object, name: str) -> Exception:
    """Return what a call of a farm raises for an attribute that it does not have.

    Dask's `wait` and `compute` leave out what is not theirs without a word, and look for one attribute first: that one
    is refused, so that no program believes to have waited.
    """
    if name == _OF_COLLECTIONS:
        message = "a call of a farm is a concurrent.futures.Future and none of Dask's"
        hint = "its result(), or wait and as_completed of concurrent.futures"
        return DescriptionError(message, "argument", hint)
    instead = ATTRIBUTES_OF_DASK.get(name)
    hint = f", as a future of Dask has it: {instead}" if instead else ""
    return AttributeError(f"a call of a farm has no {name!r}{hint}", name=name, obj=call)
