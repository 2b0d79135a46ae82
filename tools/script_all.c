/* script_all.c: runtime of a compiled program, as one text (tools/embed.c).
 *
 * Values, tensors, layers, gradients and optimizers use the sources of src/lang, as `ingot run`
 * does. The difference: where src/lang/run/force.c compiles a graph, script_tensor.c looks up one
 * that ingot compiled before. Functions are static, so a C compiler drops those that a program does
 * not use. */
#define _GNU_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef __TINYC__
#define __builtin_trap abort
/* overflow checks of u64 */
#define __builtin_mul_overflow(a, b, to)                                                           \
  ((a) && (b) > UINT64_MAX / (a) ? 1 : (*(to) = (a) * (b), 0))
#define __builtin_add_overflow(a, b, to) ((b) > UINT64_MAX - (a) ? 1 : (*(to) = (a) + (b), 0))
#endif

#include "script_own.h"

#include "base/arena.c"
#include "base/ctx.c"
#include "base/diag.c"
#include "base/file.c"
#include "base/map.c"
#include "base/size.c"
#include "base/str.c"
#include "base/temp.c"

#include "ir/dtype.c"
#include "ir/eval.c"
#include "ir/tensor.c"

#include "io/bytes.c"
#include "io/image.c"
#include "io/image_libs.c"
#include "io/image_png.c"
#include "io/npy.c"
#include "io/npz.c"

#include "lang/run/builtin_args.c"
#include "lang/run/builtin_core.c"
#include "lang/run/digits.c"
#include "lang/run/grads.c"
#include "lang/run/layers.c"
#include "lang/run/lazy.c"
#include "lang/run/load.c"
#include "lang/run/load_image.c"
#include "lang/run/lang_model.c"
#include "lang/run/pending_graph.c"
#include "lang/run/nn.c"
#include "lang/run/operators.c"
#include "lang/run/optim.c"
#include "lang/run/random.c"
#include "lang/run/tensors.c"
#include "lang/run/lang_object.c"
#include "lang/run/lang_value.c"
#include "lang/run/show.c"
#include "lang/run/value_ops.c"
#include "lang/run/weights.c"

#include "script.c"
#include "script_tensor.c"
