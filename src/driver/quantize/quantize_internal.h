/* quantize_internal.h: shared by the quantizers.
 */
#ifndef INGOT_DRIVER_QUANTIZE_INTERNAL_H
#define INGOT_DRIVER_QUANTIZE_INTERNAL_H

#include "driver/examples.h"

/* quantize_run.c: runs models in memory on examples */
typedef struct ModelRunner ModelRunner; /* a model that is run repeatedly */
typedef struct ErrorSums {              /* sums of squares: expected values, error */
  double signal, noise, max_abs;
  u64 n;
  u64 whole, changed; /* non-float elements; different ones */
} ErrorSums;
struct ModelRunner {
  Ctx *c;
  StrBuf model;     /* its bytes */
  const char *file; /* shown in messages */
  Ingot *s;         /* NULL: not opened yet */
  Tensor **last;    /* inputs of the last run */
};
void runner_run(ModelRunner *t, const Examples *e, u32 i);
const Tensor *runner_value(const ModelRunner *t,
                           const char *name); /* a value of the last run; NULL: unknown */
void runner_close(ModelRunner *t);
void error_sums_add(ErrorSums *s, const Tensor *have, const Tensor *want);
double error_sums_sqnr(const ErrorSums *s); /* dB */
double error_sums_mse(const ErrorSums *s);

/* quantize.c: one function per format */
void api_quantize_onnx(Ingot *m, const IngotQuantize *o, IngotQuantized *out);

/* requant_gguf.c */
void api_requantize(Ingot *m, const IngotQuantize *o, IngotQuantized *out);

#endif
