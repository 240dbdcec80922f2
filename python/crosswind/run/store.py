"""Results of `crosswind.map` in a directory, a file each, named by what they are made of."""

from __future__ import annotations

import hashlib
import pickle
import time
import types
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar

import cloudpickle

from crosswind.errors import DescriptionError
from crosswind.files.atomic import replaced, take_away_parts
from crosswind.files.output import writable_directory
from crosswind.run.futures import is_future
from crosswind.run.lock import locked

R = TypeVar("R")

_SUFFIX = ".pickle"
_SYNC_EVERY_S = 0.2
"""A torn file is made again on resume, so results that come fast need not wait for the disk one by one."""


class Store:
    """The directory, which is locked while the store is entered.

    Parameters
    ----------
    directory : path
        Made where it is missing.
    function : callable
        What makes the results.
    key : callable, optional
        What an item is known by; default: the item.
    resume : bool
        Whether results that stand there count.

    Raises
    ------
    DescriptionError
        When the directory cannot be made; on entry, when another process writes there.
    """

    def __init__(
        self, directory: str | Path, function: Callable[..., Any], key: Callable[[Any], object] | None, resume: bool
    ) -> None:
        writable_directory(directory, "out")
        self._directory, self._key, self._resume = Path(directory), key, resume
        self._code = fingerprint(function)
        self._seen: dict[int, int] = {}  # how often each item came: small, since there may be a million
        self._held = ExitStack()
        self._writer = ThreadPoolExecutor(1, "crosswind-store")
        self._synced = -_SYNC_EVERY_S
        try:
            self._directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            message = f"out is {str(directory)!r}: {(error.strerror or str(error)).lower()}"
            raise DescriptionError(message, "out", "name a directory that can be made") from None

    def __enter__(self) -> Store:
        self._held.enter_context(locked(self._directory))
        take_away_parts(self._directory)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._writer.shutdown()
        self._held.close()

    def name_of(self, item: Any) -> str:
        """Return the name of an item's result; equal items get different ones, in their order."""
        known_by = item if self._key is None else self._key(item)
        if is_future(known_by):
            message = "an item is a future, and out is given: a file is named by what the item is"
            raise DescriptionError(message, "argument", "give key=, or pass the future's result()")
        digest = hashlib.blake2b(self._code + cloudpickle.dumps(known_by), digest_size=16).digest()
        short = int.from_bytes(digest[:8], "big")
        again = self._seen[short] = self._seen.get(short, 0) + 1
        return digest.hex() + (f"-{again}" if again > 1 else "") + _SUFFIX

    def known(self, name: str) -> Future[Any] | None:
        """Return a result that stands there whole."""
        if not self._resume:
            return None
        future: Future[Any] = Future()
        try:
            future.set_result(pickle.loads((self._directory / name).read_bytes()))
        except Exception:  # missing, or torn by a power cut: it is made again
            return None
        return future

    def kept(self, name: str, call: Future[R]) -> Future[R]:
        """Return a future that is done once the call's result has been written.

        A thread of the store's writes it: the one that answers calls does not wait for the disk.
        """
        written: Future[R] = Future()

        def keep(done: Future[R]) -> None:
            try:
                value = done.result()
                self._write(name, cloudpickle.dumps(value))
                written.set_result(value)
            except BaseException as error:
                written.set_exception(error)

        def hand_over(done: Future[R]) -> None:
            try:
                self._writer.submit(keep, done)
            except RuntimeError as error:  # the store is closed
                written.set_exception(error)

        call.add_done_callback(hand_over)
        return written

    def _write(self, name: str, data: bytes) -> None:
        sync = time.monotonic() - self._synced > _SYNC_EVERY_S
        with replaced(self._directory / name, sync=sync) as file:
            file.write(data)
        if sync:
            self._synced = time.monotonic()


def fingerprint(function: Callable[..., Any]) -> bytes:
    """Return a digest of what a function does, as far as its own code says: the same in every process.

    Line numbers and file names do not count, so that a comment above a function costs nothing.

    Examples
    --------
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 1)
    True
    >>> fingerprint(lambda x: x + 1) == fingerprint(lambda x: x + 2)
    False
    """
    hashed = hashlib.blake2b(digest_size=16)
    if isinstance(function, types.FunctionType):
        _add_code(hashed, function.__code__)
        closed = [cell.cell_contents for cell in function.__closure__ or () if _is_filled(cell)]
        hashed.update(_pickled((function.__defaults__, function.__kwdefaults__, closed)))
    else:
        hashed.update(_pickled(function))
    return hashed.digest()


def _add_code(hashed: Any, code: types.CodeType) -> None:
    hashed.update(code.co_code)
    hashed.update(repr((code.co_names, code.co_varnames, code.co_freevars, code.co_flags)).encode())
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _add_code(hashed, constant)
        elif isinstance(constant, frozenset):  # its order differs between processes
            hashed.update(repr(sorted(map(repr, constant))).encode())
        else:
            hashed.update(repr(constant).encode())


def _pickled(value: object) -> bytes:
    try:
        pickled: bytes = cloudpickle.dumps(value)
    except Exception:  # such as a lock in a closure: it travels to no agent either, which says so
        return b""
    return pickled


def _is_filled(cell: types.CellType) -> bool:
    try:
        return cell.cell_contents is not cell
    except ValueError:
        return False
