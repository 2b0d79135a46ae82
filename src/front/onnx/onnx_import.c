/* onnx_import.c: a decoded ONNX model as a Graph.
 *
 * In: an OnnxModel and import options. Out: a Graph of core ops. Nodes are visited in file order.
 * Each has a builder (onnx_ops.def) or is a local function, which is inlined. Initializers become
 * constants when first used. An unsupported node poisons its results, so one run reports every
 * unsupported node. An invalid node ends the import.
 */
#include "front/onnx/list.h"

#include <string.h>

enum {
  IMPORT_STEPS = 4000000, /* nodes built */
  OPSET_MAX = 28,         /* latest opset of ai.onnx */
  IR_MIN = 3,
  IR_MAX = 14,
};

Loc import_here(const Import *im) {
  return (Loc){.file = im->file, .index = -1};
}

static Loc import_loc(Import *im, const OnnxNode *n, i32 index) {
  return (Loc){.file = im->file, .node = n->name, .op = n->op, .index = index};
}

/* ---- names ---- */

Scope *scope_new(Import *im, Scope *up) {
  Scope *s = NEW(&im->c->work, Scope);
  s->up = up;
  s->region = im->g->cur;
  s->name = map_new(&im->c->work);
  s->init = map_new(&im->c->work);
  s->later = map_new(&im->c->work);
  return s;
}

static void scope_graph(Import *im, Scope *s, const OnnxGraph *g) {
  s->graph = g;
  for (u32 i = 0; i < g->inits.n + g->sparse_inits.n; i++) {
    bool sparse = i >= g->inits.n;
    const OnnxTensor *t = sparse ? g->sparse_inits.at[i - g->inits.n].values : &g->inits.at[i];
    if (!t || !t->name) fail(im->c, ERR_input, import_here(im), "initializer %u has no name", i);
    u32 *slot = map_put(&s->init, t->name);
    if (*slot)
      fail(im->c, ERR_input, import_here(im), "initializer '%s' is defined twice",
           show(im->c, t->name));
    *slot = i + 1;
  }
  for (u32 i = 0; i < g->nodes.n; i++)
    for (u32 k = 0; k < g->nodes.at[i].out.n; k++)
      *map_put(&s->later, g->nodes.at[i].out.at[k]) = 1;
}

static Val load_init(Import *im, Scope *s, Str name, u32 i) {
  const OnnxGraph *g = s->graph;
  Loc loc = {.file = im->file, .node = name, .op = str_of(im->c, "initializer"), .index = -1};
  Tensor *t = i < g->inits.n ? onnx_tensor(im->c, &g->inits.at[i], im->path, loc, &im->c->work)
                             : onnx_sparse(im->c, &g->sparse_inits.at[i - g->inits.n], im->path,
                                           loc, &im->c->work);
  RegionId cur = im->g->cur;
  Loc at = im->g->loc;
  im->g->cur = s->region; /* before the control node being built, visible to all later nodes */
  im->g->loc = LOC_NONE;
  Val v = mk_const(im->g, t);
  graph_val(im->g, v)->name = name;
  graph_val(im->g, v)->weight = im->g->opens && dtype_is_float(t->dt);
  im->g->cur = cur;
  im->g->loc = at;
  *map_put(&s->name, name) = v;
  return v;
}

Val scope_find(Import *im, Str name) {
  for (Scope *s = im->scope; s; s = s->up) {
    u32 *v = map_get(&s->name, name);
    if (v && *v) return *v;
    v = map_get(&s->init, name);
    if (v) return load_init(im, s, name, *v - 1);
  }
  return 0;
}

void scope_define(Import *im, Str name, Val v, Loc loc) {
  u32 *slot = map_put(&im->scope->name, name);
  if (*slot || map_get(&im->scope->init, name))
    fail(im->c, ERR_input, loc, "'%s' is defined twice", show(im->c, name));
  *slot = v;
  if (val_is_real(v) && !graph_val(im->g, v)->name) graph_val(im->g, v)->name = name;
}

/* ---- opsets and operators ---- */

static i64 opset_of(Import *im, Str domain) {
  const Scope *s = im->scope;
  while (s && !s->fn) s = s->up;
  const OnnxOpset *at = s ? s->fn->opsets.at : im->m->opsets.at;
  u32 n = s ? s->fn->opsets.n : im->m->opsets.n;
  const char *key = domain_key(im->c, domain);
  i64 version = 0;
  for (u32 i = 0; i < n && !version; i++) {
    const char *k = domain_key(im->c, at[i].domain);
    if (at[i].domain == domain || (key && k && !strcmp(k, key))) version = at[i].version;
  }
  if (!version && key && !strcmp(key, "ai")) version = OPSET_MAX;
  return version ? version : 1;
}

static const OpRow *find_row(Import *im, const OnnxNode *n, i64 opset) {
  const char *key = domain_key(im->c, n->domain);
  if (!key) return NULL;
  StrBuf t = sb_new(&im->c->scratch);
  sb_fmt(&t, "%s/%s", key, str_text(im->c, n->op));
  u32 *slot = map_get_bytes(&im->rows, t.at, t.n);
  if (!slot) return NULL;
  for (u32 i = *slot - 1; i < op_row_count; i++) {
    const OpRow *r = &op_rows[i];
    if (!str_is(im->c, n->op, r->name) || strcmp(r->domain, key)) continue;
    if (opset >= r->since && (!r->until || opset <= r->until)) return r;
  }
  return NULL;
}

static const OnnxFunction *find_fn(Import *im, const OnnxNode *n) {
  u64 key = ((u64)n->domain << 32 | n->op) ^ (u64)n->overload * 0x9e3779b97f4a7c15u;
  u32 *slot = map_get(&im->fns, key);
  return slot ? &im->m->functions.at[*slot - 1] : NULL;
}

static void index_tables(Import *im) {
  im->rows = map_new(&im->c->work);
  im->fns = map_new(&im->c->work);
  im->unknown_attrs = map_new(&im->c->work);
  im->training = map_new(&im->c->work);
  for (u32 i = op_row_count; i-- > 0;) {
    Mark m = arena_mark(&im->c->scratch);
    StrBuf t = sb_new(&im->c->scratch);
    sb_fmt(&t, "%s/%s", op_rows[i].domain, op_rows[i].name);
    *map_put_bytes(&im->rows, t.at, t.n) = i + 1;
    arena_rewind(&im->c->scratch, m);
  }
  for (u32 i = 0; i < im->m->functions.n; i++) {
    const OnnxFunction *f = &im->m->functions.at[i];
    u64 key = ((u64)f->domain << 32 | f->name) ^ (u64)f->overload * 0x9e3779b97f4a7c15u;
    u32 *slot = map_put(&im->fns, key);
    if (*slot)
      fail(im->c, ERR_input, import_here(im), "function '%s' is defined twice",
           show(im->c, f->name));
    *slot = i + 1;
  }
}

/* ---- size limit ---- */

/* Node count of a function after inlining. */
typedef struct Expansion {
  u64 nodes; /* 0: unknown */
  bool open; /* being counted, so it calls itself */
} Expansion;

static u64 count_nodes(Import *im, Expansion *fn, const OnnxNode *node, u32 n, u32 depth);

/* Number of nodes inside a node, saturating. Too deep or recursive calls are refused later. */
static u64 count_inside(Import *im, Expansion *fn, const OnnxNode *n, u32 depth) {
  const OnnxFunction *f = find_fn(im, n);
  u64 sum = 0;
  for (u32 i = 0; i < n->attrs.n; i++) {
    const OnnxGraph *g = n->attrs.at[i].g;
    if (g) sum += count_nodes(im, fn, g->nodes.at, g->nodes.n, depth);
  }
  if (!f || depth > ONNX_MAX_DEPTH) return sum;
  Expansion *x = &fn[f - im->m->functions.at];
  if (x->open) return sum;
  x->open = true;
  if (!x->nodes) x->nodes = 1 + count_nodes(im, fn, f->nodes.at, f->nodes.n, depth + 1);
  x->open = false;
  return sum + x->nodes;
}

static u64 count_nodes(Import *im, Expansion *fn, const OnnxNode *node, u32 n, u32 depth) {
  u64 sum = n;
  for (u32 i = 0; i < n && sum < UINT32_MAX; i++) sum += count_inside(im, fn, &node[i], depth);
  return sum;
}

/* Functions that call others twice double the graph at every level, so a short file may expand
 * beyond any memory. */
static void check_expansion(Import *im) {
  Expansion *fn = NEWS(&im->c->scratch, Expansion, im->m->functions.n + 1);
  const OnnxGraph *g = im->m->graph;
  u64 nodes = im->m->functions.n ? count_nodes(im, fn, g->nodes.at, g->nodes.n, 0) : 0;
  if (nodes > ONNX_MAX_EXPANDED)
    fail(im->c, ERR_unsupported, import_here(im),
         "local functions, inlined where they are called, make %s%llu nodes; the limit is %d",
         nodes >= UINT32_MAX ? "more than " : "",
         (unsigned long long)(nodes < UINT32_MAX ? nodes : UINT32_MAX), ONNX_MAX_EXPANDED);
}

/* ---- nodes ---- */

static void enter(Import *im, Loc loc) {
  if (++im->depth > ONNX_MAX_DEPTH)
    fail(im->c, ERR_unsupported, loc, "sub-graphs or functions nested deeper than %d",
         ONNX_MAX_DEPTH);
}

static void call_function(Import *im, Build *b, const OnnxFunction *f) {
  Scope *caller = im->scope, *s = scope_new(im, NULL);
  Loc loc = im->g->loc;
  enter(im, loc);
  for (const Scope *up = caller; up; up = up->fn ? up->caller : up->up)
    if (up->fn == f)
      fail(im->c, ERR_input, loc, "function '%s' calls itself", show(im->c, f->name));
  s->fn = f;
  s->call = b->node;
  s->caller = caller;
  im->scope = s;
  if (b->nin > f->inputs.n)
    fail(im->c, ERR_input, loc, "the function takes %u inputs, got %u", f->inputs.n, b->nin);
  for (u32 i = 0; i < f->nodes.n; i++)
    for (u32 k = 0; k < f->nodes.at[i].out.n; k++)
      *map_put(&s->later, f->nodes.at[i].out.at[k]) = 1;
  for (u32 i = 0; i < f->inputs.n; i++)
    scope_define(im, f->inputs.at[i], i < b->nin && b->in[i] ? b->in[i] : VAL_ABSENT, loc);
  import_nodes(im, f->nodes.at, f->nodes.n);
  for (u32 i = 0; i < b->nout && i < f->outputs.n; i++) {
    b->out[i] = scope_find(im, f->outputs.at[i]);
    if (!b->out[i] || b->out[i] == VAL_ABSENT)
      fail(im->c, ERR_input, loc, "the function does not define its output '%s'",
           show(im->c, f->outputs.at[i]));
  }
  im->scope = caller;
  im->depth--;
}

/* Fills b->in; false when an operand is poisoned. */
static bool read_operands(Import *im, Build *b, const OnnxNode *n, Loc loc) {
  b->nin = n->in.n;
  b->in = NEWS(&im->c->work, Val, n->in.n + 1);
  bool good = true;
  for (u32 i = 0; i < n->in.n; i++) {
    if (!n->in.at[i]) continue;
    b->in[i] = scope_find(im, n->in.at[i]);
    if (b->in[i] == VAL_ABSENT) {
      b->in[i] = 0;
      continue;
    }
    if (b->in[i] == VAL_POISON) good = false;
    if (b->in[i]) continue;
    bool later = false;
    for (Scope *s = im->scope; s; s = s->up) later = later || map_get(&s->later, n->in.at[i]);
    fail(im->c, ERR_input, loc, "input '%s' %s", show(im->c, n->in.at[i]),
         later ? "is defined only later: the graph has a cycle or is not sorted"
               : "is not defined anywhere");
  }
  while (b->nin && !b->in[b->nin - 1]) b->nin--; /* trailing absent operands do not count */
  return good;
}

typedef struct Attempt {
  Import *im;
  Build *b;
  const OpRow *row;
  const OnnxFunction *fn;
} Attempt;

static void attempt(Ctx *c, void *arg) {
  Attempt *a = arg;
  (void)c;
  if (a->row)
    a->row->build(a->b);
  else
    call_function(a->im, a->b, a->fn);
}

static void unsupported_op(Import *im, const OnnxNode *n, i64 opset, Loc loc) {
  const char *domain = n->domain ? show(im->c, n->domain) : "ai.onnx";
  static const char *const internal[] = {"com.microsoft.nchwc", "com.ms.internal.nhwc",
                                         "com.microsoft.nhwc"};
  for (u32 i = 0; i < sizeof internal / sizeof *internal; i++)
    if (str_is(im->c, n->domain, internal[i])) {
      diag(im->c, ERR_unsupported, loc,
           "operator %s of %s: ONNX Runtime wrote this model after optimizing it for one "
           "machine; use the model as it was exported, before optimization",
           show(im->c, n->op), domain);
      return;
    }
  diag(im->c, ERR_unsupported, loc, "operator %s of %s (opset %lld) is not supported",
       show(im->c, n->op), domain, (long long)opset);
}

/* Warns once about every attribute that no version of the operator has, and ignores it. */
static void check_attrs(Import *im, const OnnxNode *n, const OpRow *row, Loc loc) {
  for (u32 i = 0; i < n->attrs.n; i++) {
    Str name = n->attrs.at[i].name;
    StrBuf word = sb_new(&im->c->scratch);
    sb_fmt(&word, " %s ", str_text(im->c, name));
    if (strstr(op_attrs(row), sb_cstr(&word))) continue;
    u32 *warned = map_put(&im->unknown_attrs, (u64)n->op << 32 | name);
    if (!*warned)
      warn(im->c, loc, "attribute '%s' is not known and has no effect", show(im->c, name));
    *warned = 1;
  }
}

enum { INPUTS_SHOWN = 6 };

/* Appends names and types of the inputs to d, the first message about a node (NULL: none). */
static void name_inputs(Import *im, const Build *b, Diag *d, Loc loc) {
  StrBuf t = sb_new(&im->c->scratch);
  while (d && d->level != LV_error) d = d->next;
  if (!d || d->loc.op != loc.op || d->loc.node != loc.node || d->loc.index != loc.index) return;
  for (u32 i = 0; i < b->nin && i < b->node->in.n && i < INPUTS_SHOWN; i++)
    if (b->in[i] && !val_is_list(b->in[i]))
      sb_fmt(&t, "%s%s: %s", t.n ? ", " : "", show(im->c, b->node->in.at[i]),
             type_text(im->g->dims, graph_type(im->g, b->in[i])));
  if (t.n) d->text = str_text(im->c, str_fmt(im->c, "%s; inputs are %s", d->text, sb_cstr(&t)));
}

/* Runs the builder. Records a refusal and returns false; other failures propagate. */
static bool build_node(Import *im, Build *b, const OnnxNode *n, Loc loc) {
  b->opset = opset_of(im, n->domain);
  Attempt a = {im, b, find_row(im, n, b->opset), find_fn(im, n)};
  if (a.fn) a.row = NULL; /* a function of the model overrides a builder of the same name */
  if (!a.row && !a.fn) {
    unsupported_op(im, n, b->opset, loc);
    return false;
  }
  if (a.row && a.row->quant && im->g->opens)
    fail(im->c, ERR_unsupported, loc,
         "the model is quantized: expected a float model; train that, then run `ingot quantize`");
  if (a.row) check_attrs(im, n, a.row, loc);
  if (a.row) b->arg = a.row->arg;
  if (a.row && a.row->most != 255 && b->nin > a.row->most)
    fail(im->c, ERR_input, loc, "%u inputs are given, %s takes at most %u", b->nin,
         show(im->c, n->op), a.row->most);
  for (u32 i = 0; a.row && !a.row->lists && i < b->nin; i++)
    if (val_is_list(b->in[i]))
      fail(im->c, ERR_input, loc, "input '%s' is a sequence or optional, expected a tensor",
           show(im->c, n->in.at[i]));
  RegionId cur = im->g->cur;
  Scope *scope = im->scope;
  u32 depth = im->depth;
  DiagMark before = diag_mark(im->c);
  Err e = ctx_protect(im->c, attempt, &a);
  if (!e) return true;
  if (e == ERR_input) name_inputs(im, b, *before.end, loc);
  if (e != ERR_unsupported) longjmp(*im->c->door, (int)e); /* already recorded */
  im->g->cur = cur;
  im->scope = scope;
  im->depth = depth;
  return false;
}

static bool is_poisoned(const Import *im, Str name) {
  for (const Scope *s = im->scope; s; s = s->up) {
    u32 *v = map_get((Map *)(uintptr_t)&s->name, name);
    if (v && *v) return *v == VAL_POISON;
  }
  return false;
}

/* Does a body of the node read the result of a refused node? */
static bool reads_poison(const Import *im, const OnnxNode *n, u32 depth) {
  for (u32 k = 0; k < n->attrs.n && depth < ONNX_GRAPH_DEPTH; k++) {
    const OnnxGraph *g = n->attrs.at[k].type == OA_graph ? n->attrs.at[k].g : NULL;
    for (u32 i = 0; g && i < g->outputs.n; i++)
      if (is_poisoned(im, g->outputs.at[i].name)) return true;
    for (u32 i = 0; g && i < g->nodes.n; i++) {
      const OnnxNode *inner = &g->nodes.at[i];
      for (u32 j = 0; j < inner->in.n; j++)
        if (is_poisoned(im, inner->in.at[j])) return true;
      if (reads_poison(im, inner, depth + 1)) return true;
    }
  }
  return false;
}

/* A node that is not built: it and the nodes in its bodies may be unsupported themselves. */
static void name_unknown(Import *im, const OnnxNode *n, Loc loc, u32 depth) {
  i64 opset = opset_of(im, n->domain);
  if (!find_row(im, n, opset) && !find_fn(im, n)) unsupported_op(im, n, opset, loc);
  for (u32 k = 0; k < n->attrs.n && depth < ONNX_GRAPH_DEPTH; k++) {
    const OnnxGraph *g = n->attrs.at[k].type == OA_graph ? n->attrs.at[k].g : NULL;
    for (u32 i = 0; g && i < g->nodes.n; i++)
      name_unknown(im, &g->nodes.at[i], import_loc(im, &g->nodes.at[i], (i32)i), depth + 1);
  }
}

void import_nodes(Import *im, const OnnxNode *node, u32 count) {
  for (u32 i = 0; i < count; i++) {
    const OnnxNode *n = &node[i];
    Loc loc = import_loc(im, n, (i32)i);
    if (++im->steps > IMPORT_STEPS)
      fail(im->c, ERR_unsupported, loc, "the model has more than %d nodes", IMPORT_STEPS);
    Build b = {.c = im->c, .g = im->g, .ds = im->g->dims, .im = im, .node = n};
    b.nout = n->out.n ? n->out.n : 1;
    b.out = NEWS(&im->c->work, Val, b.nout);
    im->g->loc = im->c->here = loc;
    NodeId first = im->g->node.n;
    bool good = read_operands(im, &b, n, loc);
    if (good && im->c->nerrors) good = !reads_poison(im, n, 0);
    if (!good) name_unknown(im, n, loc, 0);
    good = good && build_node(im, &b, n, loc);
    if (good) layer_end(im->g, first);
    for (u32 k = 0; k < n->out.n; k++) {
      if (!n->out.at[k]) continue;
      if (good && !b.out[k])
        fail(im->c, ERR_input, loc, "%s has no output number %u", show(im->c, n->op), k);
      scope_define(im, n->out.at[k], good ? b.out[k] : VAL_POISON, loc);
    }
    arena_clear(&im->c->scratch);
  }
}

Err import_try(Import *im, void (*fn)(Ctx *c, void *arg), void *arg, const char **why) {
  Graph *g = im->g;
  RegionId cur = g->cur;
  Loc loc = g->loc;
  Scope *scope = im->scope;
  u32 depth = im->depth;
  SliceMode slices = im->slices;
  const LoopCounter *counter = im->counter;
  Err e = ctx_try(im->c, fn, arg, why);
  im->slices = slices;
  im->counter = counter;
  g->cur = cur;
  g->loc = loc;
  im->scope = scope;
  im->depth = depth;
  return e;
}

u32 on_subgraph(Build *b, const OnnxGraph *g, const Val *in, u32 nin, Val *ret, u32 max) {
  Import *im = b->im;
  Scope *outer = im->scope;
  Loc loc = im->g->loc;
  Diag **diags = im->c->diags_end;
  enter(im, loc);
  im->scope = scope_new(im, outer);
  scope_graph(im, im->scope, g);
  if (g->inputs.n != nin)
    fail(im->c, ERR_input, loc, "the body takes %u inputs, expected %u", g->inputs.n, nin);
  if (g->outputs.n > max)
    fail(im->c, ERR_input, loc, "the body has %u outputs, expected %u", g->outputs.n, max);
  for (u32 i = 0; i < nin; i++) scope_define(im, g->inputs.at[i].name, in[i], loc);
  import_nodes(im, g->nodes.at, g->nodes.n);
  im->g->loc = loc;
  u32 poisoned = 0;
  for (u32 i = 0; i < g->outputs.n; i++) {
    ret[i] = scope_find(im, g->outputs.at[i].name);
    if (!ret[i])
      fail(im->c, ERR_input, loc, "the body does not define its output '%s'",
           show(im->c, g->outputs.at[i].name));
    poisoned += ret[i] == VAL_POISON;
  }
  im->scope = outer;
  im->depth--;
  if (poisoned) fail(im->c, ERR_unsupported, loc, BODY_FAILS "%s", diag_cause(*diags));
  return g->outputs.n;
}

/* ---- model ---- */

/* A domain has two names and may be listed twice, but with one version. */
static void check_opsets(Import *im, const OnnxOpset *at, u32 n, const char *where) {
  for (u32 i = 0; i < n; i++)
    for (u32 k = 0; k < i; k++) {
      const char *a = domain_key(im->c, at[i].domain), *b = domain_key(im->c, at[k].domain);
      bool same = at[i].domain == at[k].domain || (a && b && !strcmp(a, b));
      if (same && at[i].version != at[k].version)
        fail(im->c, ERR_input, import_here(im),
             "%s imports opset %lld and opset %lld of domain '%s'", where, (long long)at[k].version,
             (long long)at[i].version, show(im->c, at[i].domain));
    }
}

static void check_versions(Import *im) {
  if (im->m->ir_version < 1)
    fail(im->c, ERR_input, import_here(im), "IR version %lld is not an ONNX model",
         (long long)im->m->ir_version);
  if (im->m->ir_version < IR_MIN || im->m->ir_version > IR_MAX)
    fail(im->c, ERR_unsupported, import_here(im),
         "IR version %lld is not supported; expected %d to %d", (long long)im->m->ir_version,
         IR_MIN, IR_MAX);
  for (u32 i = 0; i < im->m->opsets.n; i++) {
    const OnnxOpset *s = &im->m->opsets.at[i];
    const char *key = domain_key(im->c, s->domain);
    if (s->version < 1 && key)
      fail(im->c, ERR_input, import_here(im), "found opset %lld of domain '%s', expected 1 or more",
           (long long)s->version, show(im->c, s->domain));
    if (key && !strcmp(key, "ai") && s->version > OPSET_MAX)
      fail(im->c, ERR_unsupported, import_here(im),
           "opset %lld of ai.onnx is not supported; expected 1 to %d", (long long)s->version,
           OPSET_MAX);
  }
  check_opsets(im, im->m->opsets.at, im->m->opsets.n, "the model");
  for (u32 i = 0; i < im->m->functions.n; i++) {
    const OnnxFunction *f = &im->m->functions.at[i];
    check_opsets(im, f->opsets.at, f->opsets.n,
                 str_text(im->c, str_fmt(im->c, "function '%s'", show(im->c, f->name))));
  }
}

/* Declared shapes are hints of the exporter. Results have their computed shapes. */
static void check_output_shape(Import *im, const DeclValue *o, const Type *t) {
  u32 n = o->type.dims.n;
  bool same = n == t->rank;
  for (u32 i = 0; same && i < n; i++) {
    const DeclDim *d = &o->type.dims.at[i];
    same = d->kind != OD_value || d->value < 0 || !dim_is_const(t->dim[i]) || d->value == t->dim[i];
  }
  if (same) return;
  StrBuf declared = sb_new(&im->c->scratch), found = sb_new(&im->c->scratch);
  for (u32 i = 0; i < n; i++) {
    const DeclDim *d = &o->type.dims.at[i];
    sb_puts(&declared, i ? "," : "");
    if (d->kind == OD_value)
      sb_fmt(&declared, "%lld", (long long)d->value);
    else
      sb_puts(&declared, d->param ? show(im->c, d->param) : "?");
  }
  for (u32 i = 0; i < t->rank; i++) {
    sb_puts(&found, i ? "," : "");
    dim_print(im->g->dims, t->dim[i], &found);
  }
  warn(im->c, import_here(im), "output '%s' is declared as [%s] but computed as [%s]",
       show(im->c, o->name), sb_cstr(&declared), sb_cstr(&found));
}

static void check_output_type(Import *im, const DeclValue *o, Val v) {
  const Type *t = graph_type(im->g, v);
  if (o->type.kind == OT_tensor && o->type.dt && t->kind == TY_tensor && t->dt != o->type.dt)
    fail(im->c, ERR_input, import_here(im), "output '%s' is declared as %s but computed as %s",
         show(im->c, o->name), dtype_info[o->type.dt].name, dtype_info[t->dt].name);
  if (o->type.kind == OT_tensor && o->type.has_shape && t->kind == TY_tensor)
    check_output_shape(im, o, t);
}

static void put_output(Import *im, Val v, Str name, OutputStructure *p) {
  *p = (OutputStructure){.kind = TY_tensor, .flat = im->g->out_name.n};
  p->text = graph_type(im->g, v)->dt == DT_str;
  if (p->text) v = mk_bytes(im->g, v, string_max_bytes(im->g, v));
  graph_result(im->g, v, name);
}

/* Makes every tensor of a value an output of the graph. */
static void put_outputs(Import *im, Val v, Str name, OutputStructure *p) {
  if (val_is_real(v)) {
    put_output(im, v, name, p);
    return;
  }
  const List *l = list_at(im, v);
  const char *base = str_text(im->c, name);
  OutputStructure *part = NEWS(&im->c->keep, OutputStructure, l->n + 2);
  u32 n = l->n;
  if (l->stack) {
    put_output(im, l->stack, name, &part[0]);
    if (l->keys && !l->count)
      fail(im->c, ERR_unsupported, import_here(im), "output '%s' is a map, which is not supported",
           base);
    if (l->keys)
      put_output(im, l->keys, str_fmt(im->c, "%s.keys", base), &part[1]);
    else
      put_output(im, l->count, str_fmt(im->c, "%s.count", base), &part[1]);
  }
  for (u32 i = 0; i < n; i++)
    put_outputs(im, l->at[i], l->kind == TY_opt ? name : str_fmt(im->c, "%s.%u", base, i),
                &part[i]);
  if (l->has) put_output(im, l->has, str_fmt(im->c, "%s.has", base), &part[n]);
  *p = (OutputStructure){
      .kind = l->kind, .elem = part, .n = n, .open = l->stack || l->has, .maps = l->keys != 0};
}

static void import_outputs(Import *im) {
  const OnnxGraph *mg = im->m->graph;
  if (!mg->outputs.n) fail(im->c, ERR_input, import_here(im), "the graph has no outputs");
  OutputStructure *port = NEWS(&im->c->keep, OutputStructure, mg->outputs.n);
  for (u32 i = 0; i < mg->outputs.n; i++) {
    const DeclValue *o = &mg->outputs.at[i];
    Val v = scope_find(im, o->name);
    if (!v)
      fail(im->c, ERR_input, import_here(im), "graph output '%s' is not computed by any node",
           show(im->c, o->name));
    if (v == VAL_POISON) continue;
    if (val_is_real(v)) check_output_type(im, o, v);
    put_outputs(im, v, o->name, &port[i]);
  }
  if (im->o->outputs) *im->o->outputs = port;
}

static void warn_training(Import *im) {
  StrBuf more = sb_new(&im->c->scratch);
  if (im->ntraining > 1) sb_fmt(&more, ", and so are %u more nodes", im->ntraining - 1);
  if (im->ntraining)
    warn(im->c, im->first_training,
         "is in training mode%s: BatchNormalization uses the statistics of the batch and Dropout "
         "drops elements, so results depend on the batch and the seed; export the model for "
         "inference (torch: model.eval())",
         sb_cstr(&more));
}

Graph *onnx_import(Ctx *c, const Source *s, const Model *m, const ImportOptions *o) {
  Import im = {.c = c, .o = o, .file = s->file, .path = s->path, .m = m->own};
  im.g = graph_new(c);
  im.g->eager = true;
  im.g->opens = o->opens;
  im.g->trains = o->trains;
  im.g->name = im.m->graph->name;
  check_versions(&im);
  index_tables(&im);
  check_expansion(&im);
  im.scope = scope_new(&im, NULL);
  scope_graph(&im, im.scope, im.m->graph);
  import_inputs(&im, m);
  import_nodes(&im, im.m->graph->nodes.at, im.m->graph->nodes.n);
  import_outputs(&im);
  diag_raise(c);
  if (!im.g->pin.n) extents_refuse_unused(&im.extents); /* contents that are given decide sizes */
  warn_training(&im);
  im.g->eager = false;
  im.g->loc = LOC_NONE;
  c->here = (Loc){.file = s->file, .index = -1};
  return im.g;
}
