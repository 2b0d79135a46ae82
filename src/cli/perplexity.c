/* perplexity.c: how well a language model foretells a text.
 *
 * In: a model and ids. Out: the mean negative logarithm of probabilities, its exponential, and how
 * many tokens they are taken over, as one line or as JSON.
 */
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* Numbers between blanks and commas; NULL: something else is there, or no memory. */
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

int verb_perplexity(const Args *a) {
  size_t n = 0;
  if (!a->ids) return refuse(a, "--ids is missing: the tokens of a text");
  int32_t *ids = read_ids(a->ids, &n);
  if (!ids) return refuse(a, "--ids: expected numbers, separated by blanks or commas");
  Ingot *m = open_or_complain();
  if (!m) {
    free(ids);
    return INGOT_SYSTEM;
  }
  IngotPerplexity p;
  const char *engine = a->engine ? a->engine : engine_with(INGOT_NATIVE);
  IngotStatus s = prepare(m, a);
  watch_task(engine);
  if (!s) s = ingot_perplexity(m, ids, n, engine, &p);
  watch_task(NULL);
  free(ids);
  if (!s && a->json)
    printf("{\"nll\": %.9g, \"perplexity\": %.9g, \"tokens\": %llu}\n", p.nll, p.perplexity,
           (unsigned long long)p.tokens);
  else if (!s)
    printf("nll %.5f  perplexity %.4f  tokens %llu\n", p.nll, p.perplexity,
           (unsigned long long)p.tokens);
  return finish(m, a, s);
}
