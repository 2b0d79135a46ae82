/* cli_perplexity.c: the perplexity of a text under a language model.
 *
 * In: a model, and a text or token ids. Out: the mean negative log-likelihood, its exponential and
 * the number of scored tokens, as one line or as JSON.
 */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Reads numbers separated by blanks and commas; NULL: syntax error or out of memory. */
static int32_t *read_ids(const char *text, size_t *n) {
  int32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
  *n = 0;
  for (const char *s = text; ids && *(s += strspn(s, " ,\t\n"));) {
    char *end;
    errno = 0;
    long id = strtol(s, &end, 10);
    if (end == s || errno || id < 0 || id > INT32_MAX || !strchr(" ,\t\n", *end)) {
      free(ids);
      return NULL;
    }
    ids[(*n)++] = (int32_t)id;
    s = end;
  }
  return ids;
}

/* Tokenizes a text as the model expects it; NULL: failed with *s. */
static int32_t *text_ids(Ingot *m, const Args *a, size_t *n, IngotStatus *s) {
  size_t bytes;
  const uint32_t *found;
  char *text = read_all(a->text, &bytes);
  if (!text) {
    fprintf(stderr, "ingot: %s: %s\n", a->text, strerror(errno));
    *s = INGOT_SYSTEM;
    return NULL;
  }
  size_t mark = bytes >= 3 && !memcmp(text, "\xef\xbb\xbf", 3) ? 3 : 0; /* byte order mark */
  *s = ingot_open_vocab(m, a->model);
  if (!*s) *s = ingot_tokenize(m, text + mark, bytes - mark, 0, &found, n);
  free(text);
  int32_t *ids = *s ? NULL : malloc((*n + 1) * sizeof *ids);
  if (!*s && !ids) *s = INGOT_SYSTEM;
  for (size_t i = 0; ids && i < *n; i++) ids[i] = (int32_t)found[i];
  return ids;
}

/* Engine c as for play; without a C compiler jit or vm, with a warning. */
const char *native_engine(const Args *a) {
  if (a->engine) return a->engine;
  if (!cli_lacks_compiler(a, ingot_llvm() ? "running engine jit instead of c"
                                          : "running engine vm instead of c"))
    return engine_with(INGOT_NATIVE);
  return ingot_llvm() ? "jit" : "vm";
}

static void show_progress(void *user, uint64_t done, uint64_t total) {
  char text[128];
  snprintf(text, sizeof text, "perplexity: %llu of %llu tokens on engine %s",
           (unsigned long long)done, (unsigned long long)total, (const char *)user);
  watch_progress(text);
}

int verb_perplexity(const Args *a) {
  size_t n = 0;
  IngotStatus s = INGOT_OK;
  if (!a->ids == !a->text)
    return cli_refuse(a, a->ids ? "expected either --text or --ids, found both"
                                : "expected --text FILE or --ids IDS, found neither");
  int32_t *ids = a->ids ? read_ids(a->ids, &n) : NULL;
  if (a->ids && !ids)
    return cli_refuse(a, "--ids: expected numbers, separated by blanks or commas");
  Ingot *m = new_model_or_report();
  if (!m) {
    free(ids);
    return INGOT_SYSTEM;
  }
  if (a->text) ids = text_ids(m, a, &n, &s);
  IngotPerplexity p;
  const char *engine = native_engine(a);
  const IngotEngine *e = ingot_find_engine(engine);
  Args rest = *a;
  if (!rest.march && !(e && e->flags & INGOT_DEVICE)) rest.march = "native";
  if (!rest.threads && e && e->flags & INGOT_NATIVE) rest.threads = default_threads();
  if (!s) s = cli_prepare(m, &rest);
  watch_task("compile");
  IngotScoreText o = {ids, n, engine, show_progress, (void *)(uintptr_t)engine};
  if (!s) s = ingot_perplexity(m, &o, &p);
  watch_task(NULL);
  free(ids);
  if (!s && a->json)
    printf("{\"nll\": %.9g, \"perplexity\": %.9g, \"tokens\": %llu}\n", p.nll, p.perplexity,
           (unsigned long long)p.tokens);
  else if (!s)
    printf("nll %.5f  perplexity %.4f  tokens %llu\n", p.nll, p.perplexity,
           (unsigned long long)p.tokens);
  return cli_finish(m, a, s);
}
