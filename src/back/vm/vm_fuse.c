/* vm_fuse.c: peephole optimizer.
 *
 * In: code with virtual registers and label instructions. Out: the same with fewer instructions.
 * Method: one pass over basic blocks. A result that is only moved is computed in the destination,
 * if no instruction between names that register. A product with one use in an addition becomes a
 * multiply-add. Increment, compare and jump become VM_next. Fills, loads and stores of adjacent
 * vectors are merged. Consecutive equal computations are done once. vm_alloc.c drops dead
 * instructions. */
#include "back/vm/vm_build.h"

typedef struct Fusion {
  VmBuild *b;
  U32Vec code;  /* output */
  u32 begin;    /* start of the current basic block */
  u32 *uses;    /* by root: number of reads */
  u32 *made;    /* by register: 1 + word of the last write, if one instruction wrote it whole */
  u32 *named;   /* by root: 1 + word of the last mention */
  u32 *written; /* by root: 1 + word of the last write */
  u32 *same;    /* by register: replacement to read; 0: itself */
} Fusion;

/* 1 + word of the instruction of this block that computed a register with one read; 0: none. */
static u32 maker(const Fusion *f, u32 reg) {
  const VReg *r = &f->b->reg.at[reg];
  bool once = !r->parent && !r->seen && f->uses[reg] == 1;
  return once && f->made[reg] > f->begin ? f->made[reg] : 0;
}

/* Makes the source of a move write its destination. */
static bool drop_move(Fusion *f, const u32 *move) {
  u32 op = *move & 0xffff;
  if (op != VM_mov_f && op != VM_mov_d && op != VM_mov_w && op != VM_mov_l) return false;
  u32 to = vb_root_of(f->b, move[1]), at = maker(f, move[2]);
  if (!at || f->named[to] > at) return false;
  f->code.at[at] = move[1];
  f->uses[move[2]] = 0;
  f->made[move[2]] = 0;
  f->made[move[1]] = at;
  f->named[to] = f->written[to] = at;
  return true;
}

/* A sum with a product as operand. */
static bool fuse_product(Fusion *f, const u32 *sum, u32 *to) {
  static const struct {
    u16 add, mul, both;
  } by[] = {{VM_add_f, VM_mul_f, VM_mad_f},
            {VM_add_d, VM_mul_d, VM_mad_d},
            {VM_add_l, VM_mul_l, VM_mad_l}};
  for (u32 i = 0; i < sizeof by / sizeof *by; i++)
    for (u32 k = 2; k < 4 && (*sum & 0xffff) == by[i].add; k++) {
      u32 at = maker(f, sum[k]);
      if (!at || f->b->reg.at[sum[k]].named) continue;
      const u32 *mul = f->code.at + at - 1;
      if ((*mul & 0xffff) != by[i].mul || f->written[vb_root_of(f->b, mul[2])] >= at ||
          f->written[vb_root_of(f->b, mul[3])] >= at)
        continue;
      f->uses[sum[k]] = 0;
      const u32 w[5] = {by[i].both | 1 << 16, sum[1], mul[2], mul[3], sum[5 - k]};
      for (u32 n = 0; n < 5; n++) to[n] = w[n];
      return true;
    }
  return false;
}

/* A jump that compares the result of the preceding addition. */
static bool fuse_next(Fusion *f, u32 before, const u32 *jump) {
  if ((*jump & 0xffff) != VM_jlt_l || before < f->begin || before == f->code.n) return false;
  const u32 *add = f->code.at + before;
  if ((*add & 0xffff) != VM_add_l || add[1] != add[2] || jump[1] != add[1]) return false;
  const u32 w[5] = {VM_next | 1 << 16, add[1], add[3], jump[2], jump[3]};
  f->code.n = before;
  put_words(f->b, &f->code, w, 5);
  return true;
}

/* Does the second register follow the first, which has this many lanes of 4 bytes? */
static bool follows(const Fusion *f, u32 first, u32 second, u32 lanes) {
  const VReg *x = &f->b->reg.at[first], *y = &f->b->reg.at[second];
  return x->parent && x->parent == y->parent && y->off == x->off + lanes / 2;
}

/* An instruction that continues where the previous one ends. */
static bool fuse_lanes(Fusion *f, u32 before, const u32 *w) {
  if (before < f->begin || before == f->code.n) return false;
  u32 *first = f->code.at + before, op = *w & 0xffff, n = *first >> 16, more = *w >> 16;
  bool splat = op == VM_splat_f || op == VM_splat_w;
  if ((*first & 0xffff) != op || n % 2 || !n || !more || n + more > VM_LANES) return false;
  if (splat && (first[2] != w[2] || !follows(f, first[1], w[1], n))) return false;
  if (!splat) {
    u32 at = op == VM_vld_f32 ? 2 : 1, reg = op == VM_vld_f32 ? 1 : 4;
    if (op != VM_vld_f32 && op != VM_vst_f32) return false;
    if (first[at] != w[at] || first[at + 1] != w[at + 1] ||
        (i64)(i32)first[at + 2] + n != (i32)w[at + 2] || !follows(f, first[reg], w[reg], n))
      return false;
  }
  *first = op | (n + more) << 16;
  return true;
}

/* Records the registers that the instruction at `at` names; true: it may jump. */
static bool note(Fusion *f, u32 at) {
  const u32 *w = f->code.at + at;
  OperandIter o = {.at = vm_ops[*w & 0xffff].operands};
  bool jumps = false, writes = !has_effect(*w);
  while (next_operand(&o)) {
    jumps |= o.kind == 'j';
    if (!vb_is_reg(o.kind)) continue;
    u32 root = vb_root_of(f->b, w[o.word]);
    f->named[root] = at + 1;
    if (!writes || o.word > 1) continue;
    f->written[root] = at + 1;
    f->made[w[1]] = !o.also_read && (o.kind == 'd' || *w >> 16 == 1) ? at + 1 : 0;
  }
  return jumps;
}

/* Replaces registers by equal ones. */
static void read_instead(const Fusion *f, u32 *w) {
  OperandIter o = {.at = vm_ops[*w & 0xffff].operands};
  while (next_operand(&o))
    if (vb_is_reg(o.kind) && f->same[w[o.word]]) w[o.word] = f->same[w[o.word]];
}

/* Parts of a register get a new number at every mention. */
static bool is_same(const VmBuild *b, u32 x, u32 y) {
  return x == y || (b->reg.at[x].parent && b->reg.at[x].parent == b->reg.at[y].parent &&
                    b->reg.at[x].off == b->reg.at[y].off);
}

/* Drops an instruction that repeats the previous computation. */
static bool drop_recomputed(Fusion *f, u32 before, const u32 *w) {
  if (before < f->begin || before == f->code.n || has_effect(*w)) return false;
  const u32 *first = f->code.at + before;
  const VReg *x = &f->b->reg.at[first[1]], *y = &f->b->reg.at[w[1]];
  if (*first != *w || x->parent || x->named || y->parent || y->named) return false;
  OperandIter o = {.at = vm_ops[*w & 0xffff].operands};
  while (next_operand(&o)) {
    const u32 i = o.word;
    if (o.kind == 'b' || o.also_read) return false;
    if (i > 1 && (vb_is_reg(o.kind) ? !is_same(f->b, first[i], w[i]) : first[i] != w[i]))
      return false;
  }
  f->same[w[1]] = first[1];
  f->uses[first[1]] += f->uses[w[1]];
  return true;
}

/* Records the registers of an instruction that was merged into the one at `at`. */
static void note_more(Fusion *f, u32 at, const u32 *w) {
  u32 root = vb_root_of(f->b, (*w & 0xffff) == VM_vst_f32 ? w[4] : w[1]);
  f->named[root] = at + 1;
  if ((*w & 0xffff) != VM_vst_f32) f->written[root] = at + 1;
}

void vm_fuse(VmBuild *b, U32Vec *code) {
  Fusion f = {.b = b};
  u32 before = 0, w[5]; /* before: the last instruction written */
  f.uses = NEWS(b->a, u32, b->reg.n);
  f.made = NEWS(b->a, u32, b->reg.n);
  f.named = NEWS(b->a, u32, b->reg.n);
  f.written = NEWS(b->a, u32, b->reg.n);
  f.same = NEWS(b->a, u32, b->reg.n);
  for (u32 i = 0; i < code->n; i += code_words(code->at + i))
    if (code->at[i] != VM_LABEL) count_uses(b, code->at + i, f.uses, 1);
  for (u32 i = 0, words; i < code->n; i += words) {
    u32 *from = code->at + i, at = f.code.n;
    words = code_words(from);
    if (*from != VM_LABEL) read_instead(&f, from);
    if (*from == VM_LABEL) {
      put_words(b, &f.code, from, words);
      f.begin = f.code.n;
    } else if (fuse_next(&f, before, from)) {
      f.begin = f.code.n;
    } else if (fuse_lanes(&f, before, from)) {
      note_more(&f, before, from);
    } else if (drop_recomputed(&f, before, from)) {
      continue;
    } else if (!drop_move(&f, from)) {
      bool both = fuse_product(&f, from, w);
      put_words(b, &f.code, both ? w : from, both ? 5 : words);
      before = at;
      if (note(&f, at)) f.begin = f.code.n;
    }
  }
  *code = f.code;
}
