/* guess.c: numbers for dimensions that nobody gave, so that a refusal can show options that work.
 *
 * In: what an import missed. Out: words for the command line, if some numbers let the import
 * succeed. Method: usual sizes are tried in turn, for sides of images and for lengths, each also
 * with some of the dimensions 1 (a batch in an odd place). The number of trials and their time are
 * bounded; this runs only where the answer is a refusal anyway.
 */
#include "api/own.h"

#include <string.h>

enum { TRIALS = 48, TRIAL_MS = 3000, FEW = 4 };
static const i64 side[] = {224, 256, 640, 32, 48, 8}, length[] = {128, 512, 16, 64, 1024, 8};
enum { SIZES = sizeof side / sizeof *side };

typedef struct Guess {
  Ingot *m;
  const ImportOptions *o;
} Guess;

static void try_import(Ctx *c, void *arg) {
  const Guess *a = arg;
  onnx_import(c, a->m->onnx, a->m->file, a->o);
}

/* Whatever a trial says is taken back, and what was said before is no failure of its own. */
static bool works(Ingot *m, const ImportOptions *o) {
  Ctx *c = m->c;
  Loc here = c->here;
  Diag **end = c->diags_end;
  u32 warnings = c->nwarnings, errors = c->nerrors;
  const char *why;
  c->nerrors = 0;
  Err e = ctx_try(c, try_import, &(Guess){m, o}, &why);
  c->nerrors = errors;
  c->here = here;
  c->diags_end = end;
  *end = NULL;
  c->nwarnings = warnings;
  return !e;
}

static void set_values(BindDim *dim, const MissingDims *miss, u32 size, u32 ones) {
  for (u32 i = 0; i < miss->n; i++) {
    dim[i] = miss->at[i].bind;
    bool one = dim[i].value || (i < FEW && ones >> i & 1);
    dim[i].value = one ? 1 : miss->at[i].is_side ? side[size] : length[size];
  }
}

static void keep_words(Ingot *m, const BindDim *dim, u32 n) {
  Ctx *c = m->c;
  for (u32 i = 0; i < n; i++) {
    Text t = text_new(&c->keep);
    text_puts(&t, str_text(c, dim[i].input ? dim[i].input : dim[i].symbol));
    if (dim[i].input) text_fmt(&t, ":%lld", (long long)dim[i].axis);
    text_fmt(&t, "=%lld", (long long)dim[i].value);
    *vec_push(&c->keep, &m->hint) = "-d";
    *vec_push(&c->keep, &m->hint) = text_cstr(&t);
  }
}

void api_guess(Ingot *m, const ImportOptions *asked, const MissingDims *miss) {
  Ctx *c = m->c;
  ImportOptions o = *asked;
  o.missing = NULL;
  o.outputs = NULL;
  o.frozen = NULL;
  o.ndim += miss->n;
  o.dim = NEWS(&c->keep, BindDim, o.ndim);
  if (asked->ndim) memcpy(o.dim, asked->dim, asked->ndim * sizeof *o.dim);
  BindDim *mine = o.dim + asked->ndim;
  u32 masks = miss->n < FEW ? 1u << miss->n : 1u << FEW, trials = 0;
  double start = time_ms();
  for (u32 i = 0; i < miss->n; i++)
    if (miss->at[i].bind.rank) return; /* a whole shape cannot be guessed */
  for (u32 i = 0; i < SIZES; i++)
    for (u32 ones = 0; ones < masks; ones++) {
      if (trials++ == TRIALS || time_ms() - start > TRIAL_MS) return;
      set_values(mine, miss, i, ones);
      if (!works(m, &o)) continue;
      keep_words(m, mine, miss->n);
      return;
    }
}

const char *ingot_hint(const Ingot *m, uint32_t i) {
  return m && i < m->hint.n ? m->hint.at[i] : NULL;
}

const char *ingot_nearest(const char *said, const char *const *name, size_t n) {
  Near near = near_new(said);
  for (size_t i = 0; said && name && i < n; i++)
    if (name[i]) near_try(&near, name[i]);
  return near.name;
}
