/* cweights.c: weights in the C file.
 *
 * Small models: one literal per element, correct on any machine. Larger models: the bytes as a
 * string in a union with an array of the element type, which compilers read a hundred times faster.
 * The bytes are little-endian, so such a file refuses to compile on big-endian machines. A weights
 * file holds the same bytes: a header of 64 bytes ("INGOTWTS", length, hash), then the tensors,
 * each aligned to 64. */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

static void put_literal(StrBuf *t, DType dt, const Tensor *x, u64 i) {
  Scalar v = tensor_get(x, i);
  if (dtype_is_full_float(dt)) {
    put_float(t, dt == DT_f64, v.f);
  } else if (dtype_is_float(dt)) {
    u16 bits = 0;
    memcpy(&bits, (const u8 *)x->data + i * dtype_bytes(dt), dtype_bytes(dt));
    sb_fmt(t, "%u", bits);
  } else if (dt == DT_u64) {
    sb_fmt(t, "%" PRIu64 "u", (u64)v.i);
  } else if (v.i == INT64_MIN) {
    sb_puts(t, "INT64_MIN");
  } else if (v.i > INT32_MAX || v.i <= INT32_MIN) {
    sb_fmt(t, "INT64_C(%" PRId64 ")", v.i);
  } else {
    sb_fmt(t, "%" PRId64, v.i);
  }
}

static void put_literals(Emit *e, StrBuf *t, u32 number, const Tensor *x) {
  sb_fmt(t, "static const %s w%u[%" PRIu64 "]%s = {", c_storage(x->dt), number, x->n ? x->n : 1,
         e->weights.lines ? " IG_LINE" : "");
  u64 line = 0;
  for (u64 i = 0; i < x->n; i++) {
    size_t before = t->n;
    sb_puts(t, i == 0 ? "" : line > 90 ? ",\n    " : ", ");
    if (line > 90) line = 0;
    put_literal(t, x->dt, x, i);
    line += t->n - before;
  }
  sb_puts(t, x->n ? "};\n" : "0};\n");
}

/* Octal escapes of three digits cannot absorb the next character. */
static void put_bytes(const void *bytes, size_t n, Sink *to) {
  static const char digit[] = "01234567";
  const u8 *at = bytes;
  char out[4096];
  u32 k = 0, column = 0;
  to->put(to, "\"", 1);
  for (u64 i = 0; i < n; i++) {
    u8 ch = at[i];
    bool plain = ch >= 0x20 && ch < 0x7f && ch != '"' && ch != '\\' && ch != '?';
    u32 before = k;
    if (plain) {
      out[k++] = (char)ch;
    } else {
      bool more = i + 1 < n && at[i + 1] >= '0' && at[i + 1] <= '7';
      out[k++] = '\\';
      if (more || ch >= 64) out[k++] = digit[ch >> 6];
      if (more || ch >= 8) out[k++] = digit[ch >> 3 & 7];
      out[k++] = digit[ch & 7];
    }
    column += k - before;
    if (column > 2000) {
      memcpy(out + k, "\"\n\"", 3);
      k += 3;
      column = 0;
    }
    if (k > sizeof out - 16) {
      to->put(to, out, k);
      k = 0;
    }
  }
  out[k++] = '"';
  to->put(to, out, k);
}

typedef struct TextSink {
  Sink sink;
  StrBuf *t;
} TextSink;

static void put_text(Sink *to, const void *at, size_t n) {
  sb_put(((TextSink *)to)->t, at, n);
}

bool weight_is_string(const Emit *e, const Tensor *d) {
  return e->weights.text && tensor_bytes(d) >= 64;
}

/* The number of these bytes in the pool. */
static u32 pool_add(Arena *a, WeightPool *pool, const Buf *x) {
  u64 bytes = tensor_bytes(x->data);
  u32 *slot = map_put(&pool->at, hash_bytes(x->data->data, bytes) + bytes);
  for (u32 i = *slot; i; i = pool->before.at[i - 1]) {
    const Tensor *d = pool->w.at[i - 1].data;
    if (d->dt == x->data->dt && tensor_bytes(d) == bytes &&
        (!bytes || !memcmp(d->data, x->data->data, bytes)))
      return i - 1;
  }
  *vec_push(a, &pool->w) = (Weight){.data = x->data, .name = x->name};
  *vec_push(a, &pool->before) = *slot;
  return (*slot = pool->w.n) - 1;
}

void begin_weights(Emit *e, WeightPool *pool) {
  Arena *a = &e->c->keep;
  WeightMode mode = e->o->weights;
  e->weights = (WeightForm){.pool = pool,
                            .number = NEWS(a, u32, e->p->buf.n),
                            .place = NEWS(a, u64, e->p->buf.n),
                            .blob = mode == WM_file || mode == WM_pointer};
  e->weights.text = mode == WM_string ||
                    (mode == WM_auto && prog_stored_bytes(e->given->p) > e->o->literal_bytes);
  for (BufId b = 1; b < e->p->buf.n; b++)
    e->weights.number[b] =
        pool && prog_buf(e->p, b)->data ? pool_add(a, pool, prog_buf(e->p, b)) : b;
}

/* ---- weights file ---- */

enum { BLOB_ALIGN = 64 };

static void put_u64(u8 *to, u64 x) {
  for (u32 i = 0; i < 8; i++) to[i] = (u8)(x >> (8 * i));
}

static const u8 zeros[BLOB_ALIGN];

static void blob_put(Blob *blob, const void *at, u64 n) {
  if (n) *vec_push(blob->a, &blob->piece) = (Chunk){.at = at, .n = n};
  blob->n += n;
}

/* end_blob fills in the header. */
void begin_blob(Blob *blob) {
  blob_put(blob, zeros, BLOB_ALIGN);
}

static u64 blob_add(Blob *blob, const void *at, u64 n) {
  u64 place = blob->n;
  blob_put(blob, at, n);
  blob_put(blob, zeros, -blob->n % BLOB_ALIGN);
  return place;
}

void make_blob(Emit *e, Blob *blob) {
  WeightForm *form = &e->weights;
  if (!form->pool) begin_blob(blob);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    if (x->space != BS_const || x->alias || !e->by_buf.used[b]) continue;
    Weight *w = form->pool ? &form->pool->w.at[form->number[b]] : NULL;
    form->place[b] =
        w && w->place ? w->place : blob_add(blob, x->data->data, tensor_bytes(x->data));
    if (w) w->place = form->place[b];
  }
  if (!form->pool) end_blob(e, blob);
}

void end_blob(Emit *e, Blob *blob) {
  u8 *head = arena_alloc(blob->a, BLOB_ALIGN);
  const EmitExtra *more = e->o->more;
  if (more && more->ntable) e->weights.table = blob_add(blob, more->table, more->ntable);
  memcpy(head, "INGOTWTS", 8);
  e->weights.hash = hash_pieces(blob->piece.at + 1, blob->piece.n - 1);
  e->weights.bytes = blob->n;
  put_u64(head + 8, blob->n);
  put_u64(head + 16, e->weights.hash);
  blob->piece.at[0].at = head;
}

/* Refuses a weights file of another length at compile time; a shorter one would be read past its
 * end. clang's assembler knows lengths only at section layout, where its only error is a backward
 * .org. It shows the line with its comment. */
static void put_length_check(Emit *e, StrBuf *t) {
  u64 n = e->weights.bytes;
  put_template(e, t,
               "#ifdef __clang__\n"
               "#define IG_WEIGHTS_LENGTH \".org ${name}_weights_file + %" PRIu64
               " /* the weights file is longer than %" PRIu64 " bytes */\\n\" \\\n"
               "  \".org .L${name}_end + (.L${name}_end - ${name}_weights_file) - %" PRIu64
               " /* the weights file is shorter than %" PRIu64 " bytes */\\n\"\n"
               "#else\n"
               "#define IG_WEIGHTS_LENGTH \".ifeq .L${name}_end - ${name}_weights_file\\n.error "
               "\\\"\" IG_WEIGHTS_HINT "
               "\"\\\"\\n.else\\n\" \\\n"
               "  \".if .L${name}_end - ${name}_weights_file - %" PRIu64
               "\\n.error \\\"the weights file is not %" PRIu64
               " bytes long\\\"\\n.endif\\n.endif\\n\"\n"
               "#endif\n",
               n, n, n, n, n, n);
}

/* The assembler searches the working folder of the compiler, unless the macro has a path. */
static void put_incbin(Emit *e, StrBuf *t) {
  const char *file = e->o->weights_file;
  StrBuf own = sb_new(&e->c->scratch);
  put_template(e, &own, "${name}.bin");
  if (!file) file = sb_cstr(&own);
  for (const char *s = file; *s; s++)
    if ((u8)*s < 0x20 || *s == '"' || *s == '\\')
      fail(e->c, ERR_usage, LOC_NONE,
           "the name of the weights file has a character that assemblers do not accept");
  put_template(
      e, t,
      "#if !defined(__GNUC__)\n#error \"the weights are included with .incbin: a GNU "
      "assembler is needed; see --weights=pointer\"\n#endif\n"
      "/* The assembler searches the working folder of the compiler, then those of -I. */\n"
      "#define IG_WEIGHTS_HINT \"if the weights file is not found, pass its folder with -I, or "
      "define ${NAME}_WEIGHTS_FILE as its path in quotes\"\n"
      "#ifndef ${NAME}_WEIGHTS_FILE\n"
      "#define ${NAME}_WEIGHTS_FILE ");
  emit_string(t, file, strlen(file));
  sb_puts(t, "\n#endif\n");
  put_length_check(e, t);
  put_template(
      e, t,
      "__asm__(\".pushsection .rodata\\n.balign 64\\n.globl ${name}_weights_file\\n.hidden "
      "${name}_weights_file\\n\"\n"
      "        \"${name}_weights_file:\\n.incbin \\\"\" ${NAME}_WEIGHTS_FILE "
      "\"\\\" /* \" IG_WEIGHTS_HINT \" */\\n.L${name}_end:\\n\" IG_WEIGHTS_LENGTH "
      "\".popsection\\n\");\n"
      "extern const unsigned char ${name}_weights_file[];\n");
}

static void put_blob(Emit *e, StrBuf *t) {
  if (e->o->weights == WM_file) put_incbin(e, t);
  put_template(e, t,
               "static int ${name}_weights_fit(const unsigned char *w) {\n"
               "  static const unsigned char head[24] = {");
  u8 head[24] = "INGOTWTS";
  put_u64(head + 8, e->weights.bytes);
  put_u64(head + 16, e->weights.hash);
  for (u32 i = 0; i < 24; i++) sb_fmt(t, "%s%u", i ? ", " : "", head[i]);
  sb_puts(t, "};\n  int i;\n  for (i = 0; i < 24; i++)\n    if (w[i] != head[i]) return 0;\n  "
             "return 1;\n}\n");
}

void put_weights_head(Emit *e, StrBuf *t) {
  bool blob = e->weights.blob;
  if (!blob && !e->weights.text && !e->o->more) return;
  sb_fmt(t,
         "#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__\n"
         "#error \"the %s little-endian%s\"\n#endif\n",
         e->o->more ? "tables in this file are"
         : blob     ? "weights are"
                    : "weights in this file are",
         e->o->more ? ""
         : blob     ? ": generate this file with --weights=literal"
                    : ": generate it with --weights=literal");
  if (blob)
    put_blob(e, t);
  else
    sb_puts(t, "#if defined(__GNUC__)\n#pragma GCC diagnostic ignored "
               "\"-Woverlength-strings\"\n#endif\n");
}

static void put_string(Emit *e, StrBuf *t, const void *at, u64 n) {
  if (e->o->deferred)
    *vec_push(&e->c->keep, e->o->deferred) = (DeferredText){t->n, {at, n, put_bytes}};
  else
    put_bytes(at, n, &(TextSink){{put_text}, t}.sink);
}

void put_weight(Emit *e, StrBuf *t, const Tensor *d, u32 number, Str name) {
  if (!c_storage(d->dt))
    fail(e->c, ERR_unsupported, LOC_NONE, "the C back end does not support constants of type %s",
         dtype_info[d->dt].name);
  put_trailing_comment(e, t, name);
  if (!weight_is_string(e, d)) {
    put_literals(e, t, number, d);
    return;
  }
  sb_fmt(t,
         "static const union { unsigned char bytes[%" PRIu64 "]; %s at[%" PRIu64 "]; } w%u%s = {\n",
         tensor_bytes(d), c_storage(d->dt), d->n, number, e->weights.lines ? " IG_LINE" : "");
  put_string(e, t, d->data, tensor_bytes(d));
  sb_puts(t, "};\n");
}

void put_table(Emit *e, StrBuf *t) {
  const EmitExtra *more = e->o->more;
  bool given = e->o->weights == WM_pointer;
  if (e->weights.blob) {
    put_template(e, t,
                 given ? "#define IG_TABLE ((const unsigned char *)weight_file + %" PRIu64 ")\n"
                         "#define IG_TABLE_FITS \\\n"
                         "  (weight_file && (uintptr_t)weight_file %% 64 == 0 && "
                         "${name}_weights_fit(weight_file))\n"
                       : "#define IG_TABLE (${name}_weights_file + %" PRIu64 ")\n"
                         "#define IG_TABLE_FITS ${name}_weights_fit(${name}_weights_file)\n",
                 e->weights.table);
    return;
  }
  put_template(e, t,
               "static const union { unsigned char bytes[%" PRIu64
               "]; uint64_t word; } ${name}_table = {\n",
               more->ntable);
  put_string(e, t, more->table, more->ntable);
  put_template(e, t, "};\n#define IG_TABLE ${name}_table.bytes\n#define IG_TABLE_FITS 1\n");
}

void put_weights(Emit *e, StrBuf *t) {
  put_weights_head(e, t);
  for (BufId b = 1; b < e->p->buf.n; b++) {
    const Buf *x = prog_buf(e->p, b);
    if (!e->weights.blob && x->space == BS_const && !x->alias && e->by_buf.used[b])
      put_weight(e, t, x->data, b, x->name);
  }
}
