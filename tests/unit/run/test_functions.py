"""A function travels as it is when it is submitted: what it closes over, its defaults and the globals that it uses."""

from __future__ import annotations

import pickle
import sys
from concurrent.futures import CancelledError
from functools import partial

import cloudpickle
import numpy as np
import pytest
from in_process import InProcess

import crosswind
from crosswind.run import agent, backoff, call_run
from crosswind.run.functions import Functions, slots_of
from crosswind.run.futures import pickled_function
from crosswind.run.local_values import Shared, value_at
from crosswind.run.pieces import loads
from crosswind.run.process_memory import GoneError

LIMIT = 3
SEEN = [1]


@pytest.fixture
def functions():
    pickled = []

    def dumps(value, **options):
        pickled.append(value)
        return cloudpickle.dumps(value, **options)

    found = Functions(dumps)
    found.pickled = pickled
    return found


def made(body, **names):
    """A function as if it were of `__main__`, with globals of its own."""
    scope = {"__name__": "__main__", **names}
    exec(body, scope)
    return scope["f"]


def called(data, *args):
    return pickle.loads(data)(*args)


def test_a_closure_is_pickled_again_when_it_holds_something_else(functions):
    held = 1

    def f():
        return held

    f.__module__ = "__main__"
    first = functions.bytes_of(f)
    assert functions.bytes_of(f) is first
    held = 2
    assert called(functions.bytes_of(f)) == 2


def test_what_can_change_unseen_is_pickled_each_time(functions):
    f = made("def f(): return len(seen)", seen=[1])
    assert called(functions.bytes_of(f)) == 1
    f.__globals__["seen"].append(2)
    assert called(functions.bytes_of(f)) == 2


def test_globals_and_defaults_count_also_of_functions_that_are_called(functions):
    f = made("def g(): return limit\ndef f(x=1): return g() + x", limit=10)
    assert called(functions.bytes_of(f)) == 11
    assert len(functions.pickled) == 1
    functions.bytes_of(f)
    assert len(functions.pickled) == 1
    f.__globals__["limit"] = 20
    assert called(functions.bytes_of(f)) == 21
    f.__defaults__ = (5,)
    assert called(functions.bytes_of(f)) == 25
    f.__globals__["g"] = made("def f(): return 100")
    assert called(functions.bytes_of(f)) == 105


def test_a_default_by_name_an_attribute_and_a_name_that_appears_count_too(functions):
    f = made("def f(*, x=1): return x + len(()) + (0 if 'y' not in globals() else y)")
    assert called(functions.bytes_of(f)) == 1
    assert functions.bytes_of(f) is functions.bytes_of(f)
    f.__kwdefaults__["x"] = 5
    assert called(functions.bytes_of(f)) == 5
    f.__globals__["len"] = made("def f(x): return 10")
    assert called(functions.bytes_of(f)) == 15
    f.__globals__["y"] = 100
    assert called(functions.bytes_of(f)) == 115
    f.note = "new"
    assert pickle.loads(functions.bytes_of(f)).note == "new"


def test_a_function_whose_module_has_another_of_its_name_is_pickled_by_value(functions, monkeypatch):
    f = agent.load
    by_name = functions.bytes_of(f)
    assert functions.bytes_of(f) is by_name
    monkeypatch.setattr(agent, "load", None)
    assert functions.bytes_of(f) is not by_name


def test_a_cell_that_is_filled_later_is_seen(functions):
    def outer():
        def f():
            return later

        yield f
        later = 7
        yield f

    both = outer()
    f = next(both)
    f.__module__ = "__main__"
    functions.bytes_of(f)
    next(both)
    assert called(functions.bytes_of(f)) == 7


def test_a_large_function_is_where_agents_of_this_machine_read_it_as_long_as_it_is_held():
    functions = Functions(cloudpickle.dumps, local=True)
    held, changing = b"x" * 3_000_000, [1]
    f = made("def f(): return len(held)", held=held)
    place = functions.bytes_of(f)
    assert len(place) < 200
    assert functions.bytes_of(f) is place
    for _ in range(2):
        assert value_at(bytes(place), keep=True)() == 3_000_000
    g = made("def f(): return len(held) + len(changing)", held=held, changing=changing)
    first = functions.bytes_of(g)
    assert functions.bytes_of(g) is first  # pickled again, with the same bytes
    changing.append(2)
    assert functions.bytes_of(g) != first
    assert value_at(bytes(first), keep=True)() == 3_000_001
    for number in range(6):
        functions.bytes_of(made("def f(): return held", held=held + bytes([number])))
    gone = bytes(first)
    del first
    with pytest.raises(GoneError):
        value_at(gone, keep=True)
    small = functions.bytes_of(abs)
    assert pickle.loads(small) is abs


DTYPES = ["f8", "u1", "i4"]


@pytest.fixture(params=[True, False], ids=["agents of this machine", "others"])
def with_arrays(request):
    """Functions whose pickles are noted; what an agent makes of the bytes of one."""
    heads = []

    def dumps(value, **options):
        heads.append(cloudpickle.dumps(value, **options))
        return heads[-1]

    found = Functions(dumps, local=request.param)
    found.heads = heads

    def read(data):
        if isinstance(data, Shared):
            return value_at(bytes(data), keep=True)
        return loads(data) if isinstance(data, bytes) else data.loaded(loads)

    return found, read


@pytest.mark.parametrize("dtype", DTYPES)
def test_an_array_that_a_function_holds_is_compared_and_travels_again_once_it_changed(with_arrays, dtype):
    functions, read = with_arrays
    array = np.arange(2_000_000, dtype="f8").astype(dtype)
    f = made("def f(): return held", held=array)
    first = functions.bytes_of(f)
    assert functions.bytes_of(f) is first
    assert max(map(len, functions.heads)) < 5_000  # the array is in none of them
    assert np.array_equal(read(first)(), array)
    for place in (0, 999_999, -1):
        before = array.copy()
        array[place] += 1
        changed = functions.bytes_of(f)
        assert changed is not first
        assert functions.bytes_of(f) is changed
        assert np.array_equal(read(changed)(), array)
        assert np.array_equal(read(first)(), before)
        first = changed
    array[:] = array[::-1].copy()
    assert np.array_equal(read(functions.bytes_of(f))(), array)


def test_an_array_that_is_replaced_by_a_like_one_need_not_travel_again(with_arrays):
    functions, _ = with_arrays
    f = made("def f(): return held", held=np.ones(300_000))
    first = functions.bytes_of(f)
    f.__globals__["held"] = np.ones(300_000)
    assert functions.bytes_of(f) is first
    f.__globals__["held"] = np.ones(300_000).reshape(3, -1)  # the same bytes in another shape
    assert functions.bytes_of(f) is not first


@pytest.mark.parametrize(
    "held",
    [
        np.ones((700, 700)).T,
        np.asfortranarray(np.arange(490_000.0).reshape(700, 700)),
        np.arange(900_000.0)[::3],
        np.broadcast_to(np.arange(3.0), (100_000, 3)),
        np.array([None, "a"] * 100_000, object),
        np.zeros(0),
        bytearray(3_000_000),
        [np.ones(200_000), np.zeros(200_000), "and more"],
        {"a": (np.arange(200_000),) * 2},
    ],
    ids=["transposed", "Fortran", "gaps", "broadcast", "objects", "empty", "bytearray", "several", "one twice"],
)
def test_arrays_of_any_form_are_what_they_were(with_arrays, held):
    functions, read = with_arrays
    f = made("def f(): return held", held=held)
    data = functions.bytes_of(f)
    assert pickle.dumps(read(data)()) == pickle.dumps(held)
    assert functions.bytes_of(f) is data or type(data) is bytes


@pytest.mark.parametrize("registered", ["crosswind", "crosswind.run", "crosswind.run.backoff"])
def test_of_a_module_that_travels_by_value_nothing_is_known(functions, registered, monkeypatch):
    f = made("def f(): return backoff", backoff=backoff)
    assert slots_of(backoff.Backoff) is not None
    assert slots_of(f) is not None
    cloudpickle.register_pickle_by_value(sys.modules[registered])
    try:
        assert slots_of(backoff.Backoff) is None
        assert slots_of(f) is None
    finally:
        cloudpickle.unregister_pickle_by_value(sys.modules[registered])


def test_recursion_ends(functions):
    f = made("def f(n): return n and f(n - 1)")
    functions.bytes_of(f)
    assert functions.bytes_of(f) is functions.bytes_of(f)


@pytest.mark.parametrize("function", [abs, len, pickle.dumps, dict])
def test_what_is_imported_by_its_name_is_pickled_once(functions, function):
    assert slots_of(function) is not None
    assert functions.bytes_of(function) is functions.bytes_of(function)


@pytest.mark.parametrize("function", [partial(pow, 2), [].append, type("Own", (), {"__call__": lambda self: 1})()])
def test_of_other_callables_nothing_is_known(function):
    assert slots_of(function) is None


def test_the_package_itself_can_be_sent():
    f = made("def f(): return crosswind.Platform.__name__", crosswind=crosswind)
    assert called(cloudpickle.dumps(f)) == "Platform"


def test_a_farm_sends_what_a_function_is_at_each_submit(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", InProcess)
    held = ["first"]

    def f():
        return held[0]

    with crosswind.Farm() as farm:
        first = farm.submit(f)
        assert first.result() == "first"
        held[0] = "second"
        assert farm.submit(f).result() == "second"


def test_a_call_that_is_cancelled_is_done_and_its_result_is_an_error(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", InProcess)
    with crosswind.Farm() as farm:
        calls = [farm.submit(abs, number) for number in range(400)]
        cancelled = [call for call in calls if call.cancel()]
        assert [call.cancel() for call in cancelled] == [True] * len(cancelled)
    for call in calls:
        assert call.done()
        if call in cancelled:
            with pytest.raises(CancelledError):
                call.result()


def test_a_function_has_one_number_as_long_as_its_bytes_are_the_same(monkeypatch):
    seen, data = [], bytes(20_000)

    def function():
        return len(seen), data

    known = Functions(pickled_function)
    first = known.bytes_of(function)
    assert known.bytes_of(function) is first
    seen.append(1)
    second = known.bytes_of(function)
    assert second.number != first.number
    seen.clear()
    assert known.bytes_of(function) is first
    monkeypatch.setattr(sys.modules["crosswind.run.functions"], "MOST_HELD_BYTES", 100_000)
    for number in range(20):
        data = bytes([number]) * 20_000
        known.bytes_of(function)
    assert sum(len(data) for _, data in known._numbered.values()) <= 100_000


def test_a_short_function_goes_with_its_calls():
    assert type(Functions(pickled_function).bytes_of(lambda: 1)) is bytes
