/* unicode.h: Unicode data, for making vocabularies. A finished vocabulary contains the tables it
 * needs.
 */
#ifndef INGOT_UNICODE_H
#define INGOT_UNICODE_H

#include "base/base.h"

typedef struct Unicode Unicode;
typedef struct UniRun UniRun;   /* characters from `first` up to the next run */
typedef struct UniMap UniMap;   /* a character and its mapping */
typedef struct UniPair UniPair; /* a and b compose to c in NFC */

enum { UNI_END = 0x110000, UNI_MAP_MAX = 18 };

/* In the order of tools/mkunicode.py. */
typedef enum UniCategory {
/* clang-format off */
#define UNI_CATEGORIES(X) \
  X(Lu) X(Ll) X(Lt) X(Lm) X(Lo) X(Mn) X(Mc) X(Me) X(Nd) X(Nl) X(No) X(Pc) X(Pd) X(Ps) X(Pe) \
  X(Pi) X(Pf) X(Po) X(Sm) X(Sc) X(Sk) X(So) X(Zs) X(Zl) X(Zp) X(Cc) X(Cf) X(Cs) X(Co) X(Cn)
/* clang-format on */
#define UNI_ENUM(name) UC_##name,
  UNI_CATEGORIES(UNI_ENUM) UC_END
} UniCategory;

struct UniRun {
  u32 first, value;
};

struct UniMap {
  u32 c, n, at;  /* at: index in Unicode.unit */
  bool composes; /* NFC makes c of its decomposition */
};

struct UniPair {
  u32 a, b, c;
};

typedef VEC(UniRun) UniRuns;
typedef VEC(UniMap) UniMaps;

struct Unicode {
  UniRuns category, combining; /* combining: canonical combining class */
  UniMaps canon, compat, lower;
  VEC(UniPair) compose;
  VEC(u32) unit;
};

const Unicode *unicode_read(Ctx *c, Arena *a);
extern const char *const unicode_category_name[UC_END];

#endif
