"""Every experiment of `examples/` as `crosswind run --json` prints it.

`crates/experiment/tests/examples.rs` gives the same without Python.

`CROSSWIND_WRITE_GOLDEN=1` writes the files anew.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from crosswind import Experiment, run
from crosswind.errors import DescriptionError

HERE = Path(__file__).parent / "examples"
EXAMPLES = Path(__file__).parents[2] / "examples"


def is_experiment(path: Path) -> bool:
    try:
        Experiment.load(path)
    except DescriptionError:
        return False
    return True


NAMES = sorted(path.stem for path in EXAMPLES.glob("*.toml") if is_experiment(path))


def written(document: dict) -> str:
    """A line for each run: what differs is seen at a glance."""
    runs = ",\n".join(json.dumps(run, separators=(",", ":")) for run in document["runs"])
    head = json.dumps({key: value for key, value in document.items() if key != "runs"})
    return f'{head[:-1]}, "runs": [\n{runs}\n]}}\n'


@pytest.mark.parametrize("name", NAMES)
def test_an_example_gives_what_it_gave(name):
    document = json.loads(json.dumps(run(EXAMPLES / f"{name}.toml").summary()))
    del document["provenance"]  # the example itself, and the version
    golden = HERE / f"{name}.json"
    if os.environ.get("CROSSWIND_WRITE_GOLDEN"):
        golden.write_text(written(document))
    assert json.loads(golden.read_text()) == document


def test_there_is_no_file_of_an_example_that_is_gone():
    assert sorted(path.stem for path in HERE.glob("*.json")) == NAMES
