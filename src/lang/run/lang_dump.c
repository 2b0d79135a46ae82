/* lang_dump.c: prints register code, for `opt --dump=bytecode`.
 *
 * Variables are v0, v1 .., temps t0, t1 .. Each row has the position, the instruction with its
 * operands, and the line in the program where that changes.
 */
#include "lang/run/lang_code.h"

static const char *const names[CODE_OP_COUNT] = {
#define INS(name, operands, careful) #name,
#include "lang/run/lang_code.def"
#undef INS
};

static void put_register(const RegCode *code, u32 at, StrBuf *out) {
  u32 n = at / (u32)sizeof(LangValue);
  if (n < code->nvar)
    sb_fmt(out, "v%u", n);
  else
    sb_fmt(out, "t%u", n - code->nvar);
}

static void put_name(const RegCode *code, const Ast *fn, StrBuf *out) {
  sb_fmt(out, "fn %s", fn->name ? str_text(code->ev->c, fn->name) : "(unnamed)");
}

static void put_constant(const RegCode *code, u32 at, StrBuf *out) {
  const LangValue *v = &code->k[at / sizeof *code->k];
  if (v->kind == KD_string)
    sb_fmt(out, "\"%s\"", show_text(code->ev->c, str_of(code->ev->c, v->u.text->at)));
  else if (v->kind == KD_float)
    show_float(out, v->u.f, false);
  else
    sb_fmt(out, "%lld", (long long)v->u.i);
}

static void put_operand(const RegCode *code, u32 at, char how, u32 x, StrBuf *out) {
  switch (how) {
  case 'w':
  case 'r':
  case 'x': put_register(code, x, out); return;
  case 'i': sb_fmt(out, "%d", (int)(i32)x); return;
  case 'b': sb_puts(out, builtin_info[x].name); return;
  case 'k':
    if (code->ins[at].op == CO_closure || code->ins[at].op == CO_hoist)
      put_name(code, code->closure.at[x], out);
    else
      put_constant(code, x, out);
    return;
  case 't': sb_puts(out, lang_type_text(code->ev->c, code->type.at[x])); return;
  case 'j': sb_fmt(out, "-> %u", at + (u32)((i32)x / (i32)sizeof(Ins))); return;
  case 'g': sb_puts(out, kind_name[x]); return;
  case 'G': sb_fmt(out, "file %u v%u", x >> 24, x & 0xffffff); return;
  default: sb_fmt(out, "file %u", x & 255);
  }
}

void code_print(const RegCode *code, StrBuf *out) {
  const Script *s = code->ev->s->all->at[code->file];
  u32 line = 0;
  if (code->fn)
    put_name(code, code->fn->ast, out);
  else
    sb_fmt(out, "file %s", str_text(code->ev->c, s->file));
  sb_fmt(out, ": %u variables, %u temps, %u parameters\n", code->nvar, code->nreg - code->nvar,
         code->nparam);
  for (u32 i = 0; i < code->n; i++) {
    const Ins *x = &code->ins[i];
    const u32 field[] = {x->a, x->b, x->c};
    sb_fmt(out, "%5u  %s", i, names[code_general(x->op)]);
    for (u32 k = 0; k < 3; k++) {
      if (code_operands[x->op][k] == '-') continue;
      sb_puts(out, k ? ", " : " ");
      put_operand(code, i, code_operands[x->op][k], field[k], out);
    }
    u32 now = code->at[i] ? script_line(s, code->at[i]->at) : line;
    if (now != line) sb_fmt(out, "  # line %u", now);
    line = now;
    sb_puts(out, "\n");
  }
}
