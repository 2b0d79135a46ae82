/* cstmt.c: statements in C: loops, conditions, assignments, stores. */
#include "back/c/c.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void begin(Emit *e) {
  for (u32 i = 0; i < e->indent; i++) text_puts(e->t, "  ");
}

void put_line(Emit *e, const char *fmt, ...) {
  char line[512];
  va_list ap;
  va_start(ap, fmt);
  vsnprintf(line, sizeof line, fmt, ap);
  va_end(ap);
  begin(e);
  text_puts(e->t, line);
  text_puts(e->t, "\n");
}

/* i, j, k, ... by depth; further in, i2, j2, ... */
static const char *loop_name(Emit *e) {
  static const char letters[] = "ijklmnopqrs";
  u32 n = sizeof letters - 1;
  Text t = text_new(&e->c->scratch);
  text_put(&t, letters + e->depth % n, 1);
  if (e->depth >= n) text_fmt(&t, "%u", e->depth / n + 1);
  return text_cstr(&t);
}

static void put_for(Emit *e, const Stmt *s) {
  const char *name = loop_name(e);
  e->var[s->var] = name;
  begin(e);
  text_fmt(e->t, "for (ptrdiff_t %s = ", name);
  put_index(e, s->a);
  text_fmt(e->t, "; %s < ", name);
  put_index(e, s->b);
  if (s->step == 1)
    text_fmt(e->t, "; %s++) {\n", name);
  else
    text_fmt(e->t, "; %s += %" PRId64 ") {\n", name, s->step);
  e->indent++;
  e->depth++;
  put_block(e, s->body);
  e->depth--;
  e->indent--;
  put_line(e, "}");
}

static void put_if(Emit *e, const Stmt *s) {
  begin(e);
  text_puts(e->t, "if (");
  put_expr(e, s->a);
  text_puts(e->t, ") {\n");
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
  begin(e);
  text_puts(e->t, "while (");
  put_expr(e, s->a);
  text_puts(e->t, ") {\n");
  e->indent++;
  put_block(e, s->body);
  e->indent--;
  put_line(e, "}");
}

static void put_assign(Emit *e, const Stmt *s) {
  const Var *v = &e->p->var.at[s->var];
  begin(e);
  if (s->kind == ST_let) {
    Text t = text_new(&e->c->scratch);
    text_fmt(&t, "v%u", s->var);
    e->var[s->var] = text_cstr(&t);
    text_fmt(e->t, "%s ", c_type(v->dt));
  }
  text_fmt(e->t, "%s = ", e->var[s->var]);
  put_expr(e, s->a);
  text_puts(e->t, ";\n");
}

static void put_store(Emit *e, const Stmt *s) {
  DType dt = prog_buf(e->p, s->buf)->dt;
  e->written[prog_root(e->p, s->buf)] = 1;
  e->written[s->buf] = 1;
  begin(e);
  put_element(e, s->buf, s->idx, s->nidx);
  text_puts(e->t, " = ");
  if (dt == DT_f16 || dt == DT_bf16) {
    need(e, dt == DT_f16 ? RT_put_f16 : RT_put_bf16);
    text_fmt(e->t, "ig_put_%s(", dtype_info[dt].name);
    put_expr(e, s->a);
    text_puts(e->t, ");\n");
  } else if (dtype_is_float(dt) && dt != DT_f32 && dt != DT_f64) {
    put_narrow_store(e, dt, s->a);
  } else {
    put_expr(e, s->a);
    text_puts(e->t, ";\n");
  }
}

/* What the sizes given by the caller must satisfy. */
static void put_require(Emit *e, const Stmt *s) {
  if (e->in_kernel)
    fail(e->c, ERR_unsupported, s->loc, "the C back end writes no conditions inside kernels");
  begin(e);
  text_puts(e->t, "if (!(");
  put_expr(e, s->a);
  text_puts(e->t, ")) return 2; /* ");
  put_comment(e->t, str_text(e->c, s->label), str_len(e->c, s->label));
  text_puts(e->t, " */\n");
}

void put_block(Emit *e, StmtId first) {
  for (StmtId id = first; id; id = prog_stmt(e->p, id)->next) {
    Stmt s = *prog_stmt(e->p, id); /* emitting may add expressions, never statements */
    switch (s.kind) {
    case ST_for: put_for(e, &s); break;
    case ST_while: put_while(e, &s); break;
    case ST_if: put_if(e, &s); break;
    case ST_let:
    case ST_set: put_assign(e, &s); break;
    case ST_store: put_store(e, &s); break;
    case ST_kernel: put_kernel_call(e, id); break;
    case ST_require: put_require(e, &s); break;
    default: break;
    }
  }
}
