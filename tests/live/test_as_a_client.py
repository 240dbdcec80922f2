"""Scripts for Dask's client and for joblib: with Crosswind in their place, the same comes out."""

from __future__ import annotations

import functools
import operator
import sys
from concurrent.futures import ThreadPoolExecutor, as_completed

import cloudpickle
import executor_cases
import numpy as np
import pytest
from executor_cases import Frozen, Model, TakesTwo, both, fails, fibonacci, options, raises, same, slowly, square

import crosswind

pytestmark = pytest.mark.live
dask = pytest.importorskip("dask")
distributed = pytest.importorskip("distributed")
joblib = pytest.importorskip("joblib")


@pytest.fixture(scope="module", autouse=True)
def modules_travel():
    """Workers cannot import these; for tests of other files in this process they are as ever."""
    modules = (executor_cases, sys.modules[__name__])
    for module in modules:
        cloudpickle.register_pickle_by_value(module)
    yield
    for module in modules:
        cloudpickle.unregister_pickle_by_value(module)


@pytest.fixture(scope="module")
def both_clients(cluster):
    with (
        distributed.Client(cluster, set_as_default=False) as client,
        crosswind.Farm(client, quiet=True) as farm,
    ):
        yield client, farm


def _scattered(client):
    """Scatter a list under a key of its own: by its hash, Dask may lose one that was let go and scattered again."""
    return client.scatter([1, 2, 3], hash=False)


def _sum_of(either, data):
    return either.submit(sum, data).result()


def outcome(call):
    """Return a value, or the type and arguments of what was raised."""
    try:
        return call()
    except BaseException as error:
        return type(error), error.args


def values(calls):
    return [call.result(60) for call in calls]


def inner_map(number):
    return list(crosswind.map(square, range(number), max_workers=1, quiet=True))


def inner_threads(number):
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(square, range(number)))


def changed(array):
    array[0] = 7
    return array


def without_worker():
    return distributed.get_worker() is not None


def tree_sum(submit, numbers):
    """Sum by pairs, as reductions are written: futures of futures."""
    level = [submit(same, number) for number in numbers]
    while len(level) > 1:
        level = [submit(operator.add, *pair) for pair in zip(level[::2], level[1::2], strict=True)]
    return level[0].result(60)


def loop_over(submit, steps):
    """Each step has the result of the one before as an argument that is a future."""
    state = submit(same, 1)
    for _ in range(steps):
        state = submit(square, submit(operator.add, state, 1))
    return state.result(60)


TABLE = {"a": [1, 2, 3], "b": ["x", "y", "z"]}
# Written once for a client and once for a farm where the two are typed differently; else one for both.
SAME = {
    "submit": lambda e: e.submit(square, 5).result(),
    "submit with options": lambda e: e.submit(options, 1, b=2).result(),
    "a future as an argument": lambda e: e.submit(square, e.submit(square, 3)).result(),
    "a future by name": lambda e: e.submit(options, a=e.submit(square, 3)).result(),
    "futures in a list": lambda e: e.submit(sum, [e.submit(square, n) for n in range(5)]).result(),
    "futures in a dict": lambda e: e.submit(sorted, {"a": e.submit(square, 3)}).result(),
    "futures in a tuple in a list": lambda e: e.submit(same, [(e.submit(square, 3), 4)]).result(),
    "one future twice": lambda e: e.submit(both, *[e.submit(square, 3)] * 2).result(),
    "a tree of futures": lambda e: tree_sum(e.submit, range(16)),
    "a chain of futures": lambda e: loop_over(e.submit, 3),
    "a future that failed": lambda e: outcome(lambda: e.submit(square, e.submit(fails, 3)).result()),
    "a failed one among others": lambda e: outcome(
        lambda: e.submit(sum, [e.submit(fails, n) for n in range(5)]).result()
    ),
    "an exception": lambda e: outcome(lambda: e.submit(fails, 3).result()),
    "an exception of its own class": lambda e: outcome(lambda: e.submit(raises, TakesTwo(1, 2)).result()),
    "an exception of the system": lambda e: outcome(lambda: e.submit(open, "/no/such/file").result())[0],
    "an exception that is looked at": lambda e: repr(e.submit(fails, 3).exception()),
    "a lambda": lambda e: e.submit(lambda x: x + 1, 1).result(),
    "a closure": lambda e: [e.submit(lambda x, held=held: x + held, 1).result() for held in (41, 42)],
    "an object that is called": lambda e: e.submit(Model(), 4).result(),
    "a class": lambda e: vars(e.submit(Frozen, "a").result()),
    "recursion": lambda e: e.submit(fibonacci, 12).result(),
    "an array": lambda e: e.submit(np.linalg.det, np.eye(4)).result(),
    "a large array": lambda e: e.submit(np.cumsum, np.ones(500_000)).result()[-1],
    "an array that is changed": lambda e: [[e.submit(changed, a).result()[0], a[0]] for a in [np.zeros(5)]],
    "large bytes": lambda e: len(e.submit(bytes, 3_000_000).result()),
    "a table of pyarrow": lambda e: _rows(e, TABLE),
    "threads in a call": lambda e: e.submit(inner_threads, 4).result(),
    "a map in a call": lambda e: e.submit(inner_map, 4).result(),
    "calls by slowness": lambda e: sorted(one.result() for one in [e.submit(slowly, n) for n in range(9)]),
    "none as a value": lambda e: e.submit(same, None).result(),
    "no arguments": lambda e: e.submit(dict).result(),
    "what is done": lambda e: [(one.result(), one.done(), one.cancelled()) for one in [e.submit(square, 3)]],
}
DIFFERENT = {
    "map": (lambda c: c.gather(c.map(square, range(9))), lambda f: list(f.map(square, range(9)))),
    "map of two": (
        lambda c: c.gather(c.map(both, "abc", [3, 2, 1])),
        lambda f: list(f.map(both, "abc", [3, 2, 1])),
    ),
    "as completed": (
        lambda c: sorted(one.result() for one in distributed.as_completed(c.map(slowly, range(9)), loop=c.loop)),
        lambda f: sorted(one.result() for one in as_completed([f.submit(slowly, n) for n in range(9)])),
    ),
    "map of futures": (
        lambda c: c.gather(c.map(square, c.map(square, range(4)))),
        lambda f: list(f.map(square, [f.submit(square, n) for n in range(4)])),
    ),
    "a future of Dask as an argument": (
        lambda c: c.submit(square, c.submit(square, 3)).result(),
        lambda f: f.submit(square, _client_of(f).submit(square, 3)).result(),
    ),
    "scattered data": (
        lambda c: _sum_of(c, _scattered(c)),
        lambda f: _sum_of(f, _scattered(_client_of(f))),
    ),
    "delayed": (
        lambda c: dask.delayed(square)(dask.delayed(square)(2)).compute(scheduler=c),
        lambda f: dask.delayed(square)(dask.delayed(square)(2)).compute(scheduler=f),
    ),
    "delayed that fails": (
        lambda c: outcome(lambda: dask.delayed(fails)(3).compute(scheduler=c)),
        lambda f: outcome(lambda: dask.delayed(fails)(3).compute(scheduler=f)),
    ),
    "several delayed": (
        lambda c: dask.compute(*map(dask.delayed(square), range(5)), scheduler=c),
        lambda f: dask.compute(*map(dask.delayed(square), range(5)), scheduler=f),
    ),
    "a function of modules": (
        lambda c: c.gather(c.map(operator.neg, range(4))),
        lambda f: list(f.map(operator.neg, range(4))),
    ),
    "a time that is over": (
        lambda c: outcome(lambda: c.submit(_sleeps, 0.4, pure=False).result(timeout=0.01))[0].__name__,
        lambda f: outcome(lambda: f.submit(_sleeps, 0.4).result(timeout=0.01))[0].__name__,
    ),
    "a worker that is asked for": (
        lambda c: c.submit(without_worker).result(),
        lambda f: outcome(lambda: f.submit(without_worker).result())[0] is ValueError,  # named in the guide
    ),
}


def _sleeps(seconds):
    import time

    time.sleep(seconds)


def _rows(executor, table):
    import pyarrow as pa

    return executor.submit(same, pa.table(table)).result().to_pydict()


_CLIENTS = {}


def _client_of(farm):
    return _CLIENTS[farm]


@pytest.mark.parametrize("case", [*SAME, *DIFFERENT])
def test_what_a_client_of_dask_does(case, both_clients):
    client, farm = both_clients
    _CLIENTS[farm] = client
    there, here = DIFFERENT.get(case) or (SAME[case], SAME[case])
    assert here(farm) == there(client)


def test_dasks_own_functions_refuse_futures_of_a_farm_or_leave_them_as_they_are(both_clients):
    client, farm = both_clients
    calls = [farm.submit(square, number) for number in range(3)]
    with client.as_current():
        for refused in (lambda: distributed.wait(calls), lambda: dask.compute(calls[0]), lambda: client.compute(calls)):
            with pytest.raises(
                crosswind.DescriptionError, match=r"a concurrent\.futures\.Future and none of Dask's"
            ) as error:
                refused()
            assert "result()" in error.value.hint
        with pytest.raises(
            TypeError, match=r"Input must be a future, got <concurrent\.futures\.Future of a crosswind farm"
        ):
            distributed.as_completed(calls)
        assert client.gather(calls) == calls
    assert values(calls) == [0, 1, 4]
    assert repr(calls[0]) == "<concurrent.futures.Future of a crosswind farm, finished>"


def parallel(calls, **more):
    return joblib.Parallel(n_jobs=2, **more)(calls)


def mapped(*arguments, **more):
    return list(crosswind.map(*arguments, max_workers=2, quiet=True, **more))


def nested(number):
    return joblib.Parallel(n_jobs=1)(joblib.delayed(square)(n) for n in range(number))


delayed = joblib.delayed
JOBLIB = {
    "a function": (lambda: parallel(delayed(square)(n) for n in range(9)), lambda: mapped(square, range(9))),
    "nothing": (lambda: parallel([]), lambda: mapped(square, [])),
    "two arguments": (
        lambda: parallel(delayed(both)(a, b) for a, b in zip("ab", [1, 2], strict=True)),
        lambda: mapped(both, "ab", [1, 2]),
    ),
    "names": (
        lambda: parallel(delayed(options)(n, b=2) for n in range(3)),
        lambda: mapped(lambda n: options(n, b=2), range(3)),
    ),
    "a lambda": (
        lambda: parallel(delayed(lambda x: x + 1)(n) for n in range(3)),
        lambda: mapped(lambda x: x + 1, range(3)),
    ),
    "methods": (
        lambda: parallel(delayed(Model().predict)(n) for n in range(3)),
        lambda: mapped(Model().predict, range(3)),
    ),
    "a generator": (
        lambda: list(parallel((delayed(square)(n) for n in range(9)), return_as="generator")),
        lambda: mapped(square, (n for n in range(9))),
    ),
    "as completed": (
        lambda: sorted(parallel((delayed(slowly)(n) for n in range(9)), return_as="generator_unordered")),
        lambda: sorted(mapped(slowly, range(9), ordered=False)),
    ),
    "batches": (
        lambda: parallel((delayed(square)(n) for n in range(40)), batch_size=8),
        lambda: mapped(square, range(40), chunksize=8),
    ),
    "one that fails": (
        lambda: outcome(lambda: parallel(delayed(fails)(n) for n in range(6))),
        lambda: outcome(lambda: mapped(fails, range(6))),
    ),
    "large arrays": (
        lambda: [one[-1] for one in parallel(delayed(np.cumsum)(np.ones(300_000)) for _ in range(3))],
        lambda: [one[-1] for one in mapped(np.cumsum, [np.ones(300_000)] * 3)],
    ),
    "a shared array": (
        lambda: parallel(delayed(np.take)(a, n) for a in [np.arange(300_000)] for n in range(3)),
        lambda: mapped(functools.partial(np.take, np.arange(300_000)), range(3)),
    ),
    "parallel in parallel": (lambda: parallel(delayed(nested)(n) for n in range(4)), lambda: mapped(nested, range(4))),
    "processes": (
        lambda: len(set(parallel(delayed(_pid)(n) for n in range(8)))) <= 2,
        lambda: len(set(mapped(_pid, range(8)))) <= 2,
    ),
    "all kinds": (
        lambda: parallel(delayed(same)(one) for one in [1, "a", None, (2, 3), [4], {5: 6}, b"7"]),
        lambda: mapped(same, [1, "a", None, (2, 3), [4], {5: 6}, b"7"]),
    ),
}


def _pid(_):
    import os

    return os.getpid()


@pytest.mark.parametrize("case", JOBLIB)
def test_what_joblib_does(case):
    there, here = JOBLIB[case]
    assert here() == there()
