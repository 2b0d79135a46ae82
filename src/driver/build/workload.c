/* workload.c: inputs for runs that record a profile.
 *
 * In: the value of --pgo: an archive of arrays, possibly with many examples; a folder of archives;
 * for language models a list of prompts (all strings of a JSON file, or one prompt per line); or
 * nothing. Out: the arguments of successive runs. By default inputs are generated, and language
 * models answer a few short questions.
 */
#include "driver/build/build_product.h"
#include "driver/examples.h"
#include "io/data.h"
#include "io/json.h"

#include <string.h>
#include <sys/stat.h>

enum { MAX_PROMPTS = 200, MAX_EXAMPLES = 32, RANDOM_RUNS = 3 };

static const char *const usual_prompts[] = {
    "hi", "what is python?", "1+1", "Explain in two sentences what a compiler does.",
    "Name four uses of a hash table and one thing it is bad at."};

void workload_check(Ctx *c, const char *path) {
  struct stat st;
  if (!*path) return;
  if (stat(path, &st)) fail(c, ERR_system, LOC_NONE, "--pgo=%s: no such file or folder", path);
}

static ArgVec *add_run(Ctx *c, Workload *w) {
  return vec_push(&c->keep, &w->run);
}

static void add_file(Ctx *c, ProductBuild *b, const char *path, StrBuf *key) {
  cache_key_add_file(c, key, path);
  argv_put(c, add_run(c, &b->work), "--inputs", path);
}

/* ---- an archive of many examples ---- */

/* Does the array hold several examples of this input: with one more dimension, or along the first?
 */
static bool holds_many(const Tensor *t, const Buf *in) {
  if (t->rank == in->rank + 1) return true;
  return in->rank && t->rank == in->rank && dim_is_const(in->dim[0]) && in->dim[0] > 0 &&
         t->dim[0] > in->dim[0];
}

static bool has_many(Ctx *c, const ProductBuild *b, const char *path) {
  Prog *p = api_program(b->m, 0);
  File f = file_read(c, path);
  Loc loc = {.file = str_of(c, path), .index = -1};
  NamedTensors v = api_read_arrays(b->m, &f, loc, 0);
  for (u32 i = 0; i < p->in.n; i++)
    for (u32 k = 0; k < v.n; k++) {
      const Buf *in = prog_buf(p, p->in.at[i]);
      if (in->name == v.at[k].name && v.at[k].t && holds_many(v.at[k].t, in)) return true;
    }
  return false;
}

/* Writes some of the examples, evenly spaced, to files of the build folder. */
static void add_examples(Ctx *c, ProductBuild *b, const char *path, StrBuf *key) {
  Examples e = api_examples(b->m, path, NULL);
  u32 step = (e.n + MAX_EXAMPLES - 1) / MAX_EXAMPLES;
  cache_key_add_file(c, key, path);
  for (u32 i = 0; i < e.n; i += step) {
    StrBuf out = sb_new(&c->keep);
    const char *to = tempdir_file(c, &b->folder, fmt_text(c, "example-%u.npz", i));
    data_write_npz(c, &out, e.name, e.at[i], e.ninput);
    build_file(c, to, (FileOut){.at = out.at, .n = out.n});
    argv_put(c, add_run(c, &b->work), "--inputs", to);
  }
}

/* ---- prompts ---- */

/* Sampling with a seed, so that the sampler is profiled too. */
static void add_prompt(Ctx *c, ProductBuild *b, const char *text, size_t n, StrBuf *key) {
  if (b->work.run.n == MAX_PROMPTS) return;
  ArgVec *w = add_run(c, &b->work);
  argv_put(c, w, "--prompt", str_text(c, str_intern(c, text, n)));
  argv_add(c, w, "--max-tokens 32 --seed 1 --quiet");
  if (!api_chat_assets(b->m)->chat.open) argv_add(c, w, "--raw");
  sb_put(key, text, n);
  sb_puts(key, "\n");
}

/* Adds all string values in document order. */
static void add_strings(Ctx *c, ProductBuild *b, const Json *j, StrBuf *key) {
  bool has_keys = j->kind == JS_object;
  if (j->kind == JS_string) add_prompt(c, b, j->text, j->n, key);
  if (j->kind != JS_array && !has_keys) return;
  for (u32 i = 0; i < j->n; i++) add_strings(c, b, has_keys ? json_value(j, i) : &j->at[i], key);
}

static void add_prompts(Ctx *c, ProductBuild *b, const char *path, StrBuf *key) {
  File f = file_read(c, path);
  Loc loc = {.file = str_of(c, path), .index = -1};
  if (ends_with(path, ".json")) {
    add_strings(c, b, json_read(c, f.at, f.n, loc, &c->keep).root, key);
  } else {
    for (size_t i = utf8_bom(f.at, f.n), n; i < f.n; i += n + 1) {
      n = 0;
      while (i + n < f.n && f.at[i + n] != '\n') n++;
      add_prompt(c, b, (const char *)f.at + i, n, key);
    }
  }
  if (!b->work.run.n)
    fail(c, ERR_input, loc, "the file has no prompts, expected at least one line");
}

void workload_read(Ctx *c, ProductBuild *b) {
  const char *path = b->o->pgo ? b->o->pgo : "";
  StrBuf key = sb_new(&c->keep);
  ArgVec file = {0};
  workload_check(c, path);
  if (!*path && b->chats) {
    for (u32 i = 0; i < sizeof usual_prompts / sizeof *usual_prompts; i++)
      add_prompt(c, b, usual_prompts[i], strlen(usual_prompts[i]), &key);
  } else if (!*path) {
    for (u32 i = 0; i < RANDOM_RUNS; i++)
      argv_put(c, add_run(c, &b->work), "--seed", fmt_text(c, "%u", i));
  } else if (b->chats) {
    add_prompts(c, b, path, &key);
  } else if (api_list_archives(c, path, &file)) {
    for (u32 i = 0; i < file.n; i++) add_file(c, b, file.at[i], &key);
  } else if (ends_with(path, ".npz") && has_many(c, b, path)) {
    add_examples(c, b, path, &key);
  } else if (ends_with(path, ".npz")) {
    add_file(c, b, path, &key);
  } else {
    api_fail_no_archive(c, path, ", or a folder of them");
  }
  b->work.key = sb_cstr(&key);
}
