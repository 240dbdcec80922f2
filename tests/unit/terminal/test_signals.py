"""Signals that ask for an end, heard where compiled code looks."""

import os
import select
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import Future

import pytest

from crosswind.errors import AgentLost
from crosswind.run.call_run import Setting
from crosswind.run.map_calls import MapCalls
from crosswind.run.open_calls import Call
from crosswind.terminal.signals import told_at
from crosswind.terminal.waiting import as_done, join, mapped, threads, wait_for_all


def test_sigterm_counts_once_and_ctrl_c_each_time_and_what_they_did_before_is_put_back():
    before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
    with told_at([signal.SIGTERM, signal.SIGINT]) as descriptor:
        heard = b""
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGINT, signal.SIGTERM, signal.SIGINT):
            os.kill(os.getpid(), number)
        while len(heard) < 3:
            heard += os.read(descriptor, 1)
        os.set_blocking(descriptor, False)
        assert list(heard) == [signal.SIGTERM, signal.SIGINT, signal.SIGINT]
    assert (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)) == before


def test_sigterm_and_sighup_count_once_together_and_one_that_is_ignored_stays_so():
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    try:
        with told_at([signal.SIGTERM, signal.SIGHUP, signal.SIGINT, signal.SIGUSR1]) as descriptor:
            for number in (signal.SIGUSR1, signal.SIGHUP, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
                os.kill(os.getpid(), number)
            heard = b""
            while len(heard) < 2:
                heard += os.read(descriptor, 1)
            assert list(heard) == [signal.SIGHUP, signal.SIGINT]
    finally:
        signal.signal(signal.SIGUSR1, before)


INTERRUPTED_TWICE = """
import os, signal
from crosswind.terminal.signals import interrupt_on
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
interrupt_on([signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1])
os.kill(os.getpid(), signal.SIGUSR1)
try:
    os.kill(os.getpid(), signal.NUMBER)
except KeyboardInterrupt:
    os.kill(os.getpid(), signal.SIGTERM)
    os.kill(os.getpid(), signal.SIGHUP)
    print("cleaned up")
"""


@pytest.mark.parametrize("number", ["SIGTERM", "SIGHUP"])
def test_the_first_signal_interrupts_and_later_ones_leave_the_clean_up_alone(number):
    words = [sys.executable, "-c", INTERRUPTED_TWICE.replace("NUMBER", number)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "cleaned up\n"), done.stderr


@pytest.fixture
def ends_by_sigterm():
    """This process as it began: a test before may have changed what SIGTERM does."""
    before = signal.signal(signal.SIGTERM, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGTERM, before)


def forked():
    """Fork a child that lives until a signal ends it."""
    child = os.fork()
    if child == 0:
        try:
            time.sleep(60)
        finally:
            os._exit(0)
    return child


def test_a_forked_child_is_ended_by_its_own_signals_and_they_are_no_one_elses(ends_by_sigterm):
    with told_at([signal.SIGTERM]) as descriptor:
        child = forked()
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM
        assert select.select([descriptor], [], [], 0)[0] == []
        os.kill(os.getpid(), signal.SIGTERM)
        assert os.read(descriptor, 1) == bytes([signal.SIGTERM])


def test_a_child_that_lives_on_does_not_hold_up_the_end(ends_by_sigterm):
    with told_at([signal.SIGTERM]):
        child = forked()
    os.kill(child, signal.SIGKILL)  # only now: the body has ended beside it
    os.waitpid(child, 0)


def test_ctrl_c_is_answered_while_compiled_code_runs():
    """`plan tolerance --simulate` said nothing for 14 s after ctrl-C."""
    code = (
        "import os, signal, sys, time\n"
        "from crosswind.terminal.signals import answer_ctrl_c\n"
        "signal.signal(signal.SIGINT, lambda number, frame: None)\n"  # as where no Python code runs
        "said = []\n"
        "over = answer_ctrl_c(lambda: said.append('answered'), 0.0)\n"
        "os.kill(os.getpid(), signal.SIGINT)\n"
        "while not said: time.sleep(0.01)\n"
        "print(said[0])\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout == "answered\n"


def begun(over, then):
    """A thread that does something once the test is over."""
    thread = threading.Thread(target=lambda: (over.wait(), then()), daemon=True)
    thread.start()
    return thread


def for_futures(over):
    future = Future()
    begun(over, lambda: future.set_result(None))
    wait_for_all([future])


def for_a_thread(over):
    join(begun(over, lambda: None))


def on_threads(over, take):
    with threads(1) as pool:
        try:
            list(take(pool))
        except KeyboardInterrupt:
            over.set()  # what runs is waited for
            raise


def for_a_call(over):
    call = Call(lambda calls: None)
    begun(over, lambda: call.set_result(None))
    call.result()


def for_values_of_a_map(over):
    calls = MapCalls(abs, ([1],), True, None, Setting(1, plain=False, local=False, tries_once=True, tells_each=False))
    begun(over, lambda: calls.fail(AgentLost("the test is over")))
    calls.take(None)


WAITS = {
    "futures": for_futures,
    "a thread": for_a_thread,
    "results of threads": lambda over: on_threads(over, lambda pool: mapped(pool, lambda _: over.wait(), range(3))),
    "futures as they are done": lambda over: on_threads(over, lambda pool: as_done([pool.submit(over.wait)])),
    "a call of a farm": for_a_call,
    "values of a map": for_values_of_a_map,
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS)
def test_ctrl_c_that_wakes_no_wait_is_answered_all_the_same(wait):
    """It came just before the wait began: here another thread takes it, so that nothing wakes the main thread."""
    over, escaped = threading.Event(), []

    def interrupted():
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    def waits():
        timer.start()
        wait(over)

    escape = threading.Timer(60.0, lambda: (escaped.append(True), over.set()))
    escape.start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    timer = threading.Timer(0.05, interrupted)  # with the mask of this thread
    try:
        with pytest.raises(KeyboardInterrupt):
            waits()
    finally:
        timer.join()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        escape.cancel()
        over.set()
    assert not escaped
