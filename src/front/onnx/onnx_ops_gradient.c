/* onnx_ops_gradient.c: Gradient. Passes the values y, xs and zs, which earlier nodes computed, to
 * pass/graph/grad_reverse.c. Refuses inputs other than the named values.
 */
#include "front/onnx/onnx_import.h"
#include "pass/graph/grad.h"

static Val named(Build *b, Str name) {
  Val v = scope_find(b->im, name);
  if (!val_is_real(v))
    on_unsupported(b, "'%s' is not a tensor computed by an earlier node", show(b->c, name));
  return v;
}

void build_gradient(Build *b) {
  const OnnxAttr *xs = on_attr(b, "xs"), *zs = on_attr(b, "zs");
  u32 nx = xs && xs->type == OA_strings ? xs->strings.n : 0,
      nz = zs && zs->type == OA_strings ? zs->strings.n : 0, nval = b->g->val.n;
  if (!nx || b->nin != nx + nz)
    on_bad(b, "found %u inputs, expected %u: one for each name of xs and zs", b->nin, nx + nz);
  for (u32 i = 0; i < nx + nz; i++) {
    Val v = named(b, i < nx ? xs->strings.at[i] : zs->strings.at[i - nx]);
    if (v != on_in(b, i)) on_unsupported(b, "inputs other than the values named by xs and zs");
  }
  Val y = named(b, on_str(b, "y", "")), *out = NEWS(&b->c->work, Val, nx);
  if (y >= nval) on_unsupported(b, "y is a constant, expected a result of nodes");
  grad(b->g, y, b->in, nx, b->in + nx, nz, out);
  for (u32 i = 0; i < nx && i < b->nout; i++) b->out[i] = out[i];
}
