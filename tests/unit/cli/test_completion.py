"""What the shell completes."""

import os
import subprocess
import sys
from pathlib import Path

from crosswind.cli.schema import _IN_PYTHON

EXAMPLES = Path(__file__).parents[3] / "examples"


def completed(*words: str) -> set[str]:
    environment = {
        **os.environ,
        "_CROSSWIND_COMPLETE": "complete_bash",
        "COMP_WORDS": " ".join(["crosswind", *words]),
        "COMP_CWORD": str(len(words)),
    }
    code = "from crosswind.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    return set(done.stdout.split())


def test_where_it_runs_is_completed():
    assert completed("run", str(EXAMPLES / "streams_sending_side.toml"), "--on", "") == {
        "sim",
        "local",
        "dask:",
        "hosts:",
    }


def test_every_kind_of_file_that_has_a_schema_is_completed():
    kept = EXAMPLES.parent / "docs" / "reference" / "schemas"
    of_rust = {path.name.removesuffix(".schema.json") for path in kept.iterdir()}
    assert completed("schema", "") == of_rust | set(_IN_PYTHON)


FORK, STREAMS = str(EXAMPLES / "fork_graph.toml"), str(EXAMPLES / "streams_sending_side.toml")


def test_the_fields_of_the_experiment_are_completed():
    fields = completed("run", FORK, "--set", "policy.")
    assert {"policy.order=", "policy.ports="} <= fields
    assert {"workload.stream[0].class=", "workload.stream[1].message_bytes="} <= completed("run", STREAMS, "--set", "w")
    assert completed("plan", "queues", STREAMS, "--set", "policy.thr") == {"policy.threshold="}
    assert not any("stream" in field for field in completed("run", FORK, "--set", "w"))


def test_the_words_that_a_field_takes_are_completed_as_bash_splits_them():
    assert completed("run", FORK, "--set", "policy.ports", "=", "") == {"auto", "single", "multi"}
    assert completed("run", FORK, "--set", "policy.order", "=", "int") == {"interference", "interference-rate"}
    assert "fork_of_table_4.toml" in completed("run", FORK, "--set", "platform", "=")


def test_verbs_below_a_verb_and_their_options_are_completed():
    assert {"tree", "queues", "tolerance"} <= completed("plan", "")
    assert "--local-slowdown" in completed("plan", "queues", "--lo")
