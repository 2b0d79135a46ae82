/* cli_tokens.c: converts text to token ids or back, and tokenizes --text for other verbs. Standard
 * output has only the result.
 */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *read_all(const char *path, size_t *n) {
  FILE *f = strcmp(path, "-") ? fopen(path, "rb") : stdin;
  size_t room = 1 << 16, got = 1;
  char *at = f ? malloc(room) : NULL;
  for (*n = 0; at && got; *n += got) {
    if (*n == room) {
      char *more = realloc(at, room *= 2);
      if (!more) free(at);
      at = more;
    }
    got = at ? fread(at + *n, 1, room - *n, f) : 0;
  }
  if (at && ferror(f)) {
    free(at);
    at = NULL;
  }
  if (f && f != stdin) fclose(f);
  return at;
}

/* Reads numbers separated by spaces or commas; NULL: syntax error or out of memory. */
static uint32_t *read_ids(const char *text, size_t *n) {
  uint32_t *ids = malloc((strlen(text) / 2 + 1) * sizeof *ids);
  *n = 0;
  for (const char *p = text; ids;) {
    char *end;
    p += strspn(p, " ,\t\n");
    if (!*p) return ids;
    errno = 0;
    unsigned long long x = strtoull(p, &end, 10);
    if (*p < '0' || *p > '9' || errno || x > UINT32_MAX || (*end && !strchr(" ,\t\n", *end))) {
      free(ids);
      return NULL;
    }
    ids[(*n)++] = (uint32_t)x;
    p = end;
  }
  return NULL;
}

static IngotStatus print_ids(Ingot *m, const char *text, size_t n, unsigned flags, int json) {
  const uint32_t *ids;
  size_t count;
  IngotStatus s = ingot_tokenize(m, text, n, flags, &ids, &count);
  if (s) return s;
  if (json) printf("{\"ids\":[");
  for (size_t i = 0; i < count; i++) printf("%s%u", !i ? "" : json ? "," : " ", ids[i]);
  puts(json ? "]}" : "");
  return s;
}

/* --text, or all of standard input, which the caller frees; NULL: out of memory. */
static const char *text_of(const Args *a, char **read, size_t *n) {
  *n = strlen(a->text);
  *read = strcmp(a->text, "-") ? NULL : read_all("-", n);
  if (!strcmp(a->text, "-") && !*read)
    fprintf(stderr, "ingot %s: standard input cannot be read\n", a->verb);
  return strcmp(a->text, "-") ? a->text : *read;
}

IngotStatus set_text_input(Ingot *m, const Args *a) {
  enum { ROOM = 12 }; /* characters of an id and a comma */
  const uint32_t *ids;
  size_t n, count, at = 5;
  char *read = NULL, *spec = NULL;
  const char *text = text_of(a, &read, &n);
  IngotStatus s = text ? ingot_open_vocab(m, a->model) : INGOT_SYSTEM;
  if (!s) s = ingot_tokenize(m, text, n, 0, &ids, &count);
  if (!s && !(spec = malloc(count * ROOM + 8))) s = INGOT_SYSTEM;
  if (!s) {
    memcpy(spec, "ids=[", 6);
    for (size_t i = 0; i < count; i++)
      at += (size_t)snprintf(spec + at, ROOM, "%s%u", i ? "," : "", ids[i]);
    memcpy(spec + at, "]", 2);
    s = ingot_input_spec(m, spec);
  }
  free(spec);
  free(read);
  return s;
}

static IngotStatus print_text(Ingot *m, const uint32_t *ids, size_t n, unsigned flags, int json) {
  const char *text;
  size_t bytes;
  IngotStatus s = ingot_detokenize(m, ids, n, flags, &text, &bytes);
  if (s) return s;
  if (json) {
    json_text("{\"text\":", text);
    puts("}");
    return s;
  }
  fwrite(text, 1, bytes, stdout);
  if (isatty(STDOUT_FILENO)) putchar('\n');
  return s;
}

/* A vector, or a list of vectors, as JSON on one line. */
static void print_vector(IngotTensor y) {
  const float *z = y.data;
  int64_t rows = y.rank == 2 ? y.dim[0] : 1, n = y.dim[y.rank - 1];
  if (y.rank == 2) putchar('[');
  for (int64_t i = 0; i < rows; i++)
    for (int64_t k = 0; k < n; k++)
      printf("%s%.9g%s", k ? "," : i ? ",[" : "[", (double)z[i * n + k], k + 1 < n ? "" : "]");
  puts(y.rank == 2 ? "]" : "");
}

/* line: its number in standard input, for messages; 0: the text is an option. */
static IngotStatus embed_text(Ingot *m, const char *engine, const char *text, size_t n,
                              size_t line) {
  const uint32_t *ids;
  size_t count;
  IngotStatus s = ingot_tokenize(m, text, n, 0, &ids, &count);
  int64_t dim = (int64_t)count;
  IngotTensor in = {"ids", "i32", 1, &dim, ids, count * 4};
  if (s) return s;
  s = count ? ingot_call(m, &(IngotCall){.engine = engine, .in = &in, .nin = 1}) : INGOT_BAD_INPUT;
  if (s && line) fprintf(stderr, "ingot embed: line %zu of standard input:\n", line);
  if (s == INGOT_BAD_INPUT)
    fprintf(stderr, "ingot embed: the text has %zu tokens%s\n", count,
            count ? "; --context N sets the limit" : ", expected at least 1");
  if (!s) print_vector(ingot_output(m, 0));
  return s;
}

int verb_embed(const Args *a) {
  size_t n = 0;
  char *input = NULL;
  if (!a->text) return cli_refuse(a, "expected --text TEXT, or --text - for lines of input");
  const char *text = text_of(a, &input, &n), *end = text + n, *engine = native_engine(a);
  const IngotEngine *e = ingot_find_engine(engine);
  Args rest = *a;
  if (!text) return INGOT_SYSTEM;
  if (!rest.march && e && e->flags & INGOT_NATIVE) rest.march = "native";
  Ingot *m = new_model_or_report();
  IngotStatus s = m ? ingot_open_vocab(m, a->model) : INGOT_SYSTEM;
  if (!s) s = cli_prepare(m, &rest);
  if (!s && ingot_is_language_model(m)) {
    fprintf(stderr, "ingot embed: %s: expected a text encoder, found a language model\n", a->model);
    s = INGOT_UNSUPPORTED;
  }
  if (!s) s = ingot_keep_code(m, "");
  watch_task("compile");
  if (!s) s = ingot_ready(m, engine);
  watch_task(NULL);
  for (size_t line = 1; !s && (text < end || (!input && line == 1)); line++) {
    const char *stop = input ? memchr(text, '\n', (size_t)(end - text)) : NULL;
    if (!stop) stop = end;
    s = embed_text(m, engine, text, (size_t)(stop - text), input ? line : 0);
    text = stop + 1;
  }
  free(input);
  return m ? cli_finish(m, a, s) : INGOT_SYSTEM;
}

int verb_tokenize(const Args *a) {
  if (!a->text == !a->ids)
    return cli_refuse(a, a->ids ? "expected either --text or --ids, found both"
                                : "expected --text TEXT or --ids IDS, found neither");
  unsigned flags = (a->special ? INGOT_SPECIAL : 0u) | (a->bare ? INGOT_BARE : 0u);
  size_t n = 0;
  char *input = NULL;
  const char *text = a->text ? text_of(a, &input, &n) : NULL;
  uint32_t *ids = a->ids ? read_ids(a->ids, &n) : NULL;
  if (a->text && !text) return INGOT_SYSTEM;
  if (a->ids && !ids) return cli_refuse(a, "--ids: expected numbers, separated by spaces");
  Ingot *m = new_model_or_report();
  IngotStatus s = m ? ingot_open_vocab(m, a->model) : INGOT_SYSTEM;
  if (!s)
    s = a->ids ? print_text(m, ids, n, flags, a->json) : print_ids(m, text, n, flags, a->json);
  free(input);
  free(ids);
  return m ? cli_finish(m, a, s) : INGOT_SYSTEM;
}
