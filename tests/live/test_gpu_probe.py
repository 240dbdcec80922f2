"""The probe of a GPU, its threads and its calls of Python, above a driver that keeps to a law: no GPU is needed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent / "scripted_driver"
CC = shutil.which("cc")
pytestmark = [pytest.mark.live, pytest.mark.skipif(CC is None, reason="no C compiler")]
CHUNK_MB = 2 * 1.048576


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    library = tmp_path_factory.mktemp("driver") / "libcuda.so.1"
    subprocess.run([CC, "-O1", "-shared", "-fPIC", "-o", library, HERE / "cuda.c", "-lpthread"], check=True)
    (library.parent / "libcuda.so").symlink_to(library.name)
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = os.environ | {"LD_LIBRARY_PATH": str(library.parent), "PYTHONPATH": path}
    done = subprocess.run(
        [sys.executable, HERE / "run.py"], env=environment, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_a_function_is_called_on_the_measured_stream(found):
    assert found["load"]["rounds"] == 1
    assert found["task"]["work"] == found["load"]["launches"] >= 1
    # Its calls take 2 ms of the stream each, whenever they were enqueued.
    assert found["task"]["dt_s"] >= 0.002 * found["load"]["launches"]
    assert found["call"]["gpu_s"] >= 0.002


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("waits", 'task "waits" waits for the device: it must only enqueue work'),
        ("elsewhere", 'task "elsewhere" enqueues nothing on the current stream'),
        ("fails", 'task "fails" raised RuntimeError: CUDA out of memory. Tried to allocate 2 GiB'),
    ],
)
def test_a_function_that_cannot_be_measured_is_refused_in_a_sentence(found, name, message):
    assert found["said"][name].startswith(message)


@pytest.mark.parametrize("traffic", ["h2d", "loader:1", "loader:8", "d2h-sm:4"])
def test_an_amount_is_moved_once_by_however_many_threads(found, traffic):
    """What moves before the block begins does not count; without an amount more moves than that."""
    amount, moved = (
        found[name][traffic]["to_device_mb"] + found[name][traffic]["to_host_mb"] for name in ("amount", "moved")
    )
    assert amount <= 24 * CHUNK_MB * (1.0 + 1e-9)
    assert moved > 0.0


def test_a_step_is_counted_once_for_its_three_kernels(found):
    assert found["step"]["work"] == 6.0
    # 2048, 1 and 1024 rounds of 100 ns, and a microsecond for each start.
    assert found["step"]["dt_s"] >= 6 * (3073 * 1e-7 + 3e-6)


def test_a_function_is_measured_beside_copies_and_threads_that_load(found):
    assert [(one["kernel"], one["traffic"], one["unit"]) for one in found["pairs"]] == [
        ("layer", "h2d", "calls"),
        ("layer", "loader:2", "calls"),
    ]
    assert found["phases"] == ["alone", "calibrate", "level", "step", "unpaced"]
