/* The bytecode machine, its verifier, and the functions around a run.
 *
 * In: a model as bytes, arrays, one block of memory. Out: results, or an error. Machine, verifier
 * and math functions are those of ingot. `ingot vm --emit` expands the includes and defines
 * INGOT_VM_TABLES, see igb_tables. */
#include "vm/ingot_vm.h"

#include "vm/alone.h"

#include "back/vm/igb.h"

enum { CLS_N = 'N', CLS_F = 'F', CLS_I = 'I', CLS_U = 'U', CLS_B = 'B', CLS_S = 'S', CLS_C = 'C' };
const DTypeInfo dtype_info[DT_COUNT] = {
#define DT(name, cls, bits, bytes, onnx, text) {CLS_##cls, bits, bytes},
#include "ir/dtypes.def"
#undef DT
};

static const char *type_name(u32 type) {
  static const char names[] =
#define DT(name, cls, bits, bytes, onnx, text) #name "\0"
#include "ir/dtypes.def"
#undef DT
      "";
  const char *s = names;
  for (; type; type--)
    while (*s++) continue;
  return s;
}

enum {
#define FLAG(name, text) name = OF_##name,
#include "ir/flags.def"
#undef FLAG
};
const OpInfo op_info[OP_SCALARS] = {
#define SC(name, nin, cls, res, flags, text) {nin, OR_##res, (flags) >> OF_BIT_FUNC},
#define OP(name, lo, hi, nout, kind, flags, attrs, text)
#include "ir/ops.def"
#undef SC
#undef OP
};

#include "ir/eval.c"

#include "back/vm/vm_ops.c"

#include "back/vm/vm_verify.c"

#include "back/vm/tile.c"

#include "back/vm/machine.c"

u32 igb_tables(void) {
  return INGOT_VM_TABLES;
}

/* ---- runs ---- */

typedef char alone_rank_fits[(int)INGOT_VM_RANK == (int)IGB_RANK ? 1 : -1];
typedef char alone_igb_fits[sizeof(Igb) <= sizeof((IngotVm *)0)->own ? 1 : -1];

typedef struct VmLayout { /* parts of the block of memory */
  u8 *arena;
  u64 *file;
  VmMem *buf;
} VmLayout;

static const Igb *igb_of(const IngotVm *vm) {
  return (const Igb *)(const void *)vm->own;
}

static u64 align64(u64 n) {
  return (n + 63) / 64 * 64;
}

/* Parts are aligned to 64 if the block is. */
static u64 layout_memory(const Igb *g, u8 *memory, VmLayout *b) {
  u64 file = g->head->arena, buf = file + align64((u64)g->code.slots * 8);
  if (b) {
    b->arena = memory;
    b->file = (u64 *)(void *)(memory + file);
    b->buf = (VmMem *)(void *)(memory + buf);
  }
  return buf + align64((u64)g->code.nbuf * sizeof(VmMem));
}

static int failed(IngotVm *vm, int code, const char *why) {
  vm->why = why;
  vm->why_bytes = 0;
  while (why[vm->why_bytes]) vm->why_bytes++;
  return code;
}

int ingot_vm_open(const void *igb, size_t bytes, IngotVm *vm) {
  Igb g;
  memset(vm, 0, sizeof *vm);
  if ((uintptr_t)igb % 8) return failed(vm, INGOT_VM_BAD, "is not aligned to 8 bytes");
  const char *why = igb_open(igb, bytes, &g, &vm->where);
  if (why) return failed(vm, INGOT_VM_BAD, why);
  memcpy(vm->own, &g, sizeof g);
  vm->inputs = g.head->nin;
  vm->outputs = g.nport - g.head->nin;
  vm->symbols = g.nsymbol;
  vm->memory_bytes = layout_memory(&g, NULL, NULL);
  vm->why = "";
  return INGOT_VM_OK;
}

IngotVmPort ingot_vm_port(const IngotVm *vm, uint32_t i) {
  const Igb *g = igb_of(vm);
  IngotVmPort p = {"", 0, "", 0, 0};
  if (i >= g->nport) return p;
  const IgbPort *x = &g->port[i];
  p.name = g->text + x->name.at;
  p.name_bytes = x->name.n;
  p.type = type_name(x->type);
  p.element_bytes = dtype_bytes((DType)x->type);
  p.rank = x->rank;
  return p;
}

int ingot_vm_shape(const IngotVm *vm, uint32_t i, const int64_t *size, int64_t *dim) {
  const Igb *g = igb_of(vm);
  if (i >= g->nport || (!size && g->nsymbol)) return -1;
  for (u32 k = 0; k < g->port[i].rank; k++)
    dim[k] = igb_extent(g, &g->dim[g->port[i].dim + k], size);
  return (int)g->port[i].rank;
}

int ingot_vm_symbol(const IngotVm *vm, uint32_t i, int64_t *lo, int64_t *hi) {
  const Igb *g = igb_of(vm);
  if (i >= g->nsymbol) return 0;
  *lo = g->symbol[i].lo;
  *hi = g->symbol[i].hi;
  return (int)g->symbol[i].data;
}

static int check_memory(IngotVm *vm, const void *memory, size_t bytes) {
  if (!memory || (uintptr_t)memory % 8)
    return failed(vm, INGOT_VM_REFUSED, "memory is not aligned");
  return bytes < vm->memory_bytes ? failed(vm, INGOT_VM_REFUSED, "memory is too small")
                                  : INGOT_VM_OK;
}

int ingot_vm_reset(IngotVm *vm, void *memory, size_t bytes) {
  if (check_memory(vm, memory, bytes)) return INGOT_VM_REFUSED;
  memset(memory, 0, (size_t)igb_of(vm)->head->arena);
  return INGOT_VM_OK;
}

/* Bytes of a port; false: the shape is out of range. */
static bool port_bytes(const Igb *g, const IgbPort *p, const i64 *size, u64 *bytes) {
  *bytes = dtype_bytes((DType)p->type);
  for (u32 k = 0; k < p->rank; k++) {
    i64 n = igb_extent(g, &g->dim[p->dim + k], size);
    if (n < 0 || (n && *bytes > (u64)IGB_MAX / (u64)n)) return false;
    *bytes *= (u64)n;
  }
  return true;
}

static bool symbols_fit(const Igb *g, const i64 *size, u32 data) {
  if (!size) return !g->nsymbol;
  for (u32 i = 0; i < g->nsymbol; i++)
    if (g->symbol[i].data == data && (size[i] < g->symbol[i].lo || size[i] > g->symbol[i].hi))
      return false;
  return true;
}

/* Sets the buffers of a run. */
static bool give(const Igb *g, const VmLayout *b, const i64 *size, const IngotVmArray *in,
                 const IngotVmArray *out) {
  for (u32 i = 0; i < g->code.nbuf; i++) {
    const IgbBuf *x = &g->buf[i];
    VmMem *m = &b->buf[i];
    m->bytes = x->bytes;
    if (x->space == IB_weights)
      m->at = (u8 *)(uintptr_t)(g->weights + x->at);
    else
      m->at = b->arena + x->at;
    if (x->space > IB_out) continue;
    const IngotVmArray *a = x->space == IB_in ? &in[x->port] : &out[x->port - g->head->nin];
    u64 bytes;
    m->at = a->at;
    m->bytes = a->bytes;
    if (!a->at || (uintptr_t)a->at % dtype_bytes((DType)g->port[x->port].type)) return false;
    if (x->space == IB_in && (!port_bytes(g, &g->port[x->port], size, &bytes) || bytes != m->bytes))
      return false;
  }
  return true;
}

/* Reads sizes that the run has determined so far. */
static void decided(const Igb *g, const Vm *m, i64 *size) {
  for (u32 i = 0; i < g->nsymbol; i++)
    if (g->symbol[i].data && g->symbol[i].slot) size[i] = (i64)m->file[g->symbol[i].slot];
}

static bool outputs_fit(const Igb *g, const i64 *size, const IngotVmArray *out) {
  bool fits = symbols_fit(g, size, 1);
  for (u32 i = g->head->nin; fits && i < g->nport; i++) {
    u64 bytes;
    fits = port_bytes(g, &g->port[i], size, &bytes) && bytes <= out[i - g->head->nin].bytes;
  }
  return fits;
}

int ingot_vm_run(IngotVm *vm, void *memory, size_t bytes, int64_t *size, uint64_t seed,
                 uint64_t fuel, const IngotVmArray *in, const IngotVmArray *out) {
  const Igb *g = igb_of(vm);
  VmLayout b;
  bool decides = false; /* a size determines the room of an output */
  vm->why = "";
  vm->why_bytes = 0;
  if (check_memory(vm, memory, bytes)) return INGOT_VM_REFUSED;
  if (!symbols_fit(g, size, 0)) return failed(vm, INGOT_VM_REFUSED, "a size is out of bounds");
  for (u32 i = 0; i < g->nsymbol; i++) {
    if (!g->symbol[i].data) continue;
    size[i] = g->symbol[i].lo;
    decides = true;
  }
  layout_memory(g, memory, &b);
  if (!give(g, &b, size, in, out)) return failed(vm, INGOT_VM_REFUSED, "an array does not fit");
  if (!decides && !outputs_fit(g, size, out))
    return failed(vm, INGOT_VM_REFUSED, "an output does not fit");
  Vm m = {.code = &g->code, .file = b.file, .buf = b.buf, .seed = seed, .fuel = fuel};
  vm_begin(&m);
  for (u32 i = 0; i < g->nsymbol; i++)
    if (g->symbol[i].slot) m.file[g->symbol[i].slot] = (u64)size[i];
  u32 end = vm_exec(&m);
  if (end >= VM_NEED) {
    vm->why = g->text + g->message[end - VM_NEED].at;
    vm->why_bytes = g->message[end - VM_NEED].n;
    return INGOT_VM_REFUSED;
  }
  if (end == VM_NO_FUEL) return failed(vm, INGOT_VM_TIRED, "the run exceeds its fuel");
  decided(g, &m, size);
  if (!outputs_fit(g, size, out)) return failed(vm, INGOT_VM_REFUSED, "an output does not fit");
  if (end == VM_BOUNDS) return failed(vm, INGOT_VM_OUTSIDE, "an index is out of bounds");
  return INGOT_VM_OK;
}
