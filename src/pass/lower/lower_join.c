/* lower_join.c: concat and pad, as copies that have a form; and the node that holds dimensions. */
#include "pass/lower/lower.h"

void lower_concat(Lower *l, Cursor at) {
  u32 axis = (u32)node_int(l->n, AT_axis, 0);
  Dim offset = 0;
  for (u32 i = 0; i < l->n->nin; i++) {
    BufId from = lower_in(l, i);
    if (storage_of(l, from)->into != l->n->out[0]) { /* not in its slot yet */
      Form f;
      form_part(l->p, from, lower_out(l, 0), axis, offset, &f);
      prog_seek_end(l->p, &at);
      lower_form(l, at, &f);
    }
    offset = dim_add(l->p->dims, offset, prog_buf(l->p, from)->dim[axis]);
  }
}

void lower_pad(Lower *l, Cursor at) {
  u32 n;
  Form f;
  form_copy(l->p, lower_in(l, 1), lower_out(l, 0), &f);
  lower_form(l, at, &f);
  const Dim *lo = node_list(l->n, AT_lo, &n), *interior = node_list(l->n, AT_interior, &n);
  form_spread(l->p, lower_in(l, 0), lower_out(l, 0), lo, interior, &f);
  lower_form(l, at, &f);
}

void lower_dims(Lower *l, Cursor at) {
  Prog *p = l->p;
  BufId b = lower_out(l, 0);
  u32 n;
  const Dim *d = node_list(l->n, AT_shape, &n);
  for (u32 i = 0; i < n; i++) {
    ExprId idx = ex_int(p, i), value = ex_cast(p, prog_buf(p, b)->dt, ex_dim(p, d[i]), false);
    prog_store(p, &at, b, &idx, prog_buf(p, b)->rank, value);
  }
}
