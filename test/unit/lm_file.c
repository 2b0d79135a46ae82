/* Containers of language models. Alone, it checks what keys and lists say. With `weights FILE` it
 * writes the numbers of all tensors, as a graph of them computes; with `FILE` it writes what an
 * LmFile holds, line by line, for test/suite/containers.py to compare with other readers; with
 * `damage FILE` it reads the file cut off at every length and with every bit turned. */
#include "damage.h"
#include "front/llm/llm.h"
#include "io/safetensors.h"

enum { LIST_SHOWN = 64 };

/* ---- what a file holds ---- */

static u32 adler(u32 sum, const u8 *at, size_t n) {
  u32 a = sum & 0xffff, b = sum >> 16;
  for (size_t i = 0; i < n; i++) {
    a = (a + at[i]) % 65521;
    b = (b + a) % 65521;
  }
  return b << 16 | a;
}

static void put_element(LmList *l, StrBuf *t) {
  FileSpan s;
  double f;
  i64 i;
  bool b;
  if (l->type == GT_string) {
    lm_next_string(l, &s);
    for (size_t k = 0; k < s.n; k++) sb_fmt(t, "%02x", s.at[k]);
  } else if (l->type == GT_f32 || l->type == GT_f64) {
    lm_next_float(l, &f);
    sb_fmt(t, "%.17g", f);
  } else if (l->type == GT_bool) {
    lm_next_bool(l, &b);
    sb_puts(t, b ? "1" : "0");
  } else {
    lm_next_int(l, INT64_MIN, INT64_MAX, &i);
    sb_fmt(t, "%lld", (long long)i);
  }
  sb_puts(t, " ");
}

static void put_key(LmFile *f, const GgufKey *k, StrBuf *out) {
  StrBuf t = sb_new(&f->c->work);
  LmList l;
  lm_list(f, str_text(f->c, k->name), &l);
  while (l.type != GT_array && l.n) put_element(&l, &t);
  sb_fmt(out, "key %s %s%s %llu ", str_text(f->c, k->name), k->array ? "list of " : "",
         gguf_type_name[k->type], (unsigned long long)k->n);
  if (k->type == GT_array)
    sb_puts(out, "\n");
  else if (k->n > LIST_SHOWN)
    sb_fmt(out, "%08x\n", adler(1, (const u8 *)t.at, t.n));
  else
    sb_fmt(out, "%s\n", sb_cstr(&t));
}

static void put_tensor(Ctx *c, const StoredTensor *s, StrBuf *out) {
  sb_fmt(out, "tensor %s %s ", str_text(c, s->name), qblock_info[s->kind].name);
  for (u32 i = 0; i < s->rank; i++) sb_fmt(out, "%lld ", (long long)s->dim[i]);
  sb_fmt(out, "%llu %08x\n", (unsigned long long)s->bytes, adler(1, s->at, (size_t)s->bytes));
}

static void put_file(Ctx *c, const Source *s, StrBuf *out) {
  LmFile *f = lm_open(c, s);
  sb_fmt(out, "%s %s\n", f->gguf ? "gguf" : "safetensors", str_text(c, f->arch));
  for (u32 i = 0; f->gguf && i < f->gguf->key.n; i++) put_key(f, &f->gguf->key.at[i], out);
  for (u32 i = 0; i < f->tensor.n; i++) put_tensor(c, &f->tensor.at[i], out);
}

static void show_file(Ctx *c, void *arg) {
  Source s = {.path = arg};
  File file = file_read(c, arg);
  StrBuf out = sb_new(&c->work);
  s.at = file.at;
  s.n = file.n;
  s.file = str_of(c, arg);
  put_file(c, &s, &out);
  fwrite(out.at, 1, out.n, stdout);
}

/* ---- what its tensors mean ---- */

/* All of them as results of a graph, f32. */
static void show_weights(Ctx *c, void *arg) {
  File file = file_read(c, arg);
  LmFile *f = lm_open(c, &(Source){file.at, file.n, str_of(c, arg), arg});
  f->x_bits = 8;
  Graph *g = graph_new(c);
  for (u32 i = 0; i < f->tensor.n; i++) {
    Val v = lm_weight(g, f, str_text(c, f->tensor.at[i].name));
    graph_result(g, mk_cast(g, v, DT_f32), f->tensor.at[i].name);
  }
  Tensor **out = NEWS(&c->work, Tensor *, f->tensor.n);
  graph_check(g);
  ref_run(g, &(RefOptions){0}, NULL, out, &c->work);
  for (u32 i = 0; i < f->tensor.n; i++) fwrite(out[i]->data, sizeof(float), out[i]->n, stdout);
}

/* ---- damage ---- */

static void read_bytes(Ctx *c, void *arg) {
  const Source *b = arg;
  StrBuf out = sb_new(&c->work);
  if (gguf_sniff(b->at, b->n)) {
    put_file(c, b, &out);
    return;
  }
  StoredTensors v = safetensors_read(c, b->at, b->n, LOC_NONE);
  for (u32 i = 0; i < v.n; i++) put_tensor(c, &v.at[i], &out);
}

static bool short_fits(Err e, size_t n, size_t whole) {
  (void)whole;
  return e == ERR_input || (e == ERR_unsupported && n < 8);
}

/* ---- keys ---- */

/* Two keys: general.architecture "a", and the one given: its bytes behind the name. */
typedef struct Asked {
  const char *name;
  const u8 *at;
  size_t n;
  const char *key; /* what is asked for */
  char kind;       /* i n b s: of which type */
  i64 i;           /* the answers */
  double f;
  bool b, found;
  FileSpan s;
} Asked;

static void ask(Ctx *c, void *arg) {
  Asked *a = arg;
  static const u8 arch[] = "\x14\0\0\0\0\0\0\0general.architecture\x08\0\0\0\x01\0\0\0\0\0\0\0a";
  StrBuf t = sb_new(&c->keep);
  u8 len[8] = {(u8)strlen(a->name)};
  sb_put(&t, "GGUF\3\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0", 24);
  sb_put(&t, arch, sizeof arch - 1);
  sb_put(&t, len, 8);
  sb_puts(&t, a->name);
  sb_put(&t, a->at, a->n);
  LmFile *f = lm_open(c, &(Source){.at = (const u8 *)t.at, .n = t.n});
  a->found = a->kind == 'i'   ? lm_int(f, a->key, 1, 1000, &a->i)
             : a->kind == 'n' ? lm_float(f, a->key, &a->f)
             : a->kind == 'b' ? lm_bool(f, a->key, &a->b)
                              : lm_string(f, a->key, &a->s);
}

static Asked answer(const char *bytes, size_t n, const char *key, char kind, Err want,
                    const char *said) {
  Ctx *c = ctx_new(NULL, NULL);
  Asked a = {.name = "a.x", .at = (const u8 *)bytes, .n = n, .key = key, .kind = kind};
  Err e = ctx_protect(c, ask, &a);
  if (!CHECK(e == want) || (said && !CHECK(c->diags && strstr(c->diags->text, said))))
    fprintf(stderr, "%s: %d %s\n", key, e, c->diags ? c->diags->text : "");
  ctx_free(c);
  return a;
}
#define ANSWER(bytes, key, kind, want, said) answer(bytes, sizeof bytes - 1, key, kind, want, said)

static void keys(void) {
  static const char u32[] = "\4\0\0\0\x07\0\0\0", f32[] = "\6\0\0\0\0\0\0\x3f",
                    flag[] = "\7\0\0\0\1", text[] = "\x08\0\0\0\2\0\0\0\0\0\0\0hi",
                    list[] = "\x09\0\0\0\4\0\0\0\1\0\0\0\0\0\0\0\7\0\0\0",
                    large[] = "\5\0\0\0\xff\xff\xff\xff",
                    huge[] = "\x0a\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff",
                    nan[] = "\6\0\0\0\0\0\xc0\x7f";
  CHECK(ANSWER(u32, "a.x", 'i', ERR_ok, NULL).i == 7);
  CHECK(ANSWER(u32, ".x", 'i', ERR_ok, NULL).i == 7);
  CHECK(!ANSWER(u32, "a.y", 'i', ERR_ok, NULL).found);
  CHECK(ANSWER(f32, ".x", 'n', ERR_ok, NULL).f == 0.5);
  CHECK(ANSWER(flag, ".x", 'b', ERR_ok, NULL).b);
  CHECK(ANSWER(text, ".x", 's', ERR_ok, NULL).s.n == 2);
  ANSWER(f32, ".x", 'i', ERR_input, "key 'a.x' has type f32, expected an integer");
  ANSWER(flag, ".x", 'i', ERR_input, "type bool");
  ANSWER(text, ".x", 'i', ERR_input, "type string");
  ANSWER(list, ".x", 'i', ERR_input, "type array");
  ANSWER(large, ".x", 'i', ERR_input, "key 'a.x' is -1, expected 1 to 1000");
  ANSWER(huge, ".x", 'i', ERR_input, "is 18446744073709551615, expected");
  ANSWER(u32, ".x", 'n', ERR_input, "expected a number");
  ANSWER(nan, ".x", 'n', ERR_input, "expected a finite number");
  ANSWER(u32, ".x", 'b', ERR_input, "expected true or false");
  ANSWER(u32, ".x", 's', ERR_input, "expected a string");
}

int main(int argc, char **argv) {
  if (argc == 1) {
    keys();
    return check_end();
  }
  Ctx *c = ctx_new(NULL, NULL);
  bool harm = !strcmp(argv[1], "damage"), numbers = !strcmp(argv[1], "weights");
  char *path = argv[argc - 1];
  Err e = harm ? ctx_protect(c, damage, &(Damage){path, read_bytes, short_fits})
               : ctx_protect(c, numbers ? show_weights : show_file, path);
  for (const Diag *d = c->diags; d; d = d->next) fprintf(stderr, "%s\n", d->text);
  ctx_free(c);
  return harm && !e ? check_end() : (int)e;
}
