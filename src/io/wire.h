/* wire.h: the protobuf wire format. No other code reads bytes of a message.
 *
 * Errors are ERR_input with the position relative to base. A reader stays in [pos, end).
 */
#ifndef INGOT_WIRE_H
#define INGOT_WIRE_H

#include "base/base.h"

typedef struct FileSpan FileSpan; /* bytes of a file */
typedef struct Wire Wire;         /* a cursor in one message */

enum {
  WIRE_DEPTH = 64,             /* nesting of messages */
  WIRE_MAX_BYTES = 0x7fffffff, /* per message, the limit of protobuf */
};

struct FileSpan {
  const u8 *at; /* NULL: absent field (an empty field has a pointer) */
  size_t n;
};

/* In the order of their numbers. */
typedef enum WireType { WT_varint, WT_fixed64, WT_bytes, WT_group, WT_end, WT_fixed32 } WireType;

struct Wire {
  Ctx *c;
  Loc loc;
  const u8 *base;
  size_t pos, end;
  u32 depth; /* enclosing messages */
  u32 field; /* field of the last tag */
  WireType wire;
};

Wire wire_open(Ctx *c, const u8 *at, size_t n, Loc loc);
Wire wire_reopen(Ctx *c, const u8 *base, FileSpan message, Loc loc); /* visited before */
bool wire_next(Wire *k); /* reads a tag; false at the end of the message */
void wire_skip(Wire *k); /* the value of the last tag, groups included */
/* Counts the occurrences of each field below WIRE_COUNTS in the rest of the message. */
enum { WIRE_COUNTS = 32 };
void wire_counts(Wire k, u32 *count);
/* Value of the last tag, which must have the requested wire type. */
i64 wire_int(Wire *k);
float wire_float(Wire *k);
FileSpan wire_bytes(Wire *k);
Str wire_str(Wire *k);
Wire wire_message(Wire *k); /* advances past it; fails beyond WIRE_DEPTH */
/* Repeated scalars, packed or not. wire_list turns the last tag into a cursor over its elements
 * (one if not packed). wire_more and the raw readers below iterate over them. */
Wire wire_list(Wire *k, WireType elem);
static inline bool wire_more(const Wire *k) {
  return k->pos < k->end;
}
u64 wire_varint(Wire *k);
u32 wire_u32(Wire *k);
u64 wire_u64(Wire *k);
_Noreturn void wire_fail(const Wire *k, size_t pos, const char *what);
/* Fails with ERR_unsupported: valid, but beyond a limit. */
_Noreturn void wire_limit(const Wire *k, size_t pos, const char *what);

/* ---- writing: a tag, then a value ---- */
void wire_put_varint(StrBuf *t, u64 x);
void wire_put_int(StrBuf *t, u32 field, i64 x);
void wire_put_bytes(StrBuf *t, u32 field, const void *at, size_t n);

#endif
