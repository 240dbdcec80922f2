"""A result of another job, or of other commands, is replaced only by force."""

from __future__ import annotations

import json

import pytest
from costly import comparison, session

from crosswind.compare import asked_for as asked_of_comparison
from crosswind.cost import asked_for
from crosswind.errors import DescriptionError
from crosswind.files.output import writable

MINE = asked_for(["pid:12"], ["./job", "200"], None, None, "burn", 0.01)
OTHERS = [
    asked_for(["pid:13"], ["./job", "200"], None, None, "burn", 0.01),
    asked_for(["pid:12"], ["taskset", "-c", "1", "./job", "200"], None, None, "burn", 0.01),
    asked_for(["pid:12"], ["./job", "200"], None, "io", "burn", 0.01),
    asked_for(["pid:12"], ["./job", "200"], None, None, "burn", 0.02),
    asked_for(["pid:12"], None, 77, None, "burn", 0.01),
    asked_for(["pid:12"], None, None, None, "triad", 0.01),
]


@pytest.mark.parametrize("other", OTHERS)
def test_the_cost_of_another_job_is_not_replaced(tmp_path, other):
    file = tmp_path / "cost.json"
    session(asked=MINE).save(file)
    writable(file, "cost", option="--out", of={"asked": MINE})
    with pytest.raises(DescriptionError, match=r"but of another: --of pid:12 --margin 1% -- \./job 200") as error:
        writable(file, "cost", option="--out", of={"asked": other})
    assert "--force" in error.value.hint
    writable(file, "cost", option="--out", of={"asked": other}, force=True)


def test_a_comparison_of_other_commands_is_not_replaced(tmp_path):
    file, mine = tmp_path / "comparison.json", asked_of_comparison("./a", "./b", 0.02, "wall", shell=False)
    comparison(asked=mine).save(file)
    writable(file, "comparison", of={"asked": mine})
    for other in (("./a", "./c", 0.02, "wall"), ("./a", "./b", 0.02, "cpu"), ("./a", "./b", 0.05, "wall")):
        with pytest.raises(DescriptionError, match="but of another"):
            writable(file, "comparison", of={"asked": asked_of_comparison(*other, shell=False)})


def test_a_blame_of_another_command_is_not_replaced(tmp_path):
    file = tmp_path / "blame.json"
    file.write_text(json.dumps({"schema_version": 1, "kind": "command-blame", "command": ["./a", "1"]}))
    writable(file, "command-blame", of={"command": ["./a", "1"]})
    with pytest.raises(DescriptionError, match="but of another"):
        writable(file, "command-blame", of={"command": ["./b"]})
