"""Training jobs of PyTorch whose straggler and its cost are known, and the truth about them by their own stamps."""

from __future__ import annotations

import gzip
import json
import os
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

JOB = Path(__file__).parent / "torch_job.py"
PATIENCE_S = 300.0
SHORT_US = 1_000.0


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


def cut(trace: Path, out: Path) -> None:
    """Write what the reader looks at in a trace: annotations and operators, without those inside of short operators."""
    with gzip.open(trace, "rt") as file:
        document = json.load(file)
    over: dict[object, float] = {}
    kept = []
    events = [event for event in document["traceEvents"] if event.get("cat") in ("cpu_op", "user_annotation")]
    for event in sorted(events, key=lambda event: (event["ts"], -event["dur"])):
        if event["cat"] == "cpu_op":
            if event["ts"] < over.get(event["tid"], 0.0):
                continue
            if event["dur"] < SHORT_US:
                over[event["tid"]] = event["ts"] + event["dur"]
        kept.append({**event, "args": {}})
    head = ("schemaVersion", "distributedInfo", "baseTimeNanoseconds", "displayTimeUnit")
    document = {name: document[name] for name in head} | {"traceEvents": kept}
    out.write_bytes(gzip.compress(json.dumps(document).encode(), mtime=0))


def main() -> None:
    """Make the recordings of a job for the tests: torch_jobs.py PYTHON KIND LATE STEPS OUT."""
    python, kind, late, steps, out = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        made = Path(temporary)
        traces = trained(python, made, kind, 3, int(steps), late)
        Path(out).mkdir(parents=True, exist_ok=True)
        for trace in traces:
            cut(trace, Path(out) / trace.name)
        if late != "-":
            print(f"{cost_s(made, 3, int(late.split(':')[0])):.4f} s by the stamps of the ranks")


if __name__ == "__main__":
    main()
