/* ingot_vm.h: runs models compiled by `ingot compile MODEL -o model.igb`, as data.
 *
 * One C99 file, ingot_vm.c, without heap, writable data or library functions except memcpy and
 * memset. A model can lie anywhere in memory, such as flash, aligned to 8 bytes. It is verified
 * once. If it does not change after that, it can at worst compute wrong results: it accesses only
 * itself, the given arrays and one block of memory. Results have the bits of all engines of ingot
 * if the compiler does not contract products to FMA (-ffp-contract=off, or -std=c99 with gcc). With
 * -DINGOT_VM_SINGLE it lacks functions computed in double (exp, sin, pow ...) and refuses models
 * that need one: float64, or --precise.
 *
 *   IngotVm vm;
 *   if (ingot_vm_open(model, model_bytes, &vm)) ...          vm.why, vm.where
 *   static uint64_t memory[...];                              vm.memory_bytes
 *   if (ingot_vm_reset(&vm, memory, sizeof memory)) ...       it is too small
 *   const IngotVmArray in[] = {{image, sizeof image}}, out[] = {{result, sizeof result}};
 *   if (ingot_vm_run(&vm, memory, sizeof memory, NULL, 0, 0, in, out)) ...   vm.why */
#ifndef INGOT_VM_ALONE_H
#define INGOT_VM_ALONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { /* return values */
       INGOT_VM_OK,
       INGOT_VM_REFUSED, /* the model refuses these inputs, or an array is too small */
       INGOT_VM_OUTSIDE, /* an index was out of bounds: models of ingot never do that */
       INGOT_VM_TIRED,   /* the run exceeded its fuel */
       INGOT_VM_BAD      /* not a model, or damaged */
};

enum { INGOT_VM_RANK = 16 }; /* maximum rank of an input or output */

/* A model. The bytes are not copied and must outlive it. */
typedef struct IngotVm {
  uint32_t inputs, outputs, symbols;
  uint64_t memory_bytes; /* size of the block for runs, aligned to 8; if aligned to 64, so are its
                            arrays */
  const char *why;       /* message of the last failure, why_bytes long */
  size_t why_bytes;
  uint64_t where; /* byte offset of an error in a file */
  uint64_t own[32];
} IngotVm;

typedef struct IngotVmPort { /* an input or output */
  const char *name;          /* not terminated by a zero */
  size_t name_bytes;
  const char *type; /* f32, i64, u8 ... */
  uint32_t element_bytes, rank;
} IngotVmPort;

typedef struct IngotVmArray {
  void *at; /* aligned for its elements; inputs are only read */
  uint64_t bytes;
} IngotVmArray;

int ingot_vm_open(const void *igb, size_t bytes, IngotVm *vm);
/* Port i: inputs, then outputs. */
IngotVmPort ingot_vm_port(const IngotVm *vm, uint32_t i);
/* Writes the extents of a port for the values of all symbols, at most INGOT_VM_RANK; -1: out of
 * range. size may be NULL for a model without symbols. Symbols that a run determines have the
 * values it wrote. Returns the rank; -1: no such port, or symbols are missing. */
int ingot_vm_shape(const IngotVm *vm, uint32_t i, const int64_t *size, int64_t *dim);
/* Bounds of a symbol. Returns 1 if the run determines it, 0 if the caller does. */
int ingot_vm_symbol(const IngotVm *vm, uint32_t i, int64_t *lo, int64_t *hi);
/* Resets the state. Refuses memory that is smaller than the model needs. */
int ingot_vm_reset(IngotVm *vm, void *memory, size_t bytes);
/* size: by symbol, see ingot_vm_shape; seed: of random numbers. fuel: limit of the run, 0: none,
 * for trusted models; a backward jump costs 1, a matrix product its loop iterations. The array of
 * an input has exactly its size, that of an output at least its size. */
int ingot_vm_run(IngotVm *vm, void *memory, size_t bytes, int64_t *size, uint64_t seed,
                 uint64_t fuel, const IngotVmArray *in, const IngotVmArray *out);

#ifdef __cplusplus
}
#endif
#endif
