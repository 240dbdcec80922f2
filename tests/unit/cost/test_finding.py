"""Targets by name, unit and job: on made-up hierarchies of control groups of both versions, and real processes."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest

from crosswind.cost.finding import by_job, by_name, by_unit
from crosswind.cost.naming import distinct, name_of, stable_name
from crosswind.errors import DescriptionError
from crosswind.host import processes

UNIFIED = "31 24 0:27 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n"
FIRST = (
    "32 24 0:28 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd\n"
    "33 24 0:29 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
    "34 24 0:30 / /sys/fs/cgroup/freezer rw - cgroup cgroup rw,freezer\n"
)


def host(root: Path, mounts: str, groups: dict[str, list[int]]) -> Path:
    """Make a host's mounts, and control groups with their processes."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/mountinfo").write_text(mounts)
    for group, pids in groups.items():
        directory = root / "sys/fs/cgroup" / group
        for each in (directory, *directory.parents):
            if each.is_relative_to(root / "sys/fs/cgroup"):
                each.mkdir(parents=True, exist_ok=True)
                (each / "cgroup.procs").touch()
        (directory / "cgroup.procs").write_text("".join(f"{pid}\n" for pid in pids))
    return root


def test_a_unit_is_found_by_its_name_with_all_groups_below_it(tmp_path):
    groups = {"system.slice/exporter.service": [11], "system.slice/exporter.service/worker": [12, 13]}
    root = host(tmp_path, UNIFIED, groups | {"system.slice/other.service": [14]})
    for name in ("exporter", "exporter.service"):
        found = by_unit(name, root)
        assert (found.name, found.members()) == ("exporter.service", {11, 12, 13})
        assert found.group == root / "sys/fs/cgroup/system.slice/exporter.service"


def test_a_unit_of_version_1_is_its_processes_as_they_come_and_go(tmp_path):
    root = host(tmp_path, FIRST, {"systemd/system.slice/exporter.service": [11]})
    found = by_unit("exporter", root)
    assert (found.group, found.members()) == (None, {11})
    (root / "sys/fs/cgroup/systemd/system.slice/exporter.service/cgroup.procs").write_text("12\n13\n")
    assert found.members() == {12, 13}


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("exportre", "no unit is called exportre.service; near: exporter.service"),
        ("nothing-like-it", "no unit is called nothing-like-it.service"),
        ("idle", "no process is in its group"),
        ("twice", "cgroup:/user.slice/a/twice.service, cgroup:/user.slice/b/twice.service"),
    ],
)
def test_a_unit_that_is_none_is_refused(tmp_path, name, said):
    groups = {"system.slice/exporter.service": [11], "system.slice/idle.service": []}
    groups |= {"user.slice/a/twice.service": [15], "user.slice/b/twice.service": [16]}
    with pytest.raises(DescriptionError, match=said):
        by_unit(name, host(tmp_path, UNIFIED, groups))


@pytest.mark.parametrize(
    ("mounts", "job", "unified"),
    [
        (UNIFIED, "system.slice/slurmstepd.scope/job_1201", True),
        (UNIFIED, "system.slice/node7_slurmstepd.scope/job_1201", True),
        (FIRST, "memory/slurm/uid_1000/job_1201", False),
        (FIRST, "freezer/slurm_node7/uid_1000/job_1201", False),
    ],
)
def test_a_job_of_slurm_is_all_its_steps(tmp_path, mounts, job, unified):
    steps = {
        f"{job}/step_batch/user/task_0": [21],
        f"{job}/step_0/user/task_0": [22],
        f"{job}/step_0/user/task_1": [23],
    }
    root = host(tmp_path, mounts, steps | {f"{Path(job).parent}/job_12/step_0/user/task_0": [99]})
    found = by_job("1201", root)
    assert (found.name, found.members()) == ("Slurm job 1201", {21, 22, 23})
    assert (found.group is not None) == unified


def test_a_job_that_is_not_here_is_refused_with_those_that_are(tmp_path):
    jobs = {f"system.slice/slurmstepd.scope/job_{number}/step_0/user/task_0": [5] for number in (7, 8)}
    root = host(tmp_path, UNIFIED, jobs | {"elsewhere/job_9": [6]})
    with pytest.raises(DescriptionError, match="no such job is on this host; jobs here: 7, 8"):
        by_job("9", root)
    with pytest.raises(DescriptionError, match="no job of Slurm has a control group here"):
        by_job("9", host(tmp_path / "other", UNIFIED, {"system.slice/a.service": [5]}))
    for text in ("12_3", "-1", "my-job"):
        with pytest.raises(DescriptionError, match="after slurm: stands the number of a job"):
            by_job(text, root)


def test_without_any_control_groups_nothing_is_found(tmp_path):
    root = host(tmp_path, "", {})
    for find, value in ((by_unit, "a"), (by_job, "1")):
        with pytest.raises(DescriptionError):
            find(value, root)


@pytest.fixture
def apart(tmp_path):
    """Start a program of a name, which does not descend from this process; return its process."""
    started = []

    def start(name: str) -> int:
        program = tmp_path / name
        if not program.exists():
            shutil.copy(shutil.which("sleep") or "/bin/sleep", program)
        words = ["setsid", "-f", "sh", "-c", 'echo $$; exec "$0" 600', str(program)]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as launcher:
            pid = int(launcher.stdout.readline())
            started.append(pid)
            while processes.name(pid) == "sh":  # until it runs its program
                os.sched_yield()
            launcher.stdout.close()
        return pid

    yield start
    for pid in started:
        os.kill(pid, signal.SIGKILL)


def test_every_process_that_a_pattern_matches_belongs_as_they_come_and_go(apart):
    first = apart("cw-loader-a")
    found = by_name("cw-loader*")
    assert (found.name, found.members()) == ("cw-loader*", {first})
    second = apart("cw-loader-b")
    assert found.members() == {first, second}


def test_a_program_with_a_long_name_is_known_by_all_of_it(apart):
    pid = apart("cw-node-exporter-textfile")
    assert (processes.name(pid), name_of(pid)) == ("cw-node-exporte", "cw-node-exporter-textfile")
    assert by_name("*-textfile").members() == {pid}
    assert stable_name(pid) == "cw-node-exporter-textfile"


def test_a_pattern_that_matches_nothing_lists_near_matches(apart):
    apart("cw-loader-c")
    apart("cw-loader-c")
    with pytest.raises(DescriptionError, match=r"no process is called that; near: cw-loader-c \(2\)"):
        by_name("cw-laoder-c*")


def test_what_this_process_started_and_threads_of_the_kernel_do_not_belong(tmp_path):
    shutil.copy(shutil.which("sleep") or "/bin/sleep", tmp_path / "cw-own-child")
    with subprocess.Popen([tmp_path / "cw-own-child", "600"]) as child:
        with pytest.raises(DescriptionError, match="no process is called that"):
            by_name("cw-own-child")
        child.kill()
    with pytest.raises(DescriptionError, match="no process is called that"):
        by_name("kthreadd")


def test_alike_names_are_numbered_in_their_order():
    assert distinct(["a", "b", "a", "a"]) == ["a", "b", "a #2", "a #3"]
