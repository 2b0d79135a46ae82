/* cstmt.c: statements in C: loops, conditions, assignments, stores. */
#include "back/c/c.h"
#include "back/status.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void begin_line(Emit *e) {
  for (u32 i = 0; i < e->indent; i++) sb_puts(e->t, "  ");
}

void put_line(Emit *e, const char *fmt, ...) {
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  begin_line(e);
  sb_puts(e->t, line);
  sb_puts(e->t, "\n");
}

/* Is it an innermost loop that only loads and adds? Several of its iterations load at once. */
static bool is_sum_loop(Emit *e, const Stmt *s) {
  enum { SUM_STEPS = 64 };
  u32 n = 0;
  const Stmt *b;
  for (StmtVisit w = prog_visit(e->p, s->body); (b = prog_next(&w)); n++)
    if (b->kind != ST_let && b->kind != ST_set) return false;
  return n <= SUM_STEPS;
}

static void put_for(Emit *e, const Stmt *s) {
  const char *name = e->var.at[s->var] = name_loop(e, s->var);
  if (s->flags & LF_after) put_line(e, "ig_after();");
  if (s->flags & LF_nounroll && e->b.mode == BM_vectors) put_line(e, "_Pragma(\"GCC unroll 1\")");
  if (e->warps && !e->team) /* the body runs in all threads and is large */
    put_line(e, "IG_NO_UNROLL");
  else if (e->cuda && is_sum_loop(e, s))
    put_line(e, "IG_UNROLL");
  if (s->flags & LF_dot16_loop && !e->cuda) {
    c_need(e, RT_dot16_loop);
    put_line(e, "IG_DOT16_LOOP");
  }
  begin_line(e);
  sb_fmt(e->t, "for (%s %s = ", e->index, name);
  put_index(e, s->a);
  sb_fmt(e->t, "; %s < ", name);
  put_index(e, s->b);
  if (s->step == 1)
    sb_fmt(e->t, "; %s++) {\n", name);
  else
    sb_fmt(e->t, "; %s += %" PRId64 ") {\n", name, s->step);
  e->indent++;
  put_block(e, s->body);
  e->indent--;
  name_end(e);
  put_line(e, "}");
}

/* The iterations of a loop over the warps or threads of a block. */
static void put_team(Emit *e, const Stmt *s) {
  const char *name = e->var.at[s->var] = name_loop(e, s->var);
  bool threads = s->flags & LF_thread;
  i64 n = 0;
  ex_is_int(e->p, s->b, &n);
  if (s->flags & LF_after) put_line(e, "ig_after();");
  if (s->flags & LF_barrier) put_line(e, "ig_barrier();");
  put_line(e, "{");
  e->indent++;
  put_line(e, "const %s %s = ig_%s_of_block();", e->index, name, threads ? "thread" : "warp");
  bool part = n < (i64)e->warps * (threads ? WARP_LANES : 1);
  if (part) put_line(e, "if (%s < %" PRId64 ") {", name, n);
  e->indent += part;
  e->team = s->flags & LF_team;
  put_block(e, s->body);
  e->team = 0;
  e->indent -= part;
  if (part) put_line(e, "}");
  e->indent--;
  name_end(e);
  put_line(e, "}");
}

static void put_if(Emit *e, const Stmt *s) {
  begin_line(e);
  sb_puts(e->t, "if (");
  put_expr(e, s->a);
  sb_puts(e->t, ") {\n");
  e->indent++;
  put_block(e, s->body);
  e->indent--;
  if (s->other) {
    put_line(e, "} else {");
    e->indent++;
    put_block(e, s->other);
    e->indent--;
  }
  put_line(e, "}");
}

static void put_while(Emit *e, const Stmt *s) {
  begin_line(e);
  sb_puts(e->t, "while (");
  put_expr(e, s->a);
  sb_puts(e->t, ") {\n");
  e->indent++;
  put_block(e, s->body);
  e->indent--;
  put_line(e, "}");
}

/* Follows the first vector load of the loop body. */
static void put_prefetch(Emit *e, const Stmt *s) {
  if (!(s->flags & SF_prefetch) || e->b.mode != BM_vectors) return;
  for (ExprVisit w = ex_visit(e->p, s->a); ex_next(&w);) {
    if (w.e->kind != EX_load || w.e->lanes < 2) continue;
    Expr x = *w.e;
    begin_line(e);
    sb_puts(e->t, "IG_PREFETCH(&");
    put_element(e, x.ref, x.arg, x.narg, 1);
    sb_fmt(e->t, ", %d);\n", (int)s->step);
    e->variant->vec.prefetches = true;
    return;
  }
}

static void put_assign(Emit *e, const Stmt *s) {
  const Var *v = &e->p->var.at[s->var];
  bool vector = v->lanes > 1 && e->b.mode == BM_vectors;
  e->b.w = v->lanes;
  if (s->kind == ST_let) {
    e->var.at[s->var] = name_let(e, s->var);
    e->b.frame += v->lanes * dtype_bytes(c_elem_type(v->dt)) + 16;
  }
  if (v->rows && e->b.mode == BM_warp) {
    begin_line(e);
    if (s->kind == ST_let) sb_fmt(e->t, "%s ", fragment_type(v->dt, v->lanes));
    sb_fmt(e->t, "%s = ", e->var.at[s->var]);
    put_fragment(e, s->a);
    sb_puts(e->t, ";\n");
    return;
  }
  if (v->lanes > 1 && !vector && e->b.mode != BM_warp) {
    put_lanes_assign(e, s);
    return;
  }
  if (prog_expr(e->p, s->a)->kind == EX_hreduce) {
    put_reduction(e, s);
    return;
  }
  begin_line(e);
  if (e->cuda && v->dt == DT_i64 && v->lanes == 1 && !strcmp(e->index, "int")) {
    sb_fmt(e->t, s->kind == ST_let ? "int %s = " : "%s = ", e->var.at[s->var]);
    put_index(e, s->a);
    sb_puts(e->t, ";\n");
    return;
  }
  if (s->kind == ST_let)
    sb_fmt(e->t, "%s ", vector ? vector_type(e, c_elem_type(v->dt), false) : c_type(v->dt));
  sb_fmt(e->t, "%s = ", e->var.at[s->var]);
  put_expr(e, s->a);
  sb_puts(e->t, ";\n");
  if (s->flags & SF_pin && e->b.mode == BM_vectors) { /* not reloaded at each use */
    put_line(e, "IG_PIN(%s);", e->var.at[s->var]);
    e->variant->vec.pins = true;
  }
  put_prefetch(e, s);
}

static void put_store(Emit *e, const Stmt *s) {
  const Buf *b = prog_buf(e->p, s->buf);
  bool lanes = prog_expr(e->p, s->a)->lanes > 1;
  e->by_buf.written[prog_root(e->p, s->buf)] = 1;
  e->by_buf.written[s->buf] = 1;
  if (e->b.mode == BM_warp && prog_expr(e->p, s->a)->rows) {
    put_fragment_store(e, s);
    return;
  }
  if (e->b.mode == BM_warp && (e->team == LF_thread || s->flags & SF_async) && put_copy(e, s))
    return;
  if (e->b.mode == BM_warp && e->team != LF_thread) {
    put_warp_store(e, s);
    return;
  }
  if (lanes && e->b.mode != BM_vectors) {
    put_lanes_store(e, s);
    return;
  }
  begin_line(e);
  if (lanes) {
    put_vector_store(e, s);
  } else {
    put_element(e, s->buf, s->idx, s->nidx, 1);
    sb_puts(e->t, " = ");
    put_stored(e, b->space == BS_reg ? DT_f32 : b->dt, s->a);
  }
  sb_puts(e->t, ";\n");
}

/* Writes a test of a condition: if it is false, the run returns its status. */
static void put_require(Emit *e, const Stmt *s) {
  begin_line(e);
  sb_puts(e->t, "if (!(");
  put_expr(e, s->a);
  if (e->in_kernel) {
    sb_puts(e->t, ")) return;\n");
    return;
  }
  u32 status = ex_reads_state(e->p, s->a) ? STATUS_state : status_add(e, s->loc, s->label);
  sb_fmt(e->t, ")) return %u; /* ", status);
  put_comment(e->t, str_text(e->c, s->label), str_len(e->c, s->label));
  sb_puts(e->t, " */\n");
}

/* Only kernel parameters are C variables, so only they can be operands of the asm. */
static void put_fence(Emit *e, const Stmt *s) {
  if (e->b.mode != BM_vectors || !e->by_buf.param[s->buf]) return;
  begin_line(e);
  sb_puts(e->t, s->flags & FF_spills ? "IG_FENCE_SPILL(" : "IG_FENCE(");
  put_buf_name(e, s->buf);
  sb_puts(e->t, ");\n");
  e->variant->vec.fences = true;
}

static void put_prefetch_at(Emit *e, const Stmt *s) {
  if (e->b.mode != BM_vectors || !e->by_buf.param[s->buf]) return;
  begin_line(e);
  sb_puts(e->t, "IG_PREFETCH_AT(");
  put_buf_name(e, s->buf);
  sb_puts(e->t, ", ");
  put_index(e, s->a);
  sb_puts(e->t, ");\n");
  e->variant->vec.prefetches_at = true;
}

void put_block(Emit *e, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    Stmt s = *prog_stmt(e->p, id); /* emitting may add expressions, never statements */
    switch (s.kind) {
    case ST_for:
      if (e->warps && s.flags & LF_team)
        put_team(e, &s);
      else if (e->in_kernel && id == e->shared)
        put_shared(e, id);
      else
        put_for(e, &s);
      break;
    case ST_while: put_while(e, &s); break;
    case ST_if: put_if(e, &s); break;
    case ST_let:
    case ST_set: put_assign(e, &s); break;
    case ST_store: put_store(e, &s); break;
    case ST_kernel: put_kernel_call(e, s.into ? s.into : id); break;
    case ST_require: put_require(e, &s); break;
    case ST_fence: put_fence(e, &s); break;
    case ST_prefetch: put_prefetch_at(e, &s); break;
    case ST_commit:
      if (e->warps) put_line(e, "ig_commit();");
      break;
    case ST_await:
      if (e->warps) put_line(e, "ig_await<%d>();", (int)s.step);
      break;
    default: break;
    }
  }
}
