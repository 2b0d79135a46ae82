/* report_memory.c: buffers of a program for the HTML report.
 *
 * In: a program. Out: all buffers, with offset and live range if it is planned; the kernels on the
 * time axis; the largest constants.
 */
#include "driver/report/report.h"
#include "pass/memory/live.h"

#include <stdlib.h>

enum { WEIGHTS_SHOWN = 300 };

static void put_buf(PageReport *r, BufId id, bool first) {
  const Buf *b = prog_buf(r->p, id);
  Type type = type_tensor(&r->c->scratch, b->dt, b->dim, b->rank);
  u64 bytes = 0;
  Sym sym;
  if (!mem_bytes(r->p, id, &bytes, &sym)) bytes = 0;
  sb_fmt(&r->out, first ? "\n{\"id\":%u" : ",\n{\"id\":%u", id);
  page_str(r, ",\"name\":", b->name);
  page_cstr(&r->out, ",\"type\":", type_text(r->p->dims, &type));
  sb_fmt(&r->out, ",\"space\":\"%s\",\"bytes\":%llu", buf_space_name[b->space],
         (unsigned long long)bytes);
}

/* Prints all buffers of kernels except views and registers. */
static void put_bufs(PageReport *r, const LiveRanges *l) {
  bool first = true;
  sb_puts(&r->out, ",\n\"buffers\":[");
  for (BufId b = 1; b < r->p->buf.n; b++) {
    const Buf *x = prog_buf(r->p, b);
    if (x->alias || x->space == BS_reg) continue;
    put_buf(r, b, first);
    first = false;
    u32 life = l ? l->of[b] : 0;
    const PlaceItem *it = life ? &l->item[life - 1] : NULL;
    if (it && it->first <= it->last)
      sb_fmt(&r->out, ",\"at\":%llu,\"life\":[%u,%u]", (unsigned long long)x->offset, it->first,
             it->last);
    sb_puts(&r->out, "}");
  }
  sb_puts(&r->out, "]");
}

static void put_figures(PageReport *r) {
  const IngotMemory *x = &r->memory;
  sb_fmt(&r->out,
         ",\n\"memory\":{\"planned\":%s,\"arena\":%llu,\"bound\":%llu,\"naive\":%llu,"
         "\"weights\":%llu,\"stack\":%llu,\"inputs\":%llu,\"outputs\":%llu,\"ram\":%llu,"
         "\"code\":%llu",
         x->planned ? "true" : "false", (unsigned long long)x->arena,
         (unsigned long long)x->lower_bound, (unsigned long long)x->naive,
         (unsigned long long)x->weights, (unsigned long long)x->stack,
         (unsigned long long)x->inputs, (unsigned long long)x->outputs, (unsigned long long)x->ram,
         (unsigned long long)x->code);
  page_cstr(&r->out, ",\"why\":", x->why);
  sb_puts(&r->out, "}");
}

void page_memory(PageReport *r) {
  put_figures(r);
  if (!r->memory.planned) {
    put_bufs(r, NULL);
    sb_puts(&r->out, ",\n\"points\":[]");
    return;
  }
  LiveRanges l = live_find(r->p, &r->c->scratch);
  put_bufs(r, &l);
  sb_puts(&r->out, ",\n\"points\":["); /* indices of kernels; -1: other statements */
  for (u32 i = 0; i < l.npoint; i++)
    sb_fmt(&r->out, i ? ",%d" : "%d", (int)r->kernel_at[l.point[i]] - 1);
  sb_puts(&r->out, "]");
}

/* ---- constants ---- */

typedef struct WeightSize {
  BufId buf;
  u64 bytes;
} WeightSize;

static int by_bytes(const void *a, const void *b) {
  const WeightSize *x = a, *y = b;
  if (x->bytes != y->bytes) return x->bytes < y->bytes ? 1 : -1;
  return x->buf < y->buf ? -1 : x->buf > y->buf;
}

/* Prints the largest constants; counts the rest. */
void page_weights(PageReport *r) {
  WeightSize *w = NEWS(&r->c->keep, WeightSize, r->p->buf.n + 1);
  u32 n = 0;
  u64 rest = 0;
  for (BufId b = 1; b < r->p->buf.n; b++) {
    const Buf *x = prog_buf(r->p, b);
    if (x->space == BS_const && x->data && !x->alias)
      w[n++] = (WeightSize){b, tensor_bytes(x->data)};
  }
  if (n) qsort(w, n, sizeof *w, by_bytes);
  sb_puts(&r->out, ",\n\"weights\":[");
  for (u32 i = 0; i < n && i < WEIGHTS_SHOWN; i++)
    sb_fmt(&r->out, "%s[%u,%llu]", i ? "," : "", w[i].buf, (unsigned long long)w[i].bytes);
  for (u32 i = WEIGHTS_SHOWN; i < n; i++) rest += w[i].bytes;
  sb_fmt(&r->out, "],\"more_weights\":[%u,%llu]", n > WEIGHTS_SHOWN ? n - WEIGHTS_SHOWN : 0,
         (unsigned long long)rest);
}
