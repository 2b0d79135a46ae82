/* load.c: loads tensors from files.
 *
 * In: a path. Out: a tensor of doubles. The file extension selects the format.
 */
#include "io/data.h"
#include "lang/run/lang_object.h"

#include <stdlib.h>
#include <string.h>

/* ---- arrays ---- */

static bool is_name(const void *user, Str name) {
  return *(const Str *)user == name;
}

static const Tensor *member(Eval *ev, const NamedTensors *all, const LangValue *name) {
  for (u32 i = 0; name && i < all->n; i++)
    if (str_len(ev->c, all->at[i].name) == name->u.text->n &&
        !memcmp(str_text(ev->c, all->at[i].name), name->u.text->at, name->u.text->n))
      return all->at[i].t;
  if (!name && all->n == 1) return all->at[0].t;
  ARG_BAD(ev, name ? "load_data(): the archive has no such array"
                   : "load_data(): which array of the archive? its name is the second argument");
}

typedef struct CsvText {
  Eval *ev;
  const char *path;
  const u8 *at, *end;
  VEC(double) number;
  u32 line, column, columns;
} CsvText;

static bool is_space(u8 x) {
  return x == ' ' || x == '\t' || x == '\r';
}

static bool read_cell(CsvText *t, const u8 *at, size_t n, double *x) {
  while (n && is_space(*at)) at++, n--;
  while (n && is_space(at[n - 1])) n--;
  if (!n || memchr(at, 0, n)) return false;
  const char *text = str_text(t->ev->c, str_intern(t->ev->c, (const char *)at, n));
  char *end;
  *x = strtod(text, &end);
  return !*end;
}

/* Parses the cells of a line. False if one is not a number; then none is kept. */
static bool read_line(CsvText *t, const u8 *at, const u8 *end) {
  u32 had = t->number.n;
  t->column = 0;
  for (;;) {
    const u8 *comma = memchr(at, ',', (size_t)(end - at)), *stop = comma ? comma : end;
    double x;
    t->column++;
    if (!read_cell(t, at, (size_t)(stop - at), &x)) {
      t->number.n = had;
      return false;
    }
    *vec_push(&t->ev->stack, &t->number) = x;
    if (!comma) return true;
    at = comma + 1;
  }
}

static bool is_blank(const u8 *at, const u8 *end) {
  while (at < end && is_space(*at)) at++;
  return at == end;
}

/* Comma-separated numbers: one row per line, with an optional header line. A single column becomes
 * a vector. */
static LazyTensor *read_csv(Eval *ev, const char *path, const File *f) {
  CsvText t = {
      .ev = ev, .path = path, .at = f->at + utf8_bom(f->at, f->n), .end = (const u8 *)f->at + f->n};
  Mark mark = arena_mark(&ev->stack);
  i64 rows = 0;
  while (t.at < t.end) {
    const u8 *stop = memchr(t.at, '\n', (size_t)(t.end - t.at)), *end = stop ? stop : t.end;
    bool blank = is_blank(t.at, end);
    t.line++;
    if (!blank && !read_line(&t, t.at, end)) {
      if (rows || t.line > 1)
        ARG_BAD(ev, "%s: line %u, column %u is not a number", path, t.line, t.column);
    } else if (!blank) {
      if (rows && t.column != t.columns)
        ARG_BAD(ev, "%s: line %u has %u columns, those before it %u", path, t.line, t.column,
                t.columns);
      t.columns = t.column;
      rows++;
    }
    t.at = end + (stop != NULL);
  }
  if (!rows) ARG_BAD(ev, "%s: expected numbers, found none", path);
  LazyTensor *y = lazy_new(ev, (const i64[]){rows, t.columns}, t.columns > 1 ? 2 : 1);
  memcpy(y->data, t.number.at, (size_t)y->n * sizeof *y->data);
  arena_rewind(&ev->stack, mark);
  return y;
}

/* load_data("x.npy"), load_data("data.npz", "x"), load_data("table.csv"); any other file: its
 * bytes */
void bi_load_data(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  Ctx *c = ev->c;
  if (arg[0].kind != KD_string || (n > 1 && arg[1].kind != KD_string))
    ARG_BAD(ev, "load_data() takes the path of a file and the name of an array");
  eval_check_file(ev, arg[0].u.text->at);
  if (dry_load_file(ev, arg[0].u.text->at, out)) return;
  File f = file_read(c, arg[0].u.text->at);
  Loc loc = {.file = str_of(c, arg[0].u.text->at), .index = -1};
  const Tensor *t;
  if (ends_with(arg[0].u.text->at, ".csv")) {
    *out = value_tensor(read_csv(ev, arg[0].u.text->at, &f));
    dry_clear_data(ev, out->u.lazy);
    return;
  }
  if (ends_with(arg[0].u.text->at, ".npz")) {
    Str name = n > 1 ? str_intern(c, arg[1].u.text->at, arg[1].u.text->n) : 0;
    NamedTensors all =
        data_read_npz_some(c, f.at, f.n, loc, &c->keep, n > 1 ? is_name : NULL, &name);
    t = member(ev, &all, n > 1 ? &arg[1] : NULL);
  } else if (ends_with(arg[0].u.text->at, ".npy")) {
    t = data_read_npy(c, f.at, f.n, loc, &c->keep);
  } else {
    t = tensor_wrap(&c->keep, DT_u8, &(const i64){(i64)f.n}, 1, f.at);
  }
  if (!dtype_is_float(t->dt) && !dtype_is_int(t->dt) && t->dt != DT_bool)
    ARG_BAD(ev, "load_data(): expected an array of numbers, got %s", dtype_info[t->dt].name);
  LazyTensor *y = lazy_new(ev, t->dim, t->rank);
  for (u64 i = 0; i < y->n; i++) y->data[i] = scalar_cast(t->dt, DT_f64, tensor_get(t, i), true).f;
  dry_clear_data(ev, y);
  *out = value_tensor(y);
}

/* ---- MNIST ---- */

/* The IDX format: two zeros, 8 for bytes, the rank, extents as big-endian u32, bytes. */
static const Tensor *read_idx(Eval *ev, const char *path, u32 rank) {
  Ctx *c = ev->c;
  File f = file_read(c, path);
  const u8 *at = (const u8 *)f.at;
  u64 head = 4 + 4 * (u64)rank, count = 1;
  bool fits = true;
  i64 dim[MAX_RANK];
  if (f.n < head || at[0] || at[1] || at[2] != 8 || at[3] != rank)
    ARG_BAD(ev, "%s: expected an IDX file of bytes with %u dimensions", path, (unsigned)rank);
  for (u32 i = 0; i < rank; i++) {
    const u8 *p = at + 4 + 4 * i;
    dim[i] = (i64)p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
    fits = fits && size_mul(count, (u64)dim[i], &count);
  }
  if (!fits || f.n - head != count)
    ARG_BAD(ev, "%s: the file size does not match its extents", path);
  return tensor_wrap(&c->keep, DT_u8, dim, rank, at + head);
}

/* "train" and "test" select files of the data set by their usual names in this folder. */
static void mnist(Eval *ev, const LangValue *which, const char *part, u32 rank, double scale,
                  LangValue *out) {
  if (which->kind != KD_string) ARG_BAD(ev, "MNIST: expected \"train\", \"test\" or a path");
  const char *name = which->u.text->at, *set = NULL;
  if (!strcmp(name, "train")) set = "train";
  if (!strcmp(name, "test")) set = "t10k";
  const char *path =
      set ? str_text(ev->c, str_fmt(ev->c, "%s-%s-idx%u-ubyte", set, part, (unsigned)rank)) : name;
  eval_check_file(ev, path);
  if (dry_load_file(ev, path, out)) return;
  const Tensor *t = read_idx(ev, path, rank);
  i64 dim[2] = {t->dim[0], 1};
  for (u32 i = 1; i < rank; i++) dim[1] *= t->dim[i];
  LazyTensor *y = lazy_new(ev, dim, rank > 1 ? 2 : 1);
  for (u64 i = 0; i < y->n; i++) y->data[i] = (double)tensor_get(t, i).i / scale;
  dry_clear_data(ev, y);
  *out = value_tensor(y);
}

void bi_load_mnist_images(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  mnist(ev, &arg[0], "images", 3, 255, out);
  (void)n;
}

void bi_load_mnist_labels(Eval *ev, LangValue *arg, u32 n, LangValue *out) {
  mnist(ev, &arg[0], "labels", 1, 1, out);
  (void)n;
}
