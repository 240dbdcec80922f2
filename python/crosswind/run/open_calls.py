"""The calls of a farm that have no answer: those that wait here or for futures, and those that nodes have."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from typing import Any

from crosswind.errors import AgentLost
from crosswind.run.window import Window


class Call(Future[Any]):
    """A call of a farm. It is running when a node computes it.

    Parameters
    ----------
    withdraw : callable
        Cancels the call if no node has begun it.
    """

    def __init__(self, withdraw: Callable[[list[Call]], None]) -> None:
        super().__init__()
        self._withdraw = withdraw
        self.number: int | None = None
        """Of its task, once it is handed over."""
        self.withdrawn = False
        """Whether it must not be handed over."""

    def cancel(self) -> bool:
        """Cancel the call unless a node computes it or has done so, and return whether it is cancelled.

        Asks the node that has it, which takes as long as a message there and back.
        """
        if not self.done() and not self.running():
            self._withdraw([self])
        return self.cancelled()

    def end_cancelled(self) -> None:
        """Be cancelled, unless it has an outcome."""
        if not self.done() and super().cancel():
            self.set_running_or_notify_cancel()


class OpenCalls:
    """Calls without an answer, shared by the threads that submit them, hand them over and take answers.

    Parameters
    ----------
    window : Window
        How many may be handed over at a time.
    """

    def __init__(self, window: Window) -> None:
        self._window = window
        self._changed = threading.Condition()
        self._waiting: deque[tuple[Call, bytes]] = deque()
        self._held: set[Call] = set()
        self._out: dict[int, Call] = {}
        self._handing: int | None = None
        self._handed_over = 0
        self._closed = False
        self.broken: BaseException | None = None
        """Why no call is taken any more, if the run has ended."""

    def add(self, call: Call, data: bytes | None) -> None:
        """Take up a call; without data, it waits for a future among its arguments.

        Raises
        ------
        RuntimeError
            After `close`.
        AgentLost
            When the run is over, with what ended it.
        """
        with self._changed:
            if self.broken is not None:
                raise AgentLost(f"the farm's run is over: {self.broken}", "farm-over") from self.broken
            if self._closed:
                raise RuntimeError("cannot submit a call after shutdown")
            if data is None:
                self._held.add(call)
            else:
                self._waiting.append((call, data))
                self._changed.notify_all()

    def release(self, call: Call, data: bytes | None) -> bool:
        """Take up a call whose arguments are there; without data, one that has failed. Whether it was waited for."""
        with self._changed:
            if call not in self._held:  # it was cancelled, or the run is over
                return False
            self._held.remove(call)
            if data is not None:
                self._waiting.append((call, data))
            self._changed.notify_all()
        return True

    def close(self) -> None:
        """Take no more calls."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def next(self) -> tuple[int, bytes] | None:
        """Wait for a call to hand over and for room for it; its number and data, or None when none follows.

        Ends the handing over of the one before.
        """
        with self._changed:
            self._handing = None
            self._changed.notify_all()
            self._changed.wait_for(self._is_due)
            if not self._waiting:
                return None
            call, data = self._waiting.popleft()
            number = call.number = self._handing = self._handed_over
            self._handed_over += 1
            self._out[number] = call  # before it is handed over: its answer may come at once
            return number, data

    def _is_due(self) -> bool:
        while self._waiting and self._waiting[0][0].withdrawn:
            self._waiting.popleft()
        if self._waiting:
            return len(self._out) < self._window.size
        return (self._closed and not self._held) or self.broken is not None

    def begin(self, numbers: Iterable[int]) -> None:
        """Mark calls as running."""
        with self._changed:
            for number in numbers:
                call = self._out.get(number)
                if call is not None and not call.running() and not call.done():
                    call.set_running_or_notify_cancel()

    def take(self, numbers: Iterable[int]) -> list[Call]:
        """Return calls that have an outcome, each once."""
        with self._changed:
            calls = [self._out.pop(number, None) for number in numbers]
            self._changed.notify_all()
        return [call for call in calls if call is not None]

    def learn(self, answers: int, out: int, now_s: float) -> None:
        """Tell the window that answers came (`Window.answered`)."""
        with self._changed:
            self._window.answered(answers, out, now_s)
            self._changed.notify_all()

    def withdraw(self, calls: Iterable[Call], patience_s: float) -> tuple[list[Call], list[int]]:
        """Return, of calls that are not to be begun, those that wait here, and the numbers of those that nodes have.

        One that is being handed over is waited for. Those that are running are left out.
        """
        here, numbers = [], set()
        with self._changed:
            for call in calls:
                if call.number is None:
                    call.withdrawn = True
                    self._held.discard(call)
                    here.append(call)
                elif call.number in self._out and not call.running():
                    numbers.add(call.number)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._handing not in numbers, patience_s)
        return here, sorted(numbers)

    def all(self) -> list[Call]:
        """Return all calls without an answer."""
        with self._changed:
            return [*self._held, *(call for call, _ in self._waiting), *self._out.values()]

    @property
    def out(self) -> int:
        """How many calls nodes have."""
        with self._changed:
            return len(self._out)

    @property
    def size(self) -> int:
        """How many calls nodes may have at present."""
        return self._window.size

    def fail(self, error: BaseException) -> list[Call]:
        """Take no more calls because of an error, and return those that nothing will answer."""
        with self._changed:
            self.broken = self.broken or error
            calls = self.all()
            self._out.clear()
            self._held.clear()
            self._waiting.clear()
            self._handing = None
            self._changed.notify_all()
        return calls
