/* ingot_vm.h: runs models that `ingot compile MODEL -o model.igb` made, as data.
 *
 * One C99 file, ingot_vm.c, without heap, writable data or any function of a library but memcpy and
 * memset. A model lies anywhere in memory, flash for example, at a multiple of 8 bytes; it is
 * verified once, and if nobody changes it after that it can compute nonsense at worst: it reads and
 * writes nothing but itself, the arrays it is given and one block of memory. Results have the bits
 * of all engines of ingot, if products are not contracted to fma (-ffp-contract=off, or -std=c99
 * with gcc). Compiled with -DINGOT_VM_SINGLE it has no functions (exp, sin, pow ...) that are
 * computed in double, and refuses models that need one: of float64, or made with --precise.
 *
 *   IngotVm vm;
 *   if (ingot_vm_open(model, model_bytes, &vm)) ...          vm.why, vm.where
 *   static uint64_t memory[...];                              vm.memory_bytes
 *   if (ingot_vm_reset(&vm, memory, sizeof memory)) ...       it is too small
 *   const IngotVmArray in[] = {{image, sizeof image}}, out[] = {{result, sizeof result}};
 *   if (ingot_vm_run(&vm, memory, sizeof memory, NULL, 0, 0, in, out)) ...   vm.why
 */
#ifndef INGOT_VM_ALONE_H
#define INGOT_VM_ALONE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { /* what calls return */
       INGOT_VM_OK,
       INGOT_VM_REFUSED, /* the model does not take these inputs, or arrays are too small */
       INGOT_VM_OUTSIDE, /* an index left its buffer: no model of ingot does that */
       INGOT_VM_TIRED,   /* it has used up its fuel */
       INGOT_VM_BAD      /* no model, or a damaged one */
};

enum { INGOT_VM_RANK = 16 }; /* dimensions of an input or output, at most */

/* A model. It is not copied: it stays where it is as long as this is used. */
typedef struct IngotVm {
  uint32_t inputs, outputs, symbols;
  uint64_t memory_bytes; /* of the block for runs, at a multiple of 8; its arrays are at 64 then */
  const char *why;       /* of the last failure; why_bytes of it */
  size_t why_bytes;
  uint64_t where; /* in a bad file: the byte */
  uint64_t own[32];
} IngotVm;

typedef struct IngotVmPort { /* an input or output */
  const char *name;          /* not ended by a zero */
  size_t name_bytes;
  const char *type; /* f32, i64, u8 ... */
  uint32_t element_bytes, rank;
} IngotVmPort;

typedef struct IngotVmArray {
  void *at; /* aligned as its elements; those of inputs are only read */
  uint64_t bytes;
} IngotVmArray;

int ingot_vm_open(const void *igb, size_t bytes, IngotVm *vm);
/* Number i of inputs, and behind them of outputs. */
IngotVmPort ingot_vm_port(const IngotVm *vm, uint32_t i);
/* Its extents, rank of them, at most INGOT_VM_RANK, -1 where there is none, by the values of all
 * symbols; NULL: a model without any. Those that are decided by a run are what it wrote there.
 * Returns the rank; -1: there is no such port, or the model has symbols and none are given. */
int ingot_vm_shape(const IngotVm *vm, uint32_t i, const int64_t *size, int64_t *dim);
/* Bounds of a symbol; 1: the run decides it, else who calls it does. */
int ingot_vm_symbol(const IngotVm *vm, uint32_t i, int64_t *least, int64_t *most);
/* State as before the first run. Memory that has fewer bytes than the model needs is refused. */
int ingot_vm_reset(IngotVm *vm, void *memory, size_t bytes);
/* size: by symbol, see ingot_vm_shape; seed: of random numbers; fuel: of it a jump back takes 1, a
 * product of matrices as many as its loops have iterations, and the run ends before it is used up;
 * 0: no limit, for models that are trusted. An array of an input has exactly its bytes, that of an
 * output room for them. */
int ingot_vm_run(IngotVm *vm, void *memory, size_t bytes, int64_t *size, uint64_t seed,
                 uint64_t fuel, const IngotVmArray *in, const IngotVmArray *out);

#ifdef __cplusplus
}
#endif
#endif
