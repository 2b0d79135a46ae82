/* shrink.c: makes a failing case smaller, and prints it.
 *
 * In: a case and what kind of failure it shows. Out: a case that fails alike and has fewer results
 * and nodes. One change at a time is tried, each in a process of its own, until none helps: a
 * result goes; a node gives way to an operand of its type; a value becomes a parameter, or a
 * constant, that holds what the reference computes.
 */
#include "gen.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "ir/lexer.h"
#include "pass/pass.h"

typedef enum Change { CH_result, CH_bypass, CH_param, CH_const, CH_ends } Change;

typedef struct Try {
  const Case *from;
  Case *to;
  Change how;
  u32 at;    /* number of the result or node */
  bool done; /* there was such a place */
} Try;

static Tensor *copy(Arena *a, const Tensor *t) {
  Tensor *x = tensor_new(a, t->dt, t->dim, t->rank);
  if (x->n) memcpy((void *)(uintptr_t)x->data, t->data, tensor_bytes(t));
  return x;
}

/* ---- values ---- */

/* Contents of value v of the top level, for each set of arrays. */
static bool evaluate(Graph *g, const Case *k, Val v, Tensor **out) {
  GraphRegion *b = &g->region.at[1];
  u32 n = b->ret.n;
  Val *old = arena_copy(&g->c->keep, b->ret.at, n * sizeof *old);
  b->ret.n = 0;
  *vec_push(&g->c->work, &g->region.at[1].ret) = v;
  RefOptions o = {.seed = k->seed & 0xff};
  for (u32 i = 0; i < k->nbind; i++) ref_run(g, &o, k->in[i], &out[i], &g->c->keep);
  b = &g->region.at[1];
  b->ret.n = 0;
  for (u32 i = 0; i < n; i++) *vec_push(&g->c->work, &g->region.at[1].ret) = old[i];
  return true;
}

static bool only_inputs(Graph *g, const Type *t) {
  for (u32 i = 0; i < t->rank; i++) {
    DimTerms f = dim_terms(g->dims, t->dim[i]);
    for (u32 k = 0; k < f.n; k++)
      if (dim_syminfo(g->dims, f.sym[k])->kind != SY_input) return false;
  }
  return true;
}

/* ---- one change ---- */

typedef struct Place {
  Try *t;
  u32 count;
  Val with; /* CH_param, CH_const */
  NodeId node;
} Place;

static NodeId nth_node(Graph *g, RegionId b, u32 *at) {
  for (u32 i = 0; i < g->region.at[b].node.n; i++) {
    NodeId id = g->region.at[b].node.at[i];
    const Node *n = graph_node(g, id);
    if (n->op == OP_const) continue;
    if ((*at)-- == 0) return id;
    for (u32 k = 0; k < n->nregion; k++) {
      NodeId in = nth_node(g, n->region[k], at);
      if (in) return in;
    }
  }
  return 0;
}

static bool is_top(Graph *g, NodeId id) {
  const GraphRegion *b = &g->region.at[1];
  for (u32 i = 0; i < b->node.n; i++)
    if (b->node.at[i] == id) return true;
  return false;
}

static bool visit(GraphEdit *e, NodeId id) {
  Place *p = e->user;
  Node n = *graph_node(e->g, id);
  if (id != p->node) return true;
  if (p->t->how == CH_bypass) {
    for (u32 i = 0; i < n.nin; i++)
      if (type_equal(graph_type(e->g, n.in[i]), graph_type(e->g, n.out[0])) && n.nout == 1) {
        edit_replace(e, n.out[0], n.in[i]);
        p->t->done = true;
        return false;
      }
    return true;
  }
  edit_replace(e, n.out[0], p->with);
  p->t->done = true;
  return n.nout > 1;
}

static void change_node(Ctx *c, Graph *g, Try *t) {
  u32 at = t->at;
  Place p = {.t = t, .node = nth_node(g, 1, &at)};
  if (!p.node) {
    t->how = CH_ends;
    return;
  }
  Node n = *graph_node(g, p.node);
  if (t->how != CH_bypass) {
    Type type = *graph_type(g, n.out[0]);
    Tensor *value[2];
    if (!is_top(g, p.node) || !only_inputs(g, &type)) return;
    if (t->how == CH_const && !type_is_static(&type)) return;
    evaluate(g, t->from, n.out[0], value);
    if (t->how == CH_param) {
      Str name = str_fmt(c, "v%u", n.out[0]);
      for (u32 i = 0; i < t->to->nin; i++)
        if (t->to->name[i] == name) return;
      p.with = graph_param(g, 1, type, name);
      t->to->name[t->to->nin] = name;
      for (u32 i = 0; i < t->to->nbind; i++) t->to->in[i][t->to->nin] = copy(&c->keep, value[i]);
      t->to->nin++;
    } else {
      g->cur = 1;
      p.with = mk_const(g, copy(&c->work, value[0]));
      GraphRegion *b = &g->region.at[1];
      NodeId id = b->node.at[b->node.n - 1];
      memmove(b->node.at + 1, b->node.at, (b->node.n - 1) * sizeof id);
      b->node.at[0] = id;
    }
  }
  edit_run(g, visit, &p);
}

static void drop_result(Graph *g, Try *t) {
  GraphRegion *b = &g->region.at[1];
  if (t->at >= b->ret.n || b->ret.n == 1) {
    t->how = CH_ends;
    return;
  }
  b->ret.n--;
  g->out_name.n--;
  for (u32 i = t->at; i < b->ret.n; i++) {
    b->ret.at[i] = b->ret.at[i + 1];
    g->out_name.at[i] = g->out_name.at[i + 1];
  }
  t->done = true;
}

/* Parameters that nothing reads go, unless only they tell a symbol. */
static void drop_params(Graph *g, Case *k) {
  u32 *uses = NEWS(&g->c->keep, u32, g->val.n);
  graph_use_counts(g, uses);
  GraphRegion *b = &g->region.at[1];
  u32 n = 0;
  for (u32 i = 0; i < b->param.n; i++) {
    Val v = b->param.at[i];
    if (!uses[v] && type_is_static(graph_type(g, v))) continue;
    graph_val(g, v)->pos = n;
    b->param.at[n] = v;
    k->name[n] = k->name[i];
    for (u32 j = 0; j < k->nbind; j++) k->in[j][n] = k->in[j][i];
    n++;
  }
  b->param.n = k->nin = n;
}

static void change(Ctx *c, void *arg) {
  Try *t = arg;
  const Case *f = t->from;
  Case *k = t->to;
  Graph *g = graph_parse(c, f->text, f->n, str_of(c, "case"), NULL, 0);
  k->name = NEWS(&c->keep, Str, f->nin + 2);
  k->nin = f->nin;
  k->nbind = f->nbind;
  for (u32 j = 0; j < k->nbind; j++) {
    k->in[j] = NEWS(&c->keep, Tensor *, f->nin + 2);
    for (u32 i = 0; i < k->nin; i++) k->in[j][i] = copy(&c->keep, f->in[j][i]);
  }
  for (u32 i = 0; i < k->nin; i++) k->name[i] = str_of(c, str_text(f->c, f->name[i]));
  if (t->how == CH_result)
    drop_result(g, t);
  else
    change_node(c, g, t);
  if (!t->done) return;
  dce(g);
  drop_params(g, k);
  StrBuf out = sb_new(&c->keep);
  graph_print(g, &out, NULL);
  k->text = sb_cstr(&out);
  k->n = out.n;
  t->done = k->n != f->n || memcmp(k->text, f->text, f->n);
}

/* ---- does it fail alike? ---- */

static bool fails(const Case *k, const char *cc, const char *folder, const char *what) {
  fflush(NULL);
  pid_t pid = fork();
  if (!pid) {
    alarm(20);
    Verdict v = judge_all(k, cc, folder);
    _exit(v.what[0] && !strcmp(v.what, what) ? 1 : 0);
  }
  int status = 0;
  waitpid(pid, &status, 0);
  if (!strncmp(what, "crash", 5)) return WIFSIGNALED(status);
  return WIFEXITED(status) && WEXITSTATUS(status) == 1;
}

Case *shrink(Case *k, const char *cc, const char *folder, const char *what) {
  bool again = true;
  if (!fails(k, cc, folder, what)) {
    printf("# fails only in its batch\n");
    return k;
  }
  for (u32 rounds = 0; again && rounds < 8; rounds++) {
    again = false;
    for (int how = CH_result; how < CH_ends; how++) {
      for (u32 at = 0;; at++) {
        Ctx *c = ctx_new(NULL, NULL);
        Case *to = NEW(&c->keep, Case);
        *to = (Case){
            .c = c, .seed = k->seed, .mode = k->mode, .smooth = k->smooth, .target = k->target};
        Try t = {.from = k, .to = to, .how = (Change)how, .at = at};
        bool ok = !ctx_protect(c, change, &t) && t.done && fails(to, cc, folder, what);
        if (ok) {
          k = to;
          again = true;
          at--;
          continue;
        }
        ctx_free(c);
        if (t.how == CH_ends || at > 200) break;
      }
    }
  }
  return k;
}

/* ---- reading and printing ---- */

typedef struct Read {
  Case *k;
  const char *path;
} Read;

/* "# input NAME = TYPE[EXTENTS] {ELEMENTS}" */
static void read_array(Ctx *c, Case *k, const char *line, size_t n) {
  Lexer s = lex_new(c, line, n, str_of(c, "case"), NULL, 0);
  Dim dim[MAX_RANK];
  k->name[k->nin] = lex_name(&s);
  lex_expect(&s, '=');
  DType dt = lex_dtype(&s);
  u32 rank = lex_dims(&s, dim);
  k->in[0][k->nin++] = lex_tensor(&s, dt, dim, rank);
}

static void read_case(Ctx *c, void *arg) {
  static const char *const mode[] = {"exact", "real", "raw"};
  Read *r = arg;
  Case *k = r->k;
  File f = file_read(c, r->path);
  StrBuf text = sb_new(&c->keep);
  sb_put(&text, f.at, f.n);
  const char *s = sb_cstr(&text), *graph = strstr(s, "\ngraph");
  if (!graph) fail(c, ERR_input, LOC_NONE, "%s: no graph", r->path);
  k->name = NEWS(&c->keep, Str, 1000);
  k->in[0] = NEWS(&c->keep, Tensor *, 1000);
  k->nbind = 1;
  for (const char *at = s; at < graph && k->nin < 1000; at += strcspn(at, "\n") + 1) {
    size_t n = strcspn(at, "\n");
    if (!strncmp(at, "# input ", 8)) read_array(c, k, at + 8, n - 8);
    if (!strncmp(at, "# target ", 9)) k->target = str_text(c, str_intern(c, at + 9, n - 9));
    if (strncmp(at, "# seed ", 7)) continue;
    char *word;
    k->seed = strtoull(at + 7, &word, 10);
    word += strspn(word, ", ");
    for (u32 i = 0; i < 3; i++)
      if (!strncmp(word, mode[i], strlen(mode[i]))) k->mode = (Mode)i;
  }
  Graph *g = graph_parse(c, graph + 1, strlen(graph + 1), str_of(c, r->path), NULL, 0);
  StrBuf out = sb_new(&c->keep);
  graph_print(g, &out, NULL);
  k->text = sb_cstr(&out);
  k->n = out.n;
}

Case *case_read(const char *path) {
  Ctx *c = ctx_new(NULL, NULL);
  Case *k = NEW(&c->keep, Case);
  *k = (Case){.c = c};
  if (!ctx_protect(c, read_case, &(Read){k, path})) return k;
  for (const Diag *d = c->diags; d; d = d->next) fprintf(stderr, "%s\n", d->text);
  ctx_free(c);
  return NULL;
}

typedef struct Print {
  const Case *k;
  const Verdict *v;
} Print;

static void put_array(Ctx *c, const char *key, const char *name, const Tensor *t) {
  StrBuf s = sb_new(&c->keep);
  sb_fmt(&s, "# %s %s = %s[", key, name, dtype_info[t->dt].name);
  for (u32 i = 0; i < t->rank; i++) sb_fmt(&s, "%s%lld", i ? "," : "", (long long)t->dim[i]);
  sb_puts(&s, "] ");
  lit_tensor(&s, NULL, c, t, 1 << 20);
  printf("%s\n", sb_cstr(&s));
}

static void print(Ctx *c, void *arg) {
  Print *p = arg;
  const Case *k = p->k;
  for (u32 i = 0; i < k->nin; i++)
    put_array(c, "input", str_text(k->c, k->name[i]), k->in[k->nbind - 1][i]);
  Graph *g = graph_parse(c, k->text, k->n, str_of(c, "case"), NULL, 0);
  u32 n = g->region.at[1].ret.n;
  Tensor **out = NEWS(&c->keep, Tensor *, n + 1);
  RefOptions o = {.seed = k->seed & 0xff};
  ref_run(g, &o, k->in[k->nbind - 1], out, &c->keep);
  for (u32 i = 0; i < n; i++) put_array(c, "output", str_text(c, g->out_name.at[i]), out[i]);
}

void case_print(const Case *k, const Verdict *v) {
  static const char *const mode[] = {"exact", "real", "raw"};
  if (v->what[0]) printf("# %s: %s\n", v->what, v->detail);
  printf("# seed %llu, %s\n", (unsigned long long)k->seed, mode[k->mode]);
  if (k->target) printf("# target %s\n", k->target);
  Ctx *c = ctx_new(NULL, NULL);
  ctx_protect(c, print, &(Print){k, v});
  ctx_free(c);
  fwrite(k->text, 1, k->n, stdout);
}
