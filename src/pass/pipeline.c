/* pipeline.c: the passes in order, and the only code that runs, checks, dumps and times them.
 *
 *   model -> Graph -- infer ... order --> Graph -- lower --> Prog -- loop_fuse ... bounds -->
 *
 * Text of a Graph enters before infer, text of a Prog after lower. Passes fold to canon create work
 * for each other and run in rounds until canon changes nothing; quant has its own rounds. After a
 * pass that leaves constant, equal or unused nodes (Graph.left), fold, cse and dce run once more.
 * fuse and order also run before row_tiling, which estimates memory: they decide which values are
 * stored, and when.
 *
 * In: a PassCtx with a graph (or a program, when starting after `lower`). Out: the same PassCtx
 * after the selected rows of the table. After each row: verify, dump, report the time, empty
 * c->scratch.
 */
#include <string.h>
#include "pass/pass.h"

const char *const precision_name[PREC_COUNT] = {"f32", "tf32", "f16", "bf16"};

/* clang-format off */
const Pass pass_table[] = {
  {"infer",    infer,    NULL, NULL,  PX_exact, "recompute the types of all values from the inputs", false},
  {"strings",  strings,  NULL, NULL,  PX_exact, "represent strings as rows of bytes", false},
  {"quant",    NULL,     NULL, quant, PX_bounded, "turn products of quantized tensors into integer sums", false},
  {"dequantize",  NULL,     NULL, dequantize, PX_bounded, "dequantize block-quantized weights, or multiply with them directly", false},
  {"fold",     fold,     NULL, NULL,  PX_exact, "evaluate nodes whose operands are constant", false},
  {"simplify", simplify, NULL, NULL,  PX_exact, "apply algebraic identities; merge views", false},
  {"cse",      cse,      NULL, NULL,  PX_exact, "merge equal computations", false},
  {"dce",      dce,      NULL, NULL,  PX_exact, "remove nodes that no output depends on", false},
  {"canon",    NULL,     NULL, canon, PX_bounded, "normalize exporter idioms: scales into weights, pads into windows", false},
  {"widen_f16",     NULL,     NULL, widen_f16,  PX_bounded, "compute f16 and bf16 as f32 on vector targets", false},
  {"cast16",   NULL,     NULL, cast16, PX_bounded, "store what products read as f16 or bf16, on a GPU with --precision", false},
  {"regroup",  NULL,     NULL, regroup, PX_exact, "rewrite grouped convolutions narrower than a vector as depthwise or zero-padded", false},
  {"split_pools",    NULL,     NULL, split_pools, PX_bounded, "split large pooling windows by dimension on vector targets", false},
  {"widen_i8",    NULL,     NULL, widen_i8, PX_exact, "widen int8 operands to int16 on targets with pmaddwd and without a 4-way int8 dot product", false},
  {"mark_small_casts",   mark_small_casts,   NULL, NULL,  PX_exact, "mark saturating casts to int8 whose operand provably fits in +-2^30", false},
  {"row_tiling",     NULL,     NULL, row_tiling,  PX_exact, "compute convolutions in stripes of rows to save memory", false},
  {"layout",   NULL,     NULL, layout, PX_exact, "choose memory layouts: channel blocks, zero padding", false},
  {"fuse",     fuse,     NULL, NULL,  PX_exact, "decide which values are computed in their consumer and never stored", false},
  {"order",    order,    NULL, NULL,  PX_exact, "reorder nodes to lower peak memory", false},
  {"lower",    NULL,     NULL, lower, PX_exact, "turn the graph into loops over buffers; vector targets reassociate sums", false},
  {"inplace",  NULL,     inplace, NULL, PX_exact, "update state buffers in place", false},
  {"loop_fuse", NULL,    loop_fuse, NULL, PX_exact, "fuse adjacent kernels that loop over the same slices", false},
  {"shrink_consts",   NULL,     NULL, shrink_consts, PX_exact, "store constants in the narrowest type that holds their values", false},
  {"parallel", NULL,     parallel, NULL, PX_exact, "distribute loops over threads", false},
  {"row_registers", NULL, row_registers, NULL, PX_exact, "keep rows of fused GPU kernels in registers", false},
  {"plan",     NULL,     plan, NULL,  PX_exact, "assign every buffer an offset in one arena", false},
  {"sync",     NULL,     NULL, block_sync, PX_exact, "place barriers between the loops of a GPU block", false},
  {"schedule", NULL,     NULL, schedule, PX_exact, "add load fences and register pins so that the C compiler neither hoists nor rematerializes loads", false},
  {"bounds",   NULL,     bounds, NULL, PX_exact, "stop runs in which a dimension exceeds the planned bounds", false},
  {"unroll",   NULL,     unroll, NULL, PX_exact, "unroll marked loops; only by name, back ends unroll kernel by kernel", true},
  {"legalize", NULL,     NULL, legalize, PX_exact, "split vectors to register size and name registers; only by name, back ends do it kernel by kernel", true},
};
/* clang-format on */
const u32 pass_count = sizeof pass_table / sizeof *pass_table;

enum { ROUNDS = 64, QUANT_ROUNDS = 16 };

/* Former names, still accepted: old, new. */
static const char *const renamed[][2] = {
    {"half", "widen_f16"},          {"int16", "widen_i8"},       {"pools", "split_pools"},
    {"limits", "mark_small_casts"}, {"narrow", "shrink_consts"}, {"unblock", "dequantize"},
    {"band", "row_tiling"}};

/* Returns the index of a pass, or fails with the list of pass names. */
static u32 find(Ctx *c, const char *option, const char *name, size_t n) {
  for (u32 i = 0; i < sizeof renamed / sizeof *renamed; i++)
    if (strlen(renamed[i][0]) == n && !memcmp(renamed[i][0], name, n)) {
      name = renamed[i][1];
      n = strlen(name);
    }
  for (u32 i = 0; i < pass_count; i++) {
    if (strlen(pass_table[i].name) == n && !memcmp(pass_table[i].name, name, n)) return i;
  }
  StrBuf t = sb_new(&c->scratch);
  const char *said = str_text(c, str_intern(c, name, n));
  Suggestion near = suggest_new(said);
  for (u32 i = 0; i < pass_count; i++) {
    sb_fmt(&t, "%s%s", i ? ", " : "", pass_table[i].name);
    suggest_try(&near, pass_table[i].name);
  }
  fail(c, ERR_usage, LOC_NONE, "--%s: expected one of the passes %s; found '%s'%s", option,
       sb_cstr(&t), show(c, str_of(c, said)), suggest_text(c, &near));
}

/* Sets a flag for each pass of a comma-separated list. */
static void mark(Ctx *c, const char *option, const char *list, bool *flag) {
  if (!list) return;
  for (const char *at = list; *at;) {
    size_t n = strcspn(at, ",");
    if (n) flag[find(c, option, at, n)] = true;
    at += n + (at[n] == ',');
  }
}

static void verify(PassCtx *u) {
  if (u->p) {
    prog_check(u->p);
  } else {
    graph_check(u->g);
  }
}

static u32 count_nodes(Graph *g, RegionId b) {
  u32 count = g->region.at[b].node.n;
  for (u32 i = 0; i < g->region.at[b].node.n; i++) {
    const Node *n = graph_node(g, g->region.at[b].node.at[i]);
    for (u32 k = 0; k < n->nregion; k++) count += count_nodes(g, n->region[k]);
  }
  return count;
}

/* Nodes of a graph, statements of a program. */
static u32 size(const PassCtx *u) {
  return u->p ? u->p->stmt.n : count_nodes(u->g, 1);
}

static bool is_row(u32 i, const char *name) {
  return !strcmp(pass_table[i].name, name);
}

static u32 row_of(const char *name) {
  u32 i = 0;
  while (!is_row(i, name)) i++;
  return i;
}

/* True if the number of nodes changed. */
static bool run(PassCtx *u, const Pass *pass, const PipeOptions *o, bool dump) {
  Ctx *c = u->c;
  c->pass = pass->name;
  bool on_prog = pass > pass_table + row_of("lower");
  if (!on_prog && !u->g) {
    fail(c, ERR_usage, LOC_NONE,
         "pass %s works on a graph, found a program: start at a later pass with --start, or "
         "run none with --stop=none",
         pass->name);
  }
  if (on_prog && !u->p) {
    fail(c, ERR_usage, LOC_NONE, "pass %s works on a program; found a graph", pass->name);
  }
  u32 before = size(u);
  double start = time_ms();
  if (pass->graph) pass->graph(u->g);
  if (pass->prog) pass->prog(u->p);
  if (pass->unit) pass->unit(u);
  double ms = time_ms() - start;
  if (o->check) verify(u);
  if (dump && o->on_dump) {
    StrBuf t = sb_new(&c->scratch);
    t.brief = o->brief;
    if (u->p) {
      prog_print(u->p, &t, NULL);
    } else {
      graph_print(u->g, &t, NULL);
      if (pass->graph == fuse) group_list(u->g, &t, "# ");
    }
    o->on_dump(o->user, pass->name, t.at, t.n);
  }
  u32 after = size(u);
  if (o->on_time) o->on_time(o->user, pass->name, ms, before, after);
  arena_clear(&c->scratch);
  return after != before;
}

typedef struct Rounds {
  u32 n;     /* rounds in which canon changed something */
  u32 quant; /* rounds of quant */
  bool
      open; /* also in the last round: cse, which hashes all constants, waits until canon is done */
} Rounds;

/* The row to run after row i, which has changed something or not. */
static u32 row_after(Rounds *r, const PassCtx *u, u32 i, bool changed) {
  if (is_row(i, "quant") && u->g->again && ++r->quant < QUANT_ROUNDS) return i;
  if (is_row(i, "cse") && r->n && !changed) return row_of("canon") + 1;
  if (!is_row(i, "canon")) return i + 1;
  bool was = r->open;
  r->open = u->g->again && ++r->n < ROUNDS;
  return r->open ? row_of("fold") : was ? row_of("cse") : i + 1;
}

enum { COUNT = sizeof pass_table / sizeof *pass_table };

/* Flags per row of the table. */
typedef struct RowMarks {
  bool skip[COUNT], dump[COUNT];
} RowMarks;

static bool run_row(PassCtx *u, const PipeOptions *o, const RowMarks *m, u32 i) {
  return !m->skip[i] && run(u, &pass_table[i], o, m->dump[i]);
}

/* Runs the later passes whose results the pass in row i reads. */
static void prepare(PassCtx *u, const PipeOptions *o, const RowMarks *m, u32 i) {
  if (!is_row(i, "row_tiling") || !u->ram) return;
  run_row(u, o, m, row_of("fuse"));
  run_row(u, o, m, row_of("order"));
}

/* Removes equal and dead nodes that the last pass left. */
static void tidy(PassCtx *u, const PipeOptions *o, const RowMarks *m) {
  u8 left = u->p ? 0 : u->g->left;
  if (!left) return;
  u->g->left = 0;
  if (left & LEFT_known) run_row(u, o, m, row_of("fold"));
  if (left & LEFT_equal) run_row(u, o, m, row_of("cse"));
  run_row(u, o, m, row_of("dce"));
}

static RowMarks read_marks(Ctx *c, const PipeOptions *o) {
  RowMarks m = {0};
  mark(c, "skip", o->skip, m.skip);
  if (!o->dump || strcmp(o->dump, "all")) {
    mark(c, "dump", o->dump, m.dump);
  } else {
    memset(m.dump, true, sizeof m.dump);
  }
  return m;
}

void pipeline_run(PassCtx *u, const PipeOptions *o) {
  Ctx *c = u->c;
  u32 first = o->start ? find(c, "start", o->start, strlen(o->start)) : 0;
  u32 end = 0;
  while (end < pass_count && !pass_table[end].only_named) end++;
  if (o->stop) {
    end = strcmp(o->stop, "none") ? find(c, "stop", o->stop, strlen(o->stop)) + 1 : 0;
  }
  if (!o->stop && end <= first) end = first + 1;
  RowMarks m = read_marks(c, o);
  if (end && end <= first) {
    fail(c, ERR_usage, LOC_NONE, "--stop=%s comes before --start=%s", o->stop, o->start);
  }
  if (u->g) u->g->eager = false; /* from here on only the pass folds constants */
  u->target = o->target ? o->target : target_scalar();
  u->maddubs = u->target->maddubs == MADDUBS_always ||
               (u->target->maddubs == MADDUBS_without_dot_i8x4 && o->lacks_dot_i8x4);
  u->prefer_i16 = u->target->cost->dot_i16x2_time > 0 &&
                  (u->target->maddubs != MADDUBS_without_dot_i8x4 || u->maddubs);
  u->for_c = o->for_c;
  u->threads = o->threads;
  u->grain = o->grain;
  u->tune = o->tune;
  u->ram = o->ram;
  u->conv_plan = NULL;
  u->quant = 0;
  u->precise = o->precise;
  u->precision = o->precision;
  u->aim = o->aim;
  c->pass = "input";
  if (o->check) verify(u);
  Rounds r = {0};
  bool whole = !first && !o->stop && !o->skip; /* partial runs are too short to report */
  u32 lower = row_of("lower");
  if (whole) guard_log(c, "graph passes");
  for (u32 i = first; i < end;) {
    if (whole && (i == lower || i == lower + 1))
      guard_log(c, i == lower ? "lower" : "kernel passes");
    if (m.skip[i] || (r.open && is_row(i, "cse"))) {
      i++;
      continue;
    }
    prepare(u, o, &m, i);
    bool changed = run_row(u, o, &m, i);
    tidy(u, o, &m);
    i = row_after(&r, u, i, changed);
  }
  if (whole) guard_log(c, NULL);
  c->pass = NULL;
}
