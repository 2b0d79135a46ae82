/* op.c: the operator table from ops.def, and the names of attributes.
 *
 * Lookup by name scans the table; the first character decides nearly always. The parsers
 * of the text forms and the attribute `reduce` use it. */
#include "ir/graph/graph.h"

#include <string.h>

/* The flags column of ops.def. */
enum {
#define FLAG(name, text) name = OF_##name,
#include "ir/flags.def"
#undef FLAG
};

const OpInfo op_info[OP_COUNT] = {
#define SC(name, nin, cls, res, flags, text)                                                       \
  [OP_##name] = {#name, nin, nin, 1, OK_MAP, OC_##cls, OR_##res, flags, "", text},
#define OP(name, lo, hi, nout, kind, flags, attrs, text)                                           \
  [OP_##name] = {#name, lo, hi, nout, OK_##kind, OC_ANY, OR_none, flags, attrs, text},
#include "ir/ops.def"
#undef SC
#undef OP
};

const char *const op_kind_name[OK_COUNT] = {
    [OK_MAP] = "MAP",           [OK_LEAF] = "LEAF",       [OK_REDUCE] = "REDUCE",
    [OK_CONTRACT] = "CONTRACT", [OK_WINDOW] = "WINDOW",   [OK_VIEW] = "VIEW",
    [OK_JOIN] = "JOIN",         [OK_GATHER] = "GATHER",   [OK_SCATTER] = "SCATTER",
    [OK_SCAN] = "SCAN",         [OK_CONTROL] = "CONTROL", [OK_DYNAMIC] = "DYNAMIC",
    [OK_RANDOM] = "RANDOM",     [OK_OPAQUE] = "OPAQUE",
};

const char *const home_name[HOME_COUNT] = {"buffer", "inline", "epilogue"};

const char *const attr_name[AT_COUNT] = {
    [AT_none] = "",
#define AT(name) [AT_##name] = #name,
#include "ir/attrs.def"
#undef AT
};

Op op_from_name(const char *s, size_t n) {
  for (int op = 0; n > 0 && op < OP_COUNT; op++) {
    const char *name = op_info[op].name;
    if (name[0] == s[0] && strlen(name) == n && memcmp(name, s, n) == 0) return (Op)op;
  }
  return OP_COUNT;
}

const char *op_attr_spec(Op op) {
  if (op == OP_cast) return "to:t sat:i? layer:i?";
  return op_info[op].res == OR_to ? "to:t sat:i?" : op_info[op].attrs;
}

Op op_reducer(Op op) {
  static const Op with[OP_COUNT] = {
      [OP_reduce_sum] = OP_add, [OP_resume_sum] = OP_add,  [OP_reduce_prod] = OP_mul,
      [OP_reduce_max] = OP_max, [OP_reduce_min] = OP_min,  [OP_pool_sum] = OP_add,
      [OP_pool_max] = OP_max,   [OP_pool_argmax] = OP_max, [OP_cumsum] = OP_add,
      [OP_cumprod] = OP_mul};
  return with[op];
}

bool op_accepts(Op op, DType d) {
  char cls = dtype_info[d].cls;
  bool flt = cls == 'F', num = cls == 'I' || cls == 'U';
  switch (op_info[op].cls) {
  case OC_NUM: return flt || num;
  case OC_FLT: return flt;
  case OC_INT: return num;
  case OC_I32: return d == DT_i32;
  case OC_BITS: return num || cls == 'B';
  case OC_ANY: return cls != 'N';
  }
  return false;
}
