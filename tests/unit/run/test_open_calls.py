"""The calls of a farm: futures as any other, and batches of which each call has its own outcome."""

import asyncio
import concurrent.futures
import pickle
import random
import threading
from concurrent.futures import CancelledError, Future

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crosswind.errors import AgentLost
from crosswind.run import open_calls as open_calls_
from crosswind.run.calls import CallError, called
from crosswind.run.futures import pickled_arguments
from crosswind.run.local_values import MARK
from crosswind.run.open_calls import Call, OpenCalls
from crosswind.run.window import Window


def call_of(number=0, function=abs):
    return Call(lambda calls: None, pickle.dumps(function), pickled_arguments((number,), {}))


def open_calls(count=0, function=abs, **window):
    calls = OpenCalls(Window(2, **window), plain=False)
    made = [call_of(number, function) for number in range(count)]
    for call in made:
        calls.add(call)
    return calls, made


def performed(calls, due):
    return calls.performer(due.data)


def test_a_call_has_all_that_a_future_has():
    """It makes them itself: a Python whose futures hold something else must be seen here."""
    own = {"_withdraw", "function", "arguments", "order", "number", "withdrawn", "goes_alone"}
    assert set(vars(call_of())) == set(vars(Future())) | own
    assert {name for name in vars(Call) if not name.startswith("__")} >= {"result", "exception", "cancel"}


@pytest.mark.parametrize("what", ["result", "exception"])
def test_a_call_is_waited_for_from_many_threads_and_as_long_as_asked(what):
    call = call_of()
    with pytest.raises(TimeoutError):
        getattr(call, what)(timeout=0.01)
    found = []
    threads = [threading.Thread(target=lambda: found.append(getattr(call, what)(30))) for _ in range(8)]
    for thread in threads:
        thread.start()
    call.set_result(5)
    for thread in threads:
        thread.join(30)
    assert found == [5 if what == "result" else None] * 8
    assert getattr(call, what)(0) == found[0]


def test_calls_are_waited_for_as_futures_of_any_executor_are():
    calls, others = [call_of() for _ in range(20)], [Future() for _ in range(20)]
    mixed = [one for both in zip(calls, others, strict=True) for one in both]

    def end():
        for one in mixed:
            one.set_result(1)

    thread = threading.Thread(target=end)
    waiting = [threading.Thread(target=concurrent.futures.wait, args=(mixed,)) for _ in range(4)]
    for one in (*waiting, thread):
        one.start()
    assert sum(one.result() for one in concurrent.futures.as_completed(mixed, timeout=30)) == 40
    for one in (*waiting, thread):
        one.join(30)
    assert concurrent.futures.wait(mixed, timeout=0).not_done == set()

    async def waited():
        call = call_of()
        threading.Timer(0.01, call.set_exception, [KeyError("x")]).start()
        with pytest.raises(KeyError):
            await asyncio.wrap_future(call)

    asyncio.run(waited())


def test_a_cancelled_call_raises_that_it_is():
    call = call_of()
    call.end_cancelled()
    for what in (call.result, call.exception):
        with pytest.raises(CancelledError):
            what(1)


def halved(number):
    if number % 7 == 3:
        raise ValueError(number)
    return [number / 2]


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 300), st.integers(0, 10**6))
def test_each_call_has_one_outcome_whatever_batches_give_back_or_are_lost(count, seed):
    draw = random.Random(seed)
    calls, made = open_calls(count, halved, begin=30)
    calls.close()
    lost = set()
    while (due := calls.next()) is not None:
        what = draw.choice(["done", "back", "lost"]) if due.is_batch else "done"
        if what == "lost":
            lost.update(pickle.loads(one)[0][0] for one in pickle.loads(due.data)[2])
            calls.answer(due.number, b"lost", False, "a")
        elif what == "done":
            done = performed(calls, due)
            calls.answer(due.number, done.data, not done.is_failure, "a")
        else:
            function, form, items = pickle.loads(due.data)
            cut = draw.randrange(1, len(items) + 1)
            outcomes, _, seconds = pickle.loads(calls.performer(called((function, form, items[:cut]))).data)
            said = draw.randrange(min(cut - 1, 1), cut)
            calls.partial(due.number, pickle.dumps((outcomes[:said], len(items) - cut, 0.0)))
            assert made[pickle.loads(items[said])[0][0]].running()
            calls.answer(due.number, pickle.dumps((outcomes, len(items) - cut, seconds)), True, "a")
    for number, call in enumerate(made):
        if number % 7 == 3:
            assert isinstance(call.exception(0), ValueError)
        else:
            assert call.result(0) == [number / 2]
        assert call.goes_alone == (number in lost)
        assert call.arguments is None
    assert calls.out == 0


def test_a_call_in_a_batch_that_waits_is_cancelled_and_the_others_go_on():
    calls, made = open_calls(6, begin=6, most=6)
    due = calls.next()
    assert due.is_batch
    threading.Thread(target=calls.next, daemon=True).start()
    assert calls.withdraw([made[2]], 5.0) == [due.number]
    calls.end_withdrawn([due.number])
    assert [call.cancelled() for call in made] == [False, False, True, False, False, False]


def test_a_call_that_could_not_be_withdrawn_goes_on_also_when_it_is_given_back():
    calls, made = open_calls(6, begin=6, most=6)
    due = calls.next()
    with calls._changed:
        calls._handing = None
    assert calls.withdraw([made[5]], 5.0) == [due.number]
    calls.keep([made[5]])  # the node had begun the batch
    function, form, items = pickle.loads(due.data)
    outcomes, _, seconds = pickle.loads(calls.performer(called((function, form, items[:3]))).data)
    calls.partial(due.number, pickle.dumps((outcomes[:2], 3, 0.0)))
    assert [call.done() for call in made] == [True, True, False, False, False, False]
    calls.withdraw(None, 5.0)
    assert [call.cancelled() for call in made] == [False, False, False, True, True, True]
    calls.answer(due.number, pickle.dumps((outcomes, 3, seconds)), True, "a")
    assert [call.result(0) for call in made[:3]] == [0, 1, 2]


def test_after_the_end_of_the_run_every_call_fails_with_what_ended_it():
    calls, made = open_calls(5, begin=2)
    calls.next()
    calls.fail(AgentLost("no agents are left", "all-lost"))
    assert {str(call.exception(0)) for call in made} == {"no agents are left"}
    with pytest.raises(AgentLost, match="the farm's run is over"):
        calls.add(call_of())


def test_what_is_no_outcome_of_a_batch_has_its_calls_go_alone():
    calls, made = open_calls(3, begin=3)
    due = calls.next()
    calls.partial(due.number, b"\x80nonsense")
    calls.answer(due.number, b"\x80nonsense", True, "a")
    for _ in range(3):
        alone = calls.next()
        assert not alone.is_batch
        calls.answer(alone.number, b"a text", False, "a")
    assert all(isinstance(call.exception(0), CallError) for call in made)


GONE = MARK + pickle.dumps((2**22 - 1, 3, "crosswind-value-0", 1, [], [], []))
"""Where a process kept a value that has ended."""


def local_calls(count):
    calls = OpenCalls(Window(2), plain=False, local=True)
    made = [call_of(number) for number in range(count)]
    for call in made:
        calls.add(call)
    return calls, made


def test_a_call_whose_value_is_gone_at_the_very_end_is_done_again():
    for _ in range(50):
        calls, [call] = local_calls(1)
        first = calls.next()
        calls.close()
        handed = []
        feeder = threading.Thread(target=lambda calls=calls, handed=handed: handed.append(calls.next()))
        feeder.start()
        calls.answer(first.number, GONE, True, "a")
        feeder.join(30)
        calls.answer(handed[0].number, performed(calls, handed[0]).data, True, "a")
        assert call.result(0) == 0
        assert not calls.has_open


def test_a_value_that_is_gone_twice_fails_its_call():
    calls, [call] = local_calls(1)
    for _ in range(2):
        calls.answer(calls.next().number, GONE, True, "a")
    with pytest.raises(CallError, match="a keeps a large value that cannot be read"):
        call.result(0)


@pytest.mark.parametrize("before", [True, False])
def test_a_call_that_runs_is_done_again_when_its_agent_is_lost_though_all_others_are_cancelled(before):
    calls, made = open_calls(6, begin=6, most=6)
    due = calls.next()
    calls.partial(due.number, pickle.dumps(([0], 3, 0.0)))
    assert [call.running() for call in made] == [False, True, False, False, False, False]
    with calls._changed:
        calls._handing = None
    if before:
        calls.withdraw(None, 1.0)
        calls.answer(due.number, b"lost", False, "a")
    else:
        calls.answer(due.number, b"lost", False, "a")
        calls.withdraw(None, 1.0)
    calls.close()
    again = calls.next()
    assert pickle.loads(pickle.loads(again.data)[1])[0] == (1,)
    calls.answer(again.number, performed(calls, again).data, True, "a")
    assert calls.next() is None
    assert [call.cancelled() for call in made] == [False, False, True, True, True, True]
    assert made[1].result(0) == 1
    assert not calls.has_open


def test_a_result_is_there_before_the_callbacks_of_its_call_have_run():
    call, go_on, seen = call_of(), threading.Event(), []
    call.add_done_callback(lambda _: go_on.wait(30))
    waiting = threading.Thread(target=lambda: seen.append(call.result(30)))
    waiting.start()
    ends = threading.Thread(target=call.set_result, args=(7,))
    ends.start()
    waiting.join(30)
    assert seen == [7]
    go_on.set()
    ends.join(30)
    for _ in range(100):
        with pytest.raises(TimeoutError):
            call_of().result(0)


def test_a_call_that_its_batch_gives_back_soon_is_cancelled(monkeypatch):
    monkeypatch.setattr(open_calls_, "_BACK_S", 30.0)  # however slow this host is
    calls, made = open_calls(4, begin=4, most=4)
    due = calls.next()
    with calls._changed:
        calls._handing = None
    calls.withdraw([made[2]], 1.0)
    gives_back = threading.Timer(0.05, calls.partial, [due.number, pickle.dumps(([0], 2, 0.0))])
    gives_back.start()
    calls.keep([made[2]])
    gives_back.join()
    assert [call.cancelled() for call in made] == [False, False, True, False]
    assert made[1].running()


def test_an_ended_call_holds_nothing_that_travelled():
    calls, made = open_calls(3)
    for call in made[:1]:
        due = calls.next()
        calls.answer(due.number, performed(calls, due).data, True, "a")
        assert call.result(0) == 0
    calls.withdraw(None, 1.0)
    assert all((call.function, call.arguments) == (b"", None) for call in made)
