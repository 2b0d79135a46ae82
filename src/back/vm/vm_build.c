/* vm_build.c: adds instructions to streams.
 *
 * In: operations on virtual registers. Out: the streams of VmBuild.level. A pure operation is
 * hoisted to the level from which its operands are available. Equal operations in a level are
 * computed once (CSE). */
#include "back/vm/vm_build.h"

#include <string.h>

u32 new_reg(VmBuild *b, VmClass cls, u32 lanes) {
  VReg *r = vec_push(b->a, &b->reg);
  r->slots = ((lanes ? lanes : ROW_LANES) * vm_class_bytes(cls) + 7) / 8;
  return b->reg.n - 1;
}

u32 part_reg(VmBuild *b, u32 of, u32 off, VmClass cls, u32 lanes) {
  u32 r = new_reg(b, cls, lanes);
  b->reg.at[r].parent = of;
  b->reg.at[r].off = off;
  b->reg.at[r].named = true;
  return r;
}

void put_words(VmBuild *b, U32Vec *to, const u32 *w, u32 n) {
  for (u32 i = 0; i < n; i++) *vec_push(b->a, to) = w[i];
}

u32 label_new(VmBuild *b) {
  return b->nlabel++;
}

void label_here(VmBuild *b, u32 label) {
  b->nloaded = 0;
  put_words(b, &b->level[b->cur].body, (const u32[]){VM_LABEL, label}, 2);
  b->def = 0;
}

/* Does the value of an earlier load stay available after this instruction? Moves may overwrite a
 * register (see assign_reg), other instructions write new ones. */
static bool keeps_loads(VmOp op) {
  const char *s = vm_ops[op].operands;
  return op != VM_rows && (*s == 'd' || *s == 'D');
}

/* After a store only loads from constants stay available. */
static void forget_loads(VmBuild *b, VmOp op) {
  u32 n = 0;
  for (u32 i = 0; *vm_ops[op].operands == 'b' && i < b->nloaded; i++)
    if (b->loaded[i].constant) b->loaded[n++] = b->loaded[i];
  b->nloaded = n;
}

void emit_effect(VmBuild *b, VmOp op, u32 lanes, const u32 *operand, u32 n) {
  if (!keeps_loads(op)) forget_loads(b, op);
  U32Vec *to = &b->level[b->cur].body;
  *vec_push(b->a, to) = (u32)op | lanes << 16;
  put_words(b, to, operand, n);
  b->def = 0;
}

VmVal vb_result(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n) {
  U32Vec *to = &b->level[b->cur].body;
  u32 reg = new_reg(b, cls, lanes);
  *vec_push(b->a, to) = (u32)op | lanes << 16;
  *vec_push(b->a, to) = reg;
  put_words(b, to, operand, n);
  b->def = to->n - n - 1;
  b->defreg = reg;
  return (VmVal){reg, b->cur + 1, lanes};
}

VmVal vb_loaded(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const u32 *operand, u32 n) {
  u32 key[8] = {(u32)op | lanes << 16};
  memcpy(key + 1, operand, n * sizeof *key);
  for (u32 i = 0; i < n; i++) /* registers that are assigned again cannot be a key */
    if (i == 1 && b->reg.at[operand[i]].named) return vb_result(b, op, lanes, cls, operand, n);
  for (u32 i = 0; i < b->nloaded; i++)
    if (b->loaded[i].n == n && !memcmp(b->loaded[i].key, key, sizeof key))
      return (VmVal){b->loaded[i].reg, b->cur + 1, lanes};
  VmVal v = vb_result(b, op, lanes, cls, operand, n);
  if (b->nloaded == sizeof b->loaded / sizeof *b->loaded) b->nloaded = 0;
  memcpy(b->loaded[b->nloaded].key, key, sizeof key);
  b->loaded[b->nloaded].n = n;
  b->loaded[b->nloaded].constant = b->fixed[operand[0]];
  b->loaded[b->nloaded++].reg = v.reg;
  return v;
}

/* words: of the operands, of which the first n are registers. */
static VmVal hoist(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const VmVal *x, u32 n, u32 word,
                   u32 words) {
  u32 key[8] = {0, (u32)op | lanes << 16}, avail = 0, *operand = key + 2;
  for (u32 i = 0; i < n; i++) {
    operand[i] = x[i].reg;
    avail = x[i].avail > avail ? x[i].avail : avail;
  }
  if (words > n) operand[n] = word;
  if (!lanes || avail > b->cur) return vb_result(b, op, lanes, cls, operand, words);
  key[0] = b->level[avail].id;
  u32 *known = map_put_bytes(&b->same, key, (words + 2) * sizeof *key);
  if (!*known) {
    U32Vec *to = &b->level[avail].pre;
    u32 reg = new_reg(b, cls, lanes);
    *vec_push(b->a, to) = (u32)op | lanes << 16;
    *vec_push(b->a, to) = reg;
    put_words(b, to, operand, words);
    *known = reg;
  }
  return (VmVal){*known, avail, lanes};
}

VmVal emit_pure(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const VmVal *x, u32 n) {
  return hoist(b, op, lanes, cls, x, n, 0, n);
}

VmVal emit_typed(VmBuild *b, VmOp op, u32 lanes, VmClass cls, const VmVal *x, u32 n, u32 word) {
  return hoist(b, op, lanes, cls, x, n, word, n + 1);
}

VmVal emit_int(VmBuild *b, VmOp op, VmVal x, VmVal y) {
  return hoist(b, op, 1, VC_l, (VmVal[]){x, y}, 2, 0, 2);
}

static VmVal preset(VmBuild *b, VmClass cls, u64 bits) {
  u32 *known = map_put_bytes(&b->constant, &(u64[]){bits, cls}, 16);
  if (!*known) {
    *known = new_reg(b, cls, 1);
    b->reg.at[*known].fixed = true;
    *vec_push(b->a, &b->init) = (VmInit){.slot = *known, .bits = bits};
  }
  return (VmVal){*known, 0, 1};
}

VmVal vb_constant(VmBuild *b, DType dt, Scalar x) {
  VmClass cls = vm_class(dt);
  u64 bits = 0;
  DType as = cls == VC_f ? DT_f32 : cls == VC_d ? DT_f64 : cls == VC_w ? DT_i32 : DT_i64;
  scalar_store(as, &bits, x);
  return preset(b, cls, bits);
}

VmVal vb_integer(VmBuild *b, i64 x) {
  return preset(b, VC_l, (u64)x);
}

void assign_reg(VmBuild *b, VmVal v, u32 reg, VmClass cls, u32 lanes) {
  static const VmOp move[] = {
      [VC_f] = VM_mov_f, [VC_d] = VM_mov_d, [VC_w] = VM_mov_w, [VC_l] = VM_mov_l};
  if (b->def && b->defreg == v.reg && (v.lanes == lanes)) {
    b->level[b->cur].body.at[b->def] = reg;
    b->def = 0;
    b->nloaded = 0;
    return;
  }
  VmOp op = move[cls];
  if (lanes != 1) op = (VmOp)(op + (v.lanes == lanes ? 1 : 2)); /* vmov, splat */
  emit_effect(b, op, lanes, (const u32[]){reg, v.reg}, 2);
}

static u32 *set_level(VmBuild *b, VarId var, BufId buf) {
  return var ? &b->var[var].level : &b->scalar[buf].level;
}

/* Variables and scalars that the list assigns change while it runs. */
static void mark_sets(VmBuild *b, StmtId first) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(b->p, first); (s = prog_next(&w));) {
    if (s->kind != ST_set && (s->kind != ST_store || !b->scalar[s->buf].reg)) continue;
    LevelUndo u = {s->kind == ST_set ? s->var : 0, s->kind == ST_set ? 0 : s->buf, 0};
    u32 *level = set_level(b, u.var, u.buf);
    if (*level == b->cur + 1) continue;
    u.level = *level;
    *vec_push(b->a, &b->undo) = u;
    *level = b->cur + 1;
  }
}

void level_push(VmBuild *b, StmtId first) {
  if (b->cur + 1 == MAX_LEVELS)
    fail(b->c, ERR_unsupported, LOC_NONE, "vm: loops are nested deeper than %d levels", MAX_LEVELS);
  VmLevel *l = &b->level[++b->cur];
  *l = (VmLevel){.id = ++b->nlevel, .nundo = b->undo.n};
  mark_sets(b, first);
  b->def = b->nloaded = 0;
}

/* Appends its streams to the enclosing body. */
void level_pop(VmBuild *b) {
  VmLevel *l = &b->level[b->cur];
  for (; b->undo.n > l->nundo; b->undo.n--) {
    LevelUndo *u = &b->undo.at[b->undo.n - 1];
    *set_level(b, u->var, u->buf) = u->level;
  }
  b->cur--;
  put_words(b, &b->level[b->cur].body, l->pre.at, l->pre.n);
  put_words(b, &b->level[b->cur].body, l->body.at, l->body.n);
  b->def = b->nloaded = 0;
}
