/* form.c: describes nodes as forms.
 *
 * In: a node and the buffers of its operands and results. Out: its Form. Nothing is emitted here.
 * The order of loops is left open, except that of reduction axes, which is the order of the sum.
 * Operators whose indices depend on data have no form.
 */
#include "pass/form/form.h"

#include <math.h>
#include <string.h>

static Index of_axis(u32 axis) {
  return (Index){.n = 1, .axis = {axis}, .coef = {1}};
}

static u32 add_axis(Form *f, Dim n, bool reduce) {
  f->axis[f->naxes] = (Axis){.hi = n, .reduce = reduce};
  return f->naxes++;
}

static void set_operand(Prog *p, Operand *o, BufId b) {
  o->buf = b;
  o->rank = prog_buf(p, b)->rank;
}

/* A result whose dimensions are the first axes. */
static void set_out(Prog *p, Form *f, BufId b) {
  *f = (Form){.naxes = 0};
  set_operand(p, &f->out, b);
  for (u32 i = 0; i < f->out.rank; i++) {
    add_axis(f, prog_buf(p, b)->dim[i], false);
    f->out.idx[i] = of_axis(i);
  }
}

/* An operand broadcast from the right against the first `rank` axes. */
static void add_stretched(Prog *p, Form *f, BufId b, u32 rank) {
  Operand *o = &f->in[f->nin++];
  set_operand(p, o, b);
  u32 skip = rank - o->rank;
  for (u32 i = 0; i < o->rank; i++) {
    Dim d = prog_buf(p, b)->dim[i], e = f->axis[skip + i].hi;
    if (d == 1) continue;
    o->idx[i] = of_axis(skip + i);
    i64 lo, hi;
    dim_bounds(p->dims, d, &lo, &hi);
    o->idx[i].stretch = d != e && lo <= 1;
  }
}

/* ---- moves ---- */

void form_copy(Prog *p, BufId from, BufId to, Form *f) {
  set_out(p, f, to);
  add_stretched(p, f, from, f->naxes);
}

void form_part(Prog *p, BufId from, BufId to, u32 axis, Dim offset, Form *f) {
  set_out(p, f, to);
  f->axis[axis].hi = prog_buf(p, from)->dim[axis];
  f->out.idx[axis].base = offset;
  f->nin = 1;
  set_operand(p, &f->in[0], from);
  for (u32 i = 0; i < f->naxes; i++) f->in[0].idx[i] = of_axis(i);
}

void form_spread(Prog *p, BufId from, BufId to, const Dim *lo, const Dim *interior, Form *f) {
  set_out(p, f, to);
  f->nin = 1;
  set_operand(p, &f->in[0], from);
  for (u32 i = 0; i < f->naxes; i++) {
    f->in[0].idx[i] = of_axis(i);
    f->axis[i].hi = prog_buf(p, from)->dim[i];
    f->out.idx[i].base = lo[i];
    f->out.idx[i].coef[0] = interior[i] + 1;
  }
}

static void of_transpose(const Node *n, Form *f) {
  u32 count;
  const Dim *perm = node_list(n, AT_perm, &count);
  for (u32 i = 0; i < count; i++) f->in[0].idx[perm[i]] = of_axis(i);
}

static void of_slice(const Node *n, Form *f) {
  u32 count;
  const Dim *start = node_list(n, AT_start, &count), *step = node_list(n, AT_step, &count);
  for (u32 i = 0; i < count; i++) {
    i64 s = step[i] > DIM_MAX ? DIM_MAX : step[i] < -DIM_MAX ? -DIM_MAX : step[i];
    f->in[0].idx[i] = of_axis(i);
    f->in[0].idx[i].coef[0] = s; /* a larger index never occurs */
    f->in[0].idx[i].base = start[i];
    if (f->axis[i].hi == 1) f->in[0].idx[i].n = 0;
  }
}

static void of_view(const Node *n, Prog *p, const BufId *buf, Form *f) {
  set_out(p, f, buf[n->out[0]]);
  if (n->op == OP_broadcast) {
    add_stretched(p, f, buf[n->in[0]], f->naxes);
    return;
  }
  f->nin = 1;
  set_operand(p, &f->in[0], buf[n->in[0]]);
  if (n->op == OP_transpose)
    of_transpose(n, f);
  else
    of_slice(n, f);
}

/* ---- reductions ---- */

Op reduce_op(Op op, DType dt) {
  if (dt != DT_bool) return op;
  return op == OP_add || op == OP_max ? OP_or : OP_and;
}

static void set_reduction(Form *f, Op op, DType dt) {
  f->reduce = true;
  f->dt = dt;
  f->with = reduce_op(op, dt);
  f->acc = dtype_is_float(dt) ? dtype_acc(dt) : dt;
  f->init = scalar_identity(op, dt);
}

static void of_reduce(const Node *n, Prog *p, const BufId *buf, Form *f) {
  BufId x = buf[n->in[0]];
  u32 count, mask = 0, k = 0;
  const Dim *axes = node_list(n, AT_axes, &count);
  for (u32 i = 0; i < count; i++) mask |= 1u << axes[i];
  bool keep = node_int(n, AT_keep, 0) != 0;
  *f = (Form){.nin = 1};
  set_operand(p, &f->in[0], x);
  set_operand(p, &f->out, buf[n->out[0]]);
  for (u32 pass = 0; pass < 2; pass++) {
    for (u32 i = 0; i < f->in[0].rank; i++) {
      bool gone = mask >> i & 1;
      if (gone == (pass == 1)) f->in[0].idx[i] = of_axis(add_axis(f, prog_buf(p, x)->dim[i], gone));
      if (!pass && !gone)
        f->out.idx[k++] = of_axis(f->naxes - 1);
      else if (!pass && keep)
        k++;
    }
  }
  set_reduction(f, op_reducer(n->op), prog_buf(p, x)->dt);
  if (n->op == OP_resume_sum) {
    f->from = f->out;
    f->from.buf = buf[n->in[1]];
  }
}

bool operand_moves(const Operand *o, u32 axis) {
  for (u32 d = 0; d < o->rank; d++)
    if (index_moves(&o->idx[d], axis)) return true;
  return false;
}

const Index *form_guard(const Form *f, u32 axis, const Operand **of) {
  for (const Operand *o = f->in; o < f->in + f->nin; o++)
    for (const Index *ix = o->idx; ix < o->idx + o->rank; ix++) {
      if (!ix->guard || !index_moves(ix, axis)) continue;
      if (of) *of = o;
      return ix;
    }
  return NULL;
}

static void renumber(Operand *o, const u32 *to) {
  for (u32 d = 0; d < o->rank; d++)
    for (u32 i = 0; i < o->idx[d].n; i++) o->idx[d].axis[i] = to[o->idx[d].axis[i]];
}

/* Moves axes that the result and both factors share to the front: each point of them is a separate
 * matmul, and neighboring kernels loop over the same slices (loop_fuse.c). The last axis of the
 * result stays if it is contiguous. */
static void batch_first(Form *f) {
  u32 to[FORM_AXES], n = 0;
  Axis was[FORM_AXES];
  bool batch[FORM_AXES] = {0};
  for (u32 i = 0; i + 1 < f->out.rank; i++)
    batch[i] = operand_moves(&f->in[0], i) && operand_moves(&f->in[1], i);
  for (u32 pass = 0; pass < 2; pass++)
    for (u32 i = 0; i < f->naxes; i++)
      if (batch[i] == !pass) to[i] = n++;
  memcpy(was, f->axis, sizeof was);
  for (u32 i = 0; i < f->naxes; i++) f->axis[to[i]] = was[i];
  renumber(&f->out, to);
  for (u32 k = 0; k < f->nin; k++) renumber(&f->in[k], to);
}

static void of_contract(Graph *g, const Node *n, Prog *p, const BufId *buf, Form *f) {
  const char *text = str_text(g->c, node_attr(n, AT_spec)->u.s);
  const char *letter[2] = {text, strchr(text, ',') + 1};
  char name[FORM_AXES];
  set_out(p, f, buf[n->out[0]]);
  memcpy(name, strstr(text, "->") + 2, f->naxes);
  f->nin = 2;
  for (u32 k = 0; k < 2; k++) {
    set_operand(p, &f->in[k], buf[n->in[k]]);
    for (u32 i = 0; i < f->in[k].rank; i++) {
      Dim d = prog_buf(p, f->in[k].buf)->dim[i];
      const char *at = memchr(name, letter[k][i], f->naxes);
      u32 axis = at ? (u32)(at - name) : add_axis(f, d, true);
      name[axis] = letter[k][i];
      if (dim_is_const(d)) f->axis[axis].hi = d;
      f->in[k].idx[i] = of_axis(axis);
    }
  }
  f->body = FB_op;
  f->op = reduce_op(OP_mul, prog_buf(p, f->out.buf)->dt);
  set_reduction(f, OP_add, prog_buf(p, f->out.buf)->dt);
  batch_first(f);
}

/* ---- windows ---- */

/* Index o * stride + k * dilation - lo, and on which side of extent x it can leave. Window
 * positions that only ever meet padding are cut off, so that a window much larger than the operand
 * costs no more. */
static Index window_index(Form *f, u32 o, u32 k, Dim x, i64 stride, i64 dilation, i64 lo, i64 hi) {
  Index i = {.n = 2, .axis = {o, k}, .coef = {stride, dilation}, .shift = -lo};
  Axis *out = &f->axis[o], *win = &f->axis[k];
  if (lo) i.guard |= GUARD_low;
  if (hi) i.guard |= GUARD_high;
  if (!dim_is_const(x) || !dim_is_const(out->hi)) return i;
  i64 first = lo - (out->hi - 1) * stride, end = x + lo;
  if (first > 0) win->lo = (first + dilation - 1) / dilation;
  if (end <= 0)
    win->hi = 0;
  else if ((end - 1) / dilation + 1 < win->hi)
    win->hi = (end - 1) / dilation + 1;
  if (win->lo > win->hi) win->lo = win->hi;
  if ((out->hi - 1) * stride + (win->hi - 1) * dilation - lo < x) i.guard &= (u8)~GUARD_high;
  if (win->lo * dilation >= lo) i.guard &= (u8)~GUARD_low;
  return i;
}

/* Index of a window over an operand with gaps of zeros, which form_phase resolves. */
static Index dilated_window_index(u32 o, u32 k, i64 dilation, i64 lo) {
  return (Index){.n = 2, .axis = {o, k}, .coef = {1, 1}, .shift = -lo, .dilation = dilation};
}

/* Appends the axes of the window. Axes from o on are its positions. It slides over the dimensions
 * of in[0] from `first` on. */
static void add_window(Prog *p, const NodeWindow *w, u32 first, u32 o, Form *f) {
  for (u32 i = 0; i < w->n; i++) {
    u32 k = add_axis(f, w->size[i], true);
    Dim x = prog_buf(p, f->in[0].buf)->dim[first + i];
    f->in[0].idx[first + i] =
        w->input_dilation[i] > 1
            ? dilated_window_index(o + i, k, w->input_dilation[i], w->lo[i])
            : window_index(f, o + i, k, x, w->stride[i], w->dilation[i], w->lo[i], w->hi[i]);
  }
}

u32 form_phases(const Form *f) {
  i64 n = 1;
  for (u32 d = 0; f->nin && d < f->in[0].rank; d++)
    if (f->in[0].idx[d].dilation > 1) n *= f->in[0].idx[d].dilation;
  return (u32)n;
}

/* axis = from + by * axis' */
static void restep(Operand *o, u32 axis, i64 from, i64 by) {
  for (u32 d = 0; d < o->rank; d++)
    for (u32 i = 0; i < o->idx[d].n; i++) {
      if (o->idx[d].axis[i] != axis) continue;
      o->idx[d].shift += o->idx[d].coef[i] * from;
      o->idx[d].coef[i] *= by;
    }
}

/* Phase r: result o * s + r meets elements only through window positions k0 + t * s, element o + t
 * + (r + k0 - lo) / s. */
Form form_phase(Prog *p, const Form *from, u32 which) {
  Form part = *from, *f = &part;
  for (u32 d = 0; d < f->in[0].rank; d++) {
    Index ix = f->in[0].idx[d];
    i64 s = ix.dilation, r, k0;
    if (s <= 1) continue;
    Axis *o = &f->axis[ix.axis[0]], *k = &f->axis[ix.axis[1]];
    r = which % s;
    which /= (u32)s;
    k0 = ((-ix.shift - r) % s + s) % s;
    o->hi = o->hi > r ? (o->hi - r + s - 1) / s : 0;
    k->hi = k->hi > k0 ? (k->hi - k0 + s - 1) / s : 0;
    restep(&f->out, ix.axis[0], r, s);
    restep(&f->in[1], ix.axis[1], k0, s);
    f->in[0].idx[d] = window_index(f, ix.axis[0], ix.axis[1], prog_buf(p, f->in[0].buf)->dim[d], 1,
                                   1, -(r + k0 + ix.shift) / s, 1);
  }
  return part;
}

static void of_pool(Graph *g, const Node *n, Prog *p, const BufId *buf, Form *f) {
  NodeWindow w = node_window(g, n);
  set_out(p, f, buf[n->out[0]]);
  u32 lead = f->naxes - w.n;
  f->nin = 1;
  set_operand(p, &f->in[0], buf[n->in[0]]);
  for (u32 i = 0; i < lead; i++) f->in[0].idx[i] = of_axis(i);
  add_window(p, &w, lead, lead, f);
  set_reduction(f, op_reducer(n->op), prog_buf(p, f->in[0].buf)->dt);
}

/* The output channel is two axes: group, and channel within the group. */
static void of_conv(Graph *graph, const Node *n, Prog *p, const BufId *buf, Form *f) {
  const Dim *od = prog_buf(p, buf[n->out[0]])->dim, *wd = prog_buf(p, buf[n->in[1]])->dim;
  NodeWindow w = node_window(graph, n);
  i64 group = node_int(n, AT_group, 1), per = wd[0] / group;
  *f = (Form){.nin = 2, .body = FB_op};
  set_operand(p, &f->out, buf[n->out[0]]);
  set_operand(p, &f->in[0], buf[n->in[0]]);
  set_operand(p, &f->in[1], buf[n->in[1]]);
  u32 b = add_axis(f, od[0], false), g = add_axis(f, group, false), m = add_axis(f, per, false);
  Index channel = {.n = 2, .axis = {g, m}, .coef = {per, 1}};
  f->out.idx[0] = f->in[0].idx[0] = of_axis(b);
  f->out.idx[1] = f->in[1].idx[0] = channel;
  for (u32 i = 0; i < w.n; i++) f->out.idx[2 + i] = of_axis(add_axis(f, od[2 + i], false));
  u32 c = add_axis(f, wd[1], true);
  f->in[0].idx[1] = (Index){.n = 2, .axis = {g, c}, .coef = {wd[1], 1}};
  f->in[1].idx[1] = of_axis(c);
  add_window(p, &w, 2, m + 1, f);
  for (u32 i = 0; i < w.n; i++) f->in[1].idx[2 + i] = of_axis(c + 1 + i);
  f->op = reduce_op(OP_mul, prog_buf(p, f->out.buf)->dt);
  set_reduction(f, OP_add, prog_buf(p, f->out.buf)->dt);
}

/* Is v = x - max(x), as in softmax? Then it is never above 0. A maximum of -inf may have been
 * replaced by 0; then all elements are -inf. */
static bool is_below_largest(Graph *g, Val v) {
  const Node *n = graph_producer(g, v);
  if (!n || n->op != OP_sub) return false;
  const Node *top = graph_producer(g, n->in[1]), *is = NULL;
  if (top && top->op == OP_select) {
    const Tensor *zero = graph_const(g, top->in[1]);
    is = graph_producer(g, top->in[0]);
    if (!is || is->op != OP_eq || !zero || zero->n != 1 || tensor_get(zero, 0).f != 0) return false;
    Val low = is->in[is->in[0] == top->in[2]];
    const Tensor *t = graph_const(g, low);
    if (is->in[0] != top->in[2] && is->in[1] != top->in[2]) return false;
    if (!t || t->n != 1 || tensor_get(t, 0).f != -INFINITY) return false;
    top = graph_producer(g, top->in[2]);
  }
  return top && top->op == OP_reduce_max && top->in[0] == n->in[0];
}

static void of_map(Graph *g, const Node *n, Prog *p, const BufId *buf, Form *f) {
  set_out(p, f, buf[n->out[0]]);
  u32 rank = f->naxes;
  for (u32 i = 0; i < n->nin; i++) add_stretched(p, f, buf[n->in[i]], rank);
  f->body = FB_op;
  f->op = n->op;
  if (n->op == OP_exp && p->math == MM_u && graph_type(g, n->in[0])->dt == DT_f32 &&
      is_below_largest(g, n->in[0]))
    f->op = OP_exp_nonpos;
  if (n->op == OP_cast) {
    f->sat = node_cast_sat(n);
    f->small = node_int(n, AT_sat, 0) == CAST_SMALL;
  }
}

static bool describe(Graph *g, const Node *n, Prog *p, const BufId *buf, Form *f) {
  if (n->op < OP_SCALARS) {
    of_map(g, n, p, buf, f);
    return true;
  }
  switch (n->op) {
  case OP_iota:
  case OP_random:
    set_out(p, f, buf[n->out[0]]);
    f->body = n->op == OP_iota ? FB_iota : FB_random;
    f->which = (u32)node_int(n, AT_axis, 0);
    f->seed = node_int(n, AT_seed, 0);
    return true;
  case OP_reduce_sum:
  case OP_reduce_prod:
  case OP_reduce_max:
  case OP_reduce_min:
  case OP_resume_sum: of_reduce(n, p, buf, f); return true;
  case OP_contract: of_contract(g, n, p, buf, f); return true;
  case OP_conv: of_conv(g, n, p, buf, f); return true;
  case OP_matmul_quant:
    set_out(p, f, buf[n->out[0]]);
    f->body = FB_mmq;
    set_reduction(f, OP_add, DT_f32);
    return true;
  case OP_pool_max:
  case OP_pool_sum:
  case OP_pool_argmax: of_pool(g, n, p, buf, f); return true;
  case OP_transpose:
  case OP_slice:
  case OP_broadcast: of_view(n, p, buf, f); return true;
  default: return false;
  }
}

bool form_of(Graph *g, const Node *n, Prog *p, const BufId *buf, Form *f) {
  if (!describe(g, n, p, buf, f)) return false;
  f->of = n->out[0];
  return true;
}
