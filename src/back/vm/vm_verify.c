/* vm_verify.c: verifies bytecode files.
 *
 * In: untrusted bytes. Out: an Igb, or the error and its offset. Method: the checksum finds
 * accidental damage. Then every number is checked against what it counts or points to, as if the
 * file were malicious. The code is checked in one pass: vmops.def describes the operands, and a
 * section of the file marks where instructions start, so jumps need no allocated table. The machine
 * checks offsets into buffers at run time, see vm.h. Verified bytes must not change. A caller that
 * does not control them copies them first (igb_head, igb_verify); weights may change. */
#include "back/vm/igb.h"

#include <string.h>

IgbSum igb_sum(void) {
  return (IgbSum){0x9e3779b97f4a7c15, 0, 0};
}

/* Every step is invertible, so any change of one word changes the sum. */
static void sum_word(IgbSum *s, u64 w) {
  if (s->at == offsetof(IgbHead, check)) w = 0;
  s->h = (s->h ^ w) * 0xd6e8feb86659fd93;
  s->h ^= s->h >> 32;
  s->at += 8;
}

#ifndef VM_STANDALONE /* it writes no files */
void igb_sum_add(IgbSum *s, const void *at, u64 n) {
  const u8 *p = at;
  for (u64 i = 0, w; i < n;) {
    u64 have = s->at % 8;
    if (!have && n - i >= 8) {
      memcpy(&w, p + i, 8);
      sum_word(s, w);
      i += 8;
      continue;
    }
    s->word |= (u64)p[i++] << 8 * have;
    s->at++;
    if (have < 7) continue;
    s->at -= 8;
    sum_word(s, s->word);
    s->word = 0;
  }
}

#endif

static u64 sum_of(const u8 *at, size_t n) {
  IgbSum s = igb_sum();
  for (u64 w; n; n -= 8, at += 8) {
    memcpy(&w, at, 8);
    sum_word(&s, w);
  }
  return s.h;
}

/* ---- instructions ---- */

/* Errors that no undamaged file of ingot has. The small machine has one text for all of them. */
#ifdef VM_SMALL
#define FORGED(why) "was not made by ingot"
#else
#define FORGED(why) why
#endif

typedef struct Check {
  const Igb *g;
  const u32 *w; /* current instruction */
  const char *operands;
  u32 lanes;      /* at least 1 */
  DType type, to; /* type operand: type read and type written */
  const char *why;
} Check;

static bool wrong(Check *c, const char *why) {
  if (!c->why) c->why = why;
  return false;
}

static u32 bytes_of_letter(const Check *c, char cls, bool written) {
  if (cls == '?') return vm_class_bytes(vm_class(written ? c->to : c->type));
  return cls == 'd' || cls == 'l' ? 8 : 4;
}

static bool check_register(Check *c, u32 reg, u64 bytes) {
  u64 slots = (bytes + 7) / 8;
  return (reg < c->g->code.slots && slots <= c->g->code.slots - reg) ||
         wrong(c, FORGED("a register is outside the register file"));
}

static bool check_type(Check *c, u32 t) {
  return (t < DT_COUNT && vm_class((DType)t) != VC_none) || wrong(c, FORGED("an unknown type"));
}

/* narg: operands of the operation; cls: class of both types; 0: any. */
static bool check_operation(Check *c, u32 o, u32 narg, VmClass cls) {
  u32 op = o & 0xff, type = o >> 8 & 0xff, to = o >> 24;
  if (op >= OP_SCALARS || op_info[op].nin_min != narg)
    return wrong(c, FORGED("an unknown operation"));
  if (!check_type(c, type) || !check_type(c, to)) return false;
  c->type = (DType)type;
  c->to = (DType)to;
  if (cls && (vm_class(c->type) != cls || vm_class(c->to) != cls))
    return wrong(c, FORGED("an operation has the wrong type"));
#ifdef VM_SINGLE
  if (op_is((Op)op, OF_FUNC) && dtype_is_float(c->type) &&
      (scalar_math_mode(c->g->code.math, (Op)op, c->type) < MM_q ||
       (cls && (o >> 16 & 0xff) < MM_q)))
    return wrong(c, FORGED("this machine was built without functions in double"));
#endif
  return true;
}

/* Checks the type operand, if any. It follows the operands it describes. */
static bool check_types(Check *c, u32 op, u32 words) {
  u32 last = words > 1 ? c->w[words - 1] : 0;
  char kind = 0;
#ifdef VM_SMALL
  if (is_binary(op)) {
    static const u8 type[] = {[VC_f] = DT_f32, [VC_d] = DT_f64, [VC_w] = DT_i32, [VC_l] = DT_i64};
    const VmBinary p = binary_of(op);
    c->type = (DType)type[p.cls];
    c->to = op_info[p.op].res == OR_pred ? DT_i32 : c->type;
    return true;
  }
#endif
  for (const char *s = c->operands; *s; s++)
    if (*s == 't' || *s == 'T' || *s == 'o') kind = *s;
  if (kind == 'o') {
    u32 narg = op == VM_gen3 ? 3 : op == VM_gen1 || op == VM_fun_f || op == VM_fun_d ? 1 : 2;
    VmClass cls = op == VM_fun_f ? VC_f : op == VM_fun_d ? VC_d : VC_none;
    return check_operation(c, last, narg, cls);
  }
  if (kind == 'T') {
    if (last >> 17) return wrong(c, FORGED("an unknown type"));
    if (!check_type(c, last & 0xff) || !check_type(c, last >> 8 & 0xff)) return false;
    c->type = (DType)(last & 0xff);
    c->to = (DType)(last >> 8 & 0xff);
  }
  if (kind == 't') {
    if (!check_type(c, last)) return false;
    c->type = c->to = (DType)last;
    if (op == VM_random && !dtype_is_float(c->type))
      return wrong(c, FORGED("random numbers must be floats"));
    bool narrow = op == VM_quant || op == VM_quant_f || op == VM_vfmax_f;
    if (narrow && !vm_is_narrow(c->type))
      return wrong(c, FORGED("expected an integer type of 8 or 16 bits"));
    if (op == VM_quad && dtype_bytes(c->type) > 4)
      return wrong(c, FORGED("a quad element has more than 4 bytes"));
  }
  return true;
}

/* Alignment that the access needs, in bytes. */
static u32 element_bytes(const Check *c, u32 op, u32 operand) {
  if (op == VM_quad) return 1;
  if (op == VM_panel && operand == 8) {
    u32 kind = c->w[4];
    return kind == VP_dot_i8x4_b ? 1 : kind == VP_dot_i16x2_b ? 2 : 4;
  }
  if (op == VM_ld_f64 || op == VM_ld_i64 || op == VM_st_f64 || op == VM_st_i64 ||
      op == VM_vld_f64 || op == VM_vst_f64)
    return 8;
  if (op == VM_vld_u8 || op == VM_vld_i8 || op == VM_vst_8) return 1;
  return c->type ? dtype_bytes(c->type) : 4;
}

/* A buffer that is the first operand is written, all others are read. */
static bool check_buffer(Check *c, u32 op, u32 operand) {
  u32 k = c->w[operand];
  if (k >= c->g->code.nbuf) return wrong(c, FORGED("an unknown buffer"));
  const IgbBuf *b = &c->g->buf[k];
  if (operand == 1 && (b->space == IB_in || b->space == IB_weights))
    return wrong(c, FORGED("writes to an input or to weights"));
  if (b->space <= IB_out &&
      dtype_bytes((DType)c->g->port[b->port].type) < element_bytes(c, op, operand))
    return wrong(c, FORGED("an input or output is accessed with another type"));
  return true;
}

static bool check_pick(Check *c) {
  const u8 *pick = (const u8 *)(c->w + 4);
  u32 n = c->w[3], bytes = (c->w[0] & 0xffff) == VM_pick_l ? 8 : 4;
  if (!(c->w[0] >> 16) || n > VM_LANES)
    return wrong(c, FORGED("the number of lanes is out of range"));
  for (u32 i = 0; i < c->lanes; i++)
    if (pick[i] != 255 && pick[i] >= n) return wrong(c, FORGED("a lane number is out of range"));
  return check_register(c, c->w[2], (u64)n * bytes);
}

static bool check_panel(Check *c) {
  u32 rows = c->w[2], cols = c->w[3];
  if (rows < 1 || rows > VM_TILE || cols < 1 || cols > VM_TILE || c->w[4] >= VP_COUNT ||
      !(c->w[0] >> 16))
    return wrong(c, FORGED("a panel has an invalid size or kind"));
  return check_register(c, c->w[1], (u64)rows * cols * c->lanes * 4);
}

static bool check_operand(Check *c, u32 op, const char *s, u32 k) {
  u32 x = c->w[k];
  char cls = s[1];
  u64 lanes = *s == 'D' || *s == 'S' ? c->lanes : 1;
  switch (*s) {
  case 'd':
  case 'D':
    if (cls == '*') return check_panel(c);
    return check_register(c, x, lanes * bytes_of_letter(c, cls, true));
  case 's':
  case 'S':
    if (op == VM_pick_w || op == VM_pick_l) return check_pick(c);
    if (op == VM_gen3 && k == 2 && (c->w[5] & 0xff) == OP_select) cls = 'w';
    return check_register(c, x, lanes * bytes_of_letter(c, cls, false));
  case 'b': return check_buffer(c, op, k);
  case 'j':
    return (x < c->g->code.nword && c->g->starts[x / 8] >> x % 8 & 1) ||
           wrong(c, FORGED("a jump target is not the start of an instruction"));
  case 'i':
    return op != VM_need || x < c->g->code.nmessage || wrong(c, FORGED("an unknown message"));
  default: return true;
  }
}

static bool check_instruction(Check *c) {
  u32 op = *c->w & 0xffff, lanes = *c->w >> 16, words = vm_words(*c->w), k = 1;
  c->operands = vm_operands(op);
  c->lanes = lanes ? lanes : c->g->code.row;
  if (lanes > VM_LANES) return wrong(c, FORGED("the number of lanes is out of range"));
  if (!check_types(c, op, words)) return false;
  for (const char *s = c->operands; *s; s++) {
    if (*s == ' ' || (s > c->operands && s[-1] != ' ')) continue;
    if (!check_operand(c, op, s, k)) return false;
    k++;
  }
  return true;
}

static const char *check_code(const Igb *g, u64 *where) {
  u32 last = VM_COUNT, words;
  for (u32 at = 0; at < g->code.nword; at += words) {
    Check c = {.g = g, .w = g->code.word + at};
    *where = g->head->section[IS_code].at + (u64)at * 4;
    words = vm_words(*c.w);
    if (!words) return FORGED("an unknown instruction");
    if (words > g->code.nword - at) return FORGED("the last instruction is truncated");
    for (u32 i = 0; i < words; i++)
      if ((g->starts[(at + i) / 8] >> (at + i) % 8 & 1) != !i)
        return FORGED("the map of instruction starts does not match the code");
    if (!check_instruction(&c)) return c.why;
    last = *c.w & 0xffff;
  }
  return last == VM_stop || last == VM_jmp ? NULL
                                           : FORGED("the last instruction is neither stop nor jmp");
}

/* ---- tables ---- */

/* igb_head has checked that counts, except those of weights, fit. */
static u32 count(const Igb *g, IgbSection s) {
  return (u32)g->head->section[s].n;
}

static bool text_there(const Igb *g, IgbStr t) {
  u32 n = count(g, IS_strings);
  return t.at <= n && t.n <= n - t.at;
}

static const char *check_buffers(const Igb *g, u64 *where) {
  const IgbHead *h = g->head;
  u64 used = 0; /* bytes of the arena */
  for (u32 i = 0; i < g->code.nbuf; i++) {
    const IgbBuf *b = &g->buf[i];
    u64 all = b->space == IB_weights ? h->section[IS_weights].n : h->arena;
    *where = h->section[IS_buffers].at + i * sizeof *b;
    if (b->space >= IB_COUNT) return FORGED("a buffer has an unknown space");
    if (b->space <= IB_out) {
      if (b->port >= g->nport || g->port[b->port].buf != i)
        return FORGED("a buffer names a port that does not exist");
      if ((b->port < h->nin) != (b->space == IB_in))
        return FORGED("a buffer and its port do not match");
      if (b->at || b->bytes)
        return FORGED("inputs and outputs must not have an offset: the caller places them");
      continue;
    }
    if (b->at % IGB_ALIGN || b->at > all || b->bytes > all - b->at)
      return FORGED("a buffer is outside its memory");
    if (b->space != IB_weights && b->bytes % IGB_ALIGN)
      return FORGED("the size of a buffer is not a multiple of 64");
    if (b->space != IB_weights && b->at + b->bytes > used) used = b->at + b->bytes;
  }
  *where = offsetof(IgbHead, arena);
  return h->arena == used ? NULL : FORGED("the arena is larger than its buffers");
}

/* Steps must be consecutive over dimensions, dimensions over ports; so each is checked once. first:
 * expected first step of this dimension. */
static const char *check_steps(const Igb *g, const IgbDim *d, u32 *first) {
  u32 depth = 0, all = count(g, IS_steps);
  if (d->step != *first || d->step > all || d->n > all - d->step)
    return FORGED("the steps of an extent are not in order");
  *first += d->n;
  for (const IgbStep *s = g->step + d->step, *end = s + d->n; s < end; s++) {
    if (s->op >= IGS_COUNT || (s->op == IGS_symbol && s->symbol >= g->nsymbol))
      return FORGED("an extent has an unknown step");
    if (s->op == IGS_number && (s->k < 0 || s->k > IGB_MAX))
      return FORGED("a number of an extent is out of range");
    if (s->op > IGS_symbol && depth < 2) return FORGED("an extent lacks an operand");
    depth = s->op > IGS_symbol ? depth - 1 : depth + 1;
    if (depth > IGB_STACK) return FORGED("an extent needs too deep a stack");
  }
  return depth == 1 ? NULL : FORGED("an extent leaves more than one number on the stack");
}

static const char *check_ports(const Igb *g, u64 *where) {
  const IgbHead *h = g->head;
  u32 dims = 0, steps = 0;
  for (u32 i = 0; i < g->nport; i++) {
    const IgbPort *p = &g->port[i];
    u32 all = count(g, IS_dims);
    *where = h->section[IS_ports].at + i * sizeof *p;
    if (!text_there(g, p->name)) return FORGED("a name is outside the strings");
    if (p->buf >= g->code.nbuf || g->buf[p->buf].port != i || g->buf[p->buf].space > IB_out)
      return FORGED("a port and its buffer do not match");
    if (p->type >= DT_COUNT || vm_class((DType)p->type) == VC_none)
      return FORGED("an unknown type");
    if (p->rank > IGB_RANK || p->dim != dims || p->dim > all || p->rank > all - p->dim)
      return FORGED("the dimensions of a port are not in order");
    dims += p->rank;
    for (u32 k = 0; k < p->rank; k++) {
      const char *why = check_steps(g, &g->dim[p->dim + k], &steps);
      if (why) return why;
    }
  }
  return NULL;
}

static const char *check_rest(const Igb *g, u64 *where) {
  const IgbHead *h = g->head;
  for (u32 i = 0; i < g->nsymbol; i++) {
    const IgbSymbol *s = &g->symbol[i];
    *where = h->section[IS_symbols].at + i * sizeof *s;
    if (!text_there(g, s->name) || s->slot >= h->slots || s->data > 1 || s->lo < 0 ||
        s->lo > s->hi || s->hi > IGB_MAX)
      return FORGED("a symbol has an invalid name, slot or bounds");
  }
  for (u32 i = 0; i < g->code.nmessage; i++) {
    *where = h->section[IS_messages].at + i * sizeof *g->message;
    if (!text_there(g, g->message[i])) return FORGED("a message is outside the strings");
  }
  for (u32 i = 0; i < g->code.ninit; i++) {
    *where = h->section[IS_init].at + i * sizeof *g->code.init;
    if (g->code.init[i].slot >= h->slots) return FORGED("a register is outside the register file");
  }
  return NULL;
}

/* ---- the head ---- */

const u8 igb_element[IS_COUNT] = {[IS_code] = 4,
                                  [IS_starts] = 1,
                                  [IS_init] = sizeof(VmInit),
                                  [IS_buffers] = sizeof(IgbBuf),
                                  [IS_ports] = sizeof(IgbPort),
                                  [IS_dims] = sizeof(IgbDim),
                                  [IS_steps] = sizeof(IgbStep),
                                  [IS_symbols] = sizeof(IgbSymbol),
                                  [IS_messages] = sizeof(IgbStr),
                                  [IS_strings] = 1,
                                  [IS_weights] = 1};

const char *igb_head(const IgbHead *h, const void *file, size_t n, u64 *where) {
  const u32 one = 1;
  *where = 0;
  if (n < sizeof *h || memcmp(h->magic, IGB_MAGIC, 8) != 0) return "is not bytecode";
  if (*(const u8 *)&one != 1) return "this machine is not little-endian";
  *where = offsetof(IgbHead, version);
  if (h->version != IGB_VERSION || h->tables != igb_tables())
    return "is bytecode of another version of ingot";
  *where = offsetof(IgbHead, bytes);
  if (h->bytes != n || n % IGB_ALIGN) return "is truncated, or longer than its head says";
  *where = offsetof(IgbHead, check);
  if (sum_of(file, n) != h->check) return "is damaged: the checksum differs";
  *where = offsetof(IgbHead, arena);
  if (h->arena % IGB_ALIGN || h->arena > (u64)IGB_MAX || !h->slots || h->slots > 1 << 26 ||
      !h->row || h->row > VM_LANES || h->math >= MM_COUNT || h->math == MM_d)
    return "a number of the head is out of range";
  for (u32 i = 0; i < IS_COUNT; i++) {
    const IgbSpan *s = &h->section[i];
    *where = offsetof(IgbHead, section) + i * sizeof *s;
    if (s->at % IGB_ALIGN || s->at > n || s->n > (n - (size_t)s->at) / igb_element[i] ||
        (i != IS_weights && s->n > UINT32_MAX / 64))
      return "a section is outside the file";
  }
  if (h->section[IS_starts].n < (h->section[IS_code].n + 7) / 8) return "a section is too short";
  if (h->nin > h->section[IS_ports].n) return "there are fewer ports than inputs";
  return NULL;
}

const char *igb_verify(const IgbHead *h, const void *const *section, Igb *g, u64 *where) {
  *g = (Igb){.head = h};
  g->code = (VmCode){.word = (u32 *)section[IS_code],
                     .nword = (u32)h->section[IS_code].n,
                     .slots = h->slots,
                     .row = h->row,
                     .nbuf = (u32)h->section[IS_buffers].n,
                     .nmessage = (u32)h->section[IS_messages].n,
                     .math = (MathMode)h->math,
                     .init = (VmInit *)section[IS_init],
                     .ninit = (u32)h->section[IS_init].n};
  g->starts = section[IS_starts];
  g->weights = section[IS_weights];
  g->text = section[IS_strings];
  g->buf = section[IS_buffers];
  g->port = section[IS_ports];
  g->dim = section[IS_dims];
  g->step = section[IS_steps];
  g->symbol = section[IS_symbols];
  g->message = section[IS_messages];
  g->nport = (u32)h->section[IS_ports].n;
  g->nsymbol = (u32)h->section[IS_symbols].n;
  const char *why = check_ports(g, where);
  if (!why) why = check_buffers(g, where);
  if (!why) why = check_rest(g, where);
  return why ? why : check_code(g, where);
}

const char *igb_open(const void *file, size_t n, Igb *g, u64 *where) {
  const IgbHead *h = file;
  const void *section[IS_COUNT];
  const char *why = igb_head(h, file, n, where);
  if (why) return why;
  for (u32 i = 0; i < IS_COUNT; i++) section[i] = (const u8 *)file + h->section[i].at;
  return igb_verify(h, section, g, where);
}

/* ---- extents ---- */

/* False: out of range. Operands are within +-IGB_MAX. */
static bool apply_step(u32 op, i64 a, i64 b, i64 *r) {
  static const u8 as[IGS_COUNT] = {
      [IGS_add] = OP_add, [IGS_sub] = OP_sub, [IGS_mul] = OP_mul, [IGS_div] = OP_div,
      [IGS_mod] = OP_mod, [IGS_min] = OP_min, [IGS_max] = OP_max};
  const i64 limit = (i64)1 << 20; /* its square does not overflow */
  Scalar arg[2] = {{.i = a}, {.i = b}};
  if ((op == IGS_div || op == IGS_mod) && b <= 0) return false;
  if (op == IGS_mul && (a > limit || a < -limit) && (b > limit || b < -limit)) return false;
  if (op == IGS_div) arg[0].i -= scalar_eval(OP_mod, DT_i64, arg).i;
  *r = scalar_eval((Op)as[op], DT_i64, arg).i;
  return *r >= -IGB_MAX && *r <= IGB_MAX;
}

i64 igb_extent(const Igb *g, const IgbDim *d, const i64 *value) {
  i64 stack[IGB_STACK];
  u32 n = 0;
  for (const IgbStep *s = g->step + d->step, *end = s + d->n; s < end; s++) {
    if (s->op <= IGS_symbol) {
      stack[n++] = s->op == IGS_symbol ? value[s->symbol] : s->k;
      continue;
    }
    n--;
    if (!apply_step(s->op, stack[n - 1], stack[n], &stack[n - 1])) return -1;
  }
  return stack[0] >= 0 ? stack[0] : -1;
}
