/* string_tensors.c: strings at the API boundary.
 *
 * A model takes and returns strings as rows of bytes, padded with zeros; callers and files have
 * strings. In: strings of an input, or rows computed by an engine. Out: the other form. Callers get
 * an array of pointers to zero-terminated texts.
 */
#include "api/api_internal.h"

#include <string.h>

/* Encodes strings t for input i; NULL: the input does not take strings. */
Tensor *api_encode_strings(Ingot *m, u32 i, const Tensor *t) {
  IngotTensor info = ingot_input_info(m, i);
  if (strcmp(info.dtype, "u8") != 0 || info.rank != t->rank + 1) return NULL;
  i64 dim[MAX_RANK], k = info.dim[t->rank];
  if (t->rank) memcpy(dim, t->dim, t->rank * sizeof *dim);
  dim[t->rank] = k;
  Tensor *rows = tensor_new(&m->c->keep, DT_u8, dim, t->rank + 1);
  if (k < 1 || !strings_to_bytes(m->c, t, (u8 *)(uintptr_t)rows->data, k))
    fail(m->c, ERR_input, LOC_NONE,
         "input '%s': a string has more than %lld bytes (use -d '%s.bytes=N'), or ends with a NUL "
         "byte",
         info.name, (long long)k, info.name);
  return rows;
}

static void decode(Ingot *m, const OutputStructure *p) {
  for (u32 i = 0; i < (p->open ? 2 : p->n); i++) decode(m, &p->elem[i]);
  if (p->kind != TY_tensor || !p->text) return;
  Tensor *rows = m->run.out[p->flat];
  if (rows->dt != DT_u8) return; /* the engine returned strings */
  m->run.out[p->flat] = tensor_new(&m->c->keep, DT_str, rows->dim, rows->rank - 1);
  bytes_to_strings(m->c, rows, m->run.out[p->flat]);
}

void api_decode_strings(Ingot *m) {
  for (u32 i = 0; m->opened.ports && i < m->opened.model->noutput; i++)
    decode(m, &m->opened.ports[i]);
  m->run.text = NEWS(&m->c->keep, const char **, m->run.nout + 1);
  for (u32 i = 0; i < m->run.nout; i++) {
    const Tensor *t = m->run.out[i];
    if (t->dt != DT_str) continue;
    m->run.text[i] = NEWS(&m->c->keep, const char *, t->n + 1);
    for (u64 k = 0; k < t->n; k++) m->run.text[i][k] = str_text(m->c, (Str)tensor_get(t, k).i);
  }
}

Tensor *api_import_strings(Ctx *c, const IngotTensor *x) {
  u64 n;
  if (x->rank > MAX_RANK || !x->data || !shape_count(x->dim, x->rank, &n) ||
      n * sizeof(char *) != x->bytes)
    fail(c, ERR_usage, LOC_NONE,
         "'%s': %llu bytes do not match the number of pointers of its shape", x->name,
         (unsigned long long)x->bytes);
  Tensor *t = tensor_new(&c->keep, DT_str, x->dim, x->rank);
  const char *const *at = x->data;
  for (u64 i = 0; i < n; i++) {
    api_need(c, at[i], "a string of an array");
    tensor_set(t, i, (Scalar){.i = str_of(c, at[i])});
  }
  return t;
}

size_t ingot_json_char(const char *text, char to[INGOT_JSON_CHAR]) {
  size_t n = 0; /* its possible length */
  while (text && n < 4 && text[n]) n++;
  if (!to) return 0;
  *to = 0;
  return n ? json_char(text, n, false, to) : 0;
}
