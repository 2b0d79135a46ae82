/* wire.h: the protobuf wire format: the only code that reads bytes of a message.
 *
 * Every failure is ERR_input with the position counted from base. A reader never leaves [pos, end).
 */
#ifndef INGOT_WIRE_H
#define INGOT_WIRE_H

#include "base/base.h"

typedef struct FileSpan FileSpan; /* bytes of a file */
typedef struct Wire Wire;         /* a reader inside one message */

enum {
  WIRE_DEPTH = 64,             /* nesting of messages */
  WIRE_MAX_BYTES = 0x7fffffff, /* of one message, as protobuf itself */
};

struct FileSpan {
  const u8 *at; /* NULL: the field is absent (an empty field has a pointer) */
  size_t n;
};

/* In the order of their numbers. */
typedef enum WireType { WT_varint, WT_fixed64, WT_bytes, WT_group, WT_end, WT_fixed32 } WireType;

struct Wire {
  Ctx *c;
  Loc loc;
  const u8 *base;
  size_t pos, end;
  u32 depth; /* messages around this one */
  u32 field; /* of the last tag */
  WireType wire;
};

Wire wire_open(Ctx *c, const u8 *at, size_t n, Loc loc);
Wire wire_reopen(Ctx *c, const u8 *base, FileSpan message, Loc loc); /* one already walked once */
bool wire_next(Wire *k); /* reads a tag; false at the end of the message */
void wire_skip(Wire *k); /* the value of the last tag, groups included */
/* How often each field below WIRE_COUNTS occurs in the rest of the message. */
enum { WIRE_COUNTS = 32 };
void wire_counts(Wire k, u32 *count);
/* Value of the last tag, which must have the wire type asked for. */
i64 wire_int(Wire *k);
float wire_float(Wire *k);
FileSpan wire_bytes(Wire *k);
Str wire_str(Wire *k);
Wire wire_message(Wire *k); /* steps over it; fails past WIRE_DEPTH */
/* Repeated scalars, packed or not. wire_list turns the last tag into a cursor over its elements
 * (one element if not packed), which wire_more and the raw readers below then walk. */
Wire wire_list(Wire *k, WireType elem);
static inline bool wire_more(const Wire *k) {
  return k->pos < k->end;
}
u64 wire_varint(Wire *k);
u32 wire_u32(Wire *k);
u64 wire_u64(Wire *k);
_Noreturn void wire_fail(const Wire *k, size_t pos, const char *what);
_Noreturn void wire_limit(const Wire *k, size_t pos,
                          const char *what); /* well-formed, but beyond what is read */

/* ---- writing: a tag, then a value ---- */
void wire_put_varint(StrBuf *t, u64 x);
void wire_put_int(StrBuf *t, u32 field, i64 x);
void wire_put_bytes(StrBuf *t, u32 field, const void *at, size_t n);

#endif
