/* graph_text.c: prints a graph. graph_parse.c reads it back; the two are exact inverses.
 *
 * Values are numbered in the order of their definition in the text, so equal graphs print equally
 * however they were built. A symbol is declared only if something printed mentions it.
 *
 *   graph    = ["ingot" version] "graph" [name] {symbol} params region
 *   symbol   = "sym" name ["data"] "in" integer ".." [integer]    no upper bound: unbounded
 *   params   = "(" [param {"," param}] ")"
 *   param    = value ["pin" constant]                             the contents it holds for
 *   value    = "%" number [label] ":" type ["inline" | "epilogue"]      not in memory, see fuse.c
 *   type     = dtype "[" [dim {"," dim}] "]" | "seq(" type ")" | "opt(" type ")"
 *   region   = "{" {node} "return" [result {"," result}] "}"
 *   result   = "%" number [label] ["next" "%" number]             label and next: outermost region
 *   node     = [value {"," value} "="] op [operands] body [sets] [loc]
 *   operands = "(" [operand {"," operand}] ")"                    only where the op can take any
 *   operand  = "%" number | "_"                                   "_": absent
 *   body     = constant                                           const
 *            | region "else" region                               if
 *            | attrs params region                                loop
 *            | [attrs]                                            others
 *   attrs    = "{" key "=" attr {"," key "=" attr} "}"
 *   attr     = integer | float | dtype | quoted | "[" [dim {"," dim}] "]"
 *   constant = "{" [element {"," element}] "}" | "@weights(" offset "," bytes ")"
 *   sets     = "sym(" name {"," name} ")"                         symbols set by the node's data
 *   loc      = "@(" quoted "," quoted "," integer ")"             operator, name, index of a node
 *
 * A label is quoted, a name is an identifier or quoted. Elements are in row-major order: integers;
 * true and false; floats in the fewest digits that give the same bits back, inf, nan, or bits(HEX)
 * for any other pattern; complex numbers as (re, im); quoted strings. Dimensions: see dim_text.c.
 * "#" starts a comment that ends with the line.
 */
#include "ir/graph/graph.h"
#include "ir/lexer.h"

typedef struct GraphPrint {
  Graph *g;
  StrBuf *t, *weights;
  u32 *num; /* by value; 0: not yet defined */
  u32 next;
  bool *used; /* by symbol */
} GraphPrint;

/* ---- symbols that the text mentions ---- */

static void use_type(GraphPrint *p, const Type *t) {
  for (; t->kind != TY_tensor; t = t->elem) {
  }
  for (u32 i = 0; i < t->rank; i++) dims_mark_used(p->g->dims, t->dim[i], p->used);
}

static void use_region(GraphPrint *p, RegionId b) {
  Graph *g = p->g;
  const GraphRegion *region = &g->region.at[b];
  for (u32 i = 0; i < region->param.n; i++) use_type(p, graph_type(g, region->param.at[i]));
  for (u32 i = 0; i < region->node.n; i++) {
    const Node *n = graph_node(g, region->node.at[i]);
    for (u32 k = 0; k < n->nout; k++) use_type(p, graph_type(g, n->out[k]));
    for (u32 k = 0; k < n->nsym; k++) p->used[n->sym[k]] = true;
    for (u32 k = 0; k < n->nattr; k++) {
      const Attr *a = &n->attr[k];
      if (a->kind != AK_list || !attr_is_dims(a->key)) continue;
      for (u32 j = 0; j < a->n; j++) dims_mark_used(p->g->dims, a->u.list[j], p->used);
    }
    for (u32 k = 0; k < n->nregion; k++) use_region(p, n->region[k]);
  }
}

/* ---- small parts ---- */

static void put_str(GraphPrint *p, Str s) {
  sb_quote(p->t, str_text(p->g->c, s), str_len(p->g->c, s));
}

static void put_layout(GraphPrint *p, const Value *x) {
  sb_fmt(p->t, " layout(%u", x->layout->block);
  for (u32 side = 0; side < 2; side++) {
    sb_puts(p->t, ", [");
    for (u32 i = 2; i < x->type.rank; i++)
      sb_fmt(p->t, i > 2 ? ",%lld" : "%lld",
             (long long)(side ? x->layout->hi[i] : x->layout->lo[i]));
    sb_puts(p->t, "]");
  }
  if (x->layout->fill) sb_fmt(p->t, ", %lld", (long long)x->layout->fill);
  sb_puts(p->t, ")");
}

static void put_value(GraphPrint *p, Val v) {
  p->num[v] = p->next++;
  sb_fmt(p->t, "%%%u", p->num[v]);
  const Value *x = graph_val(p->g, v);
  if (x->name) {
    sb_puts(p->t, " ");
    put_str(p, x->name);
  }
  sb_puts(p->t, ": ");
  type_print(p->g->dims, &x->type, p->t);
  if (x->home != HOME_buffer) sb_fmt(p->t, " %s", home_name[x->home]);
  if (x->layout) put_layout(p, x);
}

static void put_use(GraphPrint *p, Val v) {
  if (v) {
    sb_fmt(p->t, "%%%u", p->num[v]);
  } else {
    sb_puts(p->t, "_");
  }
}

static void put_indent(GraphPrint *p, u32 depth) {
  for (u32 i = 0; i < depth; i++) sb_puts(p->t, "  ");
}

/* ---- nodes and blocks ---- */

static void put_attr(GraphPrint *p, const Attr *a) {
  StrBuf *t = p->t;
  sb_fmt(t, "%s=", attr_name[a->key]);
  switch (a->kind) {
  case AK_int: sb_fmt(t, "%lld", (long long)a->u.i); break;
  case AK_float: lit_float(t, DT_f64, (const u8 *)&a->u.f); break;
  case AK_str: put_str(p, a->u.s); break;
  case AK_dtype: sb_puts(t, dtype_info[a->u.i].name); break;
  case AK_const: break;
  case AK_list:
    sb_puts(t, "[");
    for (u32 i = 0; i < a->n; i++) {
      if (i) sb_puts(t, ",");
      if (attr_is_dims(a->key)) {
        dim_print(p->g->dims, a->u.list[i], t);
      } else {
        sb_fmt(t, "%lld", (long long)a->u.list[i]);
      }
    }
    sb_puts(t, "]");
    break;
  }
}

static void put_attrs(GraphPrint *p, const Node *n) {
  if (n->op == OP_const) {
    sb_puts(p->t, " ");
    lit_tensor(p->t, p->weights, p->g->c, node_attr(n, AT_value)->u.t, GRAPH_INLINE);
  } else if (n->nattr) {
    for (u32 i = 0; i < n->nattr; i++) {
      sb_puts(p->t, i ? ", " : " {");
      put_attr(p, &n->attr[i]);
    }
    sb_puts(p->t, "}");
  }
}

static void put_params(GraphPrint *p, RegionId b) {
  const GraphRegion *region = &p->g->region.at[b];
  sb_puts(p->t, "(");
  for (u32 i = 0; i < region->param.n; i++) {
    if (i) sb_puts(p->t, ", ");
    put_value(p, region->param.at[i]);
    const Tensor *pin = graph_pin(p->g, region->param.at[i]);
    if (!pin) continue;
    sb_puts(p->t, " pin ");
    lit_tensor(p->t, p->weights, p->g->c, pin, GRAPH_INLINE);
  }
  sb_puts(p->t, ")");
}

static void put_region(GraphPrint *p, RegionId b, u32 depth);

static void put_node(GraphPrint *p, const Node *n, u32 depth) {
  StrBuf *t = p->t;
  for (u32 i = 0; i < n->nout; i++) {
    if (i) sb_puts(t, ", ");
    put_value(p, n->out[i]);
  }
  sb_fmt(t, "%s%s", n->nout ? " = " : "", op_info[n->op].name);
  if (op_info[n->op].nin_max) {
    sb_puts(t, "(");
    for (u32 i = 0; i < n->nin; i++) {
      if (i) sb_puts(t, ", ");
      put_use(p, n->in[i]);
    }
    sb_puts(t, ")");
  }
  put_attrs(p, n);
  for (u32 i = 0; i < n->nregion; i++) {
    sb_puts(t, i ? " else " : " ");
    if (n->op == OP_loop) {
      put_params(p, n->region[i]);
      sb_puts(t, " ");
    }
    put_region(p, n->region[i], depth);
  }
  for (u32 i = 0; i < n->nsym; i++) {
    sb_puts(t, i ? ", " : " sym(");
    dim_print(p->g->dims, dim_of_sym(p->g->dims, n->sym[i]), t);
  }
  if (n->nsym) sb_puts(t, ")");
  if (n->loc.op || n->loc.node || n->loc.index >= 0) {
    sb_puts(t, " @(");
    put_str(p, n->loc.op);
    sb_puts(t, ", ");
    put_str(p, n->loc.node);
    sb_fmt(t, ", %d)", n->loc.index);
  }
  sb_puts(t, "\n");
}

static void put_region(GraphPrint *p, RegionId b, u32 depth) {
  Graph *g = p->g;
  const GraphRegion *region = &g->region.at[b];
  sb_puts(p->t, "{\n");
  for (u32 i = 0; i < region->node.n; i++) {
    put_indent(p, depth + 1);
    put_node(p, graph_node(g, region->node.at[i]), depth + 1);
  }
  put_indent(p, depth + 1);
  sb_puts(p->t, "return");
  for (u32 i = 0; i < region->ret.n; i++) {
    sb_puts(p->t, i ? ", " : " ");
    put_use(p, region->ret.at[i]);
    if (b != 1) continue;
    if (i < g->out_name.n && g->out_name.at[i]) {
      sb_puts(p->t, " ");
      put_str(p, g->out_name.at[i]);
    }
    for (u32 k = 0; k < g->state.n; k++) {
      if (g->state.at[k].out != i) continue;
      sb_puts(p->t, " next ");
      put_use(p, g->region.at[1].param.at[g->state.at[k].in]);
      if (g->state.at[k].most) sb_fmt(p->t, " most %lld", (long long)g->state.at[k].most);
      if (g->state.at[k].window) sb_fmt(p->t, " window %lld", (long long)g->state.at[k].window);
      if (!g->state.at[k].start) continue;
      sb_puts(p->t, " from ");
      lit_tensor(p->t, p->weights, g->c, g->state.at[k].start, GRAPH_INLINE);
    }
  }
  sb_puts(p->t, "\n");
  put_indent(p, depth);
  sb_puts(p->t, "}");
}

void graph_print(Graph *g, StrBuf *out, StrBuf *weights) {
  Ctx *c = g->c;
  u32 nsyms = dim_nsyms(g->dims);
  GraphPrint p = {
      g, out, weights, NEWS(&c->scratch, u32, g->val.n), 1, NEWS(&c->scratch, bool, nsyms + 1)};
  use_region(&p, 1);
  lit_header(out, "graph");
  if (g->name) {
    sb_puts(out, " ");
    if (str_is(c, g->name, "sym")) {
      put_str(&p, g->name); /* else it would begin a declaration */
    } else {
      lit_name(out, c, g->name);
    }
  }
  sb_puts(out, "\n");
  lit_symbols(out, c, g->dims, p.used);
  put_params(&p, 1);
  sb_puts(out, " ");
  put_region(&p, 1, 0);
  sb_puts(out, "\n");
}
