/* lower.c */
#include "pass/pass.h"

void lower(Unit *u) { fail(u->c, ERR_unsupported, LOC_NONE, "lowering is not there yet"); }
