"""`crosswind run --again`: the verdict is the exit code, and the difference is named."""

import json
import subprocess
import sys

import pytest

from crosswind import Experiment
from crosswind.run import grid

PAIR = {
    "schema_version": 1,
    "name": "pair",
    "node": [
        {"name": "r", "compute_per_s": 2.0},
        {"name": "a", "parent": "r", "compute_per_s": 4.0, "receive_limit_mb_per_s": 10.0},
    ],
}
FARM = {"kind": "farm", "tasks": 10, "task_size_mb": 1.0, "task_work": 1.0}


def crosswind(*words, at):
    command = [sys.executable, "-m", "crosswind.cli", *map(str, words)]
    return subprocess.run(command, check=False, text=True, capture_output=True, timeout=120, cwd=at)


@pytest.fixture
def runs(tmp_path):
    description = {"schema_version": 1, "name": "e", "platform": PAIR, "workload": FARM}
    sweep = {"policy.order": ["bandwidth", "root-only"]}
    grid.run(Experiment.from_dict(description | {"sweep": sweep}), out=tmp_path / "runs.json")
    return tmp_path


def test_the_same_is_0_and_another_number_is_4_with_its_place(runs):
    same = crosswind("run", "--again", "runs.json", at=runs)
    assert (same.returncode, same.stdout[:10]) == (0, "Same: all ")
    document = json.loads((runs / "runs.json").read_text())
    document["runs"][1]["makespan_s"] += 1.0
    document["provenance"]["versions"] = ["0.1.9"]
    (runs / "edited.json").write_text(json.dumps(document))
    other = crosswind("run", "--again", "edited.json", at=runs)
    assert other.returncode == 4
    assert "Different: 1 of 2 runs, recorded by 0.1.9" in other.stdout
    assert "makespan_s" in other.stdout
    found = json.loads(crosswind("run", "--again", "edited.json", "--json", at=runs).stdout)
    assert (found["verdict"], [one["field"] for one in found["differences"]]) == ("different", ["makespan_s"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["EXPERIMENT.toml"], "EXPERIMENT does not go with --again"),
        (["--set", "seed=2"], "--set does not go with --again"),
        (["--sweep", "seed=1,2"], "--sweep does not go with --again"),
        (["--on", "local"], "--on does not go with --again"),
        (["--out", "runs.json"], "an input of the same command"),
    ],
)
def test_what_would_make_other_runs_is_refused(runs, words, said):
    refused = crosswind("run", "--again", "runs.json", *words, at=runs)
    assert refused.returncode == 2
    assert said in refused.stderr


def test_without_an_experiment_the_command_says_how(tmp_path):
    refused = crosswind("run", at=tmp_path)
    assert (refused.returncode, refused.stderr.split("\n")[0]) == (2, "error: nothing to run is named")
