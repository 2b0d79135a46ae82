/* Interned strings, text, quoting. */
#include "hooks.h"

static void interning(Ctx *c) {
  CHECK(str_intern(c, "", 0) == 0 && str_of(c, "") == 0 && str_of(c, NULL) == 0);
  CHECK(str_intern(c, NULL, 0) == 0);
  CHECK(str_len(c, 0) == 0 && strcmp(str_text(c, 0), "") == 0);
  Str a = str_of(c, "conv"), nul = str_intern(c, "conv\0x", 6), nul2 = str_intern(c, "conv\0", 5);
  CHECK(a != 0 && nul != a && nul2 != a && nul2 != nul);
  CHECK(str_of(c, "conv") == a && str_intern(c, "conv\0x", 6) == nul);
  CHECK(str_len(c, nul) == 6 && memcmp(str_text(c, nul), "conv\0x", 7) == 0);
  CHECK(str_is(c, a, "conv") && !str_is(c, nul, "conv") && !str_is(c, nul2, "conv"));
  CHECK(str_is(c, 0, "") && !str_is(c, a, "") && !str_is(c, a, "convx"));
  CHECK(str_len(c, 12345678) == 0 && *str_text(c, 12345678) == 0);
  const char *stays = str_text(c, a);
  Str first = str_fmt(c, "name_%d", 0);
  for (int i = 0; i < 50000; i++) CHECK(str_fmt(c, "name_%d", i) == first + (Str)i);
  for (int i = 0; i < 50000; i += 7) {
    char buf[32];
    sprintf(buf, "name_%d", i);
    CHECK(str_of(c, buf) == first + (Str)i && str_is(c, first + (Str)i, buf));
  }
  CHECK(str_text(c, a) == stays);
  char *big = malloc(100000);
  memset(big, 'x', 99999);
  big[99999] = 0;
  Str s = str_fmt(c, "<%s>", big);
  CHECK(str_len(c, s) == 100001 && str_text(c, s)[100000] == '>');
  free(big);
}

static void texts(Ctx *c) {
  StrBuf t = sb_new(&c->scratch);
  CHECK(strcmp(sb_cstr(&t), "") == 0 && t.n == 0);
  sb_put(&t, NULL, 0);
  sb_puts(&t, "ab");
  sb_put(&t, "c\0d", 3);
  sb_fmt(&t, "%s-%d", "e", 42);
  CHECK(t.n == 9 && memcmp(sb_cstr(&t), "abc\0de-42", 10) == 0);
  for (int i = 0; i < 10000; i++) sb_fmt(&t, "%05d", i);
  CHECK(t.n == 50009 && memcmp(sb_cstr(&t) + 9 + 5 * 1234, "01234", 5) == 0);
  for (size_t n = 0; n < 300; n++) {
    StrBuf u = sb_new(&c->scratch);
    sb_fmt(&u, "%*s", (int)n, "");
    CHECK(u.n == n && strlen(sb_cstr(&u)) == n);
    sb_fmt(&u, "%*s", (int)n, "");
    CHECK(u.n == 2 * n && strlen(sb_cstr(&u)) == 2 * n);
  }
}

static void round_trip(Ctx *c, const char *at, size_t n) {
  StrBuf q = sb_new(&c->scratch), back = sb_new(&c->scratch);
  sb_puts(&back, "kept");
  sb_quote(&q, at, n);
  for (size_t i = 0; i < q.n; i++) CHECK(q.at[i] >= 0x20 && q.at[i] <= 0x7e);
  size_t len = q.n;
  sb_puts(&q, " rest \"");
  CHECK(sb_unquote(&back, q.at, q.n) == len);
  CHECK(back.n == n + 4 && memcmp(back.at, "kept", 4) == 0);
  CHECK(n == 0 || memcmp(back.at + 4, at, n) == 0);
  /* Cut anywhere, it is malformed, and the text so far is untouched. */
  back.n = 4;
  for (size_t i = 0; i < len; i++) CHECK(sb_unquote(&back, q.at, i) == 0 && back.n == 4);
}

static void quoting(Ctx *c) {
  char all[256];
  for (int i = 0; i < 256; i++) all[i] = (char)i;
  round_trip(c, all, 256);
  round_trip(c, "", 0);
  for (int i = 0; i < 256; i++) {
    round_trip(c, all + i, 1);
    for (int j = 0; j < 256; j++) {
      char two[2] = {(char)i, (char)j};
      Mark m = arena_mark(&c->scratch);
      round_trip(c, two, 2);
      arena_rewind(&c->scratch, m);
    }
  }
  StrBuf q = sb_new(&c->scratch);
  sb_quote(&q, "a\"b\\c\nd\x01\xff", 9);
  CHECK(strcmp(sb_cstr(&q), "\"a\\\"b\\\\c\\nd\\x01\\xff\"") == 0);
  static const char *const bad[] = {"",         "a",        "x\"a\"",    "\"",     "\"abc",
                                    "\"\\q\"",  "\"\\x1\"", "\"\\xg0\"", "\"\\\"", "\"a\nb\"",
                                    "\"\xc3\"", "\"\x7f\"", "\"\\x\"",   "\"\\"};
  for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
    size_t n = q.n;
    CHECK(sb_unquote(&q, bad[i], strlen(bad[i])) == 0);
    CHECK(q.n == n);
  }
  q.n = 0;
  CHECK(sb_unquote(&q, "\"\\x4A\\x4a\"", 10) == 10 && strcmp(sb_cstr(&q), "JJ") == 0);
  q.n = 0;
  CHECK(sb_unquote(&q, "\"\xc3\xa9\xe2\x82\xac\"", 7) == 7);
  CHECK(strcmp(sb_cstr(&q), "\xc3\xa9\xe2\x82\xac") == 0);
}

static void all(Ctx *c, void *arg) {
  (void)arg;
  interning(c);
  texts(c);
  quoting(c);
}

int main(void) {
  TestAlloc t = {0};
  Alloc a = test_alloc(&t);
  Ctx *c = ctx_new(&a, NULL);
  if (!CHECK(c)) return check_end();
  CHECK(ctx_protect(c, all, NULL) == ERR_ok);
  ctx_free(c);
  CHECK(t.blocks == 0);
  return check_end();
}
