/* input_extents.h: dimensions of inputs, for readers with Reader.binds. See input_extents.c. */
#ifndef INGOT_INPUT_EXTENTS_H
#define INGOT_INPUT_EXTENTS_H

#include "front/reader.h"

typedef struct Extents Extents;

struct Extents {
  Ctx *c;
  Dims *dims;
  Str file;                /* shown in messages */
  const ImportOptions *o;  /* extents_open replaces it by a copy that it may change */
  const DeclValue **input; /* inputs that are parameters */
  u32 ninput;
  Map late;                /* Str -> 1: values whose contents may be a size */
  Map symbols;             /* Str -> 1: dimension names of inputs */
  Map by_symbol;           /* Str -> 1 + index into binds */
  VEC(BindDim) binds;      /* bindings of symbols */
  VEC(MissingDim) missing; /* dimensions of inputs without a binding */
};

/* Call extents_open before the inputs and extents_close after them. extents_open collects the
 * bindings in one table and refuses those without a match. extents_close refuses all missing
 * dimensions in one message. */
void extents_open(Extents *e);
void extents_close(Extents *e);
/* Refuses bounds of values that turned out not to be sizes; call it after the nodes. */
void extents_refuse_unused(Extents *e);
/* Type of a tensor input. Records missing dimensions and uses 1 for them. */
Type extents_type(Extents *e, const DeclValue *v);
const Tensor *extents_array(Extents *e, Str name); /* the array given for an input, or NULL */
i64 extents_bound_dim(Extents *e, Str name);       /* N of -d NAME=N or a bound, or -1 */
/* Records that -d NAME=N is missing. what: meaning of N. Returns the placeholder 1. */
i64 extents_note_missing(Extents *e, Str name, const char *what);
/* The constant that replaces an input of type t; NULL: it is a parameter. A single element is
 * broadcast to the shape if the shape is known. */
const BindInput *extents_frozen(Extents *e, const DeclValue *v, Type t);

#endif
