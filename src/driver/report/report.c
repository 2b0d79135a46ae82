/* report.c: the HTML report of a model.
 *
 * In: an open model from which nothing was made; earlier measurements. Out: tools/report.html with
 * one block of JSON, which the script of the page shows. The page loads nothing from outside.
 * Method: import the model, keep a copy of its graph, and run the passes (or ingot_bench, to
 * measure kernels). report_graph.c and report_memory.c write the parts of the data.
 */
#include "driver/report/report.h"

#include <string.h>

extern const unsigned char report_text[];
extern const size_t report_text_size;

/* Placeholder of the data. */
static const char mark[] = "${data}";

/* ---- facts ---- */

static void put_fact(PageReport *r, bool *any, const char *name, const char *text) {
  page_cstr(&r->out, *any ? ",[" : "[", name);
  page_cstr(&r->out, ",", text);
  sb_puts(&r->out, "]");
  *any = true;
}

static void put_facts(PageReport *r) {
  Ctx *c = r->c;
  const Reader *reader = r->m->opened.reader;
  ModelInfo f = {0};
  bool any = false;
  sb_puts(&r->out, ",\n\"facts\":[");
  if (reader) put_fact(r, &any, "format", reader->name);
  if (reader && reader->facts && r->m->opened.model) reader->facts(c, r->m->opened.model, &f);
  for (u32 i = 0; i < f.opset.n; i++)
    put_fact(r, &any, "operators of",
             fmt_text(c, "%s %lld", show(c, f.opset.at[i].name), (long long)f.opset.at[i].version));
  if (f.producer)
    put_fact(r, &any, "made by",
             fmt_text(c, "%s %s", show(c, f.producer), show(c, f.producer_version)));
  for (u32 i = 0; i < f.more.n; i++)
    put_fact(r, &any, f.more.at[i].name,
             f.more.at[i].text ? show(c, f.more.at[i].text)
                               : fmt_text(c, "%llu", (unsigned long long)f.more.at[i].n));
  sb_fmt(&r->out, "],\"file_nodes\":%u,\"parameters\":%llu,\"macs\":%.0f", f.nnodes,
         (unsigned long long)f.params, r->m->facts.macs);
}

static void put_port(PageReport *r, Str name, const char *type, bool first) {
  page_str(r, first ? "[" : ",[", name);
  page_cstr(&r->out, ",", type);
  sb_puts(&r->out, "]");
}

static void put_ports(PageReport *r) {
  Graph *g = r->whole;
  const GraphRegion *b = g ? &g->region.at[1] : NULL;
  for (u32 out = 0; out < 2; out++) {
    sb_puts(&r->out, out ? "],\"outputs\":[" : ",\n\"inputs\":[");
    for (u32 i = 0; b && i < (out ? b->ret.n : b->param.n); i++) {
      Val v = out ? b->ret.at[i] : b->param.at[i];
      put_port(r, out ? g->out_name.at[i] : graph_val(g, v)->name,
               type_text(g->dims, graph_type(g, v)), i == 0);
    }
  }
  sb_puts(&r->out, "]");
}

static void put_messages(PageReport *r) {
  bool first = true;
  sb_puts(&r->out, ",\n\"messages\":[");
  for (const Diag *d = r->c->diags; d; d = d->next) {
    page_cstr(&r->out, first ? "" : ",", d->text);
    first = false;
  }
  sb_puts(&r->out, "]");
}

/* ---- measurements ---- */

static void put_bench(PageReport *r) {
  const IngotBench *b = &r->bench;
  StrBuf *t = &r->out;
  sb_fmt(t, ",\n\"bench\":{\"n\":%d", b->n);
  page_number(t, ",\"min\":", b->min_ms);
  page_number(t, ",\"p50\":", b->p50_ms);
  page_number(t, ",\"p99\":", b->p99_ms);
  page_number(t, ",\"gflops\":", b->peak_gflops);
  page_number(t, ",\"gbps\":", b->peak_gbps);
  page_cstr(t, ",\"cpu\":", b->cpu);
  sb_fmt(t, ",\"text\":%llu,\"data\":%llu,\"threads\":%u}", (unsigned long long)b->text_bytes,
         (unsigned long long)b->data_bytes, b->threads);
}

static void put_errors(PageReport *r) {
  const IngotReport *o = r->o;
  StrBuf *t = &r->out;
  page_cstr(t, ",\n\"engine\":", o->engine);
  sb_puts(t, ",\"errors\":[");
  for (u32 i = 0; i < o->nvalue; i++) {
    const IngotValueDiff *v = &o->value[i];
    page_cstr(t, i ? ",\n{\"value\":" : "\n{\"value\":", v->value);
    page_cstr(t, ",\"node\":", v->node);
    if (v->diff) {
      page_number(t, ",\"abs\":", v->diff->max_abs);
      page_number(t, ",\"rel\":", v->diff->max_rel);
      page_number(t, ",\"cos\":", v->diff->cosine);
      sb_fmt(t, ",\"ulp\":%llu,\"ok\":%d", (unsigned long long)v->diff->max_ulp, v->diff->ok);
    }
    sb_puts(t, "}");
  }
  sb_puts(t, "]");
}

static void put_layers(PageReport *r) {
  const IngotQuantized *q = r->o->quantized;
  StrBuf *t = &r->out;
  page_cstr(t, ",\n\"quantized\":{\"method\":", q->method);
  sb_fmt(t, ",\"before\":%llu,\"after\":%llu", (unsigned long long)q->before,
         (unsigned long long)q->after);
  page_number(t, ",\"sqnr\":", q->holdout.examples ? q->holdout.sqnr : q->data.sqnr);
  sb_puts(t, ",\"layers\":[");
  for (u32 i = 0; i < q->nlayer; i++) {
    const IngotLayer *l = &q->layer[i];
    page_cstr(t, i ? ",\n{\"name\":" : "\n{\"name\":", l->name);
    page_cstr(t, ",\"op\":", l->op);
    page_number(t, ",\"sqnr\":", l->sqnr);
    page_number(t, ",\"mse\":", l->mse);
    page_number(t, ",\"max\":", l->max_error);
    sb_fmt(t, ",\"before\":%llu,\"after\":%llu", (unsigned long long)l->before,
           (unsigned long long)l->after);
    page_cstr(t, ",\"stays\":", l->kept ? l->why : "");
    sb_puts(t, "}");
  }
  sb_puts(t, "]}");
}

/* ---- the page ---- */

static const char *model_name(Ingot *m) {
  const char *path =
      m->opened.source.path ? m->opened.source.path : str_text(m->c, m->opened.source.file);
  const char *slash = strrchr(path, '/');
  return slash && slash[1] ? slash + 1 : path;
}

static void put_data(PageReport *r) {
  StrBuf *t = &r->out;
  page_cstr(t, "{\"ingot\":", INGOT_VERSION);
  page_cstr(t, ",\"model\":", model_name(r->m));
  page_cstr(t, ",\"target\":", api_program_target(r->m)->name);
  put_facts(r);
  put_ports(r);
  put_messages(r);
  page_nodes(r);
  page_kernels(r);
  page_memory(r);
  page_weights(r);
  if (r->o->bench) put_bench(r);
  if (r->o->value) put_errors(r);
  if (r->o->quantized) put_layers(r);
  sb_puts(t, "}");
}

/* Imports and makes the program, by ingot_bench if measurements are wanted. */
static void make_program(PageReport *r) {
  Ingot *m = r->m;
  if (m->passed || m->p) fail(r->c, ERR_usage, LOC_NONE, "expected a model before the passes");
  m->runs = r->o->bench != NULL;
  api_import(m, false);
  api_need_model(m, "a report");
  if (m->g) page_assign_locs(r->c, m->g);
  r->whole = m->g ? graph_copy(m->g) : NULL;
  if (r->o->bench) {
    IngotBuild build = *r->o->bench;
    build.c.profile = 1;
    Bench b = {.m = m,
               .name = "c",
               .build = &build,
               .seconds = r->o->seconds > 0 ? r->o->seconds : 1,
               .seed = r->o->seed,
               .out = &r->bench};
    api_bench(&b);
  }
  api_memory(m, &r->memory);
  r->p = m->p;
}

static void report(Ingot *m, const IngotReport *o, const char **html, size_t *n) {
  static const IngotReport plain;
  Ctx *c = m->c;
  api_need(c, html && n ? html : NULL, "a pointer to the page");
  api_need_single_variant(m);
  api_need_single_entry(m);
  PageReport r = {.m = m, .c = c, .o = o ? o : &plain, .out = sb_new(&c->keep)};
  const char *page = (const char *)report_text;
  size_t at = 0;
  while (memcmp(page + at, mark, sizeof mark - 1)) at++;
  make_program(&r);
  page_gather(&r);
  sb_put(&r.out, page, at);
  put_data(&r);
  at += sizeof mark - 1;
  sb_put(&r.out, page + at, report_text_size - at);
  api_return_text(&r.out, html, n);
}

IngotStatus ingot_report(Ingot *m, const IngotReport *o, const char **html, size_t *n) {
  api_return_text(NULL, html, n);
  API_CALL(m, report(m, o, html, n));
}
