"""Batches: many short calls as one task, each with its own outcome.

Handing a task over costs more than most short calls take, so calls travel together as soon as they have shown that they
are short. A batch is meant to take 20 ms. One that takes longer than 50 ms, because a call in it is slow, sends the
outcomes that are there and gives back the calls that it has not begun, and the slow one continues: no call waits behind
another for longer than that.

What calls print is shown with the number of its call. To ask between two calls whether one has printed would cost more
than most calls take. So a process announces each of its first calls, and every call once any has printed. In other
batches Python's own streams say which call they are used by (`crosswind.run.task_output`), and what a program prints
that a call starts is not known to be of one.

Numbers and short texts travel as they are. Any other value is pickled alone, right after its call: what the function
changes later does not change it.
"""

from __future__ import annotations

import pickle
import threading
from collections.abc import Callable, Iterable, Iterator
from itertools import starmap
from math import inf
from time import perf_counter, sleep  # as they are: functions may replace those of the module
from typing import TYPE_CHECKING, Any, ClassVar, Final, Literal

from crosswind.run.pieces import LARGE, Data, apart, dumps_around, loads, opened, together

if TYPE_CHECKING:
    from crosswind._core import EarlyOutcomes

BATCH_S: Final = 0.02
"""What a batch is meant to take, s."""
GIVE_BACK_S: Final = 0.05
"""A batch that takes longer gives back the calls that it has not begun, s."""
MOST: Final = 16_384
"""Most calls in a batch."""
MOST_BYTES: Final = 1 << 20
"""Most bytes of arguments in a batch; of values, a batch ends with the call that exceeds it."""

NUMBERS: Final = frozenset({type(None), bool, int, float, complex})
ATOMS: Final = NUMBERS | {str, bytes}
"""What cannot change and holds nothing else: many of them are pickled at once."""
_SHORT: Final = 4_096
_MOST_SAID: Final = 4 << 20
"""Most bytes that are sent early: they travel between the pieces of larger values."""
_ANNOUNCED_FIRST: Final = 100
"""Calls in batches that a process announces, though none has printed yet."""

Form = Literal["atoms", "tuples", "pickles"]
"""What the items of a batch are: one argument each, all positional arguments each, or a pickle of (args, kwargs)."""
Outcome = Any
"""Of a call: an atom, `(bytes,)` for another value, or `(bytes, None)` for what it raised."""
Early = Callable[[bytes], None]


def outcomes_of(data: Data, loads: Callable[[Data], Any]) -> tuple[list[Outcome], int, float]:
    """Return what the bytes from a node hold.

    Parameters
    ----------
    data : bytes
        From `Batch`.
    loads : callable
        Reads them; for nodes that must not run code here, one that takes plain data only.

    Returns
    -------
    outcomes : list
        Of the first calls, in their order.
    given_back : int
        How many calls at the end of the batch are not computed there.
    seconds : float
        How long all calls that have an outcome took, s; 0 before the end of the batch.

    Raises
    ------
    ValueError
        When it is something else.
    """
    said, buffers = opened(data, loads)
    if type(said) is tuple and [type(one) for one in said] == [list, int, float] and said[1] >= 0 <= said[2] < inf:
        if buffers:
            outcomes = [(together(one[0], buffers), *one[1:]) if type(one) is tuple else one for one in said[0]]
            return outcomes, said[1], said[2]
        return said
    raise ValueError("what a node says of a batch of calls is damaged")


class Batch:
    """The calls of a batch on the node that computes it.

    Parameters
    ----------
    function : callable
        What is called.
    form : Form
        What the items are.
    items : iterable
        The arguments.
    value, raised : callable
        Return a value and an exception as bytes.
    """

    _silent_calls: ClassVar[int] = 0
    """Calls that this process announced before any printed."""

    def __init__(
        self,
        function: Callable[..., Any],
        form: Form,
        items: Iterable[Any],
        value: Callable[[Any], bytes],
        raised: Callable[[BaseException], bytes],
    ) -> None:
        self._function, self._form = function, form
        self._value, self._raised = value, raised
        self._items = list(items)
        self._count = len(self._items)
        self._todo = iter(self._items)
        self._outcomes: list[Outcome] = []
        self._bytes = 0
        self._held = threading.Lock()
        self._is_over = False
        self._prints: EarlyOutcomes | None = None
        self._printing = 0
        """The call that Python's streams were used by last."""
        self.began_s = perf_counter()

    def run(self, prints: EarlyOutcomes | None = None) -> bytes:
        """Do the calls, and return what came of them; with `prints`, say whose what they print is."""
        outcomes = self._outcomes
        announces = prints is not None and (prints.has_shown_prints or Batch._silent_calls < _ANNOUNCED_FIRST)
        self._prints = None if announces else prints
        add, numbers, other = outcomes.append, NUMBERS, self._other
        while True:
            try:
                for value in self._announced(prints) if announces and prints else self._values():
                    add(value if type(value) in numbers else other(value))
                if self._begun() is None:
                    break
                raise StopIteration  # the function did, which ends a `map` like the end of its items
            except BaseException as error:  # whatever a user's function raises is its outcome
                add((self._raised(error), None))
        with self._held:
            self._is_over = True
            seconds = max(perf_counter() - self.began_s, 0.0)
            return _as_bytes(outcomes, self._count - len(outcomes), seconds, large=self._bytes >= LARGE)

    def give_back(self, early: Early) -> None:
        """Give back what has not begun, with the outcomes of the calls before; from another thread."""
        with self._held:
            if self._is_over:
                return
            begun = self._empty()
            if begun is None:  # it ends by itself, about now
                return
            said = _as_bytes(self._outcomes[:], self._count - begun, 0.0, large=False)
            if len(said) > _MOST_SAID:  # a large last value: the outcomes come at the end
                said = _as_bytes([], self._count - begun, 0.0, large=False)
            early(said)

    def _values(self) -> Iterator[Any]:
        """Call the function on what is left, one by one."""
        if self._form == "atoms":
            return map(self._function, self._todo)
        if self._form == "tuples":
            return starmap(self._function, self._todo)
        return map(self._called, self._todo)

    def _announced(self, prints: EarlyOutcomes) -> Iterator[Any]:
        """Call the function on what is left, one by one, and say before each that it begins."""
        values = self._values()
        while (begun := self._begun()) is not None:
            if Batch._silent_calls >= _ANNOUNCED_FIRST and not prints.has_shown_prints:
                prints.begin_call(0)
                self._prints = prints
                yield from values
                return
            prints.begin_call(begun + 1)
            try:
                value = next(values)
            except StopIteration:  # the end, or the function's own: `run` sees which
                return
            Batch._silent_calls += 1
            yield value

    def begin_print(self) -> None:
        """Have what is printed be of the call in progress: a stream of Python's is about to be used."""
        if self._prints is not None and (begun := self._begun()) and begun != self._printing:
            self._prints.begin_call(begun)
            self._printing = begun

    def end_print(self) -> None:
        """Have what is printed be of no call that is known."""
        if self._prints is not None and self._printing:
            self._prints.begin_call(0)
            self._printing = 0

    def _called(self, arguments: bytes) -> Any:
        args, kwargs = loads(arguments)
        return self._function(*args, **kwargs)

    def _other(self, value: Any) -> Outcome:
        is_short = type(value) in ATOMS and len(value) < _SHORT
        data = value if is_short else self._value(value)
        self._bytes += len(data)
        if self._bytes > MOST_BYTES:
            self._empty()
        return value if is_short else (data,)

    def _begun(self) -> int | None:
        """Return how many calls have begun; None once the items have been seen to end."""
        state = self._todo.__reduce__()
        return state[2] if len(state) == 3 else None  # type: ignore[return-value] # as a list has it

    def _empty(self) -> int | None:
        """Take away what has not begun, and return how many calls have, or None if all have and have ended.

        Nothing begins once the list is cut. What has begun between the look and the cut is behind the cut, and counted.
        """
        begun = self._begun()
        if begun is None:
            return None
        del self._items[begun:]
        return self._begun()


def _as_bytes(outcomes: list[Outcome], given_back: int, seconds: float, *, large: bool) -> bytes:
    if large:
        numbers, parts = apart([one[0] for one in outcomes if type(one) is tuple])
        left = iter(numbers)
        outcomes = [(next(left), *one[1:]) if type(one) is tuple else one for one in outcomes]
        if parts:
            return dumps_around((outcomes, given_back, seconds), parts)
    return pickle.dumps((outcomes, given_back, seconds), pickle.HIGHEST_PROTOCOL)


class Overdue:
    """Has the batch of this process give back what it has not begun, once it takes too long: a thread of its own.

    It looks several times within `GIVE_BACK_S` while batches follow each other, and sleeps otherwise: to wake it for
    each batch would cost more.
    """

    def __init__(self) -> None:
        self._current: tuple[Batch, Early] | None = None
        self.batch: Batch | None = None
        """That runs."""
        self._wake = threading.Event()
        self._thread: threading.Thread | None = None

    def run(self, batch: Batch, early: Early) -> bytes:
        """Run a batch."""
        self._current, self.batch = (batch, early), batch
        if self._thread is None:
            self._thread = threading.Thread(target=self._watch, name="crosswind-batches", daemon=True)
            self._thread.start()
        if not self._wake.is_set():
            self._wake.set()
        try:
            return batch.run(early if getattr(early, "shows_prints", False) else None)  # type: ignore[arg-type] # then it is one
        finally:
            self._current = self.batch = None

    def _watch(self) -> None:
        while True:
            self._wake.wait()
            current = self._current
            if current is None:
                self._wake.clear()
                if self._current is None:
                    continue
                self._wake.set()
            elif perf_counter() - current[0].began_s > GIVE_BACK_S:
                current[0].give_back(current[1])
                if self._current is current:
                    self._current = None
            sleep(GIVE_BACK_S / 4)


OVERDUE: Final = Overdue()
