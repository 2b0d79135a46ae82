/* vm_run.c: runs a VmProgram on tensors.
 *
 * In: a VmProgram and one tensor per input. Out: one tensor per output. Memory is planned for the
 * upper bounds of sizes. Without a plan, buffers have the sizes that the inputs of the run
 * determine. */
#include "back/vm/vm.h"

#include <string.h>
#include "ir/prog/prog_mem.h"

typedef struct VmCall {
  VmProgram *v;
  Prog *p;
  Ctx *c;
  Arena *a;
  i64 *env;
  VmMem *buf;
} VmCall;

static u8 *aligned(Arena *a, u64 bytes) {
  u8 *at = arena_array(a, 1, bytes + 64);
  return at + (64 - (uintptr_t)at % 64) % 64;
}

static bool is_aligned(const Tensor *t) {
  return t->data && (uintptr_t)t->data % dtype_bytes(t->dt) == 0;
}

static u8 *aligned_copy(Arena *a, const Tensor *t) {
  u64 bytes = tensor_bytes(t);
  u8 *copy = aligned(a, bytes);
  if (bytes) memcpy(copy, t->data, bytes);
  return copy;
}

void vm_prepare(VmProgram *v) {
  if (v->file) return;
  v->constant = NEWS(v->a, u8 *, v->code.nbuf + 1);
  for (BufId b = 1; b < v->p->buf.n; b++) {
    const Buf *bp = prog_buf(v->p, b);
    if (bp->space != BS_const || bp->alias || v->buf[b] == UINT32_MAX) continue;
    if (!is_aligned(bp->data)) v->constant[v->buf[b]] = aligned_copy(v->a, bp->data);
  }
  if (v->p->planned) v->arena = aligned(v->a, v->p->arena_bytes);
  v->file = (u64 *)(void *)aligned(v->a, (u64)v->code.slots * 8);
}

static u64 bytes_now(VmCall *o, BufId b) {
  const Buf *bp = prog_buf(o->p, b);
  u64 n = dtype_bytes(bp->dt) * bp->lanes;
  for (u32 i = 0; i < bp->rank; i++) {
    if (dim_is_data(o->p->dims, bp->dim[i])) return UINT64_MAX;
    i64 d = dim_eval(o->p->dims, bp->dim[i], o->env);
    if (d < 0)
      fail(o->c, ERR_input, LOC_NONE, "vm: the size of buffer %s is negative",
           show(o->c, bp->name));
    if (d && n > (u64)DIM_MAX / (u64)d)
      fail(o->c, ERR_system, LOC_NONE, "vm: buffer %s has more than 2^40 elements",
           show(o->c, bp->name));
    n *= (u64)d;
  }
  return n;
}

static u64 room(VmCall *o, BufId b) {
  Sym sym;
  u64 bytes, now = bytes_now(o, b);
  if (now != UINT64_MAX) return now;
  if (!mem_bytes(o->p, b, &bytes, &sym)) mem_refuse(o->p, b, sym);
  return bytes;
}

static void add_memory(VmCall *o, const VmOptions *opt, Tensor *const *in) {
  Prog *p = o->p;
  const InterpState *state = opt->state;
  u8 *arena = o->v->arena;
  if (!state && prog_has_state(p)) state = interp_state(p, o->a);
  for (BufId b = 1; b < p->buf.n; b++) {
    const Buf *bp = prog_buf(p, b);
    u32 k = o->v->buf[b];
    Sym sym;
    u64 bytes;
    if (k == UINT32_MAX || bp->alias) continue;
    if (bp->space == BS_const)
      o->buf[k] = (VmMem){o->v->constant[k] ? o->v->constant[k] : (u8 *)bp->data->data,
                          tensor_bytes(bp->data)};
    else if (state && bp->space == BS_state && mem_bytes(p, b, &bytes, &sym))
      o->buf[k] = (VmMem){state->at[b], bytes};
    else if (prog_is_planned(bp) && arena && mem_bytes(p, b, &bytes, &sym))
      o->buf[k] = (VmMem){arena + bp->offset, bytes};
    else if (bp->space != BS_in && bp->space != BS_out) {
      bytes = room(o, b);
      o->buf[k] = (VmMem){aligned(o->a, bytes), bytes};
    }
  }
  for (u32 i = 0; i < p->in.n; i++) {
    u8 *data = is_aligned(in[i]) ? (u8 *)in[i]->data : aligned_copy(o->a, in[i]);
    o->buf[o->v->buf[p->in.at[i]]] = (VmMem){data, tensor_bytes(in[i])};
  }
}

static void check_input(VmCall *o, Tensor *const *in) {
  for (u32 i = 0; i < o->p->in.n; i++) {
    const Buf *b = prog_buf(o->p, o->p->in.at[i]);
    if (in[i]->dt != b->dt || in[i]->rank != b->rank)
      fail(o->c, ERR_input, LOC_NONE, "input %s is %s of rank %u, expected %s of rank %u",
           show(o->c, b->name), dtype_info[in[i]->dt].name, in[i]->rank, dtype_info[b->dt].name,
           b->rank);
  }
}

/* Checks extents that depend on data. */
static void check_extents(VmCall *o, Tensor *const *in) {
  for (u32 i = 0; i < o->p->in.n; i++) {
    const Buf *b = prog_buf(o->p, o->p->in.at[i]);
    for (u32 k = 0; k < b->rank; k++) {
      i64 d = dim_eval(o->p->dims, b->dim[k], o->env);
      if (in[i]->dim[k] != d)
        fail(o->c, ERR_input, LOC_NONE, "input %s: dimension %u is %lld, expected %lld",
             show(o->c, b->name), k, (long long)in[i]->dim[k], (long long)d);
    }
  }
}

static u32 (*machine(bool plain))(Vm *) {
  if (plain) return vm_exec;
#ifdef INGOT_VM_X86
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
      __builtin_cpu_supports("avx512vnni"))
    return vm_exec_avx512;
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return vm_exec_avx2;
#endif
  return vm_exec;
}

/* Reads symbols that the code sets; after an early end they may be out of bounds. */
static void read_symbols(VmCall *o, const Vm *m) {
  for (u32 s = 0; s < o->v->nsymbol; s++) {
    const SymInfo *si = dim_syminfo(o->p->dims, s);
    i64 x = o->v->symbol[s] ? (i64)m->file[o->v->symbol[s]] : 0;
    if (o->v->symbol[s] && si->kind == SY_data && x >= si->lo && x <= si->hi) o->env[s] = x;
  }
}

static void execute(VmCall *o, const VmOptions *opt, Tensor *const *in) {
  VmProgram *v = o->v;
  u64 fuel = opt->fuel || !v->foreign ? opt->fuel : VM_FUEL;
  Vm m = {.code = &v->code, .buf = o->buf, .seed = opt->seed, .fuel = fuel};
  m.file = v->file;
  vm_begin(&m);
  for (u32 s = 0; s < v->nsymbol; s++)
    if (v->symbol[s]) m.file[v->symbol[s]] = (u64)o->env[s];
  u32 end = machine(opt->plain)(&m);
  read_symbols(o, &m);
  if (end >= VM_NEED) {
    const Stmt *s = prog_stmt(o->p, v->needs[end - VM_NEED]);
    fail(o->c, ERR_input, s->loc, "%s", show_text(o->c, v->message[end - VM_NEED]));
  }
  check_extents(o, in);
  if (end == VM_NO_FUEL)
    fail(o->c, v->foreign ? ERR_input : ERR_unsupported, LOC_NONE,
         "vm: the run takes more than %llu steps (backward jumps and panel iterations), the limit "
         "of "
         "--max-steps (word %u)",
         (unsigned long long)fuel, m.at);
  if (end == VM_BOUNDS)
    fail(o->c, v->p->body ? ERR_system : ERR_input, LOC_NONE,
         "vm: an index is out of bounds (word %u)", m.at);
}

void vm_run(VmProgram *v, const VmOptions *opt, Tensor *const *in, Tensor **out, Arena *a) {
  static const VmOptions none = {0};
  Prog *p = (Prog *)v->p;
  VmCall o = {.v = v, .p = p, .c = p->c, .a = &p->c->scratch};
  bool own = a != &p->c->scratch;
  Mark mark = arena_mark(&p->c->scratch);
  if (!opt) opt = &none;
  vm_prepare(v);
  check_input(&o, in);
  o.env = prog_bind(p, in, o.a);
  o.buf = NEWS(o.a, VmMem, v->code.nbuf + 1);
  add_memory(&o, opt, in);
  for (u32 i = 0; i < p->out.n; i++) {
    u64 bytes = room(&o, p->out.at[i]);
    o.buf[v->buf[p->out.at[i]]] = (VmMem){aligned(a, bytes), bytes};
  }
  execute(&o, opt, in);
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    i64 *dim = NEWS(a, i64, b->rank + 1);
    const VmMem *mem = &o.buf[v->buf[p->out.at[i]]];
    u64 n = 0;
    for (u32 k = 0; k < b->rank; k++) dim[k] = dim_eval(p->dims, b->dim[k], o.env);
    if (!shape_count(dim, b->rank, &n) || n > mem->bytes / dtype_bytes(b->dt))
      fail(o.c, ERR_input, LOC_NONE, "vm: output %s does not fit in the memory given for it",
           show(o.c, b->name));
    out[i] = tensor_wrap(a, b->dt, dim, b->rank, mem->at);
  }
  if (own) arena_rewind(&p->c->scratch, mark);
}
