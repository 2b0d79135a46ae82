/* prog_mem.h: analysis of the memory a program accesses: sizes, coverage of stores, sharing. */
#ifndef INGOT_PROG_MEM_H
#define INGOT_PROG_MEM_H

#include "ir/prog/prog.h"

/* prog_mem.c */
enum { MEM_ALIGN = 64, MEM_NEST = 64, MEM_TERMS = 8 };

/* Bytes for the bounds of its dimensions, a multiple of MEM_ALIGN. False: unbounded; *sym is the
 * symbol without a bound, or TOO_LARGE if the product overflows. */
#define TOO_LARGE UINT32_MAX
bool mem_stride(Prog *p, BufId b, u64 *bytes, Sym *sym);
/* Bytes of a buffer as mem_stride computes them, times the number of threads for scratch. */
bool mem_bytes(Prog *p, BufId b, u64 *bytes, Sym *sym);
/* Fails with ERR_unsupported for a buffer that mem_bytes cannot size. */
_Noreturn void mem_refuse(Prog *p, BufId b, Sym sym);
/* Fails for the first arena buffer without a size; returns if the program is planned. */
void mem_need_plan(Prog *p);
/* Removes unused buffers except parameters; renumbers the others. */
void mem_sweep(Prog *p);
/* Is it in the arena? Pass the root of a view. */
static inline bool mem_in_arena(Prog *p, BufId root) {
  BufSpace s = prog_buf(p, root)->space;
  return s == BS_temp || s == BS_state || s == BS_local;
}

/* May they overlap? The plan may place a result over an operand, and views share their root. */
bool mem_overlap(Prog *p, BufId a, BufId b);

/* The loops around a statement, outermost first. */
typedef struct Nesting {
  StmtId loop[MEM_NEST];
  u32 n;
} Nesting;

/* An integer k + sum coef * (0 .. trip - 1) over counters of loops with constant bounds; coef > 0,
 * ascending. */
typedef struct StridedIndex {
  i64 k;
  u32 n;
  VarId var[MEM_TERMS];
  i64 coef[MEM_TERMS], trip[MEM_TERMS];
} StridedIndex;
bool mem_steps(Prog *p, const Nesting *at, ExprId e, StridedIndex *s);

/* Part of a buffer that one store certainly writes: all of it, or lo .. hi - 1 along one axis. */
typedef struct WrittenRange {
  BufId buf;
  u32 axis; /* MAX_RANK: the whole buffer */
  i64 lo, hi;
} WrittenRange;
bool mem_box(Prog *p, const Nesting *at, const Stmt *store, WrittenRange *box);
/* Do the boxes of b, or of a view of it, cover it? Sorts them. */
bool mem_whole(Prog *p, BufId b, WrittenRange *box, u32 n);

/* prog_share.c */
/* May `to` overlap `from` while this kernel runs? Every element of `from` must be read for the last
 * time before its place is written. Both are roots. `t` caches the accesses of the last kernel: the
 * program must not change. */
typedef struct KernelAccesses KernelAccesses;
KernelAccesses *mem_accesses(Prog *p, Arena *a);
bool mem_in_place(KernelAccesses *t, StmtId kernel, BufId from, BufId to);

/* prog_plan.c: finds two buffers of a planned program that overlap while both are live. */
bool mem_collision(Prog *p, BufId *a, BufId *b);

/* prog_join.c: makes programs share one arena, as entries of one file. share: states of the first
 * with the same name, type and size are shared by the others. */
void progs_join(Prog *const *p, u32 n, bool share);

#endif
