"""A machine on which nothing can be written: what needs no file works, what needs one says so and what to do."""

import os
import subprocess
import sys

import pytest
import synthetic
from disturbed import HALF

from crosswind.model.calibrate import platform_of
from crosswind.model.fit import fit

# Everything below / read-only, in a mount namespace of its own.
READ_ONLY = """
mount --make-rprivate /
for place in $(awk '{print $2}' /proc/mounts | sort -r); do
  case $place in /proc*|/sys*) ;; *) mount -o remount,bind,ro "$place" 2>/dev/null;; esac
done
cd "$1" || exit 99; shift
touch writable 2>/dev/null && exit 98
exec "$@"
"""
CROSSWIND = [sys.executable, "-m", "crosswind.cli"]
FARM = """
schema_version = 1
name = "farm"
platform = "platform.toml"
[workload]
kind = "farm"
tasks = 20
task_size_mb = 0.1
task_work = 1
"""
PROGRAM = """
schema_version = 1
name = "program"
[workload]
kind = "program"
program = "bsp"
ranks = 2
"""


def in_namespace(*command, **options):
    words = ["unshare", "--mount", "sh", "-c", READ_ONLY, "sh", *command]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **options)


def may_not():
    try:
        return in_namespace("/", "true").returncode != 0
    except OSError:
        return True


pytestmark = [pytest.mark.live, pytest.mark.skipif(may_not(), reason="no mount namespace with nothing writable here")]


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    place = tmp_path_factory.mktemp("files")
    found = synthetic.measurement(1e-4, 1e-4, cycles=6)
    found.save(place / "m.parquet")
    platform_of(fit(found)).platform.save(place / "platform.toml")
    for name, text in {"farm.toml": FARM, "program.toml": PROGRAM, "half.toml": HALF}.items():
        (place / name).write_text(text)
    return place


def crosswind(files, *words):
    environment = {name: value for name, value in os.environ.items() if name != "TMPDIR"} | {"HOME": "/nowhere"}
    return in_namespace(str(files), *CROSSWIND, *words, env=environment, stdin=subprocess.DEVNULL)


TASK = ["--task-size-mb", "1", "--task-work", "1"]
NEED_NOTHING = {
    "fit": ["fit", "m.parquet"],
    "plan": ["plan", "platform.toml", *TASK],
    "run": ["run", "farm.toml"],
    "inject": ["inject", "half.toml", "--", "true"],
    "schema": ["schema", "platform"],
}
NEED_A_FILE = {
    "measure": ["measure", "--matrix", "64", "--max-seconds", "2"],
    "sweep": ["measure", "sweep", "wait", "--max-seconds", "2"],
    "fit": ["fit", "m.parquet", "-o", "new.toml"],
    "plan": ["plan", "platform.toml", *TASK, "-o", "plan.json"],
    "run": ["run", "farm.toml", "-o", "run.json"],
    "trace": ["run", "farm.toml", "--trace", "trace.parquet"],
    "command": ["map", "cat {input}", "--inputs", "farm.toml", "-o", "results"],
    "farm here": ["run", "farm.toml", "--on", "local"],
    "ranks here": ["run", "program.toml", "--on", "local"],
    "record": ["record", "--seconds", "1"],
    "inject": ["inject", "half.toml", "-o", "injected.toml", "--", "true"],
    "report": ["report", "platform.toml"],
    "certificates": ["cert", "--out", "certs", "a"],
}


@pytest.mark.parametrize("verb", NEED_NOTHING)
def test_what_needs_no_file_works(files, verb):
    done = crosswind(files, *NEED_NOTHING[verb])
    assert done.returncode in (0, 3), done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("verb", NEED_A_FILE)
def test_what_needs_a_file_says_where_it_cannot_be_and_what_to_do(files, verb):
    done = crosswind(files, *NEED_A_FILE[verb])
    assert done.returncode in (1, 2), done.stderr
    first, *rest = done.stderr.splitlines()
    assert first.startswith("error: "), done.stderr
    assert any(line.startswith("hint: ") for line in rest), done.stderr
