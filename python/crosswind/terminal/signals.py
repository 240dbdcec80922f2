"""Signals that ask long work to end: caught and kept, so that what was done so far is kept too."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from types import FrameType

Handler = Callable[[int, FrameType | None], object] | int | None


@contextmanager
def heard(numbers: Sequence[signal.Signals]) -> Iterator[list[int]]:
    """Collect these signals while the body runs; what they did before is put back. Only the main thread gets any.

    One that is ignored stays so: a user who starts the program under `nohup` wants that.

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


def interrupt_on(numbers: Sequence[signal.Signals]) -> None:
    """Have these signals do what ctrl-C does: the first of them raises KeyboardInterrupt, later ones do nothing.

    They come to every process of a job, and more than once: what is being cleaned up is not interrupted again. One that
    is ignored stays so: `nohup` asks for that.
    """
    asked = False

    def hear(number: int, frame: FrameType | None) -> None:
        nonlocal asked
        if not asked:
            asked = True
            raise KeyboardInterrupt

    for number in numbers:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, hear)


def answer_ctrl_c(say: Callable[[], None], after_s: float = 0.8) -> Callable[[], None]:
    """Call `say`, in a thread, where ctrl-C has not ended the program within `after_s`; return what ends that.

    Compiled code finishes its current step first, which can take seconds.
    """
    if threading.current_thread() is not threading.main_thread():
        return lambda: None
    heard, hear = os.pipe()
    os.set_blocking(hear, False)  # as the interpreter asks
    over = threading.Event()

    def wait() -> None:
        while number := os.read(heard, 1):
            if number[0] == signal.SIGINT:
                if not over.wait(after_s):
                    say()
                return

    threading.Thread(target=wait, name="crosswind-ctrl-c", daemon=True).start()
    signal.set_wakeup_fd(hear, warn_on_full_buffer=False)
    os.register_at_fork(after_in_child=lambda: None if over.is_set() else signal.set_wakeup_fd(-1))
    return over.set


@contextmanager
def told_at(numbers: Sequence[signal.Signals]) -> Iterator[int | None]:
    """Yield a descriptor at which a byte comes for each of these signals, even while compiled code runs.

    SIGTERM and SIGHUP count once together: they come to all processes of a job, and one of those sends them on. One
    that is ignored stays so. None outside of the main thread, which gets no signal. Forked children (`multiprocessing`
    in a task) are ended by these signals, and no byte comes for theirs.

    Examples
    --------
    >>> with told_at([signal.SIGTERM]) as descriptor:
    ...     os.kill(os.getpid(), signal.SIGTERM)
    ...     os.read(descriptor, 1) == bytes([signal.SIGTERM])
    True
    """
    if threading.current_thread() is not threading.main_thread():
        yield None
        return
    heard, hear = os.pipe()
    taken, written = os.pipe()
    os.set_blocking(hear, False)  # as the interpreter asks

    def pass_on() -> None:
        ended = False
        while number := os.read(heard, 1):
            ends = number[0] in (signal.SIGTERM, signal.SIGHUP)
            if not (ended and ends):
                os.write(written, number)
            ended = ended or ends

    thread = threading.Thread(target=pass_on, name="crosswind-signals", daemon=True)
    thread.start()
    heeded = [number for number in numbers if signal.getsignal(number) is not signal.SIG_IGN]
    before = {number: signal.signal(number, lambda number, frame: None) for number in heeded}
    woken = signal.set_wakeup_fd(hear, warn_on_full_buffer=False)
    over: list[bool] = []

    def let_go() -> None:
        signal.set_wakeup_fd(-1)
        for number, handler in before.items():
            signal.signal(number, handler)
        for descriptor in (heard, hear, taken, written):
            os.close(descriptor)

    _in_forked_children(heeded, let_go, over)
    try:
        yield taken
    finally:
        over.append(True)
        signal.set_wakeup_fd(woken)
        for number, handler in before.items():
            signal.signal(number, handler)
        os.close(hear)
        thread.join()
        for descriptor in (heard, taken, written):
            os.close(descriptor)


def _in_forked_children(numbers: Sequence[signal.Signals], let_go: Callable[[], None], over: list[bool]) -> None:
    """Have forked children let go of how signals are handled here, before they get one, until `over` has an item."""
    before = threading.local()

    def hold() -> None:
        before.mask = signal.pthread_sigmask(signal.SIG_BLOCK, () if over else numbers)

    def release() -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, before.mask)

    def begin() -> None:
        if not over:
            let_go()
        release()

    os.register_at_fork(before=hold, after_in_parent=release, after_in_child=begin)
