/* cuda_compile.c: compiles kernels with NVRTC.
 *
 * In: the kernels of a program and a chip, such as sm_90. Out: cubins. Method: kernels are dealt to
 * units of about equal text; threads compile them at the same time. A cubin is cached in a file
 * named by a hash of its text, the chip and the version of NVRTC. A product is never contracted to
 * an FMA: the text says where it is one. */
#include "back/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { UNITS_MAX = 16, UNIT_KERNELS = 3 };

typedef struct CompileJob {
  pthread_t thread;
  const CudaLib *l;
  CudaUnit *unit;
  const char *chip;
  bool started;
} CompileJob;

/* Runs in a thread: no allocation in arenas. */
static void compile_unit(CompileJob *j) {
  const CudaLib *l = j->l;
  char arch[64] = "--gpu-architecture=";
  strncat(arch, j->chip, sizeof arch - strlen(arch) - 1);
  const char *option[] = {arch, "--fmad=false", "--std=c++17", "-w", "--ptxas-options=-v"};
  void *program = NULL;
  size_t n = 0;
  int error = l->rtc_new(&program, j->unit->text.at, "kernels.cu", 0, NULL, NULL);
  if (!error) error = l->rtc_compile(program, sizeof option / sizeof *option, option);
  if (program && !l->rtc_log_size(program, &n) && n > 1 && (j->unit->log = malloc(n)))
    l->rtc_log(program, j->unit->log);
  if (!error && !l->rtc_cubin_size(program, &n) && (j->unit->cubin = malloc(n))) {
    l->rtc_cubin(program, j->unit->cubin);
    j->unit->n = n;
  }
  if (program) l->rtc_free(&program);
}

static void *compile_thread(void *arg) {
  compile_unit(arg);
  return NULL;
}

static const char cubin_mark[16] = "ingot cubin 1";

static const char *cubin_file(Ctx *c, const CudaOptions *o, const CudaLib *l, const CudaUnit *u,
                              const char *chip) {
  StrBuf key = sb_new(&c->scratch);
  sb_fmt(&key, "%s NVRTC %d.%d %s\n", o->maker, l->nvrtc_major, l->nvrtc_minor, chip);
  sb_put(&key, u->text.at, u->text.n);
  return str_text(
      c, str_fmt(c, "%s/cubin-%s%s", o->keep, digest_bytes(key.at, key.n).digit, o->label));
}

static bool read_cubin(Ctx *c, const CudaOptions *o, const char *path, CudaUnit *u) {
  u64 hash;
  if (!o->take(c, path)) return false;
  File f = file_read_own(c, path);
  if (f.n < sizeof cubin_mark + sizeof hash || memcmp(f.at, cubin_mark, sizeof cubin_mark) != 0)
    return false;
  memcpy(&hash, f.at + f.n - sizeof hash, sizeof hash);
  if (hash != hash_bytes(f.at, f.n - sizeof hash)) return false;
  u->n = f.n - sizeof cubin_mark - sizeof hash;
  u->cubin = malloc(u->n ? u->n : 1);
  if (!u->cubin) return false;
  memcpy(u->cubin, f.at + sizeof cubin_mark, u->n);
  return true;
}

static void write_cubin(Ctx *c, const char *path, const CudaUnit *u) {
  StrBuf t = sb_new(&c->scratch);
  sb_put(&t, cubin_mark, sizeof cubin_mark);
  sb_put(&t, u->cubin, u->n);
  u64 hash = hash_bytes(t.at, t.n);
  sb_put(&t, &hash, sizeof hash);
  files_write(c, &(FileOut){.path = path, .at = t.at, .n = t.n, .cached = true}, 1);
}

/* Kernels in the order of the text, in units that end when they have their part of it. */
static CudaUnits deal(Ctx *c, CudaText *t) {
  long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  u32 n = (t->fn.n + UNIT_KERNELS - 1) / UNIT_KERNELS,
      most = cpus < UNITS_MAX ? (u32)cpus : UNITS_MAX;
  if (n > most) n = most;
  CudaUnits all = {n, NEWS(&c->keep, CudaUnit, n + 1)};
  u32 i = 0;
  for (u32 k = 0; k < n; k++) {
    CudaUnit *u = &all.at[k];
    u->text = sb_new(&c->keep);
    sb_put(&u->text, t->support.at, t->support.n);
    for (; i < t->fn.n && t->fn.at[i].at < t->kernels.n * (k + 1) / n; i++) {
      sb_put(&u->text, t->kernels.at + t->fn.at[i].at, t->fn.at[i].n);
      t->fn.at[i].unit = k;
    }
    sb_cstr(&u->text);
  }
  return all;
}

static void check_units(Ctx *c, const CudaUnits *all) {
  for (u32 i = 0; i < all->n; i++)
    if (!all->at[i].cubin)
      fail(c, ERR_system, LOC_NONE, "NVRTC refused the generated kernels:\n%.2000s",
           all->at[i].log ? all->at[i].log : "");
}

CudaUnits cuda_compile(Ctx *c, const CudaLib *l, CudaText *t, const CudaOptions *o,
                       const char *chip) {
  CudaUnits all = deal(c, t);
  CompileJob *job = NEWS(&c->keep, CompileJob, all.n + 1);
  const char **file = NEWS(&c->keep, const char *, all.n + 1);
  for (u32 i = 0; i < all.n; i++) {
    job[i] = (CompileJob){.l = l, .unit = &all.at[i], .chip = chip};
    if (o->keep) {
      file[i] = cubin_file(c, o, l, &all.at[i], chip);
      if (read_cubin(c, o, file[i], &all.at[i])) {
        file[i] = NULL;
        continue;
      }
    }
    job[i].started = !pthread_create(&job[i].thread, NULL, compile_thread, &job[i]);
    if (!job[i].started) compile_unit(&job[i]);
  }
  for (u32 i = 0; i < all.n; i++)
    if (job[i].started) pthread_join(job[i].thread, NULL);
  check_units(c, &all);
  for (u32 i = 0; i < all.n; i++)
    if (file[i]) write_cubin(c, file[i], &all.at[i]);
  return all;
}
