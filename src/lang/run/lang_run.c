/* lang_run.c: executes register code; see lang_code.h.
 *
 * In: a frame. Out: the effects and the result of its code. Method: threaded dispatch. Each
 * instruction has one handler that relies on proven kinds, and one that tests kinds, if they differ
 * (lang_code.def). A frame uses the second table if its values may differ from their static kinds,
 * or after a `check` failed. In a dry run, conditions may be unknown: dry_paths.c executes all
 * paths as ranges of instructions.
 */
/* Each handler needs a separate jump, which branch predictors tell apart. gcc merges the jumps,
 * and global common subexpressions keep it from duplicating them again. */
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-gcse")
#endif

#include "lang/run/lang_code.h"
#include "lang/run/lang_object.h"

#include <math.h>
#include <string.h>

static inline void put(Eval *ev, LangValue *to, LangValue v) {
  LangValue old = *to;
  *to = v;
  if (value_is_boxed(&old)) heap_drop(ev, old.u.box);
}

static inline LangValue take(LangValue *d) {
  LangValue v = *d;
  d->kind = KD_none;
  return v;
}

static inline LangValue share(const LangValue *d) {
  if (value_is_boxed(d)) d->u.box->refs++;
  return *d;
}

static inline void drop(Eval *ev, LangValue *d) {
  if (value_is_boxed(d)) heap_drop(ev, d->u.box);
  d->kind = KD_none;
}

#define OF_INT(x)   ((LangValue){KD_int, .u = {.i = (x)}})
#define OF_FLOAT(x) ((LangValue){KD_float, .u = {.f = (x)}})
#define OF_BOOL(x)  ((LangValue){KD_bool, .u = {.i = (x)}})

/* Writes a number in two stores of 8 bytes, which later loads of 8 bytes can be forwarded from. */
static inline void put_int(LangValue *to, LangKind kind, i64 x) {
  to->kind = kind;
  to->open = UNK_none;
  to->u.i = x;
}

static inline void put_float(LangValue *to, double x) {
  to->kind = KD_float;
  to->open = UNK_none;
  to->u.f = x;
}

static inline void copy_number(LangValue *to, const LangValue *from) {
  i64 x = from->u.i;
  to->kind = from->kind;
  to->open = UNK_none;
  to->u.i = x;
}

/* ---- operators of any kinds ---- */

static LangValue binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y) {
  LangValue open;
  if (ev->dry) {
    dry_require_known(ev, n->a, x);
    dry_require_known(ev, n->b, y);
  }
  ev->at = n;
  if (ev->dry && dry_binary(ev, n, x, y, &open)) return open;
  if (ev->dims && size_binary(ev, n, x, y, &open)) return open;
  return value_binary(ev, n, x, y);
}

static LangValue unary(Eval *ev, const Ast *n, const LangValue *x) {
  if (value_is_unknown(ev, x)) return value_unknown(ev, n->op == TOK_not ? KD_bool : x->kind);
  return n->op == TOK_not ? value_bool(!value_is_true(x)) : value_negate(ev, n, x);
}

static LangValue element(Eval *ev, const Ast *n, const LangValue *v, const LangValue *i) {
  LangValue open;
  ev->at = n;
  if (ev->dry && dry_element(ev, n, v, i, &open)) return open;
  if (!ev->dry && value_is_unknown(ev, i)) dry_refuse(ev, n->b, "an index");
  return value_index(ev, n, v, i);
}

/* The quotient x / y, rounded to zero, by a power of two. */
static inline i64 power_quotient(i64 x, u32 y) {
  return (x + (x < 0 ? (i64)y - 1 : 0)) >> __builtin_ctz(y);
}

/* Element i of row x of an array. Only numbers are read without being tested by the caller. */
static const LangValue *in_array(const LangValue *d, i64 i) {
  if (d->kind != KD_array || (u64)i >= d->u.list->n) return NULL;
  return &d->u.list->at[i];
}

/* The element of an array with one owner that a number can replace, or NULL. */
static LangValue *own_element(const LangValue *d, i64 i) {
  if (d->kind != KD_array || d->u.list->box.refs != 1 || (u64)i >= d->u.list->n) return NULL;
  return &d->u.list->at[i];
}

static bool fits(Eval *ev, const Ast *pattern, const LangValue *v) {
  /* value of a one-element tensor; parameters are tensors while they are differentiated */
  LangValue number;
  if (v->kind == KD_tensor && v->u.lazy->n == 1 && pattern->kind == AST_float) {
    number = value_float(lazy_data(ev, v->u.lazy)[0]);
    v = &number;
  }
  switch (pattern->kind) {
  case AST_int: return v->kind == KD_int && v->u.i == pattern->i;
  case AST_float: return v->kind == KD_float && fabs(v->u.f - pattern->f) < 0x1p-52;
  case AST_bool: return v->kind == KD_bool && v->u.i == pattern->i;
  default:
    return v->kind == KD_string && v->u.text->n == str_len(ev->c, pattern->name) &&
           !memcmp(v->u.text->at, str_text(ev->c, pattern->name), v->u.text->n);
  }
}

static LangValue built_in(Eval *ev, const Ast *n, LangValue *arg, u32 count, u32 row) {
  LangValue out = {.kind = KD_null};
  for (u32 i = 0; ev->dry && i < count; i++) dry_require_known(ev, n->kid[i], &arg[i]);
  ev->at = n;
  if (!ev->dry || !dry_builtin(ev, n, arg, &out)) builtin_fn[row](ev, arg, count, &out);
  ev->at = n;
  for (u32 i = 0; i < count; i++) drop(ev, &arg[i]);
  return out;
}

/* Calls an object or a gradient. Takes the arguments. */
static LangValue call_other(Eval *ev, const Ast *n, const LangValue *f, LangValue *arg, u32 count) {
  LangValue out;
  if (f->kind == KD_fn) {
    out = call_fn(ev, n, f->u.fn, arg, count);
    for (u32 i = 0; i < count; i++) arg[i].kind = KD_none; /* moved */
  } else if (f->kind == KD_object) {
    out = object_call(ev, n, f->u.thing, arg, count);
    for (u32 i = 0; i < count; i++) drop(ev, &arg[i]);
  } else {
    eval_fail(ev, n, "Cannot call non-function value: %s", value_kind_name(f));
  }
  return out;
}

static LangValue range_bound(Eval *ev, const Ast *n, const LangValue *d) {
  if (value_is_unknown(ev, d)) return ev->dry ? value_unknown(ev, KD_int) : *d;
  return value_int(value_bound(ev, n, d));
}

/* In careful code a bound may have another kind than the checker promised. */
static void need_bound(Eval *ev, const Ast *n, LangValue *d) {
  if (d->kind != KD_int) put(ev, d, range_bound(ev, n, d));
}

/* An integer operand of a float operator; symbolic sizes stay. */
static LangValue promoted(Eval *ev, const LangValue *d) {
  if (d->kind != KD_int || (d->open && !ev->dry)) return share(d);
  return d->open ? value_unknown(ev, KD_float) : value_float((double)d->u.i);
}

/* frame_push for the common case: the registers follow the arguments, and nothing is converted. */
static inline Frame *enter(Eval *ev, Frame *caller, const Ast *at, ClosureObj *fn, LangValue *arg,
                           u32 n) {
  const RegCode *code = fn->fn->code;
  Frame *f = caller->next;
  bool plain = code && f && code->ev == ev && n == code->nparam && !fn->n &&
               ev->regs->end - arg >= (i64)code->nreg && arg >= ev->regs->at &&
               arg < ev->regs->end && ev->depth < EVAL_DEPTH;
  for (u32 i = 0; plain && i < n; i++)
    plain = code->quick[i] == KD_none || arg[i].kind == code->quick[i];
  if (!plain || ev->dims) return frame_push(ev, at, fn, arg, n);
  ev->depth++;
  f->top = ev->top;
  f->regs = ev->regs;
  f->code = code;
  f->self = fn;
  f->call = at;
  f->size.n = 0;
  f->careful = ev->careful || ev->in_grad;
  f->r = arg;
  ev->top = arg + code->nreg;
  for (u32 i = n; i < code->nslot; i++) arg[i].kind = KD_none;
  ev->frame = f;
  return f;
}

static bool enter_any(const CodeExpansion *x, const LangValue *with, LangValue *r) {
  for (u32 i = 0; i < x->ntest; i++)
    if (r[x->test[i].reg].kind != x->test[i].kind) return false;
  for (u32 i = 0; i < x->nwith; i++) {
    LangKind want = x->with[i].kind;
    if (with[i].kind == KD_none || (want != KD_any && with[i].kind != want)) return false;
  }
  for (u32 i = 0; i < x->nunset; i++) r[x->unset[i]].kind = KD_none;
  for (u32 i = 0; i < x->nwith; i++) r[x->with[i].reg] = share(&with[i]);
  return true;
}

/* Prepares the variables of an expanded function, if d is that function, and its values have the
 * expected kinds. */
static inline bool enter_expanded(const Eval *ev, const CodeExpansion *x, const LangValue *d,
                                  LangValue *r) {
  const ClosureObj *f = d->u.fn;
  if (d->kind != KD_fn || f->fn != x->fn || f->grad_of || ev->depth + x->level > EVAL_DEPTH)
    return false;
  if (!x->plain) return enter_any(x, f->with, r);
  const KindOf *want = x->with;
  const LangValue *with = f->with, *end = with + x->nwith;
  for (; with < end; with++, want++) {
    if (with->kind != want->kind) return false;
    copy_number(&r[want->reg], with);
  }
  return true;
}

/* ---- dispatch ---- */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"

#define R(x)     (*(LangValue *)(r + (x)))
#define K(x)     (*(const LangValue *)(k + (x)))
#define AT       ((u32)(i - f->code->ins))
#define NODE     (f->code->at[AT])
#define INT(x)   put_int(&R(i->a), KD_int, (x))
#define BOOL(x)  put_int(&R(i->a), KD_bool, (x))
#define FLOAT(x) put_float(&R(i->a), (x))
#define NEXT     goto *labels[(++i)->op]
#define JUMP(x)  i = (const Ins *)((const char *)i + (i32)(x))
#define GO(x)                                                                                      \
  do {                                                                                             \
    JUMP(x);                                                                                       \
    goto *labels[i->op];                                                                           \
  } while (0)
#define IS_TEMP(x) ((x) >= f->code->nvar * (u32)sizeof(LangValue))
#define DONE(x)                                                                                    \
  do {                                                                                             \
    if (IS_TEMP(x)) drop(ev, &R(x));                                                               \
  } while (0)
#define LOAD                                                                                       \
  do {                                                                                             \
    r = (char *)f->r;                                                                              \
    k = (const char *)f->code->k;                                                                  \
    labels = ev->dry ? dry : f->careful ? careful : fast;                                          \
  } while (0)

static Flow execute(Eval *ev, Frame *f, const Ins *i, const Ins *stop, const Ins *end) {
  static const void *const fast[] = {
#define INS(name, operands, careful) &&L_##name,
#include "lang/run/lang_code.def"
#undef INS
  };
  static const void *const careful[] = {
#define INS(name, operands, careful) &&L_##careful,
#include "lang/run/lang_code.def"
#undef INS
  };
  static const void *const dry[] = {
#define INS(name, operands, careful) &&L_dry,
#include "lang/run/lang_code.def"
#undef INS
  };
  const Frame *const entry = f;
  char *r;
  const char *k;
  const void *const *labels;
  LangValue v;
  LOAD;
  goto *labels[i->op];

L_dry:
  if (i == stop) return FLOW_next;
  if (i == end) return FLOW_end;
  goto *careful[i->op];

deopt: /* the same instruction, without relying on kinds */
  f->careful = true;
  labels = careful;
  goto *labels[i->op];

  /* ---- values ---- */
L_move:
  put(ev, &R(i->a), share(&R(i->b)));
  NEXT;
L_move_n:
  copy_number(&R(i->a), &R(i->b));
  NEXT;
L_move_var:
  put(ev, &R(i->a), share(&R(i->b)));
  DONE(i->b);
  NEXT;
L_set:
  put(ev, &R(i->a), take(&R(i->b)));
  NEXT;
L_borrow:
  if (f->careful)
    put(ev, &R(i->a), share(&R(i->b)));
  else
    R(i->a) = R(i->b);
  NEXT;
L_null:
  put(ev, &R(i->a), (LangValue){.kind = KD_null});
  NEXT;
L_int:
  INT((i32)i->b);
  NEXT;
L_int_var:
  put(ev, &R(i->a), OF_INT((i32)i->b));
  NEXT;
L_bool:
  BOOL(i->b);
  NEXT;
L_bool_var:
  put(ev, &R(i->a), OF_BOOL(i->b));
  NEXT;
L_const:
  copy_number(&R(i->a), &K(i->b));
  NEXT;
L_const_var:
  put(ev, &R(i->a), K(i->b));
  NEXT;
L_string:
  put(ev, &R(i->a), share(&K(i->b)));
  NEXT;
L_drop : {
  LangValue *d = &R(i->a);
  for (u32 n = i->b; n; n--, d++) drop(ev, d);
  NEXT;
}
L_check:
  if (R(i->a).kind == (LangKind)i->b) NEXT;
  if (R(i->a).kind != KD_none) goto deopt; /* fall through */
L_check_careful:
L_held:
  if (R(i->a).kind == KD_none)
    eval_fail(ev, NODE, "Undefined variable: %s", str_text(ev->c, NODE->name));
  if (ev->dry && !IS_TEMP(i->a)) dry_require_known(ev, NODE, &R(i->a));
  NEXT;
L_name:
  put(ev, &R(i->a), variable_value(ev, NODE));
  NEXT;
L_self:
  f->self->box.refs++;
  put(ev, &R(i->a), (LangValue){KD_fn, .u = {.fn = f->self}});
  NEXT;
L_global_n : {
  const Locals *file = ev->file[i->b & 255];
  if (!file || i->c >= file->n || file->at[i->c].kind != (LangKind)(i->b >> 8)) {
    if (file && i->c < file->n && file->at[i->c].kind != KD_none) goto deopt;
    goto L_global;
  }
  copy_number(&R(i->a), &file->at[i->c]);
  NEXT;
}
L_global : {
  const Locals *file = ev->file[i->b & 255];
  if (!file || i->c >= file->n || file->at[i->c].kind == KD_none)
    eval_fail(ev, NODE, "Undefined variable: %s", str_text(ev->c, NODE->name));
  if (ev->dry) dry_require_known(ev, NODE, &file->at[i->c]);
  put(ev, &R(i->a), share(&file->at[i->c]));
  NEXT;
}
L_set_global : {
  Locals *file = ev->file[i->b];
  if (!file || i->c >= file->n || file->at[i->c].kind == KD_none)
    eval_fail(ev, NODE->a, "Cannot assign to undefined variable: %s",
              str_text(ev->c, NODE->a->name));
  put(ev, &file->at[i->c], take(&R(i->a)));
  NEXT;
}

/* ---- operators ---- */
#define BY_FORM(name, ints, floats)                                                                \
  L_##name##_i : {                                                                                 \
    i64 x = R(i->b).u.i, y = R(i->c).u.i;                                                          \
    ints;                                                                                          \
    NEXT;                                                                                          \
  }                                                                                                \
  L_##name##_ik : {                                                                                \
    i64 x = R(i->b).u.i, y = (i32)i->c;                                                            \
    ints;                                                                                          \
    NEXT;                                                                                          \
  }                                                                                                \
  L_##name##_il : {                                                                                \
    i64 x = (i32)i->c, y = R(i->b).u.i;                                                            \
    ints;                                                                                          \
    NEXT;                                                                                          \
  }                                                                                                \
  L_##name##_f : {                                                                                 \
    double x = R(i->b).u.f, y = R(i->c).u.f;                                                       \
    floats;                                                                                        \
    NEXT;                                                                                          \
  }                                                                                                \
  L_##name##_fk : {                                                                                \
    double x = R(i->b).u.f, y = K(i->c).u.f;                                                       \
    floats;                                                                                        \
    NEXT;                                                                                          \
  }                                                                                                \
  L_##name##_fl : {                                                                                \
    double x = K(i->c).u.f, y = R(i->b).u.f;                                                       \
    floats;                                                                                        \
    NEXT;                                                                                          \
  }
  BY_FORM(add, INT((i64)((u64)x + (u64)y)), FLOAT(x + y))
  BY_FORM(sub, INT((i64)((u64)x - (u64)y)), FLOAT(x - y))
  BY_FORM(mul, INT((i64)((u64)x * (u64)y)), FLOAT(x * y))
  BY_FORM(lt, BOOL(x < y), BOOL(x < y))
  BY_FORM(le, BOOL(x <= y), BOOL(x <= y))
  BY_FORM(gt, BOOL(x > y), BOOL(x > y))
  BY_FORM(ge, BOOL(x >= y), BOOL(x >= y))
  BY_FORM(eq, BOOL(x == y), BOOL(x == y))
  BY_FORM(ne, BOOL(x != y), BOOL(x != y))
#undef BY_FORM
  /* Division by 0 fails; -1 is special, because the quotient may overflow. */
#define DIVIDE(to, x_, y_, how)                                                                    \
  {                                                                                                \
    to x = x_, y = y_;                                                                             \
    if (y == 0) goto L_binary_careful;                                                             \
    how;                                                                                           \
    NEXT;                                                                                          \
  }
#define DIVIDE_INTS(name, how)                                                                     \
  L_##name##_i : DIVIDE(i64, R(i->b).u.i, R(i->c).u.i, INT(how)) L_##name##_ik                     \
      : DIVIDE(i64, R(i->b).u.i, (i32)i->c, INT(how)) L_##name##_il                                \
      : DIVIDE(i64, (i32)i->c, R(i->b).u.i, INT(how))
  DIVIDE_INTS(div, y == -1 ? (i64)(0 - (u64)x) : x / y)
  DIVIDE_INTS(mod, y == -1 ? 0 : x % y)
L_div_f:
  DIVIDE(double, R(i->b).u.f, R(i->c).u.f, FLOAT(x / y))
L_div_fk:
  DIVIDE(double, R(i->b).u.f, K(i->c).u.f, FLOAT(x / y))
L_div_fl:
  DIVIDE(double, K(i->c).u.f, R(i->b).u.f, FLOAT(x / y))
L_binary:
L_binary_careful : {
  u32 op = code_general(i->op);
  u32 form = op >= CO_mod_i ? op == CO_binary ? 0 : op - CO_mod_i : (op - CO_add_i) % 6;
  LangValue whole = OF_INT((i32)i->c);
  const LangValue *x = &R(i->b), *y = form == 0 || form == 3 ? &R(i->c)
                                      : form < 3             ? &whole
                                                             : &K(i->c);
  bool swapped = form == 2 || form == 5;
  v = swapped ? binary(ev, NODE, y, x) : binary(ev, NODE, x, y);
  DONE(i->b);
  if (form == 0 || form == 3) DONE(i->c);
  put(ev, &R(i->a), v);
  NEXT;
}
L_neg_i:
  INT((i64)(0 - (u64)R(i->b).u.i));
  NEXT;
L_neg_f:
  FLOAT(-R(i->b).u.f);
  NEXT;
L_not_b:
  BOOL(!R(i->b).u.i);
  NEXT;
L_unary:
  v = unary(ev, NODE, &R(i->b));
  DONE(i->b);
  put(ev, &R(i->a), v);
  NEXT;
L_truth:
  v = value_is_unknown(ev, &R(i->b)) ? value_unknown(ev, KD_bool)
                                     : OF_BOOL(value_is_true(&R(i->b)));
  DONE(i->b);
  put(ev, &R(i->a), v);
  NEXT;
L_promote:
L_to_float:
  FLOAT((double)R(i->b).u.i);
  NEXT;
L_promote_careful:
  v = promoted(ev, &R(i->b));
  DONE(i->b);
  put(ev, &R(i->a), v);
  NEXT;
L_to_float_careful:
  value_convert(ev, NODE, &R(i->a), &type_float);
  NEXT;
L_to_int:
  if (fabs(R(i->b).u.f) < 0x1p62) {
    INT((i64)R(i->b).u.f);
    NEXT;
  } /* fall through */
L_cast:
  v = IS_TEMP(i->b) ? take(&R(i->b)) : share(&R(i->b));
  put(ev, &R(i->a), value_cast(ev, NODE, v, str_text(ev->c, NODE->name)));
  NEXT;
L_convert:
  value_convert(ev, NODE, &R(i->a), f->code->type.at[i->b]);
  NEXT;
L_min_i : {
  i64 x = R(i->b).u.i, y = R(i->c).u.i;
  INT(x <= y ? x : y);
  NEXT;
}
L_max_i : {
  i64 x = R(i->b).u.i, y = R(i->c).u.i;
  INT(x >= y ? x : y);
  NEXT;
}
L_min_f:
  FLOAT(number_minmax(false, R(i->b).u.f, R(i->c).u.f));
  NEXT;
L_max_f:
  FLOAT(number_minmax(true, R(i->b).u.f, R(i->c).u.f));
  NEXT;
L_minmax_careful : {
  LangValue arg[2] = {share(&R(i->b)), share(&R(i->c))};
  DONE(i->b);
  DONE(i->c);
  put(ev, &R(i->a), built_in(ev, NODE, arg, 2, (u32)NODE->builtin - 1));
  NEXT;
}

  /* ---- jumps ---- */
L_jump:
  GO(i->a);
L_back:
  eval_check_stop(ev, NODE);
  GO(i->a);
L_leave:
  if (ev->dry) return i->b ? FLOW_break : FLOW_continue;
  GO(i->a);
L_unless_b:
  if (R(i->a).u.i) NEXT;
  GO(i->b);
L_unless:
  v = share(&R(i->a));
  DONE(i->a);
decide : { /* takes v, the condition of a jump */
  bool open = value_is_unknown(ev, &v), holds = value_is_true(&v);
  drop(ev, &v);
  const Ins *other = i;
  const char *how = code_operands[i->op];
  other = (const Ins *)((const char *)i + (i32)(how[1] == 'j' ? i->b : i->c));
  if (open) {
    if (!ev->dry) dry_refuse(ev, NODE, "a choice");
    u32 join = f->code->join[AT];
    if (join != UINT32_MAX) {
      const u32 path[] = {AT + 1, (u32)(other - f->code->ins)};
      dry_paths(ev, f, path, 2, join);
      i = f->code->ins + join;
      goto *labels[i->op];
    }
    ev->dry->maybe = true;
    holds = other == end;
  }
  if (holds) NEXT;
  i = other;
  goto *labels[i->op];
}
#define BY_FORM(name, op)                                                                          \
  L_unless_##name##_i : if (R(i->a).u.i op R(i->b).u.i) NEXT;                                      \
  GO(i->c);                                                                                        \
  L_unless_##name##_ik : if (R(i->a).u.i op(i32) i->b) NEXT;                                       \
  GO(i->c);                                                                                        \
  L_unless_##name##_f : if (R(i->a).u.f op R(i->b).u.f) NEXT;                                      \
  GO(i->c);                                                                                        \
  L_unless_##name##_fk : if (R(i->a).u.f op K(i->b).u.f) NEXT;                                     \
  GO(i->c);
  BY_FORM(lt, <)
  BY_FORM(le, <=)
  BY_FORM(gt, >)
  BY_FORM(ge, >=)
  BY_FORM(eq, ==)
  BY_FORM(ne, !=)
#undef BY_FORM
L_unless_careful : {
  u32 form = (i->op - CO_unless_lt_i) % 4;
  LangValue whole = OF_INT((i32)i->b);
  v = binary(ev, NODE, &R(i->a), form == 1 ? &whole : form == 3 ? &K(i->b) : &R(i->b));
  DONE(i->a);
  if (form == 0 || form == 2) DONE(i->b);
  goto decide;
}

  /* ---- loops and matches ---- */
L_loop:
  if (ev->dry) {
    const CodeLoop *loop = &f->code->loop.at[i->a];
    if (dry_while(ev, f, loop, NODE) == FLOW_return) return FLOW_return;
    i = f->code->ins + loop->end;
    goto *labels[i->op];
  }
  NEXT;
L_bound:
  put(ev, &R(i->a), range_bound(ev, NODE, &R(i->a)));
  NEXT;
L_upto_careful:
  need_bound(ev, NODE->b, &R(i->a));
L_upto:
  R(i->a).u.i = value_upto(ev, NODE, R(i->a).u.i);
  NEXT;
L_for_first_careful:
  need_bound(ev, NODE->a->a, &R(i->a));
  need_bound(ev, NODE->a->b, &R(i->a) + 1);
L_for_first : {
  LangValue *at = &R(i->a);
  if (ev->dry || at[0].open || at[1].open) {
    const Ins *next = (const Ins *)((const char *)i + (i32)i->c);
    if (dry_for(ev, f, at, &R(i->b), AT + 1, (u32)(next - f->code->ins) - 1) == FLOW_return)
      return FLOW_return;
    i = next;
    goto *labels[i->op];
  }
  if (at[0].u.i >= at[1].u.i) GO(i->c);
  if (value_is_boxed(&R(i->b))) heap_drop(ev, R(i->b).u.box);
  put_int(&R(i->b), KD_int, at[0].u.i++);
  NEXT;
}
L_for_next : {
  LangValue *at = &R(i->a);
  eval_check_stop(ev, NODE);
  if (at[0].u.i >= at[1].u.i) NEXT;
  if (value_is_boxed(&R(i->b))) heap_drop(ev, R(i->b).u.box);
  put_int(&R(i->b), KD_int, at[0].u.i++);
  GO(i->c);
}
L_each_first : {
  LangValue *at = &R(i->a);
  if (at[1].kind != KD_array)
    eval_fail(ev, NODE->a, "Cannot iterate over type %s", value_kind_name(&at[1]));
  if (ev->dry) {
    const Ins *next = (const Ins *)((const char *)i + (i32)i->c);
    if (dry_for(ev, f, at, &R(i->b), AT + 1, (u32)(next - f->code->ins) - 1) == FLOW_return)
      return FLOW_return;
    i = next;
    goto *labels[i->op];
  }
  at[0] = OF_INT(0);
  if (!at[1].u.list->n) GO(i->c);
  put(ev, &R(i->b), share(&at[1].u.list->at[at[0].u.i++]));
  NEXT;
}
L_each_next : {
  LangValue *at = &R(i->a);
  eval_check_stop(ev, NODE);
  if ((u64)at[0].u.i >= at[1].u.list->n) NEXT;
  put(ev, &R(i->b), share(&at[1].u.list->at[at[0].u.i++]));
  GO(i->c);
}
L_match:
  if (value_is_unknown(ev, &R(i->a))) {
    const CodeMatch *m = &f->code->match.at[i->b];
    if (!ev->dry) dry_refuse(ev, NODE->a, "a choice");
    dry_paths(ev, f, m->arm, m->n, m->join);
    drop(ev, &R(i->a));
    i = f->code->ins + m->join;
    goto *labels[i->op];
  }
  NEXT;
L_fits:
  if (fits(ev, NODE, &R(i->a))) NEXT;
  GO(i->b);
L_no_fit:
  eval_fail(ev, NODE, "Non-exhaustive match: value %s didn't match any pattern",
            value_kind_name(&R(i->a)));

  /* ---- arrays and structs ---- */
L_list:
  put(ev, &R(i->a), value_list(ev, (LangKind)i->b, i->c));
  NEXT;
L_record:
  v = value_list(ev, KD_struct, NODE->of->n);
  v.u.list->of = NODE->of;
  put(ev, &R(i->a), v);
  NEXT;
L_put:
  R(i->a).u.list->at[i->b] = take(&R(i->c));
  NEXT;
L_repeat:
  if (value_is_unknown(ev, &R(i->c))) dry_refuse(ev, NODE, "a length");
  v = value_repeat(ev, NODE, take(&R(i->b)), &R(i->c));
  drop(ev, &R(i->c));
  put(ev, &R(i->a), v);
  NEXT;
L_range_careful:
  need_bound(ev, NODE->a, &R(i->b));
  need_bound(ev, NODE->b, &R(i->c));
L_range:
  if (R(i->b).open || R(i->c).open) dry_refuse(ev, NODE, "a range");
  put(ev, &R(i->a), value_range(ev, NODE, R(i->b).u.i, R(i->c).u.i));
  NEXT;
#define BY_KIND(name, want)                                                                        \
  L_index_##name : {                                                                               \
    const LangValue *x = in_array(&R(i->b), R(i->c).u.i);                                          \
    if (!x) goto L_index_checked;                                                                  \
    if (x->kind != want) goto deopt;                                                               \
    copy_number(&R(i->a), x);                                                                      \
    NEXT;                                                                                          \
  }                                                                                                \
  L_gindex_##name : {                                                                              \
    const Locals *file = ev->file[i->b >> 24];                                                     \
    u32 slot = i->b & 0xffffff;                                                                    \
    const LangValue *x = file && slot < file->n ? in_array(&file->at[slot], R(i->c).u.i) : NULL;   \
    if (!x) goto deopt;                                                                            \
    if (x->kind != want) goto deopt;                                                               \
    copy_number(&R(i->a), x);                                                                      \
    NEXT;                                                                                          \
  }                                                                                                \
  L_index2_##name : {                                                                              \
    const LangValue *x = in_array(&R(i->b), R(i->c).u.i);                                          \
    if (x) x = in_array(x, R(i[1].a).u.i);                                                         \
    if (!x || x->kind != want) goto deopt;                                                         \
    copy_number(&R(i->a), x);                                                                      \
    i++;                                                                                           \
    NEXT;                                                                                          \
  }
  BY_KIND(i, KD_int)
  BY_KIND(f, KD_float)
  BY_KIND(b, KD_bool)
#undef BY_KIND
L_index_checked : { /* a negative index, or one that fails */
  static const LangKind wants[] = {KD_int, KD_float, KD_bool};
  v = element(ev, NODE, &R(i->b), &R(i->c));
  if (v.kind != wants[i->op - CO_index_i]) {
    drop(ev, &v);
    goto deopt;
  }
  R(i->a) = v;
  NEXT;
}
L_index:
L_index_careful:
  v = element(ev, NODE, &R(i->b), &R(i->c));
  DONE(i->b);
  DONE(i->c);
  put(ev, &R(i->a), v);
  NEXT;
L_gindex:
L_gindex_careful : {
  const Locals *file = ev->file[i->b >> 24];
  u32 slot = i->b & 0xffffff;
  if (!file || slot >= file->n || file->at[slot].kind == KD_none)
    eval_fail(ev, NODE->a, "Undefined variable: %s", str_text(ev->c, NODE->a->name));
  if (ev->dry) dry_require_known(ev, NODE->a, &file->at[slot]);
  v = element(ev, NODE, &file->at[slot], &R(i->c));
  DONE(i->c);
  put(ev, &R(i->a), v);
  NEXT;
}
L_index2_careful : {
  LangValue row = element(ev, NODE->a, &R(i->b), &R(i->c));
  v = element(ev, NODE, &row, &R(i[1].a));
  drop(ev, &row);
  put(ev, &R(i->a), v);
  i++;
  NEXT;
}
L_more:
  NEXT;
L_len:
  if (R(i->b).kind == KD_array) {
    v = OF_INT((i64)R(i->b).u.list->n);
    DONE(i->b);
    put(ev, &R(i->a), v);
    NEXT;
  } /* fall through */
L_len_careful : {
  LangValue arg = share(&R(i->b));
  DONE(i->b);
  put(ev, &R(i->a), built_in(ev, NODE, &arg, 1, (u32)NODE->builtin - 1));
  NEXT;
}
L_item:
  R(i->a) = value_item(ev, NODE, take(&R(i->a)), NODE->i);
  NEXT;
L_member:
  v = share(value_need_field(ev, NODE, &R(i->b)));
  DONE(i->b);
  put(ev, &R(i->a), v);
  NEXT;
L_store_n : {
  LangValue *x = own_element(&R(i->a), R(i->b).u.i);
  if (!x || value_is_boxed(x)) goto L_store_n_careful;
  copy_number(x, &R(i->c));
  NEXT;
}
L_store_n_careful : {
  LangValue index = share(&R(i->b));
  DONE(i->b);
  LangValue *to = lvalue_place(ev, NODE->a, &index);
  put(ev, to, take(&R(i->c)));
  NEXT;
}
L_store2_n : {
  LangValue *x = own_element(&R(i->a), R(i->b).u.i);
  if (x) x = own_element(x, R(i[1].a).u.i);
  if (!x || value_is_boxed(x)) goto L_store2_n_careful;
  copy_number(x, &R(i->c));
  i++;
  NEXT;
}
L_store2_n_careful : {
  LangValue index[2] = {share(&R(i->b)), share(&R(i[1].a))};
  LangValue *to = lvalue_place(ev, NODE->a, index);
  put(ev, to, take(&R(i->c)));
  i++;
  NEXT;
}
L_store : {
  LangValue *to = lvalue_place(ev, NODE->a, &R(i->a));
  put(ev, to, take(&R(i->b)));
  NEXT;
}
L_push : {
  LangValue *to = lvalue_place(ev, NODE->kid[0], &R(i->b));
  v = value_push(ev, NODE, to, take(&R(i->c)));
  put(ev, &R(i->a), v);
  NEXT;
}
L_pop:
  v = value_pop(ev, NODE, lvalue_place(ev, NODE->kid[0], &R(i->b)));
  put(ev, &R(i->a), v);
  NEXT;
L_push_temp:
  v = value_push(ev, NODE, &R(i->a), take(&R(i->b)));
  put(ev, &R(i->a), v);
  NEXT;
L_pop_temp:
  v = value_pop(ev, NODE, &R(i->a));
  put(ev, &R(i->a), v);
  NEXT;

  /* ---- functions ---- */
L_closure:
  put(ev, &R(i->a), closure_new(ev, f->code->closure.at[i->b]));
  NEXT;
L_hoist:
  if (R(i->a).kind == KD_none) R(i->a) = closure_new(ev, f->code->closure.at[i->b]);
  NEXT;
L_method : { /* a function in a field of a struct, or a method of an object */
  LangValue *on = &R(i->a);
  const LangValue *field = value_field(on, NODE->a);
  for (u32 n = 0; ev->dry && n < i->b; n++) dry_require_known(ev, NODE->kid[n], &on[1 + n]);
  if (field) {
    put(ev, on, share(field));
    goto L_call;
  }
  v = object_method(ev, NODE, on, str_text(ev->c, NODE->a->name), on + 1, i->b);
  for (u32 n = 0; n < i->b; n++) drop(ev, &on[1 + n]);
  put(ev, on, v);
  NEXT;
}
L_call : {
  LangValue *fn = &R(i->a);
  if (ev->dry || fn->kind != KD_fn || fn->u.fn->grad_of) {
    for (u32 n = 0; ev->dry && n < i->b; n++) dry_require_known(ev, NODE->kid[n], &fn[1 + n]);
    v = call_other(ev, NODE, fn, fn + 1, i->b);
    if (i->c & 1 && i->op == CO_call && !f->careful) fn->kind = KD_none;
    put(ev, fn, v);
    NEXT;
  }
  eval_check_stop(ev, NODE);
  ev->depth += i->c >> 1;
  f->pc = i;
  f = enter(ev, f, NODE, fn->u.fn, fn + 1, i->b);
  i = f->code->ins;
  LOAD;
  goto *labels[i->op];
}
L_enter:
  if (enter_expanded(ev, &f->code->expanded.at[i->b], &R(i->a), (LangValue *)r)) GO(i->c);
  NEXT;
L_genter : {
  const Locals *file = ev->file[i->a >> 24];
  u32 slot = i->a & 0xffffff;
  if (file && slot < file->n &&
      enter_expanded(ev, &f->code->expanded.at[i->b], &file->at[slot], (LangValue *)r))
    GO(i->c);
  NEXT;
}
L_enter_careful:
  NEXT;
L_floated:
  if (R(i->a).kind == KD_int) put(ev, &R(i->a), promoted(ev, &R(i->a)));
  NEXT;
L_builtin : {
  LangValue *arg = &R(i->a);
  v = built_in(ev, NODE, arg, i->b, i->c);
  put(ev, arg, v);
  NEXT;
}
L_ret:
  v = take(&R(i->a));
  if (f == entry) {
    ev->result = v;
    return FLOW_return;
  }
  v = frame_result(ev, f, v);
  frame_pop(ev, f);
  f = ev->frame;
  i = f->pc;
  LOAD;
  ev->depth -= i->c >> 1;
  if (i->c & 1 && i->op == CO_call && !f->careful) R(i->a).kind = KD_none;
  put(ev, &R(i->a), v);
  NEXT;

  /* ---- other forms ---- */
#define DO_div_ic  INT(R(i->b).u.i / (i32)i->c)
#define DO_mod_ic  INT(R(i->b).u.i % (i32)i->c)
#define DO_div_ip  INT(power_quotient(R(i->b).u.i, i->c))
#define DO_mod_ip  INT((i64)((u64)R(i->b).u.i - (u64)power_quotient(R(i->b).u.i, i->c) * i->c))
#define DO_add_i   INT((i64)((u64)R(i->b).u.i + (u64)R(i->c).u.i))
#define DO_add_ik  INT((i64)((u64)R(i->b).u.i + (u64)(i32)i->c))
#define DO_sub_i   INT((i64)((u64)R(i->b).u.i - (u64)R(i->c).u.i))
#define DO_mul_i   INT((i64)((u64)R(i->b).u.i * (u64)R(i->c).u.i))
#define DO_mul_il  INT((i64)((u64)R(i->b).u.i * (u64)(i32)i->c))
#define DO_add_f   FLOAT(R(i->b).u.f + R(i->c).u.f)
#define DO_add_fk  FLOAT(R(i->b).u.f + K(i->c).u.f)
#define DO_sub_f   FLOAT(R(i->b).u.f - R(i->c).u.f)
#define DO_mul_f   FLOAT(R(i->b).u.f *R(i->c).u.f)
#define DO_mul_fk  FLOAT(R(i->b).u.f *K(i->c).u.f)
#define DO_mul_fl  FLOAT(K(i->c).u.f *R(i->b).u.f)
#define DO_promote FLOAT((double)R(i->b).u.i)
#define DO_move_n  copy_number(&R(i->a), &R(i->b))
#define DO_set     put(ev, &R(i->a), take(&R(i->b)))
#define INS(name, operands, careful)
#define LIKE(name, base, operands, careful)                                                        \
  L_##name : DO_##name;                                                                            \
  NEXT;
#define PAIR(x, y, operands, careful)                                                              \
  L_##x##__##y : DO_##x;                                                                           \
  i++;                                                                                             \
  goto L_##y;
#include "lang/run/lang_code.def"
#undef INS

  /* ---- models and modules ---- */
L_class:
  put(ev, &R(i->a), class_new(ev, NODE));
  NEXT;
L_layer : {
  LangValue *size = &R(i->b);
  class_add(ev, R(i->a).u.thing, NODE, size, i->c);
  for (u32 n = 0; n < i->c; n++) drop(ev, &size[n]);
  NEXT;
}
L_network:
  put(ev, &R(i->a), net_import(ev, NODE));
  NEXT;
L_module:
  module_run(ev, NODE->module);
  NEXT;
}
#pragma GCC diagnostic pop

Flow run_range(Eval *ev, Frame *f, u32 at, u32 stop) {
  return execute(ev, f, f->code->ins + at, f->code->ins + stop, NULL);
}

Flow run_test(Eval *ev, Frame *f, u32 at, u32 stop, u32 end) {
  return execute(ev, f, f->code->ins + at, f->code->ins + stop, f->code->ins + end);
}
