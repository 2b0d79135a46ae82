/* lang_lower.c: from the checked tree to register code; see lang_code.h.
 *
 * In: a function or the statements of a file. Out: a RegCode. Method: one visit in the order of
 * evaluation. The visit keeps, by variable, what is known of its value at this point: nothing, that
 * it is set, or its kind. Where paths meet, so does what is known; the head of a loop knows only
 * what the loop does not change. Calls may change the variables of a file.
 */
#include "lang/run/lang_code.h"

#include <string.h>

#define NOWHERE UINT32_MAX /* the value is unused */

typedef VEC(u32) Positions;

typedef struct Known { /* what was known of a variable */
  u32 slot;
  LangKind kind; /* KD_none: maybe not set. KD_any: set */
} Known;
typedef VEC(Known) Knowns;

/* The paths that meet after a choice. A path ends with path_end(), the last with paths_known(). */
typedef struct Merge {
  u32 mark;  /* of the log, where the paths begin */
  u32 first; /* in Lowering.met */
  u32 paths; /* reachable so far */
} Merge;

typedef struct Met { /* a variable that some of the paths change */
  u32 slot;
  LangKind kind; /* where these paths meet */
  u32 paths;     /* their number */
  u32 outer;     /* Lowering.met_at before */
} Met;

typedef struct Join { /* where the paths of a conditional jump meet */
  u32 at, join;
} Join;

typedef struct LowerLoop {
  struct LowerLoop *outer;
  Positions ends, continues; /* jumps */
  u32 temps;                 /* live outside */
} LowerLoop;

typedef struct InReg {
  u32 reg;
  LangKind kind; /* KD_any: not proven */
} InReg;

typedef struct Lowering {
  Eval *ev;
  Ctx *c;
  Arena *a;
  RegCode *code;
  const LangFn *in; /* NULL: a file */
  const Script *s;
  VEC(Ins) ins;
  VEC(const Ast *) at;
  VEC(LangValue) k;
  u32 nvar, top, max; /* temps in use */
  LowerLoop *loop;
  bool dead;             /* the current position is unreachable */
  Positions conditional; /* jumps whose paths have not met yet */
  VEC(Join) join;
  /* by slot */
  LangKind *known;
  u32 *seen;    /* shared variables: `calls` when its kind became known */
  bool *direct; /* only numbers are ever stored there */
  u32 *stamp;
  u32 *met_at; /* its row in `met`, if that row is of this variable */
  u32 calls, stamps;
  Knowns log;   /* what was known before each change */
  VEC(Met) met; /* a stack: inner choices end first */
} Lowering;

const char *const code_operands[CODE_OP_COUNT] = {
#define INS(name, operands, careful) operands,
#include "lang/run/lang_code.def"
#undef INS
};

static LangKind into(Lowering *l, Ast *n, u32 dst);
static LangKind block(Lowering *l, const Ast *n, u32 dst);
static InReg operand(Lowering *l, Ast *n);

/* ---- analysis of the tree ---- */

static bool is_number(LangKind k) {
  return k == KD_int || k == KD_float || k == KD_bool;
}

static u32 parts(const Ast *n) {
  return 3 + n->nkid;
}

static Ast *part(const Ast *n, u32 i) {
  return i >= 3 ? n->kid[i - 3] : i == 0 ? n->a : i == 1 ? n->b : n->c;
}

/* A call of a function of the program, which may set variables of files. */
static bool is_user_call(const Ast *n) {
  return n->kind == AST_call && (!n->builtin || builtin_fn[n->builtin - 1] == bi_autograd);
}

/* True if evaluating n may call functions of the program. */
static bool calls(const Ast *n) {
  if (is_user_call(n)) return true;
  for (u32 i = 0; n->kind != AST_fn && i < parts(n); i++)
    if (part(n, i) && calls(part(n, i))) return true;
  return false;
}

static bool is_change(const Ast *n) {
  BuiltinFn *f = n->kind == AST_call && n->builtin ? builtin_fn[n->builtin - 1] : NULL;
  return f == bi_push || f == bi_pop;
}

/* True if evaluating n may change variables of the function, or leave it. */
static bool changes(const Ast *n) {
  switch (n->kind) {
  case AST_block:
  case AST_if:
  case AST_match: return true;
  case AST_fn: return false;
  default: break;
  }
  if (is_change(n)) return true;
  for (u32 i = 0; i < parts(n); i++)
    if (part(n, i) && changes(part(n, i))) return true;
  return false;
}

/* The kind that the value of n has for certain, or KD_any. into() checks it where the program does
 * not prove it. */
static LangKind promised(const Ast *n) {
  const LangType *t = n->to ? n->to : n->type;
  if (!n->to && (n->kind == AST_if || n->kind == AST_match || n->kind <= AST_struct)) return KD_any;
  return t && is_number(t->kind) ? t->kind : KD_any;
}

static LangKind meet(LangKind x, LangKind y) {
  return x == y ? x : x == KD_none || y == KD_none ? KD_none : KD_any;
}

/* The slot of a variable in the registers of this code, or -1. */
static i64 local_slot(const Lowering *l, const VarRef *p) {
  if (p->kind == VR_local) return p->slot;
  return p->kind == VR_global && !l->in && p->file == l->s->number ? (i64)p->slot : -1;
}

/* ---- what is known ---- */

static bool is_shared(const Lowering *l, u32 slot) {
  return !l->in && slot < l->s->shared.n && l->s->shared.at[slot];
}

static LangKind known(const Lowering *l, u32 slot) {
  LangKind k = l->known[slot];
  return is_number(k) && is_shared(l, slot) && l->seen[slot] != l->calls ? KD_any : k;
}

static void know(Lowering *l, u32 slot, LangKind k) {
  LangKind old = known(l, slot);
  if (old == k) return;
  *vec_push(l->a, &l->log) = (Known){slot, old};
  l->known[slot] = k;
  l->seen[slot] = l->calls;
}

static void undo(Lowering *l, u32 mark) {
  while (l->log.n > mark) {
    const Known *x = &l->log.at[--l->log.n];
    l->known[x->slot] = x->kind;
    l->seen[x->slot] = l->calls;
  }
}

static Merge paths_from(const Lowering *l, u32 mark) {
  return (Merge){mark, l->met.n, 0};
}

/* A path ends here, unless it is dead; the next begins in the state of the mark. Takes time in
 * proportion to the changes of the path. */
static void path_end(Lowering *l, Merge *m) {
  u32 now = ++l->stamps;
  if (!l->dead) m->paths++;
  for (u32 i = m->mark; !l->dead && i < l->log.n; i++) {
    u32 slot = l->log.at[i].slot, at = l->met_at[slot];
    if (l->stamp[slot] == now) continue;
    l->stamp[slot] = now;
    if (at >= m->first && at < l->met.n && l->met.at[at].slot == slot) {
      l->met.at[at].kind = meet(l->met.at[at].kind, known(l, slot));
      l->met.at[at].paths++;
    } else {
      l->met_at[slot] = l->met.n;
      *vec_push(l->a, &l->met) = (Met){slot, known(l, slot), 1, at};
    }
  }
  undo(l, m->mark);
}

/* All paths have ended. The others keep the kinds of the mark. */
static void paths_known(Lowering *l, const Merge *m) {
  while (l->met.n > m->first) {
    Met x = l->met.at[--l->met.n];
    l->met_at[x.slot] = x.outer;
    know(l, x.slot, x.paths < m->paths ? meet(x.kind, known(l, x.slot)) : x.kind);
  }
}

/* A call may change variables of files. */
static void forget_shared(Lowering *l) {
  l->calls++;
}

static void forget_slots(Lowering *l, const Ast *scope) {
  for (u32 i = 0; i < scope->nslot; i++) know(l, scope->slot + i, KD_none);
}

/* Calls fn for every variable that n sets, with the kind it gets. */
typedef void AssignFn(Lowering *l, u32 slot, LangKind kind);
static void each_assigned(Lowering *l, const Ast *n, AssignFn *fn) {
  switch (n->kind) {
  case AST_let: fn(l, n->slot, promised(n->a)); break;
  case AST_set:
    for (u32 i = 0; n->a->kind == AST_name && i < n->a->nplace; i++) {
      i64 slot = local_slot(l, &n->a->place[i]);
      if (slot >= 0) fn(l, (u32)slot, promised(n->b));
    }
    break;
  case AST_for: fn(l, n->slot, n->a->kind == AST_range && !n->a->to ? KD_int : KD_any); break;
  case AST_arm:
    if (n->a && n->a->kind == AST_name) fn(l, n->a->slot, KD_any);
    break;
  case AST_fn:
    if (n->name) fn(l, n->slot, KD_any);
    return;
  case AST_model:
  case AST_import: fn(l, n->slot, KD_any); break;
  default:
    if (is_user_call(n)) forget_shared(l);
  }
  for (u32 i = 0; i < parts(n); i++)
    if (part(n, i)) each_assigned(l, part(n, i), fn);
}

static void forget_kind(Lowering *l, u32 slot, LangKind k) {
  know(l, slot, meet(known(l, slot), k));
}

static void note_direct(Lowering *l, u32 slot, LangKind k) {
  if (!is_number(k)) l->direct[slot] = false;
}

/* ---- instructions ---- */

static u32 emit(Lowering *l, CodeOp op, u32 a, u32 b, u32 c, const Ast *at) {
  *vec_push(l->a, &l->ins) = (Ins){op, a, b, c};
  *vec_push(l->a, &l->at) = at;
  return l->ins.n - 1;
}

static u32 *target_of(Ins *i) {
  const char *s = code_operands[i->op];
  return s[0] == 'j' ? &i->a : s[1] == 'j' ? &i->b : s[2] == 'j' ? &i->c : NULL;
}

static void patch(Lowering *l, u32 at, u32 to) {
  *target_of(&l->ins.at[at]) = to;
}

static void patch_all(Lowering *l, const Positions *all) {
  for (u32 i = 0; i < all->n; i++) patch(l, all->at[i], l->ins.n);
}

static u32 temp(Lowering *l) {
  if (++l->top > l->max) l->max = l->top;
  return l->nvar + l->top - 1;
}

static bool is_temp(const Lowering *l, u32 reg) {
  return reg >= l->nvar;
}

/* A jump that is taken if the condition does not hold. */
static u32 branch(Lowering *l, CodeOp op, u32 a, u32 b, u32 c, const Ast *at) {
  u32 i = emit(l, op, a, b, c, at);
  *vec_push(l->a, &l->conditional) = i;
  return i;
}

/* The paths of the conditional jumps since `from` meet here. */
static void paths_meet(Lowering *l, u32 from) {
  for (u32 i = from; i < l->conditional.n; i++)
    *vec_push(l->a, &l->join) = (Join){l->conditional.at[i], l->ins.n};
  l->conditional.n = from;
}

static void drop_temps(Lowering *l, u32 from) {
  if (l->top > from) emit(l, CO_drop, l->nvar + from, l->top - from, 0, NULL);
}

static void clear_scope(Lowering *l, const Ast *scope) {
  if (scope->nslot) emit(l, CO_drop, scope->slot, scope->nslot, 0, NULL);
  forget_slots(l, scope);
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
static InReg variable(Lowering *l, const Ast *n, u32 slot) {
  LangKind k = known(l, slot), want = promised(n);
  if (n->to) want = KD_any;
  if (is_number(want) && k != want && !is_number(k)) {
    emit(l, CO_check, slot, want, 0, n);
    know(l, slot, k = want);
  } else if (k == KD_none) {
    emit(l, CO_held, slot, 0, 0, n);
    know(l, slot, k = KD_any);
  }
  return (InReg){slot, k};
}

/* The slot of a name that can be read in place, or -1. */
static i64 plain_variable(const Lowering *l, const Ast *n) {
  if ((n->kind != AST_name && n->kind != AST_member) || !n->nplace) return -1;
  i64 slot = local_slot(l, &n->place[0]);
  return slot >= 0 && (n->nplace == 1 || known(l, (u32)slot) != KD_none) ? slot : -1;
}

static bool is_global(const Ast *n) {
  return (n->kind == AST_name || n->kind == AST_member) && n->nplace == 1 &&
         n->place[0].kind == VR_global;
}

static LangKind name(Lowering *l, const Ast *n, u32 dst) {
  i64 slot = plain_variable(l, n);
  LangKind want = n->to ? KD_any : promised(n);
  if (slot >= 0) {
    InReg x = variable(l, n, (u32)slot);
    emit(l, is_number(x.kind) ? CO_move_n : CO_move, dst, x.reg, 0, n);
    return x.kind;
  }
  if (is_self(n))
    emit(l, CO_self, dst, 0, 0, n);
  else if (is_global(n))
    emit(l, is_number(want) ? CO_global_n : CO_global, dst, n->place[0].file | (u32)want << 8,
         n->place[0].slot, n);
  else
    emit(l, CO_name, dst, 0, 0, n);
  return is_global(n) ? want : KD_any;
}

/* ---- operators ---- */

static CodeOp op_of(Tok op, CodeOp add) { /* add: add in the wanted form */
  static const u8 row[TOK_COUNT] = {
      [TOK_add] = 0, [TOK_sub] = 1, [TOK_mul] = 2, [TOK_div] = 3, [TOK_lt] = 4,
      [TOK_le] = 5,  [TOK_gt] = 6,  [TOK_ge] = 7,  [TOK_eq] = 8,  [TOK_ne] = 9};
  return (CodeOp)(add + (u32)row[op] * (CO_sub_i - CO_add_i));
}

static bool compares(Tok op) {
  return op == TOK_lt || op == TOK_le || op == TOK_gt || op == TOK_ge || op == TOK_eq ||
         op == TOK_ne;
}

/* An operand that is read after `later` was evaluated. */
static InReg stable(Lowering *l, Ast *n, const Ast *later) {
  InReg x = operand(l, n);
  if (is_temp(l, x.reg)) return x;
  if (!changes(later) && !(is_shared(l, x.reg) && calls(later))) return x;
  u32 t = temp(l);
  emit(l, CO_move, t, x.reg, 0, n);
  return (InReg){t, x.kind};
}

static InReg promote(Lowering *l, const Ast *n, InReg x) {
  if (x.kind == KD_float) return x;
  u32 t = is_temp(l, x.reg) ? x.reg : temp(l);
  emit(l, CO_promote, t, x.reg, 0, n);
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
  LangKind px = promised(n->a), py = promised(n->b);
  bool typed = (px == KD_int || px == KD_float) && (py == KD_int || py == KD_float) &&
               n->op != TOK_at && (n->op != TOK_mod || (px == KD_int && py == KD_int));
  double f;
  if (typed && is_small(n->a) && !is_small(n->b) && py == KD_int && !compares(n->op)) {
    p = (Operands){.y = operand(l, n->b), .kind = KD_int, .form = 'l', .k = (u32)(i32)n->a->i};
    return p;
  }
  if (typed && literal_float(n->a, py, &f) && n->b->kind != AST_float && !compares(n->op)) {
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
    emit(l, CO_binary, dst, p.x.reg, p.y.reg, n);
  } else {
    CodeOp op = n->op == TOK_mod ? (CodeOp)(CO_mod_i + form) : (CodeOp)(op_of(n->op, add) + form);
    emit(l, op, dst, form == 2 ? p.y.reg : p.x.reg, form ? p.k : p.y.reg, n);
  }
  l->top = top;
  return p.kind == KD_any ? KD_any : compares(n->op) ? KD_bool : p.kind;
}

/* Jumps if n does not hold. Its evaluation changes no variables. */
static void condition(Lowering *l, Ast *n, Positions *otherwise) {
  u32 top = l->top;
  if (n->to || n->kind == AST_named) {
    InReg x = operand(l, n);
    *vec_push(l->a, otherwise) =
        branch(l, x.kind == KD_bool ? CO_unless_b : CO_unless, x.reg, 0, 0, n);
  } else if (n->kind == AST_bool) {
    if (!n->i) *vec_push(l->a, otherwise) = emit(l, CO_jump, 0, 0, 0, n);
  } else if (n->kind == AST_binary && n->op == TOK_and) {
    condition(l, n->a, otherwise);
    condition(l, n->b, otherwise);
  } else if (n->kind == AST_binary && n->op == TOK_or) {
    Positions second = {0};
    u32 mark = l->log.n;
    condition(l, n->a, &second);
    u32 holds = emit(l, CO_jump, 0, 0, 0, n);
    undo(l, mark);
    patch_all(l, &second);
    condition(l, n->b, otherwise);
    undo(l, mark);
    patch(l, holds, l->ins.n);
  } else if (n->kind == AST_unary && n->op == TOK_not) {
    Positions fails = {0};
    u32 mark = l->log.n;
    condition(l, n->a, &fails);
    *vec_push(l->a, otherwise) = emit(l, CO_jump, 0, 0, 0, n);
    undo(l, mark);
    patch_all(l, &fails);
  } else if (n->kind == AST_binary && compares(n->op)) {
    Operands p = operands(l, n);
    u32 i;
    if (p.kind == KD_any) {
      u32 t = temp(l);
      emit(l, CO_binary, t, p.x.reg, p.y.reg, n);
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
  if (!changes(n)) {
    condition(l, n, otherwise);
    return;
  }
  u32 top = l->top, t = temp(l);
  LangKind k = into(l, n, t);
  *vec_push(l->a, otherwise) = branch(l, k == KD_bool ? CO_unless_b : CO_unless, t, 0, 0, n);
  l->top = top;
}

/* `and`, `or`: the truth of both. */
static LangKind logical(Lowering *l, Ast *n, u32 dst) {
  Positions fails = {0};
  u32 jumps = l->conditional.n, mark = l->log.n, top = l->top, calls = l->calls;
  bool is_or = n->op == TOK_or;
  test(l, n->a, &fails);
  if (changes(n->a)) mark = l->log.n;
  Merge m = paths_from(l, mark);
  bool dead = l->dead;
  if (is_or) {
    emit(l, CO_bool, dst, 1, 0, n);
  } else {
    InReg y = operand(l, n->b);
    emit(l, y.kind == KD_bool ? CO_move_n : CO_truth, dst, y.reg, 0, n->b);
  }
  u32 end = emit(l, CO_jump, 0, 0, 0, n);
  path_end(l, &m);
  l->dead = dead;
  l->top = top;
  patch_all(l, &fails);
  if (is_or) {
    InReg y = operand(l, n->b);
    emit(l, y.kind == KD_bool ? CO_move_n : CO_truth, dst, y.reg, 0, n->b);
  } else {
    emit(l, CO_bool, dst, 0, 0, n);
  }
  path_end(l, &m);
  paths_known(l, &m);
  l->dead = dead;
  if (calls != l->calls) forget_shared(l);
  patch(l, end, l->ins.n);
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
  emit(l, op, dst, x.reg, 0, n);
  return !negates ? KD_bool : op == CO_unary ? KD_any : x.kind;
}

static LangKind cast(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  InReg x = operand(l, n->a);
  char to = *str_text(l->c, n->name);
  l->top = top;
  if (to == 'i' && x.kind == KD_int) {
    emit(l, CO_move_n, dst, x.reg, 0, n);
    return KD_int;
  }
  emit(l, to == 'i' && x.kind == KD_float ? CO_to_int : CO_cast, dst, x.reg, 0, n);
  return KD_any; /* checked */
}

static LangKind convert(Lowering *l, const Ast *n, u32 dst, LangKind k, const LangType *to) {
  if (to->kind == KD_any || to->kind == KD_none || k == to->kind) return k;
  if (to->kind == KD_float && k == KD_int) {
    emit(l, CO_to_float, dst, dst, 0, n);
    return KD_float;
  }
  *vec_push(l->a, &l->code->type) = to;
  emit(l, CO_convert, dst, l->code->type.n - 1, 0, n);
  return KD_any;
}

/* ---- arrays and structs ---- */

static LangKind list(Lowering *l, const Ast *n, u32 dst) {
  u32 t = temp(l), top = l->top, x = temp(l);
  emit(l, CO_list, t, n->kind == AST_array ? KD_array : KD_tuple, n->nkid, n);
  for (u32 i = 0; i < n->nkid; i++) {
    into(l, n->kid[i], x);
    emit(l, CO_put, t, i, x, n);
  }
  emit(l, CO_set, dst, t, 0, n);
  l->top = top - 1;
  return KD_any;
}

static LangKind record(Lowering *l, const Ast *n, u32 dst) {
  u32 t = temp(l), top = l->top, x = temp(l);
  emit(l, CO_record, t, 0, 0, n);
  for (u32 i = 0; i < n->nkid; i++) {
    into(l, n->kid[i]->a, x);
    emit(l, CO_put, t, n->kid[i]->slot, x, n);
  }
  emit(l, CO_set, dst, t, 0, n);
  l->top = top - 1;
  return KD_any;
}

static LangKind repeat(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, x = temp(l), times = temp(l);
  into(l, n->a, x);
  into(l, n->b, times);
  emit(l, CO_repeat, dst, x, times, n);
  l->top = top;
  return KD_any;
}

/* Evaluates the bounds into two consecutive temps. Returns the first. */
static u32 range_bounds(Lowering *l, const Ast *n) {
  u32 lo = temp(l), hi = temp(l);
  if (into(l, n->a, lo) != KD_int || n->a->to) emit(l, CO_bound, lo, 0, 0, n->a);
  if (into(l, n->b, hi) != KD_int || n->b->to) emit(l, CO_bound, hi, 0, 0, n->b);
  if (n->op == TOK_upto) emit(l, CO_upto, hi, 0, 0, n);
  return lo;
}

static LangKind range(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, lo = range_bounds(l, n);
  emit(l, CO_range, dst, lo, lo + 1, n);
  l->top = top;
  return KD_any;
}

/* True for an index that cannot fail and is in place: a variable or a literal. */
static bool is_plain_index(const Lowering *l, const Ast *n) {
  if (n->to) return false;
  if (is_small(n)) return true;
  if (n->kind == AST_binary && (n->op == TOK_add || n->op == TOK_sub))
    return is_plain_index(l, n->a) && is_plain_index(l, n->b);
  i64 slot = n->kind == AST_name ? plain_variable(l, n) : -1;
  return slot >= 0 && known(l, (u32)slot) == KD_int;
}

static CodeOp of_kind(CodeOp i, LangKind k) {
  return (CodeOp)(i + (k == KD_float ? 1 : k == KD_bool ? 2 : 0));
}

static LangKind element(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  LangKind want = n->to ? KD_any : promised(n);
  const Ast *row = n->a;
  if (row->kind == AST_index && !row->to && row->a->kind == AST_name && !row->a->to &&
      is_number(want) && plain_variable(l, row->a) >= 0 && is_plain_index(l, row->b) &&
      is_plain_index(l, n->b)) {
    InReg of = variable(l, row->a, (u32)plain_variable(l, row->a));
    InReg i = operand(l, row->b), j = operand(l, n->b);
    emit(l, of_kind(CO_index2_i, want), dst, of.reg, i.reg, n);
    emit(l, CO_more, j.reg, 0, 0, n);
    l->top = top;
    return want;
  }
  if (is_global(n->a) && !n->a->to && plain_variable(l, n->a) < 0 &&
      n->a->place[0].slot < 1u << 24) {
    InReg i = operand(l, n->b);
    bool typed = is_number(want) && i.kind == KD_int;
    emit(l, typed ? of_kind(CO_gindex_i, want) : CO_gindex, dst,
         n->a->place[0].file << 24 | n->a->place[0].slot, i.reg, n);
    l->top = top;
    return typed ? want : KD_any;
  }
  InReg of = operand(l, n->a), i = operand(l, n->b);
  bool typed = is_number(want) && i.kind == KD_int && !is_temp(l, of.reg);
  emit(l, typed ? of_kind(CO_index_i, want) : CO_index, dst, of.reg, i.reg, n);
  l->top = top;
  return typed ? want : KD_any;
}

static LangKind item(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, t = temp(l);
  into(l, n->a, t);
  emit(l, CO_item, t, (u32)n->i, (u32)((u64)n->i >> 32), n);
  emit(l, CO_set, dst, t, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind member(Lowering *l, const Ast *n, u32 dst) {
  if (n->nplace) return name(l, n, dst);
  u32 top = l->top;
  InReg x = operand(l, n->a);
  emit(l, CO_member, dst, x.reg, 0, n);
  l->top = top;
  return KD_any;
}

/* Evaluates the indices of an lvalue into consecutive temps. Returns the first. */
static u32 indices(Lowering *l, const Ast *n) {
  VEC(const Ast *) step = {0};
  u32 first = l->nvar + l->top;
  for (; n->kind == AST_index || n->kind == AST_member; n = n->a) *vec_push(l->a, &step) = n;
  for (u32 i = step.n; i-- > 0;)
    if (step.at[i]->kind == AST_index) into(l, step.at[i]->b, temp(l));
  return first;
}

static LangKind change(Lowering *l, const Ast *n, u32 dst) {
  bool pushes = builtin_fn[n->builtin - 1] == bi_push;
  u32 top = l->top, v = pushes ? temp(l) : 0, to = temp(l);
  if (pushes) into(l, n->kid[1], v);
  if (is_lvalue(n->kid[0])) {
    u32 i = indices(l, n->kid[0]);
    emit(l, pushes ? CO_push : CO_pop, to, i, v, n);
  } else {
    into(l, n->kid[0], to);
    emit(l, pushes ? CO_push_temp : CO_pop_temp, to, v, 0, n);
  }
  if (dst == NOWHERE)
    emit(l, CO_drop, to, 1, 0, n);
  else
    emit(l, CO_set, dst, to, 0, n);
  l->top = top;
  return KD_any;
}

/* ---- calls ---- */

/* The first of the temps of a call: dst itself, if it is the last temp. */
static u32 call_base(Lowering *l, u32 dst) {
  return l->top && dst == l->nvar + l->top - 1 ? dst : temp(l);
}

static LangKind built_in(Lowering *l, const Ast *n, u32 dst) {
  BuiltinFn *f = builtin_fn[n->builtin - 1];
  u32 top = l->top;
  if (f == bi_len && n->nkid == 1) {
    InReg x = operand(l, n->kid[0]);
    u32 to = dst == NOWHERE ? temp(l) : dst;
    emit(l, CO_len, to, x.reg, 0, n);
    l->top = top;
    return KD_any;
  }
  LangKind k = n->nkid == 2 ? promised(n->kid[0]) : KD_any;
  if ((f == bi_min || f == bi_max) && (k == KD_int || k == KD_float) && promised(n->kid[1]) == k &&
      dst != NOWHERE) {
    InReg x = stable(l, n->kid[0], n->kid[1]), y = operand(l, n->kid[1]);
    CodeOp op = f == bi_min ? CO_min_i : CO_max_i;
    bool typed = x.kind == k && y.kind == k;
    if (typed) {
      emit(l, (CodeOp)(op + (k == KD_float ? CO_min_f - CO_min_i : 0)), dst, x.reg, y.reg, n);
      l->top = top;
      return k;
    }
    l->top = top;
  }
  u32 base = call_base(l, dst);
  l->top = base - l->nvar + 1;
  for (u32 i = 0; i < n->nkid; i++) into(l, n->kid[i], i ? temp(l) : base);
  emit(l, CO_builtin, base, n->nkid, (u32)n->builtin - 1, n);
  if (f == bi_autograd) forget_shared(l);
  if (dst == NOWHERE)
    emit(l, CO_drop, base, 1, 0, n);
  else if (dst != base)
    emit(l, CO_set, dst, base, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind call(Lowering *l, const Ast *n, u32 dst) {
  if (is_change(n)) return change(l, n, dst);
  if (n->builtin) return built_in(l, n, dst);
  u32 top = l->top, base = call_base(l, dst);
  bool method = n->a->kind == AST_member && !n->a->nplace;
  for (u32 i = 0; i < n->nkid; i++) into(l, n->kid[i], temp(l));
  i64 slot = !method && l->in && n->a->kind == AST_name && !n->a->to ? plain_variable(l, n->a) : -1;
  if (slot >= 0)
    emit(l, CO_borrow, base, variable(l, n->a, (u32)slot).reg, 0, n->a);
  else
    into(l, method ? n->a->a : n->a, base);
  emit(l, method ? CO_method : CO_call, base, n->nkid, slot >= 0, n);
  forget_shared(l);
  if (dst == NOWHERE)
    emit(l, CO_drop, base, 1, 0, n);
  else if (dst != base)
    emit(l, CO_set, dst, base, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind closure(Lowering *l, const Ast *n, u32 dst) {
  *vec_push(l->a, &l->code->closure) = n;
  emit(l, CO_closure, dst, l->code->closure.n - 1, 0, n);
  return KD_any;
}

/* ---- variables ---- */

/* Reads the variable that was set, if the value is used. */
static LangKind value_of(Lowering *l, const Ast *n, u32 slot, u32 dst) {
  LangKind k = known(l, slot);
  if (dst != NOWHERE) emit(l, is_number(k) ? CO_move_n : CO_move, dst, slot, 0, n);
  return k;
}

static bool may_write_directly(const Ast *n) {
  return n->kind != AST_match && n->kind != AST_while && n->kind != AST_for && n->kind != AST_block;
}

/* Sets the variable to the value of n. */
static void define(Lowering *l, u32 slot, Ast *n) {
  u32 top = l->top;
  LangKind k;
  if (l->direct[slot] && may_write_directly(n)) {
    k = into(l, n, slot);
  } else {
    u32 t = temp(l);
    k = into(l, n, t);
    emit(l, CO_set, slot, t, 0, n);
  }
  know(l, slot, k);
  l->top = top;
}

/* Sets the variable to temp t. */
static LangKind define_temp(Lowering *l, const Ast *n, u32 t, u32 dst) {
  emit(l, CO_set, n->slot, t, 0, n);
  know(l, n->slot, KD_any);
  l->top--;
  return value_of(l, n, n->slot, dst);
}

static LangKind assign(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  const Ast *to = n->a;
  if (!is_lvalue(to)) {
    into(l, n->b, temp(l));
    eval_fail(l->ev, to, "Invalid assignment target");
  }
  i64 slot = to->kind == AST_name ? plain_variable(l, to) : -1;
  if (slot >= 0 && known(l, (u32)slot) != KD_none) {
    define(l, (u32)slot, n->b);
    return value_of(l, n, (u32)slot, dst);
  }
  u32 v = temp(l);
  LangKind k = into(l, n->b, v);
  if (dst != NOWHERE) emit(l, CO_move, dst, v, 0, n);
  const Ast *base = to->kind == AST_index ? to->a : NULL;
  const Ast *row = base && base->kind == AST_index ? base : NULL;
  if (row) base = row->a;
  slot = base && base->kind == AST_name ? plain_variable(l, base) : -1;
  if (slot >= 0 && known(l, (u32)slot) != KD_none && is_number(k) && promised(to->b) == KD_int &&
      (!row || (is_plain_index(l, row->b) && is_plain_index(l, to->b)))) {
    InReg i = operand(l, row ? row->b : to->b);
    if (row) {
      InReg j = operand(l, to->b);
      emit(l, CO_store2_n, (u32)slot, i.reg, v, n);
      emit(l, CO_more, j.reg, 0, 0, n);
    } else {
      emit(l, CO_store_n, (u32)slot, i.reg, v, n);
    }
  } else if (is_global(to)) {
    emit(l, CO_set_global, v, to->place[0].file, to->place[0].slot, n);
  } else {
    u32 i = indices(l, to);
    emit(l, CO_store, i, v, 0, n);
  }
  if (to->kind == AST_name && to->nplace == 1 && local_slot(l, &to->place[0]) >= 0)
    know(l, (u32)local_slot(l, &to->place[0]), k);
  l->top = top;
  return k;
}

/* ---- control flow ---- */

static LangKind nothing(Lowering *l, const Ast *n, u32 dst) {
  if (dst != NOWHERE) emit(l, CO_null, dst, 0, 0, n);
  return KD_any;
}

static LangKind block(Lowering *l, const Ast *n, u32 dst) {
  LangKind k = KD_any;
  if (!n->nkid) return nothing(l, n, dst);
  for (u32 i = 0; i < n->nkid; i++) {
    u32 top = l->top;
    k = into(l, n->kid[i], i + 1 == n->nkid ? dst : NOWHERE);
    l->top = top;
  }
  return k;
}

static LangKind choice(Lowering *l, const Ast *n, u32 dst) {
  Positions otherwise = {0};
  u32 jumps = l->conditional.n, end = 0, calls = l->calls;
  bool changed = changes(n->a);
  u32 mark = l->log.n;
  test(l, n->a, &otherwise);
  if (changed) mark = l->log.n;
  Merge m = paths_from(l, mark);
  bool dead = l->dead;
  LangKind k = block(l, n->b, dst), other = KD_any;
  bool first_dead = l->dead, needs = n->c || dst != NOWHERE;
  if (needs) end = emit(l, CO_jump, 0, 0, 0, n);
  path_end(l, &m);
  l->dead = dead;
  patch_all(l, &otherwise);
  if (n->c)
    other = n->c->kind == AST_block ? block(l, n->c, dst) : into(l, n->c, dst);
  else
    nothing(l, n, dst);
  bool second_dead = l->dead;
  path_end(l, &m);
  paths_known(l, &m);
  l->dead = first_dead && second_dead;
  if (calls != l->calls) forget_shared(l);
  if (needs) patch(l, end, l->ins.n);
  paths_meet(l, jumps);
  return first_dead ? other : second_dead ? k : meet(k, other);
}

static LangKind match(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top, v = temp(l), row = l->code->match.n, narm = 0;
  Positions ends = {0};
  bool dead = l->dead, open = true;
  LangKind kv = into(l, n->a, v), k = KD_none;
  u32 *arm = NEWS(l->a, u32, n->nkid + 1), calls = l->calls;
  Merge m = paths_from(l, l->log.n);
  *vec_push(l->a, &l->code->match) = (CodeMatch){0};
  emit(l, CO_match, v, row, 0, n);
  for (u32 i = 0; open && i < n->nkid; i++) {
    const Ast *x = n->kid[i];
    u32 fits = 0;
    bool binds = x->a && x->a->kind == AST_name;
    open = x->a && !binds;
    if (open) fits = emit(l, CO_fits, v, 0, 0, x->a);
    arm[narm++] = l->ins.n;
    l->dead = dead;
    clear_scope(l, x);
    if (binds) {
      emit(l, CO_set, x->a->slot, v, 0, x->a);
      know(l, x->a->slot, kv);
    } else {
      emit(l, CO_drop, v, 1, 0, x);
    }
    LangKind got = x->b->kind == AST_block ? block(l, x->b, dst) : into(l, x->b, dst);
    clear_scope(l, x);
    if (!l->dead) k = k == KD_none ? got : meet(k, got);
    path_end(l, &m);
    *vec_push(l->a, &ends) = emit(l, CO_jump, 0, 0, 0, n);
    if (open) patch(l, fits, l->ins.n);
  }
  emit(l, CO_no_fit, v, 0, 0, n);
  patch_all(l, &ends);
  paths_known(l, &m);
  l->dead = dead || !m.paths;
  if (calls != l->calls) forget_shared(l);
  l->code->match.at[row] = (CodeMatch){arm, narm, l->ins.n};
  l->top = top;
  return k == KD_none ? KD_any : k;
}

/* ---- loops; the value is that of the last statement in the last iteration, null after a break
 * ---- */

static void loop_begin(Lowering *l, const Ast *n, LowerLoop *loop) {
  *loop = (LowerLoop){.outer = l->loop, .temps = l->top};
  if (n->kind == AST_while) each_assigned(l, n->a, forget_kind);
  each_assigned(l, n->b, forget_kind);
  forget_shared(l);
  l->loop = loop;
}

static void loop_body(Lowering *l, const Ast *n, u32 dst) {
  u32 top = l->top;
  if (dst != NOWHERE) {
    u32 t = temp(l);
    emit(l, CO_null, dst, 0, 0, n);
    block(l, n->b, t);
    emit(l, CO_set, dst, t, 0, n);
  } else {
    block(l, n->b, NOWHERE);
  }
  l->top = top;
  patch_all(l, &l->loop->continues);
}

static void loop_end(Lowering *l, LowerLoop *loop, u32 mark, bool dead) {
  patch_all(l, &loop->ends);
  undo(l, mark);
  forget_shared(l);
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
  emit(l, CO_loop, row, 0, 0, n);
  u32 head = l->ins.n, mark = l->log.n;
  test(l, n->a, &fails);
  l->conditional.n = jumps; /* loop tests have no join */
  u32 body = l->ins.n;
  loop_body(l, n, dst);
  u32 next = emit(l, CO_back, head, 0, 0, n);
  patch_all(l, &fails);
  loop_end(l, &loop, mark, dead);
  l->code->loop.at[row] = (CodeLoop){head, body, next, l->ins.n};
  return KD_any;
}

static LangKind loop_for(Lowering *l, const Ast *n, u32 dst) {
  LowerLoop loop;
  bool dead = l->dead, numbers = n->a->kind == AST_range && !n->a->to;
  u32 top = l->top, at = 0;
  nothing(l, n, dst);
  if (numbers) {
    at = range_bounds(l, n->a);
  } else {
    at = temp(l);
    u32 over = temp(l);
    into(l, n->a, over);
  }
  clear_scope(l, n);
  loop_begin(l, n, &loop);
  u32 mark = l->log.n;
  u32 first = emit(l, numbers ? CO_for_first : CO_each_first, at, n->slot, 0, n);
  know(l, n->slot, numbers ? KD_int : KD_any);
  u32 body = l->ins.n;
  loop_body(l, n, dst);
  emit(l, numbers ? CO_for_next : CO_each_next, at, n->slot, body, n);
  patch(l, first, l->ins.n);
  loop_end(l, &loop, mark, dead);
  clear_scope(l, n);
  if (!numbers) emit(l, CO_drop, at + 1, 1, 0, n);
  l->top = top;
  return KD_any;
}

static LangKind leave(Lowering *l, const Ast *n) {
  bool breaks = n->kind == AST_break;
  drop_temps(l, l->loop->temps);
  *vec_push(l->a, breaks ? &l->loop->ends : &l->loop->continues) =
      emit(l, CO_leave, 0, breaks, 0, n);
  l->dead = true;
  return KD_any;
}

static LangKind leave_fn(Lowering *l, Ast *n) {
  u32 live = l->top, t = temp(l);
  if (n->a)
    into(l, n->a, t);
  else
    emit(l, CO_null, t, 0, 0, n);
  if (live) emit(l, CO_drop, l->nvar, live, 0, n);
  emit(l, CO_ret, t, 0, 0, n);
  l->top = live;
  l->dead = true;
  return KD_any;
}

/* ---- models and modules ---- */

static LangKind class(Lowering *l, const Ast *n, u32 dst) {
  u32 t = temp(l), top = l->top;
  emit(l, CO_class, t, 0, 0, n);
  for (u32 i = 0; i < n->nkid; i++) {
    const Ast *layer = n->kid[i];
    u32 count = 0, base = l->nvar + l->top;
    bool sized = false;
    for (u32 k = 0; k < layer_count; k++)
      sized |= layer_info[k].make && str_is(l->c, layer->a->name, layer_info[k].name);
    for (; count < layer->nkid && layer->kid[count]->kind != AST_named; count++)
      if (sized) into(l, layer->kid[count], temp(l));
    emit(l, CO_layer, t, base, count, layer);
    l->top = top;
  }
  return define_temp(l, n, t, dst);
}

static LangKind import(Lowering *l, const Ast *n, u32 dst) {
  u32 t = temp(l);
  if (n->module) {
    emit(l, CO_module, 0, 0, 0, n);
    emit(l, CO_null, t, 0, 0, n);
    forget_shared(l);
  } else {
    emit(l, CO_network, t, 0, 0, n);
  }
  return define_temp(l, n, t, dst);
}

/* ---- all nodes ---- */

static LangKind literal(Lowering *l, const Ast *n, u32 dst) {
  switch (n->kind) {
  case AST_int:
    if (n->i == (i32)n->i)
      emit(l, CO_int, dst, (u32)(i32)n->i, 0, n);
    else
      emit(l, CO_const, dst, constant(l, value_int(n->i)), 0, n);
    return KD_int;
  case AST_float: emit(l, CO_const, dst, constant(l, value_float(n->f)), 0, n); return KD_float;
  case AST_bool: emit(l, CO_bool, dst, (u32)n->i, 0, n); return KD_bool;
  default: {
    LangValue s = value_string(l->ev, str_text(l->c, n->name), str_len(l->c, n->name));
    emit(l, CO_string, dst, constant(l, s), 0, n);
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
  case AST_block: return block(l, n, dst);
  case AST_let: define(l, n->slot, n->a); return value_of(l, n, n->slot, dst);
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
    closure(l, n, temp(l));
    return define_temp(l, n, l->nvar + l->top - 1, dst);
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
  case AST_named: return into(l, n->a, dst);
  default: eval_fail(l->ev, n, "this is not supported yet");
  }
}

static bool takes_nowhere(const Ast *n) {
  return is_statement(n) || n->kind == AST_match || n->kind == AST_call;
}

/* Evaluates n into dst, which is a temp or a variable that numbers are written to. Returns the
 * proven kind. */
static LangKind into(Lowering *l, Ast *n, u32 dst) {
  u32 top = l->top;
  if (dst == NOWHERE && takes_nowhere(n) && !n->to) {
    plain(l, n, NOWHERE);
    l->top = top;
    return KD_any;
  }
  u32 to = dst == NOWHERE ? temp(l) : dst;
  LangKind k = plain(l, n, to), want = promised(n);
  if (n->to) k = convert(l, n, to, k, n->to);
  if (is_number(want) && k != want) {
    emit(l, CO_check, to, want, 0, n);
    k = want;
  }
  if (dst == NOWHERE) emit(l, CO_drop, to, 1, 0, n);
  l->top = top;
  return k;
}

/* A register with the value of n: a variable, or a new temp. */
static InReg operand(Lowering *l, Ast *n) {
  i64 slot = n->to ? -1 : plain_variable(l, n);
  if (slot >= 0) return variable(l, n, (u32)slot);
  u32 t = temp(l);
  LangKind k = into(l, n, t);
  return (InReg){t, k};
}

/* ---- functions and files ---- */

static void begin(Lowering *l, Eval *ev, const LangFn *in, const Script *s, u32 nslot) {
  RegCode *code = NEW(&ev->c->keep, RegCode);
  *l = (Lowering){.ev = ev, .c = ev->c, .a = &ev->c->keep, .code = code, .in = in, .s = s};
  code->ev = ev;
  code->file = s->number;
  l->nvar = in && in->ast->nkid > nslot ? in->ast->nkid : nslot;
  l->known = NEWS(l->a, LangKind, l->nvar + 1);
  l->met_at = NEWS(l->a, u32, l->nvar + 1);
  l->seen = NEWS(l->a, u32, l->nvar + 1);
  l->stamp = NEWS(l->a, u32, l->nvar + 1);
  l->direct = NEWS(l->a, bool, l->nvar + 1);
  memset(l->direct, 1, l->nvar);
}

/* Scales registers and makes jumps relative. */
static RegCode *finish(Lowering *l) {
  RegCode *code = l->code;
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
  for (u32 i = 0; i < code->n; i++) {
    Ins *x = &code->ins[i];
    u32 *field[] = {&x->a, &x->b, &x->c};
    for (u32 k = 0; k < 3; k++) {
      char how = code_operands[x->op][k];
      if (how == 'j') *field[k] -= i;
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
    bool alone = is_number(k) || k == KD_string || k == KD_fn || k == KD_object;
    code->quick[i] = (u8)(alone ? k : k == KD_any ? KD_none : KD_any);
    l.known[i] = KD_any;
    if (n->kid[i]->slot != i) { /* a parameter of the same name came before */
      emit(&l, CO_set, n->kid[i]->slot, i, 0, n);
      l.known[i] = KD_none;
    }
    l.known[n->kid[i]->slot] = is_number(k) ? k : KD_any;
    note_direct(&l, n->kid[i]->slot, k);
  }
  each_assigned(&l, n->a, note_direct);
  u32 t = temp(&l);
  block(&l, n->a, t);
  emit(&l, CO_ret, t, 0, 0, n);
  fn->code = finish(&l);
  return fn->code;
}

const RegCode *code_of_file(Eval *ev, const Script *s, u32 first, bool valued) {
  Lowering l;
  const Ast *root = s->root;
  begin(&l, ev, NULL, s, s->main->nslot);
  each_assigned(&l, root, note_direct);
  for (u32 i = 0; !first && i < root->nkid; i++) {
    const Ast *n = root->kid[i];
    if (n->kind != AST_fn || !n->name) continue;
    *vec_push(l.a, &l.code->closure) = n;
    emit(&l, CO_hoist, n->slot, l.code->closure.n - 1, 0, n);
    know(&l, n->slot, KD_any);
  }
  u32 t = temp(&l);
  if (!valued || first >= root->nkid) emit(&l, CO_null, t, 0, 0, root);
  for (u32 i = first; i < root->nkid; i++)
    into(&l, root->kid[i], valued && i + 1 == root->nkid ? t : NOWHERE);
  emit(&l, CO_ret, t, 0, 0, root);
  return finish(&l);
}
