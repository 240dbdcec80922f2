"""Map, Farm and commands: what a user's calls come to, whatever the agents do. (tests/live has real agents.)"""

import contextlib
import os
import threading
import time
from contextlib import suppress

import pytest
from in_process import InProcess

import crosswind
from crosswind import AgentLost, DescriptionError, Platform
from crosswind.run import call_run
from crosswind.run.batches import MOST
from crosswind.run.calls import RemoteTraceback
from crosswind.run.command import map_command
from crosswind.run.this_machine import here, point_of


@pytest.fixture(autouse=True)
def agents(monkeypatch):
    monkeypatch.setattr(call_run, "LiveFarm", InProcess)
    InProcess.lost_after = None


def fails_at_7(item):
    if item == 7:
        raise ValueError("seven")
    return item * item


class Unpicklable:
    def __reduce__(self):
        raise TypeError("never")


def test_results_come_in_the_order_of_the_items():
    assert list(crosswind.map(lambda x: x * x, range(200))) == [x * x for x in range(200)]


def test_results_come_as_completed_when_asked():
    assert sorted(crosswind.map(lambda x: x * x, range(200), ordered=False)) == [x * x for x in range(200)]


def test_items_are_taken_lazily_so_that_they_may_be_endless():
    taken = []

    def endless():
        number = 0
        while True:
            taken.append(number)
            yield number
            number += 1

    results = crosswind.map(abs, endless(), platform=here(2))
    assert [next(results) for _ in range(5)] == [0, 1, 2, 3, 4]
    results.close()
    assert len(taken) <= 5 + 2 * 2 * 8 * MOST


def test_an_exception_is_raised_at_its_item_with_the_traceback_of_the_node():
    results = crosswind.map(fails_at_7, range(20))
    assert [next(results) for _ in range(7)] == [x * x for x in range(7)]
    with pytest.raises(ValueError, match="seven") as raised:
        next(results)
    assert isinstance(raised.value.__cause__, RemoteTraceback)
    assert "fails_at_7" in str(raised.value.__cause__)
    assert "cpu0" in str(raised.value.__cause__)


def test_what_cannot_be_sent_back_is_an_error_of_that_call_alone():
    with crosswind.Farm() as farm:
        bad, good = farm.submit(Unpicklable), farm.submit(pow, 2, 10)
        assert good.result() == 1024
        with pytest.raises(TypeError, match="never"):
            bad.result()


def test_an_exception_that_cannot_be_pickled_as_it_is_keeps_its_type():
    class Odd(Exception):
        def __init__(self, one, two):
            super().__init__(one)

    def raises():
        raise Odd("what it said", 2)

    with crosswind.Farm() as farm, pytest.raises(Odd, match="what it said"):
        farm.submit(raises).result()


def test_a_farm_is_an_executor():
    with crosswind.Farm() as farm:
        assert list(farm.map(pow, [2, 3], [5, 2])) == [32, 9]
        assert farm.submit(sorted, [3, 1, 2], reverse=True).result() == [3, 2, 1]
    assert farm.run is not None
    with pytest.raises(RuntimeError, match="after shutdown"):
        farm.submit(abs, 1)
    farm.shutdown()


def test_calls_fail_when_no_agent_is_left():
    InProcess.lost_after = 0
    farm = crosswind.Farm()
    calls = []
    with contextlib.suppress(AgentLost):  # the run may be over before all are handed over
        calls += [farm.submit(abs, 0)]
        calls += [farm.submit(abs, k) for k in range(50)]
    assert calls
    for call in calls:
        with pytest.raises(AgentLost, match="no agent is left"):
            call.result(timeout=30)
    with pytest.raises(AgentLost):
        farm.submit(abs, 1)
    farm.shutdown()


def test_calls_that_have_not_begun_can_be_cancelled():
    farm = crosswind.Farm()
    calls = [farm.submit(time.sleep, 0.01) for _ in range(1000)]
    farm.shutdown(cancel_futures=True)
    assert all(call.done() for call in calls)
    assert any(call.cancelled() for call in calls)


def mapped(items, out, **options):
    """What map yields, and what it called for: functions travel, so calls are noted in a file."""
    log = out.parent / "calls"
    log.write_text("")

    def plus_one(item):
        with log.open("a") as file:
            file.write(f"{item}\n")
        return item + 1

    values = list(crosswind.map(plus_one, items, out=out, **options))
    return values, sorted(int(line) for line in log.read_text().split())


def test_results_are_kept_and_a_missing_or_torn_one_is_made_again(tmp_path):
    out = tmp_path / "out"
    first, calls = mapped(range(5), out)
    files = sorted(out.glob("*.pickle"))
    assert (first, calls, len(files)) == ([1, 2, 3, 4, 5], [0, 1, 2, 3, 4], 5)
    files[0].unlink()
    files[1].write_bytes(files[1].read_bytes()[:-3])
    again, calls = mapped(range(5), out, resume=True)
    assert (again, len(calls)) == (first, 2)
    assert mapped(range(5), out, resume=True) == (first, [])


def test_items_are_known_by_what_they_are_not_by_their_place(tmp_path):
    out = tmp_path / "out"
    assert mapped([1, 2, 3], out) == ([2, 3, 4], [1, 2, 3])
    assert mapped([0, 3, 1, 2, 2], out, resume=True) == ([1, 4, 2, 3, 3], [0, 2])
    assert mapped([0, 3, 1, 2, 2], out, resume=True) == ([1, 4, 2, 3, 3], [])


def test_a_key_says_what_an_item_is_known_by(tmp_path):
    out = tmp_path / "out"
    assert mapped([10, 20], out, key=lambda item: item // 10) == ([11, 21], [10, 20])
    assert mapped([11, 25, 30], out, key=lambda item: item // 10, resume=True) == ([11, 21, 31], [30])


def test_a_function_whose_code_has_changed_is_called_again(tmp_path):
    assert list(crosswind.map(lambda x: x + 1, [1, 2], out=tmp_path)) == [2, 3]
    assert list(crosswind.map(lambda x: x + 2, [1, 2], out=tmp_path, resume=True)) == [3, 4]


def test_two_at_once_into_one_directory_are_refused_with_the_holders_pid(tmp_path):
    first = crosswind.map(abs, [1, 2], out=tmp_path)
    next(first)
    with pytest.raises(DescriptionError, match=f"another run writes its results here: process {os.getpid()} on "):
        list(crosswind.map(abs, [1, 2], out=tmp_path, resume=True))
    first.close()
    assert list(crosswind.map(abs, [1, 2], out=tmp_path, resume=True)) == [1, 2]


def test_progress_is_told():
    told = []
    list(crosswind.map(abs, range(4), progress=lambda fraction, message: told.append((fraction, message))))
    assert [fraction for fraction, _ in told] == [0.25, 0.5, 0.75, 1.0]


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"on": "dask"}, "on is 'dask'"),
        ({"resume": True}, "without out"),
        ({"key": abs}, "key is given without"),
        ({"buffer_tasks": 0}, "buffer_tasks is 0"),
        ({"placing": crosswind.Placing(per="worker")}, "on is local"),
    ],
)
def test_a_wrong_argument_is_named(wrong, says):
    with pytest.raises(DescriptionError, match=says):
        list(crosswind.map(abs, [1], **wrong))


def test_a_placing_without_a_client_is_refused():
    with pytest.raises(DescriptionError, match="placing is given without a client"):
        crosswind.Farm(placing=crosswind.Placing(per="worker"))


def test_links_that_sends_show_are_followed_unless_the_order_looks_at_none():
    followed = {order: point_of("f", 1, 1.0, order, None)["policy"]["adapt"] for order in ("interference", "arrival")}
    assert followed == {"interference": True, "arrival": False}


def test_this_machine_is_a_root_that_hands_out_and_a_node_per_cpu():
    platform = here(3)
    assert [node["compute_per_s"] for node in platform.nodes] == [0.0, 1.0, 1.0, 1.0]
    assert isinstance(platform, Platform)


@pytest.mark.parametrize(
    ("inputs", "name", "says"),
    [
        (["none/*"], "{name}", "no file matches"),
        (["none/x"], "{name}", "no such file"),
        (["a"], "{name}", "a directory"),
        ([], "{name}", "there are no inputs"),
        (["a/x", "b/x"], "{name}", "would both become 'x'"),
        (["a/x"], "{nam}", "there is no {nam}"),
        (["a/x"], "../{name}", "outside of --out"),
        (["a/x"], "", "no name of a file"),
    ],
)
def test_a_command_over_wrong_inputs_is_refused_before_anything_runs(tmp_path, monkeypatch, inputs, name, says):
    monkeypatch.chdir(tmp_path)
    for directory in "ab":
        (tmp_path / directory).mkdir()
        (tmp_path / directory / "x").write_text("x")
    with pytest.raises(DescriptionError, match=says):
        map_command("cat {}", inputs, tmp_path / "out", name=name)


def test_each_result_goes_to_one_of_the_threads_that_take_them():
    results, found = crosswind.map(abs, range(4_000), platform=here(2)), []

    def by_loop():
        for value in results:
            found.append(value)

    def by_next():
        with suppress(StopIteration):
            while True:
                found.append(next(results))

    threads = [threading.Thread(target=take) for take in (by_loop, by_next, by_loop, by_next)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(found) == list(range(4_000))


def test_results_are_taken_in_their_order_by_loops_and_by_next_alike():
    results = crosswind.map(abs, range(300), platform=here(2))
    assert next(results) == 0
    for value in results:
        assert next(results) == value + 1
        if value > 100:
            break
    assert next(iter(results)) == value + 2


def test_what_raises_stop_iteration_does_not_end_the_results():
    def raises(item):
        raise StopIteration

    with pytest.raises(RuntimeError, match="the function raised StopIteration"):
        list(crosswind.map(raises, range(3), platform=here(2)))
