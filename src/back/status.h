/* status.h: return values of generated code. */
#ifndef INGOT_BACK_STATUS_H
#define INGOT_BACK_STATUS_H

enum {
#define STATUS(name, text) STATUS_##name,
#include "back/status.def"
#undef STATUS
  STATUS_COUNT /* first status of a require of the model */
};

static const char *const status_means[STATUS_COUNT] = {
#define STATUS(name, text) text,
#include "back/status.def"
#undef STATUS
};

#endif
