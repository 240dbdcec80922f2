"""`blame --iterations` of real commands, which tell made-up times: nothing here depends on how long anything takes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.live

CRON = """
schema_version = 1
name = "cron"
[[source]]
kind = "daemon"
cause = "cron"
interval_s = 0.5
duration_s = 0.001
"""
TIMES = "i=0; while [ $i -lt 12 ]; do i=$((i+1)); echo %s; done"


@pytest.fixture
def blamed(tmp_path):
    """Return a call of `blame` with iterations, of a shell's script; what it printed."""
    (tmp_path / "cron.toml").write_text(CRON)

    def call(iterations: str, script: str, *options: str) -> subprocess.CompletedProcess[str]:
        words = [
            sys.executable,
            "-m",
            "crosswind.cli",
            "blame",
            "cron.toml",
            "--blocks",
            "2",
            "--iterations",
            iterations,
        ]
        command = [*words, *options, "--", "sh", "-c", script]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)

    return call


def test_times_that_a_command_prints_are_those_of_the_blame(blamed):
    script = TIMES % "step took 250 ms" + "; echo done >&2"
    ran = blamed("re:step took (?P<ms>[0-9.]+) ms", script, "--json")
    assert ran.returncode == 0, ran.stderr
    found = json.loads(ran.stdout)
    assert found["undisturbed_s"]["mean"] == pytest.approx(0.25)
    assert {len(times) for of in found["iterations_s"].values() for times in of} == {12}
    assert ran.stderr.count("step took 250 ms") == 12 * 6
    assert ran.stderr.count("done\n") == 6


def test_a_file_that_each_run_makes_is_read_and_gone_at_the_end(blamed, tmp_path):
    ran = blamed("times.txt", f"({TIMES % 0.5}) >times.txt")
    assert ran.returncode == 0, ran.stderr
    assert not (tmp_path / "times.txt").exists()
    assert "Times are of an iteration: 12 a run" in ran.stdout
    assert all(len(line) <= 80 or line.startswith(("Times", "sh -c")) for line in ran.stdout.splitlines())


def test_times_that_leave_the_cost_open_end_with_3(blamed, tmp_path):
    """Each run tells other times, by how many ran before it."""
    count = "echo >>runs; case $(($(wc -l <runs) % 3)) in 0) t=100;; 1) t=900;; 2) t=350;; esac; "
    ran = blamed("re:step took (?P<ms>[0-9.]+) ms", count + TIMES % "step took $t ms")
    assert ran.returncode == 3, ran.stdout
    assert ran.stdout.startswith("Not settled: all causes slow the command by ")
    assert "runs of each" in ran.stdout


def test_a_command_that_fails_shows_what_it_printed_and_leaves_no_file(blamed, tmp_path):
    ran = blamed("times.txt", "echo 1 >times.txt; echo broken >&2; exit 3")
    assert ran.returncode == 1
    assert "the command ended with status 3" in ran.stderr
    assert not (Path(tmp_path) / "times.txt").exists()
    ran = blamed("re:(x)", "echo broken; exit 3")
    assert ran.returncode == 1
    assert "broken\n" in ran.stderr


def test_a_wrong_pattern_is_refused_before_anything_runs(blamed, tmp_path):
    ran = blamed("re:step", "touch ran")
    assert ran.returncode == 2
    assert "must have one group" in ran.stderr
    assert not (tmp_path / "ran").exists()


def test_a_rank_of_the_disturbance_that_is_not_found_ends_with_3(blamed, tmp_path):
    (tmp_path / "cron.toml").write_text(CRON + "ranks = [7]\n")
    ran = blamed("re:([0-9.]+)", TIMES % 0.5)
    assert ran.returncode == 3, ran.stderr
    assert "the disturbance strikes rank 7, not found; found was 0" in ran.stderr
