/* access.h: memory and variables that a piece of a program accesses. */
#ifndef INGOT_ACCESS_H
#define INGOT_ACCESS_H

#include "ir/prog/prog.h"

typedef struct Access {
  BufId buf, root;
  ExprId *idx; /* points into the expression or statement; may be replaced */
  u32 n;
  u32 lanes; /* elements along the last dimension */
  bool write;
  u32 before; /* 1 + the previous access of the same root; 0: none */
} Access;

/* Accesses of one root buffer. */
typedef struct RootUse {
  BufId root;
  u32 count; /* number of accesses */
  u32 last;  /* 1 + the last access */
  bool read, write;
} RootUse;

typedef struct Accesses {
  Prog *p;
  VEC(Access) at;
  VEC(RootUse) root; /* each root once */
  Map root_at;       /* 1 + index in `root` */
  VEC(VarId) used;   /* variables read, with repetitions */
  VEC(VarId) declares;
  Map declared; /* declared variables, as a set */
  bool ordered; /* order matters: assigns a variable declared outside, or may end the run */
  bool loops;   /* contains a while loop of unknown trip count */
  u32 nstmts;
} Accesses;

Accesses accesses_list(Prog *p, StmtId first); /* the statement and those after it; in scratch */
Accesses accesses_one(Prog *p, StmtId only);   /* the statement alone */
void access_append(Accesses *t, const Accesses *more); /* appends a piece that now follows t */
bool access_declares(const Accesses *t, VarId v);
const RootUse *access_root(const Accesses *t, BufId root); /* NULL: not accessed */

#endif
