"""Calls on a node: exceptions of any make keep their type and cost no other call anything; known functions are few."""

import pickle
import sys

import cloudpickle
import pytest

from crosswind.run import calls, functions
from crosswind.run.batches import outcomes_of
from crosswind.run.calls import Performer, outcome
from crosswind.run.functions import Functions


class SaysNothing(Exception):
    def __str__(self):
        raise ValueError("no text")

    __repr__ = __str__


class ExitsWhenShown(Exception):
    def __str__(self):
        raise SystemExit(3)


class ExitsWhenPickled(Exception):
    def __reduce__(self):
        raise SystemExit(4)


class IsInterruptedWhenPickled(Exception):
    def __reduce__(self):
        raise KeyboardInterrupt


class ExitsWhenRead(Exception):
    def __reduce__(self):
        return sys.exit, (5,)


class IsInterruptedWhenCaused(Exception):
    @property
    def __cause__(self):
        raise KeyboardInterrupt


ODD = [SaysNothing, ExitsWhenShown, ExitsWhenPickled, IsInterruptedWhenPickled, ExitsWhenRead, IsInterruptedWhenCaused]


class Picky:
    """Raises at one item, and counts its calls."""

    def __init__(self, kind):
        self.kind, self.calls = kind, 0

    def __call__(self, item):
        self.calls += 1
        if item == 3:
            raise self.kind
        return item


@pytest.mark.parametrize("plain", [False, True])
@pytest.mark.parametrize("kind", ODD)
def test_an_exception_of_any_make_is_the_outcome_of_its_call_alone(kind, plain, monkeypatch):
    picky = Picky(kind)
    monkeypatch.setattr(calls, "function_of", lambda pickled: picky)
    done = Performer(plain=plain, function=b"")(calls.called(("atoms", list(range(8)))))
    assert not done.is_failure
    found, given_back, _ = outcomes_of(done.data, calls.loads_from(plain=plain))
    assert (found[:3], found[4:], given_back, picky.calls) == ([0, 1, 2], [4, 5, 6, 7], 0, 8)
    with pytest.raises(calls.CallError if plain else kind):
        outcome(found[3][0], False, "n1", plain=plain)


def test_functions_that_are_known_are_bounded_by_their_number_and_their_bytes(monkeypatch):
    read = []
    monkeypatch.setattr(calls.pickle, "loads", lambda data: read.append(data) or len(read))
    known = calls._Functions()
    assert [known(b"a"), known(b"b"), known(b"a")] == [1, 2, 1]
    for number in range(100):
        known(b"%d" % number)
    assert len(known._known) == 64
    monkeypatch.setattr(calls, "MOST_KNOWN_BYTES", 1_000)
    for number in range(10):
        known(b"%d" % number + bytes(400))
    assert (len(known._known), known._bytes) == (2, 802)
    known(bytes(5_000))
    assert (len(known._known), known._bytes) == (1, 5_000)


def test_functions_that_may_be_sent_again_are_bounded_by_their_bytes(monkeypatch):
    monkeypatch.setattr(functions, "MOST_HELD_BYTES", 5_000)
    sent = Functions(cloudpickle.dumps)

    def holds(data):
        return lambda: data

    for number in range(20):
        function = holds(bytes([number]) * 1_500)
        assert pickle.loads(sent.bytes_of(function))() == function()
        assert sent.bytes_of(function) is sent.bytes_of(function)
        assert sum(len(known.data) for known in sent._known.values()) <= 5_000
