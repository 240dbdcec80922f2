/* An MPI program whose straggler is known: job PATTERN STEPS WORK_US OUT CPUS LATE [GO]

   Each step has two phases; in each a rank works for WORK_US and then communicates as PATTERN (ring, halo, allreduce,
   master) says. CPUS: the CPU of each rank, or - for any. LATE: what makes ranks late, RANK:PHASE:HOW:VALUE+..., or -.
   HOW is sleep (VALUE us more), compute (works by computing, so that whatever takes its processor makes it late) or group
   (as compute, in the control group VALUE). Ranks that do not compute sleep until the work is over.
   GO is made when the ranks begin. OUT/rank-R has one line for each phase: begin, arrival, end and lateness, ns. */
#define _GNU_SOURCE
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { BYTES = 1000, WAKE_NS = 100000 };
static int rank, size;
static char out[BYTES], in[2][BYTES];

static long long at(clockid_t clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void sleep_until(long long ns) {
  struct timespec t = {ns / 1000000000LL, ns % 1000000000LL};
  while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) {
  }
}

/* Works for a time of the clock, or of the thread's own CPU time. */
static void work(long long ns, int computes) {
  clockid_t clock = computes ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  long long until = at(clock) + ns;
  if (!computes && ns > WAKE_NS) sleep_until(until - WAKE_NS);
  while (at(clock) < until) {
  }
}

static void shift(int to, int from, char *into) {
  MPI_Sendrecv(out, BYTES, MPI_CHAR, to, 1, into, BYTES, MPI_CHAR, from, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

static void halo(void) {
  int left = (rank + size - 1) % size, right = (rank + 1) % size;
  MPI_Request q[4];
  MPI_Irecv(in[0], BYTES, MPI_CHAR, left, 1, MPI_COMM_WORLD, q);
  MPI_Irecv(in[1], BYTES, MPI_CHAR, right, 2, MPI_COMM_WORLD, q + 1);
  MPI_Isend(out, BYTES, MPI_CHAR, right, 1, MPI_COMM_WORLD, q + 2);
  MPI_Isend(out, BYTES, MPI_CHAR, left, 2, MPI_COMM_WORLD, q + 3);
  MPI_Waitall(4, q, MPI_STATUSES_IGNORE);
}

static void communicate(const char *pattern, int phase) {
  double mine = rank, sum;
  if (!strcmp(pattern, "master")) {
    for (int other = 1; other < size; other++) {
      int from = phase ? other : 0, to = phase ? 0 : other;
      if (rank == from) MPI_Send(out, BYTES, MPI_CHAR, to, phase, MPI_COMM_WORLD);
      if (rank == to) MPI_Recv(in[0], BYTES, MPI_CHAR, from, phase, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else if (phase == 0 && !strcmp(pattern, "ring")) {
    shift((rank + 1) % size, (rank + size - 1) % size, in[0]);
  } else if (phase == 0 && !strcmp(pattern, "halo")) {
    halo();
  } else {
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  if (argc < 7) return 2;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const char *pattern = argv[1];
  long steps = atol(argv[2]), work_ns = 1000 * atol(argv[3]);
  long long extra[2] = {0, 0};
  int computes[2] = {0, 0};
  char name[4096];
  char *part, *rest = argv[5];
  for (int other = 0; (part = strsep(&rest, ",")) && *part != '-'; other++) {
    if (other != rank) continue;
    cpu_set_t own;
    CPU_ZERO(&own);
    CPU_SET(atoi(part), &own);
    sched_setaffinity(0, sizeof own, &own);
  }
  for (rest = argv[6]; (part = strsep(&rest, "+")) && *part != '-';) {
    int phase, of, used;
    if (sscanf(part, "%d:%d:%n", &of, &phase, &used) < 2) return 2;
    if (of != rank) continue;
    char *how = part + used, *value = strchr(how, ':') + 1;
    if (!strncmp(how, "sleep", 5)) extra[phase] = 1000 * atoll(value);
    else computes[0] = computes[1] = 1;
    if (!strncmp(how, "group", 5)) {
      snprintf(name, sizeof name, "%s/cgroup.procs", value);
      FILE *group = fopen(name, "w");
      if (!group || fprintf(group, "0") < 0 || fclose(group)) MPI_Abort(MPI_COMM_WORLD, 3);
    }
  }
  long long *lines = calloc(8 * steps, sizeof *lines), *line = lines;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && argc > 7) fclose(fopen(argv[7], "w"));
  long long began = at(CLOCK_MONOTONIC);
  for (long step = 0; step < steps; step++) {
    for (int phase = 0; phase < 2; phase++, line += 4) {
      long long cpu = at(CLOCK_THREAD_CPUTIME_ID);
      line[0] = at(CLOCK_MONOTONIC);
      work(work_ns, computes[phase]);
      long long late = at(CLOCK_MONOTONIC);
      if (extra[phase]) sleep_until(late + extra[phase]);
      line[1] = at(CLOCK_MONOTONIC);
      line[3] = computes[phase] ? line[1] - line[0] - (at(CLOCK_THREAD_CPUTIME_ID) - cpu) : line[1] - late;
      communicate(pattern, phase);
      line[2] = at(CLOCK_MONOTONIC);
    }
  }
  double seconds = (at(CLOCK_MONOTONIC) - began) / 1e9;
  if (rank == 0) printf("{\"seconds\": %.9f}\n", seconds);
  snprintf(name, sizeof name, "%s/rank-%d", argv[4], rank);
  FILE *file = fopen(name, "w");
  for (line = lines; line < lines + 8 * steps; line += 4)
    fprintf(file, "%lld %lld %lld %lld\n", line[0], line[1], line[2], line[3]);
  fclose(file);
  MPI_Finalize();
  return 0;
}
