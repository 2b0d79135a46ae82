/* inspect.c: reports on a model, on the supported operators and on the passes.
 *
 * In: an open model. Out: text or JSON. The model is imported with open dimensions, or with those
 * the user gave, so that a model with missing facts can be inspected. Multiply-adds are then
 * counted with unknown dimensions as 1.
 */
#include "driver/report/report.h"
#include "pass/kernel/family.h"

#include <stdlib.h>
#include <string.h>

typedef struct Report {
  Ingot *m;
  bool json;
  StrBuf out;
  ModelInfo facts;
  double macs;
  bool sized; /* imported with the sizes of a run */
  const char
      *missing; /* missing dimensions, if it can only be built with guessed ones; else NULL */
  IngotMemory memory;
} Report;

static int by_count(const void *a, const void *b) {
  const OpCount *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  return x->op < y->op ? -1 : x->op > y->op;
}

/* Counts constants of a graph in text form. */
static void count_constants(Report *r, Graph *g) {
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      if (n->op != OP_const) continue;
      r->facts.params += node_attr(n, AT_value)->u.t->n;
      r->facts.bytes += tensor_bytes(node_attr(n, AT_value)->u.t);
    }
}

static void quote_json(Report *r, const char *before, Str s) {
  sb_puts(&r->out, before);
  sb_json(&r->out, str_text(r->m->c, s), str_len(r->m->c, s));
}

static void value_line(Report *r, Str name, const char *type, const QuantParams *s, bool first) {
  if (!r->json) {
    sb_fmt(&r->out, "  %s: %s", show(r->m->c, name), type);
    if (s) sb_fmt(&r->out, ", quantized: %s", api_scale_text(r->m->c, s));
    sb_puts(&r->out, "\n");
    return;
  }
  quote_json(r, first ? "{\"name\":" : ",{\"name\":", name);
  quote_json(r, ",\"type\":", str_of(r->m->c, type));
  if (s)
    sb_fmt(&r->out, ",\"quantized\":{\"scale\":%.9g,\"zero\":%lld}", s->scale, (long long)s->zero);
  sb_puts(&r->out, "}");
}

static void values(Report *r, bool inputs) {
  Graph *g = r->m->g;
  const GraphRegion *b = &g->region.at[1];
  u32 n = inputs ? b->param.n : b->ret.n;
  sb_puts(&r->out, r->json ? (inputs ? "\"inputs\":[" : "\"outputs\":[")
                           : (inputs ? "inputs\n" : "outputs\n"));
  for (u32 i = 0; i < n; i++) {
    Str name = inputs ? graph_val(g, b->param.at[i])->name : g->out_name.at[i];
    const Type *t = graph_type(g, inputs ? b->param.at[i] : b->ret.at[i]);
    value_line(r, name, type_text(g->dims, t), scale_find(&g->scale, name, !inputs), i == 0);
  }
  if (r->json) sb_puts(&r->out, "],");
}

/* Lists the state pairs, or the pairs that --state auto would choose. */
static void state_part(Report *r) {
  Ctx *c = r->m->c;
  Graph *g = r->m->g;
  const GraphRegion *b = &g->region.at[1];
  StatePair *pair = NEWS(&c->scratch, StatePair, b->param.n + 1);
  u32 n = g->state.n;
  for (u32 i = 0; i < n; i++) pair[i] = g->state.at[i];
  if (!n) n = api_find_state(r->m, pair, b->param.n);
  if (!n) return;
  const char *title = g->state.n ? "state, kept from run to run\n" : "may be state: --state auto\n";
  sb_puts(&r->out, r->json ? "\"state\":[" : title);
  for (u32 i = 0; i < n; i++) {
    Str in = graph_val(g, b->param.at[pair[i].in])->name, out = g->out_name.at[pair[i].out];
    GrowingAxis how = state_growth(g, &pair[i]);
    Str with = how.axis == MAX_RANK ? 0 : dim_syminfo(g->dims, how.sym)->name;
    if (!r->json) {
      sb_fmt(&r->out, "  %s -> %s", show(c, in), show(c, out));
      if (with) sb_fmt(&r->out, ", grows: %s", show(c, with));
      sb_puts(&r->out, "\n");
      continue;
    }
    quote_json(r, i ? ",{\"in\":" : "{\"in\":", in);
    quote_json(r, ",\"out\":", out);
    if (with)
      quote_json(r, ",\"grows\":", with);
    else
      sb_puts(&r->out, ",\"grows\":null");
    sb_puts(&r->out, "}");
  }
  if (r->json) sb_puts(&r->out, "],");
}

/* "key value heads":3, */
static void fact_json(Report *r, const ModelInfoItem *f) {
  StrBuf key = sb_new(&r->m->c->scratch);
  for (const char *s = f->name; *s; s++) sb_put(&key, *s == ' ' ? "_" : s, 1);
  sb_fmt(&r->out, "\"%s\":", sb_cstr(&key));
  if (f->text)
    quote_json(r, "", f->text);
  else
    sb_fmt(&r->out, "%llu", (unsigned long long)f->n);
  sb_puts(&r->out, ",");
}

/* Reports a file with weights and metadata, but without operators. */
static void weights_part(Report *r) {
  Ctx *c = r->m->c;
  const ModelInfo *f = &r->facts;
  u32 tensors = 0;
  sb_fmt(&r->out, r->json ? "\"format\":\"%s\"," : "%s", r->m->opened.reader->name);
  if (f->version)
    sb_fmt(&r->out, r->json ? "\"format_version\":%lld," : " version %lld", (long long)f->version);
  sb_puts(&r->out, r->json ? "" : "\n");
  for (u32 i = 0; i < f->more.n; i++) {
    const ModelInfoItem *x = &f->more.at[i];
    if (r->json)
      fact_json(r, x);
    else if (x->text)
      sb_fmt(&r->out, "%s %s\n", x->name, show(c, x->text));
    else
      sb_fmt(&r->out, "%s %llu\n", x->name, (unsigned long long)x->n);
  }
  for (u32 i = 0; i < f->stored.n; i++) tensors += f->stored.at[i].n;
  sb_fmt(&r->out, r->json ? "\"tensors\":[" : "tensors (%u)\n", tensors);
  for (u32 i = 0; i < f->stored.n; i++) {
    const StoredCount *x = &f->stored.at[i];
    sb_fmt(&r->out,
           r->json ? "%s{\"type\":\"%s\",\"count\":%u,\"elements\":%llu,\"bytes\":%llu}"
                   : "%s  %s %u, %llu elements, %llu bytes\n",
           r->json && i ? "," : "", x->kind, x->n, (unsigned long long)x->elems,
           (unsigned long long)x->bytes);
  }
  sb_puts(&r->out, r->json ? "]," : "");
}

/* Some files list a domain twice. */
static bool is_told_before(const ModelInfo *f, u32 i) {
  for (u32 k = 0; k < i; k++)
    if (f->opset.at[k].name == f->opset.at[i].name) return true;
  return false;
}

static void file_part(Report *r) {
  Ctx *c = r->m->c;
  ModelInfo *f = &r->facts;
  r->m->opened.reader->facts(c, r->m->opened.model, f);
  if (f->more.n) {
    weights_part(r);
    return;
  }
  if (r->json)
    sb_fmt(&r->out, "\"ir_version\":%lld,\"opsets\":{", (long long)f->version);
  else
    sb_fmt(&r->out, "%s%s version %lld", r->m->opened.reader->name, f->opset.n ? " IR" : "",
           (long long)f->version);
  for (u32 i = 0; i < f->opset.n; i++) {
    if (is_told_before(f, i)) continue;
    if (r->json) {
      quote_json(r, i ? "," : "", f->opset.at[i].name);
      sb_fmt(&r->out, ":%lld", (long long)f->opset.at[i].version);
    } else {
      sb_fmt(&r->out, ", %s %lld", show(c, f->opset.at[i].name), (long long)f->opset.at[i].version);
    }
  }
  sb_puts(&r->out, r->json ? "}," : "");
  if (!r->json && f->producer) {
    sb_fmt(&r->out, ", made by %s", show(c, f->producer));
    if (f->producer_version) sb_fmt(&r->out, " %s", show(c, f->producer_version));
  }
  if (!r->json) sb_puts(&r->out, "\n");
  if (f->op.n) qsort(f->op.at, f->op.n, sizeof(OpCount), by_count);
  if (r->json)
    sb_puts(&r->out, "\"operators\":{");
  else
    sb_fmt(&r->out, "operators (%u nodes)\n%s", f->nnodes, f->op.n ? " " : "  none");
  for (u32 i = 0; i < f->op.n; i++) {
    if (r->json) {
      quote_json(r, i ? "," : "", f->op.at[i].op);
      sb_fmt(&r->out, ":%u", f->op.at[i].n);
    } else {
      sb_fmt(&r->out, " %s %u", show(c, f->op.at[i].op), f->op.at[i].n);
    }
  }
  sb_puts(&r->out, r->json ? "}," : "\n");
}

static void refusals(Report *r) {
  u32 k = 0;
  sb_puts(&r->out, r->json ? "\"unsupported\":[" : "nodes that are refused\n");
  for (const Diag *d = r->m->c->diags; d; d = d->next) {
    if (d->level != LV_error || d->code != ERR_unsupported) continue;
    if (r->json)
      quote_json(r, k ? "," : "", str_of(r->m->c, d->text));
    else
      sb_fmt(&r->out, "  %s\n", d->text);
    k++;
  }
  if (r->json)
    sb_puts(&r->out, "]");
  else if (!k)
    sb_puts(&r->out, "  none\n");
}

static void graph_part(Report *r) {
  values(r, true);
  values(r, false);
  state_part(r);
  r->macs = graph_macs(r->m->g, false);
  if (!r->m->opened.reader || !r->m->opened.reader->facts) count_constants(r, r->m->g);
  if (r->json)
    sb_fmt(&r->out, "\"parameters\":%llu,\"constant_bytes\":%llu,\"multiply_adds\":%.0f,",
           (unsigned long long)r->facts.params, (unsigned long long)r->facts.bytes, r->macs);
  else
    sb_fmt(&r->out, "parameters %llu (%llu bytes)\nmultiply-adds %.0f%s\n",
           (unsigned long long)r->facts.params, (unsigned long long)r->facts.bytes, r->macs,
           dim_nsyms(r->m->g->dims) ? " (open dimensions taken as 1)" : "");
}

static void bytecode_part(Report *r) {
  Prog *p = r->m->p;
  VmFacts f = vm_facts(r->m->states.vm);
  const char *form = "bytecode version %u: %llu instruction words, %llu registers\n";
  if (r->json)
    form = "\"format\":\"bytecode\",\"format_version\":%u,\"words\":%llu,\"registers\":%llu,";
  sb_fmt(&r->out, form, f.version, (unsigned long long)f.words, (unsigned long long)f.slots);
  for (u32 out = 0; out < 2; out++) {
    u32 n = out ? p->out.n : p->in.n;
    sb_puts(&r->out,
            r->json ? (out ? "\"outputs\":[" : "\"inputs\":[") : (out ? "outputs\n" : "inputs\n"));
    for (u32 i = 0; i < n; i++) {
      const Buf *b = prog_buf(p, out ? p->out.at[i] : p->in.at[i]);
      Type t = type_tensor(&r->m->c->scratch, b->dt, b->dim, b->rank);
      value_line(r, b->name, type_text(p->dims, &t), NULL, i == 0);
    }
    if (r->json) sb_puts(&r->out, "],");
  }
  sb_fmt(&r->out,
         r->json ? "\"weight_bytes\":%llu,\"arena_bytes\":%llu"
                 : "weights %llu bytes\narena %llu bytes\n",
         (unsigned long long)f.weights, (unsigned long long)f.arena);
}

static void declared_line(Report *r, const DeclValue *v, bool first) {
  value_line(r, v->name, decl_type_string(r->m->c, v->name, &v->type), NULL, first);
}

/* Reports the declarations of a model that cannot be built. */
static void declared_part(Report *r) {
  const Model *g = r->m->opened.model;
  sb_puts(&r->out, r->json ? "\"inputs\":[" : "inputs\n");
  for (u32 i = 0; i < g->ninput; i++) declared_line(r, g->input[i], i == 0);
  sb_puts(&r->out, r->json ? "],\"outputs\":[" : "outputs\n");
  for (u32 i = 0; i < g->noutput; i++) declared_line(r, &g->output[i], i == 0);
  sb_fmt(&r->out,
         r->json ? "],\"parameters\":%llu,\"constant_bytes\":%llu,"
                 : "parameters %llu (%llu bytes)\n",
         (unsigned long long)r->facts.params, (unsigned long long)r->facts.bytes);
}

static void memory_json(Report *r, const IngotMemory *x) {
  sb_fmt(&r->out, "\"memory\":{\"weights\":%llu,\"groups\":%u,\"buffers\":%u,\"planned\":%s,",
         (unsigned long long)x->weights, x->groups, x->buffers, x->planned ? "true" : "false");
  if (!x->planned) {
    quote_json(r, "\"why\":", str_of(r->m->c, x->why));
    sb_puts(&r->out, "},");
    return;
  }
  if (x->stack)
    sb_fmt(&r->out,
           "\"kernels\":%u,\"stack\":%llu,\"inputs\":%llu,\"outputs\":%llu,\"ram\":%llu,\"code\":"
           "%llu,",
           x->kernels, (unsigned long long)x->stack, (unsigned long long)x->inputs,
           (unsigned long long)x->outputs, (unsigned long long)x->ram, (unsigned long long)x->code);
  sb_fmt(&r->out, "\"arena\":%llu,\"lower_bound\":%llu,\"naive\":%llu,\"reuse\":%.3f,\"peak\":[",
         (unsigned long long)x->arena, (unsigned long long)x->lower_bound,
         (unsigned long long)x->naive, x->arena ? (double)x->naive / (double)x->arena : 1);
  for (u32 i = 0; i < x->npeak; i++) {
    quote_json(r, i ? ",{\"name\":" : "{\"name\":", str_of(r->m->c, x->peak[i].name));
    sb_fmt(&r->out, ",\"bytes\":%llu}", (unsigned long long)x->peak[i].bytes);
  }
  sb_puts(&r->out, "]},");
}

static void memory_text(Report *r, const IngotMemory *x) {
  if (x->groups) {
    sb_fmt(&r->out, "groups %u, ", x->groups);
    if (x->stack) sb_fmt(&r->out, "distinct kernels %u, ", x->kernels);
    sb_fmt(&r->out, "buffers %u\nweights %llu bytes\n", x->buffers, (unsigned long long)x->weights);
  }
  if (!x->planned) {
    sb_fmt(&r->out, "memory is not planned: %s\n", x->why);
    return;
  }
  sb_fmt(&r->out, "arena %llu bytes, at least %llu; %llu without reuse",
         (unsigned long long)x->arena, (unsigned long long)x->lower_bound,
         (unsigned long long)x->naive);
  if (x->arena) sb_fmt(&r->out, ", %.1f times as much", (double)x->naive / (double)x->arena);
  if (x->stack)
    sb_fmt(&r->out,
           "\nstack %llu bytes at most, inputs %llu, outputs %llu: %llu bytes of RAM in all\n"
           "code about %llu bytes",
           (unsigned long long)x->stack, (unsigned long long)x->inputs,
           (unsigned long long)x->outputs, (unsigned long long)x->ram, (unsigned long long)x->code);
  sb_puts(&r->out, x->npeak ? "\nalive at the peak\n" : "\n");
  for (u32 i = 0; i < x->npeak; i++) {
    const IngotTensor *t = &x->peak[i];
    sb_fmt(&r->out, "  %s: %s %llu bytes\n", show(r->m->c, str_of(r->m->c, t->name)),
           shape_text(r->m->c, t->dtype, t->dim, t->rank), (unsigned long long)t->bytes);
  }
}

static void try_memory(Ctx *c, void *arg) {
  Report *r = arg;
  (void)c;
  if (r->m->opened.model && !r->m->passed && !r->sized) r->m->g = NULL;
  api_import(r->m, false); /* with the dimensions of a run */
  api_memory(r->m, &r->memory);
}

/* Must be last: the passes change the graph. */
static void memory_part(Report *r) {
  const char *why = "";
  Graph *g = r->m->g;
  r->memory = (IngotMemory){.why = r->missing ? r->missing : ""};
  if (!r->missing && ctx_try(r->m->c, try_memory, r, &why)) r->memory.why = why;
  if (!r->m->g) r->m->g = g;
  if (r->json)
    memory_json(r, &r->memory);
  else
    memory_text(r, &r->memory);
}

static void try_import(Ctx *c, void *m) {
  (void)c;
  api_import(m, true);
}

static void try_sizes(Ctx *c, void *m) {
  (void)c;
  api_import(m, false);
}

/* Imports with open dimensions. If that is refused, imports with the sizes of a run and drops the
 * earlier messages, or with guessed sizes if some are missing. A model that needs a value
 * (--freeze) is reported as declared. */
static Err import_any(Report *r) {
  Ctx *c = r->m->c;
  DiagMark before = diag_mark(c);
  Err e = ctx_protect(c, try_import, r->m);
  if (e != ERR_unsupported && e != ERR_input) return e;
  DiagMark open = diag_mark(c);
  Diag *first = *before.end;
  const char *why;
  u32 errors = 0; /* several: the model also has operators that are not supported */
  for (const Diag *d = first; d; d = d->next) errors += d->level == LV_error;
  bool needs_value = r->m->opened.undecided && errors == 1;
  diag_rewind(c, before);
  Err bad = ctx_try(c, try_sizes, r->m, &why);
  needs_value = needs_value || (r->m->opened.undecided && bad == ERR_input);
  r->sized = !bad;
  if (bad && (r->m->options.hint.n || needs_value)) r->missing = why;
  if (r->sized || r->missing) return ERR_ok;
  diag_rewind(c, open);
  *before.end = first;
  return e;
}

static void inspect(Ingot *m, bool json, const char **text, size_t *n, Err *code) {
  Ctx *c = m->c;
  api_need(c, text && n ? text : NULL, "a pointer to the text");
  api_need_single_variant(m);
  Report r = {.m = m, .json = json, .out = sb_new(&c->keep)};
  *code = import_any(&r);
  if (*code && *code != ERR_unsupported) diag_raise(c);
  if (r.json) sb_puts(&r.out, "{");
  if (m->opened.reader && m->opened.reader->facts) file_part(&r);
  if (api_is_bytecode(m)) {
    if (*code) diag_raise(c);
    bytecode_part(&r);
    sb_puts(&r.out, r.json ? "}\n" : "");
    api_return_text(&r.out, text, n);
    return;
  }
  if (m->g)
    graph_part(&r);
  else if (m->opened.model)
    declared_part(&r);
  if ((m->g || m->p || r.missing) && !*code) memory_part(&r);
  refusals(&r);
  if (r.json) sb_puts(&r.out, "}\n");
  api_return_text(&r.out, text, n);
}

static IngotStatus try_inspect(Ingot *m, bool json, const char **text, size_t *n, Err *code) {
  API_CALL(m, inspect(m, json, text, n, code));
}

IngotStatus ingot_inspect(Ingot *m, int json, const char **text, size_t *n) {
  Err code = ERR_ok;
  api_return_text(NULL, text, n);
  IngotStatus s = try_inspect(m, json != 0, text, n, &code);
  return s ? s : (IngotStatus)code;
}

/* ---- lists ---- */

static void op_line(StrBuf *out, const ReaderOp *o, bool json, bool first) {
  if (json) {
    sb_fmt(out, "%s\n{\"domain\":\"%s\",\"name\":\"%s\",\"since\":%d,\"until\":", first ? "" : ",",
           o->domain, o->name, o->since);
    if (o->until)
      sb_fmt(out, "%d}", o->until);
    else
      sb_puts(out, "null}");
  } else {
    sb_fmt(out, "%-14s %-32s ", o->domain, o->name);
    if (!o->since)
      sb_puts(out, "every version\n");
    else if (o->until)
      sb_fmt(out, "opset %d to %d\n", o->since, o->until);
    else
      sb_fmt(out, "opset %d and later\n", o->since);
  }
}

static void list_ops(Ingot *m, bool json, StrBuf *out) {
  u32 n = 0;
  (void)m;
  if (json) sb_puts(out, "[");
  for (u32 k = 0; k < reader_count; k++) {
    ReaderOp o;
    for (u32 i = 0; reader_table[k].op && reader_table[k].op(i, &o); i++)
      op_line(out, &o, json, n++ == 0);
  }
  if (json) sb_puts(out, "\n]\n");
}

IngotStatus ingot_ops(Ingot *m, int json, const char **text, size_t *n) {
  return api_call_text(m, list_ops, json != 0, text, n);
}

static void list_passes(Ingot *m, bool json, StrBuf *out) {
  (void)m, (void)json;
  for (u32 i = 0; i < pass_count; i++)
    sb_fmt(out, "%-10s %s%s\n", pass_table[i].name, pass_table[i].text,
           pass_table[i].exact == PX_exact ? "" : " (last bits may change)");
}

IngotStatus ingot_pass_list(Ingot *m, const char **text, size_t *n) {
  return api_call_text(m, list_passes, false, text, n);
}

/* ---- fusion and families ---- */

static void explain(Ingot *m, bool json, StrBuf *out) {
  (void)json;
  api_need_single_entry(m);
  api_run_passes(m, &(IngotPassOptions){.stop = "canon"});
  if (!m->g) fail(m->c, ERR_usage, LOC_NONE, "--explain: expected a graph, found a program");
  Graph *g = graph_copy(m->g); /* without the marks of fuse */
  fuse_explain(m->g, out);
  m->g = g;
  m->passed = false;
  api_run_passes(m, &(IngotPassOptions){.start = "widen_f16", .stop = "lower"});
  family_list(m->p, out);
}

IngotStatus ingot_explain(Ingot *m, const char **text, size_t *n) {
  return api_call_text(m, explain, false, text, n);
}
