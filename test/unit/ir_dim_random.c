/* Random dimension expressions against plain arithmetic: for every value of the symbols within
 * their bounds the normal form has the value of the expression it was built from and lies within
 * its bounds; its text reads back as itself, here and in a table whose symbols came in another
 * order. */
#include "check.h"
#include "ir/ir.h"

#include <string.h>

enum { SYMS = 4, ENVS = 24, POOL = 12, ROUNDS = 1500 };

/* An expression and its value in every environment. positive: may be a divisor. */
typedef struct Item {
  Dim d;
  i64 value[ENVS];
  bool positive;
} Item;

typedef struct World {
  Dims *ds, *other;
  Sym sym[SYMS];
  i64 env[ENVS][512];
  Item item[POOL];
  u32 n;
  u64 seed, count;
} World;

static const char *const name[SYMS] = {"n", "batch", "x y", "h"};
static const i64 low[SYMS] = {0, 1, 1, 3}, high[SYMS] = {9, 40, DIM_MAX, 17};

static u32 pick(World *w, u32 n) {
  return (u32)(random_bits(w->seed, w->count++) >> 33) % n;
}

static i64 floor_div(i64 a, i64 b) {
  return a / b - (a % b < 0);
}

static i64 apply(Op op, i64 a, i64 b) {
  switch (op) {
  case OP_add: return a + b;
  case OP_sub: return a - b;
  case OP_mul: return a * b;
  case OP_div: return floor_div(a, b);
  case OP_mod: return a - floor_div(a, b) * b;
  case OP_min: return a < b ? a : b;
  default: return a > b ? a : b;
  }
}

static Dim build(Dims *ds, Op op, Dim a, Dim b) {
  switch (op) {
  case OP_add: return dim_add(ds, a, b);
  case OP_sub: return dim_sub(ds, a, b);
  case OP_mul: return dim_mul(ds, a, b);
  case OP_div: return dim_div(ds, a, b);
  case OP_mod: return dim_mod(ds, a, b);
  case OP_min: return dim_min(ds, a, b);
  default: return dim_max(ds, a, b);
  }
}

static void compare(World *w, const Item *it) {
  Ctx *c = dims_ctx(w->ds);
  i64 lo, hi;
  dim_bounds(w->ds, it->d, &lo, &hi);
  for (u32 e = 0; e < ENVS; e++) {
    CHECK(dim_eval(w->ds, it->d, w->env[e]) == it->value[e]);
    CHECK(lo <= it->value[e] || lo == -DIM_MAX);
    CHECK(hi >= it->value[e] || hi == DIM_MAX);
  }
  StrBuf t = sb_new(&c->scratch), again = sb_new(&c->scratch);
  Dim back = 0;
  dim_print(w->ds, it->d, &t);
  CHECK(dim_parse(w->ds, t.at, t.n, &back) == t.n);
  if (!CHECK(back == it->d)) fprintf(stderr, "%s\n", sb_cstr(&t));
  CHECK(dim_parse(w->other, t.at, t.n, &back) == t.n);
  dim_print(w->other, back, &again);
  if (!CHECK(again.n == t.n && memcmp(again.at, t.at, t.n) == 0))
    fprintf(stderr, "%s\n%s\n", sb_cstr(&t), sb_cstr(&again));
}

/* One more item from two old ones, in the place of an old one. Fails where the result is refused.
 */
static void grow(Ctx *c, void *arg) {
  static const Op ops[] = {OP_add, OP_sub, OP_mul, OP_div, OP_mod, OP_min, OP_max, OP_add, OP_div};
  World *w = arg;
  (void)c;
  Op op = ops[pick(w, sizeof ops / sizeof *ops)];
  const Item *a = &w->item[pick(w, w->n)], *b = &w->item[pick(w, w->n)];
  Item it = {0};
  if ((op == OP_div || op == OP_mod) && !b->positive) return;
  for (u32 e = 0; e < ENVS; e++) {
    it.value[e] = apply(op, a->value[e], b->value[e]);
    if (it.value[e] > DIM_MAX || it.value[e] < -DIM_MAX) return;
  }
  if (dim_nsyms(w->ds) > 400) return;
  it.d = build(w->ds, op, a->d, b->d);
  i64 lo, hi;
  dim_bounds(w->ds, it.d, &lo, &hi);
  it.positive =
      lo > 0 && (op == OP_add || op == OP_mul || op == OP_max) && a->positive && b->positive;
  compare(w, &it);
  w->item[w->n < POOL ? w->n++ : SYMS + 3 + pick(w, POOL - SYMS - 3)] = it;
}

static void declare(Ctx *c, World *w) {
  w->ds = dims_new(c);
  w->other = dims_new(c);
  for (u32 i = 0; i < SYMS; i++) {
    w->sym[i] = dim_sym(w->ds, SY_input, str_of(c, name[i]), low[i], high[i]);
    u32 j = SYMS - 1 - i;
    dim_sym(w->other, SY_input, str_of(c, name[j]), low[j], high[j]);
  }
}

static void start(Ctx *c, void *arg) {
  World *w = arg;
  w->n = 0;
  declare(c, w);
  for (u32 e = 0; e < ENVS; e++) {
    for (u32 i = 0; i < SYMS; i++) {
      i64 top = high[i] < 1000 ? high[i] : 1000;
      w->env[e][w->sym[i]] = e == 0   ? low[i]
                             : e == 1 ? top
                                      : low[i] + pick(w, (u32)(top - low[i] + 1));
    }
  }
  for (u32 i = 0; i < SYMS + 3; i++) {
    Item it = {0};
    i64 k = 1 + pick(w, 7);
    it.d = i < SYMS ? dim_of_sym(w->ds, w->sym[i]) : k;
    it.positive = i >= SYMS || low[i] > 0;
    for (u32 e = 0; e < ENVS; e++) it.value[e] = i < SYMS ? w->env[e][w->sym[i]] : k;
    w->item[w->n++] = it;
  }
}

int main(void) {
  static World w;
  u32 built = 0, refused = 0;
  for (w.seed = 1; w.seed <= ROUNDS && !check_failed; w.seed++) {
    Ctx *c = ctx_new(NULL, NULL);
    w.count = 0;
    CHECK(ctx_protect(c, start, &w) == ERR_ok);
    for (u32 i = 0; i < 40; i++) {
      Err e = ctx_protect(c, grow, &w);
      CHECK(e == ERR_ok || e == ERR_input || e == ERR_unsupported);
      if (e == ERR_ok)
        built++;
      else
        refused++;
    }
    ctx_free(c);
    if (check_failed) fprintf(stderr, "seed %d\n", (int)w.seed);
  }
  CHECK(refused * 5 < built); /* negative constants and giants are the exception */
  return check_end();
}
