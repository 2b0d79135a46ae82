/* examples.h: inputs of many runs, for quantization, training and workloads of builds.
 */
#ifndef INGOT_DRIVER_EXAMPLES_H
#define INGOT_DRIVER_EXAMPLES_H

#include "api/api_internal.h"

typedef struct ClassLabels { /* class indices of one example, one per row of its result */
  i64 *at;
  u32 n;
} ClassLabels;
typedef struct Examples {
  u32 n, ninput;
  const Str *name;    /* names of inputs */
  Tensor ***at;       /* at[i][k]: input k in example i */
  ClassLabels *label; /* by example; NULL: not requested */
} Examples;
bool api_list_archives(Ctx *c, const char *path,
                       ArgVec *to); /* .npz files of a folder; false: not a folder */
/* Arrays of an archive. Unpacks only inputs and the label; others have t NULL. */
NamedTensors api_read_arrays(Ingot *m, const File *f, Loc loc, Str label);
const Tensor *api_find_array(const NamedTensors *v, Str name); /* NULL: none */
/* Warns of arrays that are neither inputs nor the label. */
void api_warn_arrays(Ingot *m, Loc loc, const NamedTensors *v, Str label);
/* Reads an .npz or a folder of them; label: array with the class indices, or NULL. */
Examples api_examples(Ingot *m, const char *path, const char *label);
Examples api_examples_slice(const Examples *e, Arena *a, u32 from, u32 n,
                            u32 step); /* every step-th */

#endif
