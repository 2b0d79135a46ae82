/* extents.h: private to src/front/onnx: what the dimensions of inputs are; see extents.c. */
#ifndef INGOT_EXTENTS_H
#define INGOT_EXTENTS_H

#include "front/onnx/own.h"

/* Before and behind the inputs: what was said is brought into one table, and refused if it names
 * nothing; what is missing is refused in one message. */
void extents_open(Import *im);
void extents_close(Import *im);
/* Type of an input that is a tensor; what is missing is noted, and 1 stands in for it. */
Type extents_type(Import *im, const DeclValue *v);
const Tensor *extents_array(Import *im, Str name); /* that was given for an input, or NULL */
i64 extents_told(Import *im, Str name);            /* what -d NAME=N says, or -1 */
BindInput *extents_given(Import *im, Str name);    /* all that was given for it, or NULL */
/* Notes that -d NAME=N is missing; what: of what it is the number. Returns the stand-in 1. */
i64 extents_miss(Import *im, Str name, const char *what);

#endif
