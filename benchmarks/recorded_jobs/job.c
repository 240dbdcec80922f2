/* An MPI program whose straggler is known: job PATTERN STEPS WORK_US OUT CPUS LATE [GO]

   Each step has two phases; in each a rank works for WORK_US and then communicates as PATTERN (ring, halo, allreduce,
   master) says. Sends are synchronous: who waits for whom is then MPI's rule, not a matter of buffers. CPUS: the CPU of
   each rank, or - for any. LATE: what makes ranks late, RANK:PHASE:HOW:VALUE+..., or -. HOW is sleep (VALUE us more),
   compute (works by computing, so that whatever takes its processor makes it late) or group (as compute, in the control
   group VALUE). Ranks that do not compute sleep until the work is over.
   GO is made when the ranks begin. OUT/rank-R has one line for each phase: begin, arrival and end, ns; lateness of the
   work, ns: by how much longer than WORK_US it took; and how long the rank could not run while it communicated, ns: off
   its processor, or of a rank that sleeps, what the kernel counts as waiting for one. The first line is of the way from
   MPI_Init to the first barrier; its lateness is how long a rank that computes was off its processor. Ranks write nothing
   before MPI_Finalize, so the last phase ends the run. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <mpi.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { BYTES = 1000, WAKE_NS = 100000, FIELDS = 5 };
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

static volatile double sink = 1.0;
static double steps_per_ns;

static void compute(long steps) {
  double x = sink;
  for (long at = 0; at < steps; at++) x = x * 0.999999 + 1e-6;
  sink = x;
}

/* Works for a time of the clock, or of the thread's own CPU time. To read that clock all the time hides from the kernel's
   trace when the thread ran, so it computes for half of the rest before it looks again, at most this half too long. */
static void work(long long ns, int computes) {
  clockid_t clock = computes ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
  long long left, until = at(clock) + ns;
  if (!computes && ns > WAKE_NS) sleep_until(until - WAKE_NS);
  while ((left = until - at(clock)) > 0) {
    if (computes && left > WAKE_NS) compute((long)(0.5 * left * steps_per_ns));
  }
}

/* Returns for how long the thread could run and did not, ns. */
static long long delay(void) {
  static int file = -2;
  char text[100];
  long long ran, delayed = 0;
  if (file == -2) file = open("/proc/thread-self/schedstat", O_RDONLY);
  ssize_t bytes = file < 0 ? -1 : pread(file, text, sizeof text - 1, 0);
  if (bytes <= 0) return 0;
  text[bytes] = 0;
  return sscanf(text, "%lld %lld", &ran, &delayed) == 2 ? delayed : 0;
}

/* Exchanges with both neighbours, or passes on to the right. */
static void exchange(int both) {
  int left = (rank + size - 1) % size, right = (rank + 1) % size, count = 0;
  MPI_Request q[4];
  MPI_Irecv(in[0], BYTES, MPI_CHAR, left, 1, MPI_COMM_WORLD, &q[count++]);
  if (both) MPI_Irecv(in[1], BYTES, MPI_CHAR, right, 2, MPI_COMM_WORLD, &q[count++]);
  MPI_Issend(out, BYTES, MPI_CHAR, right, 1, MPI_COMM_WORLD, &q[count++]);
  if (both) MPI_Issend(out, BYTES, MPI_CHAR, left, 2, MPI_COMM_WORLD, &q[count++]);
  MPI_Waitall(count, q, MPI_STATUSES_IGNORE);
}

static void communicate(const char *pattern, int phase) {
  double mine = rank, sum;
  if (!strcmp(pattern, "master")) {
    for (int other = 1; other < size; other++) {
      int from = phase ? other : 0, to = phase ? 0 : other;
      if (rank == from) MPI_Ssend(out, BYTES, MPI_CHAR, to, phase, MPI_COMM_WORLD);
      if (rank == to) MPI_Recv(in[0], BYTES, MPI_CHAR, from, phase, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    }
  } else if (phase == 0 && strcmp(pattern, "allreduce")) {
    exchange(!strcmp(pattern, "halo"));
  } else {
    MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  }
}

int main(int argc, char **argv) {
  if (argc < 7) return 2;
  MPI_Init(&argc, &argv);
  long long init = at(CLOCK_MONOTONIC), init_cpu = at(CLOCK_THREAD_CPUTIME_ID);
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
  for (long long cpu = at(CLOCK_THREAD_CPUTIME_ID), once = 100000; steps_per_ns == 0;) {
    compute(once);
    steps_per_ns = (double)once / (at(CLOCK_THREAD_CPUTIME_ID) - cpu);
  }
  long lines = 1 + 2 * steps;
  long long *first = calloc(FIELDS * lines, sizeof *first), *line = first;
  line[0] = init;
  line[1] = at(CLOCK_MONOTONIC);
  long long cpu = at(CLOCK_THREAD_CPUTIME_ID);
  line[3] = computes[0] ? line[1] - line[0] - (cpu - init_cpu) : 0;
  MPI_Barrier(MPI_COMM_WORLD);
  if (rank == 0 && argc > 7) fclose(fopen(argv[7], "w"));
  long long began = line[2] = at(CLOCK_MONOTONIC);
  line[4] = computes[0] ? line[2] - line[1] - (at(CLOCK_THREAD_CPUTIME_ID) - cpu) : 0;
  for (long step = 0; step < steps; step++) {
    for (int phase = 0; phase < 2; phase++) {
      line += FIELDS;
      line[0] = at(CLOCK_MONOTONIC);
      work(work_ns, computes[phase]);
      if (extra[phase]) sleep_until(at(CLOCK_MONOTONIC) + extra[phase]);
      line[1] = at(CLOCK_MONOTONIC);
      line[3] = line[1] - line[0] - work_ns;
      long long arrived = at(CLOCK_THREAD_CPUTIME_ID), waited = computes[phase] ? 0 : delay();
      communicate(pattern, phase);
      line[2] = at(CLOCK_MONOTONIC);
      line[4] = computes[phase] ? line[2] - line[1] - (at(CLOCK_THREAD_CPUTIME_ID) - arrived) : delay() - waited;
    }
  }
  double seconds = (line[2] - began) / 1e9;
  MPI_Finalize();
  if (rank == 0) printf("{\"seconds\": %.9f}\n", seconds);
  snprintf(name, sizeof name, "%s/rank-%d", argv[4], rank);
  FILE *file = fopen(name, "w");
  for (line = first; line < first + FIELDS * lines; line += FIELDS)
    fprintf(file, "%lld %lld %lld %lld %lld\n", line[0], line[1], line[2], line[3], line[4]);
  fclose(file);
  return 0;
}
