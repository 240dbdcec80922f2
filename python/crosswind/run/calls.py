"""Calls on other nodes: a function and its arguments go there as bytes, its value or its exception comes back."""

from __future__ import annotations

import builtins
import pickle
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Final

import cloudpickle

from crosswind import _core
from crosswind.documents import Arguments
from crosswind.run import local_values
from crosswind.run.batches import OVERDUE, Batch, Early
from crosswind.run.pieces import Data, apart, dumps, dumps_around, loads, opened, together

_RAISED: Final = b"\xff"
"""How the outcome of a call that raised begins: neither a pickle nor a text in UTF-8 does."""
_MOST_KNOWN: Final = 64
MOST_KNOWN_BYTES: Final = 256 << 20
"""Bytes of pickles of functions that are kept for the next call of the same one."""


class RemoteTraceback(Exception):  # noqa: N818 (it is where an error came from, not an error)
    """Where an exception was raised on another node: the `__cause__` of the exception that is raised here."""

    def __init__(self, node: str, text: str) -> None:
        super().__init__(node, text)
        self.node, self.text = node, text

    def __str__(self) -> str:
        where = f"on node {self.node}" if self.node else "on a node"
        return f'\n{where}:\n"""\n{self.text}"""'


class CallError(Exception):
    """Stands for a value or an exception that could not be sent back; the cause says where it came from."""


class Outcome:
    """The outcome of a call as bytes, which `crosswind.run.agent.load` sends unchanged."""

    __slots__ = ("data",)
    is_raw = True
    is_failure = False

    def __init__(self, data: bytes) -> None:
        self.data = data


class Raised(Outcome):
    """The outcome of a call that raised: the node tries the call again where it may."""

    __slots__ = ()
    is_failure = True


class Performer:
    """Does calls and batches on a node, and returns their outcomes: values, and exceptions with their tracebacks.

    Parameters
    ----------
    plain : bool
        Whether outcomes are plain data (`crosswind.run.plain_data`): reading them runs no code.
    function : bytes, optional
        What all calls call, pickled: it travels once to each node. Default: each call or batch brings its function.
    local : bool
        Whether large values may stay in the node's memory until they are read (`crosswind.run.local_values`).
    """

    reads = True
    """It reads the input's bytes itself (`crosswind.run.agent.load`)."""

    def __init__(self, *, plain: bool, function: bytes | None = None, local: bool = False) -> None:
        self._plain, self._function, self._local = plain, function, local

    def __call__(self, data: Data, early: Early | None = None, function: _core.Function | None = None) -> Outcome:
        """Do a call, `(function, arguments)`, or a batch, `(function, form, items)`: `early` takes outcomes of it.

        With `function`, or where all calls call the same one, it is left out. `called` makes bytes of either.
        """
        value, raised = (_plain_value, _plain_error) if self._plain else (dumps, _pickled_error)
        if self._local:
            value = local_values.KEEPER.pickled
        try:
            call, parts = opened(data, pickle.loads)
            if function is not None or self._function is not None:
                call = (self._function, *call)
            called = function_of(call[0]) if function is None else function.loaded(loads)
            if len(call) == 3:
                items = [together(one, parts) for one in call[2]] if parts else call[2]
                batch = Batch(called, call[1], items, value, raised)
                return Outcome(batch.run() if early is None else OVERDUE.run(batch, early))
            args, kwargs = loads(together(call[1], parts))
            return Outcome(value(called(*args, **kwargs)))
        except BaseException as error:  # whatever a user's function raises is its outcome
            return Raised(raised(error))


def _pickled_error(error: BaseException) -> bytes:
    return _RAISED + pickle.dumps((_sendable(error), _text_of(error)))


def _plain_value(value: Any) -> bytes:
    from crosswind.run import plain_data

    return plain_data.dumps(value)


def _plain_error(error: BaseException) -> bytes:
    from crosswind.run import plain_data

    return _RAISED + plain_data.dumps((type(error).__name__, _text(error), _text_of(error)))


def _text_of(error: BaseException) -> str:
    import traceback  # an agent starts sooner without

    try:
        return "".join(traceback.format_exception(error))
    except BaseException as other:  # of an exception that does not let itself be looked at
        return f"{type(error).__name__}, whose traceback cannot be shown: {type(other).__name__}"


def called(call: tuple[Any, ...]) -> bytes:
    """Return a call or a batch as bytes for a `Performer`; what is large in it is not copied once more."""
    is_batch = type(call[-1]) is list
    if is_batch and call[-2] != "pickles":
        return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
    few, large = apart(call[-1] if is_batch else call[-1:])
    if not large:
        return pickle.dumps(call, pickle.HIGHEST_PROTOCOL)
    return dumps_around((*call[:-1], few if is_batch else few[0]), large)


def _sendable(error: BaseException) -> bytes:
    """Return an exception as a pickle of what `_rebuilt` takes."""
    return cloudpickle.dumps(_parts(error))  # type: ignore[no-any-return] # untyped


def _parts(error: BaseException) -> tuple[Any, ...]:
    """Return what `_rebuilt` makes an exception of: some can be written as they are and not read back."""
    kind, args = type(error), error.args
    forms: list[Callable[[], tuple[Any, ...]]] = [
        lambda: (error,),
        lambda: (kind, args, vars(error)),
        lambda: (kind, args, {}),
        lambda: (kind, (_text(error),), {}),
    ]
    if isinstance(error, BaseExceptionGroup):
        forms[1:] = [lambda: (kind, (error.message, [_Part(_parts(one)) for one in error.exceptions]), {})]
    for form in forms:
        try:
            parts = form()
            _rebuilt(*pickle.loads(cloudpickle.dumps(parts)))
        except BaseException:  # also SystemExit: code of the exception's own class runs here
            continue
        return parts
    return (CallError(f"{kind.__name__}: {_text(error)}"),)


class _Part:
    """An exception of a group, which is rebuilt by itself."""

    def __init__(self, parts: tuple[Any, ...]) -> None:
        self._parts = parts

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return _rebuilt, self._parts


def _text(error: BaseException) -> str:
    """Return what an exception says, whatever its `__str__` does."""
    try:
        return str(error)
    except BaseException as other:
        return f"(its __str__ raised {type(other).__name__})"


def _rebuilt(kind: Any, args: tuple[Any, ...] = (), attributes: Arguments | None = None) -> BaseException:
    """Return an exception from its class, arguments and attributes, without its `__init__`; or itself."""
    if isinstance(kind, BaseException):
        return kind
    error: BaseException = kind.__new__(kind, *args)
    error.args = args
    vars(error).update(attributes or {})
    return error


class _Functions:
    """A cache of the functions that were called last, by their pickles, limited by number and bytes."""

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def __call__(self, pickled: bytes) -> Any:
        """Return a function."""
        known = self._known.get(pickled)
        if known is not None:
            with suppress(KeyError):  # another thread has removed it
                self._known.move_to_end(pickled)
            return known[0]
        if pickled.startswith(local_values.MARK):
            function, size = local_values.value_at(pickled, keep=True), local_values.kept_bytes(pickled)
        else:
            function, size = loads(pickled), len(pickled)
        self._known[pickled] = (function, size)
        self._bytes += size
        while len(self._known) > _MOST_KNOWN or (self._bytes > MOST_KNOWN_BYTES and len(self._known) > 1):
            self._bytes -= self._known.popitem(last=False)[1][1]
        return function


function_of: Final = _Functions()
"""Returns a function by its pickle; the last ones are kept."""


def outcome(data: Data, ok: bool, node: str, *, plain: bool) -> Any:
    """Return the value of a call, or raise its exception, with the remote traceback as its cause.

    Parameters
    ----------
    data : bytes
        What the node sent.
    ok : bool
        Whether the call was done; else `data` may be a text on why not.
    node : str
        Which node it was.
    plain : bool
        Whether the node must not run code here: then only plain data are taken.

    Raises
    ------
    BaseException
        What the call raised.
    CallError
        When the call could not be done.
    GoneError
        When the agent that kept the value has ended: the call has to be done again.
    """
    read = loads_from(plain=plain)
    if ok:
        if not plain and data[:1] == local_values.MARK:
            return local_values.value_at(bytes(data))
        return read(data)
    if data[:1] != _RAISED:
        raise CallError(bytes(data).decode(errors="replace"))
    if plain:
        name, message, text = read(data[1:])
        error = _builtin(str(name), str(message))
    else:
        sent, text = read(data[1:])
        error = _rebuilt(*read(sent))
    raise error from RemoteTraceback(node, str(text))


def loads_from(*, plain: bool) -> Callable[[Data], Any]:
    """Return what reads the bytes of a node: plain data only, if it must not run code here."""
    if plain:
        from crosswind.run import plain_data

        return plain_data.loads
    return loads


def _builtin(name: str, message: str) -> BaseException:
    """Return an exception of Python's own by its name; another one in words."""
    kind = getattr(builtins, name, None)
    if isinstance(kind, type) and issubclass(kind, Exception):
        try:
            return kind(message)
        except TypeError:  # UnicodeDecodeError and others take more
            pass
    return CallError(f"{name}: {message}")
