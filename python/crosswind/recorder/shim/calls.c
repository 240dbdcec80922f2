/* What the generated wrappers share, and the calls that are no communication: beginning, end, marks. */

#define EXPORT __attribute__((visibility("default")))
#define NOTE(n, requests) \
  if (p.s) note(&p, n, requests);
#define IT(types, k) types[k]

/* Handles are lost when requests complete. */
static inline void note(struct span *p, int n, const MPI_Request *requests) {
  if (!room_for(p->s, n)) {
    p->s->inside = 0;
    p->s = NULL;
    return;
  }
  for (int k = 0; k < n; k++) p->s->handles[k] = request_handle(requests[k]);
}

static void put_collective(struct span *p, int kind, struct communicator *c, int peer, uint64_t out, uint64_t in,
                           int has_in, uint64_t request) {
  struct record *r = put(p, kind, c ? c->index : NO_COMM, peer, NONE, out, request, (size_t)has_in);
  if (r && has_in) *entries_of(r) = (struct entry){0, NONE, NONE, in};
  finish(p, r);
}

int MPI_Init(int *argc, char ***argv) {
  struct begun begun = begin();
  int result = PMPI_Init(argc, argv);
  if (result == MPI_SUCCESS) start(begun, 1);
  return result;
}

int MPI_Init_thread(int *argc, char ***argv, int required, int *provided) {
  struct begun begun = begin();
  int result = PMPI_Init_thread(argc, argv, required, provided);
  if (result == MPI_SUCCESS) start(begun, 1);
  return result;
}

int MPI_Finalize(void) {
  stop();
  return PMPI_Finalize();
}

int MPI_Abort(MPI_Comm comm, int code) {
  struct span p = enter();
  if (p.s) {
    p.t1 = p.t0;
    p.cpu1 = p.cpu0;
    finish(&p, put(&p, 3, index_of(p.s, comm), NONE, NONE, 0, 0, 0));
  }
  return PMPI_Abort(comm, code);
}

/* MPI_Pcontrol(2) is the end of a step, for programs in C and Fortran. */
int MPI_Pcontrol(const int level, ...) {
  if (level == 2) crosswind_record_step();
  return MPI_SUCCESS;
}
