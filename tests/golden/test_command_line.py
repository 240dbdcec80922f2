"""Exit code, stdout and stderr of commands as users type them, right and wrong.

`CROSSWIND_WRITE_GOLDEN=1 pytest tests/golden` writes the snapshots anew; look at the difference before you commit it.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
SNAPSHOTS = Path(__file__).parent / "snapshots"
FORK = "examples/fork_of_table_4.toml"
TASK = ["--task-size-mb", "2", "--task-work", "5"]

WRONG = {
    "empty.toml": "",
    "two_roots.toml": 'schema_version = 1\nname = "t"\n'
    '[[node]]\nname = "a"\ncompute_per_s = 1\n[[node]]\nname = "b"\ncompute_per_s = 1\n',
    "negative.toml": 'schema_version = 1\nname = "t"\n'
    '[[node]]\nname = "a"\ncompute_per_s = 1\nsend_limit_mb_per_s = -1\n',
    "misspelt.toml": 'schema_version = 1\nname = "t"\n[[node]]\nname = "a"\ncompute_pers = 1\n',
    "version.toml": 'schema_version = 7\nname = "t"\n[[node]]\nname = "a"\ncompute_per_s = 1\n',
    "steep.toml": 'schema_version = 1\nname = "t"\n[[node]]\nname = "r"\ncompute_per_s = 1\n'
    '[[node]]\nname = "a"\nparent = "r"\ncompute_per_s = 1\nreceive_limit_mb_per_s = 10\nir_send_s_per_mb = 0.2\n',
}

COMMANDS = {
    "nothing": [],
    "help": ["--help"],
    "plan help": ["plan", "--help"],
    "measure help": ["measure", "--help"],
    "unknown verb": ["pln"],
    "unknown option": ["plan", FORK, *TASK, "--port", "single"],
    "plan single": ["plan", FORK, *TASK, "--ports", "single"],
    "plan multi": ["plan", FORK, *TASK, "--ports", "multi"],
    "plan greedy": ["plan", FORK, *TASK, "--ports", "single", "--method", "greedy"],
    "plan json": ["plan", FORK, *TASK, "--ports", "single", "--json"],
    "plan nothing to gain": ["plan", FORK, "--task-size-mb", "10", "--task-work", "1"],
    "plan task of no size": ["plan", FORK, "--task-size-mb", "0", "--task-work", "5"],
    "plan task not finite": ["plan", FORK, "--task-size-mb", "2", "--task-work", "nan"],
    "plan missing file": ["plan", "no/such.toml", *TASK],
    "plan a directory": ["plan", "examples", *TASK],
    **{f"plan {name}": ["plan", f"TMP/{name}", *TASK] for name in WRONG},
    "fit no measurement": ["fit", FORK],
    "report unknown kind": ["report", "Makefile"],
    "schema": ["schema", "experiment"],
    "schema of nothing": ["schema", "platfrom"],
    "measure nobody there": ["measure", "--peer", "127.0.0.1:1", "--out", "TMP/m.parquet"],
    "measure bad size": ["measure", "--message-size", "lots"],
    "measure bad out": ["measure", "--out", "/no/such/place/m.parquet"],
}


def crosswind(*arguments: str, **options: object) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "COLUMNS": "110", "NO_COLOR": "1", "TERM": "dumb"}
    command = [sys.executable, "-m", "crosswind.cli", *arguments]
    return subprocess.run(  # type: ignore[call-overload]
        command, check=False, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, **options
    )


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_what_it_said(name, tmp_path):
    for file, text in WRONG.items():
        (tmp_path / file).write_text(text)
    done = crosswind(*(a.replace("TMP", str(tmp_path)) for a in COMMANDS[name]))
    lines = f"exit code {done.returncode}\n--- stdout\n{done.stdout}--- stderr\n{done.stderr}"
    said = "\n".join(line.rstrip() for line in lines.replace(str(tmp_path), "TMP").splitlines()) + "\n"
    snapshot = SNAPSHOTS / f"{name.replace(' ', '_')}.txt"
    if os.environ.get("CROSSWIND_WRITE_GOLDEN"):
        snapshot.write_text(said)
    assert said == snapshot.read_text()


def test_json_is_exactly_one_document_with_the_names_that_scripts_rely_on():
    done = crosswind("plan", FORK, *TASK, "--ports", "single", "--json")
    plan = json.loads(done.stdout)
    assert {"throughput_tasks_per_s", "method", "gap_to_exact", "nodes"} <= set(plan)
    names = {"name", "computed_tasks_per_s", "received_tasks_per_s", "rank", "never_send", "limited_by"}
    assert all(names <= set(node) for node in plan["nodes"])


@pytest.mark.parametrize("rubbish", [b"\xff", b"a", b"[", b"a = {", b"k = 1\n", b'[[node]]\nname = "x"\n'])
def test_100_mb_of_rubbish_is_refused_in_bounded_memory(rubbish, tmp_path):
    file = tmp_path / "rubbish.toml"
    file.write_bytes(rubbish * (100_000_000 // len(rubbish)))

    def limit_memory():
        # 100 MB of file beside the 1.5 GB of address space that Python and its libraries map.
        resource.setrlimit(resource.RLIMIT_AS, (2_500_000_000, 2_500_000_000))

    done = crosswind("plan", str(file), *TASK, preexec_fn=limit_memory)
    assert done.returncode == 2, done.stderr[-500:]
    assert done.stderr.startswith(f"error: {file}")
    assert len(done.stderr) < 2000
