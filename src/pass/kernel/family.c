/* family.c: plans convolutions before values have a layout, and describes kernels.
 *
 * In: a graph whose values have no layout yet, or have one from a text. Out: a ConvPlan for every
 * convolution, for layout_pass.c and kernel_choose.c. A plan is a pure function of types, weights
 * and target, computed once and cached. The family itself is chosen when the convolution is lowered
 * (kernel_choose.c), because it depends on the layout.
 */
#include "pass/kernel/family.h"

#include "pass/form/segment.h"

#include <string.h>

static bool is_depthwise(Graph *g, const Node *n) {
  const Type *k = graph_type(g, n->in[1]);
  i64 group = node_int(n, AT_group, 1);
  return group > 1 && group == k->dim[0] && k->dim[1] == 1;
}

/* Does the result fill channel blocks? Groups of channels may share one. The operand may have an
 * open extent even if the result has none, as long as the window has few positions: a border needs
 * a known start. */
static bool fills_blocks(Graph *g, const Node *n) {
  const Type *x = graph_type(g, n->in[0]);
  if (!type_can_have_layout(graph_type(g, n->out[0])) ||
      (!graph_const(g, n->in[1]) && graph_type(g, n->in[1])->dt != DT_f32))
    return false;
  for (u32 i = 2; i < x->rank; i++)
    if (!dim_is_const(x->dim[i])) return false;
  i64 group = node_int(n, AT_group, 1), out = graph_type(g, n->out[0])->dim[1];
  if (group == 1 || is_depthwise(g, n)) return out >= LAYOUT_PART;
  return out / group % LAYOUT_PART == 0 && graph_type(g, n->in[1])->dim[1] % LAYOUT_PART == 0;
}

static bool has_few_results(Graph *g, const Node *n) {
  const Type *x = graph_type(g, n->in[0]), *o = graph_type(g, n->out[0]);
  return graph_const(g, n->in[1]) && type_can_have_layout(x) && type_can_have_layout(o) &&
         o->dt == DT_f32 && node_int(n, AT_group, 1) == 1 && !node_attr(n, AT_input_dilation);
}

static bool is_sparse(const PassCtx *u, const Node *n) {
  WindowDim s[MAX_RANK];
  u32 ns = conv_windows(u->g, n, s);
  for (u32 i = 0; i < ns; i++)
    if (!dim_is_const(s[i].extent) || !dim_is_const(s[i].places) || !dim_is_const(s[i].size) ||
        s[i].input_dilation > 1)
      return false;
  return windows_are_sparse(u->target, s, ns);
}

/* dot_i8x4 takes four elements, dot_i16x2 two: along channels or along a row of the window,
 * whichever needs fewer groups. Returns the elements that the last group reads past the window; -1:
 * along channels. */
static i64 row_overread_of(Graph *g, const Node *n) {
  WindowDim s[MAX_RANK], *row = &s[conv_windows(g, n, s) - 1];
  i64 zero, channels = graph_type(g, n->in[1])->dim[1];
  Val q = graph_narrow(g, n->in[0], &zero);
  i64 each = q && graph_type(g, q)->dt == DT_i16 ? 2 : 4, groups = (row->size + each - 1) / each;
  bool few = channels * groups <= (channels + each - 1) / each * row->size;
  return few && row->dilation == 1 && node_int(n, AT_group, 1) == 1 ? groups * each - row->size
                                                                    : -1;
}

static ConvPlan plan_conv(const PassCtx *u, const Node *n) {
  Graph *g = u->g;
  ConvPlan c = {.depthwise = is_depthwise(g, n), .sparse = is_sparse(u, n), .row_overread = -1};
  c.blocks = fills_blocks(g, n);
  if (c.blocks) c.row_overread = row_overread_of(g, n);
  c.narrow_output = !c.depthwise && !c.sparse && !c.blocks && has_few_results(g, n);
  return c;
}

void conv_plans(PassCtx *u) {
  Graph *g = u->g;
  if (u->conv_plan || u->target->lanes < 4) return;
  u->conv_plan = NEWS(&u->c->keep, ConvPlan, g->node.n);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      NodeId id = g->region.at[b].node.at[i];
      if (graph_node(g, id)->op == OP_conv) u->conv_plan[id] = plan_conv(u, graph_node(g, id));
    }
  if (!u->target->warp) winograd_plan(u, u->conv_plan);
}

const ConvPlan *conv_plan_of(const PassCtx *u, const Node *n) {
  static const ConvPlan none = {0};
  bool known = u->conv_plan && n && n->op == OP_conv; /* no later pass adds convolutions */
  return known ? &u->conv_plan[graph_val(u->g, n->out[0])->def] : &none;
}

/* ---- descriptions ---- */

/* Example: tile 6x2 of 8 lanes (one operand is broadcast to all lanes: 6 rows share ...) */
static void put_record(const Prog *p, const KernelRecord *r, StrBuf *t) {
  const FamilyInfo *f = &family_info[r->family];
  Str size = record_size(p, r);
  sb_puts(t, f->title);
  if (size) sb_fmt(t, " %s", str_text(p->c, size));
  sb_fmt(t, " (%s", f->why);
  if (r->reason) sb_fmt(t, ": %s", str_text(p->c, r->reason));
  sb_puts(t, ")");
}

void family_list(Prog *p, StrBuf *out) {
  double *ns = NEWS(&p->c->scratch, double, p->stmt.n);
  const Range *range = prog_ranges(p, NULL, &p->c->scratch);
  prog_time(p, ns);
  for (StmtId s = 1; s < p->stmt.n; s++) {
    const Stmt *k = prog_stmt(p, s);
    if (k->kind != ST_kernel) continue;
    KernelWork w = prog_work(p, range, s, &p->c->scratch);
    sb_fmt(out, "kernel '%s': ", show(p->c, k->label));
    if (!k->record) sb_puts(out, "loops of its operator");
    for (RecordId r = k->record; r; r = prog_record(p, r)->next) {
      if (r != k->record) sb_puts(out, "; ");
      put_record(p, prog_record(p, r), out);
    }
    sb_fmt(out, ", about %.3f us", ns[s] / 1000);
    if (w.macs > 0) sb_fmt(out, ", %.0f multiply-adds", w.macs);
    sb_fmt(out, ", %.0f bytes\n", w.bytes);
  }
}
