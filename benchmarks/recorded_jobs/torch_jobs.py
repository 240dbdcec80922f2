"""Training jobs of PyTorch whose straggler and its cost are known, and the truth about them by their own stamps."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

JOB = Path(__file__).parent / "torch_job.py"
PATIENCE_S = 300.0


def free_port() -> int:
    """Return a port of loopback that nothing listens on."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


def trained(python: str, out: Path, kind: str, ranks: int, steps: int, late: str) -> list[Path]:
    """Run a job of `kind`, ddp or fsdp, by the Python that has PyTorch; the traces of its ranks."""
    out.mkdir(parents=True, exist_ok=True)
    where = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "GLOO_SOCKET_IFNAME": "lo"}
    started = [
        subprocess.Popen(
            [python, str(JOB), kind, str(out), str(steps), late],
            env={**os.environ, **where, "RANK": str(rank), "WORLD_SIZE": str(ranks)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(ranks)
    ]
    try:
        for process in started:
            _, errors = process.communicate(timeout=PATIENCE_S)
            if process.returncode:
                raise RuntimeError(errors[-2000:])
    finally:
        for process in started:
            process.kill()
            process.wait()
    return [out / f"rank-{rank}.json.gz" for rank in range(ranks)]


def cost_s(out: Path, ranks: int, guilty: int) -> float:
    """Return how much sooner the job had ended without the lateness of a rank, s, by the ranks' stamps.

    All ranks wait for each other after the place of the lateness in each step, so that the last one there decides.
    """
    stamps = [json.loads((out / f"stamps-{rank}.json").read_text()) for rank in range(ranks)]
    cost = 0.0
    for step in zip(*stamps, strict=True):
        last = max(through for through, _ in step)
        sooner = max(through - (late if rank == guilty else 0.0) for rank, (through, late) in enumerate(step))
        cost += last - sooner
    return cost


def has_torch(python: str = sys.executable) -> bool:
    """Whether a Python can import PyTorch."""
    return subprocess.run([python, "-c", "import torch.distributed"], capture_output=True, check=False).returncode == 0
