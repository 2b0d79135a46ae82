/* vm_text.c: prints bytecode.
 *
 * In: a VmProgram. Out: its text. A line has the index of the first word, the instruction, "/" and
 * its lanes ("/row" for a row) unless 1, and the operands: r7 register, b2 buffer, @30 jump target,
 * numbers, types, f32>i8 conversion, add:f32:0:f32 operation with type, function and result,
 * [0 3 - 1] lanes. */
#include "back/vm/vm.h"

static const char *const math_name[MM_COUNT] = {"exact", "double", "fast", "fused", "single"};

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

void vm_dump(const VmProgram *v, StrBuf *t) {
  const VmCode *c = &v->code;
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
