"""Batches: each call has its own outcome, one after the other, and what is given back was not begun."""

import pickle
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.run import batches, plain_data
from crosswind.run.batches import Batch, Overdue, outcomes_of
from crosswind.run.calls import Performer, called, outcome


def batch_of(function, items, form="atoms"):
    return Batch(function, form, items, pickle.dumps, lambda error: b"\xff" + repr(error).encode())


def outcomes(data):
    found, given_back, _ = outcomes_of(data, pickle.loads)
    return [pickle.loads(one[0]) if type(one) is tuple and len(one) == 1 else one for one in found], given_back


def test_values_come_in_the_order_of_the_items_and_a_mutable_one_as_it_was_after_its_call():
    seen = []

    def remember(item):
        seen.append(item)
        return seen

    assert outcomes(batch_of(remember, [1, "a", None]).run()) == ([[1], [1, "a"], [1, "a", None]], 0)
    assert outcomes(batch_of(divmod, [(7, 2), (9, 4)], "tuples").run()) == ([(3, 1), (2, 1)], 0)
    pickles = [pickle.dumps(((2,), {"exp": 3})), pickle.dumps(((2, 4), {}))]
    assert outcomes(batch_of(pow, pickles, "pickles").run()) == ([8, 16], 0)


@pytest.mark.parametrize("error", [ValueError, StopIteration, IndexError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_a_call_raises_is_its_outcome_and_the_others_go_on(error):
    def picky(item):
        if item % 3 == 2:
            raise error(item)
        return item

    found, _ = outcomes(batch_of(picky, range(6)).run())
    assert [one if isinstance(one, int) else type(one) for one in found] == [0, 1, tuple, 3, 4, tuple]
    assert all(error.__name__.encode() in one[0] for one in (found[2], found[5]))


def test_a_batch_ends_with_the_call_whose_values_are_too_large():
    found, given_back = outcomes(batch_of(lambda size: b"x" * size, [10, 10, batches.MOST_BYTES, 10, 10]).run())
    assert ([len(one) for one in found], given_back) == ([10, 10, batches.MOST_BYTES], 2)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 400), st.integers(0, 400), st.booleans())
def test_a_call_is_done_or_given_back_and_never_both(count, at, raises):
    """`give_back` is called from within a call, where another thread could call it too."""
    begun, early = [], []

    def work(item):
        begun.append(item)
        if item == at:
            thread = threading.Thread(target=batch.give_back, args=(early.append,))
            thread.start()
            thread.join()
        if raises:
            raise ValueError
        return item

    batch = batch_of(work, range(count))
    found, given_back = outcomes(batch.run())
    assert begun == list(range(len(found)))
    assert len(found) + given_back == count
    assert len(found) == (at + 1 if at < count else count)
    if at < count:
        first, same = outcomes(early[0])
        assert (len(first), same) == (at, given_back)


def test_a_batch_that_takes_too_long_says_what_is_done_and_gives_back_the_rest():
    early, overdue, go_on = [], Overdue(), threading.Event()

    def work(item):
        if item == 3:
            go_on.wait(30)
        return item

    def listen(data):
        early.append(data)
        go_on.set()

    for _ in range(3):  # one after the other, and after a pause
        found, given_back = outcomes(overdue.run(batch_of(lambda item: item, range(50)), lambda data: None))
        assert len(found) + given_back == 50  # none is given back, unless this host stands still for 50 ms
        go_on.clear()
        early.clear()
        found, given_back = outcomes(overdue.run(batch_of(work, range(10)), listen))
        assert found == list(range(10 - given_back))
        assert given_back >= 6
        first, same = outcomes(early[0])
        assert (first, same) == (found[: len(first)], given_back)
        time.sleep(0.03)


def test_no_call_is_lost_or_done_twice_when_the_rest_is_taken_away_at_any_moment():
    for _ in range(100):
        early, begun = [], []
        batch = batch_of(begun.append, range(20_000))
        thief = threading.Thread(target=batch.give_back, args=(early.append,))
        thief.start()
        found, given_back = outcomes(batch.run())
        thief.join()
        assert begun == list(range(len(found)))
        assert len(found) + given_back == 20_000


@pytest.mark.parametrize(
    "data", [(), ([], -1, 0.0), ([], 0, -1.0), ((), 0, 0.0), ([], 0, "1"), ([], True, 0.0), 5, None]
)
def test_what_is_said_of_a_batch_must_have_its_form(data):
    with pytest.raises(ValueError, match="damaged"):
        outcomes_of(pickle.dumps(data), pickle.loads)


def test_a_node_that_must_not_run_code_sends_plain_data():
    function = pickle.dumps(divmod)
    data = Performer(plain=True)(called((function, "tuples", [(7, 2), (1, 0), (9, 4)]))).data
    found, _, _ = outcomes_of(data, plain_data.loads)
    assert outcome(found[0][0], True, "a", plain=True) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        outcome(found[1][0], False, "a", plain=True)
    data = Performer(plain=False)(called((pickle.dumps(int), "atoms", ["1", "x"]))).data
    found, _, _ = outcomes_of(data, pickle.loads)
    assert found[0] == 1
    with pytest.raises(ValueError, match="invalid literal"):
        outcome(found[1][0], False, "a", plain=False)


@pytest.mark.parametrize("clock", [lambda: 0.0, lambda: "noon"])
def test_a_function_that_replaces_the_clock_disturbs_no_batch(monkeypatch, clock):
    def freeze(item):
        monkeypatch.setattr(time, "perf_counter", clock)
        monkeypatch.setattr(time, "sleep", clock)
        return item

    assert outcomes_of(batch_of(freeze, [1, 2, 3]).run(), pickle.loads)[:2] == ([1, 2, 3], 0)
