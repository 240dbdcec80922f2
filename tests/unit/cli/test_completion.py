"""What the shell completes."""

import os
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).parents[3] / "examples"


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


def test_where_it_runs_is_completed():
    assert completed("run", str(EXAMPLES / "streams_sending_side.toml"), "--on", "") == {
        "sim",
        "local",
        "dask:",
        "hosts:",
    }


def test_every_kind_of_file_that_has_a_schema_is_completed():
    kept = EXAMPLES.parent / "docs" / "reference" / "schemas"
    assert completed("schema", "") == {path.name.removesuffix(".schema.json") for path in kept.iterdir()}
