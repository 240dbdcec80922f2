"""Objects that are called: each call gets a copy of what was submitted; functions and classes stay."""

from __future__ import annotations

import functools
import pickle
import threading
from concurrent.futures import Future

import numpy as np
import pytest

from crosswind.errors import DescriptionError
from crosswind.run import calls, copies
from crosswind.run.copies import MOST_BYTES, Copied, is_fixed
from crosswind.run.futures import pickled_function
from crosswind.run.pieces import Buffers, joined, loads

SCRIPT = """
loaded = []

class Counter:
    made = 0
    def __init__(self):
        self.count = 0
    def add(self, number):
        type(self).made += 1
        self.count += number
        return self.count
    def __call__(self, number):
        return self.add(number)
    def of_class(self, number):
        return type(self).made

class Double(Counter):
    def add(self, number):
        return 2 * super().add(number)

def loads_once(items, number):
    global loaded
    loaded.append(number)
    items.append(number)
    return len(items), len(loaded)
"""


@pytest.fixture
def script(monkeypatch):
    """Names as if they were of `__main__`, on a node that has read none of them."""
    monkeypatch.setattr(copies, "function_of", calls._Functions())
    scope = {"__name__": "__main__"}
    exec(SCRIPT, scope)
    return scope


def sent(function):
    """What a node makes of a callable."""
    return pickle.loads(pickled_function(function))


@pytest.mark.parametrize("kind", ["Counter", "Double"])
@pytest.mark.parametrize("way", ["method", "instance", "partial", "list of one"])
def test_each_call_has_the_object_as_it_was_submitted(script, kind, way):
    counter = script[kind]()
    ways = {
        "method": counter.add,
        "instance": counter,
        "partial": functools.partial(counter.add),
        "list of one": functools.partial(lambda counters, number: counters[0].add(number), [counter]),
    }
    counter.count = 5
    called = sent(ways[way])
    counter.count = 100
    times = 2 if kind == "Double" else 1
    assert [called(1), called(2), called(1)] == [6 * times, 7 * times, 6 * times]


def test_functions_and_classes_are_read_once(script):
    called = sent(script["Counter"]().of_class)
    added = sent(script["Counter"]().add)
    assert [called(1), added(1), added(1), called(1)] == [0, 1, 1, 2]
    first = functools.partial(script["loads_once"], [])
    assert [sent(first)(1), sent(first)(1)] == [(1, 1), (1, 2)]
    other = functools.partial(script["loads_once"], [0])
    assert sent(other)(1) == (2, 3)


def test_a_closure_in_an_object_is_of_the_copy(script):
    counter = script["Counter"]()
    counter.plus = lambda number: counter.add(number) + 0
    counter.both = lambda: (counter.plus(1), counter.count)
    called = sent(functools.partial(lambda one: (one.plus(1), one.count, one.both()), counter))
    assert [called(), called()] == [(1, 1, (2, 2))] * 2
    assert counter.count == 0


def test_a_large_object_is_shared():
    table = dict.fromkeys(range(MOST_BYTES), "a")
    called = sent(functools.partial(dict.setdefault, table, "new"))
    assert not isinstance(called, Copied)
    array = np.zeros(MOST_BYTES)
    buffers = Buffers()
    head = pickled_function(functools.partial(np.add, array), buffers.stays)
    assert [buffer.nbytes for buffer in buffers.out] == [array.nbytes]  # not in the pickle, as any function's
    assert float(loads(joined(head, buffers.out))(1)[0]) == 1.0


@pytest.mark.parametrize("function", [np.sin, np.add, str.upper, int.from_bytes, functools.lru_cache, Copied])
def test_what_is_found_by_its_name_is_no_copy(function):
    assert sent(function) is function or sent(function) == function
    assert not isinstance(sent(function), Copied)


@pytest.mark.parametrize(
    "value",
    [
        abs,
        lambda: 1,
        dict,
        "a".join,
        dict.fromkeys,
        functools.partial(pow, 2),
        functools.partial(pow, mod=7, exp=(1, "a", None)),
        functools.partial(functools.partial(pow, 2), b"a"),
    ],
)
def test_what_no_call_can_change(value):
    assert is_fixed(value)
    assert not isinstance(sent(value), Copied)


@pytest.mark.parametrize(
    "value", [[].append, functools.partial(len, []), functools.partial(len, ([],)), {}.get, np.zeros(2).sum]
)
def test_what_a_call_may_change(value):
    assert not is_fixed(value)
    assert isinstance(sent(value), Copied)


def test_a_partial_with_attributes_may_change():
    noted = functools.partial(pow, 2)
    noted.seen = []
    assert isinstance(sent(noted), Copied)


def test_a_copy_can_be_sent_on():
    items = sent([].append)
    assert isinstance(sent(items), Copied)
    assert sent(items)(1) is None


@pytest.mark.parametrize("size", [1, MOST_BYTES])
def test_a_future_in_an_object_is_refused(size):
    with pytest.raises(DescriptionError, match="holds a future"):
        pickled_function(functools.partial(len, [Future(), "a" * size]))


def test_what_cannot_be_pickled_says_so():
    with pytest.raises(TypeError, match="lock"):
        pickled_function(functools.partial(len, [threading.Lock()]))


def test_a_copy_in_a_copy(script):
    inner = sent(functools.partial(script["loads_once"], []))
    outer = functools.partial(lambda ones, number: [one(number) for one in ones], [inner, inner])
    assert sent(outer)(7) == [(1, 1), (1, 2)]


def test_threads_read_their_own(script):
    counters = [sent(script["Counter"]().add), sent(script["Double"]().add)]
    found: list[set[int]] = [set(), set()]

    def count(place):
        for _ in range(300):
            found[place].add(counters[place](1))

    threads = [threading.Thread(target=count, args=(place,)) for place in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [{1}, {2}]
