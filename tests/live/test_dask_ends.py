"""Farms on Dask that end in any way: nothing waits for what cannot answer, the cause is named, and nothing is left."""

import asyncio
import gc
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

distributed = pytest.importorskip("distributed")

import cloudpickle  # noqa: E402
import farms  # noqa: E402
from dask_clusters import clean, left_in, stopping  # noqa: E402
from farms import PATIENCE_S, agents_of, slowly, wait_until  # noqa: E402

import crosswind  # noqa: E402
from crosswind import AgentLost, DescriptionError  # noqa: E402
from crosswind.cluster import client as cluster_client  # noqa: E402
from crosswind.run import dask as run_dask  # noqa: E402
from crosswind.run.agents import Limits  # noqa: E402
from crosswind.run.deployment import Placing  # noqa: E402

pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
cloudpickle.register_pickle_by_value(sys.modules[__name__])
SOON = Limits(start_s=1.0, silence_s=5.0)  # of agents that a busy host lets wait, too


@pytest.fixture
def impatient(monkeypatch):
    """Wait for the first answer only: the others do not come."""
    ask = cluster_client.ask

    def asked(client, function, given, *_, **__):
        return ask(client, function, given, 0.3, PATIENCE_S)

    monkeypatch.setattr(cluster_client, "ask", asked)
    monkeypatch.setattr(run_dask, "ask", asked)


def in_time(function, *arguments):
    """What a function returns, in a thread: one that waits for ever fails its test, and holds up no other."""
    found = Future()

    def run():
        try:
            found.set_result(function(*arguments))
        except BaseException as error:
            found.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return found.result(PATIENCE_S)


def pids_of(client):
    return list(client.run(os.getpid).values())


def test_a_worker_that_is_stopped_does_not_hold_up_the_answers_of_the_others(client):
    (first, pid), (second, other) = client.run(os.getpid).items()
    with stopping(pid) as stop:
        stop()
        answers = in_time(cluster_client.ask, client, os.getpid, {first: (), second: ()}, 0.3, PATIENCE_S)
    assert answers == ({second: other}, {}, [first])


@pytest.mark.parametrize("moment", ["before", "start", "middle", "end"])
def test_a_worker_that_is_stopped_holds_up_no_farm(client, impatient, monkeypatch, moment):
    before = clean(client)

    def run(stop):
        if moment == "before":
            stop()
        elif moment == "start":
            agents = run_dask.OnDask.agents
            monkeypatch.setattr(run_dask.OnDask, "agents", lambda *words: stop() or agents(*words))
        with crosswind.Farm(client, limits=SOON) as farm:
            if moment == "middle":
                stop()
            found = [call.result() for call in [farm.submit(slowly, number) for number in range(20)]]
            if moment == "end":
                stop()
        return found

    with stopping(pids_of(client)[0]) as stop:
        assert in_time(run, stop) == [number * number for number in range(20)]
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


def test_a_worker_that_does_not_answer_is_not_asked_to_end_its_agents(client, impatient, monkeypatch):
    asked = run_dask.ask
    ended = []

    def noted(client, function, given, *words, **options):
        ended.extend(given if function.__name__ == "end" else ())
        return asked(client, function, given, *words, **options)

    (_, pid), (other, _) = client.run(os.getpid).items()
    with crosswind.Farm(client, limits=SOON) as farm:
        assert list(farm.map(abs, range(20))) == list(range(20))
        monkeypatch.setattr(run_dask, "ask", noted)
        with stopping(pid) as stop:
            stop()
            in_time(farm.shutdown)
    assert ended == [other]


def pid_after_a_while(_):
    time.sleep(0.02)
    return os.getpid()


def test_a_worker_that_is_stopped_at_the_start_joins_when_it_continues(client, impatient):
    def run():
        with stopping(pids_of(client)[0]) as stop:
            stop()
            farm = crosswind.Farm(client, placing=Placing(per="worker"), limits=SOON)
            assert farm.submit(abs, -1).result() == 1
        with farm:
            wait_until(lambda: len(set(farm.map(pid_after_a_while, range(8)))) == 2, "the other worker")
        return [warning["code"] for warning in farm.run.warnings]

    assert "worker-silent" in in_time(run)


def test_when_no_worker_answers_that_is_said(client, monkeypatch):
    monkeypatch.setattr(cluster_client, "NONE_YET_S", 0.0)
    monkeypatch.setattr(cluster_client.ask, "__defaults__", (0.3, 0.0, None))
    with stopping(*pids_of(client)) as stop:
        stop()
        with pytest.raises(AgentLost, match="2 workers do not answer: tcp://") as refused:
            crosswind.Farm(client)
    assert "retire_workers" in refused.value.hint


def held_by(file):
    def call(number):
        import time

        Path(f"{file}.{number}").touch()
        while not Path(file).exists():
            time.sleep(0.01)
        return number

    return call


@pytest.mark.parametrize("with_stop", [False, True], ids=["", "one worker stopped"])
def test_calls_that_wait_at_nodes_of_a_cluster_are_cancelled(client, impatient, tmp_path, with_stop):
    pid = pids_of(client)[0]

    def run():
        with crosswind.Farm(client, limits=SOON) as farm:
            calls = [farm.submit(held_by(tmp_path / "go"), number) for number in range(40)]
            wait_until(calls[0].running, "the first call")
            if with_stop:
                stop()
            cancelled = [call.cancel() for call in calls]
            (tmp_path / "go").touch()
            assert [call.cancelled() for call in calls] == cancelled
            assert [call.result() for call in calls if not call.cancelled()] == [
                number for number, gone in enumerate(cancelled) if not gone
            ]
        return cancelled

    with stopping(pid, *agents_of(pid)) as stop:
        cancelled = in_time(run)
    begun = {int(path.suffix[1:]) for path in tmp_path.glob("go.*")}
    assert sum(cancelled) >= 30
    assert begun.isdisjoint(number for number, gone in enumerate(cancelled) if gone)


def test_a_loop_that_ends_leaves_no_call_of_a_cluster_to_begin(client, tmp_path):
    before = clean(client)

    def call(number):
        import time

        (tmp_path / f"begun.{number}").touch()
        time.sleep(0.05)  # all of them take 25 s

    def run():
        for _ in crosswind.map(call, range(1000), on=client, chunksize=1):
            break

    in_time(run)
    wait_until(lambda: left_in(client) == before, "the cluster as it was")
    assert len(list(tmp_path.glob("begun.*"))) < 1000


# Several farms at a time.


def test_farms_that_threads_make_at_the_same_time_all_work(cluster, client):
    before = clean(client)
    gate = threading.Barrier(4)

    def run(number):
        gate.wait(PATIENCE_S)
        if number % 2:
            return list(crosswind.map(lambda item: (number, item), range(10), on=client))
        with distributed.Client(cluster, set_as_default=False) as own, crosswind.Farm(own) as farm:
            return [call.result() for call in [farm.submit(divmod, number, item) for item in range(1, 11)]]

    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(run, range(4)))
    for number, results in enumerate(found):
        assert results == [(number, item) if number % 2 else divmod(number, item + 1) for item in range(10)]
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


def test_farms_in_threads_of_workers_in_this_process_leave_nothing():
    with (
        distributed.LocalCluster(n_workers=2, processes=False, dashboard_address=None, silence_logs=50) as cluster,
        distributed.Client(cluster, set_as_default=False) as client,
        ThreadPoolExecutor(2) as threads,
    ):
        maps = [threads.submit(lambda: list(crosswind.map(abs, [-1, 2], on=client))) for _ in range(2)]
        assert [found.result() for found in maps] == [[1, 2], [1, 2]]
        assert not any(plugins for _, _, plugins, _ in left_in(client)[0].values())


# Programs that end without closing.

ENDS = {
    "exit": "sys.exit(3)",
    "exception": "raise ValueError",
    "client first": "client.close()",
    "terminated": "os.kill(os.getpid(), signal.SIGTERM)",
    "killed": "os.kill(os.getpid(), signal.SIGKILL)",
    "_exit": "os._exit(3)",
    "killed as it starts": "",
}
PROGRAM = """
import os, signal, sys, distributed, crosswind
client = distributed.Client(sys.argv[1], set_as_default=False)
if not {end!r}:
    distributed.Client.submit = lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL)
farm = crosswind.Farm(client)
calls = [farm.submit(pow, 2, number) for number in range(20)]
assert calls[3].result() == 8
{end}
"""


@pytest.mark.parametrize("how", ENDS)
def test_a_program_that_ends_without_closing_its_farm_leaves_nothing_in_the_cluster(cluster, client, how):
    before = clean(client)
    command = [sys.executable, "-c", PROGRAM.format(end=ENDS[how]), cluster.scheduler_address]
    done = subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    assert b"AssertionError" not in done.stderr
    wait_until(lambda: left_in(client) == before, "the cluster as it was", patience_s=3 * PATIENCE_S)


def test_a_program_that_is_killed_leaves_nothing_while_tasks_of_dask_keep_every_thread(cluster, client):
    before = clean(client)
    over = distributed.Event("over", client=client)
    busy = client.map(lambda _: distributed.Event("over").wait(60), range(2), pure=False)
    command = [sys.executable, "-c", PROGRAM.format(end=ENDS["killed"]), cluster.scheduler_address]
    subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE_S)
    wait_until(lambda: not any(plugins for _, _, plugins, _ in left_in(client)[0].values()), "no plugin")
    assert not any(task.done() for task in busy)
    over.set()
    client.gather(busy)
    del busy
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


def test_a_farm_that_is_dropped_ends_with_its_last_call(client):
    before = clean(client)
    farm = crosswind.Farm(client)
    call = farm.submit(abs, -1)
    del farm
    assert call.result() == 1
    del call
    gc.collect()
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


# Interrupts.


@pytest.fixture
def patient(monkeypatch):
    """Wait for answers for as long as a test may take, unless something cuts that short."""
    for module in (cluster_client, run_dask):
        monkeypatch.setattr(module, "PATIENCE_S", 2 * PATIENCE_S)
    monkeypatch.setattr(run_dask, "END_PATIENCE_S", 2 * PATIENCE_S)


@pytest.mark.parametrize("stopped", ["a worker", "all workers", "its agents"])
def test_an_interrupt_waits_for_no_worker_that_is_stopped(client, patient, stopped):
    before = clean(client)

    def run():
        with crosswind.Farm(client) as farm:
            calls = [farm.submit(slowly, number) for number in range(100)]
            calls[2].result()
            pids = pids_of(client)
            stop(*{"a worker": pids[:1], "all workers": pids, "its agents": agents_of(pids[0])}[stopped])
            raise KeyboardInterrupt

    with stopping() as stop, pytest.raises(KeyboardInterrupt):
        in_time(run)
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


def test_an_interrupt_ends_a_close_that_waits_for_a_worker(client, patient):
    before = clean(client)
    farm = crosswind.Farm(client)
    calls = [farm.submit(slowly, number) for number in range(20)]
    assert [call.result() for call in calls] == [number * number for number in range(20)]
    with stopping(pids_of(client)[0]) as stop:
        stop()
        closing = threading.Thread(target=farm.shutdown, daemon=True)
        closing.start()
        wait_until(lambda: farm._run.live.ended(0.0), "the end of the run")
        farm.interrupt()
        closing.join(PATIENCE_S)
        assert not closing.is_alive()
    wait_until(lambda: left_in(client) == before, "the cluster as it was")


# What ended a run.


def test_a_client_that_is_closed_is_named_as_the_cause(cluster):
    client = distributed.Client(cluster, set_as_default=False)
    with crosswind.Farm(client, limits=SOON) as farm:
        calls = [farm.submit(abs, number) for number in range(3)]
        assert calls[2].result() == 2
        client.close()
        held = farm.submit(abs, -3)
        with pytest.raises(AgentLost, match="the Dask client is closed; keep it open until the farm is closed"):
            wait_until(lambda: farm.submit(abs, -3).exception(PATIENCE_S) is None and False, "the end of the run")
        assert held.done()


def test_tasks_that_are_cancelled_in_dask_are_named_or_come_again(client):
    with crosswind.Farm(client, placing=Placing(per="worker"), limits=SOON) as farm:
        assert farm.submit(abs, -1).result() == 1
        client.cancel([distributed.Future(key, client) for key in list(client.futures) if "crosswind" in key][:1])
        assert [farm.submit(slowly, number).result(PATIENCE_S) for number in range(40)] == [n * n for n in range(40)]


# What a farm does not take.


def test_a_client_that_is_asynchronous_or_closed_is_refused_by_name(cluster):
    async def made():
        async with distributed.Client(cluster.scheduler_address, asynchronous=True, set_as_default=False) as client:
            for refused in (crosswind.Farm, lambda client: crosswind.map(abs, [1], on=client)):
                with pytest.raises(DescriptionError, match="asynchronous"):
                    refused(client)

    asyncio.run(made())
    with distributed.Client(cluster, set_as_default=False) as client:
        pass
    with pytest.raises(AgentLost, match="the Dask client is closed"):
        crosswind.Farm(client)
