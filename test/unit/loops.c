/* Typed instructions of the language do what the general ones do.
 *
 *   loops [FIRST [COUNT]]         programs of random statements, by number: engine vm, which relies
 *                                 on inferred types, prints and says what engine ref does
 *
 * Programs have integers, floats, booleans and arrays of them in nested loops with functions that
 * return early; some fail. */
#include "check.h"
#include "ingot.h"
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { ROOM = 1 << 16, OUT = 1 << 14 };

/* ---- programs ---- */

typedef struct Maker {
  uint64_t seed;
  char at[ROOM];
  size_t n;
  int deep, loops, counters, fn; /* fn: inside one, which has parameters p and q */
  int scope;                     /* variables of loops that are there */
} Maker;

static unsigned pick(Maker *m, unsigned n) {
  m->seed = m->seed * 6364136223846793005u + 1442695040888963407u;
  return (unsigned)(m->seed >> 33) % n;
}

static void say(Maker *m, const char *fmt, ...) {
  va_list args;
  va_start(args, fmt);
  int n = vsnprintf(m->at + m->n, ROOM - m->n, fmt, args);
  va_end(args);
  if (n > 0 && m->n + (size_t)n < ROOM) m->n += (size_t)n;
}

static void line(Maker *m) {
  say(m, "\n");
  for (int i = 0; i < m->deep; i++) say(m, "    ");
}

static void number(Maker *m, int height, int as_float);

static void condition(Maker *m, int height) {
  static const char *const compares[] = {"<", "<=", ">", ">=", "==", "!="};
  switch (pick(m, height > 0 ? 7 : 2)) {
  case 0: say(m, pick(m, 2) ? "b0" : "b1"); return;
  case 1: say(m, pick(m, 8) ? "i0 %% 3 == 1" : pick(m, 2) ? "true" : "f0"); return;
  case 2:
    say(m, "(");
    condition(m, height - 1);
    say(m, pick(m, 2) ? " and " : " or ");
    condition(m, height - 1);
    say(m, ")");
    return;
  case 3:
    say(m, "not (");
    condition(m, 0);
    say(m, ")");
    return;
  default:
    say(m, "(");
    number(m, height - 1, (int)pick(m, 2));
    say(m, " %s ", compares[pick(m, 6)]);
    number(m, height - 1, (int)pick(m, 2));
    say(m, ")");
  }
}

static void leaf(Maker *m, int as_float) {
  static const char *const ints[] = {"0",      "1", "2", "3", "7", "-5", "9223372036854775807",
                                     "1000003"};
  static const char *const floats[] = {"0.0", "0.5", "1.25", "-3.0", "1e300", "0.1", "-0.0"};
  switch (pick(m, 5)) {
  case 0: say(m, as_float ? floats[pick(m, 7)] : ints[pick(m, 8)]); return;
  case 1:
    if (m->scope && !as_float) {
      say(m, "v%u", pick(m, (unsigned)m->scope));
      return;
    }
    break;
  case 2:
    if (m->fn) {
      say(m, as_float ? "q" : "p");
      return;
    }
    if (pick(m, 2))
      say(m, as_float ? "nf[i1 %% 3][i2 %% 2]" : "ni[i2 %% 2][i0 %% 3]");
    else
      say(m, as_float ? "af[i1 %% 8]" : "ai[i0 %% 6]");
    return;
  default: break;
  }
  say(m, as_float ? "f%u" : "i%u", pick(m, 3));
}

static void two(Maker *m, int height, int as_float, const char *between) {
  say(m, "(");
  number(m, height - 1, as_float);
  say(m, " %s ", between);
  number(m, height - 1, as_float && pick(m, 4));
  say(m, ")");
}

static void safe_divisor(Maker *m, int height, int as_float) {
  if (!pick(m, 40)) {
    number(m, height - 1, as_float);
  } else if (as_float) {
    say(m, "(abs(");
    number(m, height - 1, 1);
    say(m, ") + 0.5)");
  } else {
    static const char *const by[] = {"3", "-7", "10", "(i0 %% 5 + 9)", "-1"};
    say(m, by[pick(m, 5)]);
  }
}

static void of_functions(Maker *m, int height, int as_float) {
  static const char *const of_floats[] = {"sin", "cos", "exp", "abs", "tan"};
  switch (pick(m, 5)) {
  case 0:
    say(m, as_float ? "%s(" : "abs(", of_floats[pick(m, 5)]);
    number(m, height - 1, as_float);
    say(m, ")");
    return;
  case 1:
    say(m, pick(m, 2) ? "max(" : "min(");
    number(m, height - 1, as_float);
    say(m, ", ");
    number(m, height - 1, as_float);
    say(m, ")");
    return;
  case 2:
    say(m, "if ");
    condition(m, 1);
    say(m, " { ");
    number(m, height - 1, as_float);
    say(m, " } else { ");
    number(m, height - 1, as_float);
    say(m, " }");
    return;
  case 3:
    if (as_float) {
      say(m, pick(m, 2) ? "sqrt(abs(" : "pow(2.0, sin(");
      number(m, height - 1, 1);
      say(m, "))");
    } else {
      say(m, "((");
      number(m, height - 1, 1);
      say(m, ") as int64)");
    }
    return;
  default:
    if (m->fn) break;
    if (!as_float && pick(m, 3) == 0) {
      say(m, pick(m, 2) ? "taker(" : "ping(i1 %% 6, ");
      number(m, height - 1, 0);
      say(m, ")");
      return;
    }
    say(m, as_float ? "g1(" : "g0(");
    number(m, height - 1, 0);
    say(m, ", ");
    number(m, height - 1, 1);
    say(m, ")");
    return;
  }
  leaf(m, as_float);
}

static void number(Maker *m, int height, int as_float) {
  static const char *const signs[] = {"+", "-", "*"};
  if (height <= 0) {
    leaf(m, as_float);
    return;
  }
  switch (pick(m, 8)) {
  case 0:
  case 1: leaf(m, as_float); return;
  case 2:
    say(m, "(");
    number(m, height - 1, as_float);
    say(m, as_float || pick(m, 2) ? " / " : " %% ");
    safe_divisor(m, height, as_float);
    say(m, ")");
    return;
  case 3:
    say(m, "-(");
    number(m, height - 1, as_float);
    say(m, ")");
    return;
  case 4: of_functions(m, height, as_float); return;
  default: two(m, height, as_float, signs[pick(m, 3)]);
  }
}

static void block(Maker *m, int count);

static void loop(Maker *m) {
  unsigned kind = pick(m, 4), counter = (unsigned)m->counters++;
  int scope = m->scope;
  if (kind < 2) {
    say(m, "for v%u in %s..%s%u {", (unsigned)scope, pick(m, 3) ? "0" : "i1 % 4",
        pick(m, 4) ? "" : "=", 2 + pick(m, 12));
    m->scope++;
  } else if (kind == 2 && !m->fn) {
    say(m, "for v%u in ai {", (unsigned)scope);
    m->scope++;
  } else {
    say(m, "let w%u = 0", counter);
    line(m);
    say(m, "while w%u < %u and ", counter, 2 + pick(m, 12));
    condition(m, 1);
    say(m, " {");
  }
  m->deep++;
  m->loops++;
  if (kind == 3 || (kind == 2 && m->fn)) {
    line(m);
    say(m, "w%u = w%u + 1", counter, counter);
  }
  block(m, 1 + (int)pick(m, 4));
  m->loops--;
  m->deep--;
  m->scope = scope;
  line(m);
  say(m, "}");
}

static void choice(Maker *m) {
  say(m, "if ");
  condition(m, 2);
  say(m, " {");
  m->deep++;
  block(m, 1 + (int)pick(m, 2));
  m->deep--;
  line(m);
  say(m, "}");
  if (pick(m, 2)) return;
  say(m, " else {");
  m->deep++;
  block(m, 1 + (int)pick(m, 2));
  m->deep--;
  line(m);
  say(m, "}");
}

static void leave(Maker *m) {
  say(m, "if ");
  condition(m, 1);
  if (m->fn && pick(m, 2)) {
    say(m, " { return ");
    number(m, 1, m->fn == 2);
    say(m, " }");
  } else {
    say(m, m->loops ? pick(m, 2) ? " { break }" : " { continue }" : " { b0 = not b0 }");
  }
}

static void element(Maker *m) {
  int as_float = (int)pick(m, 2);
  if (!pick(m, 3))
    say(m, as_float ? "nf[abs(i0) %% 3][abs(i2) %% 2] = " : "ni[abs(i1) %% 2][abs(i2) %% 3] = ");
  else
    say(m, as_float ? "af[abs(i0) %% 8] = " : "ai[%s] = ", pick(m, 30) ? "abs(i1) % 6" : "i2 % 7");
  number(m, 2, as_float);
}

static void statement(Maker *m) {
  line(m);
  switch (pick(m, m->deep > 3 ? 6 : 10)) {
  case 0:
  case 1:
    say(m, "i%u = ", pick(m, 3));
    number(m, 3, 0);
    return;
  case 2:
    say(m, "f%u = ", pick(m, 3));
    number(m, 3, 1);
    return;
  case 3:
    say(m, pick(m, 2) ? "b0 = " : "b1 = ");
    condition(m, 2);
    say(m, " and true");
    return;
  case 4:
    if (m->fn || !pick(m, 3))
      leave(m);
    else
      element(m);
    return;
  case 5: leave(m); return;
  case 6: choice(m); return;
  default: loop(m);
  }
}

static void block(Maker *m, int count) {
  for (int i = 0; i < count; i++) statement(m);
}

static void function(Maker *m, int which) {
  say(m, "\nfn g%d(p: int64, q: float64) -> %s {", which, which ? "float64" : "int64");
  m->fn = which + 1;
  m->deep = 1;
  m->scope = 0;
  block(m, 2);
  line(m);
  say(m, "let r = ");
  number(m, 2, which);
  line(m);
  say(m, pick(m, 2) ? "r\n}\n" : "return r\n}\n");
  m->fn = m->deep = 0;
}

static const char *program(Maker *m, uint64_t seed) {
  memset(m, 0, sizeof *m);
  m->seed = seed * 0x9e3779b97f4a7c15u + 1;
  say(m, "let i0 = 1\nlet i1 = 2\nlet i2 = -3\nlet f0 = 0.5\nlet f1 = -1.5\nlet f2 = 3.0\nlet b0 = "
         "true\nlet b1 = false\n"
         "let ai = [1, -2, 3, 4, 500, 6]\nlet af = [0.5, 1.5, -2.5, 3.0, 4.0, 5.5, 6.0, 0.0]\n");
  say(m,
      "let ni = [[1, -2, 3], [4, 5, -600]]\nlet nf = [[0.5, 1.5], [-2.5, 3.0], [4.0, 0.0]]\n"
      "fn takes(k: int64, x: float64) { fn(n: int64) -> int64 { if x > 1.0 { n + k } else { n - k "
      "} } }\nlet taker = takes(%u, %u.5)\n"
      "fn ping(n: int64, x: int64) -> int64 { if n <= 0 { x } else { pong(x + 1, n * 0.5) } }\n"
      "fn pong(x: int64, n: float64) -> int64 { if n < 0.5 { -x } else { ping((n as int64) - 1, x "
      "%% 1000) + ping((n as int64) / 2, x - %u) } }\n",
      pick(m, 9), pick(m, 3), pick(m, 5));
  function(m, 0);
  function(m, 1);
  say(m, "fn run() {");
  m->deep = 1;
  loop(m);
  m->deep = 0;
  say(m, "\n}\n");
  for (int i = 0; i < 3; i++) {
    line(m);
    loop(m);
    say(m, "\nprint(i0, i1, i2, f0, f1, f2, b0, b1, ai, af, ni, nf)\n");
  }
  say(m, "print(run())\nprint(i0, i1, i2, f0, f1, f2, b0, b1, ai, af, ni, nf)\n");
  return m->at;
}

/* ---- runs ---- */

typedef struct Heard {
  char at[OUT];
  size_t n;
} Heard;

static void hear(void *user, const char *text, size_t n) {
  Heard *h = user;
  if (h->n + n < OUT) {
    memcpy(h->at + h->n, text, n);
    h->n += n;
  }
}

static void run(const char *path, const char *engine, Heard *h) {
  Ingot *m = ingot_new(NULL);
  IngotScript o = {.engine = engine, .write = hear, .user = h};
  IngotStatus s = ingot_script_run(m, path, &o);
  char end[32];
  hear(h, end, (size_t)snprintf(end, sizeof end, "status %d\n", (int)s));
  for (uint32_t i = 0; i < ingot_message_count(m); i++) {
    const char *text = ingot_message(m, i, NULL);
    hear(h, text, strlen(text));
  }
  h->at[h->n] = 0;
  ingot_free(m);
}

static int same(const char *path, const Heard *want, const char *engine, Heard *got) {
  memset(got, 0, sizeof *got);
  run(path, engine, got);
  return want->n == got->n && !memcmp(want->at, got->at, got->n);
}

int main(int argc, char **argv) {
  static Maker m;
  static Heard want, got;
  uint64_t first = argc > 1 ? strtoull(argv[1], NULL, 0) : 1;
  uint64_t count = argc > 2 ? strtoull(argv[2], NULL, 0) : 60;
  int failing = 0;
  char path[] = "/tmp/ingot-loops-XXXXXX.ch";
  int fd = mkstemps(path, 3);
  FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
  if (!CHECK(f)) return check_end();
  for (uint64_t i = first; i < first + count; i++) {
    rewind(f);
    const char *text = program(&m, i);
    fwrite(text, 1, strlen(text), f);
    fflush(f);
    if (ftruncate(fd, (off_t)strlen(text))) break;
    memset(&want, 0, sizeof want);
    run(path, "ref", &want);
    failing += strstr(want.at, "status 0") == NULL;
    bool ok = CHECK(same(path, &want, "vm", &got));
    if (!ok || getenv("LOOPS_SHOW"))
      fprintf(stderr, "program %llu:\n%s\ncareful:\n%s\ntyped:\n%s\n", (unsigned long long)i, text,
              want.at, got.at);
  }
  printf("%d of %d programs fail\n", failing, (int)count);
  fclose(f);
  unlink(path);
  return check_end();
}
