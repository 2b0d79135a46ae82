/* formats.h: names the format of a file that is not ONNX. See formats.c. */
#ifndef INGOT_FORMATS_H
#define INGOT_FORMATS_H

#include "front/onnx/onnx.h"

typedef struct Format {
  const char *name;   /* "a TensorFlow SavedModel" */
  const char *advice; /* what to do; FILE and FOLDER stand for the path that was given */
} Format;

/* NULL: unknown. *whole: full size in bytes of a truncated ONNX model, else 0. */
const Format *format_of(Ctx *c, const u8 *at, size_t n, u64 *whole);
const Format *format_of_folder(Ctx *c, const char *path); /* NULL: unknown */

#endif
