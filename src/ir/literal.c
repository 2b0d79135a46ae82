/* literal.c: writes the tokens that the text forms of Graph and Prog share; lexer.c reads them.
 *
 * A float is written in the fewest digits that read back as the same bits, or as bits(HEX) if there
 * are none, such as for a NaN with a payload. Large constants go, aligned, to a weights file. In a
 * brief text they end in "...", which the parser refuses. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "ir/lexer.h"

enum { EXTERNAL_ALIGN = 64, BRIEF_MOST = 16, BRIEF_SHOWN = 4 };

/* ---- elements of constants ---- */

/* The fewest digits (of a few choices) that read back as the same bits; else bits(HEX). */
void lit_float(StrBuf *t, DType dt, const u8 *raw) {
  static const u8 digits[] = {3, 4, 5, 6, 7, 8, 9, 15, 16, 17};
  u32 bytes = dtype_bytes(dt);
  double x = scalar_load(dt, raw).f;
  bool whole = x > -1e7 && x < 1e7 && x == (double)(i64)x;
  for (u32 i = bytes <= 2 ? 0 : bytes == 4 ? 3 : 7; i < sizeof digits; i++) {
    char text[320];
    u8 back[8];
    snprintf(text, sizeof text, "%.*g", whole ? 7 : digits[i], x);
    if (x != x) strcpy(text, "nan");
    scalar_store(dt, back, (Scalar){.f = scalar_round(dt, strtod(text, NULL))});
    if (memcmp(back, raw, bytes)) continue;
    sb_puts(t, text);
    return;
  }
  sb_puts(t, "bits(");
  for (u32 i = bytes; i-- > 0;) sb_fmt(t, "%02x", raw[i]);
  sb_puts(t, ")");
}

void lit_element(StrBuf *t, const Ctx *c, DType dt, const u8 *raw) {
  u32 bytes = dtype_bytes(dt);
  switch (dtype_info[dt].cls) {
  case 'F': lit_float(t, dt, raw); return;
  case 'C': {
    DType part = dt == DT_c64 ? DT_f32 : DT_f64;
    sb_puts(t, "(");
    lit_float(t, part, raw);
    sb_puts(t, ", ");
    lit_float(t, part, raw + bytes / 2);
    sb_puts(t, ")");
    return;
  }
  case 'S': {
    u32 s;
    memcpy(&s, raw, sizeof s);
    sb_quote(t, str_text(c, s), str_len(c, s));
    return;
  }
  default: break;
  }
  i64 x = scalar_load(dt, raw).i;
  u8 back[8];
  scalar_store(dt, back, (Scalar){.i = x});
  if (memcmp(back, raw, bytes)) {
    sb_fmt(t, "bits(%02x)", raw[0]); /* only types narrower than their byte have unused bits */
  } else if (dt == DT_bool) {
    sb_puts(t, x ? "true" : "false");
  } else if (dt == DT_u64) {
    sb_fmt(t, "%llu", (unsigned long long)x);
  } else {
    sb_fmt(t, "%lld", (long long)x);
  }
}

void lit_tensor(StrBuf *t, StrBuf *weights, const Ctx *c, const Tensor *x, u64 limit) {
  u32 bytes = dtype_bytes(x->dt);
  if (weights && x->n > limit && x->dt != DT_str) {
    static const u8 zero[EXTERNAL_ALIGN];
    sb_put(weights, zero, (EXTERNAL_ALIGN - weights->n % EXTERNAL_ALIGN) % EXTERNAL_ALIGN);
    sb_fmt(t, "@weights(%zu, %llu)", weights->n, (unsigned long long)tensor_bytes(x));
    sb_put(weights, x->data, (size_t)tensor_bytes(x));
    return;
  }
  u64 shown = t->brief && x->n > BRIEF_MOST ? BRIEF_SHOWN : x->n;
  sb_puts(t, "{");
  for (u64 i = 0; i < shown; i++) {
    if (i) sb_puts(t, ", ");
    lit_element(t, c, x->dt, (const u8 *)x->data + i * bytes);
  }
  sb_puts(t, shown < x->n ? ", ...}" : "}");
}

/* ---- names and symbols ---- */

void lit_header(StrBuf *t, const char *form) {
  sb_fmt(t, "ingot %d\n%s", TEXT_VERSION, form);
}

void lit_name(StrBuf *t, const Ctx *c, Str s) {
  const char *at = str_text(c, s);
  size_t n = str_len(c, s), i = 0;
  while (i < n && (at[i] == '_' || (at[i] >= 'a' && at[i] <= 'z') ||
                   (at[i] >= 'A' && at[i] <= 'Z') || (i && at[i] >= '0' && at[i] <= '9')))
    i++;
  if (n && i == n)
    sb_put(t, at, n);
  else
    sb_quote(t, at, n);
}

void lit_symbols(StrBuf *t, const Ctx *c, Dims *ds, const bool *used) {
  for (Sym s = 0; s < dim_nsyms(ds); s++) {
    const SymInfo *si = dim_syminfo(ds, s);
    if (!used[s] || si->kind == SY_derived) continue;
    sb_puts(t, "sym ");
    lit_name(t, c, si->name);
    sb_fmt(t, "%s in %lld..", si->kind == SY_data ? " data" : "", (long long)si->lo);
    if (si->hi != DIM_MAX) sb_fmt(t, "%lld", (long long)si->hi);
    sb_puts(t, "\n");
  }
}
