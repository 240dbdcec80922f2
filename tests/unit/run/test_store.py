"""Results of a map in a directory: written by a thread of the store's own, so that the disk holds no answer back."""

import threading
from concurrent.futures import Future

import pytest

from crosswind.run.store import Store


def test_a_call_is_answered_while_the_disk_still_writes_the_result_of_another(tmp_path, monkeypatch):
    writes, may_write = threading.Event(), threading.Event()
    write = Store._write

    def waiting(store, name, data):
        writes.set()
        assert may_write.wait(60)
        write(store, name, data)

    monkeypatch.setattr(Store, "_write", waiting)
    with Store(tmp_path, abs, None, resume=True) as store:
        calls = [Future(), Future()]
        kept = [store.kept(f"{number}.pickle", call) for number, call in enumerate(calls)]
        for number, call in enumerate(calls):  # as the thread that reads the farm's results does
            call.set_result(number)
        assert writes.wait(60)
        assert not any(future.done() for future in kept)
        may_write.set()
    assert [future.result(60) for future in kept] == [0, 1]
    assert [store.known(f"{number}.pickle").result() for number in range(2)] == [0, 1]


def test_what_a_call_raised_and_a_disk_that_is_full_are_errors_of_the_call(tmp_path, monkeypatch):
    def full(store, name, data):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Store, "_write", full)
    with Store(tmp_path, abs, None, resume=True) as store:
        calls = [Future(), Future()]
        kept = [store.kept("a.pickle", call) for call in calls]
        calls[0].set_exception(ZeroDivisionError("in the call"))
        calls[1].set_result(1)
    with pytest.raises(ZeroDivisionError, match="in the call"):
        kept[0].result(60)
    with pytest.raises(OSError, match="No space left"):
        kept[1].result(60)


def test_a_call_that_ends_after_the_store_is_an_error_and_nothing_waits_for_it(tmp_path):
    with Store(tmp_path, abs, None, resume=True) as store:
        call = Future()
        kept = store.kept("late.pickle", call)
    call.set_result(1)
    with pytest.raises(RuntimeError):
        kept.result(60)
