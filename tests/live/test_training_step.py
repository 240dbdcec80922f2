"""A training job and its loaders, typed in a terminal of 80 x 30: what `cost` says of what the job waits for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import typed
from freezing import wait_until

from crosswind.host import processes

pytestmark = pytest.mark.live

HANGS_S = 300
FIRST = 10
UNSETTLED = 3
BATCH = 65536
"""As long as what a pipe holds: a step needs a batch that was made after the one before was taken."""
LOADER = f"""
with open("batches", "wb", buffering=0) as batches:
    while True:
        batches.write(bytes({BATCH}))
"""
TRAINING = f"""
with open("batches", "rb", buffering=0) as batches, open("step.log", "w") as log:
    while True:
        left = {BATCH}
        while left:
            left -= len(batches.read(left))
        print(sum(range(1000)), file=log, flush=True)
"""


@pytest.fixture
def job(tmp_path):
    """A job that computes on what two loaders hand over: the numbers of the loaders' processes, and of the job's."""
    subprocess.run(["mkfifo", tmp_path / "batches"], check=True)
    (tmp_path / "cw_loader.py").write_text(LOADER)
    (tmp_path / "training.py").write_text(TRAINING)
    scripts = ["cw_loader.py", "cw_loader.py", "training.py"]
    started = [subprocess.Popen([sys.executable, "-S", script], cwd=tmp_path) for script in scripts]
    try:
        log: Path = tmp_path / "step.log"
        wait_until(lambda: log.exists() and log.stat().st_size > 0)
        yield [one.pid for one in started]
    finally:
        for one in started:
            one.kill()
            one.wait()


@pytest.mark.parametrize("of", ["--of name:'cw_loader*'", "--of pid:{} --of pid:{}"])
def test_loaders_that_a_job_waits_for_have_no_cost_and_no_share(of, job, tmp_path):
    """It said that they cost less than 1 %, and ended with 0."""
    *loaders, training = job
    line = f"crosswind cost {of.format(*loaders)} --job pid:{training} --progress file:step.log --seconds 8"
    code, screen, _ = typed.type_in(line, tmp_path, HANGS_S)
    assert code == UNSETTLED, screen
    first = " ".join(screen.splitlines()[:FIRST])
    assert "The job waits for " in first, screen
    assert "cannot be measured by stopping" in typed.plain(first), screen
    assert "share of what they cost" not in screen
    assert all(processes.stat(pid)[0] not in ("t", "T") for pid in job)
