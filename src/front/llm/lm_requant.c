/* lm_requant.c: writes a language model as a GGUF file with other weight types.
 *
 * In: an LmFile and the name of a type mixture. Out: pieces of a file. Tensors that keep their type
 * are copied from the old file. The others are converted while the file is written, some rows at a
 * time: decoded to f32, encoded, and decoded again to measure the error. Keys are copied, except
 * those about quantization and splitting.
 */
#include "front/llm/lm_requant.h"

#include <math.h>
#include <string.h>

enum { PART = 1 << 16 }; /* elements encoded at a time, at least one row */

typedef struct EncodeBuffers {
  float *x, *y; /* before and after encoding */
  u8 *bytes;
} EncodeBuffers;

typedef struct Requant {
  Ctx *c;
  Loc loc;
  LmTensorOut t;
  i64 rows, cols;
  RequantRow *row; /* receives the errors */
  const EncodeBuffers *room;
} Requant;

/* ---- one tensor ---- */

/* Row of the old tensor that becomes row i. Rows i and i + half of each head become neighbors,
 * because RoPE rotates neighbors in GGUF and halves in safetensors. */
static i64 source_row(const Requant *r, i64 i) {
  if (!r->t.heads) return i;
  i64 size = r->rows / r->t.heads, head = i / size, in = i % size;
  return head * size + (in % 2) * (size / 2) + in / 2;
}

static void load_rows(const Requant *r, i64 first, i64 n) {
  const QBlockInfo *b = &qblock_info[r->t.from->kind];
  u64 blocks = (u64)r->cols / b->elems, bytes = blocks * b->bytes;
  float *x = r->room->x;
  if (!r->t.heads)
    qblock_decode(r->t.from->kind, r->t.from->at + (u64)first * bytes, (size_t)(blocks * (u64)n),
                  x);
  for (i64 i = 0; r->t.heads && i < n; i++)
    qblock_decode(r->t.from->kind, r->t.from->at + (u64)source_row(r, first + i) * bytes,
                  (size_t)blocks, x + i * r->cols);
  for (i64 i = 0; r->t.add != 0 && i < n * r->cols; i++) x[i] += r->t.add;
}

static _Noreturn void refuse(const Requant *r, float x) {
  fail(r->c, ERR_input, r->loc, "tensor '%s' holds %g, which %s cannot represent",
       show(r->c, r->t.name), (double)x, qblock_info[r->t.kind].name);
}

static void compare(const Requant *r, size_t n) {
  const float *x = r->room->x, *y = r->room->y;
  bool plain = qblock_is_plain(r->t.kind);
  RequantRow *row = r->row;
  double squares = 0, errors = 0, most = row->most;
  for (size_t i = 0; i < n; i++) {
    double e = (double)x[i] - (double)y[i];
    if (!isfinite(e)) {
      if (!plain || isfinite(x[i])) refuse(r, x[i]);
      continue;
    }
    squares += (double)x[i] * (double)x[i];
    errors += e * e;
    most = fabs(e) > most ? fabs(e) : most;
  }
  row->squares += squares;
  row->errors += errors;
  row->most = most;
}

/* Chunk.make */
static void make_tensor(const void *at, size_t size, Sink *to) {
  const Requant *r = at;
  const QBlockInfo *b = &qblock_info[r->t.kind];
  i64 step = r->cols < PART ? PART / r->cols : 1;
  (void)size;
  for (i64 i = 0; i < r->rows; i += step) {
    i64 n = r->rows - i < step ? r->rows - i : step;
    size_t elems = (size_t)(n * r->cols), blocks = elems / b->elems;
    load_rows(r, i, n);
    if (!qblock_is_plain(r->t.kind))
      for (size_t k = 0; k < elems; k++)
        if (!isfinite(r->room->x[k])) refuse(r, r->room->x[k]);
    if (!qblock_encode(r->t.kind, r->room->x, blocks, r->room->bytes))
      internal_error(r->c, r->loc, "%s has no quantizer", b->name);
    qblock_decode(r->t.kind, r->room->bytes, blocks, r->room->y);
    compare(r, elems);
    to->put(to, r->room->bytes, blocks * b->bytes);
  }
}

/* ---- selection of tensors ---- */

static void choose(const LmFile *f, const LmQuantMix *m, const RequantOptions *o, const LmSizes *z,
                   LmTensorOuts *all) {
  Ctx *c = f->c;
  bool *used = NEWS(&c->scratch, bool, o->nkeep + 1);
  for (u32 i = 0; i < all->n; i++) {
    LmTensorOut *t = &all->at[i];
    const char *name = str_text(c, t->name);
    t->kind = lm_quant_mix_type(m, name, t->from, z);
    for (u32 k = 0; k < o->nkeep; k++) {
      if (!glob_match(o->keep[k], name)) continue;
      t->kind = t->from->kind;
      used[k] = true;
    }
    if (!f->gguf && t->from->rank < 2) t->kind = BK_F32; /* GGUF stores vectors as f32 */
    if (qblock_info[t->kind].gguf == QBLOCK_NO) t->kind = BK_F32;
  }
  for (u32 k = 0; k < o->nkeep; k++)
    if (!used[k])
      fail(c, ERR_usage, LOC_NONE, "no tensor is called '%s'", show(c, str_of(c, o->keep[k])));
}

static void warn_lossy(LmFile *f, const LmTensorOuts *all) {
  for (u32 i = 0; i < all->n; i++) {
    const LmTensorOut *t = &all->at[i];
    if (qblock_is_plain(t->from->kind) || qblock_is_plain(t->kind) || t->kind == t->from->kind)
      continue;
    warn(f->c, f->loc, "tensor '%s' is already %s, and others may be: its error adds to that of %s",
         show(f->c, t->name), qblock_info[t->from->kind].name, qblock_info[t->kind].name);
    return;
  }
}

/* ---- keys ---- */

static void copy_keys(const LmFile *f, GgufOut *o, const LmQuantMix *m) {
  static const char *const dropped[] = {"split.no", "split.count", "split.tensors.count"};
  static const char type[] = "general.file_type", version[] = "general.quantization_version";
  bool has_type = false, has_version = false, quantized = !qblock_is_plain(m->kind);
  for (u32 i = 0; f->gguf && i < f->gguf->key.n; i++) {
    const GgufKey *k = &f->gguf->key.at[i];
    const char *name = str_text(f->c, k->name);
    bool drop = false;
    for (u32 d = 0; d < 3; d++) drop |= !strcmp(name, dropped[d]);
    if (!strcmp(name, type)) {
      gguf_put_int(o, type, GT_u32, m->number);
      has_type = true;
    } else if (!strcmp(name, version)) {
      gguf_put_int(o, version, GT_u32, 2);
      has_version = true;
    } else if (!drop) {
      gguf_put_key(o, k);
    }
  }
  if (!has_type) gguf_put_int(o, type, GT_u32, m->number);
  if (!has_version && quantized) gguf_put_int(o, version, GT_u32, 2);
}

static LmTensorOuts tensors_of_gguf(LmFile *f, LmSizes *z) {
  LmTensorOuts all = {0};
  i64 heads = 0, shared = 0;
  LmList l;
  for (u32 i = 0; i < f->tensor.n; i++)
    *vec_push(&f->c->work, &all) =
        (LmTensorOut){.from = &f->tensor.at[i], .name = f->tensor.at[i].name};
  z->tied = !lm_tensor(f, "output.weight");
  lm_int(f, ".block_count", 0, LM_LAYERS, &z->layers);
  if (lm_list(f, ".attention.head_count", &l)) lm_next_int(&l, 0, LM_SIZE, &heads);
  if (lm_list(f, ".attention.head_count_kv", &l)) lm_next_int(&l, 0, LM_SIZE, &shared);
  z->shared = heads && shared ? heads / shared : 1;
  return all;
}

/* ---- entry point ---- */

static Chunk tensor_chunk(LmFile *f, const LmTensorOut *t, const EncodeBuffers *room,
                          RequantRow *row, StoredTensor *out) {
  Requant *r = NEW(&f->c->work, Requant);
  const QBlockInfo *b = &qblock_info[t->kind];
  *out = *t->from;
  out->name = t->name;
  out->kind = t->kind;
  u64 n = t->from->bytes / qblock_info[t->from->kind].bytes * qblock_info[t->from->kind].elems;
  out->bytes = n / b->elems * b->bytes;
  *row = (RequantRow){.name = t->name,
                      .from = qblock_info[t->from->kind].name,
                      .to = b->name,
                      .elems = n,
                      .before = t->from->bytes,
                      .after = out->bytes};
  if (t->kind == t->from->kind && !t->heads && t->add == 0)
    return (Chunk){.at = t->from->at, .n = (size_t)t->from->bytes};
  i64 cols = out->rank ? out->dim[out->rank - 1] : 1;
  if (t->heads && out->rank == 1) cols = 1; /* a bias has one element per row */
  *r = (Requant){f->c, f->loc, *t, cols ? (i64)n / cols : 0, cols, row, room};
  return (Chunk){.at = r, .n = (size_t)out->bytes, .make = make_tensor};
}

static EncodeBuffers alloc_buffers(Ctx *c, const LmTensorOuts *all) {
  u64 most = PART;
  for (u32 i = 0; i < all->n; i++) {
    const StoredTensor *t = all->at[i].from;
    if (t->rank && (u64)t->dim[t->rank - 1] > most) most = (u64)t->dim[t->rank - 1];
  }
  return (EncodeBuffers){NEWS(&c->work, float, most), NEWS(&c->work, float, most),
                         arena_array(&c->work, most, sizeof(double))};
}

RequantPlan *lm_requantize(Ctx *c, const Model *m, const RequantOptions *o) {
  LmFile *f = (LmFile *)m->own; /* not const: other files of the model are opened on demand */
  RequantPlan *plan = NEW(&c->work, RequantPlan);
  const LmQuantMix *mix = lm_quant_mix(c, o->to);
  GgufOut *out = gguf_out(c, &c->work, f->gguf ? f->gguf->alignment : GGUF_ALIGNMENT);
  LmSizes z = {0};
  LmTensorOuts all = f->gguf ? tensors_of_gguf(f, &z) : lm_to_gguf(f, out, &z);
  copy_keys(f, out, mix);
  choose(f, mix, o, &z, &all);
  warn_lossy(f, &all);
  EncodeBuffers *room = NEW(&c->work, EncodeBuffers);
  *room = alloc_buffers(c, &all);
  RequantRow *row =
      NEWS(&c->work, RequantRow, all.n + 1); /* allocated once: pieces point into it */
  for (u32 i = 0; i < all.n; i++) {
    StoredTensor to;
    Chunk data = tensor_chunk(f, &all.at[i], room, &row[i], &to);
    gguf_put_tensor(out, &to, data);
  }
  plan->row.at = row;
  plan->row.n = plan->row.cap = all.n;
  GgufPieces pieces = gguf_finish(out);
  plan->piece.at = pieces.at;
  plan->piece.n = plan->piece.cap = pieces.n;
  plan->bytes = out->bytes;
  return plan;
}
