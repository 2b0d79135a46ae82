/* cstatus.c: meanings of the statuses of a generated model.
 *
 * In: the requires of the program, one by one while the entry is written. Out: a status for each
 * distinct message, and NAME_why, which returns the text of a status. The texts are stored
 * consecutively in constant char arrays: no pointers need relocation, and no string exceeds the
 * limit of C99. */
#include "back/c/c.h"
#include "back/status.h"

#include <string.h>

enum { MAX_CHARS = 3000 };

u32 status_add(Emit *e, Loc loc, Str message) {
  StrBuf t = sb_new(&e->c->scratch);
  if (loc.index >= 0 || loc.node) {
    sb_puts(&t, "node");
    if (loc.index >= 0) sb_fmt(&t, " %d", loc.index);
    if (loc.node) sb_fmt(&t, " '%s'", show(e->c, loc.node));
    if (loc.op) sb_fmt(&t, " (%s)", show(e->c, loc.op));
    sb_puts(&t, ": ");
  }
  sb_puts(&t, show_text(e->c, message));
  u32 *slot = map_put_bytes(&e->variant->why.at, t.at, t.n);
  if (!*slot) {
    *vec_push(&e->c->keep, &e->variant->why.text) = str_intern(e->c, t.at, t.n);
    *slot = e->variant->why.text.n;
  }
  return STATUS_COUNT + *slot - 1;
}

static const char *text_of(Emit *e, u32 status) {
  if (status < STATUS_COUNT) return status_means[status];
  return status < STATUS_COUNT + e->variant->why.text.n
             ? str_text(e->c, e->variant->why.text.at[status - STATUS_COUNT])
             : "not a status of this model";
}

void put_string_lookup(StrBuf *t, const char *number, const char *const *line, u32 n) {
  u32 narrays = 0;
  StrBuf pick = sb_new(t->a);
  for (u32 i = 0; i < n; narrays++) {
    u32 first = i;
    sb_fmt(t, "  static const char %s%u[] =", number, narrays);
    for (size_t chars = 0; i < n && (i == first || chars < MAX_CHARS); i++) {
      sb_puts(t, "\n    ");
      emit_string(t, line[i], strlen(line[i]));
      if (i + 1 < n) sb_puts(t, " \"\\0\"");
      chars += strlen(line[i]) + 1;
    }
    sb_puts(t, ";\n");
    if (narrays)
      sb_fmt(&pick, "  if (%s >= %u) at = %s%u, skip = %s - %u;\n", number, first, number, narrays,
             number, first);
  }
  sb_fmt(t,
         "  const char *at = %s0;\n  int skip;\n"
         "  if (%s < 0 || %s > %u) %s = %u;\n  skip = %s;\n",
         number, number, number, n - 1, number, n - 1, number);
  sb_put(t, pick.at, pick.n);
  sb_puts(t, "  for (; skip > 0; skip--)\n    while (*at++) {}\n  return at;\n}\n");
}

void put_why(Emit *e, StrBuf *t) {
  u32 n = STATUS_COUNT + e->variant->why.text.n + 1;
  const char **line = NEWS(&e->c->scratch, const char *, n);
  for (u32 i = 0; i < n; i++) line[i] = text_of(e, i);
  put_template(e, t, "\n%sconst char *${name}_why${sfx}(int status) {\n", c_linkage(e));
  put_string_lookup(t, "status", line, n);
}
