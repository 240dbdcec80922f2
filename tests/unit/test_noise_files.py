"""Recordings of noise by other tools stand wherever a disturbance does."""

import shutil
from pathlib import Path

import pytest
from command_line import perform

from crosswind.disturbance import Disturbance
from crosswind.errors import DescriptionError
from crosswind.files.kinds import found_at
from crosswind.files.output import writable

SEEDS = Path(__file__).parents[2] / "fuzz/seeds/disturbance"
GOAL = Path(__file__).parents[2] / "crates/sim/tests/goal/scatter_8.goal"
CAUSES = {
    "osnoise.txt": ["irq:local_timer", "kworker/0:1", "kworker/1:1", "hardware"],
    "hwlat.txt": ["hardware"],
    "netgauge.out": ["noise"],
}


@pytest.mark.parametrize("name", CAUSES)
def test_a_recording_is_a_disturbance_of_its_own_kind(name):
    assert found_at(SEEDS / name).kind == "noise"
    assert Disturbance.load(SEEDS / name).causes == CAUSES[name]


@pytest.mark.parametrize("name", CAUSES)
def test_no_result_takes_its_place(name, tmp_path):
    shutil.copy(SEEDS / name, tmp_path)
    with pytest.raises(DescriptionError, match="another tool's recording of noise"):
        writable(tmp_path / name, "recording")


@pytest.mark.parametrize("name", CAUSES)
def test_a_schedule_runs_under_it(name, tmp_path, capfd):
    shutil.copy(SEEDS / name, tmp_path)
    assert perform(["run", str(GOAL), "--disturbance", str(tmp_path / name)]) == 0
    assert "times as long as on a dedicated machine" in capfd.readouterr().out


@pytest.mark.parametrize("line", ["1 2 3", "0.5", "a-1 [0] no time", "# tracer: nop", "1.0 2.0 x"])
def test_what_is_no_recording_is_none(line, tmp_path):
    (tmp_path / "x.txt").write_text(f"{line}\n")
    assert found_at(tmp_path / "x.txt").kind != "noise"


def test_a_line_without_end_is_looked_at_once(tmp_path):
    (tmp_path / "x.txt").write_text("a-1 [1] " * 100_000)
    assert found_at(tmp_path / "x.txt").kind != "noise"
