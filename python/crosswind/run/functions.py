"""Functions as bytes, as they are when a call is submitted.

Pickling a function anew for each call would cost more than most calls. So its bytes are kept while nothing that they
hold can have changed: the function is imported by its name, or everything that its closure, defaults and globals hold
is immutable and still the same object. Any other function is pickled at each submit, without its large arrays. Those
are compared with the ones that were sent: an array that changed travels again, and one that did not costs no copy.
"""

from __future__ import annotations

import sys
import threading
import types
from collections import OrderedDict, deque
from collections.abc import Sequence
from typing import Any, Final, NamedTuple, Protocol

import cloudpickle

from crosswind._core import Function
from crosswind.run.local_values import LARGE, Shared
from crosswind.run.pieces import MARK, Buffers, are_same, joined, parts_of

_KEPT: Final = 64
MOST_HELD_BYTES: Final = 256 << 20
"""Bytes of functions that are kept for the next call of the same one."""
_PLACES: Final = 4
_INLINE: Final = 16 << 10
"""Bytes of a function that goes with each call: another way would not pay."""
_ATOMS: Final = (type(None), bool, int, float, complex, str, bytes)
_MISSING: Final = object()
_NOTHING: Final = object()
"""In the place of a key: the dict holds none."""

Slot = tuple[Any, Any, Any]
"""A dict with a key, or an object with an attribute, and what was there."""


class _Known(NamedTuple):
    function: Any
    slots: list[Slot]
    data: bytes | Function


class Pickled(Protocol):
    """What pickles functions."""

    def __call__(self, value: Any, /, *, buffer_callback: Any) -> bytes:
        """Return a value as bytes, without the buffers that `buffer_callback` takes."""


class Functions:
    """The bytes of functions.

    Parameters
    ----------
    pickled : callable
        Returns a value as bytes.
    local : bool
        Whether agents of this machine may read the bytes of a large function where they are: once each.
    """

    def __init__(self, pickled: Pickled, *, local: bool = False) -> None:
        self._pickled, self._local = pickled, local
        self._known: dict[int, _Known] = {}
        self._held_bytes = 0
        self._by_value: set[str] = set()
        self._places: deque[Shared] = deque(maxlen=_PLACES)
        """Where the last large functions are; open calls hold theirs longer."""
        self._numbered: OrderedDict[int, tuple[Function, bytes]] = OrderedDict()
        """The last functions that travel once to each node, and their bytes, by number; open calls hold theirs longer.
        """
        self._numbered_bytes = self._numbers = 0
        self._held = threading.Lock()

    def bytes_of(self, function: Any) -> bytes | Function:
        """Return a function as bytes; the same object again where it has not changed."""
        if (by_value := cloudpickle.list_registry_pickle_by_value()) != self._by_value:
            self._known.clear()
            self._by_value = by_value
        known = self._known.get(id(function))
        if known is not None and known.function is function and _is_unchanged(known.slots):
            return known.data
        slots, buffers = slots_of(function), Buffers()
        head = self._pickled(function, buffer_callback=buffers.stays)
        data = self._sent(head, buffers.out)
        if slots is not None:
            size = data.size if isinstance(data, Shared) else len(data)
            self._held_bytes += size
            if len(self._known) >= _KEPT or self._held_bytes > MOST_HELD_BYTES:
                self._known.clear()
                self._held_bytes = size
            self._known[id(function)] = _Known(function, slots, data)
        return data

    def _sent(self, head: bytes, buffers: Sequence[memoryview]) -> bytes | Function:
        """Return what stands for a function in its calls."""
        size = len(head) + sum(buffer.nbytes for buffer in buffers)
        place = self._shared(head, buffers) if self._local and size > LARGE else None
        if place is not None:
            return place
        if size <= _INLINE:
            return head
        with self._held:
            return self._as_numbered(head, buffers)

    def _shared(self, head: bytes, buffers: Sequence[memoryview]) -> Shared | None:
        """Return where the bytes of a large function are; the same place again for the same bytes."""
        for known in tuple(self._places):
            if are_same(head, buffers, known.content):
                return known
        place = Shared.of(head, buffers)
        if place is not None:
            self._places.append(place)
        return place

    def _as_numbered(self, head: bytes, buffers: Sequence[memoryview]) -> Function:
        """Return a function that travels once to each node; the same one again for the same bytes."""
        for known, data in reversed(self._numbered.values()):
            if are_same(head, buffers, _parts(data)):
                self._numbered.move_to_end(known.number)
                return known
        self._numbers += 1
        data = joined(head, buffers) if buffers else head
        found = Function(self._numbers, data)
        self._numbered[self._numbers] = (found, data)
        self._numbered_bytes += len(data)
        while len(self._numbered) > 1 and (len(self._numbered) > _KEPT or self._numbered_bytes > MOST_HELD_BYTES):
            self._numbered_bytes -= len(self._numbered.popitem(last=False)[1][1])
        return found


def _parts(data: bytes) -> list[bytes | memoryview]:
    """Return a pickle and the buffers that follow it."""
    if data[:1] != MARK:
        return [data]
    head, buffers = parts_of(data)
    return [head, *buffers]


def slots_of(function: Any) -> list[Slot] | None:
    """Return all that a function's bytes depend on, where that cannot change unseen; None where it can.

    Examples
    --------
    >>> slots_of(abs)
    []
    >>> limit, seen = 3, []
    >>> slots_of(lambda x: x < limit) is None, slots_of(lambda x: seen.append(x)) is None
    (False, True)
    """
    slots: list[Slot] = []
    return slots if _adds(function, slots, set()) else None


def _is_unchanged(slots: list[Slot]) -> bool:
    for holder, name, value in slots:
        if type(holder) is dict:
            if bool(holder) if name is _NOTHING else holder.get(name, _MISSING) is not value:
                return False
            continue
        try:
            if getattr(holder, name, _MISSING) is not value:
                return False
        except ValueError:  # a cell that is empty by now
            return False
    return True


def _adds(value: Any, slots: list[Slot], seen: set[int]) -> bool:
    """Add what a value's bytes depend on; False where that can change unseen."""
    if type(value) in _ATOMS or id(value) in seen:
        return True
    if type(value) is tuple:
        return all(_adds(one, slots, seen) for one in value)
    if isinstance(value, types.BuiltinFunctionType):
        return isinstance(value.__self__, types.ModuleType)
    if _adds_path(value, slots):
        return True
    return type(value) is types.FunctionType and not value.__dict__ and _adds_function(value, slots, seen)


def _adds_function(value: types.FunctionType, slots: list[Slot], seen: set[int]) -> bool:
    """Add what the bytes of a function depend on that travels with its code."""
    seen.add(id(value))
    held: list[Slot] = [(cell, "cell_contents", _content(cell)) for cell in value.__closure__ or ()]
    for code in _codes(value.__code__):
        held += [(value.__globals__, name, value.__globals__.get(name, _MISSING)) for name in code.co_names]
    for key, default in (value.__kwdefaults__ or {}).items():
        held.append((value.__kwdefaults__, key, default))
    own = [(value, name, getattr(value, name)) for name in ("__code__", "__defaults__", "__kwdefaults__")]
    slots += [*own, (value.__dict__, _NOTHING, None), *held]
    contents = [content for _, _, content in held if content is not _MISSING]
    return all(_adds(one, slots, seen) for one in (*contents, *(value.__defaults__ or ())))


def _content(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not filled yet: it changes unseen
        return cell


def _is_by_value(module: str) -> bool:
    """Whether the content of a module travels, since it or a package around it is registered for that."""
    registered = cloudpickle.list_registry_pickle_by_value()
    parts = module.split(".") if registered else []
    return any(".".join(parts[:count]) in registered for count in range(1, len(parts) + 1))


def _codes(code: types.CodeType) -> list[types.CodeType]:
    """Return a function's code and that of the functions inside of it."""
    inner = [one for constant in code.co_consts if isinstance(constant, types.CodeType) for one in _codes(constant)]
    return [code, *inner]


def _adds_path(value: Any, slots: list[Slot]) -> bool:
    """Whether a function, class or module travels by its name: the other side imports it. Adds where it was found."""
    if isinstance(value, types.ModuleType):
        slots.append((sys.modules, value.__name__, value))
        return sys.modules.get(value.__name__) is value and not _is_by_value(value.__name__)
    if not isinstance(value, (types.FunctionType, type)):
        return False
    module = value.__module__
    if module in {None, "__main__"} or _is_by_value(module):
        return False
    found: Any = sys.modules.get(module)
    path: list[Slot] = [(sys.modules, module, found)]
    for part in value.__qualname__.split("."):
        inside = getattr(found, part, None)
        path.append((found, part, inside))
        found = inside
    if found is not value:
        return False
    slots += path
    return True
