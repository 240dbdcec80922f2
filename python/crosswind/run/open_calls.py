"""The calls of a farm that have no answer: those that wait here or for futures, and those that nodes have."""

from __future__ import annotations

import threading
from _thread import RLock, allocate_lock
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, InvalidStateError
from concurrent.futures._base import CANCELLED, CANCELLED_AND_NOTIFIED, FINISHED, PENDING
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any, Final

from crosswind._core import Function
from crosswind.errors import AgentLost
from crosswind.run import batches
from crosswind.run.call_run import Handed
from crosswind.run.calls import CallError, Performer, called, loads_from, outcome
from crosswind.run.dask_options import no_attribute
from crosswind.run.pieces import Data
from crosswind.run.process_memory import GoneError
from crosswind.run.window import Window
from crosswind.terminal.waiting import in_steps

_BACK_S: Final = batches.GIVE_BACK_S + 0.25
"""How long a call that is to be cancelled is waited for, which its batch may give back, s."""


_DONE: Final = (FINISHED, CANCELLED_AND_NOTIFIED, CANCELLED)


class _Condition(RLock):  # type: ignore[misc] # final in its stubs only
    """The lock of a call, in the place of a future's condition: on that only `result` and `exception` would wait."""

    __slots__ = ()

    def notify_all(self) -> None:
        """Do nothing: threads that wait for a call wait for an event."""


class _Bell:
    """What wakes one thread. Each method is one step of the interpreter, which no handler of a signal interrupts."""

    def __init__(self) -> None:
        self._lock = allocate_lock()
        self._lock.acquire()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait until it has been rung since the last time, and return whether it has."""
        return self._lock.acquire(timeout=-1 if timeout is None else min(max(timeout, 0.0), threading.TIMEOUT_MAX))

    def ring(self) -> None:
        """Wake the thread, or have it not wait the next time."""
        try:  # noqa: SIM105 (`suppress` takes longer than the rest)
            self._lock.release()
        except RuntimeError:  # it has been rung already
            pass


class _Waiter(_Bell):
    """A thread that waits for a call, as futures notify those."""

    def add_result(self, future: Future[Any]) -> None:
        """Wake the thread."""
        self.ring()

    add_exception = add_cancelled = add_result


class Call(Future[Any]):
    """A call of a farm. It is running when a node computes it.

    Parameters
    ----------
    withdraw : callable
        Cancels the call if no node has begun it.
    function : bytes or Function
        What it calls, pickled.
    arguments : bytes, optional
        Pickled, once they are there.
    """

    def __init__(
        self,
        withdraw: Callable[[list[Call]], None],
        function: bytes | Function = b"",
        arguments: bytes | None = None,
    ) -> None:
        # What Future.__init__ does, without a condition: that takes longer than all else that a short call needs.
        self._condition = _Condition()  # type: ignore[assignment] # it has all that futures use
        self._state, self._result, self._exception = PENDING, None, None
        self._waiters: list[Any] = []
        self._done_callbacks: list[Callable[[Future[Any]], object]] = []
        self._withdraw, self.function, self.arguments = withdraw, function, arguments
        self.order = 0
        """Its number, from 0 in the order in which calls were submitted."""
        self.number: int | None = None
        """Of its task, once it is handed over."""
        self.withdrawn = False
        """Whether it must not be handed over."""
        self.goes_alone = False
        """Whether it must not go in a batch: an agent was lost with the one in which it was."""

    def __getattr__(self, name: str) -> Any:
        raise no_attribute(self, name)

    def __repr__(self) -> str:
        """Say what it is to a reader who handed it to Dask's `gather` or `as_completed`, which show it."""
        return f"<concurrent.futures.Future of a crosswind farm, {self._state.lower()}>"

    def result(self, timeout: float | None = None) -> Any:
        """Wait for the value and return it, or raise what the call raised."""
        self._wait(timeout)
        return super().result(0)

    def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the outcome and return what the call raised, if anything."""
        self._wait(timeout)
        return super().exception(0)

    def _wait(self, timeout: float | None) -> None:
        """Wait as `concurrent.futures.wait` does: before the callbacks of the call, not after them."""
        if self._state in _DONE:
            return
        waiter = _Waiter()
        self._waiters.append(waiter)  # without a lock: a handler of a signal may wait for another call just here
        try:
            if self._state not in _DONE and not in_steps(waiter.wait, timeout):
                raise TimeoutError
        finally:
            with self._condition:
                self._waiters.remove(waiter)

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
            self.forget_what_travels()
            self.set_running_or_notify_cancel()

    def forget_what_travels(self) -> None:
        """Release what an ended call needs no longer, though its future may be kept."""
        self.function, self.arguments = b"", None

    def be_running(self) -> None:
        """Be computed by a node."""
        if not self.running() and not self.done():
            self.set_running_or_notify_cancel()


@dataclass
class _Out:
    """The calls of a task that nodes have."""

    calls: list[Call]
    is_batch: bool


class OpenCalls:
    """Calls without an answer, shared by the threads that submit them, hand them over and take answers.

    Parameters
    ----------
    window : Window
        How many may be handed over at a time, and together.
    plain : bool
        Whether nodes must not run code here (`crosswind.run.plain_data`).
    local : bool
        Whether nodes may keep large values until they are read (`crosswind.run.local_values`).
    """

    def __init__(self, window: Window, *, plain: bool, local: bool = False) -> None:
        self._window, self._plain, self._local = window, plain, local
        self.performer = Performer(plain=plain, local=local)
        self._loads = loads_from(plain=plain)
        self._changed = threading.Condition()
        self._bell = _Bell()
        """Wakes what hands over."""
        self._waiting: deque[Call] = deque()
        """Calls are added at its end without the lock, and taken from its beginning with it."""
        self._held: set[Call] = set()
        self._out: dict[int, _Out] = {}
        """The tasks that nodes have, by number."""
        self._is_idle = False
        """Whether what hands over waits for a call, or looks whether there is one."""
        self._handing: int | None = None
        self._handed_over = 0
        self._orders = count()
        self._is_closed = self._is_cancelled = False
        self.broken: BaseException | None = None
        """Why no call is taken any more, if the run has ended."""

    def add(self, call: Call) -> None:
        """Take up a call; without arguments, it waits for a future among them.

        Raises
        ------
        RuntimeError
            After `close`.
        AgentLost
            When the run is over, with what ended it.
        """
        # A handler of a signal may interrupt this thread at any place here and wait for a call of its own. So the lock
        # is not held, without which nothing is handed over or answered.
        self._refuse_if_over()
        call.order = next(self._orders)
        if call.arguments is None:
            with self._changed:
                self._refuse_if_over()
                self._held.add(call)
            return
        self._waiting.append(call)
        if self._is_idle:
            self._bell.ring()
        if self.broken is not None or self._is_closed:
            with self._changed:
                is_here = call in self._waiting
                if is_here:
                    self._waiting.remove(call)
            if is_here:
                self._refuse_if_over()
            elif self.broken is not None:  # `fail` has not seen it
                _fail(call, _lost(self.broken))

    def _refuse_if_over(self) -> None:
        if self.broken is not None:
            raise AgentLost(f"the farm's run is over: {self.broken}", "farm-over") from self.broken
        if self._is_closed:
            raise RuntimeError("cannot submit a call after shutdown")

    def _notify(self) -> None:
        """Wake what waits for a change."""
        self._changed.notify_all()
        self._bell.ring()

    def release(self, call: Call, arguments: bytes | None) -> bool:
        """Take up a call whose arguments are there; without, one that has failed. Whether it was waited for."""
        with self._changed:
            if call not in self._held:  # it was cancelled, or the run is over
                return False
            self._held.remove(call)
            if arguments is not None:
                call.arguments = arguments
                self._waiting.append(call)
            self._notify()
        return True

    def close(self) -> None:
        """Take no more calls."""
        self._is_closed = True
        self._bell.ring()

    def next(self) -> Handed | None:
        """Wait for a call to hand over and for room for it, and return it, perhaps with others; None when none follows.

        Ends the handing over of the one before.
        """
        with self._changed:
            self._handing = None
            self._changed.notify_all()
            while not self._looks_due():
                self._is_idle = not self._waiting  # else it waits for answers
                self._changed.release()
                try:
                    self._bell.wait()
                finally:
                    self._changed.acquire()
            self._is_idle = False
            if not self._waiting:
                return None
            together = self._together()
            number = self._handing = self._handed_over
            self._handed_over += 1
            for call in together:
                call.number = number
            is_batch = len(together) > 1
            self._out[number] = _Out(together, is_batch)  # before it is handed over: its answer may come at once
        function, arguments = together[0].function, together[0].arguments
        sent: tuple[Any, ...] = ("pickles", [call.arguments for call in together]) if is_batch else (arguments,)
        if isinstance(function, Function):
            return Handed(number, called(sent), is_batch, function)
        return Handed(number, called((bytes(function), *sent)), is_batch)  # the call keeps what holds a large one

    def _looks_due(self) -> bool:
        self._is_idle = True  # before the look: what is added meanwhile rings
        return self._is_due()

    def _is_due(self) -> bool:
        while self._waiting and self._waiting[0].withdrawn:
            self._waiting.popleft()
        if self._waiting:
            return len(self._out) < self._window.size
        if self.broken is not None:
            return True
        may_come_back = any(out.is_batch or self._local for out in self._out.values())
        return self._is_closed and not self._held and not may_come_back

    def _together(self) -> list[Call]:
        """Take the first call, and those after it that go with it."""
        first = self._waiting.popleft()
        found, held_bytes = [first], len(first.arguments or b"")
        for _ in range(self._window.calls(len(self._waiting) + 1) - 1):
            following = self._waiting[0]
            held_bytes += len(following.arguments or b"")
            if first.goes_alone or following.goes_alone or held_bytes > batches.MOST_BYTES:
                break
            if following.function is not first.function and following.function != first.function:
                break
            self._waiting.popleft()
            if not following.withdrawn:
                found.append(following)
        return found

    def begin(self, numbers: Iterable[int]) -> None:
        """Mark calls as running. Which one of a batch is, is known when it has given back those that follow."""
        with self._changed:
            for number in numbers:
                out = self._out.get(number)
                if out is not None and len(out.calls) == 1:
                    out.calls[0].be_running()

    def partial(self, number: int, data: Data, node: str = "") -> None:
        """Answer the first calls of a batch, and take up again those that it gives back."""
        with self._changed:
            out = self._out.get(number)
        if out is None:
            return
        try:
            outcomes, given_back, _ = batches.outcomes_of(data, self._loads)
        except Exception:  # of a node that must not be trusted: the result will show it
            return
        stay = len(out.calls) - given_back
        if len(outcomes) > stay:
            return
        self._answer_calls(out.calls, outcomes, node)  # what is gone is seen again at the end of the batch
        with self._changed:
            back = out.calls[stay:]
            del out.calls[stay:]
            unwanted = self._take_again(back)
            if len(outcomes) < stay and (outcomes or stay == 1):  # else it is not known which one runs
                out.calls[len(outcomes)].be_running()
        self._end_unwanted(unwanted)

    def answer(self, number: int, data: Data, ok: bool, node: str) -> int:
        """Answer the calls of a task, and return how many that was."""
        with self._changed:
            out = self._out.get(number)  # until its calls are answered: nothing may end meanwhile
        if out is None:
            return 0
        if out.is_batch:
            outcomes, seconds = self._outcomes_of(data) if ok else (None, 0.0)
        else:
            outcomes, seconds = [(data,) if ok else (data, None)], 0.0
        gone = self._answer_calls(out.calls, outcomes or [], node)
        left = gone
        if len(outcomes or []) < len(out.calls):
            left = [call for call in out.calls if not call.done()]
        with self._changed:
            for call in gone if outcomes is not None else left:
                call.goes_alone = True
            self._out.pop(number, None)
            unwanted = self._take_again(left)
            if out.is_batch:
                self._window.took(len(outcomes or []), seconds)
        self._end_unwanted(unwanted)
        return len(out.calls) - len(left)

    def _outcomes_of(self, data: Data) -> tuple[list[batches.Outcome] | None, float]:
        try:
            outcomes, _, seconds = batches.outcomes_of(data, self._loads)
        except Exception:  # what it says is damaged
            return None, 0.0
        return outcomes, seconds

    def _answer_calls(self, calls: list[Call], outcomes: list[batches.Outcome], node: str) -> list[Call]:
        """Answer the first calls of a task, and return those whose value is gone with its agent."""
        gone = []
        for call, found in zip(calls, outcomes, strict=False):
            if type(found) is not tuple:
                _end(call, found)
                continue
            if call.done():
                continue
            try:
                value = outcome(found[0], len(found) == 1, node, plain=self._plain)
            except GoneError as error:
                if not call.goes_alone:
                    gone.append(call)
                    continue
                _fail(call, CallError(f"{node} keeps a large value that cannot be read: {error}"))
            except BaseException as error:  # also of a class that only the node knows, or whose making raises anything
                _fail(call, error)
            else:
                _end(call, value)
        return gone

    def _take_again(self, calls: list[Call]) -> list[Call]:
        """Have calls wait again, before the others. Returns those that are not wanted any more, to be ended."""
        unwanted = []
        for call in reversed(calls):
            call.number = None
            if self.broken is not None or ((call.withdrawn or self._is_cancelled) and not call.running()):
                unwanted.append(call)
            else:
                self._waiting.appendleft(call)
        self._notify()
        return unwanted

    def _end_unwanted(self, calls: Iterable[Call]) -> None:
        for call in calls:
            if self.broken is None or call.withdrawn or self._is_cancelled:
                call.end_cancelled()
            if not call.done():
                _fail(call, _lost(self.broken or AgentLost("the run is over")))

    def number_of(self, task: int, call: int) -> int | None:
        """Return the number of a call, by its task and its place in a batch, from 1."""
        with self._changed:
            out = self._out.get(task)
            if out is None or call > len(out.calls) or out.is_batch != (call > 0):
                return None
            return out.calls[max(call - 1, 0)].order

    def end_withdrawn(self, numbers: Iterable[int]) -> None:
        """Cancel the calls of tasks that nodes have withdrawn; of a batch, those that are not wanted."""
        unwanted: list[Call] = []
        with self._changed:
            for number in numbers:
                out = self._out.pop(number, None)
                if out is not None and out.is_batch:
                    unwanted += self._take_again(out.calls)
                elif out is not None:
                    unwanted += out.calls
            self._notify()
        self._end_unwanted(unwanted)

    def learn(self, answers: int, out: int, now_s: float) -> None:
        """Tell the window that answers came (`Window.answered`)."""
        with self._changed:
            self._window.answered(answers, out, now_s)
            self._notify()

    def withdraw(self, calls: Iterable[Call] | None, patience_s: float) -> list[int]:
        """Cancel calls that wait here, and return the tasks of those that nodes have and may not have begun.

        One that is being handed over is waited for. Without `calls`, all that there are, and those that come back.
        """
        here, numbers = [], set()
        with self._changed:
            if calls is None:
                self._is_cancelled = True
                calls = self.all()
            for call in calls:
                if call.running():  # also one that an agent was lost with, and that is done again
                    continue
                if call.number is None:
                    call.withdrawn = True
                    self._held.discard(call)
                    here.append(call)
                elif call.number in self._out:
                    call.withdrawn = True
                    numbers.add(call.number)
            self._notify()
            self._changed.wait_for(lambda: self._handing not in numbers, patience_s)
        _cancel(here)
        return sorted(numbers)

    def keep(self, calls: Sequence[Call], *, may_wait: bool = True) -> None:
        """Keep calls that could not be withdrawn; first wait for those whose batch may still give them back.

        The thread that takes answers must not wait: it would wait for itself.
        """

        def is_known(call: Call) -> bool:
            out = self._out.get(call.number) if call.number is not None else None
            return call.done() or call.running() or out is None or not out.is_batch

        with self._changed:
            if may_wait:
                self._changed.wait_for(lambda: all(map(is_known, calls)), _BACK_S)
            for call in calls:
                if not call.done():
                    call.withdrawn = False

    def all(self) -> list[Call]:
        """Return all calls without an answer."""
        with self._changed:
            out = [call for out in self._out.values() for call in out.calls if not call.done()]
            return [*self._held, *self._waiting, *out]

    @property
    def out(self) -> int:
        """How many tasks nodes have."""
        with self._changed:
            return len(self._out)

    @property
    def size(self) -> int:
        """How many calls nodes may have at present."""
        return self._window.size * self._window.batch

    @property
    def has_open(self) -> bool:
        """Whether a call has no answer."""
        return bool(self.all())

    def fail(self, error: BaseException) -> None:
        """Take no more calls because of an error, and fail those that nothing will answer."""
        with self._changed:
            self.broken = self.broken or error
            calls = self.all()
            self._out.clear()
            self._held.clear()
            self._waiting.clear()
            self._handing = None
            self._notify()
        for call in calls:
            _fail(call, _lost(error))


def _cancel(calls: Iterable[Call]) -> None:
    for call in calls:
        call.end_cancelled()


def _lost(error: BaseException) -> AgentLost:
    """Return an error for one call: a raised exception keeps where it was raised."""
    lost = AgentLost(str(error), getattr(error, "code", "farm-over"), getattr(error, "hint", None))
    lost.__cause__ = error
    return lost


def _end(call: Call, value: Any) -> None:
    """Give a call its value, unless it has an outcome: it was cancelled, or two nodes did it."""
    call.forget_what_travels()
    try:  # noqa: SIM105 (`suppress` takes longer than the rest)
        call.set_result(value)
    except InvalidStateError:
        pass


def _fail(call: Call, error: BaseException) -> None:
    call.forget_what_travels()
    with suppress(InvalidStateError):
        call.set_exception(error)
