/* npz.c: .npz files, zip archives of .npy members.
 *
 * In: an archive (zip.h says what is accepted), or named tensors. Out: the reverse. Two arrays of
 * one name are refused; members that are not arrays are ignored. Archives are written without
 * compression, dated 1980-01-01, never zip64.
 */
#include "io/data.h"
#include "io/zip.h"
#include <string.h>

enum { DATE_1980 = 0x21 };

const char *inflate(const u8 *in, size_t nin, u8 *out, size_t nout) {
  return inflate_all(in, nin, out, nout);
}

static _Noreturn void refuse(Ctx *c, const Zip *z, Loc loc, const char *name) {
  fail(c, z->unsupported ? ERR_unsupported : ERR_input, loc, "npz: %s%s%s%s", *name ? "'" : "",
       name, *name ? "': " : "", z->why);
}

static Tensor *read_member(Ctx *c, Zip *z, ZipMember *m, Str name, Loc loc, Arena *a) {
  if (!zip_locate(z, m)) refuse(c, z, loc, show(c, name));
  u8 *to = m->method ? arena_array(a, (size_t)m->size, 1) : NULL;
  const u8 *data = zip_unpack(z, m, to);
  if (!data) refuse(c, z, loc, show(c, name));
  return data_read_npy(c, data, (size_t)m->size, loc, a);
}

NamedTensors data_read_npz(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a) {
  return data_read_npz_some(c, at, n, loc, a, NULL, NULL);
}

NamedTensors data_read_npz_some(Ctx *c, const u8 *at, size_t n, Loc loc, Arena *a, NpzFilter *want,
                                const void *user) {
  Zip z;
  ZipMember m;
  NamedTensors out = {0};
  Map seen = map_new(&c->scratch);
  zip_open(&z, at, n);
  while (zip_next(&z, &m)) {
    if (!zip_is_npy(&m)) continue;
    Str name = str_intern(c, m.name, m.nname - 4);
    u32 *slot = map_put(&seen, name);
    if (*slot) fail(c, ERR_input, loc, "npz: two arrays are called '%s'", show(c, name));
    *slot = 1;
    Tensor *t = !want || want(user, name) ? read_member(c, &z, &m, name, loc, a) : NULL;
    *vec_push(a, &out) = (NamedTensor){name, t};
  }
  if (z.why) refuse(c, &z, loc, "");
  return out;
}

/* ---- writing ---- */

static void put(StrBuf *out, u64 x, u32 n) {
  u8 b[8];
  for (u32 i = 0; i < n; i++) b[i] = (u8)(x >> (8 * i));
  sb_put(out, b, n);
}

/* Fields that local and central records share. */
static void put_record(StrBuf *out, const ZipMember *m) {
  put(out, 20, 2);    /* version needed */
  put(out, 0x800, 2); /* names are UTF-8 */
  put(out, 0, 4);     /* stored; time 0:00 */
  put(out, DATE_1980, 2);
  put(out, m->crc, 4);
  put(out, m->packed, 4);
  put(out, m->size, 4);
  put(out, m->nname + 4, 2);
  put(out, 0, 2); /* no extra field */
}

static void put_name(StrBuf *out, const ZipMember *m) {
  sb_put(out, m->name, m->nname);
  sb_puts(out, ".npy");
}

void data_write_npz(Ctx *c, StrBuf *out, const Str *name, Tensor *const *t, u32 n) {
  u32 crc[256];
  size_t start = out->n;
  ZipMember *m = NEWS(&c->scratch, ZipMember, n ? n : 1);
  zip_crc_table(crc);
  if (n > 65534)
    fail(c, ERR_unsupported, LOC_NONE, "npz: found %u arrays, expected at most 65534", n);
  for (u32 i = 0; i < n; i++) {
    StrBuf body = sb_new(&c->scratch);
    data_write_npy(c, &body, t[i]);
    m[i].name = (const u8 *)str_text(c, name[i]);
    m[i].nname = str_len(c, name[i]);
    m[i].packed = m[i].size = body.n;
    m[i].offset = out->n - start;
    if (m[i].nname > 65000 || (m[i].size | m[i].offset) >> 32)
      fail(c, ERR_unsupported, LOC_NONE,
           "npz: more than 4 GiB, or a name of more than 65000 bytes");
    m[i].crc = zip_crc(crc, (const u8 *)body.at, body.n);
    put(out, ZIP_LOCAL, 4);
    put_record(out, &m[i]);
    put_name(out, &m[i]);
    sb_put(out, body.at, body.n);
  }
  u64 dir = out->n - start;
  for (u32 i = 0; i < n; i++) {
    put(out, ZIP_CENTRAL, 4);
    put(out, 20, 2); /* version made by */
    put_record(out, &m[i]);
    put(out, 0, 2); /* no comment */
    put(out, 0, 8); /* disk, attributes */
    put(out, m[i].offset, 4);
    put_name(out, &m[i]);
  }
  u64 size = out->n - start - dir;
  if ((dir | size) >> 32)
    fail(c, ERR_unsupported, LOC_NONE, "npz: the arrays take %llu bytes, expected less than 4 GiB",
         (unsigned long long)(dir + size));
  put(out, ZIP_END, 4);
  put(out, 0, 4); /* disks */
  put(out, n, 2);
  put(out, n, 2);
  put(out, size, 4);
  put(out, dir, 4);
  put(out, 0, 2); /* no comment */
}
