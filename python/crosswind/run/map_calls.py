"""The calls of a map: items are drawn, travel in batches, and their values are handed out in pieces.

There is no future for each call: keeping one costs more than a short call takes.
"""

from __future__ import annotations

import pickle
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sized
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any, Final, NamedTuple

from crosswind.errors import AgentLost
from crosswind.run import batches
from crosswind.run.batches import ATOMS, MOST_BYTES, NUMBERS
from crosswind.run.call_run import Handed, Setting
from crosswind.run.calls import CallError, Performer, called, loads_from, outcome
from crosswind.run.futures import futures_in, pickled, pickled_function, resolved, when_all_done
from crosswind.run.local_values import kept_bytes
from crosswind.run.pieces import Data
from crosswind.run.process_memory import GoneError
from crosswind.run.window import Window
from crosswind.terminal.waiting import in_steps

UNTAKEN_PER_NODE: Final = 64
"""Values that are not taken, and calls under way: bounds the memory. More where calls travel together."""
_UNTAKEN_BYTES_PER_NODE: Final = 64 << 20
"""Bytes of values that are not taken, beyond which no more calls are handed over."""


class Raised(NamedTuple):
    """What a call raised, in the place of its value."""

    error: BaseException


Piece = list[Any] | Raised
"""Values of calls that follow each other, or what one raised."""


class _Awaited(NamedTuple):
    """The arguments of a call with futures among them that are not done."""

    futures: list[Any]
    args: tuple[Any, ...]


class _Pickled:
    """The arguments of a call, pickled as they were when the item was drawn."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)


@dataclass
class _Chunk:
    """Items that travel together.

    Attributes
    ----------
    first : int
        Number of the first one, from 0 in the order in which they are drawn.
    items : list
        An atom, a tuple of arguments, or `_Pickled`.
    answered : int
        How many have an outcome, from the first.
    goes_alone : bool
        Whether its calls go one by one: an agent was lost with them.
    is_batch : bool
        Whether it was handed over as a batch, of which some may come back.
    are_numbers : bool
        Whether all items are known to be numbers.
    """

    first: int
    items: list[Any]
    answered: int = 0
    goes_alone: bool = False
    is_batch: bool = False
    are_numbers: bool = False


class MapCalls:
    """The calls of a map without an answer, and the values that are not taken.

    Parameters
    ----------
    function : callable
        What is called.
    iterables : tuple of iterable
        One for each argument.
    ordered : bool
        Whether values are handed out in the order of the items.
    chunksize : int, optional
        Most calls that travel together, from the beginning; default: as many as take 20 ms.
    setting : Setting
        Of the run.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        iterables: tuple[Iterable[Any], ...],
        ordered: bool,
        chunksize: int | None,
        setting: Setting,
    ) -> None:
        self.performer = Performer(plain=setting.plain, function=pickled_function(function), local=setting.local)
        self._iterables, self._ordered = iterables, ordered
        self._loads, self._plain = loads_from(plain=setting.plain), setting.plain
        self._in_batches = setting.tries_once and not setting.tells_each
        most = (chunksize or batches.MOST) if self._in_batches else 1
        self._window = Window(setting.nodes, most=most, begin=chunksize or 1)
        self._nodes, self._local = setting.nodes, setting.local
        self._left = length(iterables)
        self._direct = _direct(iterables)
        self._leftover: list[Any] = []
        """Items that were taken from it and did not fit into a chunk."""
        self._are_numbers = [type(one) for one in iterables] == [range]
        self._changed = threading.Condition()
        self._drawn: deque[Any] = deque()
        """Items that have not been handed over; appended without the lock."""
        self._is_hungry = False
        self._again: deque[_Chunk] = deque()
        self._out: dict[int, _Chunk] = {}
        self._handing: int | None = None
        self._handed_over = self._begun = self._awaited = 0
        self._may_draw = UNTAKEN_PER_NODE * self._nodes
        self._taken = 0
        self._untaken_bytes = 0
        self._most_bytes = _UNTAKEN_BYTES_PER_NODE * self._nodes
        self._bytes: dict[int, int] = {}
        """Of the answers that pieces came with, by the number of the piece's first call."""
        self._pieces: dict[int, Piece] = {}
        """By the number of the first call; if unordered, in the order of completion."""
        self._is_drawn = self._is_ended = False
        self._error: BaseException | None = None
        self._drawing: threading.Thread | None = None

    # Drawing items: a thread of its own, since an iterator may wait.

    def _draw(self) -> None:
        try:
            if len(self._iterables) == 1:
                self._draw_all(self._iterables[0], _of_one)
            else:
                self._draw_all(zip(*self._iterables, strict=False), _of_several)
        except _Ended:
            pass
        except BaseException as error:
            self._error = error
        finally:
            with self._changed:
                self._is_drawn = True
                self._changed.notify_all()

    def _draw_all(self, items: Iterable[Any], as_sent: Callable[[Any], Any]) -> None:
        append = self._drawn.append
        for drawn, item in enumerate(items, 1):
            append(item if type(item) in ATOMS else self._sent(item, as_sent))
            if self._is_hungry:
                self._wake()
            if drawn >= self._may_draw:
                self._wait_for_room(drawn)

    def _sent(self, item: Any, as_sent: Callable[[Any], Any]) -> Any:
        """Return an item as it travels, or what has to be waited for before."""
        sent = as_sent(item)
        if type(sent) is tuple:
            return sent
        args, kwargs = sent
        if futures := futures_in(args, kwargs):
            return _Awaited(futures, tuple(args))
        return _Pickled(pickled((args, kwargs)))

    def _wake(self) -> None:
        with self._changed:
            self._is_hungry = False
            self._changed.notify_all()

    def _wait_for_room(self, drawn: int) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self._is_ended or drawn < self._may_draw)
        if self._is_ended:
            raise _Ended

    # Handing over and answering: as `crosswind.run.call_run.Calls`.

    def close(self) -> None:
        """Nothing to do: the items end by themselves, or by `withdraw`."""

    def next(self) -> Handed | None:
        """Wait for items and for room for them; None when nothing follows."""
        if self._drawing is None and self._direct is None:
            self._drawing = threading.Thread(target=self._draw, name="crosswind-map", daemon=True)
            self._drawing.start()
        with self._changed:
            self._handing = None
            self._changed.notify_all()
            while True:
                self._is_hungry = True
                self._changed.wait_for(self._is_due)
                self._is_hungry = False
                if self._is_ended or not (self._again or self._has_new()):
                    return None
                chunk = self._again_chunk() if self._again else self._new_chunk()
                if chunk is not None:
                    break
            chunk.is_batch = len(chunk.items) > 1
            number = self._handing = self._handed_over
            self._handed_over += 1
            self._out[number] = chunk
        if not self._in_batches:
            [item] = chunk.items
            return Handed(number, called((_pickle(item),)), False)
        return Handed(number, called(_as_sent(chunk.items, chunk.are_numbers)), chunk.is_batch)

    def _is_due(self) -> bool:
        if self._is_ended:
            return True
        if self._again or self._has_new():
            if self._untaken_bytes > self._most_bytes and self._can_be_taken():
                return False
            return len(self._out) < self._window.size and (bool(self._again) or self._has_room())
        return (
            self._is_drawn
            and not self._awaited
            and not any(chunk.is_batch or self._local for chunk in self._out.values())
        )

    def _has_new(self) -> bool:
        return bool(self._drawn) if self._direct is None else not self._is_drawn

    def _has_room(self) -> bool:
        return self._direct is None or self._begun < self._may_draw

    def _again_chunk(self) -> _Chunk:
        chunk = self._again[0]
        count = 1 if chunk.goes_alone else self._window.calls(len(chunk.items))
        if count >= len(chunk.items):
            return self._again.popleft()
        rest = _Chunk(chunk.first + count, chunk.items[count:], goes_alone=chunk.goes_alone)
        self._again[0] = rest
        return _Chunk(chunk.first, chunk.items[:count], goes_alone=chunk.goes_alone)

    def _new_chunk(self) -> _Chunk | None:
        """Take as many items as go together; None if there are none, or the first one waits for its arguments."""
        left = max(self._left - self._begun, 1) if self._left is not None else 4 * self._nodes * self._window.batch
        count = self._window.calls(left)
        items = self._taken_directly(count) if self._direct is not None else self._taken_drawn(count)
        if not items:
            return None
        first = self._begun
        self._begun += len(items)
        if type(items[0]) is _Awaited:
            self._awaited += 1
            when_all_done(items[0].futures, partial(self._is_there_now, first, items[0].args))
            return None
        return _Chunk(first, items, are_numbers=self._are_numbers)

    def _is_there_now(self, number: int, args: tuple[Any, ...]) -> None:
        """Take up a call whose arguments are there, or what one of them raised."""
        found: _Chunk | Raised
        try:
            found = _Chunk(number, [_Pickled(pickled(resolved(args, {})))])
        except BaseException as error:  # what an argument raised is what the call raises
            found = Raised(error)
        with self._changed:
            self._awaited -= 1
            if isinstance(found, Raised):
                self._pieces[number] = found
            else:
                self._again.append(found)
            self._changed.notify_all()

    def _taken_drawn(self, count: int) -> list[Any]:
        popleft = self._drawn.popleft
        items = [popleft() for _ in range(min(count, len(self._drawn)))]
        if not NUMBERS.issuperset(map(type, items)):
            most = _count_together(items)
            self._drawn.extendleft(reversed(items[most:]))
            del items[most:]
        return items

    def _taken_directly(self, count: int) -> list[Any]:
        assert self._direct is not None
        items, self._leftover = self._leftover[:count], self._leftover[count:]
        items += islice(self._direct, count - len(items))
        kinds = {int} if self._are_numbers else set(map(type, items))
        most = count if kinds <= NUMBERS else _count_together(items)
        if most < len(items):
            self._leftover = items[most:] + self._leftover
            del items[most:]
        elif len(items) < count:
            self._is_drawn = True
            self._changed.notify_all()
        if len(self._iterables) == 1 and not kinds <= ATOMS:  # the list was changed meanwhile
            items = [item if type(item) in ATOMS else _Pickled(pickled(((item,), {}))) for item in items]
        return items

    def begin(self, numbers: Iterable[int]) -> None:
        """Nothing depends on it."""

    def partial(self, number: int, data: Data) -> None:
        """Take the values of a batch's first calls, and hand over again what it gives back."""
        with self._changed:
            chunk = self._out.get(number)
            if chunk is None:
                return
            try:
                outcomes, given_back, _ = batches.outcomes_of(data, self._loads)
            except Exception:  # of a node that must not be trusted: the result will show it
                return
            stay = len(chunk.items) - given_back
            if max(len(outcomes), 1) > stay:
                return
            if given_back:
                self._again.append(_Chunk(chunk.first + stay, chunk.items[stay:]))
                del chunk.items[stay:]
            self._put(chunk, outcomes[chunk.answered :], "")
            self._changed.notify_all()

    def answer(self, number: int, data: Data, ok: bool, node: str) -> int:
        """Take the values of a chunk; return how many."""
        with self._changed:
            chunk = self._out.pop(number, None)
            if chunk is None:
                return 0
            before, outcomes = chunk.answered, self._outcomes(chunk, data, ok)
            self._count_bytes(chunk.first + before, len(data))
            is_gone = self._put(chunk, (outcomes or [])[before:], node)
            if not (chunk.answered or chunk.is_batch or is_gone):
                self._put_piece(chunk, Raised(CallError(f"{node} sent a message that is no outcome of a call")))
            if chunk.answered < len(chunk.items):
                rest = chunk.items[chunk.answered :]
                goes_alone = is_gone or outcomes is None
                self._again.append(_Chunk(chunk.first + chunk.answered, rest, goes_alone=goes_alone))
            self._changed.notify_all()
            return chunk.answered - before

    def _outcomes(self, chunk: _Chunk, data: Data, ok: bool) -> list[batches.Outcome] | None:
        """Return the outcomes of a chunk's calls; None if its calls have to go one by one."""
        if not ok:
            return None if chunk.is_batch else [(data, None)]
        if not self._in_batches:
            return [(data,)]
        try:
            outcomes, _, seconds = batches.outcomes_of(data, self._loads)
        except Exception:  # what it says is damaged
            return None
        self._window.took(len(outcomes), seconds)
        return outcomes

    def _put(self, chunk: _Chunk, outcomes: list[batches.Outcome], node: str) -> bool:
        """Make values available, in pieces that end where a call raised. Whether one is gone with its agent."""
        del outcomes[len(chunk.items) - chunk.answered :]
        if tuple not in set(map(type, outcomes)):
            self._put_piece(chunk, outcomes)
            return False
        values: list[Any] = []
        is_gone = False
        begin = chunk.first + chunk.answered
        for found in outcomes:
            if self._local and type(found) is tuple:
                self._count_bytes(begin, kept_bytes(found[0]))
            try:
                value = self._value(found, node) if type(found) is tuple else found
            except GoneError as error:
                if not chunk.goes_alone:
                    is_gone = True
                    break  # it goes again, and so do those behind it
                value = Raised(CallError(f"{node} keeps a large value that cannot be read: {error}"))
            if type(value) is Raised:
                self._put_piece(chunk, values)
                self._put_piece(chunk, value)
                values = []
            else:
                values.append(value)
        self._put_piece(chunk, values)
        return is_gone

    def _value(self, found: tuple[Any, ...], node: str) -> Any:
        try:
            return outcome(found[0], len(found) == 1, node, plain=self._plain)
        except GoneError:
            raise
        except BaseException as error:  # also of a class that only the node knows, or whose making raises anything
            return Raised(error)

    def _count_bytes(self, first: int, size: int) -> None:
        """Count bytes of values that are not taken before the piece that begins with a call."""
        self._untaken_bytes += size
        self._bytes[first] = self._bytes.get(first, 0) + size

    def _put_piece(self, chunk: _Chunk, piece: Piece) -> None:
        count = 1 if type(piece) is Raised else len(piece)
        if count:
            self._pieces[chunk.first + chunk.answered] = piece
            chunk.answered += count

    def number_of(self, task: int, call: int) -> int | None:
        """Return the number of a call's item, by its task and its place in a batch, from 1."""
        with self._changed:
            chunk = self._out.get(task)
            if chunk is None or call > len(chunk.items) or chunk.is_batch != (call > 0):
                return None
            return chunk.first + max(call - 1, 0)

    def end_withdrawn(self, numbers: Iterable[int]) -> None:
        """Forget tasks that nodes have withdrawn."""
        with self._changed:
            for number in numbers:
                self._out.pop(number, None)
            self._changed.notify_all()

    def withdraw(self, calls: None, patience_s: float) -> list[int]:
        """Hand nothing over any more, and return the tasks that nodes have."""
        with self._changed:
            self._is_ended = True
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._handing is None, patience_s)
            return sorted(self._out)

    def learn(self, answers: int, out: int, now_s: float) -> None:
        """Learn how often answers come; of batches, nodes say themselves how long their calls took."""
        if not self._in_batches:
            with self._changed:
                self._window.answered(answers, out, now_s)
                self._changed.notify_all()

    @property
    def out(self) -> int:
        """How many tasks nodes have."""
        with self._changed:
            return len(self._out)

    def fail(self, error: BaseException) -> None:
        """Have the next value be this error."""
        with self._changed:
            lost = AgentLost(str(error), getattr(error, "code", "farm-over"), getattr(error, "hint", None))
            lost.__cause__ = error
            self._error, self._is_ended = lost, True
            self._out.clear()
            self._again.clear()
            self._handing = None
            self._changed.notify_all()

    @property
    def has_open(self) -> bool:
        """Whether a call has no answer, those excepted that are not wanted any more."""
        return not self._is_ended and bool(self._drawn or self._again or self._out or self._awaited)

    # Taking values.

    def take(self, until: float | None) -> Piece | None:
        """Return the next values, each once; None after the last.

        Raises
        ------
        TimeoutError
            When there is none by `until`, s on the monotonic clock.
        BaseException
            What the iterables raised, or what ended the run.
        """
        with self._changed:
            left = None if until is None else max(until - time.monotonic(), 0.0)
            if not in_steps(partial(self._changed.wait_for, self._is_there), left):
                raise TimeoutError
            at = self._taken if self._ordered else next(iter(self._pieces), None)
            piece = self._pieces.pop(at, None) if at is not None else None
            if piece is not None:
                self._untaken_bytes -= self._bytes.pop(at, 0) if at is not None else 0
                self._taken += 1 if type(piece) is Raised else len(piece)
                self._may_draw = self._taken + self._nodes * max(UNTAKEN_PER_NODE, 8 * self._window.batch)
                self._changed.notify_all()
            elif self._error is not None:
                raise self._error
            return piece

    def _can_be_taken(self) -> bool:
        return self._taken in self._pieces if self._ordered else bool(self._pieces)

    def _is_there(self) -> bool:
        return self._can_be_taken() or self._is_ended or (self._is_drawn and not self.has_open)


class _Ended(Exception):  # noqa: N818 (no error: it ends the drawing)
    """Nothing more is to be drawn."""


def _direct(iterables: tuple[Iterable[Any], ...]) -> Iterator[Any] | None:
    """Return the items where drawing them neither waits nor fails and they need not be pickled one by one."""
    for one in iterables:
        if type(one) is not range and not (type(one) in {list, tuple} and ATOMS.issuperset(map(type, one))):
            return None
    return iter(iterables[0]) if len(iterables) == 1 else zip(*iterables, strict=False)


def _of_one(item: Any) -> Any:
    return [(item,), {}]


def _of_several(items: tuple[Any, ...]) -> Any:
    return items if ATOMS.issuperset(map(type, items)) else [items, {}]


def _count_together(items: list[Any]) -> int:
    """Return how many of the items may go together: no more than fits; what waits for its arguments goes alone."""
    held_bytes = 0
    for count, item in enumerate(items):
        if type(item) is _Awaited:
            return max(count, 1)
        for one in item if type(item) is tuple else (item,):
            held_bytes += len(one) if isinstance(one, (str, bytes, _Pickled)) else 0
        if held_bytes > MOST_BYTES and count:
            return count
    return len(items)


def _as_sent(items: list[Any], are_numbers: bool) -> tuple[batches.Form, list[Any]]:
    """Return a form that fits all items, and the items in it."""
    if are_numbers:
        return "atoms", items
    kinds = set(map(type, items))
    if kinds <= ATOMS:
        return "atoms", items
    if kinds == {tuple}:
        return "tuples", items
    return "pickles", [_pickle(item) for item in items]


def _pickle(item: Any) -> bytes:
    if type(item) is _Pickled:
        return item.data
    return pickle.dumps((item if type(item) is tuple else (item,), {}), pickle.HIGHEST_PROTOCOL)


def length(iterables: tuple[Iterable[Any], ...]) -> int | None:
    """Return how many calls there will be, where all iterables have a length."""
    lengths = [len(one) for one in iterables if isinstance(one, Sized)]
    return min(lengths) if len(lengths) == len(iterables) else None
