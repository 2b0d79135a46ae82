/* formats.h: what a file is that is not ONNX; see formats.c. */
#ifndef INGOT_FORMATS_H
#define INGOT_FORMATS_H

#include "front/onnx/onnx.h"

typedef struct Format {
  const char *name;   /* "a TensorFlow SavedModel" */
  const char *advice; /* what to do; FILE and FOLDER stand for what was given */
} Format;

/* NULL: not known. *whole: bytes that an ONNX model which is cut off should have; else 0. */
const Format *format_of(Ctx *c, const u8 *at, size_t n, u64 *whole);
const Format *format_of_folder(Ctx *c, const char *path); /* NULL: not known */

#endif
