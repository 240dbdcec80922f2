"""`inject --compare` and `blame --`: what a disturbance, and each cause of it, costs a command, in interleaved runs."""

import json
import subprocess
import sys

import pytest

# What a cause takes is told by how long a command runs: others would take time as well.
pytestmark = [pytest.mark.live, pytest.mark.alone]

DISTURBANCE = """
schema_version = 1
name = "half of the time, and a little"
[[source]]
kind = "job"
cause = "neighbour"
ranks = [0]
share = 0.5
slice_s = 0.01
[[source]]
kind = "daemon"
cause = "cron"
ranks = [0]
interval_s = 0.1
duration_s = 0.002
"""
COMPUTES = ["--", sys.executable, "-c", "print(sum(n * n for n in range(3_000_000)))"]


@pytest.fixture
def disturbance(tmp_path):
    file = tmp_path / "disturbance.toml"
    file.write_text(DISTURBANCE)
    return str(file)


def said(*words):
    command = [sys.executable, "-m", "crosswind.cli", *words, *COMPUTES]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert ran.returncode in (0, 3), ran.stderr  # two runs of each may leave it open
    return ran


def test_a_command_that_has_half_of_the_time_takes_about_twice_as_long(disturbance):
    found = json.loads(said("inject", disturbance, "--compare", "4", "--json").stdout)
    slowdown = found["slowdown"]
    assert 0.6 < slowdown["mean"] < 1.8
    assert slowdown["low"] > 0, "the interval excludes that nothing is lost"
    assert {len(times) for times in found["elapsed_s"].values()} == {4}


def test_the_difference_is_the_first_line_at_80_columns(disturbance):
    lines = said("inject", disturbance, "--compare", "2").stdout.splitlines()
    assert "he disturbance slows the command by" in lines[0]
    assert "% ±" in lines[0]
    assert [line.split()[0] for line in lines if line[:1].islower()] == ["undisturbed", "disturbed"]
    assert all(len(line) <= 80 for line in lines)


def test_the_cause_that_costs_most_is_named_first_and_the_small_one_costs_less(disturbance):
    found = json.loads(said("blame", disturbance, "--blocks", "4", "--json").stdout)
    saves = {cause["cause"]: cause["removed_saves_s"]["mean"] for cause in found["causes"]}
    assert set(saves) == {"neighbour", "cron"}
    assert saves["neighbour"] > 2 * abs(saves["cron"])
    table = said("blame", disturbance, "--blocks", "2").stdout
    assert table.index("neighbour") < table.index("cron")
