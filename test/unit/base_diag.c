/* Messages, locations, the door, limits; two contexts in two threads. */
#include "hooks.h"
#include <pthread.h>

static const char *last(const Ctx *c) {
  const Diag *d = c->diags;
  while (d && d->next) d = d->next;
  return d ? d->text : "";
}

static void locations(Ctx *c, void *arg) {
  (void)arg;
  Loc l = {str_of(c, "model.onnx"), str_of(c, "conv5"), str_of(c, "Conv"), 37, 0};
  diag(c, ERR_input, l, "rank %d, expected %d", 3, 4);
  CHECK(!strcmp(last(c), "model.onnx: node 37 'conv5' (Conv): rank 3, expected 4"));
  l.node = 0;
  diag(c, ERR_input, l, "x");
  CHECK(!strcmp(last(c), "model.onnx: node 37 (Conv): x"));
  l.index = -1;
  diag(c, ERR_input, l, "x");
  CHECK(!strcmp(last(c), "model.onnx: node (Conv): x"));
  l.op = 0;
  diag(c, ERR_input, l, "x");
  CHECK(!strcmp(last(c), "model.onnx: x"));
  l.line = 12;
  diag(c, ERR_input, l, "x");
  CHECK(!strcmp(last(c), "model.onnx:12: x"));
  l.file = 0;
  diag(c, ERR_input, l, "x");
  CHECK(!strcmp(last(c), "line 12: x"));
  diag(c, ERR_input, LOC_NONE, "100%%");
  CHECK(!strcmp(last(c), "100%"));
  l = (Loc){0, str_intern(c, "a\n\0\xff'%s", 7), 0, 0, 0};
  warn(c, l, "y");
  CHECK(!strcmp(last(c), "node 0 'a\\x0a\\x00\\xff'%s': y"));
  CHECK(c->nerrors == 7 && c->nwarnings == 1 && c->code == ERR_input);
}

static void shown(Ctx *c, void *arg) {
  (void)arg;
  char in[200], want[400];
  CHECK(!strcmp(show(c, 0), ""));
  CHECK(!strcmp(show(c, str_of(c, "a\\b\t")), "a\\\\b\\x09"));
  memset(in, 'n', sizeof in);
  for (size_t n = 0; n < sizeof in; n++) {
    const char *s = show(c, str_intern(c, in, n));
    memset(want, 'n', sizeof want);
    strcpy(want + (n <= 64 ? n : 61), n <= 64 ? "" : "...");
    CHECK(!strcmp(s, want));
  }
  /* Escapes are never cut in the middle. */
  for (int b = 0; b < 256; b++) {
    for (size_t n = 0; n < 80; n++) {
      Mark m = arena_mark(&c->scratch);
      memset(in, 'n', n);
      memset(in + n, b, 40);
      const char *s = show(c, str_intern(c, in, n + 40));
      size_t len = strlen(s);
      CHECK(len <= 64);
      for (size_t i = 0; i < len; i++) CHECK(s[i] >= 0x20 && s[i] < 0x7f);
      CHECK(!strcmp(s + len - 3, "...") || len == n + 40);
      CHECK(s[len - 4] != '\\' || s[len - 5] == '\\');
      arena_rewind(&c->scratch, m);
    }
  }
}

static void limits(Ctx *c, void *arg) {
  (void)arg;
  for (int i = 0; i < 3000; i++) warn(c, LOC_NONE, "warning %d", i);
  for (int i = 0; i < 3000; i++) diag(c, i ? ERR_input : ERR_unsupported, LOC_NONE, "error %d", i);
  CHECK(c->nwarnings == 3000 && c->nerrors == 3000 && c->code == ERR_unsupported);
  CHECK(!strcmp(last(c), "error 0"));
  u32 kept = 0;
  for (Diag *d = c->diags; d; d = d->next) kept++;
  CHECK(kept == 1001);
  diag_raise(c);
  CHECK(!"left");
}

static void huge(Ctx *c, void *arg) {
  (void)arg;
  char *big = arena_alloc(&c->scratch, 10000);
  memset(big, 'z', 9999);
  Str s = str_of(c, big);
  fail(c, ERR_input, (Loc){s, s, s, 1, 2}, "%s", big);
}

static void inner(Ctx *c, void *arg) {
  fail(c, *(Err *)arg, LOC_NONE, "inner");
}

static void outer(Ctx *c, void *arg) {
  jmp_buf *door = c->door;
  Err e = ERR_mismatch;
  CHECK(ctx_protect(c, inner, &e) == ERR_mismatch);
  CHECK(c->door == door);
  e = ERR_ok;
  CHECK(ctx_protect(c, inner, &e) == ERR_system);
  if (arg) fail(c, ERR_usage, LOC_NONE, "outer");
}

static void noisy(Ctx *c, void *arg) {
  warn(c, LOC_NONE, "loose");
  diag(c, ERR_mismatch, LOC_NONE, "first");
  fail(c, *(Err *)arg, LOC_NONE, "why");
}

static void attempt(Ctx *c, void *arg) {
  Err e = ERR_unsupported;
  const char *why = NULL;
  warn(c, LOC_NONE, "before");
  CHECK(ctx_try(c, noisy, &e, &why) == ERR_unsupported && !strcmp(why, "first"));
  CHECK(c->nerrors == 0 && c->nwarnings == 1 && c->code == ERR_ok && !strcmp(last(c), "before"));
  warn(c, LOC_NONE, "after");
  CHECK(!strcmp(last(c), "after") && c->diags->next->next == NULL);
  if (!arg) return;
  e = ERR_system;
  ctx_try(c, noisy, &e, &why);
  CHECK(!"left");
}

static void buggy(Ctx *c, void *arg) {
  (void)arg;
  c->pass = "fuse";
  internal_error(c, LOC_NONE, "value %d has no type", 3);
}

static void nothing(Ctx *c, void *arg) {
  (void)arg;
  diag_raise(c);
}

static void in_fresh(void (*fn)(Ctx *, void *), void *arg, Err want, const char *text) {
  Ctx *c = ctx_new(NULL, NULL);
  if (!CHECK(c)) return;
  CHECK(ctx_protect(c, fn, arg) == want);
  CHECK(c->door == NULL);
  if (text)
    CHECK(!strcmp(last(c), text));
  else
    CHECK(strlen(last(c)) < 4096);
  ctx_free(c);
}

/* No CHECK in a thread: its counters are shared. */
static void busy(Ctx *c, void *arg) {
  for (int i = 0; i < 20000; i++) {
    Str s = str_fmt(c, "%s-%d", (const char *)arg, i);
    if (s != (Str)i + 1) fail(c, ERR_mismatch, LOC_NONE, "wrong number");
    if (i % 100 == 0) warn(c, (Loc){s, s, s, i, 0}, "w");
  }
  fail(c, ERR_input, LOC_NONE, "%s", (const char *)arg);
}

static void *thread(void *arg) {
  Ctx *c = ctx_new(NULL, NULL);
  bool ok = c && ctx_protect(c, busy, arg) == ERR_input && !strcmp(last(c), arg);
  ctx_free(c);
  return ok ? arg : NULL;
}

int main(void) {
  in_fresh(locations, NULL, ERR_ok, "node 0 'a\\x0a\\x00\\xff'%s': y");
  in_fresh(shown, NULL, ERR_ok, "");
  in_fresh(limits, NULL, ERR_unsupported, "error 0");
  in_fresh(huge, NULL, ERR_input, NULL);
  in_fresh(outer, NULL, ERR_ok, "inner");
  in_fresh(outer, "", ERR_usage, "outer");
  in_fresh(attempt, NULL, ERR_ok, "after");
  in_fresh(attempt, "", ERR_system, "why");
  in_fresh(buggy, NULL, ERR_system, "bug in ingot, in or after pass fuse: value 3 has no type");
  in_fresh(nothing, NULL, ERR_ok, "");
  pthread_t t[2];
  CHECK(pthread_create(&t[0], NULL, thread, "one") == 0);
  CHECK(pthread_create(&t[1], NULL, thread, "two") == 0);
  for (int i = 0; i < 2; i++) {
    void *r = NULL;
    CHECK(pthread_join(t[i], &r) == 0 && r);
  }
  return check_end();
}
