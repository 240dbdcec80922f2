"""Parallel programs that share this machine's processors: their quanta, the file, what a kill leaves."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from crosswind.experiment import Experiment
from crosswind.run import jobs
from crosswind.run.quanta import Quanta
from crosswind.run.ranks import RankLimits
from crosswind.run.results import Runs

pytestmark = pytest.mark.live

WORK_S = 0.002
BARRIERS = str(Path(__file__).parents[2] / "examples" / "barriers_of_two.toml")


def job(name="job", ranks=1, iterations=100, **more):
    parameters = {"iterations": iterations, "work_s": WORK_S}
    workload = {"kind": "program", "program": "bsp", "ranks": ranks, "parameters": parameters}
    document = {"schema_version": 1, "name": name, "workload": workload, "execution": {"compute": "burn"}, **more}
    return Experiment.from_dict(document)


def two_jobs(**more):
    ranks = min(len(os.sched_getaffinity(0)), 2)
    return [job("first", ranks, **more), job("second", ranks, **more)]


def state(pid):
    """State of a process, such as R, S, T (stopped) or t (stopped by a tracer); Z where it has ended."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return "Z"


def line_of(pid):
    """Command line of a process; nothing where it has ended."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def waits_until(true, seconds=60.0):
    end = time.monotonic() + seconds
    while not (found := true()):
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)
    return found


@pytest.mark.parametrize("iterations", [100, 500])
@pytest.mark.parametrize("schedule", ["gang", "local"])
def test_a_processor_is_never_given_to_a_job_before_the_other_one_is_stopped(schedule, iterations):
    points = [jobs._point_of(one, 0) for one in two_jobs(iterations=iterations)]
    ranks = points[0].description["workload"]["ranks"]
    quanta = Quanta.gang(2, ranks, 0.02) if schedule == "gang" else Quanta.local(2, ranks, 0.02, seed=3)
    found = jobs.together(points, quanta, 0.0, RankLimits())
    assert {one.processor for one in found.switched} == set(range(ranks))
    for processor in range(ranks):
        own = [one for one in found.switched if one.processor == processor]
        assert [one.job for one in own] == [(own[0].job + place) % 2 for place in range(len(own))]
        for one in own[:-1]:  # at the last one, a job may have ended
            assert one.planned_ns <= one.stopped_ns <= one.continued_ns
    by_time = {}
    for one in found.switched:
        by_time.setdefault(one.planned_ns, []).append(one)
    for together in list(by_time.values())[:-1]:
        assert max(one.stopped_ns for one in together) <= min(one.continued_ns for one in together)
        if schedule == "gang":
            assert len({one.job for one in together}) == 1
            assert len(together) == ranks
    busy_s = [json.loads(conductor.entry(1.0))["busy_s"]["min"] for conductor in found.conductors]
    assert min(busy_s) >= iterations * WORK_S


def test_the_file_has_each_job_alone_under_each_schedule_and_simulated(tmp_path):
    done = jobs.run_jobs(two_jobs(iterations=20, repetitions=2), quantum_s=0.01, spin_s=0.0001)
    found = [(run.params["schedule"], run.params["on"], run.params["job"]) for run in done]
    once = [("alone", "local", name) for name in ("first", "second")]
    for schedule in ("local", "gang", "block", "implicit"):
        once += [(schedule, "local", name) for name in ("first", "second")]
        if schedule in ("local", "gang"):
            once += [(schedule, "sim", name) for name in ("first", "second")]
    assert found == once * 2
    for run in done:
        has_quanta = run.params["schedule"] in ("local", "gang")
        assert run.data["compute"] == ("simulated" if run.params["on"] == "sim" else "burn")
        assert (run.data.get("switches") is not None) <= (has_quanta and run.params["on"] == "local")
        assert run.data["disturbance"] == (run.params["schedule"] if has_quanta else None)
    assert all(run.slowdown_dedicated == 1.0 for run in done if run.params["schedule"] == "alone")
    done.save(tmp_path / "runs.json")
    assert Runs.load(tmp_path / "runs.json").summary() == done.summary()


# Says which processes the ranks are, and runs both jobs in a gang.
GANG = """
import json, sys
from crosswind.run import jobs
start = jobs.RankProcesses.start
def say(self, ranks, *more):
    start(self, ranks, *more)
    print(*(self.pid(rank) for rank in range(ranks)), flush=True)
jobs.RankProcesses.start = say
points = [jobs._point_of(jobs.Experiment.from_dict(job), 0) for job in json.loads(sys.argv[1])]
ranks = points[0].description["workload"]["ranks"]
jobs.together(points, jobs.Quanta.gang(2, ranks, 1.0), 0.0, jobs.RankLimits())
"""


@pytest.mark.parametrize("end", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_however_it_ends_no_rank_is_left_stopped_and_none_is_left(end, tmp_path):
    described = [one.to_dict() for one in two_jobs(iterations=100_000)]
    command = [sys.executable, "-c", GANG, json.dumps(described)]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE, text=True) as process:
        try:
            pids = [int(word) for _ in range(2) for word in process.stdout.readline().split()]
            assert len(pids) == 2 * min(len(os.sched_getaffinity(0)), 2)
            waits_until(lambda: any(state(pid) in ("t", "T") for pid in pids))
            process.send_signal(end)
            process.wait(60)
        finally:
            process.kill()
    waits_until(lambda: all(state(pid) == "Z" for pid in pids))


def test_ctrl_c_ends_the_jobs_and_leaves_no_rank(tmp_path):
    ranks_here = min(len(os.sched_getaffinity(0)), 2)
    words = ["run", BARRIERS, "--on", "local", "--beside", BARRIERS, "--set", f"workload.ranks={ranks_here}"]
    words += ["--set", "workload.parameters.iterations=100000"]
    command = [sys.executable, "-m", "crosswind.cli", *words]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, process_group=0) as process:

        def ranks():
            children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
            return [int(pid) for pid in children if b"crosswind.run.rank" in line_of(pid)]

        found = waits_until(ranks)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
    assert process.returncode == 130
    waits_until(lambda: all(state(pid) == "Z" for pid in found))
