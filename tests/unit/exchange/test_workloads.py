"""Workloads of other tools as tasks: the Standard Workload Format and Batsim's JSON."""

from __future__ import annotations

import gzip
import json

import pytest
from typer.testing import CliRunner

import crosswind
from crosswind.cli import app
from crosswind.errors import DescriptionError

SWF = """; Version: 2.2
;  UnixStartTime: 843482532

1   100  5  60  1 -1 -1  1 -1 -1  1  7 1 1 1 1 -1 -1
2   130  0  30  4 -1 -1  4 -1 -1  1  8 1 1 1 1 -1 -1
3   120  0  90 -1 -1 -1  1 -1 -1  0  9 1 1 1 1 -1 -1
4   140  0  -1  1 -1 -1  1 -1 -1  5  7 1 1 1 1 -1 -1
5   150  0  10  1 -1 -1  1 -1 -1  2  7 1 1 1 1 -1 -1
6   160  0  10 -1 -1 -1 -1 -1 -1  1  7 1 1 1 1 -1 -1
7   -1   0  10  1 -1 -1  1 -1 -1  1  7 1 1 1 1 -1 -1
"""


def write(tmp_path, content, name="w.swf"):
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def batsim(tmp_path, jobs, profiles):
    return write(tmp_path, json.dumps({"nb_res": 4, "jobs": jobs, "profiles": profiles}), "w.json")


def test_swf_jobs_of_one_processor_are_tasks(tmp_path):
    found = crosswind.import_tasks(write(tmp_path, SWF), work_per_s=2.0)
    assert [(task.release_s, task.work) for task in found.tasks] == [(0.0, 120.0), (20.0, 180.0)]
    assert found.jobs == 7
    assert found.left_out == {
        "several processors": 1,
        "no run time": 1,
        "part of a job that was interrupted": 1,
        "no number of processors": 1,
        "no submit time": 1,
    }


def test_a_job_is_split_into_a_task_for_each_processor(tmp_path):
    found = crosswind.import_tasks(write(tmp_path, SWF), parallel="split")
    assert [(task.release_s, task.work) for task in found.tasks] == [(0.0, 60.0), (20.0, 90.0)] + 4 * [(30.0, 30.0)]


def test_gzip_is_unpacked_and_jobs_are_limited(tmp_path):
    packed = write(tmp_path, gzip.compress(SWF.encode()), "w.swf.gz")
    assert crosswind.import_tasks(packed).tasks == crosswind.import_tasks(write(tmp_path, SWF)).tasks
    assert crosswind.import_tasks(packed, jobs=1).jobs == 1
    with pytest.raises(DescriptionError, match="cut short"):
        crosswind.import_tasks(write(tmp_path, packed.read_bytes()[:-12]))


def test_a_gzip_file_of_several_members_is_read_to_its_end(tmp_path):
    halves = ["1 0 0 60 1 -1 -1 1 -1 -1 1 7 1 1 1 1 -1 -1\n", "2 5 0 30 1 -1 -1 1 -1 -1 1 7 1 1 1 1 -1 -1\n"]
    packed = tmp_path / "two.swf.gz"
    packed.write_bytes(b"".join(gzip.compress(half.encode()) for half in halves))
    assert [task.work for task in crosswind.import_tasks(packed).tasks] == [60.0, 30.0]


def test_a_job_of_very_many_processors_does_not_fill_memory(tmp_path):
    path = write(tmp_path, "1 0 0 9 1e15 -1 -1 8 -1 -1 1 7 1 1 1 1 -1 -1\n")
    with pytest.raises(DescriptionError, match="1,000,000,000,000,000 tasks, one for each processor"):
        crosswind.import_tasks(path, parallel="split")


def test_batsim_profiles_that_compute_are_tasks(tmp_path):
    profiles = {
        "wait": {"type": "delay", "delay": 20},
        "one": {"type": "parallel", "cpu": [3e9], "com": [0]},
        "each": {"type": "parallel_homogeneous", "cpu": 2e9, "com": 0},
        "all": {"type": "msg_par_hg_tot", "cpu": 8e9},
        "mpi": {"type": "smpi", "trace": "x"},
        "talks": {"type": "parallel_homogeneous", "cpu": 2e9, "com": 5},
    }
    order = [("wait", 1), ("one", 1), ("each", 2), ("all", 4), ("mpi", 1), ("talks", 2)]
    jobs = [{"id": str(n), "subtime": n, "walltime": 99, "res": r, "profile": p} for n, (p, r) in enumerate(order)]
    found = crosswind.import_tasks(batsim(tmp_path, jobs, profiles), parallel="split", work_per_s=0.5)
    works = [(0.0, 10.0), (1.0, 3.0), *2 * [(2.0, 2.0)], *4 * [(3.0, 2.0)]]
    assert [(task.release_s, task.work) for task in found.tasks] == works
    assert found.left_out == {"a profile of type smpi": 1, "processors that exchange messages": 1}


def test_the_command_writes_a_file_that_an_experiment_runs(tmp_path):
    out = tmp_path / "tasks.csv"
    done = CliRunner().invoke(app, ["tasks", str(write(tmp_path, SWF)), "--size-mb", "2", "-o", str(out)])
    assert done.exit_code == 0, done.output
    assert "2 tasks of 2 jobs: 150 work units" in done.output
    assert "several processors" in done.output
    (tmp_path / "e.toml").write_text(
        'schema_version = 1\nname = "recorded"\n[platform]\nschema_version = 1\nname = "p"\n'
        '[[platform.node]]\nname = "r"\ncompute_per_s = 1.0\n[workload]\nkind = "farm"\ntasks_file = "tasks.csv"\n'
    )
    (run,) = crosswind.run(tmp_path / "e.toml")
    assert run.makespan_s == pytest.approx(150.0)  # one after the other
    assert run.flow is not None
    assert run.flow["mean_s"] == pytest.approx((60 + 130) / 2)
    again = CliRunner().invoke(app, ["tasks", str(tmp_path / "w.swf"), "-o", str(out)])
    assert again.exit_code == 0, again.output  # an older result of the same kind


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("1 2 3\n", r"w.swf:1: the line has 3 fields"),
        ("1 x 0 60 1 -1 -1 1 -1 -1 1 7 1 1 1 1 -1 -1\n", "w.swf:1: submit time is 'x'; it must be a number"),
        ("1 0 0 nan 1 -1 -1 1 -1 -1 1 7 1 1 1 1 -1 -1\n", "run time is 'nan'"),
        ("; nothing\n", "no job is a task of a farm: the file has none"),
        ("1 0 0 9 8 -1 -1 8 -1 -1 1 7 1 1 1 1 -1 -1\n", r"no job is a task of a farm: several processors \(1\)"),
        ("{}", "no list `jobs`"),
        ('{"jobs": [1], "profiles": {}}', r"jobs\[0\] is no object"),
        (
            '{"jobs": [{"subtime": 0, "res": 1, "profile": "x"}], "profiles": {}}',
            r"jobs\[0\].profile is 'x', which is none",
        ),
        ('{"jobs": [{"subtime": 0, "res": 1.5, "profile": "x"}], "profiles": {}}', "res a whole number from 1"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, content, said):
    with pytest.raises(DescriptionError, match=said):
        crosswind.import_tasks(write(tmp_path, content))


def test_sizes_and_rates_must_be_above_0(tmp_path):
    for more in ({"size_mb": 0.0}, {"work_per_s": float("nan")}, {"jobs": 0}):
        with pytest.raises(DescriptionError, match=f"{next(iter(more))} is "):
            crosswind.import_tasks(write(tmp_path, SWF), **more)
