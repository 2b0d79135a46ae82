/* graph_parse.c: parses the text form of a graph; the grammar is in graph_text.c.
 *
 * In: any bytes. Out: a graph whose written types equal the inferred ones, or a failure with the
 * line. Value names are letters, digits and '_' after '%'; printing renumbers them. Nesting is
 * limited to GRAPH_DEPTH. Constants are allocated only if the text is long enough for their
 * elements. */
#include <string.h>
#include "ir/graph/graph.h"
#include "ir/lexer.h"

#define NAME_GONE UINT32_MAX

/* A value definition in the text. */
typedef struct Decl {
  Str id;
  Str label;
  ValuePlacement home;
  const Layout *layout;
  Type type;
  i32 line;
} Decl;
typedef VEC(Decl) Decls;

typedef struct GraphParse {
  Ctx *c;
  Graph *g;
  Lexer s;
  u32 depth;
  Map ids;        /* name -> value, NAME_GONE after the end of its region */
  VEC(Str) scope; /* visible names, in order */
} GraphParse;

/* ---- types ---- */

static Type type(GraphParse *p, u32 depth) {
  bool seq = lex_accept_word(&p->s, "seq");
  if (seq || lex_accept_word(&p->s, "opt")) {
    if (depth == 8) BAD(&p->s, "types nest deeper than 8");
    Type t = {.kind = seq ? TY_seq : TY_opt, .elem = NEW(&p->c->work, Type)};
    lex_expect(&p->s, '(');
    *t.elem = type(p, depth + 1);
    lex_expect(&p->s, ')');
    return t;
  }
  DType dt = lex_dtype(&p->s);
  Dim d[MAX_RANK];
  u32 rank = lex_dims(&p->s, d);
  return type_tensor(&p->c->work, dt, d, rank);
}

/* ---- values ---- */

static Str value_id(GraphParse *p) {
  lex_expect(&p->s, '%');
  const char *at = p->s.at;
  size_t n = lex_word(&p->s);
  if (at != p->s.at) n = 0; /* a space follows */
  if (!n) BAD(&p->s, "expected a value name after '%%', found %s", lex_found(&p->s));
  Str id = str_intern(p->c, p->s.at, n);
  p->s.at += n;
  return id;
}

static Val use(GraphParse *p) {
  if (lex_accept_word(&p->s, "_")) return 0;
  Str id = value_id(p);
  u32 *v = map_get(&p->ids, id);
  if (!v) BAD(&p->s, "%%%s is not defined before this use", str_text(p->c, id));
  if (*v == NAME_GONE) BAD(&p->s, "%%%s is defined in a region that is closed", str_text(p->c, id));
  return *v;
}

static void bind(GraphParse *p, Str id, Val v) {
  u32 *slot = map_put(&p->ids, id);
  if (*slot) BAD(&p->s, "%%%s is defined twice", str_text(p->c, id));
  *slot = v;
  *vec_push(&p->c->scratch, &p->scope) = id;
}

/* layout(channel block, [low borders], [high borders]), one border per spatial dimension; then the
 * border contents, if not 0. */
static const Layout *layout(GraphParse *p, const Type *t) {
  Layout *y = NEW(&p->c->work, Layout);
  lex_expect(&p->s, '(');
  i64 block = lex_integer(&p->s);
  if (!type_can_have_layout(t) || block < 0 || block == 1 || block > LAYOUT_BLOCK)
    BAD(&p->s,
        "a layout needs f32, f16, i32 or bytes, 3 to 5 constant dimensions, and a channel block of "
        "at "
        "most %d",
        LAYOUT_BLOCK);
  y->block = (u32)block;
  for (u32 side = 0; side < 2; side++) {
    Dim d[MAX_RANK];
    lex_expect(&p->s, ',');
    if (lex_dims(&p->s, d) != t->rank - 2)
      BAD(&p->s, "expected borders for %u dimensions", t->rank - 2);
    for (u32 i = 2; i < t->rank; i++) {
      if (!dim_is_const(d[i - 2]) || d[i - 2] < 0 || d[i - 2] > LAYOUT_BORDER)
        BAD(&p->s, "expected a border from 0 to %d", LAYOUT_BORDER);
      (side ? y->hi : y->lo)[i] = d[i - 2];
    }
  }
  if (lex_accept(&p->s, ',')) {
    y->fill = lex_integer(&p->s);
    if (t->dt == DT_f32 || scalar_wrap(t->dt, y->fill) != y->fill)
      BAD(&p->s, "border contents %lld do not fit %s", (long long)y->fill, dtype_info[t->dt].name);
  }
  lex_expect(&p->s, ')');
  return y;
}

static Decl decl(GraphParse *p) {
  Decl d = {.line = p->s.loc.line};
  d.id = value_id(p);
  if (lex_peek(&p->s) == '"') d.label = lex_quoted(&p->s);
  lex_expect(&p->s, ':');
  d.type = type(p, 0);
  if (lex_accept_word(&p->s, home_name[HOME_inline]))
    d.home = HOME_inline;
  else if (lex_accept_word(&p->s, home_name[HOME_epilogue]))
    d.home = HOME_epilogue;
  if (lex_accept_word(&p->s, "layout")) d.layout = layout(p, &d.type);
  return d;
}

static void params(GraphParse *p, RegionId b) {
  lex_expect(&p->s, '(');
  for (u32 i = 0; !lex_accept(&p->s, ')'); i++) {
    if (i) lex_expect(&p->s, ',');
    Decl d = decl(p);
    if (d.layout) BAD(&p->s, "a parameter cannot have a layout");
    Val v = graph_param(p->g, b, d.type, d.label);
    bind(p, d.id, v);
    if (b == 1 && d.type.kind == TY_tensor && lex_accept_word(&p->s, "pin"))
      *vec_push(&p->c->work, &p->g->pin) =
          (FixedParam){v, lex_tensor(&p->s, d.type.dt, d.type.dim, d.type.rank)};
  }
}

/* ---- attributes ---- */

static void list(GraphParse *p, Attr *a) {
  VEC(Dim) d = {0};
  lex_expect(&p->s, '[');
  while (!lex_accept(&p->s, ']')) {
    if (d.n) lex_expect(&p->s, ',');
    Dim x = attr_is_dims(a->key) ? lex_dim(&p->s) : lex_integer(&p->s);
    *vec_push(&p->c->work, &d) = x;
  }
  a->u.list = d.at;
  a->n = d.n;
}

static void attr(GraphParse *p, Op op, Attr *a) {
  size_t n = lex_word(&p->s);
  bool optional;
  for (a->key = AT_none + 1; a->key < AT_COUNT; a->key++) {
    if (strlen(attr_name[a->key]) == n && !memcmp(attr_name[a->key], p->s.at, n)) break;
  }
  if (a->key == AT_COUNT || !attr_spec(op, a->key, &a->kind, &optional) || a->kind == AK_const)
    BAD(&p->s, "%s has no attribute %s", op_info[op].name, lex_found(&p->s));
  p->s.at += n;
  lex_expect(&p->s, '=');
  switch (a->kind) {
  case AK_int: a->u.i = lex_integer(&p->s); break;
  case AK_float: lex_element(&p->s, DT_f64, (u8 *)&a->u.f); break;
  case AK_list: list(p, a); break;
  case AK_str: a->u.s = lex_quoted(&p->s); break;
  case AK_dtype: a->u.i = lex_dtype(&p->s); break;
  case AK_const: break;
  }
}

/* Attributes in braces, in any order; stored sorted by key. */
static void attrs(GraphParse *p, Node *n) {
  Attr all[AT_COUNT];
  if (!lex_accept(&p->s, '{')) return;
  while (!lex_accept(&p->s, '}')) {
    if (n->nattr) lex_expect(&p->s, ',');
    Attr a = {0};
    attr(p, n->op, &a);
    u32 j = n->nattr++;
    for (; j && all[j - 1].key > a.key; j--) all[j] = all[j - 1];
    if (j && all[j - 1].key == a.key) BAD(&p->s, "attribute %s occurs twice", attr_name[a.key]);
    all[j] = a;
  }
  n->attr = arena_copy(&p->c->work, all, n->nattr * sizeof *all);
}

static void constant(GraphParse *p, Node *n, const Decls *out) {
  const Type *t = out->n == 1 ? &out->at[0].type : NULL;
  if (!t || t->kind != TY_tensor) BAD(&p->s, "a constant must have one result of tensor type");
  n->nattr = 1;
  n->attr = NEW(&p->c->work, Attr);
  *n->attr = (Attr){.key = AT_value, .kind = AK_const};
  n->attr->u.t = lex_tensor(&p->s, t->dt, t->dim, t->rank);
}

/* ---- nodes ---- */

static Op op(GraphParse *p) {
  Op op = lex_op(&p->s);
  if (op == OP_COUNT) BAD(&p->s, "unknown operator %s", lex_found(&p->s));
  return op;
}

static void operands(GraphParse *p, Node *n) {
  VEC(Val) in = {0};
  const OpInfo *info = &op_info[n->op];
  if (info->nin_max) {
    lex_expect(&p->s, '(');
    while (!lex_accept(&p->s, ')')) {
      if (in.n) lex_expect(&p->s, ',');
      Val v = use(p);
      *vec_push(&p->c->work, &in) = v;
    }
  }
  if (in.n < info->nin_min || in.n > info->nin_max)
    BAD(&p->s, "%s takes %u to %u operands, found %u", info->name, info->nin_min, info->nin_max,
        in.n);
  n->in = in.at;
  n->nin = in.n;
}

static void block(GraphParse *p, RegionId b);

static void blocks(GraphParse *p, Node *n) {
  n->nregion = n->op == OP_if ? 2 : 1;
  for (u32 i = 0; i < n->nregion; i++) {
    if (i) lex_expect_word(&p->s, "else");
    u32 visible = p->scope.n;
    n->region[i] = graph_region(p->g, 0);
    if (n->op == OP_loop) params(p, n->region[i]);
    block(p, n->region[i]);
    while (p->scope.n > visible) *map_put(&p->ids, p->scope.at[--p->scope.n]) = NAME_GONE;
  }
}

static void syms(GraphParse *p, Node *n) {
  VEC(Sym) all = {0};
  lex_expect(&p->s, '(');
  while (!lex_accept(&p->s, ')')) {
    if (all.n) lex_expect(&p->s, ',');
    Sym sym;
    if (!dim_is_sym(p->g->dims, lex_dim(&p->s), SY_data, &sym))
      BAD(&p->s, "a node can only set a symbol that is declared as data");
    *vec_push(&p->c->work, &all) = sym;
  }
  n->sym = all.at;
  n->nsym = all.n;
}

static Loc origin(GraphParse *p) {
  Loc loc = p->s.loc;
  lex_expect(&p->s, '(');
  loc.op = lex_quoted(&p->s);
  lex_expect(&p->s, ',');
  loc.node = lex_quoted(&p->s);
  lex_expect(&p->s, ',');
  i64 i = lex_integer(&p->s);
  lex_expect(&p->s, ')');
  if (i < -1 || i > INT32_MAX)
    BAD(&p->s, "node index %lld is out of range, expected -1 to %d", (long long)i, INT32_MAX);
  loc.index = (i32)i;
  return loc;
}

/* Appends the node with its outputs; their inferred types must equal the written ones. */
static void append(GraphParse *p, Node *proto, const Decls *out, RegionId b) {
  Graph *g = p->g;
  if (!proto->nregion && out->n != op_info[proto->op].nout)
    BAD(&p->s, "%s has %u results, found %u", op_info[proto->op].name, op_info[proto->op].nout,
        out->n);
  proto->nout = out->n;
  g->cur = b;
  Type *t = NEWS(&p->c->scratch, Type, out->n + 1);
  *vec_push(&p->c->work, &g->node) = *proto;
  NodeId id = g->node.n - 1;
  for (u32 i = 0; i < proto->nregion; i++) g->region.at[proto->region[i]].owner = id;
  infer_node(g, graph_node(g, id), t);
  graph_node(g, id)->out = NEWS(&p->c->work, Val, out->n);
  for (u32 i = 0; i < out->n; i++) {
    const Decl *d = &out->at[i];
    p->s.loc.line = d->line;
    if (!type_equal(&t[i], &d->type))
      BAD(&p->s, "%%%s is written as %s, but %s gives %s", str_text(p->c, d->id),
          type_text(g->dims, &d->type), op_info[proto->op].name, type_text(g->dims, &t[i]));
    *vec_push(&p->c->work, &g->val) = (Value){d->type, d->label, id, i, d->home, d->layout, false};
    graph_node(g, id)->out[i] = g->val.n - 1;
    bind(p, d->id, g->val.n - 1);
  }
  *vec_push(&p->c->work, &g->region.at[b].node) = id;
}

static void node(GraphParse *p, RegionId b) {
  Decls out = {0};
  Node n = {0};
  n.loc = p->s.loc;
  while (lex_peek(&p->s) == '%') {
    Decl d = decl(p);
    *vec_push(&p->c->scratch, &out) = d;
    if (!lex_accept(&p->s, ',')) break;
  }
  if (out.n) lex_expect(&p->s, '=');
  n.op = op(p);
  operands(p, &n);
  if (n.op == OP_const) {
    constant(p, &n, &out);
  } else if (op_info[n.op].kind != OK_CONTROL) {
    attrs(p, &n);
  } else {
    if (n.op == OP_loop) attrs(p, &n);
    blocks(p, &n);
  }
  if (lex_accept_word(&p->s, "sym")) syms(p, &n);
  if (lex_accept(&p->s, '@')) {
    i32 line = n.loc.line;
    n.loc = origin(p);
    n.loc.line = line;
  }
  i32 line = p->s.loc.line;
  append(p, &n, &out, b);
  p->s.loc.line = line;
}

/* Result `out` becomes the parameter named here in the next run. */
static void state(GraphParse *p, u32 out) {
  Graph *g = p->g;
  Val v = use(p);
  u32 in = 0, n = g->region.at[1].param.n;
  while (in < n && g->region.at[1].param.at[in] != v) in++;
  if (in == n) BAD(&p->s, "expected a parameter of the graph after 'next'");
  i64 most = lex_accept_word(&p->s, "most") ? lex_integer(&p->s) : 0;
  if (most < 0 || most > DIM_MAX)
    BAD(&p->s, "expected a maximum extent of 0 to 2^40 after 'most', found %lld", (long long)most);
  i64 window = lex_accept_word(&p->s, "window") ? lex_integer(&p->s) : 0;
  if (window < 0 || window > DIM_MAX)
    BAD(&p->s, "expected a window of 0 to 2^40 positions, found %lld", (long long)window);
  const Type *t = graph_type(g, v);
  bool from = lex_accept_word(&p->s, "from");
  if (from && !type_is_static(t))
    BAD(&p->s, "a state with initial contents must have constant dimensions");
  Tensor *start = from ? lex_tensor(&p->s, t->dt, t->dim, t->rank) : NULL;
  *vec_push(&p->c->work, &g->state) = (StatePair){in, out, most, window, start};
}

static void block(GraphParse *p, RegionId b) {
  Graph *g = p->g;
  if (++p->depth > GRAPH_DEPTH) BAD(&p->s, "regions nest deeper than %d", GRAPH_DEPTH);
  lex_expect(&p->s, '{');
  while (!lex_accept_word(&p->s, "return")) node(p, b);
  for (u32 i = 0; !lex_accept(&p->s, '}'); i++) {
    if (i) lex_expect(&p->s, ',');
    Val v = use(p);
    if (!v) BAD(&p->s, "a result cannot be absent");
    *vec_push(&p->c->work, &g->region.at[b].ret) = v;
    if (b != 1) continue;
    Str label = lex_peek(&p->s) == '"' ? lex_quoted(&p->s) : 0;
    *vec_push(&p->c->work, &g->out_name) = label;
    if (lex_accept_word(&p->s, "next")) state(p, i);
  }
  p->depth--;
}

Graph *graph_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *weights,
                   size_t nweights) {
  GraphParse p = {.c = c, .s = lex_new(c, text, n, file, weights, nweights)};
  p.g = graph_new(c);
  p.s.dims = p.g->dims;
  p.ids = map_new(&c->scratch);
  lex_header(&p.s, "graph");
  if (lex_peek(&p.s) != '(') {
    const char *start = p.s.at;
    if (!lex_accept_word(&p.s, "sym"))
      p.g->name = lex_name(&p.s);
    else
      p.s.at = start;
  }
  lex_symbols(&p.s);
  params(&p, 1);
  block(&p, 1);
  lex_skip(&p.s);
  if (p.s.at < p.s.end) BAD(&p.s, "expected the end of the text, found %s", lex_found(&p.s));
  p.g->cur = 1;
  p.g->loc = LOC_NONE;
  graph_check_input(p.g);
  return p.g;
}
