/* native_graphs.c: the graphs of a program as C.
 *
 * In: the result of a dry run, or NULL. Out: C functions and the table for tools/script_tensor.c:
 * the key of a graph, and a function with arrays of pointers to operands and results. The pipeline
 * is that of `ingot run`, so results have the same bits.
 */
#include "lang/run/dry.h"
#include "lang/run/native.h"
#include "ir/prog/prog.h"

#include <string.h>

static void put_key(StrBuf *out, u32 i, const DryKey *k) {
  const u8 *at = k->at;
  sb_fmt(out, "static const unsigned char key_%u[] = {", i);
  for (size_t b = 0; b < k->n; b++) sb_fmt(out, b % 32 ? "%u," : "\n%u,", at[b]);
  sb_puts(out, "};\n");
}

/* type: element type of operands and results */
static void put_call(StrBuf *out, const char *name, u32 i, const Ingot *x, const char *type) {
  const Prog *p = x->p;
  sb_fmt(out,
         "static int %s_%u(void *arena, %s *const *in, %s *const *out) {\n"
         "  return tensors_%s_run(arena",
         name, i, type, type, x->entries.entry);
  for (u32 k = 0; k < p->in.n; k++) sb_fmt(out, ", in[%u]", k);
  for (u32 k = 0; k < p->out.n; k++) sb_fmt(out, ", out[%u]", k);
  sb_puts(out, ");\n}\n");
}

static void put_table(const DryRun *d, u64 arena, StrBuf *out) {
  u32 n = d ? d->graph.n : 0;
  for (u32 i = 0; i < n; i++) {
    put_key(out, i, &d->key.at[i]);
    put_call(out, "graph", i, d->graph.at[i], "double");
  }
  sb_puts(out, "const Made script_made[] = {\n");
  for (u32 i = 0; i < n; i++)
    sb_fmt(out, "  {key_%u, %zu, 0x%016llxu, graph_%u},\n", i, d->key.at[i].n,
           (unsigned long long)hash_bytes(d->key.at[i].at, d->key.at[i].n), i);
  sb_fmt(out, "  {NULL, 0, 0, NULL}};\nconst uint32_t script_nmade = %u;\n", n);
  sb_fmt(out, "const size_t script_arena = %llu;\n", (unsigned long long)arena);
}

static void put_ports(StrBuf *out, const Prog *p, bool results) {
  u32 n = results ? p->out.n : p->in.n;
  sb_fmt(out, " %u, (const Port[]){", n);
  for (u32 i = 0; i < n; i++) {
    const Buf *b = prog_buf(p, results ? p->out.at[i] : p->in.at[i]);
    sb_fmt(out, "{DT_%s, %u, (const i64[]){", dtype_info[b->dt].name, b->rank);
    for (u32 k = 0; k < b->rank; k++) sb_fmt(out, "%lld, ", (long long)b->dim[k]);
    sb_puts(out, "0}}, ");
  }
  sb_puts(out, "{DT_none, 0, NULL}},");
}

static void put_nets(const DryRun *d, StrBuf *out) {
  u32 n = d ? d->net.n : 0;
  for (u32 i = 0; i < n; i++) put_call(out, "net", i, d->net.at[i].x, "void");
  sb_puts(out, "const Net script_net[] = {\n");
  for (u32 i = 0; i < n; i++) {
    sb_puts(out, "  {");
    emit_string(out, d->net.at[i].path, strlen(d->net.at[i].path));
    sb_puts(out, ",");
    put_ports(out, d->net.at[i].x->p, false);
    put_ports(out, d->net.at[i].x->p, true);
    sb_fmt(out, " net_%u},\n", i);
  }
  sb_fmt(out, "  {NULL, 0, NULL, 0, NULL, NULL}};\nconst uint32_t script_nnet = %u;\n", n);
}

void native_graphs(DryRun *d, StrBuf *out) {
  u64 arena = 0;
  if (d && d->nentry) {
    StrBuf source = sb_new(&d->m->c->keep), header = sb_new(&d->m->c->keep);
    /* as in force.c */
    for (u32 i = 0; i < d->graph.n; i++)
      api_run_passes(d->graph.at[i], &(IngotPassOptions){.skip = "canon"});
    IngotCodegen o = {.name = "tensors", .selftest = -1};
    arena = api_emit(d->m, &o, false, &source, &header).arena_bytes;
    sb_puts(out, "\n/* ---- graphs ---- */\n\n");
    sb_put(out, source.at, source.n);
    sb_puts(out, "\n");
  }
  put_table(d, arena, out);
  put_nets(d, out);
}
