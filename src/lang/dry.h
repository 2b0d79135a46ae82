/* dry.h: a run of a program that computes no tensors. Private to src/lang.
 *
 * `ingot build` walks the program once to learn which graphs it looks at: tensors have shapes, and
 * what was computed or read from a file holds NaN. A number, a choice or a text that follows from
 * such data is open: it is not known before the run. Where an open condition chooses, all ways are
 * walked, and what they leave behind is joined. Shapes that are open are refused.
 */
#ifndef INGOT_LANG_DRY_H
#define INGOT_LANG_DRY_H

#include "lang/pending_graph.h"

typedef VEC(Ingot *) DryGraphs;

/* A graph that the program looks at. */
typedef struct DryKey {
  const void *at;
  size_t n;
} DryKey;

/* All variables. */
typedef struct DryState {
  LangValue *at;
  u32 n;
} DryState;

/* The state behind ways that may have gone elsewhere by now, joined. */
typedef struct DryJoin {
  DryState s;
  bool any;
} DryJoin;

/* A loop under way. */
typedef struct DryLoop {
  struct DryLoop *outer; /* of the same call */
  const Ast *at;
  Mark mark;
  DryState before;
  DryJoin next, left; /* ways that end the turn, and the loop */
  u32 turns;
} DryLoop;

/* A call under way. */
typedef struct DryCall {
  struct DryCall *outer;
  DryLoop *loop; /* that it is in */
  Mark mark;
  DryJoin back;    /* ways that return */
  LangValue maybe; /* what they give */
} DryCall;

/* A network from a file, for the shapes that it is called with. */
typedef struct DryNet {
  const char *path;
  Ingot *x;
  u32 n; /* inputs */
} DryNet;

struct DryRun {
  Ingot *m; /* in whose Ctx all graphs are */
  DryGraphs graph;
  VEC(DryKey) key; /* by graph */
  VEC(DryNet) net;
  u32 nentry;      /* graphs and networks */
  const char *why; /* a network cannot be read; NULL: all can */
  Map by_key;
  Arena a;       /* of states that are kept */
  DryCall *call; /* NULL: the file */
  DryLoop *loop; /* of this call; NULL: none */
  u32 ways;      /* inside each other, that may be taken */
  u32 idle;      /* turns of loops since the last new graph */
  u64 left;      /* turns, calls and ways that may still be walked */
};

/* dry.c */
Ingot *dry_add_entry(DryRun *d);                    /* the next */
void dry_force(PendingGraph *k, const StrBuf *key); /* the graph is noted, its results are NaN */
LangValue dry_if(Eval *ev, const Ast *n);           /* whose condition is open */
LangValue dry_while(Eval *ev, Ast *n);
LangValue dry_match(Eval *ev, const Ast *n, LangValue v); /* takes v */
/* A `for`: before its first turn, whether it goes on behind one, and behind the last. */
void dry_loop_begin(Eval *ev, const Ast *n, DryLoop *l);
bool dry_loop_next(Eval *ev, DryLoop *l);    /* flow is settled */
bool dry_loop_is_idle(Eval *ev, DryLoop *l); /* it has had enough turns without a new graph */
void dry_loop_end(Eval *ev, DryLoop *l);
/* Tensors that are of one shape on one way, and of another on another, are refused where they are
 * looked at. */
void dry_require_known(Eval *ev, const Ast *at, const LangValue *d);
void dry_unknown_loop(Eval *ev, Ast *n, LangValue var); /* nobody knows how many; takes var */
/* These say whether something open was in it; only then *out has the value. */
bool dry_binary(Eval *ev, const Ast *n, const LangValue *x, const LangValue *y, LangValue *out);
bool dry_cast(Eval *ev, const LangValue *v, char to, LangValue *out);
bool dry_builtin(Eval *ev, const Ast *n, LangValue *arg, LangValue *out);
LangValue dry_any_element(Eval *ev, const ListObj *l); /* what all elements have in common */
bool dry_element(Eval *ev, const Ast *n, const LangValue *v, const LangValue *i, LangValue *out);
/* A call on a way that may be taken: nobody knows how deep it is inside itself. */
void dry_check_recursion(Eval *ev, const Ast *at, const LangFn *fn);
void dry_call_begin(Eval *ev, DryCall *call);
LangValue dry_call_end(Eval *ev, DryCall *call,
                       LangValue v); /* its result, with all that it may be */

/* dry_net.c */
LangValue dry_net(Eval *ev, LangObject *t, LangValue *arg, u32 n);

#endif
