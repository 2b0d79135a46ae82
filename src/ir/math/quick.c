/* quick.c: the functions of quick.def as lists of steps, for back ends that write them.
 *
 * In: the number of a function. Out: its steps, each an operation on earlier steps. Method: the
 * macros of quick.def expand to calls that append one step and return its number. The evaluation
 * order of C arguments may permute unnamed steps, which changes neither text nor result. */
#include "ir/math/quick.h"

#include <string.h>

static u8 add(Quick *to, QuickStep s) {
  to->step[to->n] = s;
  return (u8)to->n++;
}

static u8 op3(Quick *to, QuickOp op, u8 a, u8 b, u8 c) {
  return add(to, (QuickStep){.op = op, .bits = to->step[a].bits, .n = 3, .arg = {a, b, c}});
}

static u8 op2(Quick *to, QuickOp op, u8 a, u8 b) {
  bool mask = op == QO_lt || op == QO_le || op == QO_eq;
  return add(to, (QuickStep){.op = op, .bits = mask || to->step[a].bits, .n = 2, .arg = {a, b}});
}

static u8 op1(Quick *to, QuickOp op, u8 a) {
  bool bits = op == QO_bits || (op != QO_float && to->step[a].bits);
  return add(to, (QuickStep){.op = op, .bits = bits, .n = 1, .arg = {a}});
}

static u8 shift(Quick *to, QuickOp op, u8 a, u32 by) {
  return add(to, (QuickStep){.op = op, .bits = true, .n = 1, .arg = {a}, .value.i = by});
}

static u8 call(Quick *to, const char *name, u8 a, u8 b, u8 n) {
  return add(to, (QuickStep){.op = QO_call, .n = n, .arg = {a, b}, .text = name});
}

static u8 number(Quick *to, const char *text, float value) {
  return add(to, (QuickStep){.op = QO_const, .text = text, .value.f = (double)value});
}

static u8 pattern(Quick *to, const char *text, u32 value) {
  return add(to, (QuickStep){.op = QO_const, .bits = true, .text = text, .value.i = value});
}

static u8 param(Quick *to, const char *name, bool bits) {
  to->nparam++;
  return add(to, (QuickStep){.op = QO_param, .bits = bits, .name = name});
}

static u8 named(Quick *to, const char *name, u8 step) {
  to->step[step].name = name;
  return step;
}

#define QUICK(name, x)                                                                             \
  static void make_##name(Quick *to) {                                                             \
    u8 x = param(to, #x, false);
#define PART(name, x, u)                                                                           \
  static void make_##name(Quick *to) {                                                             \
    u8 x = param(to, #x, false), u = param(to, #u, true);
#define F(v, x)           u8 v = named(to, #v, x);
#define U(v, x)           u8 v = named(to, #v, x);
#define SET(v, x)         v = named(to, #v, x);
#define RESULT(x)         to->result = x;
#define END               }
#define K(c)              number(to, #c, c)
#define B(c)              pattern(to, #c, c)
#define ADD(a, b)         op2(to, QO_add, a, b)
#define SUB(a, b)         op2(to, QO_sub, a, b)
#define MUL(a, b)         op2(to, QO_mul, a, b)
#define DIV(a, b)         op2(to, QO_div, a, b)
#define NEG(a)            op1(to, QO_neg, a)
#define MAD(a, b, c)      op3(to, QO_mad, a, b, c)
#define LESSER(a, b)      op2(to, QO_lesser, a, b)
#define LARGER(a, b)      op2(to, QO_larger, a, b)
#define BITS(a)           op1(to, QO_bits, a)
#define FLOAT(a)          op1(to, QO_float, a)
#define AND(a, b)         op2(to, QO_and, a, b)
#define OR(a, b)          op2(to, QO_or, a, b)
#define XOR(a, b)         op2(to, QO_xor, a, b)
#define NOT(a)            op1(to, QO_not, a)
#define SHL(a, b)         shift(to, QO_shl, a, b)
#define SHR(a, b)         shift(to, QO_shr, a, b)
#define LT(a, b)          op2(to, QO_lt, a, b)
#define LE(a, b)          op2(to, QO_le, a, b)
#define EQ(a, b)          op2(to, QO_eq, a, b)
#define POW2(a, b)        op2(to, QO_pow2, a, b)
#define FARSIN(a, b)      op2(to, QO_farsin, a, b)
#define FARCOS(a, b)      op2(to, QO_farcos, a, b)
#define CALL1(name, a)    call(to, #name, a, 0, 1)
#define CALL2(name, a, b) call(to, "imk_" #name, a, b, 2)
#include "ir/math/quick.def"

/* Callees come before their callers. */
static const struct {
  const char *name;
  void (*make)(Quick *to);
} functions[] = {
    {"expu", make_expu},
    {"exp_p1u", make_exp_p1u},
    {"exp_nonposu", make_exp_nonposu},
    {"tanhu", make_tanhu},
    {"erfu", make_erfu},
    {"gelu_x2u", make_gelu_x2u},
    {"expq", make_expq},
    {"exp_nonposq", make_exp_nonposq},
    {"exp_p1q", make_exp_p1q},
    {"logq", make_logq},
    {"tanhq", make_tanhq},
    {"erfq", make_erfq},
    {"gelu_x2q", make_gelu_x2q},
    {"imk_waveq", make_waveq},
    {"sinq", make_sinq},
    {"cosq", make_cosq},
};

bool quick_make(Quick *to, u32 number) {
  if (number >= sizeof functions / sizeof *functions) return false;
  *to = (Quick){.name = functions[number].name};
  functions[number].make(to);
  return true;
}

bool quick_find(Quick *to, const char *name) {
  for (u32 i = 0; i < sizeof functions / sizeof *functions; i++)
    if (!strcmp(functions[i].name, name)) return quick_make(to, i);
  return false;
}

bool quick_has(const Quick *q, QuickOp op) {
  bool has = false;
  for (u32 i = 0; i < q->n; i++) has = has || q->step[i].op == op;
  return has;
}

/* ---- C ---- */

static const struct {
  const char *function, *infix;
} words[QO_COUNT] = {
#define QO(name, function, infix) {function, infix},
#include "ir/math/quick_ops.def"
#undef QO
};

const char *quick_function(QuickOp op) {
  return words[op].function;
}

const char *quick_call(QuickOp op) {
  static const char *const name[QO_COUNT] = {
      [QO_add] = "imk_add", [QO_sub] = "imk_sub", [QO_mul] = "imk_mul",
      [QO_lt] = "imk_lt",   [QO_le] = "imk_le",   [QO_eq] = "imk_eq"};
  return name[op];
}

static bool is_compared(QuickOp op) {
  return words[op].infix && words[op].function;
}

/* Omits parentheses for products in sums, and for the same operator on the left. */
static bool is_plain(QuickOp outer, QuickOp inner, bool left) {
  bool sum = outer == QO_add || outer == QO_sub, product = outer == QO_mul || outer == QO_div;
  if (!words[inner].infix || is_compared(inner)) return true;
  if (sum)
    return inner == QO_mul || inner == QO_div || (left && (inner == QO_add || inner == QO_sub));
  return left && (inner == outer || (product && inner == QO_mul));
}

static void put_step(StrBuf *t, const Quick *q, u8 i, const QuickForm *f);

static void put_value(StrBuf *t, const Quick *q, u8 i, const QuickForm *f) {
  if (q->step[i].name)
    sb_puts(t, q->step[i].name);
  else
    put_step(t, q, i, f);
}

static void put_operand(StrBuf *t, const Quick *q, const QuickStep *s, u32 k, const QuickForm *f) {
  const QuickStep *x = &q->step[s->arg[k]];
  bool plain = x->name || is_plain(s->op, x->op, k == 0);
  sb_puts(t, plain ? "" : "(");
  put_value(t, q, s->arg[k], f);
  sb_puts(t, plain ? "" : ")");
}

static void put_args(StrBuf *t, const Quick *q, const QuickStep *s, const QuickForm *f) {
  for (u32 k = 0; k < s->n; k++) {
    bool splat = f->lanes > 1 && q->step[s->arg[k]].op == QO_const;
    sb_puts(t, k ? ", " : "");
    if (splat) sb_fmt(t, "imk_all%s(", f->suffix);
    put_value(t, q, s->arg[k], f);
    sb_puts(t, splat ? ")" : "");
  }
}

static const char *prefix(const char *name) {
  return strncmp(name, "imk_", 4) ? "im_" : "";
}

/* Writes the operation or call of one step. */
static void put_step(StrBuf *t, const Quick *q, u8 i, const QuickForm *f) {
  const QuickStep *s = &q->step[i];
  const char *function = words[s->op].function, *infix = words[s->op].infix;
  const char *call = f->calls && s->n == 2 && !q->step[s->arg[0]].bits ? quick_call(s->op) : NULL;
  if (call) {
    sb_fmt(t, "%s%s(", call, f->suffix);
    put_args(t, q, s, f);
    sb_puts(t, ")");
    return;
  }
  bool cast = f->lanes > 1 && (is_compared(s->op) || s->op == QO_bits || s->op == QO_float);
  if (s->op == QO_const) {
    sb_puts(t, s->text);
    return;
  }
  if (s->op == QO_call) sb_fmt(t, "%s%s%s(", prefix(s->text), s->text, f->suffix);
  if (cast)
    sb_fmt(t, "(%s)(", s->bits ? f->bits : f->real);
  else if (function)
    sb_fmt(t, "%s%s(", function, f->suffix);
  if (infix) {
    put_operand(t, q, s, 0, f);
    sb_fmt(t, " %s ", infix);
    if (s->n > 1)
      put_operand(t, q, s, 1, f);
    else
      sb_fmt(t, "%d", (int)s->value.i);
  } else if (function || s->op == QO_call) {
    put_args(t, q, s, f);
  } else {
    sb_puts(t, s->op == QO_neg ? "-" : "~");
    put_operand(t, q, s, 0, f);
  }
  if (function || s->op == QO_call) sb_puts(t, ")");
}

void quick_write(StrBuf *t, const Quick *q, const QuickForm *f) {
  sb_fmt(t, "%s%s %s%s%s(%s %s", f->linkage, f->real, prefix(q->name), q->name, f->suffix, f->real,
         q->step[0].name);
  if (q->nparam > 1) sb_fmt(t, ", %s %s", f->bits, q->step[1].name);
  sb_puts(t, ") {\n");
  for (u32 i = q->nparam; i < q->n; i++) {
    const QuickStep *s = &q->step[i];
    bool again = false;
    if (!s->name) continue;
    for (u32 k = 0; k < i; k++)
      again = again || (q->step[k].name && !strcmp(q->step[k].name, s->name));
    sb_fmt(t, "  %s%s%s = ", again ? "" : s->bits ? f->bits : f->real, again ? "" : " ", s->name);
    put_step(t, q, (u8)i, f);
    sb_puts(t, ";\n");
  }
  sb_puts(t, "  return ");
  put_step(t, q, q->result, f);
  sb_puts(t, ";\n}\n");
}
