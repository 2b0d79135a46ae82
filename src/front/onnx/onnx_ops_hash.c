/* onnx_ops_hash.c: MurmurHash3.
 *
 * The 32-bit variant for x86. Mixes the bytes of each element into the state, four at a time.
 * Strings are zero-padded, so a partial last word is the tail of the hash, and later words have no
 * effect.
 */
#include "front/onnx/onnx_builder.h"

static Val bits32(Build *b, u32 x) {
  return mk_scalar(b->g, DT_u32, x);
}

static Val times(Build *b, Val x, u32 k) {
  return mk_mul(b->g, x, bits32(b, k));
}

static Val rotate(Build *b, Val x, u32 by) {
  Graph *g = b->g;
  Val low = mk_shr(g, x, bits32(b, 32 - by));
  return mk_or(g, mk_shl(g, x, bits32(b, by)), low);
}

static Val xor_shift(Build *b, Val x, u32 by) { /* x ^ x >> by */
  return mk_xor(b->g, x, mk_shr(b->g, x, bits32(b, by)));
}

/* Mixes a word into the state; full: a bool, false for the tail; 0: always true. */
static Val mix(Build *b, Val h, Val word, Val full) {
  Graph *g = b->g;
  Val k = times(b, rotate(b, times(b, word, 0xcc9e2d51), 15), 0x1b873593);
  Val met = mk_xor(g, h, k);
  Val more = bits32(b, 0xe6546b64);
  Val on = mk_add(g, times(b, rotate(b, met, 13), 5), more);
  return full ? mk_select(g, full, on, met) : on;
}

typedef struct Hash {
  Build *b;
  Val words;  /* u32[n, count] */
  Val length; /* i64[n], length in bytes */
} Hash;

static void mix_column(Graph *g, void *user, Val i, Val *cond, Val *carried, Val *scan) {
  Hash *x = user;
  Build *b = x->b;
  (void)cond, (void)scan;
  Val end = mk_addk(g, mk_mulk(g, i, 4), 4);
  Val full = mk_le(g, end, x->length);
  carried[0] = mix(b, carried[0], mk_gather(g, x->words, i, 1), full);
}

/* Little-endian words of four bytes. */
static Val bytes_to_u32(Build *b, Val rows) {
  Graph *g = b->g;
  const Type *t = on_type(b, rows);
  Dim n = t->dim[0], k = t->dim[1], more = (4 - k % 4) % 4, shape[3] = {n, (k + more) / 4, 4};
  static const i64 shift[4] = {0, 8, 16, 24}, none[2];
  Val all =
      mk_pad(g, rows, mk_scalar(g, DT_u8, 0), (const Dim[]){0, 0}, (const Dim[]){0, more}, none);
  Val byte = mk_cast(g, mk_reshape(g, all, shape, 3), DT_u32);
  byte = mk_shl(g, byte, mk_cast(g, mk_ints(g, shift, 4), DT_u32));
  return mk_reduce(g, OP_reduce_sum, byte, &(i64){2}, 1, false);
}

static Val hash_text(Build *b, Val text, Val h) {
  Graph *g = b->g;
  Dim n = type_count(b->ds, on_type(b, text));
  Val rows = on_string_bytes(b, mk_reshape(g, text, &n, 1)), none;
  Val used = mk_cast(g, mk_ne(g, rows, mk_scalar(g, DT_u8, 0)), DT_i64);
  Hash x = {b, bytes_to_u32(b, rows), mk_reduce(g, OP_reduce_sum, used, &(i64){1}, 1, false)};
  Val state = mk_full(g, h, &n, 1);
  mk_loop(g, mk_extent(g, on_dim(b, x.words, 1), DT_i64), 0, &state, 1, &none, 0, mix_column, &x);
  return mk_xor(g, state, mk_cast(g, x.length, DT_u32));
}

static Val hash_number(Build *b, Val x, Val h) {
  Graph *g = b->g;
  DType dt = on_dtype(b, x);
  u32 bytes = dtype_info[dt].bits / 8;
  Attr to = {.key = AT_to, .kind = AK_dtype, .u.i = bytes == 8 ? DT_u64 : DT_u32};
  if (bytes != 4 && bytes != 8)
    on_bad(b, "elements of type %s cannot be hashed", dtype_info[dt].name);
  if (dt != (DType)to.u.i) x = mk_node(g, OP_bitcast, &x, 1, &to, 1);
  h = mix(b, h, mk_cast(g, x, DT_u32), 0);
  if (bytes == 8) h = mix(b, h, mk_cast(g, mk_shr(g, x, mk_scalar(g, DT_u64, 32)), DT_u32), 0);
  return mk_xor(g, h, bits32(b, bytes));
}

void build_murmur(Build *b) {
  Val x = on_in(b, 0), seed = bits32(b, (u32)on_int(b, "seed", 0));
  Type t = *on_type(b, x);
  Val h = t.dt == DT_str ? hash_text(b, x, seed) : hash_number(b, x, seed);
  h = times(b, xor_shift(b, h, 16), 0x85ebca6b);
  h = xor_shift(b, times(b, xor_shift(b, h, 13), 0xc2b2ae35), 16);
  h = mk_reshape(b->g, h, t.dim, t.rank);
  b->out[0] = on_int(b, "positive", 1) ? h : mk_cast(b->g, h, DT_i32);
}
