/* ranks.c: data-parallel training with Open MPI.
 *
 * In: the environment set by mpirun. Out: the rank of this process, and an all-gather of bytes in
 * rank order. The library is loaded only if needed. Its functions and the objects for its
 * constants have kept their names since version 1.3; libmpi.so.40 is Open MPI 2 to 5. If a rank
 * ends, mpirun ends the others.
 */
#include "driver/train/train_loop.h"

#include <dlfcn.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

typedef struct MpiCalls {
  int (*init)(int *argc, char ***argv);
  int (*finalize)(void);
  int (*rank)(void *comm, int *to);
  int (*size)(void *comm, int *to);
  int (*gather)(const void *from, int n, void *type, void *to, int each, void *as, void *comm);
  int (*send)(void *at, int n, void *type, int root, void *comm);
  void *world, *byte;
} MpiCalls;

Ranks ranks_find(void) {
  const char *size = getenv("OMPI_COMM_WORLD_SIZE"), *rank = getenv("OMPI_COMM_WORLD_RANK");
  Ranks r = {.rank = 0, .size = 1};
  if (!size || !rank) return r;
  long n = strtol(size, NULL, 10), mine = strtol(rank, NULL, 10);
  if (n > 1 && n < INT_MAX && mine >= 0 && mine < n) r = (Ranks){.rank = (int)mine, .size = (int)n};
  return r;
}

static void find(Ctx *c, void *lib, const char *name, void *to) {
  void *p = dlsym(lib, name);
  if (!p) fail(c, ERR_unsupported, LOC_NONE, "libmpi.so.40 has no %s: it is not Open MPI", name);
  memcpy(to, &p, sizeof p);
}

void ranks_begin(Ctx *c, Ranks *r) {
  if (r->size == 1) return;
  void *lib = dlopen("libmpi.so.40", RTLD_NOW | RTLD_GLOBAL);
  if (!lib)
    fail(c, ERR_unsupported, LOC_NONE,
         "training with %d processes needs Open MPI (Debian: libopenmpi3), which cannot be loaded: "
         "%s",
         r->size, dlerror());
  MpiCalls *m = NEW(&c->keep, MpiCalls);
  find(c, lib, "MPI_Init", &m->init);
  find(c, lib, "MPI_Finalize", &m->finalize);
  find(c, lib, "MPI_Comm_rank", &m->rank);
  find(c, lib, "MPI_Comm_size", &m->size);
  find(c, lib, "MPI_Allgather", &m->gather);
  find(c, lib, "MPI_Bcast", &m->send);
  find(c, lib, "ompi_mpi_comm_world", &m->world);
  find(c, lib, "ompi_mpi_byte", &m->byte);
  if (m->init(NULL, NULL) || m->rank(m->world, &r->rank) || m->size(m->world, &r->size))
    fail(c, ERR_system, LOC_NONE, "Open MPI: MPI_Init failed");
  r->mpi = m;
}

void ranks_end(Ranks *r) {
  if (r->mpi) r->mpi->finalize();
  r->mpi = NULL;
}

void ranks_gather(Ctx *c, const Ranks *r, const void *mine, void *all, u64 n) {
  const MpiCalls *m = r->mpi;
  u8 *to = all;
  bool bad = false;
  if (!m) {
    memcpy(all, mine, n);
    return;
  }
  if (n <= INT_MAX) {
    bad = m->gather(mine, (int)n, m->byte, all, (int)n, m->byte, m->world) != 0;
  } else { /* counts are int */
    memcpy(to + (u64)r->rank * n, mine, n);
    for (int k = 0; k < r->size; k++)
      for (u64 at = 0; at < n; at += INT_MAX) {
        u64 some = n - at < INT_MAX ? n - at : INT_MAX;
        bad |= m->send(to + (u64)k * n + at, (int)some, m->byte, k, m->world) != 0;
      }
  }
  if (bad) fail(c, ERR_system, LOC_NONE, "Open MPI: communication between ranks failed");
}
