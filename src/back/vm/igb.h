/* igb.h: bytecode as a file, .igb.
 *
 * Numbers are little-endian; a section begins at a multiple of 64 and lies in the file where the
 * head says. A file can be used where it lies, at a multiple of 64 in memory, if nobody changes it:
 * code that has been verified is believed. ingot maps files that others may write to: it copies the
 * head, the code and the tables, verifies the copies, and reads only weights in place, which can be
 * any numbers. What a file needs besides is one block of memory, the arena. Nothing in a file is
 * believed: see vm_verify.c. Opcodes, types and operations are numbers of vmops.def, dtypes.def and
 * ops.def: a change of these tables shows in IgbHead.tables; any other in the meaning of a file is
 * a new IGB_VERSION.
 *
 * An extent of an input or output is a list of steps for a stack of numbers, so that shapes may
 * depend on symbols: those that inputs decide are given to a run, others are set by the code.
 */
#ifndef INGOT_IGB_H
#define INGOT_IGB_H

#include "back/vm/vm.h"

enum { IGB_VERSION = 2, IGB_ALIGN = 64, IGB_STACK = 32, IGB_RANK = 16 };
#define IGB_MAGIC "\211igb\r\n\032\n"
#define IGB_MOST  ((i64)1 << 40) /* no extent, offset or size is larger */

typedef enum IgbSection {
  IS_code,     /* u32 */
  IS_starts,   /* a bit for each word of code: does an instruction begin there? */
  IS_init,     /* VmInit */
  IS_buffers,  /* IgbBuf */
  IS_ports,    /* IgbPort: inputs, then outputs */
  IS_dims,     /* IgbDim */
  IS_steps,    /* IgbStep */
  IS_symbols,  /* IgbSymbol */
  IS_messages, /* IgbStr */
  IS_strings,  /* bytes: names and messages */
  IS_weights,  /* bytes */
  IS_COUNT
} IgbSection;

typedef struct IgbSpan {
  u64 at, n; /* byte of the file; elements */
} IgbSpan;

typedef struct IgbHead {
  u8 magic[8];
  u32 version, tables; /* tables: see igb_tables */
  u64 bytes, check;    /* of the file; its checksum, computed with 0 here */
  u64 arena;           /* bytes, a multiple of 64 */
  u32 slots, row, math, nin;
  IgbSpan section[IS_COUNT];
} IgbHead;

typedef struct IgbStr {
  u32 at, n; /* in the section text */
} IgbStr;

typedef enum IgbSpace { IB_in, IB_out, IB_weights, IB_arena, IB_state, IB_COUNT } IgbSpace;

/* Buffers of the machine. A state is in the arena, too, zero before the first run. */
typedef struct IgbBuf {
  u32 space, port; /* port: of inputs and outputs */
  u64 at, bytes;   /* others: multiples of 64 in the arena; in the section weights */
  u64 zero;
} IgbBuf;

typedef struct IgbPort {
  IgbStr name;
  u32 buf, type, rank, dim; /* dim: its first one */
  u64 zero;
} IgbPort;

typedef struct IgbDim {
  u32 step, n;
} IgbDim;

typedef enum IgbStepOp {
  IGS_number, /* k */
  IGS_symbol,
  IGS_add,
  IGS_sub,
  IGS_mul,
  IGS_div, /* floor */
  IGS_mod,
  IGS_min,
  IGS_max,
  IGS_COUNT
} IgbStepOp;

typedef struct IgbStep {
  u32 op, symbol;
  i64 k;
} IgbStep;

typedef struct IgbSymbol {
  IgbStr name;
  u32 slot; /* 0: the code does not need it */
  u32 data; /* 1: the code sets it */
  i64 lo, hi;
} IgbSymbol;

/* A file that has been opened: what its sections hold, where it or their copies lie. */
typedef struct Igb {
  const IgbHead *head;
  VmCode code;
  const u8 *starts, *weights;
  const char *text;
  const IgbBuf *buf;
  const IgbPort *port;
  const IgbDim *dim;
  const IgbStep *step;
  const IgbSymbol *symbol;
  const IgbStr *message;
  u32 nport, nsymbol;
} Igb;

/* vm_file.c: the tables that numbers of a file refer to, row by row, as one number: one that is
 * changed or elsewhere is another. The machine alone is given it (INGOT_VM_TABLES). */
u32 igb_tables(void);
u32 igb_rows(const char *const *row, u32 n);
/* vm_verify.c */
/* The checksum, of pieces one behind the other. */
typedef struct IgbSum {
  u64 h, at, word; /* word: those of its bytes that are there, at % 8 */
} IgbSum;
IgbSum igb_sum(void);
void igb_sum_add(IgbSum *s, const void *at, u64 n);
extern const u8 igb_element[IS_COUNT]; /* bytes of the elements of a section */
/* NULL, or what is wrong with a file, at which byte. First the head, which may be a copy, then all
 * else by where its sections are, then the head and all sections in place. */
const char *igb_head(const IgbHead *h, const void *file, size_t n, u64 *where);
const char *igb_verify(const IgbHead *h, const void *const *section, Igb *g, u64 *where);
const char *igb_open(const void *at, size_t n, Igb *g, u64 *where);
/* An extent, by the values of symbols; -1: it is not between 0 and IGB_MOST. */
i64 igb_extent(const Igb *g, const IgbDim *d, const i64 *value);

#endif
