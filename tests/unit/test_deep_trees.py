"""Trees that go round, or down for ever: an error or an answer, in bounded time and memory."""

import json
import resource
import subprocess
import sys

import pytest

COMMAND = [sys.executable, "-m", "crosswind.cli"]
PLAN = ["--task-size-mb", "1", "--task-work", "1"]


def platform(parents):
    """Return a platform file of nodes 0, 1, ... with these parents; None for the root."""
    text = ['schema_version = 1\nname = "t"\n']
    for number, parent in enumerate(parents):
        text.append(f'[[node]]\nname = "n{number}"\ncompute_per_s = 1\n')
        if parent is not None:
            text.append(f'parent = "n{parent}"\nreceive_limit_mb_per_s = 10\n')
    return "".join(text)


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (60, 60))


def done(words, cwd):
    return subprocess.run([*COMMAND, *words], cwd=cwd, capture_output=True, text=True, check=False, preexec_fn=limited)


ROUND = {
    "its own parent": [None, 1],
    "two below each other": [None, 2, 1],
    "a root below a leaf": [1, 0],
    "ten thousand in a ring": [None, *((number % 10_000) + 1 for number in range(1, 10_001))],
}


@pytest.mark.parametrize("parents", ROUND.values(), ids=ROUND)
def test_a_tree_that_goes_round_is_an_error_of_every_verb(parents, tmp_path):
    (tmp_path / "p.toml").write_text(platform(parents))
    farm = '[workload]\nkind = "farm"\ntasks = 3\ntask_size_mb = 1\ntask_work = 1\n'
    (tmp_path / "e.toml").write_text('schema_version = 1\nname = "e"\nplatform = "p.toml"\n' + farm)
    for words in (["plan", "p.toml", *PLAN], ["run", "e.toml"], ["report", "p.toml"]):
        said = done(words, tmp_path)
        assert (said.returncode, said.stdout) == (2, ""), (words, said)
        assert said.stderr.startswith("error: p.toml"), said.stderr
        assert len(said.stderr) < 2_000, said.stderr[:2_000]


def test_a_chain_of_ten_thousand_is_planned_simulated_and_reported(tmp_path):
    (tmp_path / "p.toml").write_text(platform([None, *range(10_000)]))
    farm = '[workload]\nkind = "farm"\ntasks = 3\ntask_size_mb = 1\ntask_work = 1\n'
    (tmp_path / "e.toml").write_text('schema_version = 1\nname = "e"\nplatform = "p.toml"\n' + farm)
    found = done(["plan", "p.toml", *PLAN, "--json"], tmp_path)
    assert found.returncode == 0, found.stderr
    (tmp_path / "plan.json").write_text(found.stdout)
    assert len(json.loads(found.stdout)["nodes"]) == 10_001
    for words in (["run", "e.toml"], ["report", "p.toml"], ["report", "plan.json"]):
        said = done(words, tmp_path)
        assert said.returncode == 0, (words, said.stderr[-2_000:])
