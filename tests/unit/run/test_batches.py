"""Batches: each call has its own outcome, one after the other, and what is given back was not begun."""

import io
import pickle
import threading
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.run import batches, plain_data
from crosswind.run.batches import Batch, Overdue, outcomes_of
from crosswind.run.calls import Performer, called, outcome
from crosswind.run.task_output import TaskOutput


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


class Prints:
    """Keeps the numbers of the calls that print."""

    shows_prints = True

    def __init__(self, *, has_shown=False):
        self.has_shown_prints, self.calls = has_shown, []

    def begin_call(self, call):
        self.calls.append(call)

    def __call__(self, outcomes):
        pass


@pytest.fixture
def silent(monkeypatch):
    """Calls of this process that have been told apart: none at first."""
    monkeypatch.setattr(Batch, "_silent_calls", 0)


@pytest.mark.parametrize("error", [None, ValueError, StopIteration, GeneratorExit])
def test_each_call_is_told_apart_once_any_has_printed(silent, error):
    def picky(item):
        if error and item % 3 == 1:
            raise error(item)
        return item, prints.calls[-1]

    prints = Prints(has_shown=True)
    found, _ = outcomes(batch_of(picky, range(300)).run(prints))
    assert [one[1] for one in found if type(one[0]) is int] == [
        number + 1 for number in range(300) if not (error and number % 3 == 1)
    ]
    assert len(found) == 300


def test_as_long_as_none_has_printed_a_hundred_calls_are_told_apart_and_then_none(silent):
    for size in (30, 60, 50, 200):
        prints = Prints()
        assert len(outcomes(batch_of(abs, range(size)).run(prints))[0]) == size
        assert prints.calls == {30: [*range(1, 32)], 60: [*range(1, 62)], 50: [*range(1, 11), 0], 200: []}[size]


def test_a_stream_of_python_says_which_call_uses_it_and_that_its_line_is_over(silent, monkeypatch):
    monkeypatch.setattr(Batch, "_silent_calls", 1_000)
    written = io.BytesIO()
    stream = TaskOutput(written, encoding="utf-8", newline="\n", write_through=True)
    seen = []

    def work(item):
        if item % 50 == 7:
            stream.write("begun ")
            seen.append((item + 1, prints.calls[-1]))
            stream.write(f"{item}\n")
            assert prints.calls[-1] == 0
        return item

    prints, overdue = Prints(), Overdue()
    monkeypatch.setattr(batches, "OVERDUE", overdue)
    assert outcomes(overdue.run(batch_of(work, range(200)), prints))[0] == [*range(200)]
    assert seen == [(item, item) for item in (8, 58, 108, 158)]
    assert written.getvalue().decode() == "".join(f"begun {item}\n" for item in (7, 57, 107, 157))
    stream.write("outside\n")
    with pytest.raises(TypeError):
        stream.write(5)
    assert prints.calls[-1] == 0


@pytest.mark.parametrize("clock", [lambda: 0.0, lambda: "noon"])
def test_a_function_that_replaces_the_clock_disturbs_no_batch(monkeypatch, clock):
    def freeze(item):
        monkeypatch.setattr(time, "perf_counter", clock)
        monkeypatch.setattr(time, "sleep", clock)
        return item

    assert outcomes_of(batch_of(freeze, [1, 2, 3]).run(), pickle.loads)[:2] == ([1, 2, 3], 0)
