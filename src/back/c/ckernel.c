/* ckernel.c: kernels as C functions.
 *
 * In: a kernel statement. Out: a call, and a static function unless an equal one was written
 * before. Every buffer and every outer variable becomes a parameter. Parameters are named by role,
 * not by tensor, since nodes with equal shapes and operations share a function: x is read, w is
 * constant, b is constant with one axis, y is written, s is scratch. The comment before the
 * function describes the first call.
 *
 * The stack bound is counted here, not in a pass, since it depends on what C compilers make of this
 * text, also without optimization. The LLVM back end states no bound. */
#include "back/c/c.h"
#include "ir/prog/prog_mem.h"

#include <inttypes.h>

/* A kernel that becomes a function. */
typedef struct Uses {
  KernelParams takes;
  const u32 *sets; /* by variable: equals `id` if the kernel assigns it */
  u32 id;
  u32 size;  /* variables and operations: each may take a stack slot */
  u32 bytes; /* stack bytes of plain loops */
} Uses;

/* Stack bytes of an operation. Without optimization gcc and clang store every variable, and keep
 * values across calls and branches; sums and products stay in registers or spill. Loops of narrow
 * integers are vectorized at -O3 and need several vectors each. About twice the measured
 * maximum. */
static u32 stack_slot(const Expr *x) {
  bool simple = x->op == OP_add || x->op == OP_sub || x->op == OP_mul;
  if (x->kind != EX_op) return x->kind == EX_load ? 4 : 0;
  return simple ? 4 : dtype_bytes(x->dt) < 4 ? 192 : 16;
}

static void count_expr(Uses *u, ExprVisit x) {
  while (ex_next(&x)) {
    u->size++;
    u->bytes += stack_slot(x.e);
  }
}

/* Comparisons of a require are branched on at once and take no slot. */
static void count_block(Prog *p, Uses *u, StmtId first, StmtId handed) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, first); (s = prog_next(&w));) {
    if (s->kind == ST_fence || s->kind == ST_require) continue;
    ExprVisit x = ex_visit_stmt(p, s);
    if (w.id == handed) x.b = 0;
    count_expr(u, x);
    u->size++;
    if (s->kind == ST_for || s->kind == ST_let) u->bytes += 16;
  }
  for (u32 i = 0; i < u->takes.buf.n; i++) { /* its strides */
    const Buf *b = prog_buf(p, u->takes.buf.at[i]);
    for (u32 k = 1; k < b->rank; k++)
      if (!dim_is_const(b->dim[k])) count_expr(u, ex_visit(p, ex_dim(p, b->dim[k])));
  }
}

static bool sets_var(const Uses *u, u32 i) {
  return u->sets[u->takes.var.at[i]] == u->id;
}

/* The role of a buffer; known after its body is written. */
static char role(Emit *e, BufId id) {
  const Buf *b = prog_buf(e->p, id);
  if (b->space == BS_local) return 's';
  if (e->by_buf.written[id]) return 'y';
  if (prog_buf(e->p, prog_root(e->p, id))->space != BS_const) return 'x';
  u32 axes = 0;
  for (u32 i = 0; i < b->rank; i++) axes += b->dim[i] != 1;
  return axes > 1 ? 'w' : 'b';
}

static const char **param_names(Emit *e, const Uses *u) {
  const char **names = NEWS(&e->c->scratch, const char *, u->takes.buf.n + 1);
  u32 count[128] = {0};
  for (u32 i = 0; i < u->takes.buf.n; i++) {
    char ch = role(e, u->takes.buf.at[i]);
    StrBuf t = sb_new(&e->c->scratch);
    sb_fmt(&t, "%c", ch);
    if (++count[(u32)ch] > 1) sb_fmt(&t, "_%u", count[(u32)ch]);
    names[i] = sb_cstr(&t);
  }
  return names;
}

static void put_params(Emit *e, StrBuf *t, const Uses *u) {
  bool *shared = params_shared(e->p, &u->takes, &e->c->scratch);
  const char *comma = "";
  for (u32 i = 0; i < u->takes.buf.n; i++, comma = ", ") {
    const Buf *b = prog_buf(e->p, u->takes.buf.at[i]);
    const char *type = c_storage(b->dt);
    if (!type)
      fail(e->c, ERR_unsupported, LOC_NONE, "the C back end does not support buffers of type %s",
           dtype_info[b->dt].name);
    sb_fmt(t, "%s%s%s *%s", comma, e->by_buf.written[u->takes.buf.at[i]] ? "" : "const ", type,
           shared[i] ? "" : "restrict ");
    put_param_mark(t, i);
  }
  for (u32 i = 0; i < u->takes.var.n;
       i++, comma = ", ") /* a variable that the kernel assigns is passed by address */
    sb_fmt(t, "%s%s %sa%u", comma, c_type(prog_var(e->p, u->takes.var.at[i])->dt),
           sets_var(u, i) ? "*" : "", i);
  if (u->takes.random) sb_fmt(t, "%suint64_t seed", comma);
}

/* Passes a buffer to the threads; scratch has one copy per thread. */
static void send_buf(Emit *e, StrBuf *share, StrBuf *part, u32 i, BufId b, const char *name) {
  const char *way = e->by_buf.written[b] ? "out" : "in";
  BufId root = prog_root(e->p, b);
  u64 bytes;
  Sym sym;
  sb_fmt(share, "  j->a[%u].%s = %s;\n", i, way, name);
  if (prog_buf(e->p, b)->space != BS_local)
    sb_fmt(part, "j->a[%u].%s", i, way);
  else if (!mem_stride(e->p, root, &bytes, &sym))
    mem_refuse(e->p, root, sym);
  else
    sb_fmt(part, "(%s *)(void *)((unsigned char *)j->a[%u].out + w * %" PRIu64 ")",
           c_storage(prog_buf(e->p, b)->dt), i, bytes);
}

/* Writes a function that hands the kernel to the threads, and the switch case that runs it.
 * Variables are passed as one of three number types. params: of the kernel without its range. */
static void put_share(Emit *e, const Uses *u, u32 number, const StrBuf *params,
                      const char *const *name) {
  SharedKernels *k = &e->variant->shared_kernels;
  StrBuf *share = &k->shares, *part = &k->cases;
  u32 seed = u->takes.buf.n + u->takes.var.n, n = seed + u->takes.random;
  sb_puts(share, "\nstatic void ");
  put_kernel_name(e, share, "share_", number);
  put_template(e, share, "(ig_job${sfx} *j%s", params->n ? ", " : "");
  sb_put(share, params->at, params->n);
  sb_fmt(share, ", ptrdiff_t chunk, ptrdiff_t count) {\n  j->kernel = %u;\n", number);
  sb_fmt(part, "  case %u:\n    ", number);
  put_kernel_name(e, part, "", number);
  sb_puts(part, "(");
  for (u32 i = 0; i < n; i++) {
    if (i) sb_puts(part, ", ");
    if (i < u->takes.buf.n) {
      send_buf(e, share, part, i, u->takes.buf.at[i], name[i]);
      continue;
    }
    DType dt = i < seed ? prog_var(e->p, u->takes.var.at[i - u->takes.buf.n])->dt : DT_u64;
    char way = dtype_is_float(dt) ? 'd' : dtype_is_signed(dt) ? 'i' : 'u';
    sb_fmt(share, i < seed ? "  j->a[%u].%c = a%u;\n" : "  j->a[%u].%c = seed;\n", i, way,
           i - u->takes.buf.n);
    sb_fmt(part, "(%s)j->a[%u].%c", c_type(dt), i, way);
  }
  put_template(e, share, "  ig_parallel_for${sfx}(j, chunk, count);\n}\n");
  sb_fmt(part, "%sfrom, to);\n    break;\n", n ? ", " : "");
  if (n > k->args) k->args = n;
  k->n++;
}

/* Comment with the parameters of the first call. */
static void put_shapes(Emit *e, const Uses *u, const char *const *name) {
  for (u32 i = 0; i < u->takes.buf.n; i++) {
    const Buf *b = prog_buf(e->p, u->takes.buf.at[i]);
    sb_fmt(&e->variant->kernels.text, "\n * %s: %s[", name[i], dtype_info[b->dt].name);
    for (u32 k = 0; k < b->rank; k++) {
      StrBuf d = sb_new(&e->c->scratch);
      dim_print(e->p->dims, b->dim[k], &d);
      sb_puts(&e->variant->kernels.text, k ? "," : "");
      put_comment(&e->variant->kernels.text, d.at, d.n);
    }
    sb_puts(&e->variant->kernels.text, b->name ? "] " : "]");
    if (b->name)
      put_comment(&e->variant->kernels.text, str_text(e->c, b->name), str_len(e->c, b->name));
  }
}

/* Names the parameters inside the function. Returns the outer names of the variables. */
static const char **name_params(Emit *e, const Uses *u) {
  const char **outside = NEWS(&e->c->scratch, const char *, u->takes.var.n + 1);
  for (u32 i = 0; i < u->takes.var.n; i++) {
    StrBuf t = sb_new(&e->c->scratch);
    sb_fmt(&t, sets_var(u, i) ? "(*a%u)" : "a%u", i);
    outside[i] = e->var.at[u->takes.var.at[i]];
    e->var.at[u->takes.var.at[i]] = sb_cstr(&t);
  }
  for (u32 i = 0; i < u->takes.buf.n; i++) {
    e->by_buf.param[u->takes.buf.at[i]] = i + 1;
    e->by_buf.written[u->takes.buf.at[i]] = 0;
  }
  return outside;
}

/* A function being written: marks stand for names (cname.c). */
typedef struct Function {
  StrBuf params, text;
  LocalNames names;
  const char **param; /* names */
  bool shared;
} Function;

static Function make_function(Emit *e, StmtId id, const Stmt *s, const Uses *u) {
  Arena *a = &e->c->scratch;
  Function f = {.params = sb_new(a), .text = sb_new(a), .shared = is_shared(e, s)};
  StrBuf *outer = e->t;
  u32 indent = e->indent;
  LocalNames outer_names = e->names;
  FuncBody outer_body = e->b;
  const char **outside = name_params(e, u);
  e->t = &f.text;
  e->indent = 1;
  e->names = (LocalNames){0};
  e->in_kernel = true;
  e->shared = f.shared ? s->body : 0;
  put_body(e, s->body, id);
  if (e->b.frame > e->sizes.kernel_frame) e->sizes.kernel_frame = e->b.frame;
  put_params(e, &f.params, u);
  f.param = param_names(e, u);
  f.names = e->names;
  if (s->flags & KF_noinline) c_need(e, RT_noinline);
  if (e->o->target && e->o->target->micro) c_need(e, RT_micro);
  if (s->flags & KF_tree_walk) c_need(e, RT_tree_walk);
  e->b = outer_body;
  e->in_kernel = false;
  e->t = outer;
  e->indent = indent;
  e->names = outer_names;
  for (u32 i = 0; i < u->takes.var.n; i++) e->var.at[u->takes.var.at[i]] = outside[i];
  for (u32 i = 0; i < u->takes.buf.n; i++) e->by_buf.param[u->takes.buf.at[i]] = 0;
  return f;
}

static void put_function(Emit *e, const Stmt *s, const Uses *u, const Function *f, u32 number) {
  Arena *a = &e->c->scratch;
  StrBuf head = sb_new(a), params = sb_new(a), text = sb_new(a);
  u64 bytes = put_named(&f->names, &text, &f->text, f->param);
  put_named(&f->names, &params, &f->params, f->param);
  e->sizes.code += bytes;
  sb_puts(&e->variant->kernels.text, "\n");
  put_part_begin(e, &e->variant->kernels.text, split_choose(e, bytes));
  sb_puts(&e->variant->kernels.text, "/* ");
  put_label(&e->variant->kernels.text, str_text(e->c, s->label), str_len(e->c, s->label));
  put_shapes(e, u, f->param);
  /* ig_run_range calls all parallel kernels: inlined there, they lose restrict */
  sb_fmt(&head, "%s%s%svoid ", kernel_linkage(e),
         f->shared                ? "__attribute__((noinline)) "
         : s->flags & KF_noinline ? "IG_NOINLINE "
                                  : "",
         s->flags & KF_tree_walk ? "IG_TREE_WALK " : "");
  put_kernel_name(e, &head, "", number);
  sb_fmt(&head, "(%s", sb_cstr(&params));
  if (f->shared)
    sb_fmt(&head, "%sptrdiff_t from, ptrdiff_t to", params.n ? ", " : "");
  else if (!params.n)
    sb_puts(&head, "void");
  sb_fmt(&e->variant->kernels.text, " */\n%s) {\n", sb_cstr(&head));
  sb_put(&e->variant->kernels.text, text.at, text.n);
  sb_puts(&e->variant->kernels.text, "}\n");
  put_part_end(e, &e->variant->kernels.text);
  if (has_parts(e)) sb_fmt(&e->variant->kernels.heads, "%s);\n", sb_cstr(&head));
  if (f->shared) put_share(e, u, number, &params, f->param);
}

/* Returns the number of the function, and writes it unless an equal one exists. */
static u32 write_function(Emit *e, StmtId id, const Stmt *s, const Uses *u) {
  Function f = make_function(e, id, s, u);
  StrBuf key = sb_new(&e->c->scratch);
  sb_put(&key, f.params.at, f.params.n);
  sb_put(&key, f.text.at, f.text.n);
  for (u32 i = 0; f.shared && i < u->takes.buf.n;
       i++) { /* thread strides of scratch depend on its size */
    u64 bytes = 0;
    Sym sym;
    BufId root = prog_root(e->p, u->takes.buf.at[i]);
    if (prog_buf(e->p, root)->space == BS_local && mem_bytes(e->p, root, &bytes, &sym))
      sb_fmt(&key, " %llu", (unsigned long long)bytes);
  }
  u32 *slot = map_put_bytes(&e->variant->kernels.at, key.at, key.n);
  if (*slot) return *slot - 1;
  u32 number = e->variant->kernels.word.n;
  *slot = number + 1;
  *vec_push(&e->c->keep, &e->variant->kernels.word) = kernel_ident(e, s->label);
  put_function(e, s, u, &f, number);
  return number;
}

/* Counts the kernel's stack and its call; its text is counted without quoted names. */
static void count_kernel(FrameSizes *z, const Uses *u) {
  u32 params = u->takes.buf.n + u->takes.var.n;
  if (u->size + params > z->max_values) z->max_values = u->size + params;
  if (params > z->max_params) z->max_params = params;
  if (u->bytes + 8 * params > z->max_bytes) z->max_bytes = u->bytes + 8 * params;
  z->code += 64 + 24 * (u64)params;
}

void put_kernel_call(Emit *e, StmtId id) {
  Stmt s = *prog_stmt(e->p, id);
  if (!s.body) return;
  if (e->launch) {
    e->launch(e, id, e->launch_arg);
    return;
  }
  Mark m = arena_mark(&e->c->scratch);
  bool shared = is_shared(e, &s);
  const char *comma = shared ? ", " : "";
  StmtId handed = shared ? s.body : 0; /* the threads get the range of this loop */
  Uses u = {.takes = kernel_params(e->p, s.body, handed, &e->marked, &e->c->scratch)};
  u.sets = e->marked.sets;
  u.id = e->marked.n;
  count_block(e->p, &u, s.body, handed);
  u32 number = write_function(e, id, &s, &u);
  count_kernel(&e->sizes, &u);
  begin_line(e);
  put_kernel_name(e, e->t, shared ? "share_" : "", number);
  sb_puts(e->t, shared ? "(job" : "(");
  for (u32 i = 0; i < u.takes.buf.n; i++, comma = ", ") {
    sb_puts(e->t, comma);
    put_buf_name(e, u.takes.buf.at[i]);
  }
  for (u32 i = 0; i < u.takes.var.n; i++, comma = ", ")
    sb_fmt(e->t, "%s%s%s", comma, sets_var(&u, i) ? "&" : "", e->var.at[u.takes.var.at[i]]);
  if (u.takes.random) sb_fmt(e->t, "%sseed", comma);
  if (shared) {
    sb_fmt(e->t, ", %u, ", prog_stmt(e->p, s.body)->chunk ? prog_stmt(e->p, s.body)->chunk : 1);
    put_index(e, shared_count(e, &s));
  }
  sb_puts(e->t, "); ");
  put_trailing_comment(e, e->t, s.label);
  put_profile_call(e, id);
  if (e->o->ticks) put_template(e, e->t, "${name}_tick(${name}_user, %u);\n", id);
  arena_rewind(&e->c->scratch, m);
}
