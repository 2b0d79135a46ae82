/* onnx_ops_control.c: If and Scan.
 *
 * A known condition selects its branch at import: exporters wrap rank tests in If nodes whose
 * branches have different types. Scan is a loop that slices its inputs and stacks its outputs.
 */
#include "front/onnx/list.h"

#include <string.h>

Val on_scalar(Build *b, Val v) {
  Dim n = type_count(b->ds, on_type(b, v));
  if (dim_is_const(n) && n != 1) on_bad(b, "expected one element, found %lld", (long long)n);
  return mk_reshape(b->g, v, NULL, 0);
}

typedef struct Branch {
  Build *b;
  const OnnxGraph *body;
  RegionId region;
  Val *ret; /* tensors and lists */
  Err err;
  const char *why;
} Branch;

/* Builds a branch in its own region. */
static void try_branch(Ctx *c, void *arg) {
  Branch *r = arg;
  Build *b = r->b;
  (void)c;
  r->region = graph_region(b->g, 0);
  r->ret = NEWS(&b->c->work, Val, b->nout + 1);
  b->g->cur = r->region;
  u32 n = on_subgraph(b, r->body, NULL, 0, r->ret, b->nout);
  if (n != b->nout) on_bad(b, "a branch has %u outputs, but the node has %u", n, b->nout);
}

static void take_branch(Build *b, const OnnxGraph *body) {
  u32 n = on_subgraph(b, body, NULL, 0, b->out, b->nout);
  if (n != b->nout) on_bad(b, "the branch has %u outputs, but the node has %u", n, b->nout);
}

/* A branch that does not fit the shapes is an error only if it is taken. So a condition that
 * follows from bound inputs is decided at import, which pins these inputs. */
static void decide_now(Build *b, Val cond, const Branch *r, const char *part) {
  Val blame;
  const Tensor *t = import_const_eval(b->im, cond, &blame);
  Str *undecided = b->im->o->undecided;
  if (undecided) *undecided = t || !blame ? 0 : graph_val(b->g, blame)->name;
  if (t) {
    take_branch(b, r[tensor_get(t, 0).i ? 0 : 1].body);
    return;
  }
  const Branch *bad = &r[r[0].err ? 0 : 1];
  const char *inside = bad->why ? strstr(bad->why, BODY_FAILS) : NULL;
  const char *why = inside ? inside + strlen(BODY_FAILS)
                           : bad->why; /* skips the prefix: the node is named once */
  const char *name = blame ? show(b->c, graph_val(b->g, blame)->name) : "";
  fail(b->c, bad->err, b->g->loc, "the %s cannot be built: %s%s%s%s", part, why,
       *name ? "; if it is not taken, give the input that decides: --freeze '" : "", name,
       *name ? "=VALUE'" : "");
}

/* Lets the node select between the results of both branches. Returns NULL, or the mismatch and
 * whose fault it is. */
static const char *join_branches(Build *b, Val cond, const Branch *r, Err *err) {
  Graph *g = b->g;
  BranchJoin j = {.b = b, .region = {r[0].region, r[1].region}};
  RegionId outer = g->cur;
  for (u32 i = 0; i < b->nout; i++) list_join(&j, r[0].ret[i], r[1].ret[i]);
  g->cur = outer;
  *err = j.wrong ? ERR_input : ERR_unsupported;
  if (j.why) return j.why;
  *err = ERR_ok;
  for (u32 s = 0; s < 2; s++)
    for (u32 i = 0; i < j.pair[s].n; i++)
      *vec_push(&b->c->work, &g->region.at[j.region[s]].ret) = j.pair[s].at[i];
  NodeId id = graph_add_control(g, OP_if, &cond, 1, NULL, 0, j.region, 2);
  Val *out = NEWS(&b->c->work, Val, j.pair[0].n + 1);
  for (u32 i = 0; i < j.pair[0].n; i++) out[i] = graph_node(g, id)->out[i];
  j.out = out;
  for (u32 i = 0; i < b->nout; i++) b->out[i] = list_join(&j, r[0].ret[i], r[1].ret[i]);
  return NULL;
}

void build_if(Build *b) {
  Val cond = on_scalar(b, on_in(b, 0));
  Branch r[2] = {{.b = b, .body = on_graph(b, "then_branch")},
                 {.b = b, .body = on_graph(b, "else_branch")}};
  const Tensor *known = graph_const(b->g, cond);
  bool fits = true;
  if (known) {
    take_branch(b, r[tensor_get(known, 0).i ? 0 : 1].body);
    return;
  }
  for (u32 i = 0; i < 2; i++) r[i].err = import_try(b->im, try_branch, &r[i], &r[i].why);
  if (!r[0].err && !r[1].err) {
    r[0].why = join_branches(b, cond, r, &r[0].err);
    if (!r[0].why) return;
    fits = false;
  }
  decide_now(b, cond, r, fits ? (r[0].err ? "then branch" : "else branch") : "choice");
}

/* ---- Scan ---- */

typedef struct ScanBody {
  Build *b;
  const OnnxGraph *g;
  u32 nstate, nin, nout;
  const Val *seq; /* scan inputs */
  u32 axis[64];   /* axis of each scan input */
  bool backward[64];
  Dim length;
} ScanBody;

static void scan_body(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  ScanBody *s = user;
  Build *b = s->b;
  Val *in = NEWS(&b->c->work, Val, s->nstate + s->nin + 1),
      *ret = NEWS(&b->c->work, Val, s->nstate + s->nout + 1);
  (void)cond;
  for (u32 k = 0; k < s->nstate; k++) in[k] = carried[k];
  for (u32 k = 0; k < s->nin; k++) {
    Val at = i;
    if (s->backward[k]) at = mk_sub(g, mk_extent(g, dim_addk(b->ds, s->length, -1), DT_i64), i);
    in[s->nstate + k] = mk_gather(g, s->seq[k], at, s->axis[k]);
  }
  u32 n = on_subgraph(b, s->g, in, s->nstate + s->nin, ret, s->nstate + s->nout);
  if (n != s->nstate + s->nout)
    on_bad(b, "the body has %u outputs, expected %u", n, s->nstate + s->nout);
  for (u32 k = 0; k < s->nstate; k++) carried[k] = ret[k];
  for (u32 k = 0; k < s->nout; k++) scan[k] = ret[s->nstate + k];
}

static bool flag_at(const i64 *list, i32 n, u32 k) {
  return n > (i32)k && list[k] != 0;
}

/* Moves scan outputs, stacked along axis 0 in execution order, to the requested axis and order. */
static Val place_scan(Build *b, Val v, i64 axis, bool backward) {
  u32 rank = on_rank(b, v), to = on_axis(b, axis, rank);
  if (backward) {
    const Type *t = on_type(b, v);
    Dim start[MAX_RANK] = {0};
    i64 step[MAX_RANK];
    for (u32 i = 0; i < rank; i++) step[i] = i ? 1 : -1;
    start[0] = t->dim[0] == 0 ? 0 : dim_addk(b->ds, t->dim[0], -1);
    v = mk_slice(b->g, v, start, t->dim, step);
  }
  return mk_move_axis(b->g, v, 0, to);
}

Val scan_length(Build *b, Val x, u32 axis, Dim length) {
  Type t = *on_type(b, x);
  Dim dim[MAX_RANK], d = t.dim[axis];
  if (dim_is_const(d) && dim_is_const(length) && d != length)
    on_bad(b, "scan inputs differ in length: %lld and %lld", (long long)length, (long long)d);
  for (u32 i = 0; i < t.rank; i++) dim[i] = i == axis ? length : t.dim[i];
  return mk_reshape(b->g, x, dim, t.rank);
}

void build_scan(Build *b) {
  ScanBody s = {.b = b, .g = on_graph(b, "body")};
  i64 count = on_int(b, "num_scan_inputs", 0), in_axis[64], out_axis[64], in_dir[64], out_dir[64];
  if (count < 1 || count > (i64)b->nin || count > 64)
    on_bad(b, "num_scan_inputs is %lld, expected 1 to 64, and as many inputs", (long long)count);
  s.nin = (u32)count;
  s.nstate = b->nin - s.nin;
  if (s.g->outputs.n < s.nstate || s.g->outputs.n - s.nstate > 64)
    on_bad(b, "the body has %u outputs, expected the states and at most 64 more", s.g->outputs.n);
  s.nout = s.g->outputs.n - s.nstate;
  i32 na = on_ints(b, "scan_input_axes", in_axis, 64),
      nd = on_ints(b, "scan_input_directions", in_dir, 64);
  i32 ma = on_ints(b, "scan_output_axes", out_axis, 64),
      md = on_ints(b, "scan_output_directions", out_dir, 64);
  if (na > (i32)s.nin || nd > (i32)s.nin || ma > (i32)s.nout || md > (i32)s.nout)
    on_bad(b, "more axes or directions than sequences, expected at most one each");
  for (i32 i = 0; i < nd; i++)
    if (in_dir[i] != 0 && in_dir[i] != 1)
      on_bad(b, "a direction is %lld, expected 0 or 1", (long long)in_dir[i]);
  for (i32 i = 0; i < md; i++)
    if (out_dir[i] != 0 && out_dir[i] != 1)
      on_bad(b, "a direction is %lld, expected 0 or 1", (long long)out_dir[i]);
  s.seq = b->in + s.nstate;
  for (u32 k = 0; k < s.nin; k++) {
    Val x = on_in(b, s.nstate + k);
    s.axis[k] = on_axis(b, na > (i32)k ? in_axis[k] : 0, on_rank(b, x));
    s.backward[k] = flag_at(in_dir, nd, k);
    Dim d = on_dim(b, x, s.axis[k]);
    if (!k) s.length = d;
    b->in[s.nstate + k] = scan_length(b, x, s.axis[k], s.length);
  }
  Val *carried = NEWS(&b->c->work, Val, s.nstate + 1), *scan = NEWS(&b->c->work, Val, s.nout + 1);
  for (u32 k = 0; k < s.nstate; k++) carried[k] = on_in(b, k);
  on_loop(b, mk_extent(b->g, s.length, DT_i64), 0, carried, s.nstate, scan, s.nout, scan_body, &s);
  for (u32 k = 0; k < b->nout && k < s.nstate + s.nout; k++) {
    if (k < s.nstate) {
      b->out[k] = carried[k];
      continue;
    }
    u32 j = k - s.nstate;
    b->out[k] = place_scan(b, scan[j], ma > (i32)j ? out_axis[j] : 0, flag_at(out_dir, md, j));
  }
}
