"""Calls on other nodes: a function and its arguments go there as bytes, its value or its exception comes back."""

from __future__ import annotations

import pickle
from functools import lru_cache
from typing import Any

import cloudpickle


class RemoteTraceback(Exception):  # noqa: N818 (it is where an error came from, not an error)
    """Where an exception was raised on another node: the `__cause__` of the exception that is raised here."""

    def __init__(self, node: str, text: str) -> None:
        super().__init__(node, text)
        self.node, self.text = node, text

    def __str__(self) -> str:
        return f'\non node {self.node}:\n"""\n{self.text}"""'


class CallError(Exception):
    """Stands for a value or an exception that could not be sent back; the cause says where it came from."""


class Raised(bytes):
    """The outcome of a call that raised: the node tries the call again where it may."""

    is_failure = True


def packed(function: bytes, arguments: bytes) -> bytes:
    """Return a call as bytes; both are pickled already, the function since it is often the same for many calls."""
    return pickle.dumps((function, arguments))


def perform(call: tuple[bytes, bytes]) -> bytes:
    """Do a call and return its outcome as bytes: a value, or an exception with its traceback. Runs on the node."""
    try:
        args, kwargs = pickle.loads(call[1])
        value = _function(call[0])(*args, **kwargs)
        return pickle.dumps((True, cloudpickle.dumps(value), ""))
    except BaseException as error:  # whatever a user's function raises is its outcome
        import traceback  # an agent starts sooner without

        text = "".join(traceback.format_exception(error))
        try:
            sent = cloudpickle.dumps(error)
            pickle.loads(sent)  # some exceptions are written and cannot be read back
        except Exception:
            sent = cloudpickle.dumps(CallError(f"{type(error).__name__}: {error}"))
        return Raised(pickle.dumps((False, sent, text)))


@lru_cache(maxsize=64)
def _function(function: bytes) -> Any:
    return pickle.loads(function)


def outcome(data: bytes, node: str) -> tuple[bool, Any]:
    """Return whether a call succeeded, and its value or its exception with the remote traceback as cause."""
    succeeded, sent, text = pickle.loads(data)
    value = pickle.loads(sent)
    if not succeeded:
        value.__cause__ = RemoteTraceback(node, text)
    return succeeded, value
