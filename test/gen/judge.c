/* judge.c: do all engines agree on a case?
 *
 * The reference evaluates the graph as it was written. The interpreter runs it with all passes and
 * with each of them left out in turn; C is made from what all passes give. Where passes may change
 * last bits they take part only if the case is exact (then no bit may change but the sign of a
 * zero), or smooth (then results must be about as close to a run in double precision as those of
 * the reference). Everything else is compared to the bit; NaN equals NaN. Refusals must agree too.
 */
#include "gen.h"

#include <fcntl.h>
#include <math.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ingot.h"
#include "pass/pass.h"

extern char **environ;

/* ---- one run ---- */

typedef struct Run {
  Ingot *m;
  IngotStatus status;
} Run;

static const char *message(const Ingot *m) {
  for (u32 i = ingot_message_count(m); i-- > 0;) {
    int warning;
    const char *s = ingot_message(m, i, &warning);
    if (!warning) return s;
  }
  return "";
}

static Run start(const Case *k, u32 bind) {
  Run r = {.m = ingot_new(NULL)};
  r.status = ingot_open_bytes(r.m, k->text, k->n, "case");
  if (!r.status && k->target) r.status = ingot_set_target(r.m, k->target);
  for (u32 i = 0; !r.status && i < k->nin; i++) {
    const Tensor *t = k->in[bind][i];
    IngotTensor x = {str_text(k->c, k->name[i]),
                     dtype_info[t->dt].name,
                     t->rank,
                     t->dim,
                     t->data,
                     tensor_bytes(t)};
    r.status = ingot_input(r.m, &x);
  }
  return r;
}

/* May lowering, which cannot be left out, round otherwise? For vectors it sums in another order,
 * and products are not rounded before they are added. */
static bool lower_rounds(const Case *k) {
  return k->target && strcmp(k->target, "scalar");
}

/* Passes are left out where bits are compared with those of ref: then functions are its own. */
static Run run(const Case *k, u32 bind, const char *skip, const char *engine, const char *library,
               const char *name) {
  Run r = start(k, bind);
  if (!r.status && skip && !lower_rounds(k)) r.status = ingot_set_precise(r.m);
  if (!r.status && strncmp(engine, "ref", 3)) {
    IngotPassOptions pipe = {.skip = skip, .check = 1};
    r.status = ingot_passes(r.m, &pipe);
  }
  if (!r.status && library) r.status = ingot_set_library(r.m, library, name);
  if (!r.status) r.status = ingot_run(r.m, engine, k->seed & 0xff);
  return r;
}

/* ---- comparison ---- */

typedef enum Like { LIKE_bits, LIKE_number } Like; /* number: 0 equals -0 */

static bool same_element(DType dt, const u8 *x, const u8 *y, Like how) {
  u32 n = dtype_bytes(dt);
  if (!memcmp(x, y, n)) return true;
  if (!dtype_is_float(dt)) return false;
  double a = scalar_load(dt, x).f, b = scalar_load(dt, y).f;
  return (isnan(a) && isnan(b)) || (how == LIKE_number && a == b);
}

static void show_element(DType dt, const u8 *x, char *to, size_t n) {
  if (dtype_is_float(dt))
    snprintf(to, n, "%.9g", scalar_load(dt, x).f);
  else
    snprintf(to, n, "%lld", (long long)scalar_load(dt, x).i);
}

static bool same_shape(const IngotTensor *x, const IngotTensor *y) {
  return !strcmp(x->dtype, y->dtype) && x->rank == y->rank && x->bytes == y->bytes &&
         (!x->rank || !memcmp(x->dim, y->dim, x->rank * sizeof *x->dim));
}

static bool differ(const Run *x, const Run *y, Like how, char *detail, size_t n) {
  for (u32 i = 0; i < ingot_output_count(x->m); i++) {
    IngotTensor a = ingot_output(x->m, i), b = ingot_output(y->m, i);
    if (!same_shape(&a, &b)) {
      snprintf(detail, n, "%s: type or shape", a.name);
      return true;
    }
    DType dt = dtype_from_name(a.dtype, strlen(a.dtype));
    u32 size = dtype_bytes(dt);
    for (u64 k = 0; k < a.bytes / size; k++) {
      const u8 *p = (const u8 *)a.data + k * size, *q = (const u8 *)b.data + k * size;
      if (same_element(dt, p, q, how)) continue;
      char s[40], t[40];
      show_element(dt, p, s, sizeof s);
      show_element(dt, q, t, sizeof t);
      snprintf(detail, n, "%s element %llu: %s and %s", a.name, (unsigned long long)k, s, t);
      return true;
    }
  }
  return false;
}

/* Largest distance of float outputs from those of a run in double precision, by their scale. */
static double distance(const IngotTensor *x, const IngotTensor *wide) {
  DType dt = dtype_from_name(x->dtype, strlen(x->dtype));
  u32 size = dtype_bytes(dt);
  if (!dtype_is_float(dt) || !x->bytes) return 0;
  double scale = 1e-3, most = 0;
  for (u64 k = 0; k < x->bytes / size; k++) {
    double b = scalar_load(DT_f64, (const u8 *)wide->data + k * 8).f;
    if (isfinite(b) && fabs(b) > scale) scale = fabs(b);
  }
  for (u64 k = 0; k < x->bytes / size; k++) {
    double a = scalar_load(dt, (const u8 *)x->data + k * size).f;
    double b = scalar_load(DT_f64, (const u8 *)wide->data + k * 8).f;
    if (isfinite(a) && isfinite(b) && fabs(a - b) > most) most = fabs(a - b);
  }
  return most / scale;
}

static bool far(const Run *x, const Run *ref, const Run *wide, char *detail, size_t n) {
  for (u32 i = 0; i < ingot_output_count(x->m); i++) {
    IngotTensor a = ingot_output(x->m, i), b = ingot_output(ref->m, i),
                w = ingot_output(wide->m, i);
    double mine = distance(&a, &w), its = distance(&b, &w);
    if (mine <= 100 * its + 1e-5) continue;
    snprintf(detail, n, "%s is %.3g from the result in double precision, that of ref %.3g", a.name,
             mine, its);
    return true;
  }
  return false;
}

/* ---- the passes ---- */

static void blame(Verdict *v, const char *what, const char *detail) {
  if (v->what[0]) return;
  snprintf(v->what, sizeof v->what, "%s", what);
  snprintf(v->detail, sizeof v->detail, "%s", detail);
}

/* Compares a run with the reference; returns false when there is nothing more to learn. */
static bool hold(Verdict *v, const Run *r, const Run *ref, Like how, const char *what) {
  char name[64], detail[500] = "";
  if (r->status == INGOT_UNSUPPORTED) {
    snprintf(v->why, sizeof v->why, "%.190s", message(r->m));
    return true;
  }
  if (r->status != ref->status) {
    snprintf(name, sizeof name, "%.40s: exit %d for %d", what, (int)r->status, (int)ref->status);
    blame(v, name, r->status ? message(r->m) : message(ref->m));
    return false;
  }
  if (!r->status && differ(r, ref, how, detail, sizeof detail)) blame(v, what, detail);
  return !v->what[0];
}

/* Comma-separated names: passes that may change last bits, and one more (or all but lower). */
static void skip_list(char *to, size_t n, bool inexact, u32 one) {
  size_t at = 0;
  to[0] = 0;
  for (u32 i = 0; i < pass_count; i++) {
    if (pass_table[i].unit == lower)
      continue; /* whatever it does to last bits, nothing runs without it */
    bool all = one == pass_count + 1;
    if (all || i == one || (inexact && pass_table[i].exact == PX_bounded))
      at += (size_t)snprintf(to + at, n - at, "%s%s", at ? "," : "", pass_table[i].name);
  }
}

/* The program is the same, and so are the bits. */
static void judge_vm(const Case *k, u32 bind, Verdict *v) {
  Run x = run(k, bind, NULL, "interp", NULL, NULL), y = run(k, bind, NULL, "vm", NULL, NULL);
  hold(v, &y, &x, LIKE_bits, "vm");
  ingot_free(x.m);
  ingot_free(y.m);
}

static void judge_passes(const Case *k, u32 bind, const Run *ref, Verdict *v) {
  bool exact = k->mode == MODE_exact, bits = exact || !lower_rounds(k);
  char skip[400], what[64];
  for (u32 i = 0; bits && i < pass_count + 2; i++) { /* each; none; all */
    if (i < pass_count && pass_table[i].unit == lower) continue;
    skip_list(skip, sizeof skip, !exact, i);
    Run r = run(k, bind, skip, i % 4 == 3 ? "watch" : "interp", NULL, NULL);
    snprintf(what, sizeof what, "interp without [%.40s]", skip);
    bool go =
        hold(v, &r, ref, exact && (i < pass_count + 1 || lower_rounds(k)) ? LIKE_number : LIKE_bits,
             what);
    ingot_free(r.m);
    if (!go) return;
  }
  judge_vm(k, bind, v);
  if (exact) return;
  Run all = run(k, bind, NULL, "interp", NULL, NULL);
  if (all.status && all.status != INGOT_UNSUPPORTED) hold(v, &all, ref, LIKE_bits, "interp");
  if (!all.status && !ref->status && k->smooth) {
    Run wide = run(k, bind, NULL, "ref64", NULL, NULL);
    char detail[400];
    if (!wide.status && far(&all, ref, &wide, detail, sizeof detail))
      blame(v, "interp is far", detail);
    ingot_free(wide.m);
  }
  ingot_free(all.m);
}

/* What was printed is read and printed again. */
static void judge_text(const Case *k, Verdict *v) {
  Ingot *m = ingot_new(NULL);
  const char *text;
  size_t n;
  IngotStatus s = ingot_open_bytes(m, k->text, k->n, "case");
  if (!s) s = ingot_print(m, &text, &n, NULL, NULL);
  if (s)
    blame(v, "the text is refused", message(m));
  else if (n != k->n || memcmp(text, k->text, n))
    blame(v, "the text changes", "printed, read and printed again");
  ingot_free(m);
}

Verdict judge_program(const Case *k) {
  Verdict v = {.what = ""};
  judge_text(k, &v);
  for (u32 b = 0; b < k->nbind && !v.what[0]; b++) {
    Run ref = run(k, b, NULL, "ref", NULL, NULL);
    if (ref.status == INGOT_SYSTEM)
      blame(&v, "ref fails", message(ref.m));
    else
      judge_passes(k, b, &ref, &v);
    v.refused = ref.status != 0;
    ingot_free(ref.m);
  }
  return v;
}

/* ---- C ---- */

bool judge_emit(const Case *k, const char *name, const char *path, Verdict *v) {
  Run r = start(k, 0);
  const char *source, *header;
  size_t n, nh;
  IngotCodegen o = {.name = name, .selftest = -1, .caller = 1, .literal_bytes = 4096};
  if (!r.status) r.status = ingot_emit_c(r.m, &o, &source, &n, &header, &nh);
  if (!r.status) r.status = ingot_write_file(r.m, path, source, n);
  bool ok = !r.status;
  if (r.status == INGOT_UNSUPPORTED)
    snprintf(v->why, sizeof v->why, "C: %.190s", message(r.m));
  else if (r.status)
    blame(v, "emit fails", message(r.m));
  ingot_free(r.m);
  return ok;
}

Verdict judge_library(const Case *k, const char *library, const char *name) {
  Verdict v = {.what = ""};
  for (u32 b = 0; b < k->nbind && !v.what[0]; b++) {
    Run x = run(k, b, NULL, "interp", NULL, NULL), y = run(k, b, NULL, "c", library, name);
    hold(&v, &y, &x, LIKE_bits, "C");
    if (b + 1 == k->nbind && ingot_llvm()) { /* the code is the same for all sizes */
      Run z = run(k, b, NULL, "jit", NULL, NULL);
      hold(&v, &z, &x, LIKE_bits, "jit");
      ingot_free(z.m);
    }
    ingot_free(x.m);
    ingot_free(y.m);
  }
  return v;
}

bool judge_compile(const char *cc, const char *library, const char *const *source, u32 n) {
  char words[200], *argv[256];
  u32 argc = 0;
  snprintf(words, sizeof words, "%s -std=c99 -ffp-contract=off -fPIC -shared -w -o", cc);
  for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
  argv[argc++] = (char *)(uintptr_t)library;
  for (u32 i = 0; i < n && argc < 255; i++) argv[argc++] = (char *)(uintptr_t)source[i];
  argv[argc] = NULL;
  pid_t pid;
  int status = 0;
  if (posix_spawnp(&pid, argv[0], NULL, NULL, argv, environ)) return false;
  waitpid(pid, &status, 0);
  return WIFEXITED(status) && !WEXITSTATUS(status);
}

Verdict judge_all(const Case *k, const char *cc, const char *folder) {
  Verdict v = judge_program(k);
  char source[300], library[300];
  if (v.what[0] || (k->target && !strncmp(cc, "tcc", 3))) return v; /* tcc has no vectors */
  snprintf(source, sizeof source, "%s/one-%d.c", folder, (int)getpid());
  snprintf(library, sizeof library, "%s/one-%d.so", folder, (int)getpid());
  if (judge_emit(k, "m", source, &v)) {
    if (!judge_compile(cc, library, (const char *const[]){source}, 1))
      blame(&v, "the C compiler fails", source);
    else
      v = judge_library(k, library, "m");
    unlink(library);
  }
  if (!v.what[0]) unlink(source);
  return v;
}
