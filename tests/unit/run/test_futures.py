"""Calls whose arguments are futures: they wait, get the results, and fail as those fail. (tests/live has Dask's.)"""

import asyncio
import threading
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor

import pytest
from in_process import InProcess

import crosswind
from crosswind import AgentLost, DescriptionError
from crosswind.run import call_run
from crosswind.run.this_machine import here


@pytest.fixture(autouse=True)
def agents(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", InProcess)
    InProcess.lost_after = None


def test_a_call_gets_the_results_of_futures_among_its_arguments():
    other = Future()
    with crosswind.Farm() as farm:
        eight = farm.submit(pow, 2, 3)
        waits = farm.submit(pow, eight, exp=farm.submit(abs, -2), mod=other)
        assert not waits.done()
        other.set_result(60)
        assert waits.result(timeout=30) == 4


def test_items_of_map_may_be_futures():
    with ThreadPoolExecutor(2) as pool:
        assert list(crosswind.map(abs, [pool.submit(int, "-3"), -4])) == [3, 4]


def test_a_call_fails_as_its_argument_fails_and_is_cancelled_as_it_is():
    cancelled = Future()
    cancelled.cancel()
    cancelled.set_running_or_notify_cancel()
    with crosswind.Farm() as farm:
        with pytest.raises(ValueError, match="invalid literal"):
            farm.submit(abs, farm.submit(int, "x")).result(timeout=30)
        with pytest.raises(CancelledError):
            farm.submit(abs, cancelled).result(timeout=30)
        assert farm.submit(abs, -1).result(timeout=30) == 1


def test_shutdown_waits_for_calls_that_wait_for_their_arguments():
    argument, farm = Future(), crosswind.Farm()
    waits = farm.submit(abs, argument)
    ending = threading.Thread(target=farm.shutdown)
    ending.start()
    ending.join(0.05)
    assert ending.is_alive()
    argument.set_result(-5)
    ending.join(30)
    assert waits.result(timeout=0) == 5


def test_after_an_interrupt_calls_that_wait_for_their_arguments_are_cancelled():
    argument, farm = Future(), crosswind.Farm()
    waits = farm.submit(abs, argument)
    farm.shutdown(cancel_futures=True)
    assert waits.cancelled()
    argument.set_result(1)  # comes too late, and disturbs nothing


def test_calls_that_wait_for_their_arguments_fail_when_no_agent_is_left():
    InProcess.lost_after = 0
    farm, argument = crosswind.Farm(), Future()
    waits = farm.submit(abs, argument)
    farm.submit(abs, 1)
    farm.submit(abs, 2)
    with pytest.raises(AgentLost):
        waits.result(timeout=30)
    argument.set_result(1)
    farm.shutdown()


def test_futures_within_containers_are_waited_for():
    first, second = Future(), Future()
    with crosswind.Farm() as farm:
        total = farm.submit(sum, [first, second, 3])
        nested = farm.submit(repr, {"a": [(first, {"b": second})]})
        kept = [1, [2]]
        same = farm.submit(lambda given: given, kept)
        first.set_result(1)
        second.set_result(2)
        assert total.result(timeout=30) == 6
        assert nested.result(timeout=30) == "{'a': [(1, {'b': 2})]}"
        assert same.result(timeout=30) == kept
        assert farm.submit(sum, [farm.submit(abs, -number) for number in range(5)]).result(timeout=30) == 10
        third = Future()
        fails = farm.submit(sum, [third])
        third.set_exception(KeyError("third"))
        with pytest.raises(KeyError, match="third"):
            fails.result(timeout=30)


@pytest.mark.parametrize("name", ["key", "pure", "workers", "resources", "priority"])
def test_options_of_dask_are_refused_with_the_alternative_unless_the_function_takes_them(name):
    def takes(**options):
        return options

    with crosswind.Farm() as farm:
        with pytest.raises(DescriptionError, match=f"{name} is an option of Dask's submit") as refused:
            farm.submit(lambda number: number, 1, **{name: "x"})
        assert refused.value.hint
        assert farm.submit(takes, **{name: "x"}).result(timeout=30) == {name: "x"}
        assert farm.submit(sorted, [1, -2], key=abs).result(timeout=30) == [1, -2]


@pytest.mark.parametrize("where", ["closure", "attribute"])
def test_a_future_that_cannot_be_found_is_refused_with_what_to_do(where):
    class Holder:
        pass

    future, holder = Future(), Holder()
    holder.future = future
    call = {"closure": (lambda: [future.result()],), "attribute": (id, holder)}[where]
    with crosswind.Farm() as farm:
        with pytest.raises(DescriptionError, match="holds a future in an attribute or in its function") as refused:
            farm.submit(*call)
        assert "result()" in refused.value.hint
        assert farm.submit(abs, -1).result(timeout=30) == 1


def test_a_future_of_asyncio_is_refused_with_what_to_do():
    loop = asyncio.new_event_loop()
    future = loop.create_future()
    with crosswind.Farm() as farm:
        with pytest.raises(DescriptionError, match="argument 2 is an asyncio future") as refused:
            farm.submit(pow, 2, future)
        with pytest.raises(DescriptionError, match="key is an asyncio future"):
            farm.submit(max, 2, key=future)
    assert "await it" in refused.value.hint
    loop.close()


def test_an_item_that_is_a_future_names_no_file(tmp_path):
    done = Future()
    done.set_result(-1)
    with pytest.raises(DescriptionError, match="an item is a future, and out is given"):
        list(crosswind.map(abs, [done], out=tmp_path))
    assert list(crosswind.map(abs, [done], out=tmp_path, key=lambda item: "one")) == [1]


def test_dask_computes_on_a_farm():
    dask = pytest.importorskip("dask")
    with crosswind.Farm(here(3)) as farm:
        total = dask.delayed(sum)([dask.delayed(pow)(2, power) for power in range(10)])
        assert dask.compute(total, total, scheduler=farm) == (1023, 1023)
        assert farm._max_workers == 4 * 3
