/* dry.h: a dry run of a program, without computing tensors. Private to src/lang.
 *
 * `ingot build` interprets the program once to find the graphs it forces. Tensors have shapes, but
 * computed or loaded data is NaN. A number, condition or string that depends on such data is
 * unknown until run time. If a condition is unknown, all branches are evaluated and their states
 * joined. Unknown shapes are refused.
 */
#ifndef INGOT_LANG_DRY_H
#define INGOT_LANG_DRY_H

#include "lang/run/pending_graph.h"

typedef VEC(Ingot *) DryGraphs;

/* Key of a graph that the program forces. */
typedef struct DryKey {
  const void *at;
  size_t n;
} DryKey;

/* The values of all variables. */
typedef struct DryState {
  LangValue *at;
  u32 n;
} DryState;

/* Joined state of paths that jumped to the same place. */
typedef struct DryJoin {
  DryState s;
  bool any;
} DryJoin;

/* A loop being evaluated. */
typedef struct DryLoop {
  struct DryLoop *outer; /* in the same call */
  const Ast *at;
  Mark mark;
  DryState before;
  DryJoin next, left; /* paths that end the iteration, and the loop */
  u32 turns;
} DryLoop;

/* A call being evaluated. */
typedef struct DryCall {
  struct DryCall *outer;
  DryLoop *loop; /* enclosing loop of the call */
  Mark mark;
  DryJoin back;    /* paths that return */
  LangValue maybe; /* join of their results */
} DryCall;

/* An imported network, for the shapes of one call. */
typedef struct DryNet {
  const char *path;
  Ingot *x;
  u32 n; /* number of inputs */
} DryNet;

struct DryRun {
  Ingot *m; /* all graphs are in its Ctx */
  DryGraphs graph;
  VEC(DryKey) key; /* by graph */
  VEC(DryNet) net;
  u32 nentry;      /* graphs and networks */
  const char *why; /* why a network cannot be read, or NULL */
  Map by_key;
  Arena a;       /* saved states */
  DryCall *call; /* NULL: top level */
  DryLoop *loop; /* in this call, or NULL */
  u32 ways;      /* nesting of conditional paths */
  u32 idle;      /* iterations since the last new graph */
  bool maybe;    /* the condition of a loop was unknown */
  u64 left;      /* remaining budget of iterations, calls and paths */
};

/* dry.c */
Ingot *dry_add_entry(DryRun *d);                    /* the next entry */
void dry_force(PendingGraph *k, const StrBuf *key); /* records the graph; results are NaN */
/* Refuses a value whose tensors have different shapes on different paths. */
void dry_require_known(Eval *ev, const Ast *at, const LangValue *d);
/* Return true if an operand is unknown; only then *out is set. */
bool dry_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y, LangValue *out);
LangValue dry_cast(Eval *ev, const Ast *n, const LangValue *v, char to); /* casts an unknown v */
bool dry_builtin(Eval *ev, const Ast *n, LangValue *arg, LangValue *out);
LangValue dry_any_element(Eval *ev, const ListObj *l); /* join of all elements */
bool dry_element(Eval *ev, const Ast *n, const LangValue *v, const LangValue *i, LangValue *out);
/* Fails if a call on a conditional path recurses: its depth is unknown. */
void dry_check_recursion(Eval *ev, const Ast *at, const LangFn *fn);
void dry_call_begin(Eval *ev, DryCall *call);
/* The joined result of all paths. */
LangValue dry_call_end(Eval *ev, DryCall *call, LangValue v);

/* dry_net.c */
LangValue dry_net(Eval *ev, LangObject *t, LangValue *arg, u32 n);

#endif
