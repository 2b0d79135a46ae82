/* prog_parse.c: parses the text form of a program; the grammar is in prog_text.c.
 *
 * In: any bytes. Out: a program accepted by prog_check_input, or a failure with the line. Method:
 * recursive descent that builds exactly what is written, without simplification. Types are computed
 * as far as building needs them and verified by the checker. Nesting is limited to PROG_DEPTH. */
#include <stdlib.h>
#include <string.h>
#include "ir/prog/prog.h"
#include "ir/lexer.h"

typedef struct ProgParse {
  Lexer s;
  Prog *p;
  Map buf;              /* name -> BufId */
  Map var;              /* name -> VarId, 0 after its scope */
  Map sym;              /* name -> Sym + 1 */
  VEC(Str) scope;       /* visible variable names, in order */
  VEC(u16) height;      /* by expression */
  VEC(RecordId) record; /* records of the kernel being read */
  u32 depth;
} ProgParse;

static void deeper(ProgParse *o) {
  if (++o->depth > PROG_DEPTH) BAD(&o->s, "nested deeper than %d", PROG_DEPTH);
}

static ExprId make(ProgParse *o, const Expr *e) {
  u16 highest = 0;
  for (u32 i = 0; i < e->narg; i++)
    if (o->height.at[e->arg[i]] > highest) highest = o->height.at[e->arg[i]];
  if (highest >= PROG_DEPTH) BAD(&o->s, "operands nest deeper than %d", PROG_DEPTH);
  ExprId id = ex_new(o->p, e);
  while (o->height.n <= id) *vec_push(&o->s.c->scratch, &o->height) = 0;
  o->height.at[id] = (u16)(highest + 1);
  return id;
}

static u32 lanes_of(ProgParse *o, i64 n) {
  if (n < 1 || n > MAX_LANES)
    BAD(&o->s, "expected 1 to %d lanes, found %lld", MAX_LANES, (long long)n);
  return (u32)n;
}

static u32 lanes(ProgParse *o) {
  return lanes_of(o, lex_integer(&o->s));
}

/* Digits without a suffix: 16x16 is not a number. */
static i64 count(ProgParse *o) {
  i64 n = 0;
  const char *from = o->s.at;
  while (o->s.at < o->s.end && *o->s.at >= '0' && *o->s.at <= '9' && n <= FRAG_LANES)
    n = 10 * n + *o->s.at++ - '0';
  if (o->s.at == from) BAD(&o->s, "expected a number of lanes, found %s", lex_found(&o->s));
  return n;
}

/* Rows of a fragment, and the lanes of rows x columns. */
static u32 fragment(ProgParse *o, i64 rows, i64 columns, u32 *nlanes) {
  if (rows < 1 || columns < 2 || rows > FRAG_LANES || columns > FRAG_LANES / rows)
    BAD(&o->s, "expected a fragment of at most %d elements, found %lld x %lld", FRAG_LANES,
        (long long)rows, (long long)columns);
  *nlanes = (u32)(rows * columns);
  return (u32)rows;
}

/* f32, f32x8 or f32x16x16 */
static DType type(ProgParse *o, u32 *nlanes, u32 *rows) {
  Lexer *s = &o->s;
  size_t n = lex_word(s), k = n;
  *nlanes = 1;
  *rows = 0;
  for (size_t i = 0; i < n; i++) { /* the word of a fragment has two numbers */
    DType dt = s->at[i] == 'x' ? dtype_from_name(s->at, i) : DT_none;
    const char *second = dt ? memchr(s->at + i + 1, 'x', n - i - 1) : NULL;
    if (!second || second + 1 == s->at + n) continue;
    s->at += i + 1;
    i64 high = count(o);
    lex_expect(s, 'x');
    *rows = fragment(o, high, count(o), nlanes);
    return dt;
  }
  if (dtype_from_name(s->at, n) != DT_none) return lex_dtype(s);
  while (k > 0 && s->at[k - 1] >= '0' && s->at[k - 1] <= '9') k--;
  DType dt = k > 1 && s->at[k - 1] == 'x' ? dtype_from_name(s->at, k - 1) : DT_none;
  if (dt == DT_none || k == n) BAD(s, "expected an element type, found %s", lex_found(s));
  s->at += k;
  *nlanes = lanes(o);
  return dt;
}

/* ---- expressions ---- */

static ExprId expr(ProgParse *o);

static bool is_digit(char ch) {
  return ch >= '0' && ch <= '9';
}

/* The character n positions ahead, 0 past the end. */
static char ahead(Lexer *s, size_t n) {
  return n < (size_t)(s->end - s->at) ? s->at[n] : 0;
}

static bool at_literal(Lexer *s) {
  char ch = lex_peek(s);
  static const char *const word[] = {"true", "false", "inf", "nan", "bits"};
  for (u32 i = 0; i < sizeof word / sizeof *word; i++)
    if (lex_is_word(s, word[i])) return true;
  return is_digit(ch) || ch == '-';
}

static ExprId literal(ProgParse *o) {
  Lexer *s = &o->s;
  bool boolean = lex_is_word(s, "true") || lex_is_word(s, "false");
  DType dt = boolean ? DT_bool : DT_i64;
  size_t n = lex_number(s);
  if (lex_is_word(s, "bits")) {
    while (n < (size_t)(s->end - s->at) && s->at[n] != ')' && s->at[n] != '\n') n++;
    n += ahead(s, n) == ')';
  }
  for (size_t i = 0; i < n && !boolean; i++)
    if (!is_digit(s->at[i]) && s->at[i] != '-') dt = DT_f32;
  bool suffix = ahead(s, n) == ':' && ahead(s, n + 1) >= 'a' && ahead(s, n + 1) <= 'z';
  if (suffix) {
    Lexer after = *s;
    after.at += n + 1;
    dt = lex_dtype(&after);
  }
  u8 raw[16] = {0};
  if (dtype_bytes(dt) > 8 || dt == DT_c64 || dt == DT_str)
    BAD(s, "expected a scalar type, found %s", lex_found(s));
  lex_element(s, dt, raw);
  if (suffix) {
    lex_expect(s, ':');
    lex_dtype(s);
  }
  return make(o, &(Expr){.kind = EX_const, .dt = dt, .lanes = 1, .imm = scalar_load(dt, raw)});
}

/* Operands in parentheses; returns their number. */
static u32 operands(ProgParse *o, ExprId *arg, u32 max) {
  u32 n = 0;
  lex_expect(&o->s, '(');
  while (!lex_accept(&o->s, ')')) {
    if (n) lex_expect(&o->s, ',');
    if (n == max) BAD(&o->s, "more than %u operands", max);
    arg[n++] = expr(o);
  }
  if (n == 0) BAD(&o->s, "expected at least one operand");
  return n;
}

static void expect_args(ProgParse *o, const Expr *e, u32 n) {
  if (e->narg != n) BAD(&o->s, "expected %u operands, found %u", n, e->narg);
}

static Op op_word(ProgParse *o) {
  Lexer *s = &o->s;
  const char *start = s->at;
  Op op = lex_op(s);
  if (op < OP_SCALARS) return op;
  s->at = start;
  BAD(s, "expected a scalar op, found %s", lex_found(s));
}

static ExprId shuffle(ProgParse *o) {
  u8 pick[MAX_LANES];
  ExprId arg[2 * MAX_LANES];
  Expr e = {.kind = EX_shuffle, .arg = arg, .pick = pick};
  while (lex_accept(&o->s, '.')) {
    if (e.lanes == MAX_LANES) BAD(&o->s, "more than %d lanes", MAX_LANES);
    u32 k = 0; /* digits only: 0.9.1 is not a number here */
    for (; is_digit(ahead(&o->s, 0)) && k < 2 * MAX_LANES; o->s.at++)
      k = 10 * k + (u32)(*o->s.at - '0');
    if (k >= 2 * MAX_LANES)
      BAD(&o->s, "lane %u is out of range, expected less than %u", k, 2 * MAX_LANES);
    pick[e.lanes++] = (u8)k;
  }
  e.narg = operands(o, arg, 2 * MAX_LANES);
  e.dt = prog_expr(o->p, arg[0])->dt;
  return make(o, &e);
}

static ExprId op_call(ProgParse *o) {
  ExprId arg[3];
  Expr e = {.kind = EX_op, .arg = arg, .op = op_word(o)};
  DType to = DT_none;
  if (op_info[e.op].res == OR_to) {
    lex_expect(&o->s, '.');
    to = lex_dtype(&o->s);
    if (lex_accept(&o->s, '.')) {
      e.small = lex_accept_word(&o->s, "small");
      if (!e.small) lex_expect_word(&o->s, "sat");
      e.sat = true;
    }
  } else if (e.op == OP_dot_i8x4 && lex_accept(&o->s, '.')) {
    lex_expect_word(&o->s, "low");
    e.low = true;
  }
  e.narg = operands(o, arg, 3);
  expect_args(o, &e, op_info[e.op].nin_min);
  const Expr *last = prog_expr(o->p, arg[e.narg - 1]);
  e.dt = to != DT_none ? to : op_info[e.op].res == OR_pred ? DT_bool : last->dt;
  e.lanes = last->lanes;
  return make(o, &e);
}

static ExprId call(ProgParse *o) {
  ExprId arg[3];
  Expr e = {.arg = arg, .lanes = 1};
  if (lex_accept_word(&o->s, "shuffle")) return shuffle(o);
  if (lex_accept_word(&o->s, "splat")) {
    lex_expect(&o->s, '.');
    e.kind = EX_splat;
    i64 n = count(o);
    if (lex_accept(&o->s, 'x'))
      e.rows = fragment(o, n, count(o), &e.lanes);
    else
      e.lanes = lanes_of(o, n);
  } else if (lex_accept_word(&o->s, "turn")) {
    e.kind = EX_turn;
  } else if (lex_accept_word(&o->s, "mma")) {
    e.kind = EX_mma;
  } else if (lex_accept_word(&o->s, "reduce")) {
    lex_expect(&o->s, '.');
    e.kind = EX_hreduce;
    e.op = op_word(o);
  } else if (lex_accept_word(&o->s, "quad")) {
    e.kind = EX_quad;
    e.dt = DT_i32;
  } else if (lex_accept_word(&o->s, "random")) {
    lex_expect(&o->s, '.');
    e.kind = EX_random;
    e.dt = lex_dtype(&o->s);
  } else {
    return op_call(o);
  }
  e.narg = operands(o, arg, 3);
  expect_args(o, &e, e.kind == EX_random ? 2 : e.kind == EX_mma ? 3 : 1);
  const Expr *last = prog_expr(o->p, arg[e.narg - 1]);
  if (e.kind == EX_turn || e.kind == EX_mma) {
    e.lanes = last->lanes;
    e.rows = e.kind == EX_turn && last->rows ? last->lanes / last->rows : last->rows;
    e.dt = last->dt;
  }
  if (!e.dt) e.dt = prog_expr(o->p, arg[0])->dt;
  return make(o, &e);
}

/* "[" indices [":" lanes] "]" or "[" indices ":" rows "," index ":" columns "]"; those of the
 * buffer if none are written. */
static u32 indices(ProgParse *o, BufId b, ExprId *idx, u32 *nlanes, u32 *rows) {
  u32 n = 0;
  *nlanes = prog_buf(o->p, b)->lanes;
  *rows = prog_buf(o->p, b)->rows;
  lex_expect(&o->s, '[');
  while (!lex_accept(&o->s, ']')) {
    if (n) lex_expect(&o->s, ',');
    if (n == MAX_RANK) BAD(&o->s, "more than %d indices", MAX_RANK);
    idx[n++] = expr(o);
    if (!lex_accept(&o->s, ':')) continue;
    *nlanes = lanes(o);
    if (lex_accept(&o->s, ',')) {
      if (n == MAX_RANK) BAD(&o->s, "more than %d indices", MAX_RANK);
      idx[n++] = expr(o);
      lex_expect(&o->s, ':');
      *rows = fragment(o, *nlanes, lex_integer(&o->s), nlanes);
    }
    lex_expect(&o->s, ']');
    break;
  }
  if (n != prog_buf(o->p, b)->rank)
    BAD(&o->s, "%s has rank %u, found %u indices", show(o->s.c, prog_buf(o->p, b)->name),
        prog_buf(o->p, b)->rank, n);
  return n;
}

static BufId find_buf(ProgParse *o, Str name) {
  u32 *b = map_get(&o->buf, name);
  if (!b) BAD(&o->s, "unknown buffer %s", show(o->s.c, name));
  return *b;
}

/* at: location of the name; skipping blanks may have moved to the next line. */
static VarId find_var(ProgParse *o, Str name, Loc at) {
  u32 *v = map_get(&o->var, name);
  if (v && *v) return *v;
  u32 *sym = map_get(&o->sym, name);
  if (!sym)
    fail(o->s.c, ERR_input, at, "unknown variable %s; it is not declared or not visible here",
         show(o->s.c, name));
  return prog_sym_var(o->p, *sym - 1);
}

static ExprId reference(ProgParse *o) {
  Lexer *s = &o->s;
  bool quoted = lex_peek(s) == '"';
  Str name = lex_name(s);
  Loc at = s->loc;
  if (quoted && ahead(s, 0) == ':' && ahead(s, 1) == 's') {
    lex_expect(s, ':');
    lex_expect_word(s, "str");
    return make(o, &(Expr){.kind = EX_const, .dt = DT_str, .lanes = 1, .imm.i = name});
  }
  if (lex_peek(s) == '[') {
    ExprId idx[MAX_RANK];
    Expr e = {.kind = EX_load, .ref = find_buf(o, name), .arg = idx};
    e.narg = indices(o, e.ref, idx, &e.lanes, &e.rows);
    e.dt = prog_buf(o->p, e.ref)->dt;
    return make(o, &e);
  }
  VarId v = find_var(o, name, at);
  const Var *vp = prog_var(o->p, v);
  return make(
      o, &(Expr){.kind = EX_var, .ref = v, .dt = vp->dt, .lanes = vp->lanes, .rows = vp->rows});
}

static ExprId unit(ProgParse *o) {
  Lexer *s = &o->s;
  deeper(o);
  ExprId e;
  if (lex_accept(s, '(')) {
    e = expr(o);
    lex_expect(s, ')');
  } else if (at_literal(s)) {
    e = literal(o);
  } else {
    size_t n = lex_word(s);
    char next = n ? ahead(s, n) : 0;
    bool dotted = next == '.' && ahead(s, n + 1) != '.'; /* i..n is a range */
    e = next == '(' || dotted ? call(o) : reference(o);
  }
  o->depth--;
  return e;
}

static ExprId binary(ProgParse *o, Op op, ExprId a, ExprId b) {
  ExprId arg[2] = {a, b};
  const Expr *bp = prog_expr(o->p, b);
  Expr e = {.kind = EX_op, .op = op, .narg = 2, .arg = arg, .lanes = bp->lanes};
  e.dt = op_info[op].res == OR_pred ? DT_bool : bp->dt;
  return make(o, &e);
}

static ExprId term(ProgParse *o) {
  ExprId e = unit(o);
  while (lex_accept(&o->s, '*')) e = binary(o, OP_mul, e, unit(o));
  return e;
}

static ExprId sum(ProgParse *o) {
  ExprId e = term(o);
  for (;;) {
    if (lex_accept(&o->s, '+'))
      e = binary(o, OP_add, e, term(o));
    else if (lex_accept(&o->s, '-'))
      e = binary(o, OP_sub, e, term(o));
    else
      return e;
  }
}

/* A comparison operator, or OP_COUNT. A single "=" belongs to the statement. */
static Op compare_sign(Lexer *s) {
  char ch = lex_peek(s);
  bool equal = ahead(s, 1) == '=';
  if (!strchr("<>=!", ch) || !ch || (!equal && (ch == '=' || ch == '!'))) return OP_COUNT;
  s->at += equal ? 2 : 1;
  if (ch == '=') return OP_eq;
  if (ch == '!') return OP_ne;
  if (ch == '<') return equal ? OP_le : OP_lt;
  return equal ? OP_ge : OP_gt;
}

static ExprId expr(ProgParse *o) {
  ExprId e = sum(o);
  Op op = compare_sign(&o->s);
  return op == OP_COUNT ? e : binary(o, op, e, sum(o));
}

/* ---- statements ---- */

static void list(ProgParse *o, Cursor at);

static VarId declare(ProgParse *o, DType dt, Str name) {
  u32 *slot = map_put(&o->var, name);
  if (*slot || map_get(&o->sym, name))
    BAD(&o->s, "%s is the name of another variable or symbol that is visible here",
        show(o->s.c, name));
  VarId v = prog_add_var(o->p, dt, name);
  *slot = v;
  *vec_push(&o->s.c->scratch, &o->scope) = name;
  return v;
}

static void leave(ProgParse *o, u32 visible) {
  while (o->scope.n > visible) *map_put(&o->var, o->scope.at[--o->scope.n]) = 0;
}

/* role [number of the record; 0: several] */
static void role(ProgParse *o, Stmt *st) {
  Lexer *s = &o->s;
  for (u32 r = RO_none + 1; r < RO_COUNT; r++)
    if (lex_accept_word(s, role_name[r])) st->role = (u8)r;
  if (!st->role) BAD(s, "expected the role of a loop, found %s", lex_found(s));
  i64 n = is_digit(lex_peek(s)) ? lex_integer(s) : 1;
  st->record = n > 0 && n <= o->record.n ? o->record.at[n - 1] : 0;
  if (n && !st->record)
    BAD(s, "the kernel of the loop has no record %lld, to which the role belongs", (long long)n);
}

static u32 positive(ProgParse *o, i64 max) {
  i64 n = lex_integer(&o->s);
  if (n < 1 || n > max) BAD(&o->s, "expected 1 to %lld, found %lld", (long long)max, (long long)n);
  return (u32)n;
}

enum { RECORD_TILE = 1 << 14 }; /* limit of the rows and panels of a tile */

static void record(ProgParse *o, StmtId kernel) {
  Lexer *s = &o->s;
  KernelRecord r = {.family = FA_COUNT};
  size_t n = lex_word(s);
  for (u32 f = 0; f < FA_COUNT; f++)
    if (strlen(family_info[f].name) == n && !memcmp(family_info[f].name, s->at, n)) r.family = f;
  if (r.family == FA_COUNT) BAD(s, "expected the family of a kernel, found %s", lex_found(s));
  s->at += n;
  if (lex_accept_word(s, "rows")) {
    r.tile.rows = positive(o, RECORD_TILE);
    lex_expect_word(s, "panels");
    r.tile.panels = positive(o, RECORD_TILE);
  }
  if (lex_accept_word(s, "lanes")) r.tile.lanes = lanes(o);
  if (lex_accept_word(s, "sum")) r.sum = lex_dtype(s);
  bool more = r.sum && lex_accept_word(s, "of");
  for (u32 i = 0; more; i++) {
    if (i == RECORD_IN) BAD(s, "more than %d operands", RECORD_IN);
    r.in[i] = lex_dtype(s);
    if (lex_accept_word(s, "packed")) r.packed[i] = find_buf(o, lex_name(s));
    more = lex_accept(s, ',');
  }
  if (lex_accept_word(s, "out")) r.out = find_buf(o, lex_name(s));
  if (lex_accept_word(s, "ns")) {
    i64 ns = lex_integer(s);
    if (ns < 1) BAD(s, "expected a time above 0, found %lld", (long long)ns);
    r.ns = (u64)ns;
  }
  if (lex_accept_word(s, "size")) r.size = lex_quoted(s);
  if (lex_accept_word(s, "reason")) r.reason = lex_quoted(s);
  *vec_push(&s->c->scratch, &o->record) = record_add(o->p, kernel, &r);
}

static void loop(ProgParse *o, StmtId id) {
  Lexer *s = &o->s;
  Str name = lex_name(s);
  Stmt st = *prog_stmt(o->p, id);
  lex_expect_word(s, "in");
  st.a = sum(o);
  lex_expect(s, '.');
  lex_expect(s, '.');
  st.b = sum(o);
  for (;;) {
    if (lex_accept_word(s, "as")) {
      role(o, &st);
    } else if (lex_accept_word(s, "step")) {
      st.step = lex_integer(s);
    } else if (lex_accept_word(s, "parallel")) {
      st.flags |= LF_parallel;
      i64 chunk = lex_accept_word(s, "chunk") ? lex_integer(s) : 0;
      if (chunk < 0 || chunk > UINT32_MAX)
        BAD(s, "expected a chunk of 0 to 2^32 - 1 iterations, found %lld", (long long)chunk);
      st.chunk = (u32)chunk;
    } else if (lex_accept_word(s, "unroll")) {
      st.flags |= LF_unroll;
    } else if (lex_accept_word(s, "dot16_loop")) {
      st.flags |= LF_dot16_loop;
    } else if (lex_accept_word(s, "nounroll")) {
      st.flags |= LF_nounroll;
    } else if (lex_accept_word(s, "warp")) {
      st.flags |= LF_warp;
    } else if (lex_accept_word(s, "thread")) {
      st.flags |= LF_thread;
    } else if (lex_accept_word(s, "barrier")) {
      st.flags |= LF_barrier;
    } else if (lex_accept_word(s, "after")) {
      st.flags |= LF_after;
    } else {
      break;
    }
  }
  u32 visible = o->scope.n;
  st.var = declare(o, DT_i64, name);
  *prog_stmt(o->p, id) = st;
  list(o, prog_inside(id));
  leave(o, visible);
}

static void let(ProgParse *o, StmtId id) {
  Str name = lex_name(&o->s);
  u32 nlanes, rows;
  lex_expect(&o->s, ':');
  DType dt = type(o, &nlanes, &rows);
  lex_expect(&o->s, '=');
  ExprId value = expr(o);
  VarId v = declare(o, dt, name); /* after the value, in which it is not visible */
  prog_var(o->p, v)->lanes = nlanes;
  prog_var(o->p, v)->rows = rows;
  prog_stmt(o->p, id)->var = v;
  prog_stmt(o->p, id)->a = value;
}

static void branch(ProgParse *o, StmtId id, bool is_if) {
  ExprId cond = expr(o);
  prog_stmt(o->p, id)->a = cond;
  list(o, prog_inside(id));
  if (is_if && lex_accept_word(&o->s, "else")) list(o, prog_else(id));
}

static void set(ProgParse *o, StmtId id) {
  Str name = lex_name(&o->s);
  VarId v = find_var(o, name, o->s.loc);
  lex_expect(&o->s, '=');
  ExprId value = expr(o);
  prog_stmt(o->p, id)->var = v;
  prog_stmt(o->p, id)->a = value;
}

static void store(ProgParse *o, StmtId id) {
  BufId b = find_buf(o, lex_name(&o->s));
  ExprId idx[MAX_RANK];
  u32 nlanes, rows, n = indices(o, b, idx, &nlanes, &rows);
  lex_expect(&o->s, '=');
  ExprId value = expr(o);
  if (prog_expr(o->p, value)->rows != rows)
    BAD(&o->s, "a fragment is stored to a box of its size, found another one");
  if (prog_expr(o->p, value)->lanes != nlanes)
    BAD(&o->s, "the store has %u lanes, but its value has %u", nlanes,
        prog_expr(o->p, value)->lanes);
  Stmt *st = prog_stmt(o->p, id);
  st->buf = b;
  st->nidx = n;
  st->idx = arena_copy(&o->s.c->work, idx, n * sizeof *idx);
  st->a = value;
}

static StmtId begin(ProgParse *o, Cursor *at, StmtKind kind) {
  StmtId id = prog_push(o->p, at, kind);
  prog_stmt(o->p, id)->loc = o->s.loc;
  return id;
}

static void assign(ProgParse *o, Cursor *at, u8 flags, i64 prefetch) {
  bool is_let = lex_accept_word(&o->s, "let"), is_set = !is_let && lex_accept_word(&o->s, "set");
  StmtId id = begin(o, at, is_let ? ST_let : is_set ? ST_set : ST_store);
  prog_stmt(o->p, id)->flags = flags;
  if (flags & SF_prefetch) prog_stmt(o->p, id)->step = prefetch;
  if (is_let)
    let(o, id);
  else if (is_set)
    set(o, id);
  else
    store(o, id);
}

/* Accepts the keyword of a prefetch statement, "prefetch" name. "prefetch" bytes is the flag of a
 * store or let. */
static bool accept_prefetch_stmt(Lexer *s) {
  Lexer start = *s;
  if (!lex_accept_word(s, "prefetch")) return false;
  char next = lex_peek(s);
  if (next < '0' || next > '9') return true;
  *s = start;
  return false;
}

static void stmt(ProgParse *o, Cursor *at) {
  Lexer *s = &o->s;
  lex_skip(s); /* to the line of the statement */
  if (lex_accept_word(s, "for")) {
    loop(o, begin(o, at, ST_for));
  } else if (lex_accept_word(s, "while")) {
    branch(o, begin(o, at, ST_while), false);
  } else if (lex_accept_word(s, "if")) {
    branch(o, begin(o, at, ST_if), true);
  } else if (lex_accept_word(s, "require")) {
    StmtId id = begin(o, at, ST_require);
    ExprId cond = expr(o);
    lex_expect_word(s, "else");
    Str message = lex_quoted(s);
    prog_stmt(o->p, id)->a = cond;
    prog_stmt(o->p, id)->label = message;
  } else if (lex_accept_word(s, "fence")) {
    StmtId id = begin(o, at, ST_fence);
    prog_stmt(o->p, id)->buf = find_buf(o, lex_name(s));
    if (lex_accept_word(s, "spills")) prog_stmt(o->p, id)->flags = FF_spills;
  } else if (accept_prefetch_stmt(s)) {
    StmtId id = begin(o, at, ST_prefetch);
    BufId b = find_buf(o, lex_name(s));
    lex_expect_word(s, "at");
    ExprId from = expr(o);
    prog_stmt(o->p, id)->buf = b;
    prog_stmt(o->p, id)->a = from;
  } else if (lex_accept_word(s, "commit")) {
    begin(o, at, ST_commit);
  } else if (lex_accept_word(s, "await")) {
    StmtId id = begin(o, at, ST_await);
    i64 n = lex_integer(s);
    if (n < 0 || n > ASYNC_GROUPS)
      BAD(s, "await: expected 0 to %d groups, found %lld", ASYNC_GROUPS, (long long)n);
    prog_stmt(o->p, id)->step = n;
  } else if (lex_accept_word(s, "kernel")) {
    StmtId id = begin(o, at, ST_kernel);
    Str label = lex_quoted(s);
    u8 flags = lex_accept_word(s, "noinline") ? KF_noinline : 0;
    if (lex_accept_word(s, "tree_walk")) flags |= KF_tree_walk;
    prog_stmt(o->p, id)->label = label;
    prog_stmt(o->p, id)->flags = flags;
    while (lex_accept_word(s, "as")) record(o, id);
    list(o, prog_inside(id));
    o->record.n = 0;
  } else {
    u8 flags = lex_accept_word(s, "pin") ? SF_pin : 0;
    if (lex_accept_word(s, "async")) flags |= SF_async;
    i64 prefetch = 0;
    if (lex_accept_word(s, "prefetch")) {
      flags |= SF_prefetch;
      prefetch = lex_integer(s);
      if (prefetch < 1 || prefetch > PREFETCH_MAX)
        BAD(s, "prefetch distance: expected 1 to %d bytes, found %lld", PREFETCH_MAX,
            (long long)prefetch);
    }
    assign(o, at, flags, prefetch);
  }
}

static void list(ProgParse *o, Cursor at) {
  deeper(o);
  u32 visible = o->scope.n;
  lex_expect(&o->s, '{');
  while (!lex_accept(&o->s, '}')) stmt(o, &at);
  leave(o, visible);
  o->depth--;
}

/* ---- declarations ---- */

static BufSpace space(ProgParse *o) {
  for (BufSpace k = 0; k < BS_COUNT; k++)
    if (lex_accept_word(&o->s, buf_space_name[k])) return k;
  BAD(&o->s, "expected in, out, const, temp, local or reg, found %s", lex_found(&o->s));
}

static void buffer(ProgParse *o) {
  Lexer *s = &o->s;
  Str name = lex_name(s);
  lex_expect(s, ':');
  BufSpace sp = space(o);
  u32 nlanes, rows;
  DType dt = type(o, &nlanes, &rows);
  Dim dim[MAX_RANK];
  u32 rank = lex_dims(s, dim);
  BufId alias = lex_accept_word(s, "alias") ? find_buf(o, lex_name(s)) : 0;
  bool placed = lex_accept_word(s, "at");
  i64 offset = placed ? lex_integer(s) : 0;
  u32 *slot = map_put(&o->buf, name);
  if (*slot) BAD(s, "buffer %s is declared twice", show(s->c, name));
  if (!name) BAD(s, "a buffer needs a name");
  BufId b = prog_add_buf(o->p, sp, dt, dim, rank, name);
  *slot = b;
  prog_buf(o->p, b)->lanes = nlanes;
  prog_buf(o->p, b)->rows = rows;
  prog_buf(o->p, b)->alias = alias;
  if (placed != (o->p->planned && prog_is_planned(prog_buf(o->p, b))) || offset < 0)
    BAD(s,
        "%s: in a planned program, temp, state and local buffers need an offset, other buffers "
        "must not have one",
        show(s->c, name));
  prog_buf(o->p, b)->offset = (u64)offset;
  if (sp != BS_const && (sp != BS_state || !lex_accept(s, '='))) return;
  if (sp == BS_const) lex_expect(s, '=');
  Tensor *data = lex_tensor(s, dt, dim, rank);
  prog_buf(o->p, b)->data = data;
}

Prog *prog_parse(Ctx *c, const char *text, size_t n, Str file, const u8 *weights, size_t nweights) {
  ProgParse o = {.s = lex_new(c, text, n, file, weights, nweights)};
  Lexer *s = &o.s;
  o.p = prog_new(c, dims_new(c));
  s->dims = o.p->dims;
  o.buf = map_new(&c->scratch);
  o.var = map_new(&c->scratch);
  o.sym = map_new(&c->scratch);
  lex_header(s, "prog");
  i32 line = s->loc.line;
  lex_skip(s);
  if (s->loc.line == line && s->at < s->end) o.p->name = lex_name(s);
  lex_symbols(s);
  for (Sym k = 0; k < dim_nsyms(s->dims); k++)
    *map_put(&o.sym, dim_syminfo(s->dims, k)->name) = k + 1;
  if (lex_accept_word(s, "math")) {
    o.p->math = lex_accept_word(s, "fused") ? MM_u : lex_accept_word(s, "single") ? MM_s : MM_q;
    if (o.p->math == MM_q) lex_expect_word(s, "fast");
  }
  if (lex_accept_word(s, "threads")) {
    i64 n = lex_integer(s);
    if (n < 1 || (n > MAX_THREADS && n != GPU_THREADS))
      BAD(s, "%lld threads, expected 1 to %d", (long long)n, MAX_THREADS);
    o.p->threads = (u32)n;
  }
  if (lex_accept_word(s, "arena")) {
    i64 bytes = lex_integer(s);
    if (bytes < 0) BAD(s, "expected an arena of 0 or more bytes, found %lld", (long long)bytes);
    o.p->planned = true;
    o.p->arena_bytes = (u64)bytes;
  }
  while (lex_accept_word(s, "buf")) buffer(&o);
  Cursor at = prog_end();
  for (lex_skip(s); s->at < s->end; lex_skip(s)) stmt(&o, &at);
  prog_check_input(o.p);
  return o.p;
}
