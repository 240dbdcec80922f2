"""What users of an executor do, each with the executor as its only argument: the same of any executor."""

from __future__ import annotations

import array
import asyncio
import collections
import contextlib
import dataclasses
import datetime
import decimal
import enum
import fractions
import functools
import ipaddress
import itertools
import json
import operator
import os
import pathlib
import queue
import random
import re
import subprocess
import sys
import tempfile
import threading
import time
import types
import uuid
from concurrent.futures import ALL_COMPLETED, FIRST_COMPLETED, FIRST_EXCEPTION, Future, as_completed, wait

import numpy as np
import pyarrow as pa


def same(value):
    return value


def square(number):
    return number * number


def both(one, other):
    return one, other


def options(*args, **kwargs):
    return args, sorted(kwargs.items())


def fails(number):
    if number == 3:
        raise ValueError("three", number)
    return number


def raises(error):
    raise error


def slowly(number):
    time.sleep(0.002 * (number % 3))
    return number


def waits_for(path):
    """Return once a file is gone."""
    while pathlib.Path(path).exists():
        time.sleep(0.005)


@contextlib.contextmanager
def held():
    """A file for `waits_for`: no call of it ends before the body does, however slow the host is."""
    with tempfile.NamedTemporaryFile() as file:
        yield file.name


def fibonacci(number):
    return number if number < 2 else fibonacci(number - 1) + fibonacci(number - 2)


def appended(items):
    items.append(0)
    return items


def noted():
    error = KeyError("noted")
    error.add_note("a note")
    error.more = [1, 2]
    raise error


def chained():
    try:
        raise OSError(2, "first")
    except OSError as error:
        raise RuntimeError("second") from error


def grouped():
    raise ExceptionGroup("several", [ValueError(1), KeyError("two")])


def endless(depth):
    return endless(depth + 1)


def generator():
    yield 1


def opened():
    return os.scandir("/")


def doubled(function):
    @functools.wraps(function)
    def twice(*args):
        return 2 * function(*args)

    return twice


@doubled
def decorated(number):
    return number + 1


@functools.lru_cache
def remembered(number):
    return number + 1


class Counter:
    """Its calls change it."""

    def __init__(self):
        self.count, self.seen = 0, []

    def add(self, number):
        self.count += number
        self.seen.append(number)
        return self.count, len(self.seen)

    def __call__(self, number):
        return self.add(number)


def changed_between(executor):
    """Calls of a method whose object the caller changes meanwhile."""
    counter, found = Counter(), []
    for number in range(4):
        found.append(executor.submit(counter.add, 1).result())
        counter.count = 10 * number
    return found, counter.seen


class Colour(enum.Enum):
    RED = 1


class Flags(enum.IntFlag):
    A = 1
    B = 2


Point = collections.namedtuple("Point", "x y")


@dataclasses.dataclass(frozen=True)
class Frozen:
    name: str
    values: list = dataclasses.field(default_factory=list)


class Slotted:
    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None


class Model:
    """A fitted model, as users have them."""

    weight = 3

    def __init__(self):
        self.bias = 1

    def predict(self, number):
        return self.weight * number + self.bias

    def __call__(self, number):
        return self.predict(number)

    @staticmethod
    def static(number):
        return -number

    @classmethod
    def of(cls, number):
        return cls.weight * number


class Pickled:
    """Is sent as it says itself."""

    def __init__(self, value):
        self.value, self.lock = value, threading.Lock()

    def __getstate__(self):
        return {"value": self.value}

    def __setstate__(self, state):
        self.__init__(state["value"])

    def __eq__(self, other):
        return self.value == other.value

    __hash__ = None


class TakesTwo(Exception):
    def __init__(self, one, two):
        super().__init__(one, two)
        self.sum = one + two


VALUES = {
    "atoms": [None, True, 0, -1, 2**70, 1.5, 2j, "text", b"bytes", ..., NotImplemented],
    "odd floats": [float("inf"), -0.0, 5e-324, sys.float_info.max],
    "a huge integer": 7**5_000,
    "texts": ["", "\0", "\n", "ü€😀", "a" * 100_000, "\N{RIGHT-TO-LEFT OVERRIDE}"],
    "lone surrogates": "caf\udce9",
    "bytes": [bytes(range(256)), bytearray(b"x" * 1_000), b"", bytes(3_000_000)],
    "containers": [[], (), {}, set(), frozenset({1}), {"a": [1, (2, {3: {4}})]}, range(3, 9, 2), slice(1, None)],
    "deep": functools.reduce(lambda inner, _: [inner], range(300), 1),
    "wide": list(range(50_000)),
    "mappings": [collections.OrderedDict(b=1, a=2), collections.Counter("aab"), collections.defaultdict(list, a=[1])],
    "deques": [collections.deque([1, 2], 3)],
    "numbers": [decimal.Decimal("1.10"), fractions.Fraction(1, 3)],
    "times": [datetime.datetime(2024, 2, 29, tzinfo=datetime.UTC), datetime.timedelta(1, 2, 3), datetime.date.min],
    "names": [
        pathlib.PurePosixPath("/a/b"),
        uuid.UUID(int=5),
        ipaddress.ip_network("10.0.0.0/8"),
        re.compile("a+", re.I),
    ],
    "enums": [Colour.RED, Flags.A | Flags.B],
    "own classes": [Point(1, 2), Frozen("a", [1]), Slotted(4), Pickled(5), types.SimpleNamespace(a=1)],
    "arrays of Python": array.array("d", [1.5, 2.5]),
    "functions and classes": [len, square, Model, operator.itemgetter(1)("ab"), int],
    "exceptions as values": [repr(ValueError("a"))],
}
"""Come back equal."""

ARRAYS = {
    "one of each kind": [
        np.ones(5, "i1").astype(kind) for kind in ("i1", "i4", "f2", "f8", "c16", "?", "M8[s]", "U3", "S4")
    ],
    "no dimension": [np.array(5.0), np.float32(1.5), np.int64(7)],
    "empty": [np.zeros((0, 3)), np.zeros(0, "u1")],
    "transposed": [np.arange(12.0).reshape(3, 4).T, np.asfortranarray(np.ones((4, 5)))],
    "with gaps": [np.arange(200_000)[::3], np.ones((500, 500))[::2, ::-1]],
    "large": [np.arange(500_000.0), np.ones((700, 700), "f4")],
    "large and transposed": [np.arange(490_000.0).reshape(700, 700).T],
    "a view of much": [np.zeros(10_000_000, "u1")[:10]],
    "structured": [np.array([(1, 2.5)], [("a", "i4"), ("b", "f8")])],
    "objects": [np.array([None, "a", 1], object)],
    "masked": [np.ma.masked_array([1, 2], [True, False]).filled(0)],
    "cannot be written": [np.broadcast_to(np.arange(3), (4, 3))],
}


def shapes(arrays):
    return [(one.dtype.str, one.shape, one.tolist()) for one in map(np.asarray, arrays)]


FAILURES = {
    "an error with two arguments": ValueError("a", 2),
    "a key": KeyError("key"),
    "of the system": OSError(2, "No such file or directory", "/nowhere"),
    "a subclass of it": FileNotFoundError(2, "x"),
    "of a codec": UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid"),
    "of a process": subprocess.CalledProcessError(3, ["a", "b"], b"out", b"err"),
    "of JSON": json.JSONDecodeError("msg", "doc", 1),
    "StopIteration": StopIteration(5),
    "SystemExit": SystemExit(3),
    "KeyboardInterrupt": KeyboardInterrupt("k"),
    "GeneratorExit": GeneratorExit(),
    "BaseException": BaseException("base"),
    "a timeout": TimeoutError("t"),
    "of a queue": queue.Empty(),
    "no memory": MemoryError("m"),
    "an assertion": AssertionError("a == b"),
    "without a message": RuntimeError(),
    "of a decimal": decimal.InvalidOperation([decimal.DivisionByZero]),
    "of NumPy": np.linalg.LinAlgError("singular"),
    "a warning": UserWarning("w"),
    "its own class": TakesTwo(1, 2),
}
"""Are raised with their type and arguments."""


def result(future):
    """Return what a future comes to, in a form that can be compared."""
    try:
        return future.result(60)
    except BaseException as error:
        return type(error).__name__, error.args


def map_fails(executor):
    results, found = executor.map(fails, range(6)), []
    try:
        for value in results:
            found.append(value)
    except ValueError as error:
        return found, error.args, list(results)


def map_times_out(executor):
    with held() as path:
        try:
            return list(executor.map(waits_for, [path], timeout=0.01))
        except TimeoutError:
            return "timed out"


def waited(executor, how):
    futures = [executor.submit(fails, number) for number in range(6)]
    done, left = wait(futures, 60, how)
    return len(done) + len(left), {FIRST_EXCEPTION: True}.get(how) or bool(done), wait(futures).not_done


def callbacks(executor):
    seen, ended = [], threading.Event()
    future = executor.submit(square, 4)
    future.add_done_callback(lambda done: raises(RuntimeError("of a callback")))
    future.add_done_callback(lambda done: seen.append(done.result()))
    future.add_done_callback(lambda done: ended.set())
    ended.wait(60)
    future.add_done_callback(lambda done: seen.append("late"))
    return seen, future.result(), future.done(), future.running(), future.cancelled(), future.cancel()


def submits_from_callbacks(executor):
    ended, count = threading.Event(), itertools.count()

    def again(done):
        if next(count) < 50:
            executor.submit(square, done.result() % 7).add_done_callback(again)
        else:
            ended.set()

    executor.submit(square, 2).add_done_callback(again)
    return ended.wait(60)


def submits_from_threads(executor):
    found = {}

    def submit(name):
        found[name] = [one.result(60) for one in [executor.submit(both, name, number) for number in range(40)]]

    threads = [threading.Thread(target=submit, args=(name,)) for name in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    return sorted(found.items())


def awaited(executor):
    async def main():
        loop = asyncio.get_running_loop()
        one = await loop.run_in_executor(executor, square, 5)
        more = await asyncio.gather(*(asyncio.wrap_future(executor.submit(square, n)) for n in range(5)))
        with contextlib.suppress(ValueError):
            await loop.run_in_executor(executor, fails, 3)
            return "no error"
        with held() as path:
            try:
                await asyncio.wait_for(loop.run_in_executor(executor, waits_for, path), 0.01)
            except TimeoutError:
                return one, more

    return asyncio.run(main())


def awaited_as_completed(executor):
    async def main():
        loop = asyncio.get_running_loop()
        running = [loop.run_in_executor(executor, slowly, number) for number in range(9)]
        return sorted([await one for one in asyncio.as_completed(running)])

    return asyncio.run(main())


def by_pipeline(executor):
    """Futures of a first stage feed a second one."""
    first = [executor.submit(square, number) for number in range(10)]
    second = [executor.submit(operator.neg, one.result()) for one in as_completed(first)]
    return sorted(one.result() for one in second)


def producer_and_consumer(executor):
    ready = queue.Queue()
    for number in range(20):
        executor.submit(slowly, number).add_done_callback(lambda done: ready.put(done.result()))
    return sorted(ready.get(timeout=60) for _ in range(20))


def retried(executor):
    """As users who try again by themselves do."""
    found, left = {}, {executor.submit(fails, number): number for number in range(5)}
    for future in as_completed(left):
        number = left[future]
        found[number] = future.result() if future.exception() is None else executor.submit(same, -number).result()
    return sorted(found.items())


def timed_out_then_there(executor):
    with held() as path:
        future = executor.submit(waits_for, path)
        try:
            future.result(0.001)
        except TimeoutError:
            pass
        else:
            return "no timeout"
    return future.result(60), future.exception(0)


def arguments_are_copies(executor):
    items = [1]
    return executor.submit(appended, items).result(60), items


def other_processes(executor):
    pids = set(executor.map(lambda_of_pid, range(20)))
    return os.getpid() not in pids, len(pids) <= 2


def lambda_of_pid(_):
    return os.getpid()


def surroundings(executor):
    return executor.submit(os.getcwd).result(60), executor.submit(os.getenv, "HOME").result(60)


def monte_carlo(executor):
    return sum(executor.map(drawn, range(30)))


def drawn(seed):
    return sum(random.Random(seed).random() < 0.5 for _ in range(50))


def word_count(executor):
    texts = ["to be or not to be", "that is the question", "to sleep"]
    return sorted(functools.reduce(operator.add, executor.map(collections.Counter, map(str.split, texts))).items())


def matrix_by_rows(executor):
    a, b = np.arange(12.0).reshape(3, 4), np.arange(8.0).reshape(4, 2)
    return np.vstack(list(executor.map(functools.partial(np.dot, b=b), a))).tolist()


def files_read(executor):
    paths = sorted(pathlib.Path(__file__).parent.glob("test_s*.py"))
    return list(executor.map(operator.methodcaller("stat"), paths))


def tables(executor):
    table = pa.table({"a": [1, 2, 3], "b": ["x", None, "z"]})
    return executor.submit(same, table).result(60).equals(table), executor.map(same, [table]).__next__().num_rows


def many(executor):
    return list(executor.map(square, range(3_000), chunksize=100)) == [n * n for n in range(3_000)]


def with_notes(executor):
    error = executor.submit(noted).exception()
    return error.args, error.__notes__, error.more


def unsendable(executor, what):
    """The error where something cannot be sent: at submit or at the result."""
    try:
        return executor.submit(same, what).result(60)
    except TypeError as error:
        return str(error)


CASES = {
    "a method that changes its object": lambda e: [e.submit(c.add, 2).result() for c in [Counter()] for _ in range(4)],
    "many calls of one": lambda e: [f.result() for c in [Counter()] for f in [e.submit(c.add, 1) for _ in range(300)]],
    "a map of one": lambda e: list(e.map(Counter().add, range(20))),
    "an instance that changes itself": lambda e: [e.submit(c, 2).result() for c in [Counter()] for _ in range(4)],
    "a partial whose list grows": lambda e: [
        e.submit(p).result() for p in [functools.partial(appended, [])] for _ in range(4)
    ],
    "a partial of a method": lambda e: [
        e.submit(p).result() for p in [functools.partial(Counter().add, 3)] for _ in range(3)
    ],
    "a method of random numbers": lambda e: [int(n) for n in e.map(np.random.default_rng(1).integers, [1000] * 8)],
    "an object that its caller changes": changed_between,
    "map": lambda e: list(e.map(square, range(20))),
    "map of two": lambda e: list(e.map(both, "abc", [3, 2, 1])),
    "map of unequal lengths": lambda e: list(e.map(both, "abcde", range(3))),
    "map of nothing": lambda e: list(e.map(square, [])),
    "map in chunks": lambda e: list(e.map(square, range(50), chunksize=7)),
    "map of a generator": lambda e: list(e.map(square, (number for number in range(9)))),
    "map of a dict": lambda e: list(e.map(same, {"a": 1, "b": 2})),
    "map of a text": lambda e: "".join(e.map(str.upper, "text")),
    "map of a set": lambda e: sorted(e.map(square, {1, 2, 3})),
    "map of an array": lambda e: [float(one) for one in e.map(square, np.arange(4.0))],
    "map of rows": lambda e: [float(one) for one in e.map(np.sum, np.ones((3, 4)))],
    "map of lines": lambda e: list(e.map(len, pathlib.Path(__file__).read_text().splitlines()))[:50],
    "map that fails": map_fails,
    "map that times out": map_times_out,
    "map taken one by one": lambda e: [next(results) for results in [e.map(square, range(5))] for _ in range(3)],
    "map by slowness": lambda e: list(e.map(slowly, range(12))),
    "map many": many,
    "submit": lambda e: e.submit(square, 3).result(),
    "submit with options": lambda e: e.submit(options, 1, 2, a=3, b=[4]).result(),
    "submit with fn as a name": lambda e: e.submit(options, fn=1, self=2, timeout=3).result(),
    "result again": lambda e: [future.result() for future in [e.submit(square, 3)] for _ in range(2)],
    "no exception": lambda e: e.submit(square, 3).exception(),
    "an exception": lambda e: repr(e.submit(fails, 3).exception()),
    "as completed": lambda e: sorted(one.result() for one in as_completed([e.submit(slowly, n) for n in range(9)])),
    "wait for all": lambda e: waited(e, ALL_COMPLETED),
    "wait for the first": lambda e: waited(e, FIRST_COMPLETED),
    "wait for an exception": lambda e: waited(e, FIRST_EXCEPTION),
    "wait for none": lambda e: wait([], timeout=1).done,
    "are futures": lambda e: isinstance(e.submit(square, 1), Future),
    "in a set": lambda e: len({e.submit(square, number) for number in range(5)}),
    "callbacks": callbacks,
    "callbacks that submit": submits_from_callbacks,
    "threads that submit": submits_from_threads,
    "asyncio": awaited,
    "asyncio as completed": awaited_as_completed,
    "a pipeline": by_pipeline,
    "a queue": producer_and_consumer,
    "trying again": retried,
    "timed out": timed_out_then_there,
    "copies": arguments_are_copies,
    "processes": other_processes,
    "surroundings": surroundings,
    "partial": lambda e: e.submit(functools.partial(both, 1), 2).result(),
    "a method": lambda e: list(e.map(Model().predict, range(4))),
    "an object that is called": lambda e: e.submit(Model(), 4).result(),
    "a static method": lambda e: [e.submit(Model.static, 4).result(), e.submit(Model.of, 4).result()],
    "a class": lambda e: e.submit(Frozen, "a").result(),
    "builtins": lambda e: [e.submit(max, 1, 5, key=operator.neg).result(), e.submit("a-b".split, "-").result()],
    "operators": lambda e: list(e.map(operator.itemgetter("a"), [{"a": 1}, {"a": 2}])),
    "of NumPy": lambda e: e.submit(np.linalg.det, np.eye(3)).result(),
    "decorated": lambda e: [e.submit(decorated, 1).result(), e.submit(remembered, 1).result()],
    "recursive": lambda e: e.submit(fibonacci, 15).result(),
    "notes": with_notes,
    "a chain": lambda e: repr(e.submit(chained).exception()),
    "a group": lambda e: [type(one) for one in e.submit(grouped).exception().exceptions],
    "recursion": lambda e: type(e.submit(endless, 0).exception()),
    "a lock": lambda e: unsendable(e, threading.Lock()),
    "a generator": lambda e: unsendable(e, (number for number in range(3))),
    "a generator comes back": lambda e: result(e.submit(generator)),
    "an open directory comes back": lambda e: result(e.submit(opened)),
    "a thread comes back": lambda e: result(e.submit(threading.current_thread))[0],
    "a loop": monte_carlo,
    "words": word_count,
    "a matrix": matrix_by_rows,
    "files": files_read,
    "tables": tables,
    **{
        f"value: {name}": functools.partial(lambda value, e: e.submit(same, value).result(), v)
        for name, v in VALUES.items()
    },
    **{
        f"item: {name}": functools.partial(lambda value, e: list(e.map(same, [value, value])), v)
        for name, v in VALUES.items()
    },
    **{
        f"arrays: {name}": functools.partial(lambda value, e: shapes(e.map(same, value)), v)
        for name, v in ARRAYS.items()
    },
    **{
        f"raises: {name}": functools.partial(lambda error, e: result(e.submit(raises, error)), v)
        for name, v in FAILURES.items()
    },
}
