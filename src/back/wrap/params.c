/* params.c: parameters of NAME_run for wrappers, and reserved names.
 *
 * In: the program, facts of its file. Out: the number of elements of an array as an expression of
 * size parameters; whether a name is reserved (reserved.def). */
#include "back/wrap/wrap.h"

#include <inttypes.h>
#include <string.h>

const Buf *param_buf(const Prog *p, const EmitParam *x) {
  return prog_buf(p, x->kind == PK_in ? p->in.at[x->i] : p->out.at[x->i]);
}

/* NULL: not a parameter. */
static const char *size_name(const EmitFacts *f, Sym s) {
  for (u32 i = 0; i < f->params.n; i++)
    if (f->params.at[i].kind == PK_size && f->params.at[i].i == s) return f->params.at[i].name;
  return NULL;
}

void put_elements(StrBuf *t, const Prog *p, const EmitFacts *f, const Buf *b,
                  const SizeSyntax *how) {
  sb_puts(t, how->one);
  for (u32 k = 0; k < b->rank; k++) {
    i64 lo, hi;
    bool known = !dim_is_const(b->dim[k]);
    DimTerms d = dim_terms(p->dims, b->dim[k]);
    dim_bounds(p->dims, b->dim[k], &lo, &hi);
    for (u32 i = 0; i < d.n; i++) known = known && size_name(f, d.sym[i]);
    if (!known) {
      sb_fmt(t, " * %" PRId64 "%s", hi, how->number);
      continue;
    }
    sb_fmt(t, " * %s(%" PRId64, how->size, d.k0);
    for (u32 i = 0; i < d.n; i++)
      sb_fmt(t, " + %" PRId64 " * %s", d.coef[i], size_name(f, d.sym[i]));
    sb_puts(t, ")");
  }
}

bool is_reserved_name(Ctx *c, const char *kind, const char *name) {
  static const char *const words[][2] = {
#define RESERVED(kind, list) {kind, list},
#include "back/wrap/reserved.def"
#undef RESERVED
  };
  const char *wanted = fmt_text(c, " %s ", name);
  for (u32 i = 0; i < sizeof words / sizeof *words; i++)
    if (!strcmp(words[i][0], kind) && strstr(words[i][1], wanted)) return true;
  return false;
}
