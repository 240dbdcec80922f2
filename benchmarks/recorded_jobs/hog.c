/* Another process: hog CPU BUSY_US IDLE_US. Computes and sleeps in turn, on one CPU, until it is ended. */
#define _GNU_SOURCE
#include <sched.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

static long long now(void) {
  struct timespec t;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return t.tv_sec * 1000000000LL + t.tv_nsec;
}

int main(int argc, char **argv) {
  if (argc < 4) return 2;
  cpu_set_t own;
  CPU_ZERO(&own);
  CPU_SET(atoi(argv[1]), &own);
  sched_setaffinity(0, sizeof own, &own);
  for (;;) {
    for (long long until = now() + 1000 * atoll(argv[2]); now() < until;) {
    }
    usleep(atoi(argv[3]));
  }
}
