"""Ranks of torchrun and srun, by stand-ins that set the same environment: neither is installed where this is tested."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from crosswind import _core
from crosswind.inject import inject

pytestmark = [
    pytest.mark.live,
    pytest.mark.skipif(not _core.injection_traces(), reason="ranks here tell by their tracer that they were found"),
]

# Rank 1 runs until rank 0 ends; rank 0 runs until it is held, so both were found.
RANK = """
import os, pathlib, sys
done, ready = (pathlib.Path(sys.argv[1]) / name for name in ("done", "ready"))
rank = int(os.environ[sys.argv[2]])
if rank == 1:
    ready.touch()
def held():
    lines = pathlib.Path("/proc/self/status").read_text().splitlines()
    return any(line.startswith("TracerPid:") and line.split()[1] != "0" for line in lines)
while not (held() if rank == 0 else done.exists()):
    os.sched_yield()
if rank == 0:
    done.touch()
"""
# Slurm's daemon starts the ranks: they do not descend from srun, and have its environment.
LAUNCHER = """
import os, pathlib, subprocess, sys
kind, directory, program = sys.argv[1:]
variable = "RANK" if kind == "torchrun" else "SLURM_PROCID"
def start(rank):
    own = {"RANK": str(rank), "LOCAL_RANK": str(rank), "WORLD_SIZE": "2"}
    if kind == "srun":
        own = {"SLURM_PROCID": str(rank), "SLURM_LOCALID": str(rank), "SLURM_NTASKS": "2"}
    words = [sys.executable, "-S", program, directory, variable]
    daemon = ["setsid", "-f"] if kind == "srun" else []
    return subprocess.Popen([*daemon, *words], env=os.environ | own)
ranks = [start(1)]
while not (pathlib.Path(directory) / "ready").exists():
    os.sched_yield()
ranks.append(start(0))
[rank.wait() for rank in ranks]
while not (pathlib.Path(directory) / "done").exists():
    os.sched_yield()
"""
HELD = """
schema_version = 1
name = "held"
[[source]]
kind = "job"
cause = "neighbour"
ranks = [%s]
share = 0.5
slice_s = 0.05
"""


@pytest.fixture
def job(tmp_path, monkeypatch):
    """Return the command of a launcher of two ranks, and a disturbance of named ranks."""
    for name in _core.RANK_VARIABLES:
        monkeypatch.delenv(name, raising=False)
    (tmp_path / "rank.py").write_text(RANK)
    (tmp_path / "launcher.py").write_text(LAUNCHER)

    def of(kind: str, ranks: str):
        (tmp_path / "held.toml").write_text(HELD % ranks)
        launcher = [sys.executable, "-S", str(tmp_path / "launcher.py"), kind, str(tmp_path), str(tmp_path / "rank.py")]
        return tmp_path / "held.toml", launcher

    return of


@pytest.mark.parametrize(("kind", "variable"), [("torchrun", "RANK"), ("srun", "SLURM_PROCID")])
def test_ranks_are_told_by_the_launcher_s_variable(job, kind, variable):
    disturbance, command = job(kind, "0")
    found = inject(disturbance, command, how="stop", limit_s=60.0)
    assert found.succeeded
    assert found.summary["ranks_told_by"] == variable
    assert {one["rank"] for one in found.summary["ranks"]} == {0, 1}
    assert "missing-ranks" not in {told["code"] for told in found.warnings}


@pytest.mark.parametrize("kind", ["torchrun", "srun"])
def test_a_rank_that_is_not_found_ends_with_3_and_what_was_found(job, kind):
    disturbance, command = job(kind, "0, 5")
    words = [sys.executable, "-m", "crosswind.cli", "inject", str(disturbance), "--how", "stop", "--limit-s", "60"]
    ran = subprocess.run([*words, "--json", "--", *command], capture_output=True, text=True, check=False)
    assert ran.returncode == 3, ran.stderr
    [told] = [one for one in json.loads(ran.stdout)["warnings"] if one["code"] == "missing-ranks"]
    variable = "RANK" if kind == "torchrun" else "SLURM_PROCID"
    assert told["message"] == f"the disturbance strikes rank 5, not found; found were 0, 1, by {variable}"
