"""Waits that ctrl-C interrupts, however long they are: for events, threads and futures."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
_LOOK_S = 0.5


def in_steps(is_over: Callable[[float], object], timeout_s: float | None = None) -> bool:
    """Wait until `is_over(seconds)`, which waits that long at most, and return whether it was in time.

    A signal that arrives just as Python begins to wait for a lock is handled only when that wait ends. Each wait here
    is short for that reason: ctrl-C is answered within half a second.

    Examples
    --------
    >>> in_steps(threading.Event().wait, 0.0)
    False
    """
    until = None if timeout_s is None else time.monotonic() + timeout_s
    while not is_over(_LOOK_S if until is None else min(max(until - time.monotonic(), 0.0), _LOOK_S)):
        if until is not None and time.monotonic() >= until:
            return False
    return True


def wait_for_all(futures: Collection[Future[Any]]) -> None:
    """Wait until all are done. Ctrl-C is answered within half a second."""
    in_steps(lambda step_s: not wait(futures, step_s).not_done)


def as_done(futures: Iterable[Future[T]]) -> Iterator[Future[T]]:
    """Yield futures as they are done. Ctrl-C is answered within half a second."""
    left = set(futures)
    while left:
        done, left = wait(left, _LOOK_S, FIRST_COMPLETED)
        yield from done


def join(thread: threading.Thread) -> None:
    """Wait for the end of a thread. Ctrl-C is answered within half a second."""

    def has_ended(step_s: float) -> bool:
        thread.join(step_s)
        return not thread.is_alive()

    in_steps(has_ended)


@contextmanager
def threads(workers: int | None) -> Iterator[ThreadPoolExecutor]:
    """Yield threads for the body. After an error or ctrl-C they begin nothing more."""
    from concurrent.futures import ThreadPoolExecutor  # an agent starts sooner without

    with ThreadPoolExecutor(workers) as pool:
        try:
            yield pool
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


def mapped(pool: ThreadPoolExecutor, function: Callable[[Any], T], items: Iterable[Any]) -> Iterator[T]:
    """Yield what threads make of items, in their order. Ctrl-C is answered within half a second."""
    for future in [pool.submit(function, item) for item in items]:
        wait_for_all([future])
        yield future.result()
