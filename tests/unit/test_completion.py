"""What the shell completes after `--set`: the paths of the experiment that the command line names."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


def completed(*words: str) -> set[str]:
    environment = {
        **os.environ,
        "_CROSSWIND_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["crosswind", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = "from crosswind.cli import app; app(prog_name='crosswind')"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return set(done.stdout.split())


@pytest.mark.parametrize(
    ("example", "begun", "paths"),
    [
        ("streams_sending_side", "policy.t", {"policy.threshold="}),
        (
            "streams_sending_side",
            "workload.stream[1].m",
            {"workload.stream[1].message_bytes=", "workload.stream[1].messages="},
        ),
        ("local_scheduling", "workload.parameters.w", {"workload.parameters.work_s="}),
        ("fork_graph", "policy.or", {"policy.order="}),
    ],
)
def test_set_is_completed_with_the_paths_of_the_experiment(example, begun, paths):
    assert completed("run", str(EXAMPLES / f"{example}.toml"), "--set", begun) == paths


def test_without_a_readable_experiment_nothing_is_offered(tmp_path):
    assert completed("run", "--set", "policy") == set()
    assert completed("run", str(tmp_path / "no.toml"), "--set", "policy") == set()


def test_where_it_runs_is_completed():
    assert completed("run", str(EXAMPLES / "streams_sending_side.toml"), "--on", "") == {"sim", "local"}
