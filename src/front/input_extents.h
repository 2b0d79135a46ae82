/* input_extents.h: what the dimensions of inputs are; see input_extents.c. For readers that obey
 * their options (Reader.binds). */
#ifndef INGOT_INPUT_EXTENTS_H
#define INGOT_INPUT_EXTENTS_H

#include "front/reader.h"

typedef struct Extents Extents;

struct Extents {
  Ctx *c;
  Dims *dims;
  Str file;                /* for messages */
  const ImportOptions *o;  /* extents_open makes a copy, which it may change */
  const DeclValue **input; /* those that are parameters */
  u32 ninput;
  Map symbols;             /* Str -> 1: names of dimensions of inputs */
  Map by_symbol;           /* Str -> 1 + index into told */
  VEC(BindDim) binds;      /* what is known of symbols */
  VEC(MissingDim) missing; /* of inputs, not said by anyone */
};

/* Before and behind the inputs: what was said is brought into one table, and refused if it names
 * nothing; what is missing is refused in one message. */
void extents_open(Extents *e);
void extents_close(Extents *e);
/* Type of an input that is a tensor; what is missing is noted, and 1 stands in for it. */
Type extents_type(Extents *e, const DeclValue *v);
const Tensor *extents_array(Extents *e, Str name);    /* that was given for an input, or NULL */
i64 extents_bound_dim(Extents *e, Str name);          /* what -d NAME=N says, or -1 */
BindInput *extents_bound_input(Extents *e, Str name); /* all that was given for it, or NULL */
/* Notes that -d NAME=N is missing; what: of what it is the number. Returns the stand-in 1. */
i64 extents_note_missing(Extents *e, Str name, const char *what);
/* The constant that an input of type t was frozen at; NULL: it is a parameter. One element that is
 * given for all is spread over the shape where that is known. */
const BindInput *extents_frozen(Extents *e, const DeclValue *v, Type t);

#endif
