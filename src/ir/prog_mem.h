/* prog_mem.h: what is known about the memory a program touches: sizes, coverage of stores, sharing.
 */
#ifndef INGOT_PROG_MEM_H
#define INGOT_PROG_MEM_H

#include "ir/prog.h"

/* prog_mem.c */
enum { MEM_ALIGN = 64, MEM_NEST = 64, MEM_TERMS = 8 };

/* Bytes for the bounds of its dimensions, a multiple of MEM_ALIGN. False: no bound; *sym is the
 * symbol that lacks one, or TOO_LARGE when the product is too large. */
#define TOO_LARGE UINT32_MAX
bool mem_stride(Prog *p, BufId b, u64 *bytes, Sym *sym);
/* The same; of scratch, for all threads together. */
bool mem_bytes(Prog *p, BufId b, u64 *bytes, Sym *sym);
/* Fails with ERR_unsupported for a buffer that mem_bytes found no size for. */
_Noreturn void mem_refuse(Prog *p, BufId b, Sym sym);
/* The same for the first such buffer of the arena; returns when the program is planned. */
void mem_need_plan(Prog *p);
/* Removes buffers that nothing touches, but for parameters; the others are numbered again. */
void mem_sweep(Prog *p);
/* Is b in the arena? Views are where their root is. */
static inline bool mem_in_arena(Prog *p, BufId root) {
  BufSpace s = prog_buf(p, root)->space;
  return s == BS_temp || s == BS_state || s == BS_local;
}

/* May they overlap? The plan lets a result take the place of an operand, and views share their
 * root.
 */
bool mem_overlap(Prog *p, BufId a, BufId b);

/* The loops around a place, outermost first. */
typedef struct Nesting {
  StmtId loop[MEM_NEST];
  u32 n;
} Nesting;

/* An integer k + sum coef * (0 .. trip - 1), over the counters of loops with constant bounds; coef
 * > 0, in ascending order. */
typedef struct Steps {
  i64 k;
  u32 n;
  VarId var[MEM_TERMS];
  i64 coef[MEM_TERMS], trip[MEM_TERMS];
} Steps;
bool mem_steps(Prog *p, const Nesting *at, ExprId e, Steps *s);

/* Part of a buffer that one store is sure to write when the statements around it have run:
 * everything, or lo .. hi - 1 along one axis. */
typedef struct Box {
  BufId buf;
  u32 axis; /* MAX_RANK: the whole buffer */
  i64 lo, hi;
} Box;
bool mem_box(Prog *p, const Nesting *at, const Stmt *store, Box *box);
bool mem_whole(Prog *p, BufId b, Box *box,
               u32 n); /* do the boxes of b, or of a view of it, fill it? sorts */

/* prog_share.c */
/* May `to` lie where `from` lies while this kernel runs? Every element of `from` must have been
 * read for the last time before the same place is written. Both are roots. The loads and stores of
 * a kernel are kept in `t` until another kernel is asked for: the program must not change. */
typedef struct KernelAccesses KernelAccesses;
KernelAccesses *mem_accesses(Prog *p, Arena *a);
bool mem_in_place(KernelAccesses *t, StmtId kernel, BufId from, BufId to);

/* prog_plan.c: two buffers of a planned program that are needed at the same time and overlap, if
 * there are any. */
bool mem_collision(Prog *p, BufId *a, BufId *b);

/* prog_join.c: programs that share an arena from now on, as entries of one file. share: what the
 * first keeps under the same name, of the same type and size, is kept by the others, too. */
void progs_join(Prog *const *p, u32 n, bool share);

#endif
