/* tune_file.c: the file of measured tile sizes.
 *
 * In: a text file. Out: the table that the lowering reads (pass/kernel/tune_table.h), or the file
 * with more lines. Grammar, with columns separated by one tab:
 *
 *   ingot tune 1
 *   machine TARGET CPU COMPILER VERSION    environment of the lines below
 *   KEY CHOICE CLOSED US                   microseconds with the default and with the choice
 *   # comment or empty line; those between lines of this machine move before them
 *
 * Keys and choices are not interpreted: the lowering compares them with its own. --tune uses the
 * lines of exactly this machine, --tuned those of all machines with the same target.
 */
#include "api/api_internal.h"

#include <string.h>

#define FIRST "ingot tune 1"
enum { COLUMNS = 5, MAX_LINE = 4000 };

typedef struct TuneLine {
  Str column[COLUMNS];
  u32 n;
} TuneLine;

static TuneLine split(Ctx *c, const char *at, size_t n, Loc loc) {
  TuneLine l = {.n = 0};
  if (n > MAX_LINE)
    fail(c, ERR_input, loc, "a line of %zu bytes, expected at most %d", n, MAX_LINE);
  for (size_t i = 0; i < n; i++)
    if (((u8)at[i] < 0x20 && at[i] != '\t') || (u8)at[i] >= 0x7f)
      fail(c, ERR_input, loc, "found byte 0x%02x, expected printable text and tabs", (u8)at[i]);
  for (size_t from = 0; from <= n;) {
    size_t to = from;
    while (to < n && at[to] != '\t') to++;
    if (l.n == COLUMNS || to == from)
      fail(c, ERR_input, loc, "column %u is %s", l.n + 1, to == from ? "empty" : "one too many");
    l.column[l.n++] = str_intern(c, at + from, to - from);
    from = to + 1;
  }
  return l;
}

static bool is_machine(Ctx *c, const TuneLine *l, const TuneEnv *m) {
  const char *want[COLUMNS] = {"machine", m->target, m->cpu, m->compiler, m->version};
  for (u32 i = 0; i < COLUMNS; i++)
    if (want[i] && !str_is(c, l->column[i], want[i])) return false;
  return true;
}

void tune_file_add(Ctx *c, TuneRecords *f, TuneRecord x) {
  if (!f->number.a) f->number = map_new(&c->keep);
  u32 *number = map_put(&f->number, x.key);
  if (*number) {
    f->line.at[*number - 1] = x;
    return;
  }
  *vec_push(&c->keep, &f->line) = x;
  *number = f->line.n;
}

/* Reads one line; *belongs: it and the following lines are for the machine. */
static bool read_line(Ctx *c, const TuneLine *l, Loc loc, const TuneEnv *machine, bool *begun,
                      bool ours, TuneRecords *found) {
  if (str_is(c, l->column[0], "machine")) {
    if (l->n != COLUMNS)
      fail(c, ERR_input, loc,
           "found %u columns, expected machine, target, CPU, compiler and version", l->n);
    *begun = true;
    return is_machine(c, l, machine);
  }
  if (!*begun) fail(c, ERR_input, loc, "expected a line 'machine ...' before the first choice");
  if (l->n != 4)
    fail(c, ERR_input, loc, "found %u columns, expected key, choice and two times", l->n);
  if (ours)
    tune_file_add(c, found, (TuneRecord){l->column[0], l->column[1], l->column[2], l->column[3]});
  return ours;
}

TuneRecords tune_file_read(Ctx *c, const char *path, const TuneEnv *machine, StrBuf *others) {
  File f = file_read(c, path);
  const char *text = (const char *)f.at;
  Loc loc = {.file = str_of(c, path), .index = -1};
  TuneRecords found = {0};
  bool begun = false, ours = false;
  for (size_t at = 0, n; at < f.n; at += n + 1) {
    const char *end = memchr(text + at, '\n', f.n - at);
    n = end ? (size_t)(end - text) - at : f.n - at;
    if (++loc.line == 1) {
      if (n != strlen(FIRST) || memcmp(text, FIRST, n) != 0)
        fail(c, ERR_input, loc, "expected '%s', found '%.*s'", FIRST, n > 60 ? 60 : (int)n,
             text + at);
      continue;
    }
    if (!n) continue;
    bool comment = text[at] == '#';
    if (!comment) {
      TuneLine l = split(c, text + at, n, loc);
      ours = read_line(c, &l, loc, machine, &begun, ours, &found);
    }
    if (!others || (ours && !comment)) continue;
    sb_put(others, text + at, n);
    sb_puts(others, "\n");
  }
  if (!loc.line) fail(c, ERR_input, loc, "expected '%s', found an empty file", FIRST);
  return found;
}

void tune_file_write(Ctx *c, FileOut to, const TuneEnv *m, const TuneRecords *f,
                     const StrBuf *others) {
  StrBuf t = sb_new(&c->keep);
  sb_fmt(&t, "%s\n", FIRST);
  sb_put(&t, others->at, others->n);
  sb_fmt(&t, "machine\t%s\t%s\t%s\t%s\n", m->target, m->cpu, m->compiler, m->version);
  for (u32 i = 0; i < f->line.n; i++) {
    const TuneRecord *x = &f->line.at[i];
    sb_fmt(&t, "%s\t%s\t%s\t%s\n", str_text(c, x->key), str_text(c, x->choice),
           str_text(c, x->closed), str_text(c, x->us));
  }
  to.at = t.at;
  to.n = t.n;
  to.update = true;
  files_write(c, &to, 1);
}

TuneTable *tune_file_table(Ctx *c, const TuneRecords *f) {
  TuneTable *t = tune_new(c);
  for (u32 i = 0; i < f->line.n; i++) tune_set(t, f->line.at[i].key, f->line.at[i].choice);
  return t;
}

TuneTable *api_load_tuning(Ingot *m) {
  const Target *target = m->machine.target ? m->machine.target : target_scalar();
  if (!m->tuning.tuned || m->tuning.tuned_for == target) return m->tuning.tune;
  TuneEnv any = {.target = target->name};
  TuneRecords found = tune_file_read(m->c, m->tuning.tuned, &any, NULL);
  m->tuning.tuned_for = target;
  return m->tuning.tune = tune_file_table(m->c, &found);
}

static void set_tuned(Ingot *m, const char *path) {
  api_need(m->c, path, "the path of the file");
  m->tuning.tuned = str_text(m->c, str_of(m->c, path));
}

IngotStatus ingot_set_tuned(Ingot *m, const char *path) {
  API_CALL(m, set_tuned(m, path));
}

/* Lists keys and choices, the selected one first. */
static void list_choices(Ingot *m, bool json, StrBuf *out) {
  Ctx *c = m->c;
  (void)json;
  if (m->passed) fail(c, ERR_usage, LOC_NONE, "expected ingot_choices before the passes");
  if (!api_load_tuning(m)) m->tuning.tune = tune_new(c);
  api_run_passes(m, NULL);
  Map said = map_new(&c->keep);
  for (u32 i = 0; i < m->tuning.tune->asked.n; i++) {
    const TuneQuery *q = &m->tuning.tune->asked.at[i];
    u32 *slot = map_put(&said, q->key);
    if ((*slot)++) continue;
    sb_fmt(out, "%s\t%s", str_text(c, q->key), str_text(c, q->choice[q->taken]));
    for (u32 k = 0; k < q->n; k++)
      if (k != q->taken) sb_fmt(out, "\t%s", str_text(c, q->choice[k]));
    sb_puts(out, "\n");
  }
}

IngotStatus ingot_choices(Ingot *m, const char **text, size_t *n) {
  return api_call_text(m, list_choices, false, text, n);
}
