"""A time limit that ends what is under way: where a batch system ends the whole check, nothing is known."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from crosswind.host.processes import started


def process_age_s() -> float:
    """Return how long ago this process was started, s; 0 if unknown."""
    ticks = started(os.getpid())
    if ticks is None:
        return 0.0
    return max(time.clock_gettime(time.CLOCK_BOOTTIME) - ticks / os.sysconf("SC_CLK_TCK"), 0.0)


class OverTimeError(Exception):
    """What was under way did not end within its time."""


def run_until(until: float, body: Callable[[], None]) -> None:
    """Call a function, and interrupt it at a time of the monotonic clock, as ctrl-C would.

    Only the main thread can be interrupted; elsewhere the function runs on.

    Raises
    ------
    OverTimeError
        When the time was over before the function was.
    """
    if time.monotonic() >= until:
        raise OverTimeError
    if threading.current_thread() is not threading.main_thread():
        body()
        return
    is_over, is_under_way = False, True
    held, main = threading.Lock(), threading.main_thread().ident or 0
    before = signal.getsignal(signal.SIGINT)

    def end() -> None:
        nonlocal is_over
        with held:
            if is_under_way:
                is_over = True
                signal.pthread_kill(main, signal.SIGINT)

    def on_interrupt(number: int, frame: FrameType | None) -> Any:
        if is_over and not is_under_way:
            return None  # it was sent just before the function ended
        if not is_over and before is signal.SIG_IGN:
            return None
        if not is_over and callable(before):
            return before(number, frame)
        raise KeyboardInterrupt

    timer = threading.Timer(max(until - time.monotonic(), 0.0), end)
    timer.daemon = True
    signal.signal(signal.SIGINT, on_interrupt)
    try:
        timer.start()
        body()
        is_under_way = False
    except KeyboardInterrupt:
        if not is_over:
            raise
    finally:
        is_under_way = False
        with held:  # what is being sent has been sent
            pass
        timer.cancel()
        signal.signal(signal.SIGINT, before)
    if is_over:
        raise OverTimeError
