/* cuda_file.c: a program as one .cu file and its header, for nvcc.
 *
 * In: a planned program lowered for a warp. Out: the kernels and a host function that launches them
 * on a stream. It allocates nothing and does not wait, so a graph can capture it. A program whose
 * host would have to read what a kernel wrote is refused. */
#include "back/c/c.h"
#include "back/cuda/cuda.h"
#include "back/status.h"
#include "ir/lexer.h"
#include "ir/prog/prog_mem.h"

#include <inttypes.h>
#include <string.h>

#define FILE_SCRATCH ((u64)64 << 20) /* limit of all workers of a kernel */

typedef struct CudaOut {
  CudaText *t;
  Emit *e;
  u64 *place;  /* by buffer: offset of a constant or an initial state in the blob */
  u64 scratch; /* bytes, after the arena */
  u64 arena;   /* bytes of the arena */
  bool random;
} CudaOut;

static _Noreturn void refuse(Prog *p, Loc loc, const char *what) {
  fail(p->c, ERR_unsupported, loc, "--target cuda: %s; engine cuda can run this model", what);
}

/* Refuses programs whose host code needs more than the sizes of inputs. */
static void check_host(Prog *p, const CudaText *t) {
  const Stmt *s;
  for (StmtVisit w = prog_visit(p, p->body); (s = prog_next(&w));) {
    w.skip = s->kind == ST_kernel;
    const u32 *slot = w.skip ? map_get(&t->at, w.id) : NULL;
    if (slot && *slot && t->call.at[*slot - 1].any_set)
      refuse(p, s->loc, "a size depends on the data");
    if (w.skip) continue;
    if (s->kind == ST_store) refuse(p, s->loc, "a value is stored between kernels");
    for (ExprVisit x = ex_visit_stmt(p, s); ex_next(&x);)
      if (x.e->kind == EX_load || x.e->lanes > 1)
        refuse(p, s->loc, "a condition or a size depends on the data");
  }
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    for (u32 k = 0; k < b->rank; k++)
      if (dim_is_data(p->dims, b->dim[k]))
        refuse(p, LOC_NONE, "the shape of an output depends on the data");
  }
}

/* ---- launches ---- */

static void put_pointer(const CudaOut *o, BufId b, StrBuf *t, u64 *scratch, u64 workers) {
  Prog *p = o->e->p;
  BufId root = prog_root(p, b);
  const Buf *x = prog_buf(p, root);
  const char *type = c_storage(prog_buf(p, b)->dt);
  u64 bytes;
  Sym sym;
  u32 pos = 0;
  switch (x->space) {
  case BS_in:
    while (p->in.at[pos] != root) pos++;
    sb_fmt(t, "(const %s *)in%u", type, pos);
    break;
  case BS_out:
    while (p->out.at[pos] != root) pos++;
    sb_fmt(t, "(%s *)out%u", type, pos);
    break;
  case BS_const: sb_fmt(t, "(const %s *)(blob + %" PRIu64 ")", type, o->place[root]); break;
  case BS_local:
    if (!mem_stride(p, root, &bytes, &sym)) mem_refuse(p, root, sym);
    sb_fmt(t, "(%s *)(memory + %" PRIu64 ")", type, o->arena + *scratch);
    *scratch += bytes * workers;
    break;
  default: sb_fmt(t, "(%s *)(memory + %" PRIu64 ")", type, x->offset);
  }
}

enum { WORKERS_MAX = 4096, BLOCKS_MAX = 1 << 20 };

/* Workers for the scratch of a kernel; 0: it has none. */
static u64 workers_of(const CudaText *t, const CudaCall *k) {
  u64 own = cuda_worker_scratch(t, k), n = own ? FILE_SCRATCH / own : 0;
  i64 most = WORKERS_MAX;
  if (!own) return 0;
  if (!k->count) most = 1;
  if (k->count && (!ex_is_int(t->p, k->count, &most) || most > WORKERS_MAX)) most = WORKERS_MAX;
  return n < 1 || most < 1 ? 1 : n < (u64)most ? n : (u64)most;
}

static void put_launch(Emit *e, StmtId id, void *arg) {
  CudaOut *o = arg;
  const u32 *slot = map_get(&o->t->at, id);
  if (!slot || !*slot) return;
  const CudaCall *k = &o->t->call.at[*slot - 1];
  const CudaFn *fn = &o->t->fn.at[k->fn];
  u64 workers = workers_of(o->t, k), scratch = 0, width = fn->warps ? CUDA_WARP : 1;
  begin_line(e);
  sb_puts(e->t, "{\n");
  e->indent++;
  begin_line(e);
  sb_puts(e->t, "const int64_t count = ");
  if (k->count)
    put_index(e, ex_copy(e->p, k->count));
  else
    sb_puts(e->t, "1");
  sb_fmt(e->t, ";\n");
  begin_line(e);
  if (!fn->block)
    sb_fmt(e->t, "const ig_size size = ig_size_of(count * %u, %" PRIu64 ");\n", (unsigned)width,
           workers * width);
  begin_line(e);
  if (fn->shared > CUDA_SHARED) {
    sb_fmt(e->t, "cudaFuncSetAttribute(%s, cudaFuncAttributeMaxDynamicSharedMemorySize, %u);\n",
           fn->name, fn->shared);
    begin_line(e);
  }
  if (fn->block)
    sb_fmt(
        e->t,
        "if (count > 0) %s<<<(unsigned)(count < %d ? count : %d), %u, %u, (cudaStream_t)stream>>>(",
        fn->name, BLOCKS_MAX, BLOCKS_MAX, fn->block, fn->shared);
  else
    sb_fmt(e->t, "if (count > 0) %s<<<size.grid, size.block, 0, (cudaStream_t)stream>>>(",
           fn->name);
  const char *comma = "";
  for (u32 i = 0; i < k->takes.buf.n; i++, comma = ", ") {
    BufId b = k->takes.buf.at[i];
    if (prog_buf(e->p, b)->space != BS_local &&
        prog_buf(e->p, prog_root(e->p, b))->space == BS_local)
      refuse(e->p, LOC_NONE, "a kernel has a view of scratch");
    sb_puts(e->t, comma);
    put_pointer(o, b, e->t, &scratch, workers);
  }
  for (u32 i = 0; i < k->takes.var.n; i++, comma = ", ")
    sb_fmt(e->t, "%s%s", comma, e->var.at[k->takes.var.at[i]]);
  if (k->takes.random) {
    sb_fmt(e->t, "%sseed", comma);
    o->random = true;
  }
  sb_puts(e->t, ");\n");
  e->indent--;
  put_line(e, "}");
  if (scratch > o->scratch) o->scratch = scratch;
}

/* ---- the blob ---- */

static void align_blob(StrBuf *blob) {
  static const char zero[CUDA_ALIGN];
  if (blob->n % CUDA_ALIGN) sb_put(blob, zero, CUDA_ALIGN - blob->n % CUDA_ALIGN);
}

static void make_constants(CudaOut *o, StrBuf *blob) {
  Prog *p = o->e->p;
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    if (x->alias || !x->data) continue;
    o->place[b] = blob->n;
    sb_put(blob, x->data->data, tensor_bytes(x->data));
    align_blob(blob);
  }
}

/* ---- the file ---- */

static void put_value(Emit *e, StrBuf *t, const char *what, u32 i, BufId id) {
  const Buf *b = prog_buf(e->p, id);
  sb_fmt(t, " *   %s%u: %s[", what, i, dtype_info[b->dt].name);
  for (u32 k = 0; k < b->rank; k++) {
    StrBuf d = sb_new(&e->c->scratch);
    dim_print(e->p->dims, b->dim[k], &d);
    sb_puts(t, k ? "," : "");
    put_comment(t, d.at, d.n);
  }
  sb_puts(t, "] ");
  put_comment(t, str_text(e->c, b->name), str_len(e->c, b->name));
  sb_puts(t, "\n");
}

static bool is_size(const Prog *p, Sym s) {
  return dim_syminfo(p->dims, s)->kind == SY_input && s < p->nsym_var && p->sym_var[s];
}

/* Parameters of NAME_run between the weights and the stream. */
static void put_run_params(const CudaOut *o, StrBuf *t) {
  Prog *p = o->e->p;
  for (Sym s = 0; s < dim_nsyms(p->dims); s++)
    if (is_size(p, s)) sb_fmt(t, ", int64_t n%u", s);
  if (o->random) sb_puts(t, ", uint64_t seed");
  for (u32 i = 0; i < p->in.n; i++)
    sb_fmt(t, ", const %s *in%u", c_storage(prog_buf(p, p->in.at[i])->dt), i);
  for (u32 i = 0; i < p->out.n; i++)
    sb_fmt(t, ", %s *out%u", c_storage(prog_buf(p, p->out.at[i])->dt), i);
}

static void put_prototypes(const CudaOut *o, StrBuf *t, const char *end) {
  const char *name = o->e->o->name;
  sb_fmt(t, "int %s_run(void *arena, const void *weights", name);
  put_run_params(o, t);
  sb_fmt(t, ", void *stream)%s", end);
}

static void put_header(const CudaOut *o, const CudaFile *f, u64 blob, StrBuf *t) {
  Emit *e = o->e;
  Prog *p = e->p;
  sb_puts(t, "/* ");
  put_comment(t, f->file, strlen(f->file));
  sb_fmt(t, ".h: generated by ingot %s from ", f->version);
  put_comment(t, f->source, strlen(f->source));
  sb_fmt(t, "\n * model %016" PRIx64 "\n", f->hash);
  sb_puts(t, " *\n * Pointers are to memory of the device, aligned to 256 bytes. stream is a "
             "cudaStream_t.\n * All functions enqueue and return: 0, a status (see _why), or minus "
             "a cudaError_t.\n");
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) {
    if (!is_size(p, s)) continue;
    const SymInfo *info = dim_syminfo(p->dims, s);
    sb_fmt(t, " *   n%u: ", s);
    put_comment(t, str_text(e->c, info->name), str_len(e->c, info->name));
    sb_fmt(t, ", %" PRId64 " to %" PRId64 "\n", info->lo, info->hi);
  }
  for (u32 i = 0; i < p->in.n; i++) put_value(e, t, "in", i, p->in.at[i]);
  for (u32 i = 0; i < p->out.n; i++) put_value(e, t, "out", i, p->out.at[i]);
  put_template(
      e, t,
      " */\n#ifndef INGOT_${NAME}_CUDA_H\n#define INGOT_${NAME}_CUDA_H\n\n#include <stdint.h>\n\n"
      "#define ${NAME}_ARENA_BYTES %" PRIu64 " /* temporaries, state, scratch */\n"
      "#define ${NAME}_WEIGHT_BYTES %" PRIu64
      " /* copy the .bin file there */\n#define ${NAME}_KERNELS %u\n\n"
      "#ifdef __cplusplus\nextern \"C\" {\n#endif\n",
      o->arena + o->scratch, blob ? blob : CUDA_ALIGN, o->t->fn.n);
  put_template(e, t,
               "/* Before the first run, and to start over: initializes the state. */\n"
               "int ${name}_init(void *arena, const void *weights, void *stream);\n");
  put_prototypes(o, t, ";\n");
  put_template(e, t,
               "const char *${name}_why(int status);\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
}

static const char launch_text[] =
    "\ntypedef struct ig_size {\n  unsigned grid, block;\n} ig_size;\n\n"
    "/* Small blocks if there are few threads, so that more multiprocessors have one. most: limit "
    "of "
    "threads, 0: none. */\n"
    "static ig_size ig_size_of(int64_t threads, int64_t most) {\n"
    "  unsigned block = 128;\n"
    "  if (most && threads > most) threads = most;\n"
    "  while (block > 32 && threads / block < 128) block /= 2;\n"
    "  if (threads < block) block = threads > 0 ? (unsigned)threads : 1;\n"
    "  int64_t grid = (threads + block - 1) / block;\n"
    "  if (most && grid * block > most && grid > 1) grid = most / block;\n"
    "  if (grid > 1 << 20) grid = 1 << 20;\n"
    "  return ig_size{(unsigned)(grid > 0 ? grid : 1), block};\n}\n";

static void put_init(const CudaOut *o, StrBuf *t) {
  Prog *p = o->e->p;
  put_template(o->e, t,
               "\nextern \"C\" int ${name}_init(void *arena, const void *weights, void *stream) {\n"
               "  cudaError_t e = cudaSuccess;\n  (void)weights;\n"
               "  if (!arena || (uintptr_t)arena %% %u) return %u;\n",
               CUDA_ALIGN, STATUS_arena);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    u64 bytes;
    Sym sym;
    if (x->space != BS_state || x->alias || !mem_stride(p, b, &bytes, &sym)) continue;
    if (x->data)
      sb_fmt(t,
             "  if (!e) e = cudaMemcpyAsync((char *)arena + %" PRIu64
             ", (const char *)weights + %" PRIu64 ", %" PRIu64
             ", cudaMemcpyDeviceToDevice, (cudaStream_t)stream);\n",
             x->offset, o->place[b], tensor_bytes(x->data));
    else
      sb_fmt(t,
             "  if (!e) e = cudaMemsetAsync((char *)arena + %" PRIu64 ", 0, %" PRIu64
             ", (cudaStream_t)stream);\n",
             x->offset, bytes);
  }
  sb_puts(t, "  (void)stream;\n  return -(int)e;\n}\n");
}

void cuda_nvcc(const CudaFile *f, StrBuf *t) {
  sb_puts(t, "nvcc -c -O3 --fmad=false -std=c++17");
  for (const char *s = f->chips; *s; s += strcspn(s, ","), s += *s == ',') {
    int n = (int)strcspn(s, ",");
    sb_fmt(t, " -gencode arch=compute_%.*s,code=sm_%.*s", n, s, n, s);
  }
  sb_puts(t, " ");
  put_comment(t, f->file, strlen(f->file));
  sb_puts(t, ".cu");
}

static void put_file(const CudaOut *o, const CudaFile *f, const StrBuf *body, StrBuf *t) {
  Emit *e = o->e;
  sb_puts(t, "/* ");
  put_comment(t, f->file, strlen(f->file));
  sb_puts(t, ".cu: ");
  cuda_nvcc(f, t);
  sb_fmt(t, "\n * Generated by ingot %s from ", f->version);
  put_comment(t, f->source, strlen(f->source));
  sb_fmt(t,
         ", model %016" PRIx64 ".\n * --fmad=false: products are rounded before they are added, "
         "where the text does not say fma. */\n#include \"%s.h\"\n",
         f->hash, f->file);
  sb_put(t, o->t->support.at, o->t->support.n);
  sb_put(t, o->t->kernels.at, o->t->kernels.n);
  sb_puts(t, launch_text);
  put_init(o, t);
  sb_puts(t, "\nextern \"C\" ");
  put_prototypes(o, t, " {\n");
  sb_fmt(
      t,
      "  char *const memory = (char *)arena;\n  const char *const blob = (const char *)weights;\n"
      "  (void)memory, (void)blob;\n"
      "  if (!arena || (uintptr_t)arena %% %u) return %u;\n"
      "  if (!weights || (uintptr_t)weights %% %u) return %u;\n",
      CUDA_ALIGN, STATUS_arena, CUDA_ALIGN, STATUS_weights);
  for (Sym s = 0; s < dim_nsyms(e->p->dims); s++)
    if (is_size(e->p, s))
      sb_fmt(t, "  if (n%u < %" PRId64 " || n%u > %" PRId64 ") return %u;\n", s,
             dim_syminfo(e->p->dims, s)->lo, s, dim_syminfo(e->p->dims, s)->hi, STATUS_size);
  sb_put(t, body->at, body->n);
  sb_puts(t, "  return -(int)cudaGetLastError();\n}\n\nextern \"C\"");
  put_why(e, t);
}

static void name_sizes(Emit *e, StrBuf *t) {
  Prog *p = e->p;
  bool *used = NEWS(&e->c->scratch, bool, dim_nsyms(p->dims) + 1);
  for (BufId b = 1; b < p->buf.n; b++)
    for (u32 i = 0; i < prog_buf(p, b)->rank; i++)
      dims_mark_used(p->dims, prog_buf(p, b)->dim[i], used);
  for (Sym s = 0; s < dim_nsyms(p->dims); s++) {
    if (used[s] && dim_syminfo(p->dims, s)->kind == SY_input) prog_sym_var(p, s);
    if (s >= p->nsym_var || !p->sym_var[s]) continue;
    e->var.at[p->sym_var[s]] = str_text(e->c, str_fmt(e->c, "n%u", s));
    if (dim_syminfo(p->dims, s)->kind == SY_data) sb_fmt(t, "  int64_t n%u = 0;\n", s);
  }
}

void cuda_emit(const Prog *p, const CudaFile *f, StrBuf *source, StrBuf *header, StrBuf *blob) {
  Ctx *c = p->c;
  CudaOut o = {.t = cuda_text(p, target_warp(), f->name, false)};
  Emit *e = o.e = o.t->emit;
  check_host(e->p, o.t);
  o.place = NEWS(&c->keep, u64, e->p->buf.n);
  o.arena = (e->p->arena_bytes + CUDA_ALIGN - 1) / CUDA_ALIGN * CUDA_ALIGN;
  if (!o.arena) o.arena = CUDA_ALIGN;
  make_constants(&o, blob);
  StrBuf body = sb_new(&c->keep);
  name_sizes(e, &body);
  e->t = &body;
  e->indent = 1;
  e->index = "int64_t";
  e->launch = put_launch;
  e->launch_arg = &o;
  put_body(e, e->p->body, 0);
  put_file(&o, f, &body, source);
  put_header(&o, f, blob->n, header);
}
