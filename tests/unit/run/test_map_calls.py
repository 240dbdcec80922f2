"""The calls of a map against nodes in this process that do them, lose them, or give them back."""

import itertools
import pickle
import random
import threading
from concurrent.futures import Future

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.errors import AgentLost
from crosswind.run import batches, map_calls
from crosswind.run.call_run import Setting
from crosswind.run.calls import called
from crosswind.run.local_values import MARK, Keeper
from crosswind.run.map_calls import MapCalls, Raised


def calls_of(function, *iterables, ordered=True, chunksize=None, nodes=2, **setting):
    setting = {"plain": False, "local": False, "tries_once": True, "tells_each": False} | setting
    return MapCalls(function, iterables, ordered, chunksize, Setting(nodes, **setting))


class Nodes:
    """Threads that do what is handed over: what each task did, and what was lost, is drawn."""

    def __init__(self, calls, seed=0, lost=0.0, gives_back=0.0, count=2):
        self.calls, self.lost, self.gives_back, self.random = calls, lost, gives_back, random.Random(seed)
        self.tasks, self.handed = [], []
        self.threads = [threading.Thread(target=self.work, args=(f"n{at}",), daemon=True) for at in range(count)]
        self.lock = threading.Lock()
        for thread in self.threads:
            thread.start()

    def work(self, name):
        while True:
            with self.lock:  # a run has one thread that hands over
                due = self.calls.next()
            if due is None:
                return
            self.handed.append(due)
            if self.random.random() < self.lost:
                self.calls.answer(due.number, b"lost", not due.is_batch and self.gives_back > 1, name)
                continue
            call = pickle.loads(due.data)
            if due.is_batch and self.random.random() < self.gives_back:
                cut = self.random.randrange(1, len(call[1]) + 1)
                outcomes, _, seconds = pickle.loads(self.calls.performer(called((call[0], call[1][:cut]))).data)
                said = self.random.randrange(cut)
                rest = len(call[1]) - cut
                self.calls.partial(due.number, pickle.dumps((outcomes[:said], rest, 0.0)))
                self.calls.answer(due.number, pickle.dumps((outcomes, rest, seconds)), True, name)
                continue
            self.calls.answer(due.number, self.calls.performer(due.data).data, True, name)


def taken(calls, timeout_s=30.0):
    import time

    found = []
    while (piece := calls.take(time.monotonic() + timeout_s)) is not None:
        found += [type(piece.error)] if isinstance(piece, Raised) else piece
    return found


def halved(number):
    if number % 7 == 3:
        raise ValueError(number)
    return number / 2 if number % 5 else [number]


def of_halved(count):
    return [ValueError if n % 7 == 3 else n / 2 if n % 5 else [n] for n in range(count)]


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 600), st.integers(0, 10**6), st.floats(0, 0.3), st.floats(0, 0.9), st.booleans())
def test_every_item_has_one_outcome_whatever_batches_give_back_or_are_lost(count, seed, lost, gives_back, sized):
    items = range(count) if sized else iter(range(count))
    calls = calls_of(halved, items)
    nodes = Nodes(calls, seed, lost, gives_back)
    found = taken(calls)
    expected = of_halved(count)
    alone = [due for due in nodes.handed if not due.is_batch]
    if not lost:
        assert found == expected
    else:  # a call that is lost when it is alone fails, as a run of agents has it after five of them
        assert len(found) == count
        assert sum(a != b for a, b in zip(found, expected, strict=True)) <= len(alone)


def test_unordered_values_come_as_they_are_done_and_each_once():
    calls = calls_of(abs, range(5_000), ordered=False)
    Nodes(calls, gives_back=0.5)
    assert sorted(taken(calls)) == list(range(5_000))


def test_short_calls_travel_together_and_the_batches_grow():
    calls = calls_of(abs, itertools.count())
    nodes = Nodes(calls)
    found = []
    while len(found) < 200_000:
        found += calls.take(None)
    assert found == list(range(len(found)))
    calls.withdraw(None, 1.0)
    sizes = [len(pickle.loads(due.data)[1]) for due in nodes.handed]
    assert sizes[0] == 1
    assert max(sizes) >= 512
    assert len(sizes) < 2_000


def test_items_are_sent_as_they_were_when_they_were_drawn():
    def rows():
        row = [0]
        for number in range(50):
            row[0] = number
            yield row

    calls = calls_of(sum, rows())
    Nodes(calls)
    assert taken(calls) == list(range(50))


def test_an_item_that_waits_holds_up_none_that_was_drawn_before():
    go_on = threading.Event()

    def slow():
        yield from range(20)
        go_on.wait(30)
        yield 20

    calls = calls_of(abs, slow())
    Nodes(calls)
    found = []
    while len(found) < 20:
        found += calls.take(None)
    go_on.set()
    assert found + taken(calls) == list(range(21))


def test_futures_among_the_items_are_waited_for_and_fail_as_they_failed():
    good, bad = Future(), Future()
    calls = calls_of(abs, [1, good, -3, bad, 5])
    Nodes(calls)
    good.set_result(-2)
    bad.set_exception(KeyError("gone"))
    assert taken(calls) == [1, 2, 3, KeyError, 5]


def test_several_iterables_end_with_the_shortest_and_other_values_travel_too():
    calls = calls_of(lambda a, b: (a, b), [1, "a", [2], None], range(10))
    Nodes(calls)
    assert taken(calls) == [(1, 0), ("a", 1), ([2], 2), (None, 3)]


def test_what_the_items_raise_comes_after_the_values_before_it():
    def items():
        yield from range(5)
        raise OSError("no more")

    calls = calls_of(abs, items())
    Nodes(calls)
    found = []
    while len(found) < 5:
        found += calls.take(None)
    assert found == [0, 1, 2, 3, 4]
    with pytest.raises(OSError, match="no more"):
        calls.take(None)


def test_calls_that_may_be_tried_again_or_are_watched_travel_alone_as_calls():
    for setting in ({"tries_once": False}, {"tells_each": True}):
        calls = calls_of(halved, range(60), **setting)
        nodes = Nodes(calls)
        found = []
        while (piece := calls.take(None)) is not None:
            found += [type(piece.error)] if isinstance(piece, Raised) else piece
        assert len(nodes.handed) == 60
        assert not any(due.is_batch for due in nodes.handed)
        assert all(len(pickle.loads(due.data)) == 1 for due in nodes.handed)


def test_a_batch_with_too_much_in_it_is_cut():
    calls = calls_of(len, ["x" * 300_000] * 12, chunksize=12)
    nodes = Nodes(calls)
    assert taken(calls) == [300_000] * 12
    assert max(len(due.data) for due in nodes.handed) < 1_300_000


def test_after_the_end_of_the_run_the_values_that_came_are_there_and_then_the_error():
    calls = calls_of(abs, range(100))
    for _ in range(2):
        due = calls.next()
        calls.answer(due.number, calls.performer(due.data).data, True, "a")
    calls.fail(AgentLost("no agents are left", "all-lost"))
    assert calls.take(None) + calls.take(None) == list(range(9))
    with pytest.raises(AgentLost, match="no agents are left") as raised:
        calls.take(None)
    assert raised.value.code == "all-lost"


def test_bytes_that_are_no_outcome_fail_their_call_and_a_batch_of_them_goes_again():
    calls = calls_of(abs, iter(range(4)), chunksize=4)
    due = calls.next()
    calls.partial(due.number, b"damaged")
    calls.answer(due.number, b"damaged", True, "a")
    alone = [calls.next() for _ in range(4)]
    assert not any(one.is_batch for one in alone)
    calls.answer(alone[0].number, b"damaged", True, "a")
    for one in alone[1:]:
        calls.answer(one.number, calls.performer(one.data).data, True, "a")
    assert str(calls.take(None).error) == "a sent a message that is no outcome of a call"
    assert taken(calls) == [1, 2, 3]


@pytest.mark.parametrize("items", [[], [1], list(range(3_000)), tuple("ab" * 700), range(5_000), ["x" * 400_000] * 9])
def test_items_of_a_list_are_taken_without_a_thread_and_are_all_there(items):
    calls = calls_of(lambda item: item, items)
    Nodes(calls, gives_back=0.3)
    assert taken(calls) == list(items)
    assert calls._drawing is None
    calls = calls_of(lambda a, b: (a, b), items, list(range(len(items))))
    Nodes(calls)
    assert taken(calls) == list(zip(items, range(len(items)), strict=True))


def test_a_list_that_changes_while_it_is_mapped_is_taken_as_it_is():
    items = list(range(200))
    calls = calls_of(lambda item: item, items)
    first = calls.next()
    items[100:] = [(1, 2), [3], {"a": 4}]
    calls.answer(first.number, calls.performer(first.data).data, True, "a")
    Nodes(calls)
    assert taken(calls) == [*range(100), (1, 2), [3], {"a": 4}]


def test_items_are_not_taken_long_before_their_values_are():
    calls = calls_of(abs, range(10**9))
    Nodes(calls)
    assert calls.take(None) == [0]
    threading.Event().wait(0.3)
    assert calls._begun < 2 * 10 * 8 * 16_384
    calls.withdraw(None, 1.0)


def test_an_item_that_waits_for_a_future_holds_up_no_other():
    late = Future()
    calls = calls_of(abs, [late, -1, -2, -3], ordered=False)
    Nodes(calls)
    found = []
    while len(found) < 3:
        found += calls.take(None)
    assert sorted(found) == [1, 2, 3]
    late.set_result(-9)
    assert taken(calls) == [9]


def test_many_items_that_do_not_fit_together_take_no_longer_each():
    calls = calls_of(len, ["x" * 700_000] * 1_000, chunksize=1_000)
    Nodes(calls)
    assert taken(calls, 60.0) == [700_000] * 1_000


def test_no_more_calls_are_handed_over_while_too_many_bytes_are_not_taken(monkeypatch):
    monkeypatch.setattr(map_calls, "_UNTAKEN_BYTES_PER_NODE", 1_000_000)
    # In order, no limit holds until the next value is there, and a thread that is away may have that one.
    calls = calls_of(lambda item: b"x" * 200_000, range(400), ordered=False)
    Nodes(calls)
    found = calls.take(None)
    threading.Event().wait(0.3)
    most_of_a_batch = batches.MOST_BYTES + 200_000 + 1_000
    assert calls._untaken_bytes <= 2 * 1_000_000 + 2 * most_of_a_batch  # both nodes may have begun one before
    assert [len(value) for value in found + taken(calls)] == [200_000] * 400
    assert calls._untaken_bytes == 0


def test_a_time_that_is_none_is_no_outcome():
    calls = calls_of(abs, iter(range(2)), chunksize=2)
    due = calls.next()
    calls.answer(due.number, pickle.dumps(([0, 1], 0, float("inf"))), True, "a")
    Nodes(calls)
    assert taken(calls) == [0, 1]


@pytest.mark.parametrize("tries_once", [True, False])
def test_a_node_that_must_not_run_code_here_cannot_claim_to_keep_a_value(tries_once, tmp_path):
    class Code:
        def __reduce__(self):
            return open, (str(tmp_path / "ran"), "w")

    evil = MARK + pickle.dumps(Code())
    calls = calls_of(abs, [1, 2], chunksize=2, plain=True, tries_once=tries_once)
    while (due := calls.next()) is not None:
        calls.partial(due.number, evil)
        calls.partial(due.number, pickle.dumps(([(evil,)], 0, 0.0)))
        calls.answer(due.number, evil, True, "leaf")
    assert all(issubclass(one, Exception) for one in taken(calls))
    assert not (tmp_path / "ran").exists()


def test_kept_values_count_among_the_bytes_that_are_not_taken():
    keeper = Keeper()
    calls = calls_of(abs, [1, 2], chunksize=2, local=True)
    due = calls.next()
    places = [(keeper.pickled(b"x" * 3_000_000),) for _ in range(2)]
    calls.answer(due.number, pickle.dumps((places, 0, 0.01)), True, "a")
    assert calls._untaken_bytes > 6_000_000
    assert [len(value) for value in calls.take(None)] == [3_000_000] * 2
    assert calls._untaken_bytes == 0
