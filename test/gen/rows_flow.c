/* rows_flow.c: rows with blocks, and nodes in front of parameters. */
#include "grow.h"

#include <string.h>

static Grain wider(Grain a, Grain b) {
  return (Grain){a.mag > b.mag ? a.mag : b.mag, a.q > b.q ? a.q : b.q};
}

static RegionId enter(Gen *G) {
  RegionId b = graph_region(G->g, 0);
  G->g->cur = b;
  G->depth++;
  return b;
}

static void leave(Gen *G, RegionId outer, u32 seen) {
  G->g->cur = outer;
  G->depth--;
  G->seen.n = seen;
}

static void ret(Gen *G, RegionId b, Val v) {
  *vec_push(G->a, &G->g->region.at[b].ret) = v;
}

static Val flag(Gen *G) {
  if (chance(G, 50)) return some(G, "B", 0, 0);
  if (chance(G, 30)) return scalar_of(G, DT_bool, below(G, 2));
  return param_of(G, DT_bool, NULL, 0, fill_any(&G->rng, DT_bool, MODE_exact));
}

/* Another value of the type of v and within its grain: a loop may do this any number of times. */
static Val twist(Gen *G, Val v) {
  Type t = type_of(G, v);
  Grain r = *grain_of(G, v);
  bool flt = dtype_is_float(t.dt), b = t.dt == DT_bool;
  u32 how = below(G, 6);
  if (t.rank && how == 0) { /* reversed */
    Dim start[MAX_RANK] = {0}, step[MAX_RANK];
    for (u32 i = 0; i < t.rank; i++) step[i] = 1;
    u32 axis = below(G, t.rank);
    if (lo_of(G, t.dim[axis]) > 0) {
      start[axis] = dim_addk(G->g->dims, t.dim[axis], -1);
      step[axis] = -1;
    }
    Attr at[3] = {a_list(AT_start, start, t.rank), a_list(AT_step, step, t.rank),
                  a_list(AT_size, t.dim, t.rank)};
    return node(G, OP_slice, &v, 1, at, 3, r);
  }
  if (b) return node(G, OP_not, &v, 1, NULL, 0, r);
  if (how == 1) return node(G, flt || dtype_is_int(t.dt) ? OP_neg : OP_abs, &v, 1, NULL, 0, r);
  Val other = some_of(G, t.dt, t.dim, t.rank);
  Val in[2] = {v, other};
  if (flt && G->mode == MODE_exact) {
    Grain o = *grain_of(G, other);
    if (o.mag > r.mag || o.q > r.q) return v;
    return node(G, how < 4 ? OP_max : OP_min, in, 2, NULL, 0, r);
  }
  rough(G); /* many rounds */
  return node(G, how < 4 ? OP_add : OP_mul, in, 2, NULL, 0, r);
}

/* Integers that a loop changes may become anything. */
static Grain carried_grain(Gen *G, Val v) {
  DType dt = type_of(G, v).dt;
  return dtype_is_float(dt) ? *grain_of(G, v) : grain_of_type(dt);
}

Val row_if(Gen *G, Op op) {
  if (G->depth > 1) return 0;
  Val cond = flag(G), from[2];
  u32 n = 1 + below(G, 2), seen = G->seen.n;
  for (u32 i = 0; i < n; i++) from[i] = some(G, "FIUB", 0, LEAST_RANK);
  RegionId outer = G->g->cur, b[2];
  Grain r[2] = {{0, 0}, {0, 0}};
  for (u32 k = 0; k < 2; k++) {
    b[k] = enter(G);
    if (chance(G, 60)) grow_some(G, 1 + below(G, 3));
    for (u32 i = 0; i < n; i++) {
      Type t = type_of(G, from[i]);
      Val v = k && chance(G, 40) ? some_of(G, t.dt, t.dim, t.rank) : from[i];
      if (chance(G, 70)) v = twist(G, v);
      r[i] = wider(r[i], carried_grain(G, v));
      ret(G, b[k], v);
    }
    leave(G, outer, seen);
  }
  rough(G);
  NodeId id = graph_add_control(G->g, op, &cond, 1, NULL, 0, b, 2);
  const Node *node = graph_node(G->g, id);
  Val out[2] = {node->out[0], n > 1 ? node->out[1] : 0};
  for (u32 i = 0; i < n; i++) {
    *grain_of(G, out[i]) = r[i];
    *vec_push(G->a, &G->seen) = out[i];
  }
  return out[0];
}

static Val go_on(Gen *G, Val i, Val cond) {
  u32 how = below(G, 4);
  if (how == 0) return cond;
  if (how == 1) return scalar_of(G, DT_bool, 1);
  if (how == 2) {
    Val in[2] = {i, scalar_of(G, DT_i64, below(G, 4))};
    return node(G, OP_lt, in, 2, NULL, 0, (Grain){1, 0});
  }
  return some(G, "B", 0, 0);
}

Val row_loop(Gen *G, Op op) {
  if (G->depth > 1) return 0;
  u32 n = below(G, 3), nscan = below(G, 3), seen = G->seen.n;
  if (!n && !nscan) n = 1;
  Dim none = 0;
  bool open = chance(G, 30); /* the number of rounds is known only when it runs */
  if (open) nscan = 0;
  Val in[4];
  in[0] = open ? param_of(G, DT_i64, &none, 0, (Fill){.mode = MODE_exact, .grain = {4, 0}})
               : scalar_of(G, DT_i64, below(G, 5));
  in[1] = chance(G, 70) ? scalar_of(G, DT_bool, 1) : flag(G);
  for (u32 i = 0; i < n; i++) in[2 + i] = some(G, "FIUB", 0, 4);
  seen = G->seen.n;
  RegionId outer = G->g->cur, b = enter(G);
  Val p[4];
  for (u32 i = 0; i < n + 2; i++) {
    Type t = type_of(G, in[i]);
    p[i] = graph_param(G->g, b, t, 0);
    *grain_of(G, p[i]) = i < 2 ? (Grain){4, 0} : carried_grain(G, in[i]);
    *vec_push(G->a, &G->seen) = p[i];
  }
  grow_some(G, below(G, 4));
  Val next[4], scan[2];
  for (u32 i = 0; i < n; i++) next[i] = chance(G, 80) ? twist(G, p[2 + i]) : p[2 + below(G, n)];
  for (u32 i = 0; i < n; i++) {
    Type t = type_of(G, in[2 + i]), u = type_of(G, next[i]);
    if (!type_equal(&t, &u)) next[i] = p[2 + i];
    Grain x = *grain_of(G, next[i]), r = carried_grain(G, in[2 + i]);
    if (x.mag > r.mag || x.q > r.q) next[i] = p[2 + i];
  }
  u32 ns = 0;
  for (u32 i = 0; i < nscan; i++) {
    Val v = some(G, "FIUB", 0, 4);
    Type t = type_of(G, v);
    bool fits = count_hi(G, t.dim, t.rank) * 4 <= (double)G->most;
    for (u32 k = 0; k < t.rank; k++) fits = fits && (dim_is_const(t.dim[k]));
    if (fits) scan[ns++] = v;
  }
  ret(G, b, go_on(G, p[0], p[1]));
  for (u32 i = 0; i < n; i++) ret(G, b, next[i]);
  for (u32 i = 0; i < ns; i++) ret(G, b, scan[i]);
  leave(G, outer, seen);
  rough(G);
  if (!n && !ns) return 0;
  Attr at = a_int(AT_scans, ns);
  NodeId id = graph_add_control(G->g, op, in, n + 2, &at, 1, &b, 1);
  Val first = graph_node(G->g, id)->out[0];
  for (u32 i = 0; i < n + ns; i++) {
    Val v = graph_node(G->g, id)->out[i];
    *grain_of(G, v) = i < n ? carried_grain(G, in[2 + i]) : *grain_of(G, scan[i - n]);
    *vec_push(G->a, &G->seen) = v;
  }
  return first;
}

/* ---- backward ---- */

static void replace(Graph *g, Val old, Val by, NodeId except) {
  for (RegionId b = 1; b < g->region.n; b++) {
    GraphRegion *k = &g->region.at[b];
    for (u32 i = 0; i < k->node.n; i++) {
      if (k->node.at[i] == except) continue;
      Node *n = graph_node(g, k->node.at[i]);
      for (u32 j = 0; j < n->nin; j++)
        if (n->in[j] == old) n->in[j] = by;
    }
    for (u32 i = 0; i < k->ret.n; i++)
      if (k->ret.at[i] == old) k->ret.at[i] = by;
  }
}

/* A parameter x becomes op(new parameters): a view, a choice of two, an exact function. The old one
 * stays and is read by nothing. */
bool grow_back(Gen *G) {
  Graph *g = G->g;
  Param *p = &G->param.at[below(G, G->param.n)];
  Type t = type_of(G, p->v);
  Fill f = p->fill;
  Val x = p->v, v = 0, in[2];
  if (f.index || f.fixed || !is_class(t.dt, "FIU") || (G->nsym && t.dt == DT_u8)) return false;
  if (type_of(G, x).dt == DT_i64 && !t.rank) return false; /* trip counts stay small */
  u32 front = g->region.at[1].node.n, how = below(G, 4);
  if (how == 0 && t.rank > 1) {
    Dim perm[MAX_RANK], d[MAX_RANK];
    for (u32 i = 0; i < t.rank; i++) perm[i] = (i + 1) % t.rank;
    for (u32 i = 0; i < t.rank; i++) d[perm[i]] = t.dim[i];
    in[0] = param_of(G, t.dt, d, t.rank, f);
    Attr at = a_list(AT_perm, perm, t.rank);
    v = node(G, OP_transpose, in, 1, &at, 1, f.grain);
  } else if (how == 1) {
    Dim d[MAX_RANK];
    for (u32 i = 0; i < t.rank; i++) d[i] = chance(G, 40) ? 1 : t.dim[i];
    in[0] = param_of(G, t.dt, d, t.rank, f);
    Attr at = a_list(AT_shape, t.dim, t.rank);
    v = node(G, OP_broadcast, in, 1, &at, 1, f.grain);
  } else {
    in[0] = param_of(G, t.dt, t.dim, t.rank, f);
    in[1] = param_of(G, t.dt, t.dim, t.rank, f);
    Op op = how == 2 ? OP_max : dtype_is_signed(t.dt) && !dtype_is_float(t.dt) ? OP_min : OP_neg;
    if (op == OP_neg && !dtype_is_float(t.dt)) op = OP_max;
    v = node(G, op, in, op == OP_neg ? 1 : 2, NULL, 0, f.grain);
  }
  GraphRegion *b = &g->region.at[1];
  NodeId id = graph_val(g, v)->def;
  memmove(b->node.at + 1, b->node.at, front * sizeof *b->node.at);
  b->node.at[0] = id;
  replace(g, x, v, id);
  return true;
}
