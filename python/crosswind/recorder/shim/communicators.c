/* Communicators: each has an index in its rank's file and a number that is the same on all its members. */

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

/* The ranks that this one receives from and sends to in neighbourhood collectives; NULL without a topology. */
static int *neighbours(MPI_Comm comm, struct communicator *c) {
  int shape = MPI_UNDEFINED, weighted = 0, n = 0;
  PMPI_Topo_test(comm, &shape);
  if (shape == MPI_CART) {
    PMPI_Cartdim_get(comm, &n);
    c->sources = c->targets = 2 * n;
  } else if (shape == MPI_GRAPH) {
    PMPI_Graph_neighbors_count(comm, c->rank, &n);
    c->sources = c->targets = n;
  } else if (shape == MPI_DIST_GRAPH) {
    PMPI_Dist_graph_neighbors_count(comm, &c->sources, &c->targets, &weighted);
  } else {
    return NULL;
  }
  int all = c->sources + c->targets;
  int *ranks = calloc((size_t)all + 2, sizeof *ranks), *weights = calloc((size_t)all + 2, sizeof *weights);
  if (!ranks || !weights) abort();
  int *targets = ranks + c->sources;
  if (shape == MPI_CART)
    for (int at = 0; at < n; at++) PMPI_Cart_shift(comm, at, 1, &ranks[2 * at], &ranks[2 * at + 1]);
  else if (shape == MPI_GRAPH)
    PMPI_Graph_neighbors(comm, c->rank, n, ranks);
  else
    PMPI_Dist_graph_neighbors(comm, c->sources, ranks, weights, c->targets, targets, weights + c->sources);
  if (shape != MPI_DIST_GRAPH) memcpy(targets, ranks, sizeof *ranks * (size_t)c->sources);
  for (int at = 0; at < all; at++) ranks[at] = peer_of(ranks[at]);
  free(weights);
  return ranks;
}

static void put_topology(struct stream *s, const struct communicator *c, const int *ranks) {
  size_t all = (size_t)(c->sources + c->targets), bytes = 16 + (all + 1) / 2 * 8;
  if (bytes > CHUNK_BYTES - sizeof(struct block) || bytes / 8 > 0xffff) return; /* such a collective is not modelled */
  uint32_t *at = reserve(s, bytes);
  if (!at) return;
  at[0] = 312u | (uint32_t)(bytes / 8) << 16;
  at[1] = c->index;
  at[2] = (uint32_t)c->sources;
  at[3] = (uint32_t)c->targets;
  memcpy(at + 4, ranks, bytes - 16);
  commit(s, bytes);
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
  int *near = neighbours(comm, c);
  uint64_t hash[2] = {0, 0};
  for (int at = 0; at < n_local + n_remote; at++)
    hash[at >= n_local] = mixed(hash[at >= n_local], (uint64_t)(uint32_t)members[at] + 1);
  pthread_mutex_lock(&lock);
  c->index = comms++;
  c->id = c->index == 0 ? 1 : numbered(hash[0] + hash[1]) | 1u << 2; /* never 0 or 1 */
  pthread_mutex_unlock(&lock);
  size_t bytes = 40 + (size_t)(n_local + n_remote + 1) / 2 * 8;
  /* Longer than a record may be: more ranks than 100,000. Its members are left out, and the reader says so. */
  if (bytes > CHUNK_BYTES - sizeof(struct block) || bytes / 8 > 0xffff) {
    bytes = 40;
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
    at[9] = 0;
    memcpy(at + 10, members, bytes - 40);
    commit(s, bytes);
  }
  free(members);
  if (near) put_topology(s, c, near);
  free(near);
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


/* A group that begins an epoch of a window: its ranks in the world. */
static void put_group(struct span *p, int kind, MPI_Group group, int assertion, uint64_t window) {
  int size = 0, at = 0;
  PMPI_Group_size(group, &size);
  int32_t *ranks = malloc(sizeof *ranks * (size_t)(size + 1));
  if (!ranks) abort();
  world_ranks(group, ranks);
  do {
    int now = size - at < LISTED ? size - at : LISTED;
    struct record *r = put(p, kind, NO_COMM, NONE, assertion_of(assertion), 0, window, (size_t)now);
    if (!r) break;
    for (int k = 0; k < now; k++) entries_of(r)[k] = (struct entry){0, ranks[at + k], NONE, 0};
    finish(p, r);
    at += now;
  } while (at < size);
  free(ranks);
}
