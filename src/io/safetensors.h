/* safetensors.h: tensors with names, in the bytes of one file.
 *
 * A pure function of the bytes, which must outlive what it returns: weights are never copied. The
 * ranges of all tensors tile the data without holes or overlap, each as long as shape and type
 * say; anything else is refused.
 */
#ifndef INGOT_SAFETENSORS_H
#define INGOT_SAFETENSORS_H

#include "io/stored_tensor.h"

enum { SAFETENSORS_HEADER = 100000000 }; /* bytes, as the reference reader has it */

/* Is it one? By its first bytes; never fails. */
bool safetensors_sniff(const u8 *at, size_t n);
StoredTensors safetensors_read(Ctx *c, const u8 *at, size_t n,
                               Loc loc); /* in the order of the data */

#endif
