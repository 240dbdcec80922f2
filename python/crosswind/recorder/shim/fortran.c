/* Fortran: MPI's own Fortran form does the work with the addresses that the program passed; only what is noted is
 * converted. */

#define FORTRAN_STATUS ((sizeof(MPI_Status) + sizeof(MPI_Fint) - 1) / sizeof(MPI_Fint))
#define FORTRAN_IT(types, k) PMPI_Type_f2c(types[k])
#define FORTRAN_NOTE(n, requests) \
  if (p.s) fortran_note(&p, n, f_##requests);

_Static_assert(sizeof(MPI_Fint) == sizeof(int), "Fortran programs with integers of 8 bytes cannot be recorded");

/* A name in MPI's Fortran library, which may have been loaded for a part of the program only. */
static void *symbol(const char *name) {
  void *found = dlsym(RTLD_NEXT, name);
  static const char *libraries[] = {"libmpi_mpifh.so.40", "libmpi_usempif08.so.40", "libmpifort.so.12",
                                    "libmpichfort.so.12"};
  for (size_t at = 0; !found && at < sizeof libraries / sizeof *libraries; at++) {
    void *library = dlopen(libraries[at], RTLD_LAZY | RTLD_NOLOAD);
    if (library) found = dlsym(library, name);
    if (library) dlclose(library);
  }
  return found;
}

static void *fortran_real(void **real, const char *name) {
  if (*real) return *real;
  void *found = symbol(name);
  char other[80];
  snprintf(other, sizeof other, "%s_", name);
  if (!found) found = symbol(other);
  other[strlen(name) - 1] = 0;
  if (!found) found = symbol(other);
  for (char *at = other; *at; at++)
    if (*at >= 'a' && *at <= 'z') *at -= 'a' - 'A';
  if (!found) found = symbol(other);
  if (!found) {
    fprintf(stderr, "crosswind record: %s is not in this MPI's Fortran library\n", name);
    abort();
  }
  return *real = found;
}

/* Open MPI knows constants by the addresses of variables, MPICH by addresses that it keeps in variables. */
static int is_constant(const void *address, const char *const *variables, const char *const *pointers) {
  for (; *variables; variables++)
    if (address == symbol(*variables)) return address != NULL;
  for (; *pointers; pointers++) {
    void **at = symbol(*pointers);
    if (at && address == *at) return address != NULL;
  }
  return 0;
}

static int fortran_in_place(const void *buffer) {
  static const char *const variables[] = {"mpi_fortran_in_place_", "MPIR_F08_MPI_IN_PLACE", NULL};
  static const char *const pointers[] = {"MPIR_F_MPI_IN_PLACE", NULL};
  static __thread const void *no, *yes; /* most calls are made with the same buffers */
  if (buffer == no) return 0;
  if (buffer == yes) return 1;
  int found = is_constant(buffer, variables, pointers);
  *(found ? &yes : &no) = buffer;
  return found;
}

static int fortran_ignored(const void *status) {
  static const char *const variables[] = {"mpi_fortran_status_ignore_", "mpi_fortran_statuses_ignore_",
                                          "MPIR_F08_MPI_STATUS_IGNORE_OBJ", "MPIR_F08_MPI_STATUSES_IGNORE_OBJ", NULL};
  static const char *const pointers[] = {"MPI_F_STATUS_IGNORE", "MPI_F_STATUSES_IGNORE", "MPI_F08_STATUS_IGNORE",
                                         "MPI_F08_STATUSES_IGNORE", NULL};
  static __thread const void *no, *yes;
  if (status == no) return 0;
  if (status == yes) return 1;
  int found = is_constant(status, variables, pointers);
  *(found ? &yes : &no) = status;
  return found;
}

static inline void fortran_note(struct span *p, int n, const MPI_Fint *requests) {
  if (!room_for(p->s, n)) {
    p->s->inside = 0;
    p->s = NULL;
    return;
  }
  for (int k = 0; k < n; k++) p->s->handles[k] = request_handle(PMPI_Request_f2c(requests[k]));
}

/* Converts the first n, in place where they were received into the thread's own room. */
static MPI_Status *fortran_statuses(struct stream *s, const MPI_Fint *from, int n) {
  for (int k = 0; k < n; k++) {
    MPI_Fint one[FORTRAN_STATUS];
    memcpy(one, from + (size_t)k * FORTRAN_STATUS, sizeof one);
    PMPI_Status_f2c(one, &s->statuses[k]);
  }
  return s->statuses;
}

static void fortran_init(void (*real)(MPI_Fint *), MPI_Fint *f_error) {
  struct begun begun = begin();
  MPI_Fint own_error = 0;
  if (!f_error) f_error = &own_error;
  real(f_error);
  if (*f_error == MPI_SUCCESS) start(begun, 1);
}

static void fortran_init_thread(void (*real)(MPI_Fint *, MPI_Fint *, MPI_Fint *), MPI_Fint *required,
                                MPI_Fint *provided, MPI_Fint *f_error) {
  struct begun begun = begin();
  MPI_Fint own_error = 0;
  if (!f_error) f_error = &own_error;
  real(required, provided, f_error);
  if (*f_error == MPI_SUCCESS) start(begun, 1);
}

static void fortran_finalize(void (*real)(MPI_Fint *), MPI_Fint *f_error) {
  MPI_Fint own_error = 0;
  stop();
  real(f_error ? f_error : &own_error);
}

static void fortran_pcontrol(void (*real)(MPI_Fint *), MPI_Fint *level) {
  (void)real;
  if (*level == 2) crosswind_record_step();
}
