/* cselftest.c: the self-test of a generated file.
 *
 * In: the sizes of a test run and the hash of its outputs, computed by the VM when the file is
 * generated. Out: NAME_selftest, which fills the inputs with the same formula, runs the model and
 * compares hashes. selftest_fill and selftest_hash must match the C text. The hash is 64-bit FNV-1a
 * over element counts and bit patterns, lowest byte first, so it does not depend on the byte order.
 * All NaN hash alike, and on targets that flush subnormals these hash as zeros. */
#include "back/c/c.h"

#include <inttypes.h>
#include <string.h>

/* ---- at compile time ---- */

static u32 test_word(u32 input, u64 i) {
  u32 w = (u32)i * 2654435761u + input * 2246822507u + 374761393u;
  w = (w ^ w >> 15) * 739982445u;
  w = (w ^ w >> 12) * 695872825u;
  return w ^ w >> 15;
}

typedef struct Recipe {
  const char *fill; /* C expression of an element from the word w */
  u32 low, mask;    /* narrow floats: code = low | w >> 16 & mask */
  u32 inf;          /* narrow floats: magnitudes above it are NaN; 0: nan is the only code */
  u32 nan;          /* code that replaces every NaN; 0: none */
} Recipe;

/* Floats are multiples of 1/128 in -1..1; narrow floats are codes around a quarter. Integers are
 * small enough for indices; 8-bit and 16-bit integers cover a byte, as quantized data does. */
static const Recipe recipes[DT_COUNT] = {
    [DT_f32] = {"(float)((int)(w >> 24) - 128) * 0.0078125f", 0, 0, 0, 0},
    [DT_f64] = {"(double)((int)(w >> 24) - 128) * 0.0078125", 0, 0, 0, 0},
    [DT_f16] = {"(uint16_t)(0x3000u | (w >> 16 & 0x87ffu))", 0x3000, 0x87ff, 0x7c00, 0x7e00},
    [DT_bf16] = {"(uint16_t)(0x3e00u | (w >> 16 & 0x80ffu))", 0x3e00, 0x80ff, 0x7f80, 0x7fc0},
    [DT_f8e4m3fn] = {"(uint8_t)(0x20u | (w >> 16 & 0x9fu))", 0x20, 0x9f, 0x7e, 0x7f},
    [DT_f8e4m3fnuz] = {"(uint8_t)(0x20u | (w >> 16 & 0x9fu))", 0x20, 0x9f, 0, 0x80},
    [DT_f8e5m2] = {"(uint8_t)(0x30u | (w >> 16 & 0x8fu))", 0x30, 0x8f, 0x7c, 0x7e},
    [DT_f8e5m2fnuz] = {"(uint8_t)(0x30u | (w >> 16 & 0x8fu))", 0x30, 0x8f, 0, 0x80},
    [DT_f8e8m0] = {"(uint8_t)(0x7cu | (w >> 16 & 0x3u))", 0x7c, 3, 0, 0xff},
    [DT_f4e2m1] = {"(uint8_t)(w >> 16 & 0xfu)", 0, 0xf, 0, 0},
    [DT_i64] = {"(int64_t)(w >> 16) % 10", 0, 0, 0, 0},
    [DT_i32] = {"(int32_t)(w >> 16) % 10", 0, 0, 0, 0},
    [DT_u64] = {"(uint64_t)(w >> 16) % 10u", 0, 0, 0, 0},
    [DT_u32] = {"(w >> 16) % 10u", 0, 0, 0, 0},
    [DT_i16] = {"(int16_t)((int)(w >> 24) - 128)", 0, 0, 0, 0},
    [DT_i8] = {"(int8_t)((int)(w >> 24) - 128)", 0, 0, 0, 0},
    [DT_u16] = {"(uint16_t)(w >> 24)", 0, 0, 0, 0},
    [DT_u8] = {"(uint8_t)(w >> 24)", 0, 0, 0, 0},
    [DT_i4] = {"(int8_t)((int)(w >> 28) - 8)", 0, 0, 0, 0},
    [DT_u4] = {"(uint8_t)(w >> 28)", 0, 0, 0, 0},
    [DT_i2] = {"(int8_t)((int)(w >> 30) - 2)", 0, 0, 0, 0},
    [DT_u2] = {"(uint8_t)(w >> 30)", 0, 0, 0, 0},
    [DT_bool] = {"(uint8_t)(w >> 31)", 0, 0, 0, 0},
};

enum { LIMIT = 10 }; /* bound of generated integers that are not indices */

static i64 test_int(DType dt, u32 w, u32 limit) {
  u32 bits = dtype_info[dt].bits;
  if (dt == DT_bool) return w >> 31;
  if (bits >= 32 || limit < LIMIT) return (i64)(w >> 16) % limit;
  if (bits > 8) bits = 8;
  return (i64)(w >> (32 - bits)) - (dtype_is_signed(dt) ? (i64)1 << (bits - 1) : 0);
}

bool selftest_fill(Tensor *t, u32 input, u32 limit) {
  if (!recipes[t->dt].fill) return false;
  u32 size = dtype_bytes(t->dt);
  for (u64 i = 0; i < t->n; i++) {
    u32 w = test_word(input, i);
    const Recipe *r = &recipes[t->dt];
    u8 *to = (u8 *)t->data + i * size;
    u32 code = r->low | (w >> 16 & r->mask);
    u16 code16 = (u16)code;
    if (dtype_is_narrow_float(t->dt) && size == 2)
      memcpy(to, &code16, 2);
    else if (dtype_is_narrow_float(t->dt))
      *to = (u8)code;
    else if (dtype_is_float(t->dt))
      tensor_set(t, i, (Scalar){.f = (double)((int)(w >> 24) - 128) / 128});
    else
      tensor_set(t, i, (Scalar){.i = test_int(t->dt, w, limit)});
  }
  return true;
}

static u64 add_bits(u64 h, u64 bits, u32 bytes) {
  for (u32 i = 0; i < bytes; i++) h = (h ^ (bits >> 8 * i & 0xff)) * 1099511628211u;
  return h;
}

static u64 element_bits(const Tensor *t, u64 i, bool flushes) {
  u32 size = dtype_bytes(t->dt);
  const u8 *at = (const u8 *)t->data + i * size;
  const Recipe *r = &recipes[t->dt];
  u64 u64v;
  u32 u32v;
  u16 u16v;
  if (t->dt == DT_f64) {
    memcpy(&u64v, at, 8);
    return (u64v & ~((u64)1 << 63)) > (u64)0x7ff << 52 ? (u64)0x7ff8 << 48 : u64v;
  }
  if (t->dt == DT_f32) {
    memcpy(&u32v, at, 4);
    if (flushes && !(u32v & 0x7f800000u)) u32v &= 0x80000000u;
    return (u32v & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : u32v;
  }
  if (!dtype_is_narrow_float(t->dt)) return (u64)tensor_get(t, i).i;
  memcpy(&u16v, at, size == 2 ? 2 : 1);
  u32 code = size == 2 ? u16v : *at, top = size == 2 ? 0x7fff : 0x7f;
  return r->inf && (code & top) > r->inf ? r->nan : code;
}

u64 selftest_hash(Tensor *const *out, u32 n, bool flushes) {
  u64 h = 14695981039346656037u;
  for (u32 k = 0; k < n; k++) {
    h = add_bits(h, out[k]->n, 8);
    for (u64 i = 0; i < out[k]->n; i++)
      h = add_bits(h, element_bits(out[k], i, flushes), dtype_bytes(out[k]->dt));
  }
  return h;
}

/* ---- as C ---- */

static u64 place(Ctx *c, u64 *at, u64 bytes) {
  u64 here = *at, room;
  if (!size_align(bytes, 64, &room) || !size_add(*at, room, at))
    fail(c, ERR_unsupported, LOC_NONE, "the size of the self-test's memory overflows 64 bits");
  return here;
}

/* Memory of the self-test: arena, inputs, outputs. Writes the pointers if t is set. */
static u64 place_all(Emit *e, StrBuf *t) {
  u64 at = 0;
  place(e->c, &at, arena_bytes(e));
  for (u32 i = 0; i < e->p->in.n + e->p->out.n; i++) {
    bool out = i >= e->p->in.n;
    u32 k = out ? i - e->p->in.n : i;
    BufId b = out ? e->p->out.at[k] : e->p->in.at[k];
    const char *type = c_storage(prog_buf(e->p, b)->dt);
    u64 bytes = out ? buf_bytes(e, b) : tensor_bytes(e->given->selftest->in[k]);
    u64 here = place(e->c, &at, bytes);
    u32 rank = prog_buf(e->p, b)->rank;
    if (!t) continue;
    sb_fmt(t, "  %s *const %c%u = (%s *)(void *)(m + %" PRIu64 ");\n", type, out ? 'y' : 'x', k,
           type, here);
    if (out && e->open_out[k]) sb_fmt(t, "  int64_t s%u[%u] = {0};\n", k, rank ? rank : 1);
  }
  return at;
}

u64 selftest_bytes(Emit *e) {
  u64 n = place_all(e, NULL);
  return n ? n : 64;
}

static void put_helpers(Emit *e, StrBuf *t) {
  bool seen[DT_COUNT] = {0}, fills = false, outputs = false;
  for (const Emit *x = e->variant->first; x; x = x->next) {
    for (u32 i = 0; i < x->p->in.n; i++) fills = fills || x->given->selftest->in[i]->n;
    for (u32 i = 0; i < x->p->out.n; i++) seen[prog_buf(x->p, x->p->out.at[i])->dt] = true;
    outputs = outputs || x->p->out.n;
  }
  const struct {
    bool wanted;
    const char *text;
  } helper[] = {
      {fills, "\n/* Pseudo-random word from which element i of a self-test input is made. */\n"
              "static uint32_t ig_test_word${sfx}(uint32_t input, size_t i) {\n"
              "  uint32_t w = (uint32_t)i * 2654435761u + input * 2246822507u + 374761393u;\n"
              "  w = (w ^ w >> 15) * 739982445u;\n  w = (w ^ w >> 12) * 695872825u;\n"
              "  return w ^ w >> 15;\n}\n"},
      {outputs, "\nstatic uint64_t ig_test_add${sfx}(uint64_t hash, uint64_t bits, int bytes) {\n"
                "  for (int i = 0; i < bytes; i++) hash = (hash ^ (bits >> 8 * i & 255u)) * "
                "1099511628211u;\n  return hash;\n}\n"},
      {seen[DT_f32] && !e->o->target->flushes,
       "\nstatic uint64_t ig_test_f32${sfx}(float x) {\n  union { float f; uint32_t u; } v;\n  "
       "v.f = x;\n  return (v.u & 0x7fffffffu) > 0x7f800000u ? 0x7fc00000u : v.u;\n}\n"},
      {seen[DT_f32] && e->o->target->flushes,
       "\nstatic uint64_t ig_test_f32${sfx}(float x) {\n  union { float f; uint32_t u; } v;\n  "
       "v.f = x;\n  if (!(v.u & 0x7f800000u)) v.u &= 0x80000000u;\n  return (v.u & 0x7fffffffu) > "
       "0x7f800000u ? 0x7fc00000u : v.u;\n}\n"},
      {seen[DT_f64],
       "\nstatic uint64_t ig_test_f64${sfx}(double x) {\n  union { double f; uint64_t u; } "
       "v;\n  v.f = x;\n"
       "  return v.u << 1 > (uint64_t)0xffe << 52 ? (uint64_t)0x7ff8 << 48 : v.u;\n}\n"},
  };
  for (u32 i = 0; i < sizeof helper / sizeof *helper; i++)
    if (helper[i].wanted) put_template_text(e, t, helper[i].text);
}

static void put_bits_of(Emit *e, StrBuf *t, DType dt, u32 k) {
  const Recipe *r = &recipes[dt];
  const char *top = dtype_bytes(dt) == 2 ? "0x7fffu" : "0x7fu";
  if (dtype_is_full_float(dt))
    put_template(e, t, "ig_test_%s${sfx}(y%u[i])", dtype_info[dt].name, k);
  else if (r->inf)
    sb_fmt(t, "(y%u[i] & %s) > 0x%xu ? 0x%xu : y%u[i]", k, top, r->inf, r->nan, k);
  else
    sb_fmt(t, "(uint64_t)y%u[i]", k);
}

static void put_run(Emit *e, StrBuf *t) {
  bool threads = e->p->threads > 1 && !e->o->openmp;
  if (threads) put_template(e, t, "  ${name}_threads_start${sfx}(m, %u);\n", e->p->threads);
  put_template(e, t, "  status = ${entry}_run${sfx}(m%s",
               e->o->weights == WM_pointer ? ", weight_file" : "");
  put_run_args(e, t, &(ArgFormats){NULL, ", 0", ", x%u", ", y%u", ", s%u"});
  sb_puts(t, ");\n");
  if (threads) put_template(e, t, "  ${name}_threads_stop${sfx}(m);\n");
  sb_puts(t, "  if (status) return status;\n");
}

static const char *fill_text(Emit *e, DType dt, u32 limit) {
  StrBuf t = sb_new(&e->c->scratch);
  if (limit == LIMIT || dtype_is_float(dt) || dt == DT_bool) return recipes[dt].fill;
  sb_fmt(&t, "(%s)((w >> 16) %% %uu)", c_storage(dt), limit);
  return sb_cstr(&t);
}

static void put_test(Emit *e, StrBuf *t) {
  const SelfTest *st = e->given->selftest;
  Prog *p = e->p;
  bool pointer = e->o->weights == WM_pointer;
  put_template(
      e, t,
      "\n%sint ${entry}_selftest${sfx}(void *memory%s) {\n  unsigned char *const m = memory;\n",
      e->variant->n > 1 ? "static " : c_linkage(e), pointer ? ", const void *weight_file" : "");
  place_all(e, t);
  put_template_text(e, t,
                    "  uint64_t hash = 14695981039346656037u;\n  size_t n;\n  int status;\n"
                    "  if (!m || (uintptr_t)m % ${NAME}_ARENA_ALIGN) return 1;\n");
  for (u32 i = 0; i < p->in.n; i++)
    if (st->in[i]->n)
      put_template(
          e, t,
          "  for (size_t i = 0; i < %" PRIu64
          "; i++) {\n    const uint32_t w = ig_test_word${sfx}(%u, i);\n    x%u[i] = %s;\n  }\n",
          st->in[i]->n, i, i, fill_text(e, st->in[i]->dt, st->limit[i]));
  if (has_shared_state(p)) put_template(e->variant->first, t, "  ${entry}_reset${sfx}(m);\n");
  if (e->state_init.state) put_template(e, t, "  ${entry}_reset${sfx}(m);\n");
  put_run(e, t);
  for (u32 i = 0; i < p->out.n; i++) {
    const Buf *b = prog_buf(p, p->out.at[i]);
    sb_puts(t, "  n = ");
    if (!e->open_out[i]) sb_fmt(t, "%" PRIu64, st->out[i]->n);
    for (u32 k = 0; e->open_out[i] && k < b->rank; k++)
      sb_fmt(t, "%s(size_t)s%u[%u]", k ? " * " : "", i, k);
    if (e->open_out[i] && !b->rank) sb_puts(t, "1");
    put_template(
        e, t,
        ";\n  hash = ig_test_add${sfx}(hash, n, 8);\n  for (size_t i = 0; i < n; i++) hash = "
        "ig_test_add${sfx}(hash, ");
    put_bits_of(e, t, b->dt, i);
    sb_fmt(t, ", %u);\n", dtype_bytes(b->dt));
  }
  bool two = has_fallback(e) && has_vector_guard(e) && st->loops_hash != st->hash;
  if (two)
    put_template(e, t,
                 "#if !IG_VECTORS${sfx}\n  return hash == UINT64_C(0x%016" PRIx64
                 ") ? 0 : 3;\n#endif\n",
                 st->loops_hash);
  sb_fmt(t, "  return hash == UINT64_C(0x%016" PRIx64 ") ? 0 : 3;\n}\n", st->hash);
}

/* Tests all entries in order and stops at the first failure. */
void put_selftest(Emit *e, StrBuf *t) {
  bool pointer = e->o->weights == WM_pointer;
  put_helpers(e, t);
  for (Emit *x = e->variant->first; x; x = x->next) put_test(x, t);
  if (e->variant->n == 1) return;
  put_template(e, t, "\n%sint ${name}_selftest${sfx}(void *memory%s) {\n  int status = 0;\n",
               c_linkage(e), pointer ? ", const void *weight_file" : "");
  for (Emit *x = e->variant->first; x; x = x->next)
    put_template(x, t, "  if (!status) status = ${entry}_selftest${sfx}(memory%s);\n",
                 pointer ? ", weight_file" : "");
  sb_puts(t, "  return status;\n}\n");
}
