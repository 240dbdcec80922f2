/* What is noted of requests and statuses, steps, and how recording begins and ends in a rank. */

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

/* At the entry of MPI_Init. */
struct begun { uint64_t t0, cpu0, ticks; };

static struct begun begin(void) {
  return (struct begun){clock_ns(CLOCK_MONOTONIC), clock_ns(CLOCK_THREAD_CPUTIME_ID), ticks()};
}

static void ready_thread(void) { pthread_key_create(&at_thread_end, end_thread); }

static void start(struct begun begun, int kind) {
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
  measure_ticks(begun.t0, begun.ticks);
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
  s->told_wall = s->wall;
  s->told = s->cpu;
  struct span p = {s, begun.t0, begun.cpu0, s->wall, s->cpu};
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
