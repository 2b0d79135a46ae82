/* igb.h: bytecode file format, .igb.
 *
 * Numbers are little-endian. Sections start at multiples of 64, at the offsets in the head. A file
 * can be used in place if it is aligned to 64 bytes and does not change after verification. ingot
 * maps files that other processes may change, so it copies and verifies head, code and tables. It
 * reads only the weights in place, since any weights are valid. A run also needs one block of
 * memory, the arena. Nothing in a file is trusted: see vm_verify.c. Opcodes, types and operations
 * are row numbers of vmops.def, dtypes.def and ops.def. A change of these tables changes
 * IgbHead.tables; any other change of meaning increments IGB_VERSION.
 *
 * An extent of an input or output is a postfix program, so shapes may depend on symbols. Symbols
 * bound by inputs are passed to a run; the code sets the others. */
#ifndef INGOT_IGB_H
#define INGOT_IGB_H

#include "back/vm/vm.h"

enum { IGB_VERSION = 2, IGB_ALIGN = 64, IGB_STACK = 32, IGB_RANK = 16 };
#define IGB_MAGIC "\211igb\r\n\032\n"
#define IGB_MAX   ((i64)1 << 40) /* maximum of any extent, offset or size */

typedef enum IgbSection {
  IS_code,     /* u32 */
  IS_starts,   /* one bit per word of code: does an instruction start there? */
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
  u64 at, n; /* byte offset in the file; number of elements */
} IgbSpan;

typedef struct IgbHead {
  u8 magic[8];
  u32 version, tables; /* tables: see igb_tables */
  u64 bytes, check;    /* bytes of the file; checksum, computed with 0 here */
  u64 arena;           /* bytes, a multiple of 64 */
  u32 slots, row, math, nin;
  IgbSpan section[IS_COUNT];
} IgbHead;

typedef struct IgbStr {
  u32 at, n; /* in the section strings */
} IgbStr;

typedef enum IgbSpace { IB_in, IB_out, IB_weights, IB_arena, IB_state, IB_COUNT } IgbSpace;

/* Buffers of the machine. State is part of the arena and is zero before the first run. */
typedef struct IgbBuf {
  u32 space, port; /* port: of inputs and outputs */
  u64 at, bytes;   /* arena: multiples of 64; weights: offset in the section */
  u64 zero;
} IgbBuf;

typedef struct IgbPort {
  IgbStr name;
  u32 buf, type, rank, dim; /* dim: index of the first dimension */
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
  u32 slot; /* 0: unused by the code */
  u32 data; /* 1: the code sets it */
  i64 lo, hi;
} IgbSymbol;

/* An opened file: pointers to its sections or copies of them. */
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

/* vm_file.c: hash of the tables that a file refers to. Any change or reordering of rows changes it.
 * The standalone machine gets it as INGOT_VM_TABLES. */
u32 igb_tables(void);
u32 igb_rows(const char *const *row, u32 n);
/* vm_verify.c */
/* Checksum, computed incrementally. */
typedef struct IgbSum {
  u64 h, at, word; /* word: its bytes so far, at % 8 of them */
} IgbSum;
IgbSum igb_sum(void);
void igb_sum_add(IgbSum *s, const void *at, u64 n);
extern const u8 igb_element[IS_COUNT]; /* element size of a section in bytes */
/* Return NULL, or an error and its byte offset. igb_head checks the head, which may be a copy.
 * igb_verify checks sections that may be copies. igb_open checks the head and all sections in
 * place. */
const char *igb_head(const IgbHead *h, const void *file, size_t n, u64 *where);
const char *igb_verify(const IgbHead *h, const void *const *section, Igb *g, u64 *where);
const char *igb_open(const void *at, size_t n, Igb *g, u64 *where);
/* Evaluates an extent for the values of symbols; -1: not within 0 and IGB_MAX. */
i64 igb_extent(const Igb *g, const IgbDim *d, const i64 *value);

#endif
