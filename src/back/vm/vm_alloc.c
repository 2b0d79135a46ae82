/* vm_alloc.c: register allocation and jump targets.
 *
 * In: streams with virtual registers and label instructions. Out: the words of a VmCode. Method:
 * dead instructions are dropped from last to first. A register is live from its first to its last
 * mention, or to the end of a loop if it was live before the loop. Linear scan over these ranges,
 * with a free list per size. */
#include "back/vm/vm_build.h"

#include <stdlib.h>

bool next_operand(OperandIter *o) {
  while (*o->at == ' ') o->at++;
  if (!*o->at) return false;
  o->word++;
  o->kind = *o->at++;
  o->cls = *o->at && *o->at != ' ' ? *o->at++ : 0;
  o->also_read = *o->at == '+' || o->cls == '*';
  while (*o->at && *o->at != ' ') o->at++;
  return true;
}

bool vb_is_reg(char kind) {
  return kind == 'd' || kind == 'D' || kind == 's' || kind == 'S';
}

u32 vb_root_of(const VmBuild *b, u32 r) {
  return b->reg.at[r].parent ? b->reg.at[r].parent : r;
}

u32 code_words(const u32 *w) {
  return *w == VM_LABEL ? 2 : vm_words(*w);
}

bool has_effect(u32 head) {
  const char *s = vm_ops[head & 0xffff].operands;
  return *s != 'd' && *s != 'D';
}

/* ---- dead code ---- */

void count_uses(const VmBuild *b, const u32 *w, u32 *uses, u32 by) {
  OperandIter o = {.at = vm_ops[*w & 0xffff].operands};
  while (next_operand(&o))
    if (vb_is_reg(o.kind) && (o.word > 1 || o.also_read || has_effect(*w)))
      uses[vb_root_of(b, w[o.word])] += by;
}

/* Backward, so that instructions read only by dead ones are dropped, too. */
static void drop_dead(VmBuild *b, U32Vec *code) {
  u32 *uses = NEWS(b->a, u32, b->reg.n), *start = NEWS(b->a, u32, code->n + 1), n = 0;
  for (u32 i = 0; i < code->n; i += code_words(code->at + i)) {
    start[n++] = i;
    if (code->at[i] != VM_LABEL) count_uses(b, code->at + i, uses, 1);
  }
  u32 kept = 0;
  bool *dead = NEWS(b->a, bool, n + 1);
  for (u32 i = n; i-- > 0;) {
    const u32 *w = code->at + start[i];
    if (*w == VM_LABEL || has_effect(*w) || (*w & 0xffff) == VM_next) continue;
    u32 r = vb_root_of(b, w[1]);
    if (b->reg.at[r].fixed || uses[r]) continue;
    dead[i] = true;
    count_uses(b, w, uses, (u32)-1);
  }
  for (u32 i = 0; i < n; i++) {
    u32 words = code_words(code->at + start[i]);
    if (dead[i]) continue;
    for (u32 k = 0; k < words; k++) code->at[kept + k] = code->at[start[i] + k];
    kept += words;
  }
  code->n = kept;
}

/* ---- live ranges ---- */

/* Removes labels; place: by label. */
static void strip_labels(VmBuild *b, U32Vec *code, u32 *place) {
  u32 n = 0;
  for (u32 i = 0, words; i < code->n; i += words) {
    words = code_words(code->at + i);
    if (code->at[i] == VM_LABEL) {
      place[code->at[i + 1]] = n;
      continue;
    }
    for (u32 k = 0; k < words; k++) code->at[n + k] = code->at[i + k];
    n += words;
  }
  code->n = n;
  for (u32 i = 0; i < n; i += vm_words(code->at[i])) {
    OperandIter o = {.at = vm_ops[code->at[i] & 0xffff].operands};
    while (next_operand(&o))
      if (o.kind == 'j') code->at[i + o.word] = place[code->at[i + o.word]];
  }
  (void)b;
}

typedef struct Jump {
  u32 from, to;
} Jump;
typedef VEC(Jump) Jumps;

static Jumps find_ranges(VmBuild *b, const U32Vec *code) {
  Jumps back = {0};
  for (u32 i = 0; i < code->n; i += vm_words(code->at[i])) {
    OperandIter o = {.at = vm_ops[code->at[i] & 0xffff].operands};
    while (next_operand(&o)) {
      u32 x = code->at[i + o.word];
      if (o.kind == 'j' && x <= i) *vec_push(b->a, &back) = (Jump){i, x};
      if (!vb_is_reg(o.kind)) continue;
      VReg *r = &b->reg.at[vb_root_of(b, x)];
      if (!r->first) r->first = i + 1;
      r->last = i + 1;
    }
  }
  return back;
}

static int by_last(const void *a, const void *b) {
  const VReg *x = *(VReg *const *)a, *y = *(VReg *const *)b;
  return x->last != y->last ? (x->last > y->last) - (x->last < y->last) : (x > y) - (x < y);
}

static int by_first(const void *a, const void *b) {
  const VReg *x = *(VReg *const *)a, *y = *(VReg *const *)b;
  return x->first != y->first ? (x->first > y->first) - (x->first < y->first) : (x > y) - (x < y);
}

/* Loops come in the order of their ends, inner before outer. A register live before a loop and used
 * in it stays live to its end. */
static void extend_ranges(VmBuild *b, const Jumps *back, VReg **list, u32 n) {
  /* buckets of registers by last use, one per word of code */
  u32 *head, *next, words = 0;
  for (u32 i = 0; i < n; i++) words = list[i]->last > words ? list[i]->last : words;
  for (u32 i = 0; i < back->n; i++) words = back->at[i].from > words ? back->at[i].from : words;
  head = NEWS(b->a, u32, words + 3);
  next = NEWS(b->a, u32, n + 1);
  for (u32 i = 0; i < n; i++) {
    next[i] = head[list[i]->last];
    head[list[i]->last] = i + 1;
  }
  for (u32 k = 0; k < back->n; k++) {
    u32 from = back->at[k].to + 1, to = back->at[k].from + 1;
    for (u32 at = from; at < to; at++)
      for (u32 i = head[at], before = 0, then; i; i = then) {
        then = next[i - 1];
        if (list[i - 1]->first >= from) {
          before = i;
          continue;
        }
        if (before)
          next[before - 1] = then;
        else
          head[at] = then;
        list[i - 1]->last = to;
        next[i - 1] = head[to];
        head[to] = i;
      }
  }
}

/* ---- slots ---- */

typedef struct FreeSlots {
  u32 slots;
  VEC(u32) at;
} FreeSlots;

typedef struct Slots {
  Arena *a;
  VEC(FreeSlots) size;
  u32 top;
} Slots;

static FreeSlots *of_size(Slots *s, u32 slots) {
  for (u32 i = 0; i < s->size.n; i++)
    if (s->size.at[i].slots == slots) return &s->size.at[i];
  FreeSlots *f = vec_push(s->a, &s->size);
  f->slots = slots;
  return f;
}

static u32 alloc_slots(Slots *s, u32 slots) {
  FreeSlots *f = of_size(s, slots);
  if (f->at.n) return f->at.at[--f->at.n];
  u32 align = slots >= 8 ? 8 : slots >= 4 ? 4 : slots >= 2 ? 2 : 1;
  u32 at = (s->top + align - 1) / align * align;
  s->top = at + slots;
  return at;
}

static void linear_scan(VmBuild *b, VReg **list, u32 n, Slots *s) {
  VReg **ends = arena_copy(b->a, list, (n + 1) * sizeof *list);
  u32 done = 0;
  qsort(list, n, sizeof *list, by_first);
  qsort(ends, n, sizeof *ends, by_last);
  for (u32 i = 0; i < n; i++) {
    for (; done < n && ends[done]->last < list[i]->first; done++)
      *vec_push(b->a, &of_size(s, ends[done]->slots)->at) = ends[done]->slot;
    list[i]->slot = alloc_slots(s, list[i]->slots);
  }
}

static void assign_slots(VmBuild *b, const U32Vec *code, VmCode *out) {
  Slots s = {.a = b->a, .top = 1};
  Jumps back = find_ranges(b, code);
  VReg **list = NEWS(b->a, VReg *, b->reg.n + 1);
  u32 n = 0;
  for (u32 i = 1; i < b->reg.n; i++) {
    VReg *r = &b->reg.at[i];
    if (r->parent) continue;
    if (r->fixed)
      r->slot = alloc_slots(&s, r->slots);
    else if (r->first)
      list[n++] = r;
  }
  extend_ranges(b, &back, list, n);
  linear_scan(b, list, n, &s);
  out->slots = (s.top + 7) / 8 * 8;
}

void vm_finish(VmBuild *b, VmCode *out) {
  U32Vec code = {0};
  put_words(b, &code, b->level[0].pre.at, b->level[0].pre.n);
  put_words(b, &code, b->level[0].body.at, b->level[0].body.n);
  vm_fuse(b, &code);
  drop_dead(b, &code);
  strip_labels(b, &code, NEWS(b->a, u32, b->nlabel + 1));
  assign_slots(b, &code, out);
  for (u32 i = 0; i < code.n; i += vm_words(code.at[i])) {
    OperandIter o = {.at = vm_ops[code.at[i] & 0xffff].operands};
    while (next_operand(&o)) {
      if (!vb_is_reg(o.kind)) continue;
      const VReg *r = &b->reg.at[code.at[i + o.word]];
      code.at[i + o.word] = r->parent ? b->reg.at[r->parent].slot + r->off : r->slot;
    }
  }
  for (u32 i = 0; i < b->init.n; i++) b->init.at[i].slot = b->reg.at[b->init.at[i].slot].slot;
  out->word = code.at;
  out->nword = code.n;
  out->row = ROW_LANES;
  out->nbuf = b->nbuf;
  out->nmessage = b->message.n;
  out->math = b->p->math;
  out->init = b->init.at;
  out->ninit = b->init.n;
}
