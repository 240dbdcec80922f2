"""One rank of a small training job on gloo whose straggler is known: torch_job.py KIND OUT STEPS LATE.

KIND: ddp or fsdp. RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT are in the environment. Layers sleep for a fixed time,
as a host does that waits for an accelerator, so that a busy machine disturbs little. LATE is `-`, or RANK:PLACE:SECONDS
with PLACE `input` or `backward`: that rank sleeps longer there in each step. Each rank writes the trace of PyTorch's
profiler, OUT/rank-R.json.gz, and its own stamps, OUT/stamps-R.json: when it was through the place of the lateness in
each step, and how late it was there, s of CLOCK_MONOTONIC.
"""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch.profiler import ProfilerActivity, profile, schedule

LAYERS, WIDTH = 4, 256
FORWARD_S, BACKWARD_S, INPUT_S = 0.010, 0.020, 0.005
WARM_UP = 3

kind, out, steps, late = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), sys.argv[4]
rank, ranks = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
stamps: list[tuple[float, float]] = []
recording = False


def lateness(place: str) -> None:
    """Sleep if this rank is the one to be late here, and stamp."""
    began = time.monotonic()
    of, where, seconds = late.split(":") if late != "-" else ("-1", "backward", "0")
    if where != place:
        return
    if int(of) == rank and recording:
        time.sleep(float(seconds))
    if recording:
        now = time.monotonic()
        stamps.append((now, now - began))


class Work(torch.autograd.Function):
    """Takes the time of a layer, forward and backward."""

    @staticmethod
    def forward(context: Any, x: torch.Tensor, layer: int) -> torch.Tensor:
        """Sleep for the layer."""
        context.layer = layer
        time.sleep(FORWARD_S)
        return x * 1.0

    @staticmethod
    def backward(context: Any, gradient: torch.Tensor) -> tuple[torch.Tensor, None]:
        """Sleep for the layer; one of them is where the rank is late."""
        time.sleep(BACKWARD_S)
        if context.layer == 1:
            lateness("backward")
        return gradient * 1.0, None


class Model(torch.nn.Module):
    """Linear layers that take their time."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = torch.nn.ModuleList(torch.nn.Linear(WIDTH, WIDTH) for _ in range(LAYERS))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the loss."""
        for index, layer in enumerate(self.layers):
            x = Work.apply(layer(x), index)
        return x.sum()


def distributed() -> Any:
    """Return the model as the kind of job distributes it."""
    model = Model()
    if kind == "ddp":
        return torch.nn.parallel.DistributedDataParallel(model, bucket_cap_mb=0.3)
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.fsdp import fully_shard

    mesh = init_device_mesh("cpu", (ranks,))
    for layer in model.layers:
        fully_shard(layer, mesh=mesh)
    return fully_shard(model, mesh=mesh)


def main() -> None:
    """Train, and write the trace and the stamps."""
    global recording  # noqa: PLW0603 (read by the layers)
    torch.set_num_threads(1)
    dist.init_process_group("gloo", rank=rank, world_size=ranks)
    model = distributed()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)

    def step() -> None:
        time.sleep(INPUT_S)
        lateness("input")
        optimizer.zero_grad()
        model(torch.ones(8, WIDTH)).backward()
        optimizer.step()

    for _ in range(WARM_UP):
        step()
    dist.barrier()

    def save(profiler: Any) -> None:
        profiler.export_chrome_trace(str(out / f"rank-{rank}.json.gz"))

    plan = schedule(wait=0, warmup=1, active=steps, repeat=1)
    with profile(activities=[ProfilerActivity.CPU], schedule=plan, on_trace_ready=save) as profiler:
        step()
        profiler.step()
        recording = True
        for _ in range(steps):
            step()
            profiler.step()
    (out / f"stamps-{rank}.json").write_text(json.dumps(stamps))
    dist.destroy_process_group()


main()
