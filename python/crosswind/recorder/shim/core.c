/* The recorder that `crosswind record` loads into each MPI rank: clocks, files, communicators.
 *
 * The wrappers of the MPI calls follow this text; they are generated from one table (wrappers.py). Everything is one
 * translation unit, compiled by the user's mpicc, because handles and constants differ from one MPI to the next.
 * The file format is docs/reference/recorded-programs.md. A part file is a head of 4096 bytes and chunks; each chunk is
 * one block of the final file whose length grows with every record, so a rank that dies leaves all it did.
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
#define POLL_GAP_NS 20000          /* calls further apart are not one polling loop */

struct head { /* first bytes of a part file; parts.py reads it */
  char magic[8];
  uint32_t chunk_bytes, rank, world_size, pid, thread_level, cpu_clock;
  uint32_t mpi_version, mpi_subversion, run_delay, ended;
  uint64_t monotonic_ns, realtime_ns, init_ns, finalize_ns, lost, world_id;
  char host[256], host_id[64], library[512], program[256];
};
struct block { char magic[4]; uint32_t kind, rank, thread; uint64_t length; uint32_t tid, records; };
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
  uint64_t wall, cpu;              /* at the last look at the CPU clock */
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
static uint32_t threads, comms;
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

/* ---- the part file ---- */

static int next_chunk(struct stream *s) {
  pthread_mutex_lock(&lock);
  if (s->block) munmap(s->block, CHUNK_BYTES);
  s->block = NULL;
  s->poll = NULL;
  /* Reserved at once: a full disk is an error here, and a SIGBUS later. */
  int failed = part < 0 || posix_fallocate(part, (off_t)part_bytes, CHUNK_BYTES);
  void *at = failed ? MAP_FAILED
                    : mmap(NULL, CHUNK_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, part, (off_t)part_bytes);
  if (at != MAP_FAILED) {
    part_bytes += CHUNK_BYTES;
    s->block = at;
    memcpy(s->block->magic, "CWTB", 4);
    s->block->kind = 2;
    s->block->rank = head->rank;
    s->block->thread = s->thread;
    s->block->tid = s->tid;
  }
  pthread_mutex_unlock(&lock);
  return at != MAP_FAILED;
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

static void look_closely(struct stream *s) {
  for (int attempt = 0; attempt < 4; attempt++) {
    uint32_t before = s->page ? s->page->lock : 0;
    s->wall = clock_ns(CLOCK_MONOTONIC);
    s->cpu = clock_ns(CLOCK_THREAD_CPUTIME_ID);
    s->moved = before;
    if (!s->page || s->page->lock == before) return;
  }
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
  look_closely(s);
  s->exit_wall = s->wall;
  s->exit_cpu = s->cpu;
  pthread_setspecific(at_thread_end, s);
  return own = s;
}

/* Reads both clocks. The CPU clock takes a call to the kernel, so it is only read if the thread has lost its
 * processor since the last time; `since` is the last look, for where that cannot be known. */
static inline void look(struct stream *s, uint64_t since, uint64_t *wall, uint64_t *cpu) {
  if (s->page) {
    uint32_t before = s->page->lock;
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    if (before == s->moved && s->page->lock == before) {
      *wall = now;
      *cpu = s->cpu + (now - s->wall);
      return;
    }
  } else {
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    if (now - since < SAMPLED_NS) {
      *wall = now;
      *cpu = s->cpu + (now - s->wall);
      return;
    }
  }
  look_closely(s);
  *wall = s->wall;
  *cpu = s->cpu;
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

/* ---- communicators ---- */

static uint64_t mixed(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
  hash *= 0xff51afd7ed558ccdu;
  return hash ^ hash >> 33;
}

/* The n-th communicator of the same members is the n-th on each of them. */
static uint64_t numbered(uint64_t hash) {
  static struct { uint64_t hash, count; } *seen;
  static size_t known, room;
  size_t at = 0;
  while (at < known && seen[at].hash != hash) at++;
  if (at == room) {
    void *more = realloc(seen, (room += 64) * sizeof *seen);
    if (!more) abort();
    seen = more;
  }
  if (at == known) {
    seen[known].hash = hash;
    seen[known++].count = 0;
  }
  return mixed(hash, ++seen[at].count);
}

static int world_ranks(MPI_Group group, int32_t *into) {
  int size = 0;
  PMPI_Group_size(group, &size);
  int *all = malloc(sizeof(int) * (size_t)(size + 1));
  if (!all) abort();
  for (int at = 0; at < size; at++) all[at] = at;
  PMPI_Group_translate_ranks(group, size, all, world, into);
  for (int at = 0; at < size; at++)
    if (into[at] == MPI_UNDEFINED) into[at] = -1;
  free(all);
  return size;
}

static int forget(MPI_Comm comm, int which, void *value, void *extra) {
  (void)comm, (void)which, (void)value, (void)extra; /* some 24 bytes a communicator are kept until the end */
  return MPI_SUCCESS;
}

static void neighbours(MPI_Comm comm, struct communicator *c) {
  int shape = MPI_UNDEFINED, weighted, n = 0;
  PMPI_Topo_test(comm, &shape);
  if (shape == MPI_CART) {
    PMPI_Cartdim_get(comm, &n);
    c->sources = c->targets = 2 * n;
  } else if (shape == MPI_GRAPH) {
    PMPI_Graph_neighbors_count(comm, c->rank, &n);
    c->sources = c->targets = n;
  } else if (shape == MPI_DIST_GRAPH) {
    PMPI_Dist_graph_neighbors_count(comm, &c->sources, &c->targets, &weighted);
  }
}

static struct communicator *define(struct stream *s, MPI_Comm comm, uint32_t parent) {
  MPI_Group local, remote;
  int between = 0, n_local = 0, n_remote = 0;
  struct communicator *c = calloc(1, sizeof *c);
  if (!c) abort();
  PMPI_Comm_test_inter(comm, &between);
  PMPI_Comm_rank(comm, &c->rank);
  PMPI_Comm_size(comm, &n_local);
  if (between) PMPI_Comm_remote_size(comm, &n_remote);
  int32_t *members = calloc((size_t)(n_local + n_remote + 2), sizeof *members);
  if (!members) abort();
  PMPI_Comm_group(comm, &local);
  world_ranks(local, members);
  PMPI_Group_free(&local);
  if (between) {
    PMPI_Comm_remote_group(comm, &remote);
    world_ranks(remote, members + n_local);
    PMPI_Group_free(&remote);
  }
  c->local = n_local;
  c->size = between ? n_remote : n_local;
  neighbours(comm, c);
  uint64_t hash[2] = {0, 0};
  for (int at = 0; at < n_local + n_remote; at++)
    hash[at >= n_local] = mixed(hash[at >= n_local], (uint64_t)(uint32_t)members[at] + 1);
  pthread_mutex_lock(&lock);
  c->index = comms++;
  c->id = c->index == 0 ? 1 : numbered(hash[0] + hash[1]) | 1u << 2; /* never 0 or 1 */
  pthread_mutex_unlock(&lock);
  size_t bytes = 48 + (size_t)(n_local + n_remote + 1) / 2 * 8;
  /* Longer than a record may be: more ranks than 100,000. Its members are left out, and the reader says so. */
  if (bytes > CHUNK_BYTES - sizeof(struct block) || bytes / 8 > 0xffff) {
    bytes = 48;
    n_local = n_remote = 0;
    __atomic_fetch_add(&head->lost, 1, __ATOMIC_RELAXED);
  }
  uint32_t *at = reserve(s, bytes);
  if (at) {
    uint64_t now = clock_ns(CLOCK_MONOTONIC);
    at[0] = 310u | (uint32_t)(bytes / 8) << 16;
    at[1] = c->index;
    memcpy(at + 2, &c->id, 8);
    memcpy(at + 4, &now, 8);
    at[6] = parent;
    at[7] = (uint32_t)n_local;
    at[8] = (uint32_t)n_remote;
    at[9] = at[10] = at[11] = 0;
    memcpy(at + 12, members, bytes - 48);
    commit(s, bytes);
  }
  free(members);
  PMPI_Comm_set_attr(comm, key, c);
  return c;
}

static struct communicator *find(struct stream *s, MPI_Comm comm) {
  if (s->known && s->last == comm && s->last_age == age) return s->known;
  void *value = NULL;
  int found = 0;
  if (comm == MPI_COMM_NULL) return NULL;
  uint64_t now = age;
  PMPI_Comm_get_attr(comm, key, &value, &found);
  struct communicator *c = found ? value : define(s, comm, NO_COMM);
  s->last = comm;
  s->last_age = now;
  return s->known = c;
}
static inline uint32_t index_of(struct stream *s, MPI_Comm comm) {
  struct communicator *c = find(s, comm);
  return c ? c->index : NO_COMM;
}
static inline int at_root(struct stream *s, MPI_Comm comm, int root) {
  struct communicator *c = find(s, comm);
  return root == MPI_ROOT || (c && c->rank == root);
}

static void put_created(struct span *p, int kind, MPI_Comm from, MPI_Comm made, uint64_t request) {
  uint32_t parent = index_of(p->s, from);
  struct communicator *c = NULL;
  if (made != MPI_COMM_NULL && !request) c = define(p->s, made, parent);
  struct record *r = put(p, kind, parent, NONE, NONE, 0, request, 1);
  if (r) *entries_of(r) = (struct entry){c ? c->id : 0, NONE, NONE, 0};
  finish(p, r);
}

static void put_freed(struct span *p, int kind, uint32_t index, uint64_t id) {
  uint64_t *at = reserve(p->s, 24);
  if (at) {
    at[0] = 311u | 3u << 16 | (uint64_t)index << 32;
    at[1] = id;
    at[2] = p->t1;
    commit(p->s, 24);
  }
  finish(p, put(p, kind, index, NONE, NONE, 0, 0, 0));
}

/* ---- amounts, requests and statuses ---- */

static inline uint64_t bytes_of(MPI_Count count, MPI_Datatype type) {
  MPI_Count size = 0;
  if (count <= 0 || type == MPI_DATATYPE_NULL) return 0;
  PMPI_Type_size_x(type, &size);
  return size > 0 ? (uint64_t)(count * size) : 0;
}

static inline struct entry entry_of(MPI_Status *status, uint64_t value) {
  MPI_Count bytes = 0;
  PMPI_Get_elements_x(status, MPI_BYTE, &bytes);
  return (struct entry){value, peer_of(status->MPI_SOURCE), status->MPI_TAG, bytes > 0 ? (uint64_t)bytes : 0};
}

/* Makes room for the handles and statuses of n requests. */
static int room_for(struct stream *s, int n) {
  if (n < 1) n = 1;
  if ((size_t)n <= s->room) return 1;
  size_t room = (size_t)n + 16;
  void *statuses = realloc(s->statuses, room * sizeof *s->statuses);
  if (statuses) s->statuses = statuses;
  void *handles = realloc(s->handles, room * sizeof *s->handles);
  if (handles) s->handles = handles;
  if (!statuses || !handles) return 0;
  s->room = room;
  return 1;
}

/* Completed or started requests: `which` picks them from the handles noted before, NULL the first n. */
static void put_requests(struct span *p, int kind, int n, const int *which, int base, MPI_Status *statuses) {
  int at = 0;
  do {
    int now = n - at < LISTED ? n - at : LISTED, listed = 0;
    struct record *r = put(p, kind, NO_COMM, NONE, NONE, 0, 0, (size_t)now);
    if (!r) return;
    for (int k = at; k < at + now; k++) {
      uint64_t handle = p->s->handles[which ? which[k] - base : k];
      if (!handle) continue;
      entries_of(r)[listed++] = statuses ? entry_of(&statuses[k], handle) : (struct entry){handle, NONE, NONE, 0};
    }
    r->words = (uint16_t)(8 + 3 * listed);
    finish(p, r);
    at += now;
  } while (at < n);
}

/* ---- steps ---- */

__attribute__((visibility("default"))) void crosswind_record_step(void) {
  struct span p = enter();
  if (!p.s) return;
  uint64_t *at = reserve(p.s, 32);
  if (at) {
    at[0] = 301u | 4u << 16 | (uint64_t)NO_COMM << 32;
    at[1] = p.t0;
    at[2] = p.cpu0;
    at[3] = __atomic_fetch_add(&steps, 1, __ATOMIC_RELAXED);
    commit(p.s, 32);
  }
  done(&p);
}

/* ---- begin and end ---- */

static void in_child(void) { recording = 0; }

static void complain(const char *what, const char *why) {
  fprintf(stderr, "crosswind record: this process is not recorded: %s: %s\n", what, why);
}

/* A recorder built for one MPI would misread the handles of another. */
static void refuse_another(const char *library) {
#ifdef OPEN_MPI
  int same = strstr(library, "Open MPI") != NULL;
  const char *built = "Open MPI";
#else
  int same = strstr(library, "Open MPI") == NULL;
  const char *built = "MPICH or one of its relatives";
#endif
  if (same) return;
  fprintf(stderr, "crosswind record: the recorder was built by an mpicc of %s, but this program runs with %.100s\n"
          "  hint: name the mpicc of the program's MPI: crosswind record --mpicc PATH\n", built, library);
  _exit(2);
}

/* Programs that a rank starts are not ranks. */
static void hide_from_children(void) {
  Dl_info own;
  const char *preloaded = getenv("LD_PRELOAD");
  unsetenv("CROSSWIND_TRACE_PARTS");
  if (!preloaded || !dladdr((void *)hide_from_children, &own)) return;
  size_t length = strlen(own.dli_fname);
  if (strncmp(preloaded, own.dli_fname, length)) return;
  const char *rest = preloaded + length;
  if (*rest == 0) {
    unsetenv("LD_PRELOAD");
  } else if (*rest == ':' || *rest == ' ') {
    char *others = strdup(rest + 1);
    if (others) setenv("LD_PRELOAD", others, 1);
    free(others);
  }
}

static void read_host_id(char *into, size_t room) {
  int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
  ssize_t length = fd < 0 ? -1 : read(fd, into, room - 1);
  if (fd >= 0) close(fd);
  into[length > 0 ? length : 0] = 0;
  into[strcspn(into, "\n")] = 0;
}

static void ready_thread(void) { pthread_key_create(&at_thread_end, end_thread); }

static void start(uint64_t t0, uint64_t cpu0, int kind) {
  const char *directory = getenv("CROSSWIND_TRACE_PARTS");
  static int started;
  if (!directory || started++) return;
  int rank = 0, size = 1, level = 0, length = 0;
  char path[4096], library[MPI_MAX_LIBRARY_VERSION_STRING] = "";
  unsigned long long world_id = 0;
  PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
  PMPI_Comm_size(MPI_COMM_WORLD, &size);
  PMPI_Query_thread(&level);
  PMPI_Get_library_version(library, &length);
  refuse_another(library);
  if (rank == 0) world_id = clock_ns(CLOCK_REALTIME) ^ (unsigned long long)getpid() << 40;
  PMPI_Bcast(&world_id, 1, MPI_UNSIGNED_LONG_LONG, 0, MPI_COMM_WORLD);
  snprintf(path, sizeof path, "%s/%llx-%d-%d.part", directory, world_id, rank, (int)getpid());
  part = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (part < 0 || posix_fallocate(part, 0, HEAD_BYTES)) return complain(path, strerror(errno));
  head = mmap(NULL, HEAD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, part, 0);
  if (head == MAP_FAILED) return complain(path, strerror(errno));
  part_bytes = HEAD_BYTES;
  volatile struct perf_event_mmap_page *page = switches_page();
  head->cpu_clock = page ? 1 : 2;
  if (page) munmap((void *)page, (size_t)sysconf(_SC_PAGESIZE));
  head->chunk_bytes = CHUNK_BYTES;
  head->rank = (uint32_t)rank;
  head->world_size = (uint32_t)size;
  head->pid = (uint32_t)getpid();
  head->thread_level = level == MPI_THREAD_SINGLE       ? 0
                       : level == MPI_THREAD_FUNNELED   ? 1
                       : level == MPI_THREAD_SERIALIZED ? 2
                                                        : 3;
  head->world_id = world_id;
  head->run_delay = access("/proc/self/schedstat", R_OK) == 0;
  PMPI_Get_version((int *)&head->mpi_version, (int *)&head->mpi_subversion);
  gethostname(head->host, sizeof head->host - 1);
  snprintf(head->library, sizeof head->library, "%.500s", library);
  ssize_t named = readlink("/proc/self/exe", head->program, sizeof head->program - 1);
  if (named < 0) head->program[0] = 0;
  head->realtime_ns = clock_ns(CLOCK_REALTIME);
  head->monotonic_ns = clock_ns(CLOCK_MONOTONIC);
  ready_thread();
  pthread_atfork(NULL, NULL, in_child);
  PMPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, forget, &key, NULL);
  PMPI_Comm_group(MPI_COMM_WORLD, &world);
  read_host_id(head->host_id, sizeof head->host_id);
  hide_from_children();
  struct stream *s = begin_thread();
  if (!s) return complain(path, "no memory");
  define(s, MPI_COMM_WORLD, NO_COMM);
  define(s, MPI_COMM_SELF, NO_COMM);
  PMPI_Barrier(MPI_COMM_WORLD); /* all begin together, also those that took longer to get here */
  look_closely(s);
  struct span p = {s, t0, cpu0, s->wall, s->cpu};
  recording = 1;
  finish(&p, put(&p, kind, 0, NONE, NONE, 0, 0, 0));
  s->exit_wall = p.t1;
  s->exit_cpu = p.cpu1;
  head->init_ns = p.t1;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  memcpy(head->magic, "CWPART1", 8); /* last: now it may be read */
}

static void stop(void) {
  if (!recording) return;
  struct span p = enter();
  if (!p.s) return;
  p.t1 = p.t0;
  p.cpu1 = p.cpu0;
  finish(&p, put(&p, 2, 0, NONE, NONE, 0, 0, 0));
  head->finalize_ns = p.t0;
  recording = 0;
  PMPI_Group_free(&world);
  PMPI_Comm_free_keyval(&key);
  done(&p);
}
