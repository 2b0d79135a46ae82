/* c.h: private to src/back/c: what the files of the C emitter share.
 *
 * Identifiers of the output are made here and never taken from the model (in0, out0, w3, t12, i, j,
 * v7), so no name can clash or inject; names appear only inside comments, reduced to harmless
 * characters.
 */
#ifndef INGOT_BACK_C_H
#define INGOT_BACK_C_H

#include "back/back.h"

typedef struct Emit Emit;

/* Snippets of supporting C, pasted only where used: see crt.c. */
typedef enum Need {
#define RT(name, needs, text) RT_##name,
#include "back/c/crt.def"
#undef RT
  RT_COUNT
} Need;

struct Emit {
  Ctx *c;
  Prog *p;
  const EmitOptions *o;
  Text *t; /* being written */
  u32 indent;
  u32 depth; /* of loops, for the names of their variables */
  Text body; /* kernels */
  bool need[RT_COUNT];
  bool math[OP_SCALARS][2]; /* functions used: f32, f64 */
  Map kernels;              /* text of a kernel without its name -> 1 + number */
  u32 nkernels;
  const char **var;          /* C name of each variable in scope */
  char *written;             /* by buffer, in the kernel being written */
  u32 *param;                /* by buffer: 1 + number of the parameter it is in that kernel */
  i32 *state_in, *state_out; /* by input, by output: number of its pair, or -1 */
  u64 *state_at;   /* by pair: offset in the arena of the input; the output lies behind it */
  u64 arena_bytes; /* plan and state together */
  bool blob;       /* weights in a file of their own */
  u64 *place;      /* by buffer: offset there */
  u64 blob_bytes, blob_hash;
  bool text_weights;
  bool *open_out; /* by result: its shape is known only after running */
  bool random;
  bool *used;      /* by buffer: some kernel reads or writes it */
  bool in_kernel;  /* the text being written is that of a kernel, not of the entry */
  u32 kernel_size; /* of the largest kernel: parameters, variables and operations */
};

/* cexpr.c */
void put_expr(Emit *e, ExprId x);  /* data: wraps, converts, rounds as eval.c says */
void put_index(Emit *e, ExprId x); /* index arithmetic: plain ptrdiff_t */
void put_element(Emit *e, BufId b, const ExprId *idx, u32 n); /* t3[(i * 4 + j) * 8] */
const char *c_type(DType dt);                                 /* of a value */
const char *c_storage(DType dt);                              /* of an element in memory */
void put_buf_name(Emit *e, BufId b);
void put_dim(Emit *e, Dim d);
void put_float(Text *t, bool wide, double x); /* a literal that reads back as x */
void need(Emit *e, Need n);
void put_narrow_store(Emit *e, DType dt, ExprId x); /* the value and the end of the statement */

/* cstmt.c */
void put_line(Emit *e, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void put_block(Emit *e, StmtId first);

/* ckernel.c */
void put_kernel_call(Emit *e, StmtId s); /* writes the function too, unless an equal one exists */

/* cdata.c */
void put_weights(Emit *e, Text *out);
void make_blob(Emit *e, Text *blob);
u64 weights_bytes(Emit *e);
bool weight_is_text(Emit *e, BufId b); /* stored as a string in a union; its array is w.at */

/* cself.c */
u64 selftest_bytes(Emit *e);
void put_selftest(Emit *e, Text *out, const char *upper);

/* crun.c */
void put_caller(Emit *e, Text *out);

/* crt.c */
void put_runtime(Emit *e, Text *out);
void put_math(Emit *e, Text *out);
const char *math_name(Ctx *c, Op op,
                      bool wide); /* of the part of mathlib*.h that is this operation */
void put_comment(Text *t, const char *text, size_t n); /* harmless characters only */
void put_string(Text *t, const char *text, size_t n);  /* a string literal that holds these bytes */

#endif
