"""The probe of a GPU on a machine that has one: copies by blocks and threads, and functions of PyTorch."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from crosswind.errors import CrosswindError, DescriptionError
from crosswind.gpu import measure_gpu
from crosswind.gpu.device import KERNELS, CudaDevice, traffic_of
from crosswind.gpu.task import Task

pytestmark = pytest.mark.live
WORK = Path(__file__).parents[2] / "benchmarks/gpu"


@pytest.fixture(scope="module")
def gpu():
    try:
        return CudaDevice(0)
    except CrosswindError as error:
        pytest.skip(f"no GPU to measure: {error}")


@pytest.fixture(scope="module")
def of_torch(gpu):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    sys.path.insert(0, str(WORK))
    yield lambda name: CudaDevice(0, Task.of(f"torch_work:{name}", KERNELS))
    sys.path.remove(str(WORK))


def block(traffic: str, **more):
    return {
        "kernel": None,
        "rounds": 1,
        "launches": 1,
        "traffic": traffic_of(traffic).described(),
        "mb_per_s": None,
        "settle_s": 0.002,
        "seconds": 0.02,
    } | more


@pytest.mark.parametrize("traffic", ["h2d", "d2h-sm:1", "d2h-sm:64", "loader:1", "loader:8"])
def test_each_number_of_blocks_and_threads_moves_bytes(gpu, traffic):
    found = gpu.time(block(traffic))
    assert found["to_host_mb" if traffic.startswith("d2h") else "to_device_mb"] > 1.0


@pytest.mark.alone
def test_threads_of_a_loader_keep_a_common_pace_and_move_an_amount_once(gpu):
    found = gpu.time(block("loader:4", mb_per_s=2000.0, seconds=0.1))
    assert found["to_device_mb"] / found["dt_s"] == pytest.approx(2000.0, rel=0.15)
    chunk_mb = traffic_of("loader").chunk_bytes / 1e6
    moved = gpu.time(block("loader:4", amount_mb=20 * chunk_mb, seconds=0.5, settle_s=0.05))
    assert moved["moved_s"] < 0.5


def test_a_step_takes_as_long_as_its_parts(gpu):
    load = gpu.load("step")
    found = gpu.time({**block("h2d"), "kernel": "step", "traffic": None, "rounds": load.rounds, "launches": 10})
    assert found["work"] == 10 * load.rounds
    assert found["dt_s"] > 0


@pytest.mark.alone
def test_a_function_of_pytorch_runs_on_the_measured_stream(of_torch):
    device = of_torch("matmul_layernorm")
    load = device.load("matmul_layernorm")
    found = device.time(block("h2d", kernel="matmul_layernorm", launches=load.launches))
    assert found["work"] == load.launches
    # Its time among others is what it was behind other work.
    assert found["dt_s"] == pytest.approx(load.seconds, rel=0.5)


def test_a_training_step_is_measured_beside_threads_that_load(of_torch):
    found = measure_gpu(task="torch_work:train_step", traffics=["loader"], max_seconds=5.0)
    (pair,) = found.header["pairs"]
    assert pair["cycles"] >= 8
    assert found.header["task"]["gpu_s"] > 0


@pytest.mark.parametrize(
    ("name", "message"), [("reads_its_loss", "waits for the device"), ("elsewhere", "enqueues nothing on the current")]
)
def test_a_function_that_cannot_be_measured_is_refused(of_torch, name, message):
    with pytest.raises(DescriptionError, match=message):
        of_torch(name).load(name)
