/* chelper.c: vector functions of a file.
 *
 * In: an operation, its element type, and e->b.w, the number of lanes. Out: the name of a function
 * that is in the file once: a row of cvop.def, or a loop over lanes around scalar code. */
#include "back/c/c.h"

#include <string.h>

/* ---- types ---- */

/* Type that values are computed in: narrow floats as f32, narrow integers and bools as bytes. */
DType c_elem_type(DType dt) {
  if (dtype_is_float(dt)) return dt == DT_f64 ? dt : DT_f32;
  if (dtype_info[dt].bits >= 8) return dt;
  return dtype_is_signed(dt) ? DT_i8 : DT_u8;
}

DType signed_of(u32 bytes) {
  return bytes == 1 ? DT_i8 : bytes == 2 ? DT_i16 : bytes == 4 ? DT_i32 : DT_i64;
}

DType unsigned_of(u32 bytes) {
  return bytes == 1 ? DT_u8 : bytes == 2 ? DT_u16 : bytes == 4 ? DT_u32 : DT_u64;
}

static u32 log2_of(u32 w) {
  u32 n = 0;
  while (w > 1) w /= 2, n++;
  return n;
}

const char *vector_type(Emit *e, DType k, bool memory) {
  StrBuf t = sb_new(e->b.a);
  e->variant->vec.type[k][log2_of(e->b.w)] = true;
  if (memory) e->variant->vec.memory[k][log2_of(e->b.w)] = true;
  put_template(e, &t, "ig_%sx%u%s${sfx}", dtype_info[k].name, e->b.w, memory ? "u" : "");
  return sb_cstr(&t);
}

/* Opens conversions of vectors; the caller closes them with the returned text. Each step changes
 * the size by a factor of two: for larger steps compilers leave the vector registers. */
const char *open_convert(Emit *e, StrBuf *t, DType from, DType to) {
  StrBuf end = sb_new(e->b.a);
  bool bytes = (from == DT_u8 || from == DT_i8) && (to == DT_i32 || to == DT_f32);
  const char *widen = bytes ? need_vector(e, "widen", from, NULL) : NULL;
  if (from == DT_u16 && to == DT_i32) widen = need_vector(e, "widen_u16", from, NULL);
  if (widen) {
    const char *rest = open_convert(e, t, DT_i32, to);
    sb_fmt(t, "%s(", widen);
    sb_fmt(&end, ")%s", rest);
    return sb_cstr(&end);
  }
  while (from != to) {
    bool is_float = dtype_is_float(from), to_float = dtype_is_float(to);
    u32 have = dtype_bytes(from), want = to_float && !is_float && have < 4 ? 4 : dtype_bytes(to);
    DType next = to;
    if (is_float && !to_float)
      next = signed_of(have);
    else if (!is_float && want > 2 * have)
      next = signed_of(2 * have);
    else if (!is_float && want < have / 2)
      next = signed_of(have / 2);
    else if (to_float && !is_float && have < 4)
      next = DT_i32;
    sb_puts(t, "__builtin_convertvector(");
    sb_fmt(&end, ", %s)", vector_type(e, next, false));
    from = next;
  }
  return sb_cstr(&end);
}

/* ---- functions of the file ---- */

/* Must it still be written? If so, the caller appends its text. */
bool is_wanted(Emit *e, const char *name) {
  u32 *slot = map_put_bytes(&e->variant->vec.written, name, strlen(name));
  return !(*slot)++;
}

/* ---- rows of cvop.def ---- */

static const struct VecHelper {
  const char *name, *kinds;
  u32 bits;
  const char *text;
} rows[] = {
#define VH(name, kinds, bits, text) {#name, kinds, bits, text},
#include "back/c/cvop.def"
#undef VH
};

static u32 register_bits(const Emit *e, DType k) {
  return e->b.w * 8 * (dtype_bytes(k) < 4 ? 4 : dtype_bytes(k));
}

static const struct VecHelper *find_row(const Emit *e, const char *name, DType k) {
  char kind = dtype_is_float(k) ? 'F' : dtype_is_signed(k) ? 'I' : 'U';
  for (u32 i = 0; i < sizeof rows / sizeof *rows; i++) {
    const char *kinds = rows[i].kinds;
    if (*kinds == 'v' && (!e->o->target->flushes || k == DT_f64)) continue;
    if (*kinds == 'd' && !e->o->target->dotprod) continue;
    kinds += *kinds == 'v' || *kinds == 'd';
    bool fits = *kinds == '*' || *kinds == kind || (*kinds == 'I' && kind == 'U');
    if (fits && !strcmp(rows[i].name, name) &&
        (!rows[i].bits || rows[i].bits == register_bits(e, k)))
      return &rows[i];
  }
  return NULL;
}

/* x86 intrinsics by vector width: prefix, integer type, required features. */
static const struct X86 {
  u32 bits;
  const char *prefix, *type, *feature;
} x86[] = {{128, "_mm", "128i", "SSE2"},
           {256, "_mm256", "256i", "AVX2"},
           {512, "_mm512", "512i", "AVX512F"},
           {0, "", "", ""}};

/* A vector with `times` as many lanes. */
static const char *longer_type(Emit *e, DType k, u32 times) {
  e->b.w *= times;
  const char *t = vector_type(e, k, false);
  e->b.w /= times;
  return t;
}

/* A row being written. */
typedef struct RowCtx {
  Emit *e;
  DType k;
  const char *loop;
  size_t signed_at; /* start of the part for signed elements */
} RowCtx;

/* A value that is a type or a function of vectors with as many lanes; NULL: another value. */
static const char *type_or_function(Emit *e, const char *name, DType k) {
  u32 bytes = dtype_bytes(k);
  const struct RowVar {
    const char *name, *function; /* function: NULL for a type */
    DType k;
  } vars[] = {{"vec", NULL, k},
              {"f32", NULL, DT_f32},
              {"i32", NULL, DT_i32},
              {"i16", NULL, DT_i16},
              {"mask", NULL, signed_of(bytes)},
              {"uint", NULL, unsigned_of(bytes)},
              {"select", "select", k},
              {"select_f32", "select", DT_f32},
              {"narrow", "narrow", DT_i32},
              {"quantize", "quantize", k},
              {"whole", "whole", k}};
  for (const struct RowVar *v = vars; v < vars + sizeof vars / sizeof *vars; v++)
    if (!strcmp(v->name, name))
      return v->function ? need_vector(e, v->function, v->k, NULL) : vector_type(e, v->k, false);
  return NULL;
}

/* The value of ${name} in a row; see cvop.def. */
static void put_row_var(void *data, StrBuf *t, const char *at, size_t n) {
  RowCtx *r = data;
  Emit *e = r->e;
  DType k = r->k;
  const char *name = str_text(e->c, str_intern(e->c, at, n));
  const char *text = type_or_function(e, name, k);
  const struct X86 *m = x86;
  Scalar lo, hi;
  while (m->bits && m->bits != register_bits(e, k)) m++;
  dtype_limits(k, &lo, &hi);
#define IS(word) (!strcmp(name, word))
  if (text) {
    sb_puts(t, text);
  } else if (*name >= 'A' && *name <= 'Z') {
    sb_puts(t, feature_test(e, name));
  } else if (IS("vec4")) {
    sb_puts(t, longer_type(e, k, BYTES_JOINED));
  } else if (IS("elem")) {
    sb_puts(t, c_type(k));
  } else if (IS("dtype")) {
    sb_puts(t, dtype_info[k].name);
  } else if (IS("type")) {
    sb_fmt(t, "%sx%u", dtype_info[k].name, e->b.w);
  } else if (IS("lanes")) {
    sb_fmt(t, "%u", e->b.w);
  } else if (IS("min") || IS("max")) {
    sb_fmt(t, "%d", (int)(IS("min") ? lo.i : hi.i));
  } else if (IS("x86")) {
    sb_puts(t, m->bits ? "defined(__x86_64__)" : "0");
  } else if (IS("simd")) {
    sb_puts(t, m->bits ? feature_test(e, m->feature) : "0");
  } else if (IS("mm") || IS("intrinsics")) {
    e->variant->vec.intrinsics = true;
    sb_puts(t, IS("mm") ? m->prefix : "");
  } else if (IS("ps")) {
    sb_puts(t, k == DT_f64 ? "pd" : "ps");
  } else if (IS("m")) {
    sb_fmt(t, "__m%s", m->type);
  } else if (IS("us")) {
    sb_puts(t, dtype_is_signed(k) ? "s" : "us");
  } else if (IS("xs")) {
    for (u32 i = 0; i < e->b.w; i++) sb_puts(t, i ? ", x" : "x");
  } else if (IS("vec_of_r")) {
    const char *close = open_convert(e, t, DT_i32, k);
    sb_fmt(t, "r%s", close);
  } else if (IS("loop")) {
    sb_puts(t, r->loop);
  } else if (IS("signed")) {
    r->signed_at = t->n;
  } else if (IS("end")) {
    if (!dtype_is_signed(k)) t->n = r->signed_at;
  } else { /* those of every template */
    sb_subst(e->c, t, at - 2, n + 3, e->vars);
  }
#undef IS
}

/* NULL: no row of that width. loop: the operation lane by lane, for rows that use ${loop}. */
const char *need_vector(Emit *e, const char *what, DType k, const char *loop) {
  const struct VecHelper *row = find_row(e, what, k);
  StrBuf n = sb_new(e->b.a);
  put_template(e, &n, "ig_%s_%sx%u${sfx}", what, dtype_info[k].name, e->b.w);
  const char *name = sb_cstr(&n);
  if (!row || !is_wanted(e, name)) return row ? name : NULL;
  StrBuf t = sb_new(e->b.a); /* functions that the row needs precede it in the file */
  RowCtx r = {.e = e, .k = k, .loop = loop};
  sb_expand(&t, row->text, strlen(row->text), put_row_var, &r);
  sb_put(&e->variant->vec.text, t.at, t.n);
  return name;
}

/* ---- loops over lanes ---- */

/* The scalar text of an operation, with these names as operands: see e->hole. */
void put_scalar_op(Emit *e, const Expr *x, DType from, const char *const *name) {
  Expr op = *x;
  ExprId arg[3];
  op.lanes = 1;
  op.arg = arg;
  for (u32 i = 0; i < x->narg; i++) {
    Expr v = {.kind = EX_var, .dt = from, .lanes = 1, .ref = e->hole[i]};
    if (x->op == OP_select && i == 0) v.dt = DT_bool;
    e->var.at[e->hole[i]] = name[i];
    arg[i] = ex_new(e->p, &v);
  }
  put_expr(e, ex_new(e->p, &op));
}

/* A loop over lanes around the scalar operation. */
const char *c_need_loop(Emit *e, const Expr *x, DType from) {
  static const char *const lane[3] = {"a.at[z]", "b.at[z]", "c.at[z]"};
  StrBuf n = sb_new(e->b.a);
  u32 w = e->b.w;
  if (x->op == OP_cast || x->op == OP_bitcast)
    put_template(e, &n, "ig_%s%s_%s_%sx%u${sfx}", op_info[x->op].name, x->sat ? "_sat" : "",
                 dtype_info[from].name, dtype_info[x->dt].name, w);
  else
    put_template(e, &n, "ig_%s_lanes_%sx%u${sfx}", op_info[x->op].name, dtype_info[from].name, w);
  const char *name = sb_cstr(&n);
  if (!is_wanted(e, name)) return name;
  DType k = c_elem_type(from), r = c_elem_type(x->dt);
  StrBuf t = sb_new(e->b.a), *outer = e->t;
  e->t = &t;
  sb_fmt(&t, "static inline %s %s(", vector_type(e, r, false), name);
  for (u32 i = 0; i < x->narg; i++)
    sb_fmt(&t, "%s%s %c0", i ? ", " : "", vector_type(e, k, false), 'a' + i);
  sb_puts(&t, ") {\n");
  for (u32 i = 0; i < x->narg; i++)
    sb_fmt(&t, "  union { %s v; %s at[%u]; } %c = {%c0};\n", vector_type(e, k, false), c_type(k), w,
           'a' + i, 'a' + i);
  sb_fmt(&t, "  union { %s v; %s at[%u]; } r;\n  for (int z = 0; z < %u; z++) r.at[z] = ",
         vector_type(e, r, false), c_type(r), w, w);
  put_scalar_op(e, x, from, lane);
  sb_puts(&t, ";\n  return r.v;\n}\n");
  e->t = outer;
  sb_put(&e->variant->vec.text, t.at, t.n);
  return name;
}

/* Narrow floats, lane by lane: ig_load_f8e5m2x8(p), ig_store_f8e5m2x8(p, v). */
const char *need_narrow(Emit *e, DType dt, bool store) {
  if (dt == DT_f16) return need_vector(e, store ? "store_f16" : "load_f16", DT_f32, NULL);
  StrBuf n = sb_new(e->b.a);
  u32 w = e->b.w;
  put_template(e, &n, "ig_%s_%sx%u${sfx}", store ? "store" : "load", dtype_info[dt].name, w);
  const char *name = sb_cstr(&n), *type = vector_type(e, DT_f32, false);
  if (!is_wanted(e, name)) return name;
  StrBuf t = sb_new(e->b.a), *outer = e->t;
  e->t = &t;
  Expr x = {.kind = EX_var, .dt = dt, .lanes = 1, .ref = e->hole[0]};
  if (store) {
    sb_fmt(&t, "static inline void %s(%s *p, %s v) {\n  union { %s v; float at[%u]; } a = {v};\n",
           name, c_storage(dt), type, type, w);
    sb_fmt(&t, "  for (int z = 0; z < %u; z++) p[z] = ", w);
    e->var.at[e->hole[0]] = "a.at[z]";
    put_stored(e, dt, ex_new(e->p, &x));
    sb_puts(&t, ";\n}\n");
  } else { /* convert the bits */
    DType bits = dtype_bytes(dt) == 2 ? DT_u16 : DT_u8;
    static const char *const lane[3] = {"p[z]", NULL, NULL};
    Expr op = {.kind = EX_op, .op = OP_bitcast, .dt = dt, .narg = 1};
    sb_fmt(&t, "static inline %s %s(const %s *p) {\n  union { %s v; float at[%u]; } r;\n", type,
           name, c_storage(dt), type, w);
    sb_fmt(&t, "  for (int z = 0; z < %u; z++) r.at[z] = ", w);
    put_scalar_op(e, &op, bits, lane);
    sb_puts(&t, ";\n  return r.v;\n}\n");
  }
  e->t = outer;
  sb_put(&e->variant->vec.text, t.at, t.n);
  return name;
}
