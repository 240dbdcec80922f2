"""The user's own kernel: how it is found, put on the measured stream, and told from what cannot be measured."""

from __future__ import annotations

import contextlib
import sys
import types

import pytest
from scripted_gpu import ScriptedGpu

from crosswind.errors import DescriptionError
from crosswind.gpu import measure_gpu
from crosswind.gpu.fit import fit_gpu
from crosswind.gpu.task import Call, Task, examined


class Script:
    """How calls look behind other work: of the host and of the device, s each."""

    def __init__(self, host_s=1e-5, gpu_s=7e-4, waits=False):
        self.host_s, self.gpu_s, self.waits = host_s, gpu_s, waits
        self.asked = []

    def __call__(self, calls, lead_s):
        self.asked.append((calls, lead_s))
        gpu_s = 2e-6 + calls * self.gpu_s
        host_s = calls * self.host_s + (lead_s + gpu_s if self.waits else 0.0)
        return lead_s, host_s, gpu_s


@pytest.fixture
def torch(monkeypatch):
    """Stand for PyTorch: streams that can be entered, and nothing else."""
    module = types.ModuleType("torch")
    entered = []

    @contextlib.contextmanager
    def stream(one):
        entered.append(one)
        yield
        entered.remove(one)

    module.cuda = types.SimpleNamespace(stream=stream, ExternalStream=lambda pointer, device: (pointer, device))
    module.entered = entered
    monkeypatch.setitem(sys.modules, "torch", module)
    monkeypatch.delitem(sys.modules, "cupy", raising=False)
    return module


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write a module into the current directory; its name."""

    def write(text, name="trained"):
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, name, raising=False)
        monkeypatch.setattr(sys, "path", [*sys.path])
        monkeypatch.chdir(tmp_path)
        return name

    return write


def test_a_function_that_enqueues_is_known_by_its_time_on_the_device():
    call = examined("step", Script(host_s=1e-5, gpu_s=7e-4))
    assert call.gpu_s == pytest.approx(7e-4, rel=0.01)
    assert call.host_s == pytest.approx(1e-5)
    assert call.seconds == call.gpu_s


def test_a_call_that_is_slow_on_the_host_is_not_said_to_wait():
    assert examined("step", Script(host_s=0.05)).seconds == pytest.approx(0.05)


def test_a_call_that_a_busy_processor_held_up_once_is_not_said_to_wait():
    script = Script()

    def held_up(calls, lead_s):
        lead_s, host_s, gpu_s = script(calls, lead_s)
        return lead_s, host_s + (0.05 if len(script.asked) == 4 else 0.0), gpu_s

    assert examined("step", held_up).gpu_s == pytest.approx(7e-4, rel=0.01)
    assert len(script.asked) == 5


def test_a_function_that_waits_is_told_so_in_a_sentence():
    with pytest.raises(DescriptionError) as caught:
        examined("step", Script(waits=True))
    assert str(caught.value) == 'task "step" waits for the device: it must only enqueue work'
    assert "synchronize()" in caught.value.hint


@pytest.mark.parametrize("gpu_s", [0.0, 2e-7])
def test_a_function_that_enqueues_nothing_on_the_stream_is_told_so(gpu_s):
    with pytest.raises(DescriptionError, match='task "step" enqueues nothing on the current stream'):
        examined("step", Script(gpu_s=gpu_s))


def test_small_work_is_timed_over_several_calls():
    assert examined("step", Script(gpu_s=5e-6)).gpu_s == pytest.approx(5e-6, rel=0.1)


def test_a_call_that_is_too_long_for_a_block_is_refused():
    with pytest.raises(DescriptionError, match=r"takes 2 s; it must be at most 1 s"):
        examined("step", Script(gpu_s=2.0))


def test_a_function_is_imported_from_the_current_directory(written, torch):
    task = Task.of(written("import torch\ncalls = []\ndef step():\n    calls.append(list(torch.entered))\n") + ":step")
    assert task.name == "step"
    with task.on_stream(77, 1):
        task.enqueue(3)
    assert sys.modules["trained"].calls == [[(77, "cuda:1")]] * 3
    assert torch.entered == []


@pytest.mark.parametrize(
    ("text", "asked", "message"),
    [
        ("", "trained", 'task is "trained"; with --gpu it must be MODULE:FUNCTION'),
        ("", "trained:", "it must be MODULE:FUNCTION"),
        ("", "none_of_that_name:step", "No module named 'none_of_that_name'"),
        ("import not_installed", "trained:step", "No module named 'not_installed'"),
        ("1 / 0", "trained:step", "importing trained raised ZeroDivisionError: division by zero"),
        ("step = 1", "trained:step", "trained has no function step"),
    ],
)
def test_what_cannot_be_imported_is_one_sentence(written, torch, text, asked, message):
    written(text)
    with pytest.raises(DescriptionError) as caught:
        Task.of(asked)
    assert message in str(caught.value)
    assert caught.value.hint


def test_a_function_without_pytorch_or_cupy_is_refused(written, monkeypatch):
    for library in ("torch", "cupy"):
        monkeypatch.delitem(sys.modules, library, raising=False)
    with pytest.raises(DescriptionError, match="uses neither PyTorch nor CuPy"):
        Task.of(written("def step(): pass") + ":step")


def test_what_the_function_raises_is_one_sentence(torch):
    def step():
        raise RuntimeError("CUDA out of memory\nTried to allocate")

    task = Task.of(step)
    with pytest.raises(DescriptionError) as caught, task.told():
        task.enqueue(1)
    assert str(caught.value) == 'task "step" raised RuntimeError: CUDA out of memory'


def test_ctrl_c_in_the_function_is_no_error_of_it(torch):
    def step():
        raise KeyboardInterrupt

    task = Task.of(step)
    with pytest.raises(KeyboardInterrupt), task.told():
        task.enqueue(1)


def test_a_task_is_measured_alone_under_its_functions_name(torch):
    def layers():
        """Stand for work."""

    gpu = ScriptedGpu(lambda kernel, rate: 1e-6 * rate if kernel == "layers" else 0.0)
    gpu.call = Call(gpu_s=0.005, host_s=1e-4)
    found = measure_gpu(task=layers, traffics=["h2d"], max_seconds=5.0, device=gpu, clock=gpu.clock)
    (pair,) = found.header["pairs"]
    assert (pair["kernel"], pair["unit"]) == ("layers", "calls")
    assert found.header["task"] == {"name": "layers", "gpu_s": 0.005, "host_s": 1e-4}
    fit = fit_gpu(found)
    assert fit.pair("layers", "h2d").costs
    assert fit.warnings == []


def test_a_task_that_takes_the_name_of_a_kernel_keeps_its_modules(torch):
    def step():
        """Stand for work."""

    assert Task.of(step, ("step",)).name == f"{__name__}:step"


def test_a_task_that_the_host_cannot_enqueue_as_fast_is_a_warning(torch):
    def small():
        """Stand for work."""

    gpu = ScriptedGpu()
    gpu.call = Call(gpu_s=1e-4, host_s=2e-4)
    fit = fit_gpu(measure_gpu(task=small, traffics=["h2d"], max_seconds=5.0, device=gpu, clock=gpu.clock))
    (told,) = fit.warnings
    assert told["code"] == "gpu-host-bound"
    assert (
        told["message"]
        == 'enqueueing one call of "small" takes 0.2 ms of the processor, and its work 0.1 ms of the GPU'
    )
