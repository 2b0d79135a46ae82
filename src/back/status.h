/* status.h: what runs of generated code return. */
#ifndef INGOT_BACK_STATUS_H
#define INGOT_BACK_STATUS_H

enum {
#define STATUS(name, text) STATUS_##name,
#include "back/status.def"
#undef STATUS
  STATUS_COUNT /* the first that a model requires */
};

static const char *const status_means[STATUS_COUNT] = {
#define STATUS(name, text) text,
#include "back/status.def"
#undef STATUS
};

#endif
