"""A Dask cluster that breaks under a farm: the tree needs the scheduler only to learn which workers come and go."""

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import cloudpickle
import farms
import pytest
from dask_clusters import stopping
from farms import point, slowly, tree, value, wait_until

import crosswind
from crosswind.cluster import client as cluster_client
from crosswind.errors import AgentLost
from crosswind.run.agents import Limits, Task, Work, run_farm
from crosswind.run.dask import OnDask
from crosswind.run.deployment import Placing

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
COUNT = 300
CAUSE = r"all agents are lost, .*: the Dask scheduler at tcp://127\.0\.0\.1:\d+ has gone; start the cluster again"


@pytest.fixture
def cluster(tmp_path):
    """A scheduler and two workers as processes of their own: the scheduler's, and the file that says where it is."""
    file = tmp_path / "scheduler.json"
    where = ["--scheduler-file", str(file)]
    command = [sys.executable, "-m", "distributed.cli"]
    scheduler = [f"{command[2]}.dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *where]
    worker = [f"{command[2]}.dask_worker", "--nthreads", "1", "--no-nanny", "--no-dashboard", *where]
    with (tmp_path / "cluster.log").open("wb") as log:
        processes = [
            subprocess.Popen([*command[:2], *words], stdout=log, stderr=log, start_new_session=True, cwd=tmp_path)
            for words in (scheduler, worker, worker)
        ]
    yield processes[0], file
    for process in processes:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def test_a_scheduler_that_is_killed_loses_no_result(cluster, tmp_path):
    scheduler, file = cluster
    journal = tmp_path / "journal"
    answers = {}

    def run(launch, resume, at=lambda: None):
        def sink(result):
            assert result.task not in answers, f"task {result.task} was delivered twice"
            answers[result.task] = value(result)
            at()

        source = (Task(pickle.dumps(number)) for number in range(COUNT))
        limits = Limits(start_s=2.0)
        work = Work("callable", function=slowly)
        options = {"source": source, "sink": sink, "launch": launch, "limits": limits, "journal": journal}
        run_farm(tree("r", "a<r", "b<r"), point(), work, resume=resume, **options)

    wait_until(file.exists, "the scheduler")
    # A request to the cluster waits so long for a scheduler that is gone.
    with distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2, timeout=20)
        lost = None
        try:
            run(OnDask(client, Placing(per="worker")), False, lambda: len(answers) == 20 and scheduler.kill())
        except AgentLost as error:  # workers that close without their scheduler take their agents along
            lost = error
    assert scheduler.poll() is not None
    if lost is not None:
        assert "all agents are lost" in str(lost)
        run(None, True)
    assert answers == {number: number * number for number in range(COUNT)}


def test_when_the_scheduler_is_gone_and_its_agents_with_it_every_future_ends(cluster):
    scheduler, file = cluster
    wait_until(file.exists, "the scheduler")
    with distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2, timeout=20)
        with crosswind.Farm(client, limits=Limits(start_s=2.0)) as farm:
            calls = [farm.submit(time.sleep, 3600) for _ in range(20)]
            wait_until(calls[0].running, "the first call")
            scheduler.kill()
            for agent in agents_under(file.parent):
                with contextlib.suppress(ProcessLookupError):  # it has seen the end of its scheduler itself
                    os.kill(agent, signal.SIGKILL)
            for call in calls:
                with pytest.raises(AgentLost, match=CAUSE):
                    call.result(timeout=90)
            with pytest.raises(AgentLost, match=f"the farm's run is over: {CAUSE}"):
                farm.submit(abs, 1)


def agents_under(directory):
    """Agents that a cluster's workers have started: like those, they work in that directory. Not their watchdogs."""
    found = {}
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and (entry / "cwd").readlink() == directory:
                words = (entry / "cmdline").read_bytes()
                about = (entry / "stat").read_text().rsplit(")", 1)[1].split()
                if b"crosswind.run.agent" in words:
                    found[int(entry.name)] = int(about[1])
    return [pid for pid, parent in found.items() if parent not in found]


def test_a_task_that_ends_its_agents_on_one_worker_is_given_up_and_the_others_are_done(cluster):
    def deadly(number):
        if number == 3:
            os._exit(0)
        return number

    _, file = cluster
    wait_until(file.exists, "the scheduler")
    with distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2, timeout=20)
        with crosswind.Farm(client) as farm:  # one agent: both workers are on this host
            calls = [farm.submit(deadly, number) for number in range(20)]
            for number, call in enumerate(calls):
                if number == 3:
                    with pytest.raises(crosswind.CallError, match="computed 5 times when an agent was lost"):
                        call.result(timeout=120)
                else:
                    assert call.result(timeout=120) == number


def test_an_inner_node_that_is_killed_loses_no_call(cluster):
    _, file = cluster
    wait_until(file.exists, "the scheduler")
    with distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2, timeout=20)
        placing, limits = Placing(per="worker"), Limits(start_s=10.0)
        with crosswind.Farm(client, platform=tree("r", "a<r", "b<a"), placing=placing, limits=limits) as farm:
            calls = [farm.submit(slowly, number) for number in range(COUNT)]
            calls[20].result(timeout=60)
            (inner,) = [pid for pid in agents_under(file.parent) if name_of(pid) == "a"]
            os.kill(inner, signal.SIGKILL)
            assert [call.result(timeout=120) for call in calls] == [number * number for number in range(COUNT)]
            computed = {node["name"]: node["tasks"] for node in farm.shutdown() or farm.run.nodes}
    assert "agent-lost" in {event["code"] for event in farm.run.events}
    assert sum(computed.values()) == COUNT


def name_of(pid):
    words = Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    return words[words.index(b"--name") + 1].decode()


def test_a_scheduler_that_is_stopped_holds_up_nothing(cluster, monkeypatch):
    monkeypatch.setattr(cluster_client, "PATIENCE_S", 0.5)  # what is waited for does not come
    scheduler, file = cluster
    wait_until(file.exists, "the scheduler")
    with distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2, timeout=20)
        farm = crosswind.Farm(client)
        assert farm.submit(abs, -1).result() == 1
        with stopping(scheduler.pid) as stop, ThreadPoolExecutor(1) as thread:
            stop()
            assert [call.result(60) for call in [farm.submit(slowly, number) for number in range(9)]][-1] == 64
            thread.submit(farm.shutdown).result(60)
            with pytest.raises(AgentLost, match=r"the Dask scheduler at tcp://127.* does not answer"):
                thread.submit(crosswind.Farm, client).result(60)


def test_when_all_workers_are_killed_that_is_named_as_the_cause(cluster):
    _, file = cluster
    wait_until(file.exists, "the scheduler")
    with distributed.Client(scheduler_file=str(file), set_as_default=False, timeout=5) as client:
        client.wait_for_workers(2, timeout=20)
        pids = client.run(os.getpid).values()
        with crosswind.Farm(client, limits=Limits(start_s=2.0)) as farm:
            calls = [farm.submit(time.sleep, 3600) for _ in range(4)]
            wait_until(calls[0].running, "the first call")
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            with pytest.raises(AgentLost, match=r"worker tcp://.* has gone, .*the cluster has no worker; start some"):
                calls[0].result(90)
