"""A Dask cluster that breaks under a farm: the tree needs the scheduler for nothing but who comes and goes."""

import os
import pickle
import signal
import subprocess
import sys

import cloudpickle
import farms
import pytest
from farms import point, slowly, tree, value, wait_until

from crosswind.errors import AgentLost
from crosswind.run.dask import OnDask
from crosswind.run.deployment import Placing
from crosswind.run.local import Limits, Task, Work, run_farm

distributed = pytest.importorskip("distributed")
pytestmark = pytest.mark.live

cloudpickle.register_pickle_by_value(farms)
COUNT = 300


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
        limits = Limits(start_s=2.0, silence_s=1.0)
        work = Work("callable", function=slowly)
        options = {"source": source, "sink": sink, "launch": launch, "limits": limits, "journal": journal}
        run_farm(tree("r", "a<r", "b<r"), point(), work, resume=resume, **options)

    wait_until(file.exists, "the scheduler")
    # Whoever asks the cluster for something waits so long for a scheduler that is gone.
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
