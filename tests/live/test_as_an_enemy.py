"""Functions that do what functions must not do: each costs itself an error, and no other call anything."""

from __future__ import annotations

import contextlib
import ctypes
import gc
import math
import multiprocessing
import os
import pickle
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections import UserDict, deque
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import crosswind
from crosswind import CallError

pytestmark = pytest.mark.live


@pytest.fixture(scope="module")
def farm():
    with crosswind.Farm(max_workers=2, quiet=True) as made:
        yield made
        assert [made.submit(pow, 2, n).result(60) for n in range(20)] == [2**n for n in range(20)]


def same(value):
    return value


def forks_and_returns_twice(number):
    os.fork()
    return number, os.getpid()


def leaves_a_daemon(_):
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        os.closerange(0, 3)
        time.sleep(600)
        os._exit(0)
    return "left"


def closes_its_output(_):
    os.close(1)
    os.close(2)
    with contextlib.suppress(OSError):
        print("to nowhere")
    return "closed"


def prints_bytes(_):
    with contextlib.suppress(OSError):  # closed by another call
        os.write(2, bytes(range(256)) * 2_000)
        os.write(1, b"\xff\xfe no line")
    return "printed"


def loses_its_streams(_):
    sys.stdout = sys.stderr = None
    print("nowhere")
    return "lost"


def has_few_descriptors(_):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, hard))
    try:
        return bytes(3_000_000)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def keeps_few_descriptors(_):
    resource.setrlimit(resource.RLIMIT_NOFILE, (3, 4096))
    return bytes(3_000_000)


def writes_no_files(_):
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    return bytes(3_000_000)


def lifts_limits(_=None):
    """Undo what a call before has set, if it ran in this process: which process takes a call is chance."""
    for limit in (resource.RLIMIT_FSIZE, resource.RLIMIT_NOFILE):
        _, hard = resource.getrlimit(limit)
        resource.setrlimit(limit, (hard, hard))


def goes_elsewhere(_):
    lifts_limits()
    with tempfile.TemporaryDirectory() as place:
        os.chdir(place)
    os.umask(0o777)
    return "gone"


def forgets_its_surroundings(_):
    os.environ.clear()
    sys.argv[:] = []
    return "forgotten"


def collects_no_garbage(_):
    gc.disable()
    gc.set_threshold(0)
    return sys.setrecursionlimit(200)


def traces(_):
    sys.settrace(lambda *_: None)
    threading.settrace(lambda *_: None)
    sys.setprofile(lambda *_: None)
    return "traced"


def replaces_the_clock(_):
    time.perf_counter = time.monotonic = time.time = lambda: -5.0
    time.sleep = lambda *_: None
    return "replaced"


def leaves_threads(_):
    for _ in range(3):
        threading.Thread(target=time.sleep, args=(600,)).start()
    return "left"


def fills_threads(_):
    def busy():
        while True:
            sum(range(1_000))

    threading.Thread(target=busy, daemon=True).start()
    return "busy"


def has_a_pool(_):
    with multiprocessing.get_context("fork").Pool(2) as pool:
        return pool.map(abs, [-1, -2])


def has_threads(_):
    with ThreadPoolExecutor(2) as threads:
        return list(threads.map(abs, [-1, -2]))


def maps(_):
    return list(crosswind.map(abs, [-1, -2], max_workers=1, quiet=True))


def ignores_everything(_):
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
    os.kill(os.getpid(), signal.SIGINT)
    return "ignored"


def leads_a_session(_):
    os.setsid()


def handles_a_signal(_):
    signal.signal(signal.SIGALRM, lambda *_: None)


def reads_the_terminal(_):
    return sys.stdin.read() + os.read(0, 10).decode()


def asks(_):
    return input()


def starts_a_reader(_):
    lifts_limits()
    return subprocess.run(["cat"], capture_output=True, check=True).stdout


def is_deep(_):
    inner = []
    for _ in range(100_000):
        inner = [inner]
    return inner


def is_round(_):
    inner = [1]
    inner.append(inner)
    return inner


def gives_a_generator(_):
    yield 1


async def is_asynchronous(_):
    return 1


def gives_itself(_):
    return gives_itself


def is_closed_over(_, held=threading.Lock()):  # noqa: B008 (it is what is tested)
    return held


def recurses(_):
    return recurses(_)


def takes_all_memory(_):
    return bytes(1 << 55)


def imports_nothing(_):
    import no_such_module  # noqa: F401


class Number(int):
    """An integer that is more."""


class Reads:
    """Does something where it is read."""

    def __init__(self, what, *arguments):
        self.what = what, arguments

    def __reduce__(self):
        return self.what


def gives(value):
    def give(_):
        return value

    return give


def raises(error, *arguments):
    def fail(_):
        raise error(*arguments)

    return fail


class WithLock(Exception):
    def __init__(self, one, two):
        super().__init__(one)
        self.two, self.lock = two, threading.Lock()


class Refuses(Exception):
    def __setstate__(self, state):
        raise TypeError("it is not to be read")


class Meta(type):
    def __repr__(cls):
        raise ValueError("no name")


class Nameless(Exception, metaclass=Meta):
    def __repr__(self):
        raise ValueError("no text")


def raises_itself(_):
    error = ValueError("round")
    error.args = (error,)
    error.__cause__ = error
    raise error


def raises_a_long_chain(_):
    error = None
    for number in range(500):
        following = ValueError(number)
        following.__cause__, error = error, following
    raise error


def raises_much(_):
    raise ValueError("x" * 20_000_000)


def raises_surrogates(_):
    raise ValueError("caf\udce9")


def raises_in_a_group(_):
    raise ExceptionGroup("g", [WithLock(1, 2), ExceptionGroup("h", [Nameless()])])


# In this order: what a function spoils, those after it find.
RETURNS = {
    "a pool inside": (has_a_pool, [1, 2]),
    "threads inside": (has_threads, [1, 2]),
    "a map inside": (maps, [1, 2]),
    "twice": (forks_and_returns_twice, lambda value: value[0] == 1),
    "a daemon": (leaves_a_daemon, "left"),
    "no output": (closes_its_output, "closed"),
    "bytes as output": (prints_bytes, "printed"),
    "no streams": (loses_its_streams, "lost"),
    "few descriptors": (has_few_descriptors, bytes(3_000_000)),
    "few descriptors from here on": (keeps_few_descriptors, bytes(3_000_000)),
    "no files": (writes_no_files, bytes(3_000_000)),
    "files again": (lifts_limits, None),
    "another directory, which is gone": (goes_elsewhere, "gone"),
    "no environment": (forgets_its_surroundings, "forgotten"),
    "no garbage collection": (collects_no_garbage, None),
    "a tracer": (traces, "traced"),
    "another clock": (replaces_the_clock, "replaced"),
    "threads": (leaves_threads, "left"),
    "a busy thread": (fills_threads, "busy"),
    "signals": (ignores_everything, "ignored"),
    "no terminal": (reads_the_terminal, ""),
    "no terminal below": (starts_a_reader, b""),
    "a list in itself": (is_round, lambda value: value[1] is value),
    "itself": (gives_itself, callable),
    "an integer that is more": (gives(Number(5)), lambda value: type(value) is Number and value == 5),
    "a huge integer": (gives(10**100_000), 10**100_000),
    "not a number": (gives(math.nan), math.isnan),
    "a lone surrogate": (gives("caf\udce9"), "caf\udce9"),
    "bytes that look like a place": (gives(b"\xfe" + bytes(5_000)), b"\xfe" + bytes(5_000)),
    "bytes that look like an error": (gives(b"\xff" + bytes(2_000_000)), b"\xff" + bytes(2_000_000)),
    "a tuple that looks like an outcome": (gives((b"\x80", None)), (b"\x80", None)),
    "a large text": (gives("ü" * 2_000_000), "ü" * 2_000_000),
    "a large bytearray": (gives(bytearray(3_000_000)), bytearray(3_000_000)),
    "large buffers twice": (
        gives([np.ones(300_000)] * 2),
        lambda value: value[0] is value[1],
    ),
    "a big-endian array": (gives(np.arange(400_000, dtype=">i8")), lambda value: value[-1] == 399_999),
    "an array with gaps": (gives(np.arange(900_000)[::2]), lambda value: value[-1] == 899_998),
    "an array of objects": (gives(np.array([None, [1]], object)), lambda value: value[1] == [1]),
    "a class of its own": (gives(UserDict(a=1)), UserDict(a=1)),
    "an exception as a value": (gives(ValueError("v")), lambda value: value.args == ("v",)),
    "a closed future": (gives(deque([1], 1)), deque([1], 1)),
}
RAISES = {
    "a session": (leads_a_session, PermissionError),
    "a handler of signals": (handles_a_signal, ValueError),
    "a question": (asks, (EOFError, RuntimeError)),  # the latter where another function has lost the output
    "too deep": (is_deep, pickle.PicklingError),
    "a generator": (gives_a_generator, TypeError),
    "a coroutine": (is_asynchronous, TypeError),
    "a recursion": (recurses, RecursionError),
    "all memory": (takes_all_memory, (MemoryError, OverflowError)),
    "no module": (imports_nothing, ModuleNotFoundError),
    "what exits when it is read": (lambda _: Reads(sys.exit, 9), SystemExit),
    "what is interrupted when it is read": (lambda _: Reads(exec, "raise KeyboardInterrupt"), KeyboardInterrupt),
    "what cannot be read": (lambda _: Reads(int, "x"), ValueError),
    "what is no reduction": (lambda _: Reads(None), (TypeError, pickle.PicklingError)),
    "a weak reference": (lambda _: weakref.ref(same), TypeError),
    "a frame": (lambda _: sys._getframe(), TypeError),
    "a lock": (lambda _: threading.Lock(), TypeError),
    "SystemExit": (raises(SystemExit, 3), SystemExit),
    "KeyboardInterrupt": (raises(KeyboardInterrupt), KeyboardInterrupt),
    "GeneratorExit": (raises(GeneratorExit), GeneratorExit),
    "BaseException": (raises(BaseException, "base"), BaseException),
    "StopIteration": (raises(StopIteration, 1), StopIteration),
    "an exception with a lock": (raises(WithLock, 1, 2), WithLock),
    "an exception that is not to be read": (raises(Refuses, 1), Refuses),
    "a class without a name": (raises(Nameless), Nameless),
    "an exception in itself": (raises_itself, ValueError),
    "a long chain": (raises_a_long_chain, ValueError),
    "much": (raises_much, ValueError),
    "surrogates": (raises_surrogates, ValueError),
    "a group": (raises_in_a_group, ExceptionGroup),
    "no exception at all": (lambda _: exec("raise 5"), TypeError),
}


@pytest.mark.parametrize("case", RETURNS)
def test_what_a_function_does_to_its_process_costs_no_call_its_value(case, farm):
    function, expected = RETURNS[case]
    others = [farm.submit(same, number) for number in range(6)]
    value = farm.submit(function, 1).result(60)
    assert expected(value) if callable(expected) else value == expected
    assert [other.result(60) for other in others] == list(range(6))


@pytest.mark.parametrize("case", RAISES)
def test_what_a_function_raises_is_raised_by_its_call_alone(case, farm):
    function, expected = RAISES[case]
    others = [farm.submit(same, number) for number in range(6)]
    with pytest.raises(expected):
        farm.submit(function, 1).result(60)
    assert [other.result(60) for other in others] == list(range(6))


def exits(_):
    os._exit(0)


def is_killed(_):
    os.kill(os.getpid(), signal.SIGKILL)


def crashes(_):
    ctypes.string_at(0)


def closes_everything(_):
    os.closerange(0, 1_000)
    return bytes(2_000_000)


def unloads_everything(_):
    sys.modules.clear()
    raise ValueError("nothing is left")


def runs_another_program(_):
    os.execv("/bin/true", ["true"])


DEADLY = {
    "exits": exits,
    "is killed": is_killed,
    "crashes": crashes,
    "closes everything": closes_everything,
    "unloads everything": unloads_everything,
    "runs another program": runs_another_program,
}


@pytest.mark.parametrize(
    "names", [["unloads everything"], pytest.param(list(DEADLY), marks=pytest.mark.nightly)], ids=["one", "all"]
)
def test_functions_that_end_their_agents_fail_after_five_tries_and_all_others_are_done(names):
    with crosswind.Farm(max_workers=2, quiet=True) as farm:
        deadly = {name: farm.submit(DEADLY[name], 1) for name in names}
        read = farm.submit(same, Reads(os._exit, 7))
        others = [farm.submit(same, number) for number in range(300)]
        assert [other.result(120) for other in others] == list(range(300))
        for name, call in [*deadly.items(), ("is read", read)]:
            with pytest.raises(CallError, match="computed 5 times when an agent was lost"):
                assert (name, call.result(120)) == ()
        assert farm.submit(same, 5).result(60) == 5
