"""Functions as bytes, as they are when a call is submitted.

Pickling a closure over a large array anew for each call would cost more than most calls. So a function's bytes are kept
while nothing that they hold can have changed: the function is imported by its name, or everything that its closure,
defaults and globals hold is immutable and still the same object.
"""

from __future__ import annotations

import sys
import types
from collections.abc import Callable
from typing import Any, Final

import cloudpickle

_KEPT: Final = 64
_ATOMS: Final = (type(None), bool, int, float, complex, str, bytes)

Held = tuple[Any, ...]
"""What a function's bytes depend on, compared object by object."""


class Functions:
    """The bytes of functions.

    Parameters
    ----------
    pickled : callable
        Returns a value as bytes.
    """

    def __init__(self, pickled: Callable[[Any], bytes]) -> None:
        self._pickled = pickled
        self._known: dict[int, tuple[Any, Held, bytes]] = {}

    def bytes_of(self, function: Any) -> bytes:
        """Return a function as bytes; the same object again where it has not changed."""
        held = held_by(function)
        known = self._known.get(id(function))
        if known is not None and known[0] is function and held is not None and _same(held, known[1]):
            return known[2]
        data = self._pickled(function)
        if held is not None:
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[id(function)] = (function, held, data)
        return data


def held_by(function: Any) -> Held | None:
    """Return all that a function's bytes depend on, where that cannot change unseen; None where it can.

    Examples
    --------
    >>> held_by(abs)
    ()
    >>> limit, seen = 3, []
    >>> held_by(lambda x: x < limit) is None, held_by(lambda x: seen.append(x)) is None
    (False, True)
    """
    held: list[Any] = []
    return tuple(held) if _adds(function, held, set()) else None


def _adds(value: Any, held: list[Any], seen: set[int]) -> bool:
    """Add what a value's bytes depend on; False where that can change unseen."""
    if _is_fixed(value) or id(value) in seen:
        return True
    if type(value) is tuple:
        return all(_adds(one, held, seen) for one in value)
    if type(value) is not types.FunctionType or value.__dict__:
        return False
    seen.add(id(value))
    try:
        values = [cell.cell_contents for cell in value.__closure__ or ()]
    except ValueError:  # a cell that is not filled yet
        return False
    values += value.__defaults__ or ()
    values += (value.__kwdefaults__ or {}).values()
    for code in _codes(value.__code__):
        values += [value.__globals__[name] for name in code.co_names if name in value.__globals__]
    held += [value.__code__, *values]
    return all(_adds(one, held, seen) for one in values)


def _same(held: Held, before: Held) -> bool:
    return len(held) == len(before) and all(a is b for a, b in zip(held, before, strict=True))


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """Return a function's code and that of the functions inside of it."""
    inner = [one for constant in code.co_consts if isinstance(constant, types.CodeType) for one in _codes(constant)]
    return [code, *inner]


def _is_fixed(value: Any) -> bool:
    """Whether a value cannot change: an atom, a module, or what is imported by name."""
    if type(value) in _ATOMS:
        return True
    if isinstance(value, types.ModuleType):
        return sys.modules.get(value.__name__) is value
    return _is_imported(value)


def _is_imported(value: Any) -> bool:
    """Whether a function or class travels by its name only: the other side imports it."""
    if isinstance(value, types.BuiltinFunctionType):
        return isinstance(value.__self__, types.ModuleType)
    if not isinstance(value, (types.FunctionType, type)):
        return False
    module = value.__module__
    if module in {None, "__main__"} or module in cloudpickle.list_registry_pickle_by_value():
        return False
    found: Any = sys.modules.get(module)
    for part in value.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is value
