/* lang_lower.c: from the checked tree to register code; see lang_code.h.
 *
 * In: a function or the statements of a file. Out: a RegCode. Method: one visit in the order of
 * evaluation. The visit keeps, by variable, what is known of its value at this point: nothing, that
 * it is set, or its kind. Where paths meet, so does what is known; the head of a loop knows only
 * what the loop does not change. Calls may change the variables of a file.
 */
#include "lang/run/lang_lower.h"

#include <string.h>

const char *const code_operands[CODE_OP_COUNT] = {
#define INS(name, operands, careful) operands,
#include "lang/run/lang_code.def"
#undef INS
};

static InReg operand(Lowering *l, Ast *n);

/* ---- instructions ---- */

u32 code_emit(Lowering *l, CodeOp op, u32 a, u32 b, u32 c, const Ast *at) {
  *vec_push(l->a, &l->ins) = (Ins){op, a, b, c};
  *vec_push(l->a, &l->at) = at;
  return l->ins.n - 1;
}

const CodeOp code_base[CODE_OP_COUNT] = {
#define INS(name, operands, careful)        [CO_##name] = CO_##name,
#define LIKE(name, base, operands, careful) [CO_##name] = CO_##base,
#include "lang/run/lang_code.def"
#undef INS
};

/* Chooses forms of instructions, from the last to the first. */
static void choose_forms(Lowering *l) {
  static const struct {
    CodeOp x, y, both;
  } pair[] = {
#define INS(name, operands, careful)
#define LIKE(name, base, operands, careful)
#define PAIR(x, y, operands, careful) {CO_##x, CO_##y, CO_##x##__##y},
#include "lang/run/lang_code.def"
#undef INS
  };
  for (u32 i = l->ins.n; i-- > 0;) {
    Ins *x = &l->ins.at[i];
    i32 by = (i32)x->c;
    bool power = by > 0 && !(by & (by - 1));
    if (x->op == CO_div_ik && by > 0) x->op = power ? CO_div_ip : CO_div_ic;
    if (x->op == CO_mod_ik && by > 0) x->op = power ? CO_mod_ip : CO_mod_ic;
    for (u32 k = 0; i + 1 < l->ins.n && k < sizeof pair / sizeof *pair; k++) {
      u32 y = x[1].op;
      if (pair[k].x != x->op || (pair[k].y != y && pair[k].y != code_general(y))) continue;
      x->op = pair[k].both;
      break;
    }
  }
}

static u32 *target_of(Ins *i) {
  const char *s = code_operands[i->op];
  return s[0] == 'j' ? &i->a : s[1] == 'j' ? &i->b : s[2] == 'j' ? &i->c : NULL;
}

void code_patch(Lowering *l, u32 at, u32 to) {
  *target_of(&l->ins.at[at]) = to;
}

static void patch_all(Lowering *l, const Positions *all) {
  for (u32 i = 0; i < all->n; i++) code_patch(l, all->at[i], l->ins.n);
}

u32 code_temp(Lowering *l) {
  if (++l->top > l->max) l->max = l->top;
  return TEMP + l->top - 1;
}

static bool is_temp(u32 reg) {
  return reg >= TEMP;
}

/* A jump that is taken if the condition does not hold. */
static u32 branch(Lowering *l, CodeOp op, u32 a, u32 b, u32 c, const Ast *at) {
  u32 i = code_emit(l, op, a, b, c, at);
  *vec_push(l->a, &l->conditional) = i;
  return i;
}

/* The paths of the conditional jumps since `from` meet here. */
static void paths_meet(Lowering *l, u32 from) {
  for (u32 i = from; i < l->conditional.n; i++)
    *vec_push(l->a, &l->join) = (Join){l->conditional.at[i], l->ins.n};
  l->conditional.n = from;
}

void code_drop_temps(Lowering *l, u32 from) {
  if (l->top > from) code_emit(l, CO_drop, TEMP + from, l->top - from, 0, NULL);
}

static void clear_scope(Lowering *l, const Ast *scope) {
  if (scope->nslot) code_emit(l, CO_drop, known_slot(l, scope->slot), scope->nslot, 0, NULL);
  known_forget_scope(l, scope);
}

static u32 constant(Lowering *l, LangValue v) {
  *vec_push(l->a, &l->k) = v;
  return l->k.n - 1;
}

static bool is_small(const Ast *n) {
  return n->kind == AST_int && !n->to && n->i == (i32)n->i;
}

/* ---- names ---- */

static bool is_self(const Ast *n) {
  return n->nplace && n->place[0].kind == VR_self;
}

/* Reads the variable in place: it is set, and of the promised kind. */
InReg code_variable(Lowering *l, const Ast *n, u32 slot) {
  LangKind k = known_kind(l, slot), want = ast_kind(n);
  if (n->to) want = KD_any;
  if (kind_is_number(want) && k != want && !kind_is_number(k)) {
    code_emit(l, CO_check, slot, want, 0, n);
    known_set(l, slot, k = want);
  } else if (k == KD_none) {
    code_emit(l, CO_held, slot, 0, 0, n);
    known_set(l, slot, k = KD_any);
  }
  return (InReg){slot, k};
}

/* The slot of a name that can be read in place, or -1. */
i64 code_plain(const Lowering *l, const Ast *n) {
  if ((n->kind != AST_name && n->kind != AST_member) || !n->nplace) return -1;
  i64 slot = known_variable(l, &n->place[0]);
  return slot >= 0 && (n->nplace == 1 || known_kind(l, (u32)slot) != KD_none) ? slot : -1;
}

static bool is_global(const Ast *n) {
  return (n->kind == AST_name || n->kind == AST_member) && n->nplace == 1 &&
         n->place[0].kind == VR_global;
}

static LangKind name(Lowering *l, const Ast *n, u32 dst) {
  i64 slot = code_plain(l, n);
  LangKind want = n->to ? KD_any : ast_kind(n);
  if (slot >= 0) {
    InReg x = code_variable(l, n, (u32)slot);
    code_emit(l, kind_is_number(x.kind) ? CO_move_n : CO_move, dst, x.reg, 0, n);
    return x.kind;
  }
  if (is_self(n))
    code_emit(l, CO_self, dst, 0, 0, n);
  else if (is_global(n))
    code_emit(l, kind_is_number(want) ? CO_global_n : CO_global, dst,
              n->place[0].file | (u32)want << 8, n->place[0].slot, n);
  else
    code_emit(l, CO_name, dst, 0, 0, n);
  return is_global(n) ? want : KD_any;
}

/* ---- operators ---- */

static CodeOp op_of(Tok op, CodeOp add) { /* add: add in the wanted form */
  static const u8 row[TOK_COUNT] = {
      [TOK_add] = 0, [TOK_sub] = 1, [TOK_mul] = 2, [TOK_div] = 3, [TOK_lt] = 4,
      [TOK_le] = 5,  [TOK_gt] = 6,  [TOK_ge] = 7,  [TOK_eq] = 8,  [TOK_ne] = 9};
  return (CodeOp)(add + (u32)row[op] * (CO_sub_i - CO_add_i));
}

/* An operand that is read after `later` was evaluated. */
static InReg stable(Lowering *l, Ast *n, const Ast *later) {
  InReg x = operand(l, n);
  if (is_temp(x.reg)) return x;
  if (!ast_changes(later) && !(known_shared(l, x.reg) && ast_calls(later))) return x;
  u32 t = code_temp(l);
  code_emit(l, CO_move, t, x.reg, 0, n);
  return (InReg){t, x.kind};
}

static InReg promote(Lowering *l, const Ast *n, InReg x) {
  if (x.kind == KD_float) return x;
  u32 t = is_temp(x.reg) ? x.reg : code_temp(l);
  code_emit(l, CO_promote, t, x.reg, 0, n);
  return (InReg){t, KD_float};
}

typedef struct Operands {
  InReg x, y;
  LangKind kind; /* of both; KD_any: use the general operator */
  char form;     /* r: registers. k, l: y, x is a constant */
  u32 k;
} Operands;

static bool literal_float(const Ast *n, LangKind other, double *out) {
  if (n->kind == AST_float && !n->to) *out = n->f;
  if (n->kind == AST_int && !n->to && other == KD_float) *out = (double)n->i;
  return (n->kind == AST_float || (n->kind == AST_int && other == KD_float)) && !n->to;
}

static Operands operands(Lowering *l, const Ast *n) {
  Operands p = {.form = 'r', .kind = KD_any};
  LangKind px = ast_kind(n->a), py = ast_kind(n->b);
  bool typed = (px == KD_int || px == KD_float) && (py == KD_int || py == KD_float) &&
               n->op != TOK_at && (n->op != TOK_mod || (px == KD_int && py == KD_int));
  double f;
  if (typed && is_small(n->a) && !is_small(n->b) && py == KD_int && !tok_compares(n->op)) {
    p = (Operands){.y = operand(l, n->b), .kind = KD_int, .form = 'l', .k = (u32)(i32)n->a->i};
    return p;
  }
  if (typed && literal_float(n->a, py, &f) && n->b->kind != AST_float && !tok_compares(n->op)) {
    p.y = promote(l, n->b, operand(l, n->b));
    p.k = constant(l, value_float(f));
    p.kind = KD_float;
    p.form = 'l';
    return p;
  }
  p.x = stable(l, n->a, n->b);
  if (typed && px == KD_int && is_small(n->b)) {
    p.k = (u32)(i32)n->b->i;
    p.kind = KD_int;
    p.form = 'k';
  } else if (typed && literal_float(n->b, px, &f)) {
    p.x = promote(l, n->a, p.x);
    p.k = constant(l, value_float(f));
    p.kind = KD_float;
    p.form = 'k';
  } else {
    p.y = operand(l, n->b);
    bool numbers = (p.x.kind == KD_int || p.x.kind == KD_float) &&
                   (p.y.kind == KD_int || p.y.kind == KD_float);
    if (!typed || !numbers) return p;
    p.kind = p.x.kind == KD_int && p.y.kind == KD_int ? KD_int : KD_float;
    if (p.kind == KD_float) {
      p.x = promote(l, n->a, p.x);
      p.y = promote(l, n->b, p.y);
    }
  }
  return p;
}

static LangKind arithmetic(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  Operands p = operands(l, n);
  CodeOp add = p.kind == KD_int ? CO_add_i : CO_add_f;
  u32 form = p.form == 'k' ? 1 : p.form == 'l' ? 2 : 0;
  if (p.kind == KD_any) {
    code_emit(l, CO_binary, dst, p.x.reg, p.y.reg, n);
  } else {
    CodeOp op = n->op == TOK_mod ? (CodeOp)(CO_mod_i + form) : (CodeOp)(op_of(n->op, add) + form);
    code_emit(l, op, dst, form == 2 ? p.y.reg : p.x.reg, form ? p.k : p.y.reg, n);
  }
  l->top = top;
  return p.kind == KD_any ? KD_any : tok_compares(n->op) ? KD_bool : p.kind;
}

/* Jumps if n does not hold. Its evaluation changes no variables. */
static void condition(Lowering *l, Ast *n, Positions *otherwise) {
  u32 top = l->top;
  if (n->to || n->kind == AST_named) {
    InReg x = operand(l, n);
    *vec_push(l->a, otherwise) =
        branch(l, x.kind == KD_bool ? CO_unless_b : CO_unless, x.reg, 0, 0, n);
  } else if (n->kind == AST_bool) {
    if (!n->i) *vec_push(l->a, otherwise) = code_emit(l, CO_jump, 0, 0, 0, n);
  } else if (n->kind == AST_binary && n->op == TOK_and) {
    condition(l, n->a, otherwise);
    condition(l, n->b, otherwise);
  } else if (n->kind == AST_binary && n->op == TOK_or) {
    Positions second = {0};
    u32 mark = l->log.n;
    condition(l, n->a, &second);
    u32 holds = code_emit(l, CO_jump, 0, 0, 0, n);
    known_undo(l, mark);
    patch_all(l, &second);
    condition(l, n->b, otherwise);
    known_undo(l, mark);
    code_patch(l, holds, l->ins.n);
  } else if (n->kind == AST_unary && n->op == TOK_not) {
    Positions fails = {0};
    u32 mark = l->log.n;
    condition(l, n->a, &fails);
    *vec_push(l->a, otherwise) = code_emit(l, CO_jump, 0, 0, 0, n);
    known_undo(l, mark);
    patch_all(l, &fails);
  } else if (n->kind == AST_binary && tok_compares(n->op)) {
    Operands p = operands(l, n);
    u32 i;
    if (p.kind == KD_any) {
      u32 t = code_temp(l);
      code_emit(l, CO_binary, t, p.x.reg, p.y.reg, n);
      i = branch(l, CO_unless, t, 0, 0, n);
    } else {
      CodeOp base = p.kind == KD_int ? CO_unless_lt_i : CO_unless_lt_f;
      u32 row = (u32)(op_of(n->op, CO_add_i) - CO_lt_i) / (CO_sub_i - CO_add_i);
      CodeOp op = (CodeOp)(base + row * (CO_unless_le_i - CO_unless_lt_i) + (p.form == 'k'));
      i = branch(l, op, p.x.reg, p.form == 'k' ? p.k : p.y.reg, 0, n);
    }
    *vec_push(l->a, otherwise) = i;
  } else {
    InReg x = operand(l, n);
    *vec_push(l->a, otherwise) =
        branch(l, x.kind == KD_bool ? CO_unless_b : CO_unless, x.reg, 0, 0, n);
  }
  l->top = top;
}

/* Jumps if n does not hold. */
static void test(Lowering *l, Ast *n, Positions *otherwise) {
  if (!ast_changes(n)) {
    condition(l, n, otherwise);
    return;
  }
  u32 top = l->top, t = code_temp(l);
  LangKind k = code_into(l, n, t);
  *vec_push(l->a, otherwise) = branch(l, k == KD_bool ? CO_unless_b : CO_unless, t, 0, 0, n);
  l->top = top;
}

/* `and`, `or`: the truth of both. */
static LangKind logical(Lowering *l, Ast *n, u32 dst) {
  Positions fails = {0};
  u32 jumps = l->conditional.n, mark = l->log.n, top = l->top, calls = l->calls;
  bool is_or = n->op == TOK_or;
  test(l, n->a, &fails);
  if (ast_changes(n->a)) mark = l->log.n;
  PathMerge m = known_paths(l, mark);
  bool dead = l->dead;
  if (is_or) {
    code_emit(l, CO_bool, dst, 1, 0, n);
  } else {
    InReg y = operand(l, n->b);
    code_emit(l, y.kind == KD_bool ? CO_move_n : CO_truth, dst, y.reg, 0, n->b);
  }
  u32 end = code_emit(l, CO_jump, 0, 0, 0, n);
  known_path_end(l, &m);
  l->dead = dead;
  l->top = top;
  patch_all(l, &fails);
  if (is_or) {
    InReg y = operand(l, n->b);
    code_emit(l, y.kind == KD_bool ? CO_move_n : CO_truth, dst, y.reg, 0, n->b);
  } else {
    code_emit(l, CO_bool, dst, 0, 0, n);
  }
  known_path_end(l, &m);
  known_join(l, &m);
  l->dead = dead;
  if (calls != l->calls) known_forget_shared(l);
  code_patch(l, end, l->ins.n);
  paths_meet(l, jumps);
  l->top = top;
  return KD_bool;
}

static LangKind binary(Lowering *l, Ast *n, u32 dst) {
  if (n->op == TOK_and || n->op == TOK_or) return logical(l, n, dst);
  return arithmetic(l, n, dst);
}

static LangKind unary(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  InReg x = operand(l, n->a);
  l->top = top;
  bool negates = n->op != TOK_not;
  CodeOp op = negates && x.kind == KD_int     ? CO_neg_i
              : negates && x.kind == KD_float ? CO_neg_f
              : !negates && x.kind == KD_bool ? CO_not_b
                                              : CO_unary;
  code_emit(l, op, dst, x.reg, 0, n);
  return !negates ? KD_bool : op == CO_unary ? KD_any : x.kind;
}

static LangKind cast(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  InReg x = operand(l, n->a);
  char to = *str_text(l->c, n->name);
  l->top = top;
  if (to == 'i' && x.kind == KD_int) {
    code_emit(l, CO_move_n, dst, x.reg, 0, n);
    return KD_int;
  }
  code_emit(l, to == 'i' && x.kind == KD_float ? CO_to_int : CO_cast, dst, x.reg, 0, n);
  return KD_any; /* checked */
}

static LangKind convert(Lowering *l, const Ast *n, u32 dst, LangKind k, const LangType *to) {
  if (to->kind == KD_any || to->kind == KD_none || k == to->kind) return k;
  if (to->kind == KD_float && k == KD_int) {
    code_emit(l, CO_to_float, dst, dst, 0, n);
    return KD_float;
  }
  *vec_push(l->a, &l->code->type) = to;
  code_emit(l, CO_convert, dst, l->code->type.n - 1, 0, n);
  return KD_any;
}

/* ---- arrays and structs ---- */

static LangKind list(Lowering *l, const Ast *n, u32 dst) {
  u32 t = code_temp(l), top = l->top, x = code_temp(l);
  code_emit(l, CO_list, t, n->kind == AST_array ? KD_array : KD_tuple, n->nkid, n);
  for (u32 i = 0; i < n->nkid; i++) {
    code_into(l, n->kid[i], x);
    code_emit(l, CO_put, t, i, x, n);
  }
  code_emit(l, CO_set, dst, t, 0, n);
  l->top = top - 1;
  return KD_any;
}

static LangKind record(Lowering *l, const Ast *n, u32 dst) {
  u32 t = code_temp(l), top = l->top, x = code_temp(l);
  code_emit(l, CO_record, t, 0, 0, n);
  for (u32 i = 0; i < n->nkid; i++) {
    code_into(l, n->kid[i]->a, x);
    code_emit(l, CO_put, t, n->kid[i]->slot, x, n);
  }
  code_emit(l, CO_set, dst, t, 0, n);
  l->top = top - 1;
  return KD_any;
}

static LangKind repeat(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, x = code_temp(l), times = code_temp(l);
  code_into(l, n->a, x);
  code_into(l, n->b, times);
  code_emit(l, CO_repeat, dst, x, times, n);
  l->top = top;
  return KD_any;
}

/* Evaluates the bounds into two consecutive temps. Returns the first. */
static u32 range_bounds(Lowering *l, const Ast *n) {
  u32 lo = code_temp(l), hi = code_temp(l);
  if (code_into(l, n->a, lo) != KD_int || n->a->to) code_emit(l, CO_bound, lo, 0, 0, n->a);
  if (code_into(l, n->b, hi) != KD_int || n->b->to) code_emit(l, CO_bound, hi, 0, 0, n->b);
  if (n->op == TOK_upto) code_emit(l, CO_upto, hi, 0, 0, n);
  return lo;
}

static LangKind range(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, lo = range_bounds(l, n);
  code_emit(l, CO_range, dst, lo, lo + 1, n);
  l->top = top;
  return KD_any;
}

/* True for an index that cannot fail and is in place: a variable or a literal. */
static bool is_plain_index(const Lowering *l, const Ast *n) {
  if (n->to) return false;
  if (is_small(n)) return true;
  if (n->kind == AST_binary && (n->op == TOK_add || n->op == TOK_sub))
    return is_plain_index(l, n->a) && is_plain_index(l, n->b);
  i64 slot = n->kind == AST_name ? code_plain(l, n) : -1;
  return slot >= 0 && known_kind(l, (u32)slot) == KD_int;
}

static CodeOp of_kind(CodeOp i, LangKind k) {
  return (CodeOp)(i + (k == KD_float ? 1 : k == KD_bool ? 2 : 0));
}

static LangKind element(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  LangKind want = n->to ? KD_any : ast_kind(n);
  const Ast *row = n->a;
  if (row->kind == AST_index && !row->to && row->a->kind == AST_name && !row->a->to &&
      kind_is_number(want) && code_plain(l, row->a) >= 0 && is_plain_index(l, row->b) &&
      is_plain_index(l, n->b)) {
    InReg of = code_variable(l, row->a, (u32)code_plain(l, row->a));
    InReg i = operand(l, row->b), j = operand(l, n->b);
    code_emit(l, of_kind(CO_index2_i, want), dst, of.reg, i.reg, n);
    code_emit(l, CO_more, j.reg, 0, 0, n);
    l->top = top;
    return want;
  }
  if (is_global(n->a) && !n->a->to && code_plain(l, n->a) < 0 && n->a->place[0].slot < 1u << 24) {
    InReg i = operand(l, n->b);
    bool typed = kind_is_number(want) && i.kind == KD_int;
    code_emit(l, typed ? of_kind(CO_gindex_i, want) : CO_gindex, dst,
              n->a->place[0].file << 24 | n->a->place[0].slot, i.reg, n);
    l->top = top;
    return typed ? want : KD_any;
  }
  InReg of = operand(l, n->a), i = operand(l, n->b);
  bool typed = kind_is_number(want) && i.kind == KD_int && !is_temp(of.reg);
  code_emit(l, typed ? of_kind(CO_index_i, want) : CO_index, dst, of.reg, i.reg, n);
  l->top = top;
  return typed ? want : KD_any;
}

static LangKind item(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, t = code_temp(l);
  code_into(l, n->a, t);
  code_emit(l, CO_item, t, (u32)n->i, (u32)((u64)n->i >> 32), n);
  code_emit(l, CO_set, dst, t, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind member(Lowering *l, const Ast *n, u32 dst) {
  if (n->nplace) return name(l, n, dst);
  u32 top = l->top;
  InReg x = operand(l, n->a);
  code_emit(l, CO_member, dst, x.reg, 0, n);
  l->top = top;
  return KD_any;
}

/* Evaluates the indices of an lvalue into consecutive temps. Returns the first. */
static u32 indices(Lowering *l, const Ast *n) {
  VEC(const Ast *) step = {0};
  u32 first = TEMP + l->top;
  for (; n->kind == AST_index || n->kind == AST_member; n = n->a) *vec_push(l->a, &step) = n;
  for (u32 i = step.n; i-- > 0;)
    if (step.at[i]->kind == AST_index) code_into(l, step.at[i]->b, code_temp(l));
  return first;
}

static LangKind change(Lowering *l, const Ast *n, u32 dst) {
  bool pushes = builtin_fn[n->builtin - 1] == bi_push;
  u32 top = l->top, v = pushes ? code_temp(l) : 0, to = code_temp(l);
  if (pushes) code_into(l, n->kid[1], v);
  if (is_lvalue(n->kid[0])) {
    u32 i = indices(l, n->kid[0]);
    code_emit(l, pushes ? CO_push : CO_pop, to, i, v, n);
  } else {
    code_into(l, n->kid[0], to);
    code_emit(l, pushes ? CO_push_temp : CO_pop_temp, to, v, 0, n);
  }
  if (dst == NOWHERE)
    code_emit(l, CO_drop, to, 1, 0, n);
  else
    code_emit(l, CO_set, dst, to, 0, n);
  l->top = top;
  return KD_any;
}

/* ---- calls ---- */

/* The first of the temps of a call: dst itself, if it is the last temp. */
static u32 call_base(Lowering *l, u32 dst) {
  return l->top && dst == TEMP + l->top - 1 ? dst : code_temp(l);
}

static LangKind built_in(Lowering *l, const Ast *n, u32 dst) {
  BuiltinFn *f = builtin_fn[n->builtin - 1];
  u32 top = l->top;
  if (f == bi_len && n->nkid == 1) {
    InReg x = operand(l, n->kid[0]);
    u32 to = dst == NOWHERE ? code_temp(l) : dst;
    code_emit(l, CO_len, to, x.reg, 0, n);
    l->top = top;
    return KD_any;
  }
  LangKind k = n->nkid == 2 ? ast_kind(n->kid[0]) : KD_any;
  if ((f == bi_min || f == bi_max) && (k == KD_int || k == KD_float) && ast_kind(n->kid[1]) == k &&
      dst != NOWHERE) {
    InReg x = stable(l, n->kid[0], n->kid[1]), y = operand(l, n->kid[1]);
    CodeOp op = f == bi_min ? CO_min_i : CO_max_i;
    bool typed = x.kind == k && y.kind == k;
    if (typed) {
      code_emit(l, (CodeOp)(op + (k == KD_float ? CO_min_f - CO_min_i : 0)), dst, x.reg, y.reg, n);
      l->top = top;
      return k;
    }
    l->top = top;
  }
  u32 base = call_base(l, dst);
  l->top = base - TEMP + 1;
  for (u32 i = 0; i < n->nkid; i++) code_into(l, n->kid[i], i ? code_temp(l) : base);
  code_emit(l, CO_builtin, base, n->nkid, (u32)n->builtin - 1, n);
  if (f == bi_autograd) known_forget_shared(l);
  if (dst == NOWHERE)
    code_emit(l, CO_drop, base, 1, 0, n);
  else if (dst != base)
    code_emit(l, CO_set, dst, base, 0, n);
  l->top = top;
  return KD_any;
}

void code_call(Lowering *l, const Ast *n, u32 base, bool borrowed) {
  bool method = n->a->kind == AST_member && !n->a->nplace;
  u32 level = l->into ? l->into->level : 0;
  code_emit(l, method ? CO_method : CO_call, base, n->nkid, borrowed | level << 1, n);
  known_forget_shared(l);
}

static LangKind call(Lowering *l, Ast *n, u32 dst) {
  LangKind k;
  if (ast_is_change(n)) return change(l, n, dst);
  if (n->builtin) return built_in(l, n, dst);
  if (inline_call(l, n, dst, &k)) return k;
  u32 top = l->top, base = call_base(l, dst);
  bool method = n->a->kind == AST_member && !n->a->nplace;
  for (u32 i = 0; i < n->nkid; i++) code_into(l, n->kid[i], code_temp(l));
  i64 slot = !method && l->in && n->a->kind == AST_name && !n->a->to ? code_plain(l, n->a) : -1;
  if (slot >= 0)
    code_emit(l, CO_borrow, base, code_variable(l, n->a, (u32)slot).reg, 0, n->a);
  else
    code_into(l, method ? n->a->a : n->a, base);
  code_call(l, n, base, slot >= 0);
  if (dst == NOWHERE)
    code_emit(l, CO_drop, base, 1, 0, n);
  else if (dst != base)
    code_emit(l, CO_set, dst, base, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind closure(Lowering *l, const Ast *n, u32 dst) {
  *vec_push(l->a, &l->code->closure) = n;
  code_emit(l, CO_closure, dst, l->code->closure.n - 1, 0, n);
  return KD_any;
}

/* ---- variables ---- */

/* Reads the variable that was set, if the value is used. */
static LangKind value_of(Lowering *l, const Ast *n, u32 slot, u32 dst) {
  LangKind k = known_kind(l, slot);
  if (dst != NOWHERE) code_emit(l, kind_is_number(k) ? CO_move_n : CO_move, dst, slot, 0, n);
  return k;
}

static bool may_write_directly(const Ast *n) {
  return n->kind != AST_match && n->kind != AST_while && n->kind != AST_for && n->kind != AST_block;
}

/* Sets the variable to the value of n. */
void code_define(Lowering *l, u32 slot, Ast *n) {
  u32 top = l->top;
  LangKind k;
  if (l->direct[slot] && may_write_directly(n)) {
    k = code_into(l, n, slot);
  } else {
    u32 t = code_temp(l);
    k = code_into(l, n, t);
    code_emit(l, CO_set, slot, t, 0, n);
  }
  known_set(l, slot, k);
  l->top = top;
}

/* Sets the variable to temp t. */
static LangKind define_temp(Lowering *l, const Ast *n, u32 t, u32 dst) {
  u32 slot = known_slot(l, n->slot);
  code_emit(l, CO_set, slot, t, 0, n);
  known_set(l, slot, KD_any);
  l->top--;
  return value_of(l, n, slot, dst);
}

static LangKind assign(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  const Ast *to = n->a;
  i64 slot = to->kind == AST_name ? code_plain(l, to) : -1;
  if (slot >= 0 && known_kind(l, (u32)slot) != KD_none) {
    code_define(l, (u32)slot, n->b);
    return value_of(l, n, (u32)slot, dst);
  }
  u32 v = code_temp(l);
  LangKind k = code_into(l, n->b, v);
  if (dst != NOWHERE) code_emit(l, CO_move, dst, v, 0, n);
  const Ast *base = to->kind == AST_index ? to->a : NULL;
  const Ast *row = base && base->kind == AST_index ? base : NULL;
  if (row) base = row->a;
  slot = base && base->kind == AST_name ? code_plain(l, base) : -1;
  if (slot >= 0 && known_kind(l, (u32)slot) != KD_none && kind_is_number(k) &&
      ast_kind(to->b) == KD_int &&
      (!row || (is_plain_index(l, row->b) && is_plain_index(l, to->b)))) {
    InReg i = operand(l, row ? row->b : to->b);
    if (row) {
      InReg j = operand(l, to->b);
      code_emit(l, CO_store2_n, (u32)slot, i.reg, v, n);
      code_emit(l, CO_more, j.reg, 0, 0, n);
    } else {
      code_emit(l, CO_store_n, (u32)slot, i.reg, v, n);
    }
  } else if (is_global(to)) {
    code_emit(l, CO_set_global, v, to->place[0].file, to->place[0].slot, n);
  } else {
    u32 i = indices(l, to);
    code_emit(l, CO_store, i, v, 0, n);
  }
  if (to->kind == AST_name && to->nplace == 1 && known_variable(l, &to->place[0]) >= 0)
    known_set(l, (u32)known_variable(l, &to->place[0]), k);
  l->top = top;
  return k;
}

/* ---- control flow ---- */

static LangKind nothing(Lowering *l, const Ast *n, u32 dst) {
  if (dst != NOWHERE) code_emit(l, CO_null, dst, 0, 0, n);
  return KD_any;
}

LangKind code_block(Lowering *l, const Ast *n, u32 dst) {
  LangKind k = KD_any;
  if (!n->nkid) return nothing(l, n, dst);
  for (u32 i = 0; i < n->nkid; i++) {
    u32 top = l->top;
    k = code_into(l, n->kid[i], i + 1 == n->nkid ? dst : NOWHERE);
    l->top = top;
  }
  return k;
}

static LangKind choice(Lowering *l, const Ast *n, u32 dst) {
  Positions otherwise = {0};
  u32 jumps = l->conditional.n, end = 0, calls = l->calls;
  bool changed = ast_changes(n->a);
  u32 mark = l->log.n;
  test(l, n->a, &otherwise);
  if (changed) mark = l->log.n;
  PathMerge m = known_paths(l, mark);
  bool dead = l->dead;
  LangKind k = code_block(l, n->b, dst), other = KD_any;
  bool first_dead = l->dead, needs = n->c || dst != NOWHERE;
  if (needs) end = code_emit(l, CO_jump, 0, 0, 0, n);
  known_path_end(l, &m);
  l->dead = dead;
  patch_all(l, &otherwise);
  if (n->c)
    other = n->c->kind == AST_block ? code_block(l, n->c, dst) : code_into(l, n->c, dst);
  else
    nothing(l, n, dst);
  bool second_dead = l->dead;
  known_path_end(l, &m);
  known_join(l, &m);
  l->dead = first_dead && second_dead;
  if (calls != l->calls) known_forget_shared(l);
  if (needs) code_patch(l, end, l->ins.n);
  paths_meet(l, jumps);
  return first_dead ? other : second_dead ? k : kind_meet(k, other);
}

static LangKind match(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, v = code_temp(l), row = l->code->match.n, narm = 0;
  Positions ends = {0};
  bool dead = l->dead, open = true;
  LangKind kv = code_into(l, n->a, v), k = KD_none;
  u32 *arm = NEWS(l->a, u32, n->nkid + 1), calls = l->calls;
  PathMerge m = known_paths(l, l->log.n);
  *vec_push(l->a, &l->code->match) = (CodeMatch){0};
  code_emit(l, CO_match, v, row, 0, n);
  for (u32 i = 0; open && i < n->nkid; i++) {
    const Ast *x = n->kid[i];
    u32 fits = 0;
    bool binds = x->a && x->a->kind == AST_name;
    open = x->a && !binds;
    if (open) fits = code_emit(l, CO_fits, v, 0, 0, x->a);
    arm[narm++] = l->ins.n;
    l->dead = dead;
    clear_scope(l, x);
    if (binds) {
      u32 slot = known_slot(l, x->a->slot);
      code_emit(l, CO_set, slot, v, 0, x->a);
      known_set(l, slot, kv);
    } else {
      code_emit(l, CO_drop, v, 1, 0, x);
    }
    LangKind got = x->b->kind == AST_block ? code_block(l, x->b, dst) : code_into(l, x->b, dst);
    clear_scope(l, x);
    if (!l->dead) k = k == KD_none ? got : kind_meet(k, got);
    known_path_end(l, &m);
    *vec_push(l->a, &ends) = code_emit(l, CO_jump, 0, 0, 0, n);
    if (open) code_patch(l, fits, l->ins.n);
  }
  code_emit(l, CO_no_fit, v, 0, 0, n);
  patch_all(l, &ends);
  known_join(l, &m);
  l->dead = dead || !m.paths;
  if (calls != l->calls) known_forget_shared(l);
  l->code->match.at[row] = (CodeMatch){arm, narm, l->ins.n};
  l->top = top;
  return k == KD_none ? KD_any : k;
}

/* ---- loops; the value is that of the last statement in the last iteration, null after a break
 * ---- */

static void loop_begin(Lowering *l, const Ast *n, LowerLoop *loop) {
  *loop = (LowerLoop){.outer = l->loop, .temps = l->top};
  if (n->kind == AST_while) known_forget_assigned(l, n->a);
  known_forget_assigned(l, n->b);
  known_forget_shared(l);
  l->loop = loop;
}

static void loop_body(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  if (dst != NOWHERE) {
    u32 t = code_temp(l);
    code_emit(l, CO_null, dst, 0, 0, n);
    code_block(l, n->b, t);
    code_emit(l, CO_set, dst, t, 0, n);
  } else {
    code_block(l, n->b, NOWHERE);
  }
  l->top = top;
  patch_all(l, &l->loop->continues);
}

static void loop_end(Lowering *l, LowerLoop *loop, u32 mark, bool dead) {
  patch_all(l, &loop->ends);
  known_undo(l, mark);
  known_forget_shared(l);
  l->dead = dead;
  l->loop = loop->outer;
}

static LangKind loop_while(Lowering *l, const Ast *n, u32 dst) {
  LowerLoop loop;
  Positions fails = {0};
  u32 row = l->code->loop.n, jumps = l->conditional.n;
  bool dead = l->dead;
  nothing(l, n, dst);
  loop_begin(l, n, &loop);
  *vec_push(l->a, &l->code->loop) = (CodeLoop){0};
  code_emit(l, CO_loop, row, 0, 0, n);
  u32 head = l->ins.n, mark = l->log.n;
  test(l, n->a, &fails);
  l->conditional.n = jumps; /* loop tests have no join */
  u32 body = l->ins.n;
  loop_body(l, n, dst);
  u32 next = code_emit(l, CO_back, head, 0, 0, n);
  patch_all(l, &fails);
  loop_end(l, &loop, mark, dead);
  l->code->loop.at[row] = (CodeLoop){head, body, next, l->ins.n};
  return KD_any;
}

static LangKind loop_for(Lowering *l, const Ast *n, u32 dst) {
  LowerLoop loop;
  bool dead = l->dead, numbers = n->a->kind == AST_range && !n->a->to;
  u32 top = l->top, at = 0, slot = known_slot(l, n->slot);
  nothing(l, n, dst);
  if (numbers) {
    at = range_bounds(l, n->a);
  } else {
    at = code_temp(l);
    u32 over = code_temp(l);
    code_into(l, n->a, over);
  }
  clear_scope(l, n);
  loop_begin(l, n, &loop);
  u32 mark = l->log.n;
  u32 first = code_emit(l, numbers ? CO_for_first : CO_each_first, at, slot, 0, n);
  known_set(l, slot, numbers ? KD_int : KD_any);
  u32 body = l->ins.n;
  loop_body(l, n, dst);
  code_emit(l, numbers ? CO_for_next : CO_each_next, at, slot, body, n);
  code_patch(l, first, l->ins.n);
  loop_end(l, &loop, mark, dead);
  clear_scope(l, n);
  if (!numbers) code_emit(l, CO_drop, at + 1, 1, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind leave(Lowering *l, const Ast *n) {
  bool breaks = n->kind == AST_break;
  code_drop_temps(l, l->loop->temps);
  *vec_push(l->a, breaks ? &l->loop->ends : &l->loop->continues) =
      code_emit(l, CO_leave, 0, breaks, 0, n);
  l->dead = true;
  return KD_any;
}

static LangKind leave_fn(Lowering *l, Ast *n) {
  if (l->into) {
    inline_return(l, n);
    return KD_any;
  }
  u32 live = l->top, t = code_temp(l);
  if (n->a)
    code_into(l, n->a, t);
  else
    code_emit(l, CO_null, t, 0, 0, n);
  if (live) code_emit(l, CO_drop, TEMP, live, 0, n);
  code_emit(l, CO_ret, t, 0, 0, n);
  l->top = live;
  l->dead = true;
  return KD_any;
}

/* ---- models and modules ---- */

static LangKind class(Lowering *l, const Ast *n, u32 dst) {
  u32 t = code_temp(l), top = l->top;
  code_emit(l, CO_class, t, 0, 0, n);
  for (u32 i = 0; i < n->nkid; i++) {
    const Ast *layer = n->kid[i];
    u32 count = 0, base = TEMP + l->top;
    bool sized = false;
    for (u32 k = 0; k < layer_count; k++)
      sized |= layer_info[k].make && str_is(l->c, layer->a->name, layer_info[k].name);
    for (; count < layer->nkid && layer->kid[count]->kind != AST_named; count++)
      if (sized) code_into(l, layer->kid[count], code_temp(l));
    code_emit(l, CO_layer, t, base, count, layer);
    l->top = top;
  }
  return define_temp(l, n, t, dst);
}

static LangKind import(Lowering *l, const Ast *n, u32 dst) {
  u32 t = code_temp(l);
  if (n->module) {
    code_emit(l, CO_module, 0, 0, 0, n);
    code_emit(l, CO_null, t, 0, 0, n);
    known_forget_shared(l);
  } else {
    code_emit(l, CO_network, t, 0, 0, n);
  }
  return define_temp(l, n, t, dst);
}

/* ---- all nodes ---- */

static LangKind literal(Lowering *l, const Ast *n, u32 dst) {
  switch (n->kind) {
  case AST_int:
    if (n->i == (i32)n->i)
      code_emit(l, CO_int, dst, (u32)(i32)n->i, 0, n);
    else
      code_emit(l, CO_const, dst, constant(l, value_int(n->i)), 0, n);
    return KD_int;
  case AST_float:
    code_emit(l, CO_const, dst, constant(l, value_float(n->f)), 0, n);
    return KD_float;
  case AST_bool: code_emit(l, CO_bool, dst, (u32)n->i, 0, n); return KD_bool;
  default: {
    LangValue s = value_string(l->ev, str_text(l->c, n->name), str_len(l->c, n->name));
    code_emit(l, CO_string, dst, constant(l, s), 0, n);
    return KD_any;
  }
  }
}

/* Statements, which need not have a value. */
static bool is_statement(const Ast *n) {
  return n->kind <= AST_struct && (n->kind != AST_fn || n->name);
}

static LangKind plain(Lowering *l, Ast *n, u32 dst) {
  switch (n->kind) {
  case AST_block: return code_block(l, n, dst);
  case AST_let:
    code_define(l, known_slot(l, n->slot), n->a);
    return value_of(l, n, known_slot(l, n->slot), dst);
  case AST_set: return assign(l, n, dst);
  case AST_return: return leave_fn(l, n);
  case AST_break:
  case AST_continue: return leave(l, n);
  case AST_if: return choice(l, n, dst);
  case AST_while: return loop_while(l, n, dst);
  case AST_for: return loop_for(l, n, dst);
  case AST_model: return class(l, n, dst);
  case AST_import: return import(l, n, dst);
  case AST_struct: return nothing(l, n, dst);
  case AST_fn:
    if (!n->name) return closure(l, n, dst);
    closure(l, n, code_temp(l));
    return define_temp(l, n, TEMP + l->top - 1, dst);
  case AST_int:
  case AST_float:
  case AST_bool:
  case AST_string: return literal(l, n, dst);
  case AST_name: return name(l, n, dst);
  case AST_array:
  case AST_tuple: return list(l, n, dst);
  case AST_record: return record(l, n, dst);
  case AST_repeat: return repeat(l, n, dst);
  case AST_range: return range(l, n, dst);
  case AST_unary: return unary(l, n, dst);
  case AST_binary: return binary(l, n, dst);
  case AST_cast: return cast(l, n, dst);
  case AST_index: return element(l, n, dst);
  case AST_item: return item(l, n, dst);
  case AST_member: return member(l, n, dst);
  case AST_match: return match(l, n, dst);
  case AST_call: return call(l, n, dst);
  case AST_named: return code_into(l, n->a, dst);
  default: eval_fail(l->ev, n, "this is not supported yet");
  }
}

static bool takes_nowhere(const Ast *n) {
  return is_statement(n) || n->kind == AST_match || n->kind == AST_call;
}

/* Evaluates n into dst, which is a temp or a variable that numbers are written to. Returns the
 * proven kind. */
LangKind code_into(Lowering *l, Ast *n, u32 dst) {
  u32 top = l->top;
  if (dst == NOWHERE && takes_nowhere(n) && !n->to) {
    plain(l, n, NOWHERE);
    l->top = top;
    return KD_any;
  }
  u32 to = dst == NOWHERE ? code_temp(l) : dst;
  LangKind k = plain(l, n, to), want = ast_kind(n);
  if (n->to) k = convert(l, n, to, k, n->to);
  if (kind_is_number(want) && k != want) {
    code_emit(l, CO_check, to, want, 0, n);
    k = want;
  }
  if (dst == NOWHERE) code_emit(l, CO_drop, to, 1, 0, n);
  l->top = top;
  return k;
}

/* A register with the value of n: a variable, or a new temp. */
static InReg operand(Lowering *l, Ast *n) {
  i64 slot = n->to ? -1 : code_plain(l, n);
  if (slot >= 0) return code_variable(l, n, (u32)slot);
  u32 t = code_temp(l);
  LangKind k = code_into(l, n, t);
  return (InReg){t, k};
}

/* ---- functions and files ---- */

static void begin(Lowering *l, Eval *ev, const LangFn *in, const Script *s, u32 nslot) {
  RegCode *code = NEW(&ev->c->keep, RegCode);
  *l = (Lowering){.ev = ev, .c = ev->c, .a = &ev->c->keep, .code = code, .in = in, .s = s};
  code->ev = ev;
  code->file = s->number;
  l->nslot = l->nvar = l->var = in && in->ast->nkid > nslot ? in->ast->nkid : nslot;
  known_begin(l);
}

/* Scales registers and makes jumps relative. */
static RegCode *finish(Lowering *l) {
  RegCode *code = l->code;
  code->nslot = l->nslot;
  code->nvar = l->nvar;
  code->nreg = l->nvar + l->max + 1;
  code->ins = l->ins.at;
  code->at = l->at.at;
  code->n = l->ins.n;
  code->k = l->k.at;
  code->nk = l->k.n;
  code->join = NEWS(l->a, u32, code->n);
  memset(code->join, 0xff, code->n * sizeof *code->join);
  for (u32 i = 0; i < l->join.n; i++) code->join[l->join.at[i].at] = l->join.at[i].join;
  if (!l->ev->native) choose_forms(l);
  for (u32 i = 0; i < code->n; i++) {
    Ins *x = &code->ins[i];
    u32 *field[] = {&x->a, &x->b, &x->c};
    for (u32 k = 0; k < 3; k++) {
      char how = code_operands[x->op][k];
      if (how == 'j') *field[k] -= i;
      if ((how == 'r' || how == 'w' || how == 'x') && *field[k] >= TEMP)
        *field[k] += l->nvar - TEMP;
      if (how == 'r' || how == 'w' || how == 'x' || how == 'j' ||
          (how == 'k' && x->op != CO_closure && x->op != CO_hoist))
        *field[k] *= (u32)sizeof(LangValue);
    }
  }
  return code;
}

const RegCode *code_of_fn(Eval *ev, LangFn *fn) {
  if (fn->code && fn->code->ev == ev) return fn->code;
  Lowering l;
  const Ast *n = fn->ast;
  begin(&l, ev, fn, ev->s->all->at[n->file], fn->nslot);
  RegCode *code = l.code;
  code->fn = fn;
  code->nparam = n->nkid;
  code->param = fn->self.item;
  code->quick = NEWS(l.a, u8, n->nkid + 1);
  code->floats = fn->result->kind == KD_float;
  for (u32 i = 0; i < fn->capture.n; i++) l.direct[fn->capture.at[i].slot] = false;
  for (u32 i = 0; i < n->nkid; i++) {
    LangKind k = fn->self.item[i]->kind;
    code->quick[i] = (u8)param_kind(fn->self.item[i]);
    l.known[i] = KD_any;
    if (n->kid[i]->slot != i) { /* a parameter of the same name came before */
      code_emit(&l, CO_set, n->kid[i]->slot, i, 0, n);
      l.known[i] = KD_none;
    }
    l.known[n->kid[i]->slot] = kind_is_number(k) ? k : KD_any;
    known_direct(&l, n->kid[i]->slot, k);
  }
  known_direct_assigned(&l, n->a);
  u32 t = code_temp(&l);
  code_block(&l, n->a, t);
  code_emit(&l, CO_ret, t, 0, 0, n);
  fn->code = finish(&l);
  return fn->code;
}

const RegCode *code_of_file(Eval *ev, const Script *s, u32 first, bool valued) {
  Lowering l;
  const Ast *root = s->root;
  begin(&l, ev, NULL, s, s->main->nslot);
  known_direct_assigned(&l, root);
  for (u32 i = 0; !first && i < root->nkid; i++) {
    const Ast *n = root->kid[i];
    if (n->kind != AST_fn || !n->name) continue;
    *vec_push(l.a, &l.code->closure) = n;
    code_emit(&l, CO_hoist, n->slot, l.code->closure.n - 1, 0, n);
    known_set(&l, n->slot, KD_any);
  }
  u32 t = code_temp(&l);
  if (!valued || first >= root->nkid) code_emit(&l, CO_null, t, 0, 0, root);
  for (u32 i = first; i < root->nkid; i++)
    code_into(&l, root->kid[i], valued && i + 1 == root->nkid ? t : NOWHERE);
  code_emit(&l, CO_ret, t, 0, 0, root);
  return finish(&l);
}
