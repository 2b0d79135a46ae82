/* safetensors.h: reads safetensors files.
 *
 * safetensors_read is a pure function of the bytes, which must outlive the result: weights are
 * never copied. The tensors must cover the data without gaps or overlap, each with the size that
 * shape and type imply.
 */
#ifndef INGOT_SAFETENSORS_H
#define INGOT_SAFETENSORS_H

#include "io/stored_tensor.h"

enum { SAFETENSORS_HEADER = 100000000 }; /* bytes, as in the reference reader */

/* True if the first bytes look like safetensors. Never fails. */
bool safetensors_sniff(const u8 *at, size_t n);
/* Returns the tensors in file order. */
StoredTensors safetensors_read(Ctx *c, const u8 *at, size_t n, Loc loc);

#endif
