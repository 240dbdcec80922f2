/* The recorder that `crosswind record` loads into each MPI rank: clocks, files, communicators.
 *
 * The wrappers of the MPI calls follow this text; they are generated from one table (wrappers.py). Everything is one
 * translation unit, compiled by the user's mpicc, because handles and constants differ from one MPI to the next.
 * The file format is docs/reference/recorded-programs.md. A part file is a head of 4096 bytes and chunks; each chunk is
 * one block of the final file whose length grows with every record, so a rank that dies leaves all it did. A thread has
 * one chunk mapped and writes a full one behind the others: a page that is new takes longer than the records on it.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <mpi.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NONE (-9)
#define NO_COMM 0xffffffffu
#define HEAD_BYTES 4096
#define CHUNK_BYTES (1 << 18)
#define LISTED 2000                /* most requests in one record */
#define SAMPLED_NS 50000           /* without a count of switches: shorter gaps are taken as computing */
#define ABSENT_NS 100000           /* shorter absences are not looked into */
#define ANCHOR_NS 3000             /* two clocks read further apart than this are read again */
#define ANCHORED_NS 10000000       /* the CPU clock is read at least this often */
#define POLL_GAP_NS 20000          /* calls further apart are not one polling loop */

struct head { /* first bytes of a part file; parts.py reads it */
  char magic[8];
  uint32_t chunk_bytes, rank, world_size, pid, thread_level, cpu_clock;
  uint32_t mpi_version, mpi_subversion, run_delay, ended;
  uint64_t monotonic_ns, realtime_ns, init_ns, finalize_ns, lost, world_id;
  char host[256], host_id[64], library[512], program[256];
};
struct block { char magic[4]; uint32_t number, rank, thread; uint64_t length; uint32_t tid, records; };
struct entry { uint64_t value; int32_t peer, tag; uint64_t bytes; };
struct record { /* of a call; also of the others, as far as they go */
  uint16_t kind, words;
  uint32_t comm;
  uint64_t t0, t1, cpu0, cpu1;
  int32_t peer, tag;
  uint64_t bytes, request;
};
struct communicator { uint32_t index; int rank, local, size, sources, targets; uint64_t id; };

struct stream { /* one thread's */
  struct block *block;
  uint32_t thread, tid;
  int inside;                      /* in a wrapper: MPI calls made by MPI itself are not recorded */
  int delay_fd;
  volatile struct perf_event_mmap_page *page; /* its lock moves whenever the thread gets a processor */
  uint32_t moved;
  uint64_t wall, cpu, ticks;       /* at the last look at the CPU clock */
  uint64_t told, told_wall;        /* as noted last */
  double ns_per_tick;
  uint64_t exit_wall, exit_cpu, delay;
  struct record *poll;             /* last record, where it may be extended */
  MPI_Comm last;
  uint64_t last_age;
  struct communicator *known;
  MPI_Status *statuses;
  uint64_t *handles;
  size_t room;
};
struct span { struct stream *s; uint64_t t0, cpu0, t1, cpu1; };

static struct head *head;
static int part = -1, recording, key = MPI_KEYVAL_INVALID;
static uint64_t part_bytes;
static uint32_t threads, comms, chunks;
static volatile uint64_t age = 1;  /* moves when a communicator's handle becomes free for another */
static uint64_t steps;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_key_t at_thread_end;
static __thread struct stream *own __attribute__((tls_model("initial-exec")));
static MPI_Group world;

static inline uint64_t clock_ns(clockid_t which) {
  struct timespec t;
  clock_gettime(which, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}

/* The processor's own counter takes half the time of a call to clock_gettime. It is used where the kernel's clock is
 * made of it, and set by that clock again whenever the CPU clock is read: every 10 ms at least. */
static double ns_per_tick; /* in the beginning; 0: not used */

static inline uint64_t ticks(void) {
#ifdef __x86_64__
  return __builtin_ia32_rdtsc();
#else
  return 0;
#endif
}

static void measure_ticks(uint64_t since_ns, uint64_t since_ticks) {
  char name[16] = "";
  int fd = open("/sys/devices/system/clocksource/clocksource0/current_clocksource", O_RDONLY | O_CLOEXEC);
  if (fd >= 0 && read(fd, name, sizeof name - 1) < 0) name[0] = 0;
  if (fd >= 0) close(fd);
  uint64_t ns = clock_ns(CLOCK_MONOTONIC) - since_ns, counted = ticks() - since_ticks;
  /* 10 ms give the rate to a millionth: 10 ns until it is set again. */
  if (!strncmp(name, "tsc", 3) && ns >= 10000000 && counted) ns_per_tick = (double)ns / (double)counted;
}

/* ---- the part file ---- */

static int write_chunk(const struct block *block) {
  const char *from = (const char *)block;
  size_t left = sizeof *block + block->length;
  off_t at = (off_t)part_bytes;
  while (left) {
    ssize_t written = pwrite(part, from, left, at);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return 0;
    from += written;
    at += written;
    left -= (size_t)written;
  }
  return 1;
}

/* Makes the thread's chunk empty. A chunk is written before it is emptied: a rank that is killed between leaves it twice,
 * with the same number, and the mapped one, which comes first in the file, is whole. */
static int next_chunk(struct stream *s) {
  pthread_mutex_lock(&lock);
  s->poll = NULL;
  /* Reserved at once: a full disk is an error here, and a SIGBUS later. */
  int ready = part >= 0 && !posix_fallocate(part, (off_t)part_bytes, CHUNK_BYTES);
  if (ready && s->block) {
    ready = write_chunk(s->block);
  } else if (ready) {
    void *at = mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, part, (off_t)part_bytes);
    ready = at != MAP_FAILED;
    if (ready) {
      s->block = at;
      memcpy(s->block->magic, "CWTB", 4);
      s->block->rank = head->rank;
      s->block->thread = s->thread;
      s->block->tid = s->tid;
    }
  }
  if (ready) {
    part_bytes += CHUNK_BYTES;
    s->block->records = 0;
    __atomic_store_n(&s->block->length, 0, __ATOMIC_RELEASE);
    s->block->number = chunks++;
  }
  pthread_mutex_unlock(&lock);
  return ready;
}

static void *reserve(struct stream *s, size_t bytes) {
  if (!s->block || sizeof(struct block) + s->block->length + bytes > CHUNK_BYTES) {
    if (!next_chunk(s)) {
      __atomic_fetch_add(&head->lost, 1, __ATOMIC_RELAXED);
      return NULL;
    }
  }
  s->poll = NULL;
  return (char *)(s->block + 1) + s->block->length;
}

/* Only now does the record belong to the file. */
static inline void commit(struct stream *s, size_t bytes) {
  s->block->records++;
  __atomic_store_n(&s->block->length, s->block->length + bytes, __ATOMIC_RELEASE);
}

/* ---- threads and clocks ---- */

static void end_thread(void *of) {
  struct stream *s = of;
  own = NULL;
  if (s->block) munmap(s->block, CHUNK_BYTES);
  if (s->page) munmap((void *)s->page, (size_t)sysconf(_SC_PAGESIZE));
  if (s->delay_fd >= 0) close(s->delay_fd);
  free(s->statuses);
  free(s->handles);
  free(s);
}

static volatile struct perf_event_mmap_page *switches_page(void) {
  struct perf_event_attr wanted;
  memset(&wanted, 0, sizeof wanted);
  wanted.type = PERF_TYPE_SOFTWARE;
  wanted.size = sizeof wanted;
  wanted.config = PERF_COUNT_SW_TASK_CLOCK;
  wanted.exclude_kernel = wanted.exclude_hv = 1;
  int fd = (int)syscall(SYS_perf_event_open, &wanted, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
  if (fd < 0) return NULL;
  void *page = mmap(NULL, (size_t)sysconf(_SC_PAGESIZE), PROT_READ, MAP_SHARED, fd, 0);
  close(fd); /* the mapping keeps it */
  return page == MAP_FAILED ? NULL : page;
}

static uint64_t run_delay(struct stream *s) {
  char text[96];
  ssize_t read = s->delay_fd < 0 ? -1 : pread(s->delay_fd, text, sizeof text - 1, 0);
  if (read <= 0) return s->delay;
  text[read] = 0;
  char *second = strchr(text, ' ');
  return second ? strtoull(second, NULL, 10) : s->delay;
}

/* Both clocks at one moment: an interrupt between the two reads would count as computing ever after. */
static void look_closely(struct stream *s) {
  uint64_t wall = s->wall, counted = s->ticks;
  for (int attempt = 0; attempt < 4; attempt++) {
    uint32_t before = s->page ? s->page->lock : 0;
    uint64_t first = clock_ns(CLOCK_MONOTONIC);
    s->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    s->wall = clock_ns(CLOCK_MONOTONIC);
    s->ticks = ticks();
    s->moved = before;
    if (s->wall - first < ANCHOR_NS && (!s->page || s->page->lock == before)) break;
  }
  /* The kernel steers its clock, so its rate is measured again and again. */
  if (s->ns_per_tick != 0 && wall && s->wall - wall >= ANCHORED_NS / 2)
    s->ns_per_tick = (double)(s->wall - wall) / (double)(s->ticks - counted);
}

static struct stream *begin_thread(void) {
  struct stream *s = calloc(1, sizeof *s);
  if (!s) return NULL;
  char path[64];
  s->tid = (uint32_t)syscall(SYS_gettid);
  s->thread = __atomic_fetch_add(&threads, 1, __ATOMIC_RELAXED);
  s->page = head->cpu_clock == 1 ? switches_page() : NULL;
  snprintf(path, sizeof path, "/proc/self/task/%u/schedstat", s->tid);
  s->delay_fd = open(path, O_RDONLY | O_CLOEXEC);
  s->delay = run_delay(s);
  s->ns_per_tick = ns_per_tick;
  look_closely(s);
  s->exit_wall = s->told_wall = s->wall;
  s->exit_cpu = s->told = s->cpu;
  pthread_setspecific(at_thread_end, s);
  return own = s;
}

static inline uint64_t now_ns(const struct stream *s) {
  if (s->ns_per_tick == 0) return clock_ns(CLOCK_MONOTONIC);
  return s->wall + (uint64_t)((double)(ticks() - s->ticks) * s->ns_per_tick);
}

/* Reads both clocks. The CPU clock takes a call to the kernel, so it is only read if the thread has lost its
 * processor since the last time, or a while has passed; `since` is the last look, for where losing it cannot be known.
 * The time of interrupts may count as computing until then: CPU time never goes back, and is late for that long. */
static inline void look(struct stream *s, uint64_t since, uint64_t *wall, uint64_t *cpu) {
  uint64_t now;
  int known;
  if (s->page) {
    uint32_t before = s->page->lock;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    now = now_ns(s);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    known = before == s->moved && s->page->lock == before && now - s->wall < ANCHORED_NS;
  } else {
    now = now_ns(s);
    known = now - since < SAMPLED_NS && now - s->wall < ANCHORED_NS;
  }
  if (!known) {
    look_closely(s);
    now = s->wall;
  }
  uint64_t computed = s->cpu + (now - s->wall);
  *wall = s->told_wall = now > s->told_wall ? now : s->told_wall;
  *cpu = s->told = computed > s->told ? computed : s->told;
}

static void note_absence(struct stream *s, const struct span *p) {
  uint64_t wall = p->t0 - s->exit_wall, cpu = p->cpu0 - s->exit_cpu;
  if (wall < cpu + ABSENT_NS || s->delay_fd < 0) return;
  uint64_t absent = wall - cpu, before = s->delay;
  s->delay = run_delay(s);
  uint64_t *at = reserve(s, 32);
  if (!at) return;
  uint64_t delay = s->delay - before;
  at[0] = 302u | 4u << 16 | (uint64_t)NO_COMM << 32;
  at[1] = p->t0;
  at[2] = absent;
  at[3] = delay < absent ? delay : absent;
  commit(s, 32);
}

static inline struct span enter(void) {
  struct span p = {0};
  if (!recording) return p;
  struct stream *s = own ? own : begin_thread();
  if (!s || s->inside) return p;
  s->inside = 1;
  p.s = s;
  look(s, s->exit_wall, &p.t0, &p.cpu0);
  if (p.t0 - s->exit_wall >= ABSENT_NS) note_absence(s, &p);
  return p;
}

static inline void left(struct span *p) {
  struct stream *s = p->s;
  uint32_t moved = s->moved;
  look(s, p->t0, &p->t1, &p->cpu1);
  /* What the thread waited for a processor in here is not to count as part of the computing that follows. */
  if (p->t1 - p->t0 >= 2 * ABSENT_NS && moved != s->moved) s->delay = run_delay(s);
  s->exit_wall = p->t1;
  s->exit_cpu = p->cpu1;
}

static inline void done(struct span *p) { p->s->inside = 0; }

static inline uint64_t request_handle(MPI_Request request) {
  uint64_t value = 0;
  memcpy(&value, &request, sizeof request);
  return request == MPI_REQUEST_NULL ? 0 : value;
}
static inline uint64_t message_handle(MPI_Message message) {
  uint64_t value = 0;
  memcpy(&value, &message, sizeof message);
  return value;
}
static inline uint64_t window_handle(MPI_Win window) {
  uint64_t value = 0;
  memcpy(&value, &window, sizeof window);
  return value;
}
static inline int32_t assertion_of(int assertion) {
  return (assertion & MPI_MODE_NOPRECEDE ? 1 : 0) | (assertion & MPI_MODE_NOSUCCEED ? 2 : 0) |
         (assertion & MPI_MODE_NOCHECK ? 4 : 0);
}
static inline int32_t peer_of(int peer) {
  if (peer == MPI_ANY_SOURCE) return -1;
  if (peer == MPI_PROC_NULL) return -2;
  if (peer == MPI_ROOT) return -3;
  return peer;
}
static inline int32_t tag_of(int tag) { return tag == MPI_ANY_TAG ? -1 : tag; }

static struct record *put(struct span *p, int kind, uint32_t comm, int peer, int tag, uint64_t bytes, uint64_t request,
                          size_t entries) {
  size_t whole = sizeof(struct record) + entries * sizeof(struct entry);
  struct record *r = reserve(p->s, whole);
  if (!r) return NULL;
  *r = (struct record){(uint16_t)kind, (uint16_t)(whole / 8), comm, p->t0, p->t1, p->cpu0, p->cpu1, peer, tag, bytes,
                       request};
  return r;
}
static inline struct entry *entries_of(struct record *r) { return (struct entry *)(r + 1); }
static inline void finish(struct span *p, struct record *r) {
  if (r) commit(p->s, (size_t)r->words * 8);
}

/* A call that found nothing. One polling loop is one record. */
static void put_poll(struct span *p, uint64_t request) {
  struct record *r = p->s->poll;
  if (r && p->t0 - r->t1 < POLL_GAP_NS) {
    r->cpu1 = p->cpu1;
    r->peer++; /* calls */
    r->bytes += p->t1 - p->t0;
    r->request = request;
    r->t1 = p->t1;
    return;
  }
  r = put(p, 300, NO_COMM, 1, 0, p->t1 - p->t0, request, 0);
  finish(p, r);
  p->s->poll = r;
}
