/* report_graph.c: links nodes of the model with kernels of the program.
 *
 * In: the imported graph, the lowered graph, the program. Out: lists of model nodes and of kernels,
 * each with the indices of the other. Method: every graph node knows through all passes which model
 * node it comes from. A kernel is the group of nodes whose root has its location and label. If
 * loop_fuse merged kernels, and so changed the label, it is all groups with that location. A node
 * without its own kernel, such as a view, belongs to the kernel of its user.
 */
#include "driver/report/report.h"
#include "pass/kernel/family.h"

#include <stdlib.h>

/* ---- nodes of the model ---- */

typedef struct PlaceKey {
  Str op, node, label;
  i32 index;
} PlaceKey;

static PlaceKey key_of(const Loc *at, Str label) {
  return (PlaceKey){at->op, at->node, label, at->index};
}

static bool has_place(const Loc *at) {
  return at->op || at->node;
}

/* 1 + index of the node at that location, 0: none; is_new: add it if missing. */
static u32 number_at(PageReport *r, const Loc *at, bool is_new) {
  PlaceKey key = key_of(at, 0);
  if (!has_place(at)) return 0;
  u32 *slot = is_new ? map_put_bytes(&r->node_at, &key, sizeof key)
                     : map_get_bytes(&r->node_at, &key, sizeof key);
  if (slot && !*slot) {
    vec_push(&r->c->keep, &r->node)->loc = *at;
    *slot = r->node.n;
  }
  return slot ? *slot : 0;
}

void page_assign_locs(Ctx *c, Graph *g) {
  for (NodeId id = 1; id < g->node.n; id++) {
    Node *n = graph_node(g, id);
    if (!has_place(&n->loc) && n->op != OP_const)
      n->loc = (Loc){.op = str_of(c, op_info[n->op].name), .index = (i32)id};
  }
}

static void add_number(Arena *a, U32Vec *list, u32 x) {
  for (u32 i = 0; i < list->n; i++)
    if (list->at[i] == x) return;
  *vec_push(a, list) = x;
}

static u32 maker_of(Graph *g, const u32 *number, Val v) {
  NodeId def = graph_val(g, v)->def;
  return def ? number[def] : 0;
}

static void list_nodes(PageReport *r) {
  Graph *g = r->whole;
  Arena *a = &r->c->keep;
  u32 *number = NEWS(a, u32, g->node.n + 1);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      NodeId id = g->region.at[b].node.at[i];
      if (graph_node(g, id)->op == OP_const) continue;
      number[id] = number_at(r, &graph_node(g, id)->loc, true);
      *vec_push(a, &r->node.at[number[id] - 1].inside) = id;
    }
  for (RegionId b = 1; b < g->region.n; b++) {
    const GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      const Node *n = graph_node(g, k->node.at[i]);
      u32 me = number[k->node.at[i]];
      for (u32 j = 0; me && j < n->nin; j++) {
        u32 from = n->in[j] ? maker_of(g, number, n->in[j]) : me;
        if (from == me) continue;
        add_number(a, &r->node.at[me - 1].in, n->in[j]);
        if (from) add_number(a, &r->node.at[from - 1].out, n->in[j]);
      }
    }
    for (u32 i = 0; i < k->ret.n; i++) {
      u32 from = maker_of(g, number, k->ret.at[i]);
      if (from) add_number(a, &r->node.at[from - 1].out, k->ret.at[i]);
    }
  }
}

/* ---- groups ---- */

typedef struct Groups {
  PageReport *r;
  Graph *g;
  VEC(NodeId) root;
  u32 *same; /* by root: 1 + another root with the same location; 0: none */
  Map at;    /* location, and label or 0 -> 1 + root */
  u32 *seen; /* by node of g: last visit */
  u32 walk;
} Groups;

static void find_roots(Groups *s) {
  Graph *g = s->g;
  Arena *a = &s->r->c->keep;
  s->same = NEWS(a, u32, g->node.n + 1);
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      NodeId id = g->region.at[b].node.at[i];
      const Node *n = graph_node(g, id);
      if (n->op == OP_const || !n->nout || graph_val(g, n->out[0])->home != HOME_buffer) continue;
      PlaceKey key = key_of(&n->loc, 0), named = key_of(&n->loc, group_label(g, n));
      *vec_push(a, &s->root) = id;
      u32 *slot = map_put_bytes(&s->at, &key, sizeof key);
      s->same[s->root.n - 1] = *slot;
      *slot = s->root.n;
      *map_put_bytes(&s->at, &named, sizeof named) = s->root.n;
    }
}

static void bind(PageReport *r, u32 kernel, u32 node) {
  add_number(&r->c->keep, &r->kernel.at[kernel].node, node);
  add_number(&r->c->keep, &r->node.at[node].kernel, kernel);
}

/* Adds a root and the nodes computed inside its kernel. */
static void bind_group(Groups *s, u32 kernel, NodeId id) {
  const Node *n = graph_node(s->g, id);
  u32 node = number_at(s->r, &n->loc, false);
  if (s->seen[id] == s->walk) return;
  s->seen[id] = s->walk;
  for (u32 i = 0; i < n->nin; i++) {
    const Value *v = graph_val(s->g, n->in[i]);
    if (v->def && v->home != HOME_buffer) bind_group(s, kernel, v->def);
  }
  if (node) bind(s->r, kernel, node - 1);
}

/* id: the kernel as lowered, before others were merged into it. */
static void bind_kernel(Groups *s, u32 kernel, StmtId id) {
  const Stmt *k = prog_stmt(s->r->p, id);
  PlaceKey named = key_of(&k->loc, k->label), key = key_of(&k->loc, 0);
  const NodeId *root = s->root.at; /* NULL: no roots, and so no slots */
  u32 *slot = map_get_bytes(&s->at, &named, sizeof named);
  s->walk++;
  if (root && slot && *slot) {
    bind_group(s, kernel, root[*slot - 1]);
    return;
  }
  slot = s->r->is_merged[id] ? map_get_bytes(&s->at, &key, sizeof key) : NULL;
  for (u32 i = slot && root ? *slot : 0; i; i = s->same[i - 1]) bind_group(s, kernel, root[i - 1]);
  u32 node = slot && *slot ? 0 : number_at(s->r, &k->loc, false);
  if (node) bind(s->r, kernel, node - 1);
}

/* Finds 1 + the kernel of every node of the lowered graph, or that of its first user. A folded node
 * has only a constant. */
static void bind_rest(Groups *s) {
  Graph *g = s->g;
  PageReport *r = s->r;
  u32 *kernel = NEWS(&r->c->keep, u32, g->node.n + 1);
  NodeId *user = NEWS(&r->c->keep, NodeId, g->val.n + 1);
  for (RegionId b = g->region.n; b-- > 1;)
    for (u32 i = g->region.at[b].node.n; i-- > 0;) {
      NodeId id = g->region.at[b].node.at[i];
      const Node *n = graph_node(g, id);
      u32 node = number_at(r, &n->loc, false);
      if (node) {
        ModelNode *x = &r->node.at[node - 1];
        x->is_alive = x->is_alive || n->op != OP_const;
        kernel[id] = x->kernel.n ? x->kernel.at[0] + 1 : 0;
        for (u32 k = 0; k < n->nout && !kernel[id]; k++) kernel[id] = kernel[user[n->out[k]]];
        if (kernel[id] && !x->kernel.n) bind(r, kernel[id] - 1, node - 1);
      }
      for (u32 k = 0; k < n->nin; k++) user[n->in[k]] = id;
    }
}

/* ---- kernels ---- */

static void list_kernels(PageReport *r) {
  Prog *p = r->p;
  Arena *a = &r->c->keep;
  const Range *range = prog_ranges(p, NULL, a);
  double *ns = NEWS(a, double, p->stmt.n + 1);
  const Stmt *s;
  prog_time(p, ns);
  r->kernel_at = NEWS(a, u32, p->stmt.n + 1);
  r->is_merged = NEWS(a, bool, p->stmt.n + 1);
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    if (s->kind != ST_kernel) continue;
    w.skip = true;
    *vec_push(a, &r->kernel) =
        (ReportKernel){.id = w.id, .work = prog_work(p, range, w.id, a), .ns = ns[w.id]};
    r->kernel_at[w.id] = r->kernel.n;
  }
  for (StmtId id = 1; id < p->stmt.n; id++) { /* merged kernels, possibly nested */
    StmtId to = id;
    if (prog_stmt(p, id)->kind == ST_kernel) r->is_merged[prog_stmt(p, id)->into] = true;
    for (u32 left = p->stmt.n;
         left && prog_stmt(p, to)->kind == ST_kernel && !r->kernel_at[to] && prog_stmt(p, to)->into;
         left--)
      to = prog_stmt(p, to)->into;
    r->kernel_at[id] = r->kernel_at[to];
  }
}

static void take_times(PageReport *r) {
  const IngotBench *b = &r->bench;
  for (u32 i = 0; i < b->nkernel && i < r->m->written.nprofile; i++) {
    StmtId id = r->m->written.profile[i].id;
    u32 k = id < r->p->stmt.n ? r->kernel_at[id] : 0;
    if (k) r->kernel.at[k - 1].timed = &b->kernel[i];
  }
}

static int by_number(const void *a, const void *b) {
  u32 x = *(const u32 *)a, y = *(const u32 *)b;
  return x < y ? -1 : x > y;
}

void page_gather(PageReport *r) {
  r->node_at = map_new(&r->c->keep);
  if (r->whole) list_nodes(r);
  list_kernels(r);
  take_times(r);
  if (!r->whole || !r->m->g) return;
  Groups s = {.r = r, .g = r->m->g, .at = map_new(&r->c->keep)};
  s.seen = NEWS(&r->c->keep, u32, s.g->node.n + 1);
  find_roots(&s);
  for (StmtId id = 1; id < r->p->stmt.n; id++)
    if (prog_stmt(r->p, id)->kind == ST_kernel && r->kernel_at[id])
      bind_kernel(&s, r->kernel_at[id] - 1, id);
  bind_rest(&s);
  for (u32 i = 0; i < r->kernel.n; i++) { /* nodes run in index order */
    U32Vec *list = &r->kernel.at[i].node;
    if (list->n) qsort(list->at, list->n, sizeof *list->at, by_number);
  }
}

/* ---- JSON ---- */

static void put_numbers(StrBuf *t, const char *before, const U32Vec *list) {
  sb_puts(t, before);
  for (u32 i = 0; i < list->n; i++) sb_fmt(t, i ? ",%u" : "%u", list->at[i]);
  sb_puts(t, "]");
}

/* [["name","f32[2,3]"],...]; constants without a name are omitted. */
static void put_values(PageReport *r, const char *before, const U32Vec *list) {
  bool any = false;
  sb_puts(&r->out, before);
  for (u32 i = 0; i < list->n; i++) {
    const Value *v = graph_val(r->whole, list->at[i]);
    if (!v->name && graph_const(r->whole, list->at[i])) continue;
    page_str(r, any ? ",[" : "[", v->name);
    page_cstr(&r->out, ",", type_text(r->whole->dims, &v->type));
    sb_puts(&r->out, graph_const(r->whole, list->at[i]) ? ",1]" : "]");
    any = true;
  }
  sb_puts(&r->out, "]");
}

static void put_inside(PageReport *r, const ModelNode *n) {
  sb_puts(&r->out, ",\"core\":[");
  for (u32 i = 0; i < n->inside.n; i++)
    page_cstr(&r->out, i ? "," : "", op_info[graph_node(r->whole, n->inside.at[i])->op].name);
  sb_puts(&r->out, "]");
}

void page_nodes(PageReport *r) {
  const Reader *reader = r->m->opened.reader;
  sb_puts(&r->out, ",\n\"nodes\":[");
  for (u32 i = 0; i < r->node.n; i++) {
    const ModelNode *n = &r->node.at[i];
    StrBuf attr = sb_new(&r->c->scratch);
    if (reader && reader->attributes && r->m->opened.model)
      reader->attributes(r->c, r->m->opened.model, &n->loc, &attr);
    page_str(r, i ? ",\n{\"op\":" : "\n{\"op\":", n->loc.op);
    page_str(r, ",\"name\":", n->loc.node);
    put_values(r, ",\"in\":[", &n->in);
    put_values(r, ",\"out\":[", &n->out);
    page_text(&r->out, ",\"attrs\":", attr.n ? attr.at : "", attr.n);
    put_inside(r, n);
    put_numbers(&r->out, ",\"k\":[", &n->kernel);
    sb_puts(&r->out, n->is_alive ? "}" : ",\"gone\":1}");
  }
  sb_puts(&r->out, "]");
}

/* [buffer,..]; names and types are listed with memory. */
static void put_bufs(PageReport *r, const char *before, const BufIds *list) {
  bool any = false;
  sb_puts(&r->out, before);
  for (u32 i = 0; i < list->n; i++) {
    if (prog_buf(r->p, list->at[i])->space == BS_local) continue;
    sb_fmt(&r->out, any ? ",%u" : "%u", list->at[i]);
    any = true;
  }
  sb_puts(&r->out, "]");
}

/* {"family":row,"size":..,"reason":..}, in order of selection */
static void put_records(PageReport *r, const Stmt *kernel) {
  StrBuf *t = &r->out;
  for (RecordId id = kernel->record; id; id = prog_record(r->p, id)->next) {
    const KernelRecord *x = prog_record(r->p, id);
    Str size = record_size(r->p, x);
    sb_fmt(t, "%s{\"family\":%u", id == kernel->record ? "" : ",", (u32)x->family);
    if (size) page_str(r, ",\"size\":", size);
    if (x->reason) page_str(r, ",\"reason\":", x->reason);
    sb_puts(t, "}");
  }
}

static void put_families(StrBuf *t) {
  for (u32 i = 0; i < FA_COUNT; i++) {
    page_cstr(t, i ? ",{\"name\":" : ",\n\"families\":[{\"name\":", family_info[i].title);
    page_cstr(t, ",\"why\":", family_info[i].why);
    sb_fmt(t, ",\"hue\":%d}", family_info[i].hue);
  }
  sb_puts(t, "]");
}

void page_kernels(PageReport *r) {
  StrBuf *t = &r->out;
  put_families(t);
  sb_puts(t, ",\n\"kernels\":[");
  for (u32 i = 0; i < r->kernel.n; i++) {
    const ReportKernel *k = &r->kernel.at[i];
    const Stmt *s = prog_stmt(r->p, k->id);
    page_str(r, i ? ",\n{\"label\":" : "\n{\"label\":", s->label);
    sb_puts(t, ",\"how\":[");
    put_records(r, s);
    sb_puts(t, "]");
    put_numbers(t, ",\"n\":[", &k->node);
    put_bufs(r, ",\"r\":[", &k->work.read);
    put_bufs(r, ",\"w\":[", &k->work.written);
    sb_fmt(t, ",\"us\":%.4g,\"macs\":%.0f,\"bytes\":%.0f", k->ns / 1000, k->work.macs,
           k->work.bytes);
    if (k->timed)
      sb_fmt(t, ",\"ms\":%.6g,\"calls\":%.0f,\"did\":%.0f", k->timed->ms, k->timed->calls,
             k->timed->macs);
    sb_puts(t, "}");
  }
  sb_puts(t, "]");
}
