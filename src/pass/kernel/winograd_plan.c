/* winograd_plan.c: selects the 3x3 convolutions that use Winograd, and their patch size.
 *
 * In: a graph. Out: F(4x4), F(2x2) or direct for every constant that such convolutions read. All
 * readers of a constant get the same choice, so that they share the transformed weights. F(4x4)
 * multiplies the size of weights by 4, F(2x2) by 16/9. On small images, reading them takes longer
 * than the saved multiplications.
 *
 * Method: estimates the time of each choice in multiply-adds, from the patches and from loading the
 * weights from memory. Each constant takes the choice that minimizes time + price * bytes. The
 * price is 0 if total weights stay within wino_most times the model's, or within wino_free extra
 * bytes. Otherwise it is the smallest price that keeps them there. The price has a cap: a layer
 * that speeds the model up by wino_worth % per 1 % of growth keeps Winograd, and a warning reports
 * the growth.
 */
#include "ir/prog/cost.h"
#include "pass/kernel/family.h"
#include "pass/form/segment.h"
#include "pass/kernel/tune_table.h"

#include <math.h>

enum { CHOICES = 3 };

static const u32 patch[CHOICES] = {4, 2, 0}; /* least accurate first */
static const double growth[CHOICES] = {4, 16. / 9, 1};

/* A constant that convolutions read. */
typedef struct Weights {
  double bytes;         /* size in the model */
  double time[CHOICES]; /* total of all readers */
  u32 first, choice;    /* first choice that is accurate enough, and the choice taken */
} Weights;

typedef struct WinoPlan {
  Map number; /* data address -> index in w + 1 */
  VEC(Weights) w;
} WinoPlan;

bool winograd_one_pass(const Target *t, u32 m, i64 in, i64 out, i64 all) {
  return (m + 2) * (m + 2) * in * out * 4 > (i64)figures.llc_bytes &&
         all <= 2 * (i64)t->cost->tile_rows;
}

i64 winograd_patches(const Target *t, u32 m, i64 in, i64 out, i64 all) {
  i64 places = (m + 2) * (m + 2), rows = (i64)t->cost->tile_rows,
      each = (i64)figures.block_bytes / (places * (in + out) * 4) / rows * rows;
  return winograd_one_pass(t, m, in, out, all) ? all : each < rows ? rows : each;
}

/* ---- estimates ---- */

/* Bytes of a weight in memory. */
static i64 weight_bytes(DType dt) {
  return dt == DT_f32 ? 4 : 2;
}

static double conv_time(const PassCtx *u, u32 m, DType dt, const Type *k, const Type *o) {
  i64 out = k->dim[0], in = k->dim[1], high = o->dim[2], wide = o->dim[3],
      images = dim_is_const(o->dim[0]) ? o->dim[0] : 1;
  i64 all = m ? (high + m - 1) / m * ((wide + m - 1) / m) : high * wide;
  i64 again = m ? (all - 1) / winograd_patches(u->target, m, in, out, all) : 0;
  ConvWork w = {.m = m, .in = (double)in, .out = (double)out, .dot_i16x2 = dt != DT_f32};
  w.places = (double)images * (double)all;
  w.each_bytes = (double)weight_bytes(dt);
  w.again = (double)again;
  return conv3x3_time(u->target, &w);
}

/* Is n a convolution of int8 that is stored as int16? */
static bool is_integer(Graph *g, const Node *n) {
  i64 none;
  Val zero, q = graph_narrow(g, n->in[0], &none);
  return graph_type(g, n->out[0])->dt == DT_i32 && q && !none && graph_type(g, q)->dt == DT_i16 &&
         graph_bytes_and_zero(g, q, &zero);
}

/* First choice whose integer sums fit in 32 bits, with the scales of lower_winograd.c: 64 and 4. */
static u32 first_exact(const Tensor *k) {
  double most = 0;
  u64 each = k->n / (u64)k->dim[0];
  for (u64 i = 0; i < k->n; i += each) {
    double sum = 0;
    for (u64 j = 0; j < each; j++) sum += fabs((double)tensor_get(k, i + j).i);
    most = fmax(most, 255 * sum);
  }
  return most * 64 < 0x1p31 ? 0 : most * 4 < 0x1p31 ? 1 : 2;
}

/* Plan of the constant that n reads; NULL: lower_winograd.c does not support n. */
static Weights *weights_of(const PassCtx *u, WinoPlan *p, const Node *n) {
  WindowDim s[MAX_RANK];
  i64 least = (i64)figures.wino_channels;
  const Tensor *k = graph_const(u->g, n->in[1]);
  if (!k || (k->dt != DT_f32 && !is_integer(u->g, n)) || node_int(n, AT_group, 1) != 1 ||
      k->dim[0] < least || k->dim[1] < least || conv_windows(u->g, n, s) != 2)
    return NULL;
  for (u32 i = 0; i < 2; i++)
    if (!dim_is_const(s[i].places) || s[i].places < 4 || s[i].size != 3 || s[i].stride != 1 ||
        s[i].dilation != 1 || s[i].input_dilation > 1)
      return NULL;
  u32 *number = map_put(&p->number, (u64)(uintptr_t)k->data);
  if (!*number) {
    *vec_push(&u->c->scratch, &p->w) =
        (Weights){.bytes = (double)k->n * (double)weight_bytes(k->dt)};
    *number = p->w.n;
  }
  return &p->w.at[*number - 1];
}

static void add_reader(const PassCtx *u, const Node *n, Weights *w) {
  const Type *o = graph_type(u->g, n->out[0]), *k = graph_type(u->g, n->in[1]);
  const Tensor *t = graph_const(u->g, n->in[1]);
  w->first = t->dt == DT_i32 ? first_exact(t) : k->dim[0] > 256 || k->dim[1] > 256 || u->precise;
  for (u32 i = 0; i < CHOICES; i++) w->time[i] += conv_time(u, patch[i], t->dt, k, o);
}

/* Takes the best choices at that price and returns the total bytes. */
static double choose(WinoPlan *p, double price) {
  double all = 0;
  for (u32 i = 0; i < p->w.n; i++) {
    Weights *w = &p->w.at[i];
    double least = 0;
    for (u32 k = w->first; k < CHOICES; k++) {
      double cost = w->time[k] + price * growth[k] * w->bytes;
      if (k > w->first && cost >= least) continue;
      least = cost;
      w->choice = k;
    }
    all += growth[w->choice] * w->bytes;
  }
  return all;
}

static double const_bytes(Graph *g) {
  double all = 0;
  for (RegionId b = 1; b < g->region.n; b++)
    for (u32 i = 0; i < g->region.at[b].node.n; i++) {
      const Node *n = graph_node(g, g->region.at[b].node.at[i]);
      if (n->op == OP_const) all += (double)tensor_bytes(node_attr(n, AT_value)->u.t);
    }
  return all;
}

/* A warning if the transformed weights need much more memory than the model's. The caller may drop
 * this program for another one. */
static const char *growth_text(const PassCtx *u, const WinoPlan *p, double model, double more) {
  StrBuf t = sb_new(&u->c->keep);
  u32 n = 0;
  for (u32 i = 0; i < p->w.n; i++) n += p->w.at[i].choice < CHOICES - 1;
  sb_fmt(&t,
         "the weights grow from %.1f to %.1f MB: Winograd's method transforms those of %u 3x3 "
         "convolutions; --optimize-for size avoids it",
         model / 1e6, (model + more) / 1e6, n);
  return sb_cstr(&t);
}

/* Growth of the weights that causes a warning: fraction of the model, and bytes. */
#define NOTED_GROWTH 0.2
#define NOTED_BYTES  (4 << 20)

static void limit_growth(PassCtx *u, WinoPlan *p) {
  double model = const_bytes(u->g), own = 0, low = 0;
  for (u32 i = 0; i < p->w.n; i++) own += p->w.at[i].bytes;
  double room = fmax((figures.wino_most - 1) * model, figures.wino_free);
  double high = figures.wino_worth * graph_macs(u->g, true) / (model + 1);
  double all = choose(p, 0);
  for (u32 i = 0; i < 40 && all > own + room; i++) {
    double mid = (low + high) / 2;
    if (choose(p, mid) <= own + room)
      high = mid;
    else
      low = mid;
  }
  if (all > own + room) all = choose(p, high);
  if (all - own > fmax(NOTED_GROWTH * model, NOTED_BYTES))
    u->grown = growth_text(u, p, model, all - own);
}

/* Choice for a convolution with these weights. Autotuning can select neither a less accurate choice
 * nor one that exceeds the size limit. */
static u32 tuned_choice(const PassCtx *u, const Node *n, const Weights *w, ConvPlan *to) {
  const Type *k = graph_type(u->g, n->in[1]), *o = graph_type(u->g, n->out[0]);
  Str text[CHOICES];
  u32 count = CHOICES - w->choice;
  if (!u->tune || count == 1) return w->choice;
  for (u32 i = 0; i < count; i++) {
    u32 m = patch[w->choice + i];
    text[i] = m ? str_fmt(u->c, "F(%ux%u)", m, m) : str_of(u->c, "direct");
  }
  to->key = str_fmt(u->c, "winograd%s %lldx%lld channels %lld -> %lld",
                    u->precise ? " precise" : "", (long long)o->dim[2], (long long)o->dim[3],
                    (long long)k->dim[1], (long long)k->dim[0]);
  return w->choice + tune_query(u->tune, 0, to->key, text, count);
}

static bool is_product(const ConvPlan *c) {
  return c->blocks && !c->depthwise && !c->sparse;
}

void winograd_plan(PassCtx *u, ConvPlan *of) {
  const GraphRegion *b = &u->g->region.at[1];
  WinoPlan p = {.number = map_new(&u->c->scratch)};
  if (u->aim != AIM_time || u->target->lanes < 8 || u->target->warp) return;
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(u->g, b->node.at[i]);
    Weights *w = is_product(&of[b->node.at[i]]) ? weights_of(u, &p, n) : NULL;
    if (w) add_reader(u, n, w);
  }
  if (!p.w.at) return;
  limit_growth(u, &p);
  for (u32 i = 0; i < b->node.n; i++) {
    const Node *n = graph_node(u->g, b->node.at[i]);
    ConvPlan *to = &of[b->node.at[i]];
    const Weights *w = is_product(to) ? weights_of(u, &p, n) : NULL;
    if (!w) continue;
    u32 taken = tuned_choice(u, n, w, to);
    if (!patch[taken]) continue;
    to->patch = patch[taken];
    to->share = w->time[taken] / w->time[CHOICES - 1];
  }
}
