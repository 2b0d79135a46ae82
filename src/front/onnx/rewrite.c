/* rewrite.c: an ONNX file with other elements for some of its weights.
 *
 * In: a model as it was read, names of initializers and tensors of their types and shapes. Out: the
 * file, whose other bytes are what they were: elements that lie in it as raw data are replaced
 * where they are. If some do not, the model is written anew (write.c), with the same contents;
 * weights that lay in files of their own lie inside then, or all in one beside it where there are
 * too many. Initializers that are stored sparsely are refused: their elements are not all there to
 * be changed.
 */
#include "front/onnx/edit.h"
#include "front/onnx/import.h"
#include "front/onnx/pb.h"

#include <string.h>

/* The elements in the file, if they lie there in one piece as a processor has them. */
static const u8 *raw_place(const Source *s, const OnnxModel *m, Str name, const Tensor *t) {
  const OnnxTensor *x = onnx_find_init(m->graph, name);
  bool inside = x && x->raw.n && x->raw.at >= s->at && x->raw.at + x->raw.n <= s->at + s->n;
  return inside && x->raw.n == data_raw_bytes(t) ? x->raw.at : NULL;
}

/* The bytes of the file with these replaced; false: some have to be written anew. */
static bool patch(Ctx *c, const Source *s, const OnnxModel *m, const Str *name, Tensor *const *t,
                  u32 n, const char *path) {
  for (u32 i = 0; i < n; i++)
    if (!raw_place(s, m, name[i], t[i])) return false;
  u8 *all = arena_copy(&c->work, s->at, s->n);
  for (u32 i = 0; i < n; i++) {
    Text raw = text_new(&c->work);
    data_write_raw(c, &raw, t[i]);
    memcpy(all + (raw_place(s, m, name[i], t[i]) - s->at), raw.at, raw.n);
  }
  file_write(c, path, all, s->n);
  return true;
}

static void replace(Ctx *c, OnnxModel *m, Str name, const Tensor *t) {
  if (!onnx_find_init(m->graph, name))
    fail(c, ERR_unsupported, LOC_NONE,
         "weight '%s' is no dense initializer of the main graph: it cannot be written",
         show(c, name));
  onnx_put_init(c, m->graph, name, t);
}

void onnx_rewrite(Ctx *c, const Source *s, const Model *m, const Str *name, Tensor *const *t, u32 n,
                  const char *path) {
  OnnxModel *to = onnx_copy(c, m->own);
  for (u32 i = 0; i < n; i++) replace(c, to, name[i], t[i]);
  if (!path || patch(c, s, m->own, name, t, n, path)) return;
  onnx_save(c, to, s->path, path);
}
