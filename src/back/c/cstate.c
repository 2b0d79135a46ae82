/* cstate.c: state of a generated model, and its initial values.
 *
 * In: the states of a program. Out: NAME_reset, which initializes them. Initial states are mostly
 * zeros, such as a KV cache with a few positions. Nonzero pieces are stored in one constant next to
 * the weights and copied. */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

enum { GRAIN = 64 }; /* granularity of pieces in bytes */

static bool is_zero(const u8 *at, u64 n) {
  for (u64 i = 0; i < n; i++)
    if (at[i]) return false;
  return true;
}

/* The nonzero pieces of a state, in multiples of GRAIN; adjacent ones are merged. */
static void add_pieces(Emit *e, const Buf *x, StrBuf *all) {
  const u8 *data = x->data->data;
  u64 bytes = tensor_bytes(x->data);
  bool open = false;
  for (u64 i = 0; i < bytes; i += GRAIN) {
    u64 n = bytes - i < GRAIN ? bytes - i : GRAIN;
    bool zero = is_zero(data + i, n);
    if (!zero && open)
      e->state_init.pieces.at[e->state_init.pieces.n - 1].n += n;
    else if (!zero)
      *vec_push(&e->c->keep, &e->state_init.pieces) = (StateRange){x->offset + i, all->n, n};
    if (!zero) sb_put(all, (const char *)data + i, n);
    open = !zero;
  }
}

bool has_own_state(const Prog *p) {
  for (BufId b = 1; b < p->buf.n; b++)
    if (prog_buf(p, b)->space == BS_state && !prog_buf(p, b)->shared) return true;
  return false;
}

bool has_shared_state(const Prog *p) {
  for (BufId b = 1; b < p->buf.n; b++)
    if (prog_buf(p, b)->shared) return true;
  return false;
}

void begin_state(Emit *e) {
  StrBuf all = sb_new(&e->c->keep);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    if (x->space == BS_state && x->data && !x->shared) add_pieces(e, x, &all);
  }
  if (!all.n) return;
  if (e->o->weights == WM_pointer)
    fail(e->c, ERR_unsupported, LOC_NONE,
         "initial state other than zeros is stored with the weights, which excludes "
         "--weights=pointer");
  i64 n = (i64)all.n;
  Tensor *t = tensor_wrap(&e->c->keep, DT_u8, &n, 1, all.at);
  e->state_init.initial = prog_add_const(e->p, t, str_of(e->c, "initial state"));
}

static void put_pieces(Emit *e, StrBuf *t) {
  sb_puts(t, "  static const struct { size_t at, from, n; } piece[] = {");
  for (u32 i = 0; i < e->state_init.pieces.n; i++) {
    const StateRange *p = &e->state_init.pieces.at[i];
    sb_fmt(t, "%s{%" PRIu64 ", %" PRIu64 ", %" PRIu64 "}",
           i % 4 ? ", "
           : i   ? ",\n    "
                 : "",
           p->at, p->from, p->n);
  }
  sb_puts(t, "};\n  const unsigned char *const from = ");
  if (e->weights.blob) {
    put_template(e, t, "${name}_weights_file + %" PRIu64, e->weights.place[e->state_init.initial]);
  } else {
    StrBuf *outer = e->t;
    e->t = t;
    put_buf_name(e, e->state_init.initial);
    e->t = outer;
  }
  sb_fmt(t,
         ";\n  for (size_t i = 0; i < %u; i++)\n"
         "    memcpy((unsigned char *)arena + piece[i].at, from + piece[i].from, piece[i].n);\n",
         e->state_init.pieces.n);
}

void put_reset(Emit *e, StrBuf *t) {
  put_template(e, t, "\n%svoid ${entry}_reset${sfx}(void *arena) {\n", c_linkage(e));
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    if (x->space != BS_state || x->shared) continue;
    sb_fmt(t, "  memset((unsigned char *)arena + %" PRIu64 ", 0, %" PRIu64 "); ", x->offset,
           buf_bytes(e, b));
    put_trailing_comment(e, t, x->name);
  }
  if (e->state_init.initial) put_pieces(e, t);
  sb_puts(t, "}\n");
}
