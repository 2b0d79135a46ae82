/* graph_parse.c: reads the text form of a graph; the grammar is in graph_text.c.
 *
 * In: any bytes. Out: a graph whose types have been inferred again and found equal to those
 * written, or a failure with the line. Values may be called by any name of letters, digits and '_'
 * after '%'; printing numbers them again. Nesting is bounded by GRAPH_DEPTH, and nothing is
 * allocated for a constant before the text is known to be long enough to hold its elements.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include "ir/graph.h"

enum { MAX_NUMBER = 400 };
#define NAME_GONE UINT32_MAX

/* A value as its definition writes it. */
typedef struct Decl {
  Str id;
  Str label;
  Type type;
  i32 line;
} Decl;
typedef VEC(Decl) Decls;

typedef struct Parse {
  Ctx *c;
  Graph *g;
  const char *at, *end;
  Loc loc; /* file and current line */
  u32 depth;
  Map ids;        /* name -> value, NAME_GONE behind the end of its block */
  VEC(Str) scope; /* names that are visible, in order */
  const u8 *side;
  size_t nside;
} Parse;

#define BAD(p, ...) fail((p)->c, ERR_input, (p)->loc, __VA_ARGS__)

/* ---- characters and words ---- */

static void skip(Parse *p) {
  for (; p->at < p->end; p->at++) {
    if (*p->at == '#') {
      while (p->at < p->end && *p->at != '\n') p->at++;
      if (p->at == p->end) return;
    }
    if (*p->at == '\n') {
      p->loc.line++;
    } else if (*p->at != ' ' && *p->at != '\t' && *p->at != '\r') {
      return;
    }
  }
}

static char peek(Parse *p) {
  skip(p);
  return p->at < p->end ? *p->at : 0;
}

static bool accept(Parse *p, char ch) {
  if (peek(p) != ch || p->at == p->end) return false;
  p->at++;
  return true;
}

/* The rest of the line in printable form, for messages. */
static const char *found(Parse *p) {
  skip(p);
  size_t n = 0, left = (size_t)(p->end - p->at);
  while (n < left && n < 24 && p->at[n] != '\n') n++;
  return n ? show(p->c, str_intern(p->c, p->at, n)) : "the end of the text";
}

static void expect(Parse *p, char ch) {
  if (!accept(p, ch)) BAD(p, "expected '%c', found %s", ch, found(p));
}

static bool is_letter(char ch) {
  return (ch >= 'a' && ch <= 'z') || (ch >= 'A' && ch <= 'Z') || ch == '_';
}

static bool is_word(char ch) {
  return is_letter(ch) || (ch >= '0' && ch <= '9');
}

/* Length of the word (letters, digits, '_') at the cursor. */
static size_t word(Parse *p) {
  skip(p);
  size_t n = 0, left = (size_t)(p->end - p->at);
  while (n < left && is_word(p->at[n])) n++;
  return n;
}

static bool accept_word(Parse *p, const char *w) {
  size_t n = word(p);
  if (n != strlen(w) || memcmp(p->at, w, n)) return false;
  p->at += n;
  return true;
}

static void expect_word(Parse *p, const char *w) {
  if (!accept_word(p, w)) BAD(p, "expected '%s', found %s", w, found(p));
}

static Str quoted(Parse *p) {
  if (peek(p) != '"') BAD(p, "expected a quoted string, found %s", found(p));
  Text t = text_new(&p->c->scratch);
  size_t n = text_unquote(&t, p->at, (size_t)(p->end - p->at));
  if (!n) BAD(p, "malformed string %s", found(p));
  p->at += n;
  return str_intern(p->c, t.at, t.n);
}

/* An identifier or a quoted string. */
static Str name(Parse *p) {
  if (peek(p) == '"') return quoted(p);
  size_t n = word(p);
  if (!n || !is_letter(*p->at)) BAD(p, "expected a name, found %s", found(p));
  Str s = str_intern(p->c, p->at, n);
  p->at += n;
  return s;
}

/* ---- numbers ---- */

/* Copies the characters a number may consist of; they must be followed by something else. */
static const char *number(Parse *p, char *to) {
  skip(p);
  size_t n = 0, left = (size_t)(p->end - p->at);
  for (; n < left && n < MAX_NUMBER; n++) {
    char ch = p->at[n];
    if (ch == '.' && n + 1 < left && p->at[n + 1] == '.') break; /* a range: 1..64 */
    if (!is_word(ch) && ch != '.' && ch != '-' && ch != '+') break;
    to[n] = ch;
  }
  to[n] = 0;
  if (n == 0 || n == MAX_NUMBER) BAD(p, "expected a number, found %s", found(p));
  p->at += n;
  return to;
}

static i64 integer(Parse *p) {
  char text[MAX_NUMBER + 1], *end;
  const char *start = p->at;
  errno = 0;
  i64 x = strtoll(number(p, text), &end, 10);
  if (*end || errno) {
    p->at = start;
    BAD(p, "expected an integer, found %s", found(p));
  }
  return x;
}

/* "HEX)": the bits of one element, in memory order of this machine. */
static void bits(Parse *p, u8 *to, u32 bytes) {
  char text[MAX_NUMBER + 1], *end;
  expect(p, '(');
  errno = 0;
  u64 x = strtoull(number(p, text), &end, 16);
  if (*end || errno || (bytes < 8 && x >> (8 * bytes))) BAD(p, "bits(%s) do not fit", text);
  expect(p, ')');
  for (u32 i = 0; i < bytes; i++) to[i] = (u8)(x >> (8 * i));
}

static void real(Parse *p, DType dt, u8 *to) {
  char text[MAX_NUMBER + 1], *end;
  if (accept_word(p, "bits")) {
    bits(p, to, dtype_bytes(dt));
    return;
  }
  double x = strtod(number(p, text), &end);
  if (*end) BAD(p, "expected a number, found %s", text);
  scalar_store(dt, to, (Scalar){.f = scalar_round(dt, x)});
}

static void whole(Parse *p, DType dt, u8 *to) {
  char text[MAX_NUMBER + 1], *end;
  Scalar x;
  if (accept_word(p, "bits")) {
    bits(p, to, dtype_bytes(dt));
    return;
  }
  number(p, text);
  errno = 0;
  if (dt == DT_u64) {
    x.i = (i64)strtoull(text, &end, 10);
    if (text[0] == '-') errno = ERANGE;
  } else {
    x.i = strtoll(text, &end, 10);
    if (scalar_wrap(dt, x.i) != x.i) errno = ERANGE;
  }
  if (*end || errno) BAD(p, "expected a value of %s, found %s", dtype_info[dt].name, text);
  scalar_store(dt, to, x);
}

static void element(Parse *p, DType dt, u8 *to) {
  u32 bytes = dtype_bytes(dt);
  switch (dtype_info[dt].cls) {
  case 'F': real(p, dt, to); return;
  case 'C': {
    DType part = dt == DT_c64 ? DT_f32 : DT_f64;
    expect(p, '(');
    real(p, part, to);
    expect(p, ',');
    real(p, part, to + bytes / 2);
    expect(p, ')');
    return;
  }
  case 'S': {
    Str s = quoted(p);
    memcpy(to, &s, sizeof s);
    return;
  }
  case 'B':
    if (accept_word(p, "true")) {
      *to = 1;
    } else if (accept_word(p, "false")) {
      *to = 0;
    } else if (accept_word(p, "bits")) {
      bits(p, to, 1);
    } else {
      BAD(p, "expected true or false, found %s", found(p));
    }
    return;
  default: whole(p, dt, to); return;
  }
}

/* ---- types ---- */

static Dim dim(Parse *p) {
  skip(p);
  size_t n = 0, left = (size_t)(p->end - p->at);
  while (n < left && p->at[n] != '\n' && p->at[n] != '#') n++;
  Dim d;
  size_t used = dim_parse(p->g->dims, p->at, n, &d);
  if (!used) BAD(p, "expected a dimension, found %s", found(p));
  p->at += used;
  return d;
}

static DType dtype(Parse *p) {
  size_t n = word(p);
  DType dt = dtype_from_name(p->at, n);
  if (dt == DT_none) BAD(p, "expected an element type, found %s", found(p));
  p->at += n;
  return dt;
}

static Type type(Parse *p, u32 depth) {
  bool seq = accept_word(p, "seq");
  if (seq || accept_word(p, "opt")) {
    if (depth == 8) BAD(p, "types nest deeper than 8");
    Type t = {.kind = seq ? TY_seq : TY_opt, .elem = NEW(&p->c->work, Type)};
    expect(p, '(');
    *t.elem = type(p, depth + 1);
    expect(p, ')');
    return t;
  }
  DType dt = dtype(p);
  Dim d[MAX_RANK];
  u32 rank = 0;
  expect(p, '[');
  while (!accept(p, ']')) {
    if (rank) expect(p, ',');
    if (rank == MAX_RANK) BAD(p, "more than %d dimensions", MAX_RANK);
    d[rank++] = dim(p);
  }
  return type_tensor(&p->c->work, dt, d, rank);
}

/* ---- values ---- */

static Str value_id(Parse *p) {
  expect(p, '%');
  size_t n = p->at < p->end && is_word(*p->at) ? word(p) : 0;
  if (!n) BAD(p, "expected a value name behind '%%', found %s", found(p));
  Str id = str_intern(p->c, p->at, n);
  p->at += n;
  return id;
}

static Val use(Parse *p) {
  if (accept_word(p, "_")) return 0;
  Str id = value_id(p);
  u32 *v = map_get(&p->ids, id);
  if (!v) BAD(p, "%%%s is not defined before this use", str_text(p->c, id));
  if (*v == NAME_GONE) BAD(p, "%%%s is defined in a block that is closed", str_text(p->c, id));
  return *v;
}

static void bind(Parse *p, Str id, Val v) {
  u32 *slot = map_put(&p->ids, id);
  if (*slot) BAD(p, "%%%s is defined twice", str_text(p->c, id));
  *slot = v;
  *vec_push(&p->c->scratch, &p->scope) = id;
}

static Decl decl(Parse *p) {
  Decl d = {.line = p->loc.line};
  d.id = value_id(p);
  if (peek(p) == '"') d.label = quoted(p);
  expect(p, ':');
  d.type = type(p, 0);
  return d;
}

static void params(Parse *p, BlkId b) {
  expect(p, '(');
  for (u32 i = 0; !accept(p, ')'); i++) {
    if (i) expect(p, ',');
    Decl d = decl(p);
    bind(p, d.id, graph_param(p->g, b, d.type, d.label));
  }
}

/* ---- attributes ---- */

static void list(Parse *p, Attr *a) {
  VEC(Dim) d = {0};
  expect(p, '[');
  while (!accept(p, ']')) {
    if (d.n) expect(p, ',');
    Dim x = attr_is_dims(a->key) ? dim(p) : integer(p);
    *vec_push(&p->c->work, &d) = x;
  }
  a->u.list = d.at;
  a->n = d.n;
}

static void attr(Parse *p, Op op, Attr *a) {
  size_t n = word(p);
  bool optional;
  for (a->key = AT_none + 1; a->key < AT_COUNT; a->key++) {
    if (strlen(attr_name[a->key]) == n && !memcmp(attr_name[a->key], p->at, n)) break;
  }
  if (a->key == AT_COUNT || !attr_spec(op, a->key, &a->kind, &optional) || a->kind == AK_const) {
    BAD(p, "%s has no attribute %s", op_info[op].name, found(p));
  }
  p->at += n;
  expect(p, '=');
  switch (a->kind) {
  case AK_int: a->u.i = integer(p); break;
  case AK_float: real(p, DT_f64, (u8 *)&a->u.f); break;
  case AK_list: list(p, a); break;
  case AK_str: a->u.s = quoted(p); break;
  case AK_dtype: a->u.i = dtype(p); break;
  case AK_const: break;
  }
}

/* Attributes in braces; kept sorted by key. */
static void attrs(Parse *p, Node *n) {
  Attr all[AT_COUNT];
  if (!accept(p, '{')) return;
  while (!accept(p, '}')) {
    if (n->nattr) expect(p, ',');
    Attr a = {0};
    attr(p, n->op, &a);
    u32 j = n->nattr++;
    for (; j && all[j - 1].key > a.key; j--) all[j] = all[j - 1];
    if (j && all[j - 1].key == a.key) BAD(p, "attribute %s is given twice", attr_name[a.key]);
    all[j] = a;
  }
  n->attr = arena_copy(&p->c->work, all, n->nattr * sizeof *all);
}

static Tensor *side(Parse *p, const Type *t, u64 count) {
  u64 bytes, end;
  expect_word(p, "side");
  expect(p, '(');
  i64 at = integer(p);
  expect(p, ',');
  i64 n = integer(p);
  expect(p, ')');
  if (!size_mul(count, dtype_bytes(t->dt), &bytes) || n < 0 || (u64)n != bytes) {
    BAD(p, "the constant has %llu elements of %u bytes, the side file gives %lld bytes",
        (unsigned long long)count, dtype_bytes(t->dt), (long long)n);
  }
  if (at < 0 || !size_add((u64)at, bytes, &end) || end > p->nside || t->dt == DT_str) {
    BAD(p, "%lld bytes at %lld are not in the side file of %zu bytes", (long long)n, (long long)at,
        p->nside);
  }
  return tensor_wrap(&p->c->work, t->dt, t->dim, t->rank, p->side + at);
}

static void constant(Parse *p, Node *n, const Decls *out) {
  const Type *t = out->n == 1 ? &out->at[0].type : NULL;
  u64 count;
  if (!t || t->kind != TY_tensor || !type_is_static(t) || !shape_count(t->dim, t->rank, &count)) {
    BAD(p, "a constant has one result, a tensor of constant dimensions");
  }
  n->nattr = 1;
  n->attr = NEW(&p->c->work, Attr);
  *n->attr = (Attr){.key = AT_value, .kind = AK_const};
  if (accept(p, '@')) {
    n->attr->u.t = side(p, t, count);
    return;
  }
  expect(p, '{');
  if (count > (u64)(p->end - p->at)) {
    BAD(p, "the constant has %llu elements, the text is too short for them",
        (unsigned long long)count);
  }
  Tensor *x = tensor_new(&p->c->work, t->dt, t->dim, t->rank);
  u8 *to = (u8 *)x->data;
  for (u64 i = 0; i < count; i++) {
    if (i) expect(p, ',');
    element(p, t->dt, to + i * dtype_bytes(t->dt));
  }
  expect(p, '}');
  n->attr->u.t = x;
}

/* ---- nodes ---- */

static Op op(Parse *p) {
  size_t n = word(p);
  Op op = op_from_name(p->at, n);
  if (op == OP_COUNT) BAD(p, "unknown operator %s", found(p));
  p->at += n;
  return op;
}

static void operands(Parse *p, Node *n) {
  VEC(Val) in = {0};
  const OpInfo *info = &op_info[n->op];
  if (info->nin_max) {
    expect(p, '(');
    while (!accept(p, ')')) {
      if (in.n) expect(p, ',');
      Val v = use(p);
      *vec_push(&p->c->work, &in) = v;
    }
  }
  if (in.n < info->nin_min || in.n > info->nin_max) {
    BAD(p, "%s takes %u to %u operands, found %u", info->name, info->nin_min, info->nin_max, in.n);
  }
  n->in = in.at;
  n->nin = in.n;
}

static void block(Parse *p, BlkId b);

static void blocks(Parse *p, Node *n) {
  n->nblk = n->op == OP_if ? 2 : 1;
  for (u32 i = 0; i < n->nblk; i++) {
    if (i) expect_word(p, "else");
    u32 visible = p->scope.n;
    n->blk[i] = graph_block(p->g, 0);
    if (n->op == OP_loop) params(p, n->blk[i]);
    block(p, n->blk[i]);
    while (p->scope.n > visible) *map_put(&p->ids, p->scope.at[--p->scope.n]) = NAME_GONE;
  }
}

static void syms(Parse *p, Node *n) {
  VEC(Sym) all = {0};
  expect(p, '(');
  while (!accept(p, ')')) {
    if (all.n) expect(p, ',');
    i64 k0;
    const Sym *sym;
    const i64 *coef;
    Dim d = dim(p);
    bool one = !dim_is_const(d) && dim_terms(p->g->dims, d, &k0, &sym, &coef) == 1;
    if (!one || k0 || coef[0] != 1 || dim_syminfo(p->g->dims, sym[0])->kind != SY_data) {
      BAD(p, "a node can only set a symbol that is declared as data");
    }
    *vec_push(&p->c->work, &all) = sym[0];
  }
  n->sym = all.at;
  n->nsym = all.n;
}

static Loc origin(Parse *p) {
  Loc loc = p->loc;
  expect(p, '(');
  loc.op = quoted(p);
  expect(p, ',');
  loc.node = quoted(p);
  expect(p, ',');
  i64 i = integer(p);
  expect(p, ')');
  if (i < -1 || i > INT32_MAX) BAD(p, "node index %lld is out of range", (long long)i);
  loc.index = (i32)i;
  return loc;
}

static const char *type_str(Parse *p, const Type *t) {
  Text text = text_new(&p->c->scratch);
  type_print(p->g->dims, t, &text);
  return text_cstr(&text);
}

/* Appends the node, with its outputs if their inferred types are those written. */
static void append(Parse *p, Node *proto, const Decls *out, BlkId b) {
  Graph *g = p->g;
  if (!proto->nblk && out->n != op_info[proto->op].nout) {
    BAD(p, "%s gives %u results, found %u", op_info[proto->op].name, op_info[proto->op].nout,
        out->n);
  }
  proto->nout = out->n;
  g->cur = b;
  Type *t = NEWS(&p->c->scratch, Type, out->n + 1);
  *vec_push(&p->c->work, &g->node) = *proto;
  NodeId id = g->node.n - 1;
  for (u32 i = 0; i < proto->nblk; i++) g->blk.at[proto->blk[i]].owner = id;
  if (proto->nblk) {
    infer_control(g, graph_node(g, id), t);
  } else {
    infer_node(g, graph_node(g, id), t);
  }
  graph_node(g, id)->out = NEWS(&p->c->work, Val, out->n);
  for (u32 i = 0; i < out->n; i++) {
    const Decl *d = &out->at[i];
    p->loc.line = d->line;
    if (!type_equal(&t[i], &d->type)) {
      BAD(p, "%%%s is written as %s, %s gives %s", str_text(p->c, d->id), type_str(p, &d->type),
          op_info[proto->op].name, type_str(p, &t[i]));
    }
    *vec_push(&p->c->work, &g->val) = (Value){d->type, d->label, id, i};
    graph_node(g, id)->out[i] = g->val.n - 1;
    bind(p, d->id, g->val.n - 1);
  }
  *vec_push(&p->c->work, &g->blk.at[b].node) = id;
}

static void node(Parse *p, BlkId b) {
  Decls out = {0};
  Node n = {0};
  n.loc = p->loc;
  while (peek(p) == '%') {
    Decl d = decl(p);
    *vec_push(&p->c->scratch, &out) = d;
    if (!accept(p, ',')) break;
  }
  if (out.n) expect(p, '=');
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
  if (accept_word(p, "sym")) syms(p, &n);
  if (accept(p, '@')) {
    i32 line = n.loc.line;
    n.loc = origin(p);
    n.loc.line = line;
  }
  i32 line = p->loc.line;
  append(p, &n, &out, b);
  p->loc.line = line;
}

static void block(Parse *p, BlkId b) {
  Graph *g = p->g;
  if (++p->depth > GRAPH_DEPTH) BAD(p, "blocks nest deeper than %d", GRAPH_DEPTH);
  expect(p, '{');
  while (!accept_word(p, "return")) node(p, b);
  for (u32 i = 0; !accept(p, '}'); i++) {
    if (i) expect(p, ',');
    Val v = use(p);
    if (!v) BAD(p, "a result cannot be absent");
    *vec_push(&p->c->work, &g->blk.at[b].ret) = v;
    if (b != 1) continue;
    Str label = peek(p) == '"' ? quoted(p) : 0;
    *vec_push(&p->c->work, &g->out_name) = label;
  }
  p->depth--;
}

static void symbol(Parse *p) {
  Str s = name(p);
  SymKind kind = accept_word(p, "data") ? SY_data : SY_input;
  Dims *ds = p->g->dims;
  for (u32 i = 0; i < dim_nsyms(ds); i++) {
    if (dim_syminfo(ds, i)->name == s) BAD(p, "symbol %s is declared twice", show(p->c, s));
  }
  expect_word(p, "in");
  i64 lo = integer(p), hi = DIM_MAX;
  expect(p, '.');
  expect(p, '.');
  if (p->at < p->end && *p->at >= '0' && *p->at <= '9') hi = integer(p);
  if (lo < 0 || hi < lo || hi > DIM_MAX) {
    BAD(p, "symbol %s: bounds %lld..%lld make no sense", show(p->c, s), (long long)lo,
        (long long)hi);
  }
  dim_sym(ds, kind, s, lo, hi);
}

Graph *graph_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *side, size_t nside) {
  Parse p = {.c = c, .at = text, .end = text + n, .side = side, .nside = nside};
  p.g = graph_new(c);
  p.ids = map_new(&c->scratch);
  p.loc = LOC_NONE;
  p.loc.file = file;
  p.loc.line = 1;
  expect_word(&p, "graph");
  if (peek(&p) != '(') {
    const char *start = p.at;
    if (!accept_word(&p, "sym"))
      p.g->name = name(&p);
    else
      p.at = start;
  }
  while (accept_word(&p, "sym")) symbol(&p);
  params(&p, 1);
  block(&p, 1);
  skip(&p);
  if (p.at < p.end) BAD(&p, "expected the end of the text, found %s", found(&p));
  p.g->cur = 1;
  p.g->loc = LOC_NONE;
  graph_check_input(p.g);
  return p.g;
}
