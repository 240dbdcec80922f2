"""Signals that ask long work to end: heard and kept, rather than died of, so that what was done so far is kept too."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType
from typing import Any

Handler = Callable[[int, FrameType | None], Any] | int | None


@contextmanager
def heard(numbers: Sequence[signal.Signals]) -> Iterator[list[int]]:
    """Collect these signals while the body runs; what they did before is put back. Only the main thread hears any.

    One that is ignored stays so: whoever started us under `nohup` wants that.

    Examples
    --------
    >>> import os
    >>> with heard([signal.SIGTERM]) as asked:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    >>> asked == [signal.SIGTERM]
    True
    """
    asked: list[int] = []
    before: dict[signal.Signals, Handler] = {}

    def hear(number: int, frame: FrameType | None) -> None:
        asked.append(number)

    if threading.current_thread() is threading.main_thread():
        for number in numbers:
            if signal.getsignal(number) is not signal.SIG_IGN:
                before[number] = signal.signal(number, hear)
    try:
        yield asked
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
