/* prog_text.c: prints a program. prog_parse.c reads it back; the two are exact inverses.
 *
 *   prog    = ["ingot" version] "prog" [name] {symbol} [math] ["threads" n]
 *             ["arena" bytes] {buffer} {stmt}
 *   math    = "math" ("fast" | "fused" | "single")
 *   buffer  = "buf" name ":" space type "[" [dim {"," dim}] "]"
 *             ["alias" name] ["at" offset] ["=" constant]
 *   space   = "in" | "out" | "const" | "temp" | "state" | "local" | "reg"
 *   type    = dtype ["x" lanes | "x" rows "x" columns]
 *   stmt    = "for" name "in" expr ".." expr {flag} list
 *           | "while" expr list
 *           | "if" expr list ["else" list]
 *           | {mark} "let" name ":" type "=" expr
 *           | {mark} "set" name "=" expr
 *           | {mark} name "[" [index] "]" "=" expr
 *           | "kernel" quoted ["noinline"] ["tree_walk"] {record} list
 *           | "require" expr "else" quoted
 *           | "fence" name ["spills"]
 *           | "prefetch" name "at" expr
 *   mark    = "pin" | "prefetch" bytes
 *   list    = "{" {stmt} "}"
 *   flag    = "as" role [integer] | "step" integer | "parallel" ["chunk" integer] | "unroll"
 *           | "nounroll" | "dot16_loop"
 *   role    = "batch" | "panel" | "row" | "lane" | "reduce"
 *   record  = "as" family ["rows" integer "panels" integer] ["lanes" integer]
 *             ["sum" dtype ["of" operand {"," operand}]] ["out" name] ["ns" integer]
 *             ["size" quoted] ["reason" quoted]
 *   operand = dtype ["packed" name]
 *   index   = expr {"," expr} [":" lanes] | expr {"," expr} ":" rows "," expr ":" columns
 *   expr    = sum [("<" | "<=" | ">" | ">=" | "==" | "!=") sum]
 *   sum     = term {("+" | "-") term}
 *   term    = unit {"*" unit}
 *   unit    = literal | name | name "[" [index] "]" | call | "(" expr ")"
 *   call    = op "(" expr {"," expr} ")"
 *           | "cast." dtype [".sat" | ".small"] "(" expr ")"
 *           | "dot_i8x4.low" "(" expr "," expr "," expr ")"
 *           | ("bitcast." dtype | "random." dtype) "(" expr {"," expr} ")"
 *           | "splat." lanes ["x" columns] "(" expr ")" | "reduce." op "(" expr ")"
 *           | "turn" "(" expr ")" | "mma" "(" expr "," expr "," expr ")"
 *           | "shuffle" {"." lane} "(" expr {"," expr} ")"
 *   literal = (integer | float | "inf" | "nan" | "bits(" hex ")" | "true" | "false") [":" dtype]
 *           | quoted ":str"
 *
 * Symbols and constants are those of a graph (graph_text.c). docs/ir.md says what it all means.
 * Names are identifiers or quoted; those that are words of this grammar are quoted. "#" starts a
 * comment. */
#include <string.h>
#include "ir/prog/prog.h"
#include "ir/lexer.h"

const char *const buf_space_name[BS_COUNT] = {"in",    "out",   "const", "temp",
                                              "state", "local", "reg"};

typedef struct ProgPrint {
  Prog *p;
  StrBuf *t, *weights;
} ProgPrint;

static void put_name(ProgPrint *o, Str s) {
  static const char *const word[] = {"for", "while", "if",      "else",  "let",   "set",
                                     "buf", "sym",   "kernel",  "true",  "false", "inf",
                                     "nan", "bits",  "require", "arena", "math",  "threads",
                                     "pin", "fence", "prefetch"};
  for (u32 i = 0; i < sizeof word / sizeof *word; i++) {
    if (!str_is(o->p->c, s, word[i])) continue;
    sb_quote(o->t, word[i], strlen(word[i]));
    return;
  }
  lit_name(o->t, o->p->c, s);
}

static void put_type(ProgPrint *o, DType dt, u32 lanes, u32 rows) {
  sb_puts(o->t, dtype_info[dt].name);
  if (rows) sb_fmt(o->t, "x%u", rows);
  if (lanes > 1) sb_fmt(o->t, "x%u", rows ? lanes / rows : lanes);
}

/* ---- expressions ---- */

enum { AT_compare = 1, AT_sum, AT_term, AT_unit }; /* operator precedence of a place */

static int infix(Op op, const char **sign) {
  switch (op) {
  case OP_lt: *sign = "<"; return AT_compare;
  case OP_le: *sign = "<="; return AT_compare;
  case OP_gt: *sign = ">"; return AT_compare;
  case OP_ge: *sign = ">="; return AT_compare;
  case OP_eq: *sign = "=="; return AT_compare;
  case OP_ne: *sign = "!="; return AT_compare;
  case OP_add: *sign = "+"; return AT_sum;
  case OP_sub: *sign = "-"; return AT_sum;
  case OP_mul: *sign = "*"; return AT_term;
  default: return 0;
  }
}

/* i64, f32 and bool literals need no suffix; other types follow after a colon. */
static void put_literal(ProgPrint *o, const Expr *e) {
  u8 raw[16] = {0};
  scalar_store(e->dt, raw, e->imm);
  size_t from = o->t->n;
  lit_element(o->t, o->p->c, e->dt, raw);
  bool whole = true;
  for (size_t i = from; i < o->t->n; i++)
    if (!strchr("-0123456789", o->t->at[i])) whole = false;
  if (e->dt == DT_f32 && whole) sb_puts(o->t, ".0");
  if (e->dt != DT_f32 && e->dt != DT_i64 && e->dt != DT_bool)
    sb_fmt(o->t, ":%s", dtype_info[e->dt].name);
}

static void put_expr(ProgPrint *o, ExprId id, int place);

static void put_list(ProgPrint *o, const ExprId *e, u32 n) {
  for (u32 i = 0; i < n; i++) {
    if (i) sb_puts(o->t, ", ");
    put_expr(o, e[i], AT_compare);
  }
}

static void put_element(ProgPrint *o, BufId b, const ExprId *idx, u32 n, u32 lanes, u32 rows) {
  put_name(o, prog_buf(o->p, b)->name);
  sb_puts(o->t, "[");
  if (rows && !prog_buf(o->p, b)->rows) {
    put_list(o, idx, n - 1);
    sb_fmt(o->t, ":%u, ", rows);
    put_expr(o, idx[n - 1], AT_compare);
    sb_fmt(o->t, ":%u", lanes / rows);
  } else {
    put_list(o, idx, n);
    if (lanes != prog_buf(o->p, b)->lanes) sb_fmt(o->t, ":%u", lanes);
  }
  sb_puts(o->t, "]");
}

static void put_call(ProgPrint *o, const Expr *e) {
  StrBuf *t = o->t;
  switch (e->kind) {
  case EX_op:
    sb_puts(t, op_info[e->op].name);
    if (op_info[e->op].res == OR_to) sb_fmt(t, ".%s", dtype_info[e->dt].name);
    if (e->sat) sb_puts(t, e->small ? ".small" : ".sat");
    if (e->low) sb_puts(t, ".low");
    break;
  case EX_splat:
    sb_fmt(t, "splat.%u", e->rows ? e->rows : e->lanes);
    if (e->rows) sb_fmt(t, "x%u", e->lanes / e->rows);
    break;
  case EX_turn: sb_puts(t, "turn"); break;
  case EX_mma: sb_puts(t, "mma"); break;
  case EX_hreduce: sb_fmt(t, "reduce.%s", op_info[e->op].name); break;
  case EX_quad: sb_puts(t, "quad"); break;
  case EX_random: sb_fmt(t, "random.%s", dtype_info[e->dt].name); break;
  default:
    sb_puts(t, "shuffle");
    for (u32 i = 0; i < e->lanes; i++) sb_fmt(t, ".%u", e->pick[i]);
  }
  sb_puts(t, "(");
  put_list(o, e->arg, e->narg);
  sb_puts(t, ")");
}

static void put_expr(ProgPrint *o, ExprId id, int place) {
  const Expr *e = prog_expr(o->p, id);
  const char *sign = NULL;
  int own = e->kind == EX_op ? infix(e->op, &sign) : 0;
  if (own) {
    if (own < place) sb_puts(o->t, "(");
    put_expr(o, e->arg[0], own == AT_compare ? AT_sum : own);
    sb_fmt(o->t, " %s ", sign);
    put_expr(o, e->arg[1], own + 1);
    if (own < place) sb_puts(o->t, ")");
    return;
  }
  switch (e->kind) {
  case EX_const: put_literal(o, e); break;
  case EX_var: put_name(o, prog_var(o->p, e->ref)->name); break;
  case EX_load: put_element(o, e->ref, e->arg, e->narg, e->lanes, e->rows); break;
  default: put_call(o, e);
  }
}

/* ---- statements ---- */

static void put_indent(ProgPrint *o, u32 depth) {
  for (u32 i = 0; i < depth; i++) sb_puts(o->t, "  ");
}

static void put_stmts(ProgPrint *o, StmtId first, u32 depth);

static void put_body(ProgPrint *o, StmtId first, u32 depth) {
  sb_puts(o->t, " {\n");
  put_stmts(o, first, depth + 1);
  put_indent(o, depth);
  sb_puts(o->t, "}");
}

/* "as row 2": of the second record of the kernel; 0: of several */
static void put_role(ProgPrint *o, const Stmt *s) {
  if (!s->role) return;
  sb_fmt(o->t, " as %s", role_name[s->role]);
  u32 n = s->record ? prog_record(o->p, s->record)->number : 0;
  if (n != 1) sb_fmt(o->t, " %u", n);
}

static void put_record(ProgPrint *o, const KernelRecord *r, u32 depth) {
  StrBuf *t = o->t;
  sb_puts(t, "\n");
  put_indent(o, depth + 2);
  sb_fmt(t, "as %s", family_info[r->family].name);
  if (r->tile.rows) sb_fmt(t, " rows %u panels %u", r->tile.rows, r->tile.panels);
  if (r->tile.lanes) sb_fmt(t, " lanes %u", r->tile.lanes);
  if (r->sum) sb_fmt(t, " sum %s", dtype_info[r->sum].name);
  for (u32 i = 0; i < RECORD_IN && r->in[i]; i++) {
    sb_fmt(t, "%s %s", i ? "," : " of", dtype_info[r->in[i]].name);
    if (!r->packed[i]) continue;
    sb_puts(t, " packed ");
    put_name(o, prog_buf(o->p, r->packed[i])->name);
  }
  if (r->out) {
    sb_puts(t, " out ");
    put_name(o, prog_buf(o->p, r->out)->name);
  }
  if (r->ns) sb_fmt(t, " ns %llu", (unsigned long long)r->ns);
  if (r->size) {
    sb_puts(t, " size ");
    sb_quote(t, str_text(o->p->c, r->size), str_len(o->p->c, r->size));
  }
  if (r->reason) {
    sb_puts(t, " reason ");
    sb_quote(t, str_text(o->p->c, r->reason), str_len(o->p->c, r->reason));
  }
}

static void put_for(ProgPrint *o, const Stmt *s) {
  StrBuf *t = o->t;
  sb_puts(t, "for ");
  put_name(o, prog_var(o->p, s->var)->name);
  sb_puts(t, " in ");
  put_expr(o, s->a, AT_sum);
  sb_puts(t, "..");
  put_expr(o, s->b, AT_sum);
  put_role(o, s);
  if (s->step != 1) sb_fmt(t, " step %lld", (long long)s->step);
  if (s->flags & LF_parallel) sb_puts(t, " parallel");
  if (s->flags & LF_parallel && s->chunk) sb_fmt(t, " chunk %u", s->chunk);
  if (s->flags & LF_unroll) sb_puts(t, " unroll");
  if (s->flags & LF_dot16_loop) sb_puts(t, " dot16_loop");
  if (s->flags & LF_nounroll) sb_puts(t, " nounroll");
  if (s->flags & LF_warp) sb_puts(t, " warp");
  if (s->flags & LF_thread) sb_puts(t, " thread");
  if (s->flags & LF_barrier) sb_puts(t, " barrier");
  if (s->flags & LF_after) sb_puts(t, " after");
}

static void put_stmt(ProgPrint *o, const Stmt *s, u32 depth) {
  StrBuf *t = o->t;
  put_indent(o, depth);
  bool value = s->kind == ST_let || s->kind == ST_set || s->kind == ST_store;
  if (value && s->flags & SF_pin) sb_puts(t, "pin ");
  if (value && s->flags & SF_async) sb_puts(t, "async ");
  if (value && s->flags & SF_prefetch) sb_fmt(t, "prefetch %lld ", (long long)s->step);
  switch (s->kind) {
  case ST_for: put_for(o, s); break;
  case ST_while:
  case ST_if:
    sb_puts(t, s->kind == ST_if ? "if " : "while ");
    put_expr(o, s->a, AT_compare);
    break;
  case ST_let:
    sb_puts(t, "let ");
    put_name(o, prog_var(o->p, s->var)->name);
    sb_puts(t, ": ");
    put_type(o, prog_var(o->p, s->var)->dt, prog_var(o->p, s->var)->lanes,
             prog_var(o->p, s->var)->rows);
    break;
  case ST_set:
    sb_puts(t, "set ");
    put_name(o, prog_var(o->p, s->var)->name);
    break;
  case ST_store:
    put_element(o, s->buf, s->idx, s->nidx, prog_expr(o->p, s->a)->lanes,
                prog_expr(o->p, s->a)->rows);
    break;
  case ST_kernel:
    sb_puts(t, "kernel ");
    sb_quote(t, str_text(o->p->c, s->label), str_len(o->p->c, s->label));
    if (s->flags & KF_noinline) sb_puts(t, " noinline");
    if (s->flags & KF_tree_walk) sb_puts(t, " tree_walk");
    for (RecordId r = s->record; r; r = prog_record(o->p, r)->next)
      put_record(o, prog_record(o->p, r), depth);
    break;
  case ST_require:
    sb_puts(t, "require ");
    put_expr(o, s->a, AT_compare);
    sb_puts(t, " else ");
    sb_quote(t, str_text(o->p->c, s->label), str_len(o->p->c, s->label));
    break;
  case ST_fence:
    sb_puts(t, "fence ");
    put_name(o, prog_buf(o->p, s->buf)->name);
    if (s->flags & FF_spills) sb_puts(t, " spills");
    break;
  case ST_prefetch:
    sb_puts(t, "prefetch ");
    put_name(o, prog_buf(o->p, s->buf)->name);
    sb_puts(t, " at ");
    put_expr(o, s->a, AT_compare);
    break;
  case ST_commit: sb_puts(t, "commit"); break;
  case ST_await: sb_fmt(t, "await %lld", (long long)s->step); break;
  case ST_COUNT: break;
  }
  if (value) {
    sb_puts(t, " = ");
    put_expr(o, s->a, AT_compare);
  } else if (s->kind != ST_require && s->kind != ST_fence && s->kind != ST_prefetch &&
             s->kind != ST_commit && s->kind != ST_await) {
    put_body(o, s->body, depth);
  }
  if (s->other) {
    sb_puts(t, " else");
    put_body(o, s->other, depth);
  }
  sb_puts(t, "\n");
}

static void put_stmts(ProgPrint *o, StmtId first, u32 depth) {
  for (StmtId s = first; s; s = prog_stmt(o->p, s)->next) put_stmt(o, prog_stmt(o->p, s), depth);
}

/* ---- declarations ---- */

static void put_buf(ProgPrint *o, const Buf *b) {
  sb_puts(o->t, "buf ");
  put_name(o, b->name);
  sb_fmt(o->t, ": %s ", buf_space_name[b->space]);
  put_type(o, b->dt, b->lanes, b->rows);
  sb_puts(o->t, "[");
  for (u32 i = 0; i < b->rank; i++) {
    if (i) sb_puts(o->t, ",");
    dim_print(o->p->dims, b->dim[i], o->t);
  }
  sb_puts(o->t, "]");
  if (b->alias) {
    sb_puts(o->t, " alias ");
    put_name(o, prog_buf(o->p, b->alias)->name);
  }
  if (o->p->planned && prog_is_planned(b)) sb_fmt(o->t, " at %llu", (unsigned long long)b->offset);
  if (b->data) {
    sb_puts(o->t, " = ");
    lit_tensor(o->t, o->weights, o->p->c, b->data, PROG_INLINE);
  }
  sb_puts(o->t, "\n");
}

void prog_print(Prog *p, StrBuf *out, StrBuf *weights) {
  ProgPrint o = {p, out, weights};
  bool *used = NEWS(&p->c->scratch, bool, dim_nsyms(p->dims) + 1);
  prog_names(p);
  for (BufId b = 1; b < p->buf.n; b++)
    for (u32 i = 0; i < prog_buf(p, b)->rank; i++)
      dims_mark_used(p->dims, prog_buf(p, b)->dim[i], used);
  for (u32 s = 0; s < p->nsym_var; s++)
    if (p->sym_var[s]) used[s] = true;
  lit_header(out, "prog");
  if (p->name) {
    sb_puts(out, " ");
    put_name(&o, p->name);
  }
  sb_puts(out, "\n");
  lit_symbols(out, p->c, p->dims, used);
  static const char *const math[MM_COUNT] = {[MM_q] = "fast", [MM_u] = "fused", [MM_s] = "single"};
  if (p->math != MM_f) sb_fmt(out, "math %s\n", math[p->math]);
  if (p->threads > 1) sb_fmt(out, "threads %u\n", p->threads);
  if (p->planned) sb_fmt(out, "arena %llu\n", (unsigned long long)p->arena_bytes);
  for (BufId b = 1; b < p->buf.n; b++) put_buf(&o, prog_buf(p, b));
  put_stmts(&o, p->body, 0);
}
