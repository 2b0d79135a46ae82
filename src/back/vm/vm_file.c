/* vm_file.c: writes and reads bytecode files.
 *
 * In: a VmProgram of a planned program, or the bytes of a file. Out: the pieces of a file, which
 * share the program's weights, or a VmProgram with a copy of the code. Its Prog has memory, inputs
 * and outputs but no statements. See igb.h. */
#include "back/vm/igb.h"

#include <string.h>
#include "ir/prog/prog_mem.h"

/* The columns of the tables that the meaning of a file depends on. */
static const char *const table_row[] = {
#define VM(name, operands) #name " " operands,
#include "back/vm/vmops.def"
#undef VM
#define SC(name, nin, cls, res, flags, text) #name " " #nin " " #cls " " #res,
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
#define DT(name, cls, bits, bytes, onnx, text) #name " " #cls " " #bits " " #bytes,
#include "ir/dtypes.def"
#undef DT
};

u32 igb_rows(const char *const *row, u32 n) {
  u32 h = 2166136261; /* FNV-1a, including the terminating zero of each row */
  for (u32 i = 0; i < n; i++)
    for (const char *s = row[i];; s++) {
      h = (h ^ (u8)*s) * 16777619;
      if (!*s) break;
    }
  return h;
}

u32 igb_tables(void) {
  return igb_rows(table_row, sizeof table_row / sizeof *table_row);
}

/* ---- writing ---- */

typedef struct IgbWriter {
  Ctx *c;
  Arena *a;
  Prog *p;
  const VmProgram *v;
  IgbHead head;
  u64 at; /* bytes so far */
  VmChunks *out;
  StrBuf text;
  VEC(IgbBuf) buf;
  VEC(IgbPort) port;
  VEC(IgbDim) dim;
  VEC(IgbStep) step;
  VEC(IgbSymbol) symbol;
  u32 *number; /* by symbol: number in the file */
} IgbWriter;

static IgbStr add_text(IgbWriter *w, Str s) {
  IgbStr t = {(u32)w->text.n, (u32)str_len(w->c, s)};
  sb_put(&w->text, str_text(w->c, s), t.n);
  return t;
}

static void add_step(IgbWriter *w, IgbStepOp op, u32 symbol, i64 k) {
  *vec_push(w->a, &w->step) = (IgbStep){(u32)op, symbol, k};
}

static void add_steps(IgbWriter *w, Dim d);

static void add_term(IgbWriter *w, Sym s, i64 coef) {
  static const u8 derived[] = {[OP_mul] = IGS_mul,
                               [OP_div] = IGS_div,
                               [OP_mod] = IGS_mod,
                               [OP_min] = IGS_min,
                               [OP_max] = IGS_max};
  const SymInfo *si = dim_syminfo(w->p->dims, s);
  if (si->kind == SY_derived) {
    add_steps(w, si->a);
    add_steps(w, si->b);
    add_step(w, derived[si->op], 0, 0);
  } else {
    add_step(w, IGS_symbol, w->number[s], 0);
  }
  i64 times = coef < 0 ? -coef : coef;
  if (times == 1) return;
  add_step(w, IGS_number, 0, times);
  add_step(w, IGS_mul, 0, 0);
}

/* Minuends come before subtrahends, so constants are never negative. */
static void add_steps(IgbWriter *w, Dim d) {
  if (dim_is_const(d)) {
    add_step(w, IGS_number, 0, d);
    return;
  }
  DimTerms t = dim_terms(w->p->dims, d);
  add_step(w, IGS_number, 0, t.k0 > 0 ? t.k0 : 0);
  for (u32 minus = 0; minus < 2; minus++)
    for (u32 i = 0; i < t.n; i++) {
      if ((t.coef[i] < 0) != minus) continue;
      add_term(w, t.sym[i], t.coef[i]);
      add_step(w, minus ? IGS_sub : IGS_add, 0, 0);
    }
  if (t.k0 < 0) {
    add_step(w, IGS_number, 0, -t.k0);
    add_step(w, IGS_sub, 0, 0);
  }
}

/* Maximum stack depth. */
static u32 deepest(const IgbStep *s, u32 n) {
  u32 depth = 0, max = 0;
  for (u32 i = 0; i < n; i++) {
    depth = s[i].op > IGS_symbol ? depth - 1 : depth + 1;
    if (depth > max) max = depth;
  }
  return max;
}

static void add_symbols(IgbWriter *w) {
  Dims *ds = w->p->dims;
  w->number = NEWS(w->a, u32, dim_nsyms(ds) + 1);
  for (Sym s = 0; s < dim_nsyms(ds); s++) {
    const SymInfo *si = dim_syminfo(ds, s);
    if (si->kind == SY_derived) continue;
    w->number[s] = w->symbol.n;
    *vec_push(w->a, &w->symbol) = (IgbSymbol){.name = add_text(w, si->name),
                                              .slot = s < w->v->nsymbol ? w->v->symbol[s] : 0,
                                              .data = si->kind == SY_data,
                                              .lo = si->lo,
                                              .hi = si->hi};
  }
}

static IgbBuf *buf_at(IgbWriter *w, u32 k) {
  if (!w->buf.at || k >= w->buf.n)
    internal_error(w->p->c, LOC_NONE, "bytecode uses a buffer that the program does not have");
  return &w->buf.at[k];
}

static void add_port(IgbWriter *w, BufId b) {
  const Buf *x = prog_buf(w->p, b);
  u32 k = w->v->buf[b];
  *buf_at(w, k) = (IgbBuf){.space = x->space == BS_in ? IB_in : IB_out, .port = w->port.n};
  *vec_push(w->a, &w->port) = (IgbPort){
      .name = add_text(w, x->name), .buf = k, .type = x->dt, .rank = x->rank, .dim = w->dim.n};
  for (u32 i = 0; i < x->rank; i++) {
    u32 first = w->step.n;
    add_steps(w, x->dim[i]);
    if (deepest(&w->step.at[first], w->step.n - first) > IGB_STACK)
      fail(w->c, ERR_unsupported, LOC_NONE,
           "%s: the expression of dimension %u is too deep for a bytecode file: its stack has %d "
           "numbers",
           show(w->c, x->name), i, IGB_STACK);
    *vec_push(w->a, &w->dim) = (IgbDim){first, w->step.n - first};
  }
}

/* All buffers except ports. Weights come last in the file, each tensor once. */
static void add_buffers(IgbWriter *w) {
  Prog *p = w->p;
  Map known = map_new(w->a);
  u64 weights = 0;
  w->head.arena = (p->arena_bytes + 63) / 64 * 64;
  for (u32 k = 0; k < w->v->code.nbuf; k++) *vec_push(w->a, &w->buf) = (IgbBuf){0};
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *x = prog_buf(p, b);
    u32 k = w->v->buf[b];
    u64 bytes;
    Sym sym;
    if (k == UINT32_MAX || x->alias || x->space == BS_in || x->space == BS_out) continue;
    if (x->space == BS_const) {
      u32 *seen = map_put_bytes(&known, &x->data, sizeof x->data);
      if (!*seen) {
        *buf_at(w, k) =
            (IgbBuf){.space = IB_weights, .at = weights, .bytes = tensor_bytes(x->data)};
        weights = (weights + tensor_bytes(x->data) + 63) / 64 * 64;
        *seen = k + 1;
      }
      *buf_at(w, k) = *buf_at(w, *seen - 1);
      continue;
    }
    if (!mem_bytes(p, b, &bytes, &sym)) mem_refuse(p, b, sym);
    *buf_at(w, k) = (IgbBuf){
        .space = x->space == BS_state ? IB_state : IB_arena, .at = x->offset, .bytes = bytes};
    if (prog_is_planned(x)) continue;
    buf_at(w, k)->at = w->head.arena; /* indexed register buffers are not in the plan */
    w->head.arena += bytes;
  }
  w->head.arena = 0; /* only what the buffers of the file use */
  for (u32 k = 0; k < w->buf.n; k++) {
    const IgbBuf *x = &w->buf.at[k];
    if (x->space > IB_weights && x->at + x->bytes > w->head.arena) w->head.arena = x->at + x->bytes;
  }
  w->head.section[IS_weights].n = weights;
}

static void put(IgbWriter *w, const void *at, u64 n) {
  static const u8 zero[64];
  u64 pad = (64 - n % 64) % 64;
  if (n) *vec_push(w->a, w->out) = (Chunk){.at = at, .n = n};
  if (pad) *vec_push(w->a, w->out) = (Chunk){.at = zero, .n = pad};
  w->at += n + pad;
}

static void put_section(IgbWriter *w, IgbSection s, const void *at, u64 n, u64 size) {
  w->head.section[s] = (IgbSpan){w->at, n};
  put(w, at, n * size);
}

static void put_weights(IgbWriter *w) {
  u64 at = 0;
  w->head.section[IS_weights].at = w->at;
  for (BufId b = 1; b < w->p->buf.n; b++) {
    const Buf *x = prog_buf(w->p, b);
    u32 k = w->v->buf[b];
    if (k == UINT32_MAX || x->alias || x->space != BS_const || buf_at(w, k)->at != at) continue;
    put(w, x->data->data, tensor_bytes(x->data));
    at += (tensor_bytes(x->data) + 63) / 64 * 64;
  }
}

static u8 *starts_of(IgbWriter *w) {
  const VmCode *code = &w->v->code;
  u8 *bit = NEWS(w->a, u8, code->nword / 8 + 1);
  for (u32 i = 0; i < code->nword; i += vm_words(code->word[i])) bit[i / 8] |= (u8)(1 << i % 8);
  return bit;
}

void vm_write(const VmProgram *v, Arena *a, VmChunks *out) {
  Prog *p = (Prog *)v->p;
  IgbWriter w = {.c = p->c, .a = a, .p = p, .v = v, .out = out, .text = sb_new(a)};
  mem_need_plan(p);
  add_symbols(&w);
  add_buffers(&w);
  for (u32 i = 0; i < p->in.n; i++) add_port(&w, p->in.at[i]);
  for (u32 i = 0; i < p->out.n; i++) add_port(&w, p->out.at[i]);
  IgbStr *message = NEWS(a, IgbStr, v->code.nmessage + 1);
  for (u32 i = 0; i < v->code.nmessage; i++) message[i] = add_text(&w, v->message[i]);
  IgbHead *h = NEW(a, IgbHead);
  put(&w, h, sizeof *h);
  put_section(&w, IS_code, v->code.word, v->code.nword, 4);
  put_section(&w, IS_starts, starts_of(&w), (v->code.nword + 7) / 8, 1);
  put_section(&w, IS_init, v->code.init, v->code.ninit, sizeof *v->code.init);
  put_section(&w, IS_buffers, w.buf.at, w.buf.n, sizeof *w.buf.at);
  put_section(&w, IS_ports, w.port.at, w.port.n, sizeof *w.port.at);
  put_section(&w, IS_dims, w.dim.at, w.dim.n, sizeof *w.dim.at);
  put_section(&w, IS_steps, w.step.at, w.step.n, sizeof *w.step.at);
  put_section(&w, IS_symbols, w.symbol.at, w.symbol.n, sizeof *w.symbol.at);
  put_section(&w, IS_messages, message, v->code.nmessage, sizeof *message);
  put_section(&w, IS_strings, w.text.at, w.text.n, 1);
  put_weights(&w);
  memcpy(w.head.magic, IGB_MAGIC, 8);
  w.head.version = IGB_VERSION;
  w.head.tables = igb_tables();
  w.head.bytes = w.at;
  w.head.slots = v->code.slots;
  w.head.row = v->code.row;
  w.head.math = v->code.math;
  w.head.nin = p->in.n;
  *h = w.head;
  IgbSum sum = igb_sum();
  for (u32 i = 0; i < out->n; i++) igb_sum_add(&sum, out->at[i].at, out->at[i].n);
  h->check = sum.h;
}

/* ---- reading ---- */

typedef struct IgbReader {
  Ctx *c;
  Arena *a;
  const u8 *at;
  Igb g;
  Prog *p;
  Sym *sym; /* by symbol of the file */
} IgbReader;

u32 vm_tables(void) {
  return igb_tables();
}

bool vm_sniff(const u8 *at, size_t n) {
  return n >= 8 && !memcmp(at, IGB_MAGIC, 8);
}

static _Noreturn void damaged(Ctx *c, u64 where, const char *why) {
  fail(c, ERR_input, LOC_NONE, "byte %llu: %s", (unsigned long long)where, why);
}

static Str text_of(IgbReader *r, IgbStr t) {
  return str_intern(r->c, r->g.text + t.at, t.n);
}

static void read_symbols(IgbReader *r) {
  Dims *ds = r->p->dims;
  r->sym = NEWS(r->a, Sym, r->g.nsymbol + 1);
  for (u32 i = 0; i < r->g.nsymbol; i++) {
    const IgbSymbol *s = &r->g.symbol[i];
    u64 where = r->g.head->section[IS_symbols].at + i * sizeof *s;
    if (!s->name.n) damaged(r->c, where, "a symbol has no name");
    r->sym[i] = dim_sym(ds, s->data ? SY_data : SY_input, text_of(r, s->name), s->lo, s->hi);
    if (r->sym[i] != i) damaged(r->c, where, "two symbols have the same name");
  }
}

static Dim read_dim(IgbReader *r, const IgbDim *d) {
  Dims *ds = r->p->dims;
  Dim stack[IGB_STACK];
  u32 n = 0;
  for (const IgbStep *s = r->g.step + d->step, *end = s + d->n; s < end; s++) {
    if (s->op <= IGS_symbol) {
      stack[n++] = s->op == IGS_symbol ? dim_of_sym(ds, r->sym[s->symbol]) : s->k;
      continue;
    }
    Dim b = stack[--n], *a = &stack[n - 1];
    if ((s->op == IGS_div || s->op == IGS_mod) && dim_is_const(b) && b == 0)
      damaged(r->c, r->g.head->section[IS_steps].at, "an extent divides by zero");
    switch (s->op) {
    case IGS_add: *a = dim_add(ds, *a, b); break;
    case IGS_sub: *a = dim_sub(ds, *a, b); break;
    case IGS_mul: *a = dim_mul(ds, *a, b); break;
    case IGS_div: *a = dim_div(ds, *a, b); break;
    case IGS_mod: *a = dim_mod(ds, *a, b); break;
    case IGS_min: *a = dim_min(ds, *a, b); break;
    default: *a = dim_max(ds, *a, b); break;
    }
  }
  return stack[0];
}

static void read_port(IgbReader *r, VmProgram *v, u32 i) {
  const IgbPort *x = &r->g.port[i];
  Dim dim[IGB_RANK];
  for (u32 k = 0; k < x->rank; k++) dim[k] = read_dim(r, &r->g.dim[x->dim + k]);
  BufSpace space = i < r->g.head->nin ? BS_in : BS_out;
  v->buf[prog_add_buf(r->p, space, (DType)x->type, dim, x->rank, text_of(r, x->name))] = x->buf;
}

static void read_buffer(IgbReader *r, VmProgram *v, u32 i) {
  const IgbBuf *x = &r->g.buf[i];
  Dim bytes = (Dim)x->bytes;
  BufId b;
  if (x->space <= IB_out) return;
  if (x->space == IB_weights) {
    Tensor *t = tensor_wrap(r->a, DT_u8, &bytes, 1, r->g.weights + x->at);
    b = prog_add_const(r->p, t, 0);
  } else {
    b = prog_add_buf(r->p, x->space == IB_state ? BS_state : BS_temp, DT_u8, &bytes, 1, 0);
    prog_buf(r->p, b)->offset = x->at;
  }
  v->buf[b] = i;
}

static void read_rest(IgbReader *r, VmProgram *v) {
  v->nsymbol = dim_nsyms(r->p->dims);
  v->symbol = NEWS(r->a, u32, v->nsymbol + 1);
  for (u32 i = 0; i < r->g.nsymbol; i++) v->symbol[r->sym[i]] = r->g.symbol[i].slot;
  v->message = NEWS(r->a, Str, r->g.code.nmessage + 1);
  v->needs = NEWS(r->a, StmtId, r->g.code.nmessage + 1);
  for (u32 i = 0; i < r->g.code.nmessage; i++) v->message[i] = text_of(r, r->g.message[i]);
}

/* The file may change during use, so head, code and tables are copied and the copies verified. */
static void open_copy(IgbReader *r, size_t n) {
  IgbHead *h = NEW(r->a, IgbHead);
  const void *section[IS_COUNT];
  u64 where;
  if (n >= sizeof *h) memcpy(h, r->at, sizeof *h);
  if (n >= sizeof *h && vm_sniff(r->at, n) &&
      (h->version != IGB_VERSION || h->tables != igb_tables()))
    fail(r->c, ERR_input, LOC_NONE,
         "is bytecode of version %u (tables %08x), expected version %u (tables %08x): compile the "
         "model again",
         h->version, h->tables, IGB_VERSION, igb_tables());
  const char *why = igb_head(h, r->at, n, &where);
  if (why) damaged(r->c, where, why);
  for (u32 i = 0; i < IS_COUNT; i++) {
    const u64 bytes = h->section[i].n * igb_element[i];
    section[i] = r->at + h->section[i].at;
    if (i == IS_weights) continue;
    void *copy = arena_alloc(r->a, bytes + 1);
    section[i] = bytes ? memcpy(copy, section[i], bytes) : copy;
  }
  why = igb_verify(h, section, &r->g, &where);
  if (why) damaged(r->c, where, why);
}

VmProgram *vm_read(Ctx *c, const u8 *at, size_t n, Arena *a) {
  IgbReader r = {.c = c, .a = a, .at = at};
  if ((uintptr_t)at % IGB_ALIGN) { /* bytes of a caller; mapped files are aligned */
    u8 *copy = arena_array(a, 1, n + IGB_ALIGN);
    copy += (IGB_ALIGN - (uintptr_t)copy % IGB_ALIGN) % IGB_ALIGN;
    r.at = memcpy(copy, at, n);
  }
  open_copy(&r, n);
  VmProgram *v = NEW(a, VmProgram);
  r.p = prog_new(c, dims_new(c));
  r.p->planned = true;
  r.p->arena_bytes = r.g.head->arena;
  r.p->math = r.g.code.math;
  v->buf = NEWS(a, u32, (size_t)r.g.code.nbuf + 1);
  read_symbols(&r);
  for (u32 i = 0; i < r.g.nport; i++) read_port(&r, v, i);
  for (u32 i = 0; i < r.g.code.nbuf; i++) read_buffer(&r, v, i);
  read_rest(&r, v);
  v->code = r.g.code;
  v->p = r.p;
  v->a = a;
  v->foreign = true;
  return v;
}

Prog *vm_prog(const VmProgram *v) {
  return (Prog *)v->p;
}

VmFacts vm_facts(const VmProgram *v) {
  VmFacts f = {.version = IGB_VERSION,
               .words = v->code.nword,
               .slots = v->code.slots,
               .arena = v->p->arena_bytes};
  for (BufId b = 1; b < v->p->buf.n; b++)
    if (prog_buf(v->p, b)->space == BS_const) f.weights += tensor_bytes(prog_buf(v->p, b)->data);
  return f;
}
