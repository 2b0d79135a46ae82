/* vm_text.c: prints and parses bytecode.
 *
 * In: a VmCode, or its text. Out: the other; they are exact inverses. A line has the index of the
 * first word, the instruction, "/" and its lanes ("/row" for a row) unless 1, and the operands: r7
 * register, b2 buffer, @30 jump target, numbers, types, f32>i8 conversion, add:f32:0:f32 operation
 * with type, function and result, [0 3 - 1] lanes. */
#include "back/vm/vm.h"
#include "ir/lexer.h"

#include <string.h>

static const char *const math_name[MM_COUNT] = {"exact", "double", "fast", "fused", "single"};

/* ---- printing ---- */

static void put_operand(StrBuf *t, char kind, const u32 *w, u32 lanes) {
  switch (kind) {
  case 'b': sb_fmt(t, " b%u", *w); break;
  case 'i': sb_fmt(t, " %d", (i32)*w); break;
  case 'j': sb_fmt(t, " @%u", *w); break;
  case 't': sb_fmt(t, " %s", dtype_info[*w].name); break;
  case 'T':
    sb_fmt(t, " %s>%s%s", dtype_info[*w & 0xff].name, dtype_info[*w >> 8 & 0xff].name,
           *w >> 16 ? " sat" : "");
    break;
  case 'o':
    sb_fmt(t, " %s:%s:%u:%s", op_info[*w & 0xff].name, dtype_info[*w >> 8 & 0xff].name,
           *w >> 16 & 0xff, dtype_info[*w >> 24].name);
    break;
  case 'p':
    for (u32 i = 0; i < lanes; i++) {
      u32 x = w[i / 4] >> 8 * (i % 4) & 0xff;
      sb_puts(t, i ? " " : " [");
      if (x == 255)
        sb_puts(t, "-");
      else
        sb_fmt(t, "%u", x);
    }
    sb_puts(t, "]");
    break;
  default: sb_fmt(t, " r%u", *w);
  }
}

void vm_print(const VmCode *c, StrBuf *t) {
  sb_fmt(t, "bytecode\nslots %u\nrow %u\nbuffers %u\nmessages %u\nmath %s\n", c->slots, c->row,
         c->nbuf, c->nmessage, math_name[c->math]);
  for (u32 i = 0; i < c->ninit; i++)
    sb_fmt(t, "r%u = 0x%016llx\n", c->init[i].slot, (unsigned long long)c->init[i].bits);
  sb_puts(t, "code\n");
  for (u32 i = 0; i < c->nword; i += vm_words(c->word[i])) {
    const VmOpInfo *op = &vm_ops[c->word[i] & 0xffff];
    u32 lanes = c->word[i] >> 16, k = i;
    sb_fmt(t, "%u: %s", i, op->name);
    if (!lanes)
      sb_puts(t, "/row");
    else if (lanes != 1)
      sb_fmt(t, "/%u", lanes);
    for (const char *s = op->operands; *s; s++)
      if (*s != ' ' && (s == op->operands || s[-1] == ' '))
        put_operand(t, *s, &c->word[++k], lanes);
    sb_puts(t, "\n");
  }
}

void vm_dump(const VmProgram *v, StrBuf *t) {
  vm_print(&v->code, t);
}

/* ---- parsing ---- */

typedef struct VmRead {
  Lexer s;
  Arena *a;
  VEC(u32) word;
  VEC(VmInit) init;
} VmRead;

static u32 number(VmRead *o, u64 max) {
  i64 x = lex_integer(&o->s);
  if (x < 0 || (u64)x > max)
    BAD(&o->s, "expected a number up to %llu, found %lld", (unsigned long long)max, (long long)x);
  return (u32)x;
}

/* A letter and a number: r7, b2. */
static u32 numbered(VmRead *o, char letter) {
  if (lex_peek(&o->s) != letter)
    BAD(&o->s, "expected '%c' and a number, found %s", letter, lex_found(&o->s));
  o->s.at++;
  return number(o, UINT32_MAX);
}

static u32 scan_op(VmRead *o) {
  size_t n = (lex_skip(&o->s), lex_word(&o->s));
  for (u32 i = 0; i < OP_SCALARS; i++)
    if (strlen(op_info[i].name) == n && !memcmp(op_info[i].name, o->s.at, n)) {
      o->s.at += n;
      return i;
    }
  BAD(&o->s, "expected an operation, found %s", lex_found(&o->s));
}

static void scan_lanes(VmRead *o, u32 lanes) {
  lex_expect(&o->s, '[');
  for (u32 i = 0; i < (lanes + 3) / 4; i++) {
    u32 w = 0;
    for (u32 k = 0; k < 4 && 4 * i + k < lanes; k++)
      w |= (lex_accept(&o->s, '-') ? 255 : number(o, 254)) << 8 * k;
    *vec_push(o->a, &o->word) = w;
  }
  lex_expect(&o->s, ']');
}

static u32 scan_operand(VmRead *o, char kind) {
  u32 w;
  switch (kind) {
  case 'b': return numbered(o, 'b');
  case 'j': return numbered(o, '@');
  case 't': return (u32)lex_dtype(&o->s);
  case 'i': {
    i64 x = lex_integer(&o->s);
    if (x != (i32)x) BAD(&o->s, "%lld does not fit in 32 bits", (long long)x);
    return (u32)(i32)x;
  }
  case 'T':
    w = (u32)lex_dtype(&o->s);
    lex_expect(&o->s, '>');
    w |= (u32)lex_dtype(&o->s) << 8;
    return w | (u32)lex_accept_word(&o->s, "sat") << 16;
  case 'o':
    w = scan_op(o);
    lex_expect(&o->s, ':');
    w |= (u32)lex_dtype(&o->s) << 8;
    lex_expect(&o->s, ':');
    w |= number(o, 255) << 16;
    lex_expect(&o->s, ':');
    return w | (u32)lex_dtype(&o->s) << 24;
  default: return numbered(o, 'r');
  }
}

static u32 scan_opcode(VmRead *o) {
  size_t n = (lex_skip(&o->s), lex_word(&o->s));
  for (u32 i = 0; i < VM_COUNT; i++)
    if (strlen(vm_ops[i].name) == n && !memcmp(vm_ops[i].name, o->s.at, n)) {
      o->s.at += n;
      return i;
    }
  BAD(&o->s, "expected an instruction, found %s", lex_found(&o->s));
}

static void scan_instruction(VmRead *o) {
  if (number(o, UINT32_MAX) != o->word.n)
    BAD(&o->s, "expected the index of this word, %u", o->word.n);
  lex_expect(&o->s, ':');
  u32 op = scan_opcode(o), lanes = 1;
  if (lex_accept(&o->s, '/')) lanes = lex_accept_word(&o->s, "row") ? 0 : number(o, VM_LANES);
  *vec_push(o->a, &o->word) = op | lanes << 16;
  const char *all = vm_ops[op].operands;
  for (const char *s = all; *s; s++) {
    if (*s == ' ' || (s != all && s[-1] != ' ')) continue;
    if (*s == 'p') {
      scan_lanes(o, lanes);
      continue;
    }
    u32 w = scan_operand(o, *s);
    *vec_push(o->a, &o->word) = w;
  }
}

static u64 scan_bits(VmRead *o) {
  u64 x = 0;
  u32 n = 0;
  lex_skip(&o->s);
  if (o->s.end - o->s.at < 18 || memcmp(o->s.at, "0x", 2)) BAD(&o->s, "expected 0x and 16 digits");
  for (o->s.at += 2; n < 16; n++, o->s.at++) {
    const char *digits = "0123456789abcdef", *d = *o->s.at ? strchr(digits, *o->s.at) : NULL;
    if (!d) BAD(&o->s, "expected 0x and 16 digits");
    x = x << 4 | (u64)(d - digits);
  }
  return x;
}

static MathMode scan_math(VmRead *o) {
  for (u32 i = 0; i < MM_COUNT; i++)
    if (lex_accept_word(&o->s, math_name[i])) return (MathMode)i;
  BAD(&o->s, "expected a math mode, found %s", lex_found(&o->s));
}

VmCode *vm_parse(Ctx *c, const char *text, size_t n, Str file, Arena *a) {
  VmRead o = {.s = lex_new(c, text, n, file, NULL, 0), .a = a};
  VmCode *code = NEW(a, VmCode);
  lex_expect_word(&o.s, "bytecode");
  lex_expect_word(&o.s, "slots");
  code->slots = number(&o, UINT32_MAX);
  lex_expect_word(&o.s, "row");
  code->row = number(&o, VM_LANES);
  lex_expect_word(&o.s, "buffers");
  code->nbuf = number(&o, UINT32_MAX);
  lex_expect_word(&o.s, "messages");
  code->nmessage = number(&o, UINT32_MAX);
  lex_expect_word(&o.s, "math");
  code->math = scan_math(&o);
  while (lex_peek(&o.s) == 'r') {
    VmInit x = {.slot = numbered(&o, 'r')};
    lex_expect(&o.s, '=');
    x.bits = scan_bits(&o);
    *vec_push(a, &o.init) = x;
  }
  lex_expect_word(&o.s, "code");
  while (lex_peek(&o.s)) scan_instruction(&o);
  code->word = o.word.at;
  code->nword = o.word.n;
  code->init = o.init.at;
  code->ninit = o.init.n;
  return code;
}
