/* Messages, their locations, and fail(), through which errors leave.
 *
 * A message is rendered immediately into a bounded buffer, after its location:
 *   model.onnx: node 37 'conv5' (Conv): rank 3, expected 4
 *   net.ing:12: expected a type, found ')'
 * and copied to c->keep. If memory is exhausted, the spare record of the context holds it. The
 * first 1000 messages and always the first error are kept; the rest are counted. fail() must run
 * inside a protected call; without one the program aborts. */
#include "base/base_own.h"
#include <stdio.h>
#include <string.h>

enum { SHOW_NAME = 64, SHOW_TEXT = 512, SHOW_FILE = 1024, LINE_MAX_BYTES = 4096 };

/* A message being rendered; text that does not fit is truncated and marked. */
typedef struct MessageLine {
  char at[LINE_MAX_BYTES];
  size_t n;
  u32 borrowed, file; /* see Diag */
} MessageLine;

/* Printable form of n bytes, NUL-terminated in at most `room` bytes; returns its length. */
static size_t show_bytes(char *to, size_t room, const char *at, size_t n) {
  static const char hex[] = "0123456789abcdef";
  size_t len = 0, cut = 0; /* cut: where "..." still fits */
  for (size_t i = 0; i < n; i++) {
    u8 b = (u8)at[i];
    char esc[4] = {(char)b};
    size_t k = 1;
    if (b == '\\') {
      esc[1] = '\\', k = 2;
    } else if (b < 0x20 || b > 0x7e) {
      esc[0] = '\\', esc[1] = 'x', esc[2] = hex[b >> 4], esc[3] = hex[b & 15], k = 4;
    }
    if (len + k >= room) {
      memcpy(to + cut, "...", 4);
      return cut + 3;
    }
    memcpy(to + len, esc, k);
    len += k;
    if (len + 3 < room) cut = len;
  }
  to[len] = 0;
  return len;
}

static const char *shown(Ctx *c, Str s, size_t max) {
  char buf[SHOW_TEXT + 1];
  size_t n = show_bytes(buf, max + 1, str_text(c, s), str_len(c, s));
  return arena_copy(&c->scratch, buf, n + 1);
}

const char *show(Ctx *c, Str s) {
  return shown(c, s, SHOW_NAME);
}

const char *show_text(Ctx *c, Str s) {
  return shown(c, s, SHOW_TEXT);
}

static void put(MessageLine *l, const char *fmt, va_list args) {
  size_t room = sizeof l->at - l->n;
  int n = vsnprintf(l->at + l->n, room, fmt, args);
  if (n < 0) {
    l->at[l->n] = 0;
  } else if ((size_t)n < room) {
    l->n += (size_t)n;
  } else {
    l->n = sizeof l->at - 1;
    memcpy(l->at + l->n - 3, "...", 3);
  }
}

__attribute__((format(printf, 2, 3))) static void putf(MessageLine *l, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  put(l, fmt, args);
  va_end(args);
}

static bool nowhere(Loc loc) {
  return !loc.file && !loc.node && !loc.op && loc.index < 0 && loc.line == 0;
}

static void put_own_loc(MessageLine *l, const Ctx *c, Loc loc) {
  char file[SHOW_FILE + 1], name[SHOW_NAME + 1], op[SHOW_NAME + 1];
  show_bytes(file, sizeof file, str_text(c, loc.file), str_len(c, loc.file));
  show_bytes(name, sizeof name, str_text(c, loc.node), str_len(c, loc.node));
  show_bytes(op, sizeof op, str_text(c, loc.op), str_len(c, loc.op));
  if (loc.file && loc.line > 0)
    putf(l, "%s:%d: ", file, loc.line);
  else if (loc.file)
    putf(l, "%s: ", file);
  else if (loc.line > 0)
    putf(l, "line %d: ", loc.line);
  l->file = (u32)l->n;
  if (loc.index < 0 && !loc.node && !loc.op) return;
  putf(l, "node");
  if (loc.index >= 0) putf(l, " %d", loc.index);
  if (loc.node) putf(l, " '%s'", name);
  if (loc.op) putf(l, " (%s)", op);
  putf(l, ": ");
}

static void put_loc(MessageLine *l, const Ctx *c, Loc loc) {
  l->n = 0;
  put_own_loc(l, c, nowhere(loc) ? c->here : loc);
  l->borrowed = nowhere(loc) ? (u32)l->n : 0;
}

/* A record of the message in c->keep; if memory is exhausted, the spare record for an error. */
static Diag *make(Ctx *c, Level level, const MessageLine *l) {
  Diag *d = arena_try(&c->keep, sizeof *d);
  char *text = d ? arena_try(&c->keep, l->n + 1) : NULL;
  if (text) {
    memcpy(text, l->at, l->n + 1);
    d->text = text;
    return d;
  }
  CtxStorage *r = (CtxStorage *)c;
  if (r->spare_used || level != LV_error) return NULL;
  r->spare_used = true;
  size_t n = l->n < SPARE_TEXT ? l->n : SPARE_TEXT - 1;
  memcpy(r->spare_text, l->at, n);
  r->spare_text[n] = 0;
  r->spare.text = r->spare_text;
  return &r->spare;
}

/* False: out of memory. */
static bool record(Ctx *c, Level level, Err code, Loc loc, const MessageLine *l) {
  bool first = level == LV_error && c->nerrors == 0;
  bool wanted = first || (u64)c->nerrors + c->nwarnings < DIAG_MAX;
  u32 *count = level == LV_error ? &c->nerrors : &c->nwarnings;
  if (*count < UINT32_MAX) *count += 1;
  if (first) c->code = code;
  Diag *d = wanted ? make(c, level, l) : NULL;
  if (!d) return !wanted;
  d->level = level;
  d->code = code;
  d->loc = loc;
  d->borrowed = l->borrowed;
  d->file = l->file < l->n ? l->file : 0;
  d->next = NULL;
  *c->diags_end = d;
  c->diags_end = &d->next;
  return true;
}

static _Noreturn void leave(Ctx *c, Err code) {
  if (!c->door) __builtin_trap();
  ((CtxStorage *)c)->left = code;
  longjmp(*c->door, 1);
}

void fail(Ctx *c, Err code, Loc loc, const char *fmt, ...) {
  MessageLine l;
  va_list args;
  va_start(args, fmt);
  put_loc(&l, c, loc);
  put(&l, fmt, args);
  va_end(args);
  if (code == ERR_ok) code = ERR_system; /* would look like success */
  record(c, LV_error, code, loc, &l);
  leave(c, code);
}

void diag(Ctx *c, Err code, Loc loc, const char *fmt, ...) {
  MessageLine l;
  va_list args;
  va_start(args, fmt);
  put_loc(&l, c, loc);
  put(&l, fmt, args);
  va_end(args);
  record(c, LV_error, code == ERR_ok ? ERR_system : code, loc, &l);
}

/* A warning that cannot be stored is an error, because otherwise it would be lost silently. */
void warn(Ctx *c, Loc loc, const char *fmt, ...) {
  MessageLine l;
  va_list args;
  va_start(args, fmt);
  put_loc(&l, c, loc);
  put(&l, fmt, args);
  va_end(args);
  if (!record(c, LV_warning, ERR_ok, loc, &l) && c->door)
    fail(c, ERR_system, LOC_NONE, "out of memory");
}

void internal_error(Ctx *c, Loc loc, const char *fmt, ...) {
  MessageLine l;
  va_list args;
  va_start(args, fmt);
  put_loc(&l, c, loc);
  putf(&l, "bug in ingot, %s%s: ", c->pass ? "in or after pass " : "outside any pass",
       c->pass ? c->pass : "");
  put(&l, fmt, args);
  va_end(args);
  record(c, LV_error, ERR_system, loc, &l);
  leave(c, ERR_system);
}

static const char *without_file(const Diag *d) {
  return d->text + (d->borrowed ? d->borrowed : d->file);
}

const char *diag_cause(const Diag *from) {
  const Diag *best = NULL;
  for (const Diag *d = from; d; d = d->next)
    if (d->level == LV_error && (!best || ends_with(d->text, without_file(best)))) best = d;
  return best ? without_file(best) : "too many messages to keep them all";
}

DiagMark diag_mark(const Ctx *c) {
  return (DiagMark){c->diags_end, c->nerrors, c->nwarnings, c->code};
}

void diag_rewind(Ctx *c, DiagMark s) {
  *s.end = NULL;
  c->diags_end = s.end;
  c->nerrors = s.nerrors;
  c->nwarnings = s.nwarnings;
  c->code = s.code;
}

void diag_raise(Ctx *c) {
  if (c->nerrors) leave(c, c->code);
}
