/* access.h: what a piece of a program does to memory and variables. */
#ifndef INGOT_ACCESS_H
#define INGOT_ACCESS_H

#include "ir/prog.h"

typedef struct Access {
  BufId buf, root;
  ExprId *idx; /* into the expression or statement: may be replaced */
  u32 n;
  u32 lanes; /* elements along the last dimension */
  bool write;
  u32 before; /* 1 + another of the same root, the last before; 0: none */
} Access;

/* What becomes of one root. */
typedef struct RootUse {
  BufId root;
  u32 count; /* accesses */
  u32 last;  /* 1 + the last of them */
  bool read, write;
} RootUse;

typedef struct Accesses {
  Prog *p;
  VEC(Access) at;
  VEC(RootUse) root; /* each once */
  Map root_at;       /* 1 + its place there */
  VEC(VarId) used;   /* variables, as often as they are */
  VEC(VarId) declares;
  Map declared; /* the same */
  bool ordered; /* sets a variable of the program around it, or may end the run */
  bool loops;   /* while: for how long is not known */
  u32 nstmts;
} Accesses;

Accesses accesses_list(Prog *p, StmtId first); /* the statement and those behind it; in scratch */
Accesses accesses_one(Prog *p, StmtId only);   /* the statement alone */
void access_append(Accesses *t, const Accesses *more); /* a piece that has come to stand behind t */
bool access_declares(const Accesses *t, VarId v);
const RootUse *access_root(const Accesses *t, BufId root); /* NULL: it is not touched */

#endif
