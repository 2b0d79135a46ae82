/* tile.c: the instruction `panel`.
 *
 * In: accumulators in registers of the machine, and two operands with strides in three nested
 * loops. Out: the accumulators. Method: rows x columns vectors stay in CPU registers during the
 * loops. There is one function per tile size that fits; larger panels are split. Every accumulator
 * adds in loop order, independent of the split. Without vectors, plain loops compute the same.
 * Compiled once per instruction set, like machine.c. */
#include "back/vm/lanes.h"

#include <string.h>

#if defined(VM_AVX512)
#define TILE_NAME vm_tile_avx512
#elif defined(VM_AVX2)
#define TILE_NAME vm_tile_avx2
#else
#define TILE_NAME vm_tile
#endif

typedef struct TileCursor {
  const u8 *at;      /* first element of the first row or column */
  ptrdiff_t step[3]; /* strides of the loops in bytes, outermost first */
  ptrdiff_t next;    /* stride of rows or columns in bytes */
} TileCursor;

/* Loads four bytes from any address. */
static inline u32 tile_word(const u8 *x) {
  u32 word;
  memcpy(&word, x, 4);
  return word;
}

/* One lane of a panel: acc + x * y. */
static void tile_lane(u32 kind, vm_uw *acc, const u8 *x, const vm_uw *y) {
  vm_f *sum = (vm_f *)(void *)acc;
  const u32 word = tile_word(x);
  float a, b = *(const vm_f *)(const void *)y;
  memcpy(&a, x, 4);
  switch (kind) {
  case VP_fma_b:
  case VP_fma_m: *sum = im_fmaf(a, b, *sum); break;
  case VP_mac_b:
  case VP_mac_m: *sum = *sum + a * b; break;
  case VP_dot_i8x4_b: *acc += (u32)lane_dot_i8x4(word, *y); break;
  default: *acc += lane_dot_i16x2(word, *y); break;
  }
}

/* Address of x or y in an iteration of the loops, for row or column k. */
static const u8 *tile_at(const TileCursor *w, const i64 *i, u32 k) {
  ptrdiff_t at = (ptrdiff_t)k * w->next;
  for (u32 j = 0; j < 3; j++) at += (ptrdiff_t)i[j] * w->step[j];
  return w->at + at;
}

static void tile_plain(u32 kind, u32 *sum, u32 lanes, u32 rows, u32 cols, const i64 *n,
                       const TileCursor *x, const TileCursor *y) {
  u32 wide = kind == VP_fma_m || kind == VP_mac_m;
  i64 i[3];
  for (i[0] = 0; i[0] < n[0]; i[0]++)
    for (i[1] = 0; i[1] < n[1]; i[1]++)
      for (i[2] = 0; i[2] < n[2]; i[2]++) {
        vm_uw *to = (vm_uw *)sum;
        for (u32 r = 0; r < rows; r++)
          for (u32 c = 0; c < cols; c++) {
            const u8 *a = tile_at(x, i, r), *b = tile_at(y, i, c);
            for (u32 k = 0; k < lanes; k++, a += 4 * wide, b += 4)
              tile_lane(kind, to++, a, (const vm_uw *)(const void *)b);
          }
      }
}

#if defined(__AVX2__) && defined(__FMA__) && !defined(VM_NO_TILES)
#include <immintrin.h>

#if defined(__clang__)
#define TILE_UNROLL _Pragma("clang loop unroll(full)")
#else
#define TILE_UNROLL _Pragma("GCC unroll 32")
#endif

#define KEEP8_fma(a, x, y)        _mm256_fmadd_ps(x, y, a)
#define KEEP8_mac(a, x, y)        _mm256_add_ps(a, _mm256_mul_ps(x, y))
#define ONE8_f(p)                 _mm256_set1_ps(*(const vm_f *)(const void *)(p))
#define ALL8_f(p)                 _mm256_loadu_ps((const float *)(const void *)(p))
#define PUT8_f(p, v)              _mm256_storeu_ps((float *)(void *)(p), v)
#define ONE8_w(p)                 _mm256_set1_epi32((int)tile_word(p))
#define ALL8_w(p)                 _mm256_loadu_si256((const __m256i *)(const void *)(p))
#define PUT8_w(p, v)              _mm256_storeu_si256((__m256i *)(void *)(p), v)
#define KEEP8_dot_i16x2(a, x, y)  _mm256_add_epi32(a, _mm256_madd_epi16(x, y))
#define KEEP16_fma(a, x, y)       _mm512_fmadd_ps(x, y, a)
#define KEEP16_mac(a, x, y)       _mm512_add_ps(a, _mm512_mul_ps(x, y))
#define ONE16_f(p)                _mm512_set1_ps(*(const vm_f *)(const void *)(p))
#define ALL16_f(p)                _mm512_loadu_ps((const void *)(p))
#define PUT16_f(p, v)             _mm512_storeu_ps((void *)(p), v)
#define ONE16_w(p)                _mm512_set1_epi32((int)tile_word(p))
#define ALL16_w(p)                _mm512_loadu_si512((const void *)(p))
#define PUT16_w(p, v)             _mm512_storeu_si512((void *)(p), v)
#define KEEP16_dot_i16x2(a, x, y) _mm512_add_epi32(a, _mm512_madd_epi16(x, y))
#define KEEP16_dot_i8x4(a, x, y)  _mm512_dpbusd_epi32(a, x, y)

/* R x C accumulators of a row with `cols` columns in the register file. */
#define TILE(R, C, V, W, get, type, keep)                                                          \
  static void tile_##get##keep##W##_##R##_##C(u32 *acc, u32 cols, const i64 *n,                    \
                                              const TileCursor *x, const TileCursor *y) {          \
    V sum[R][C];                                                                                   \
    TILE_UNROLL for (u32 r = 0; r < R; r++) {                                                      \
      TILE_UNROLL for (u32 c = 0; c < C; c++) sum[r][c] =                                          \
          ALL##W##_##type(acc + (r * cols + c) * W);                                               \
    }                                                                                              \
    const i64 sx = x->step[2], sy = y->step[2], nx = x->next, ny = y->next;                        \
    for (i64 i0 = 0; i0 < n[0]; i0++)                                                              \
      for (i64 i1 = 0; i1 < n[1]; i1++) {                                                          \
        const u8 *px = x->at + i0 * x->step[0] + i1 * x->step[1];                                  \
        const u8 *py = y->at + i0 * y->step[0] + i1 * y->step[1];                                  \
        for (i64 i2 = 0; i2 < n[2]; i2++, px += sx, py += sy) {                                    \
          V b[C];                                                                                  \
          TILE_UNROLL for (u32 c = 0; c < C; c++) b[c] = ALL##W##_##type(py + (i64)c * ny);        \
          TILE_UNROLL for (u32 r = 0; r < R; r++) {                                                \
            V a = get##W##_##type(px + (i64)r * nx);                                               \
            TILE_UNROLL for (u32 c = 0; c < C; c++) sum[r][c] =                                    \
                KEEP##W##_##keep(sum[r][c], a, b[c]);                                              \
          }                                                                                        \
        }                                                                                          \
      }                                                                                            \
    TILE_UNROLL for (u32 r = 0; r < R; r++) {                                                      \
      TILE_UNROLL for (u32 c = 0; c < C; c++)                                                      \
          PUT##W##_##type(acc + (r * cols + c) * W, sum[r][c]);                                    \
    }                                                                                              \
  }

enum { TILE_ROWS = 14, TILE_COLS = 4 };
typedef void TileLoops(u32 *acc, u32 cols, const i64 *n, const TileCursor *x, const TileCursor *y);

#define TILE_LIST(DO, ...)                                                                         \
  DO(1, 1, __VA_ARGS__)                                                                            \
  DO(2, 1, __VA_ARGS__)                                                                            \
  DO(3, 1, __VA_ARGS__)                                                                            \
  DO(4, 1, __VA_ARGS__)                                                                            \
  DO(5, 1, __VA_ARGS__)                                                                            \
  DO(6, 1, __VA_ARGS__)                                                                            \
  DO(7, 1, __VA_ARGS__)                                                                            \
  DO(8, 1, __VA_ARGS__)                                                                            \
  DO(10, 1, __VA_ARGS__)                                                                           \
  DO(12, 1, __VA_ARGS__)                                                                           \
  DO(14, 1, __VA_ARGS__)                                                                           \
  DO(1, 2, __VA_ARGS__)                                                                            \
  DO(2, 2, __VA_ARGS__)                                                                            \
  DO(3, 2, __VA_ARGS__)                                                                            \
  DO(4, 2, __VA_ARGS__)                                                                            \
  DO(5, 2, __VA_ARGS__)                                                                            \
  DO(6, 2, __VA_ARGS__)                                                                            \
  DO(7, 2, __VA_ARGS__)                                                                            \
  DO(8, 2, __VA_ARGS__)                                                                            \
  DO(12, 2, __VA_ARGS__)                                                                           \
  DO(13, 2, __VA_ARGS__)                                                                           \
  DO(1, 3, __VA_ARGS__)                                                                            \
  DO(2, 3, __VA_ARGS__)                                                                            \
  DO(3, 3, __VA_ARGS__)                                                                            \
  DO(4, 3, __VA_ARGS__)                                                                            \
  DO(6, 3, __VA_ARGS__)                                                                            \
  DO(8, 3, __VA_ARGS__)                                                                            \
  DO(1, 4, __VA_ARGS__)                                                                            \
  DO(2, 4, __VA_ARGS__)                                                                            \
  DO(3, 4, __VA_ARGS__)                                                                            \
  DO(4, 4, __VA_ARGS__)                                                                            \
  DO(6, 4, __VA_ARGS__)
#define TILE_PLACE(R, C, W, get, keep) [C][R] = tile_##get##keep##W##_##R##_##C,
#define TILES(V, W, get, type, keep)                                                               \
  TILE_LIST(TILE, V, W, get, type, keep)                                                           \
  static TileLoops *const tiles_##get##keep##W[TILE_COLS + 1][TILE_ROWS + 1] = {                   \
      TILE_LIST(TILE_PLACE, W, get, keep)};

TILES(__m256, 8, ONE, f, fma)
TILES(__m256, 8, ALL, f, fma)
TILES(__m256i, 8, ONE, w, dot_i16x2)
#if defined(__AVX512F__)
TILES(__m512, 16, ONE, f, fma)
TILES(__m512, 16, ALL, f, fma)
TILES(__m512i, 16, ONE, w, dot_i16x2)
TILES(__m512i, 16, ONE, w, dot_i8x4)
#endif

typedef TileLoops *const (*TileTable)[TILE_ROWS + 1];

/* w: lanes of the vectors used. */
static TileTable tiles_of(u32 kind, u32 lanes, u32 *w) {
#if defined(__AVX512F__)
  *w = 16;
  if (lanes % 16 == 0) switch (kind) {
    case VP_fma_b: return tiles_ONEfma16;
    case VP_fma_m: return tiles_ALLfma16;
    case VP_dot_i8x4_b: return tiles_ONEdot_i8x416;
    case VP_dot_i16x2_b: return tiles_ONEdot_i16x216;
    default: return NULL;
    }
#endif
  *w = 8;
  if (lanes % 8 == 0) switch (kind) {
    case VP_fma_b: return tiles_ONEfma8;
    case VP_fma_m: return tiles_ALLfma8;
    case VP_dot_i16x2_b: return tiles_ONEdot_i16x28;
    default: return NULL;
    }
  return NULL;
}

/* Size of the next part of `left` rows or columns: parts are about equal. */
static u32 tile_part(TileLoops *const *row, u32 left, u32 max) {
  u32 parts = (left + max - 1) / max, n = (left + parts - 1) / parts;
  while (n > 1 && !row[n]) n--;
  return n;
}

static bool tile_run(u32 kind, u32 *sum, u32 lanes, u32 rows, u32 cols, const i64 *n,
                     const TileCursor *x, const TileCursor *y) {
  u32 w;
  TileTable all = tiles_of(kind, lanes, &w);
  if (!all) return false;
  bool joined = lanes == w || (kind != VP_fma_m && y->next == 4 * (i64)lanes);
  u32 parts = joined ? 1 : lanes / w; /* parts of a vector, processed one by one */
  u32 wide = joined ? cols * (lanes / w) : cols, row = cols * (lanes / w);
  for (u32 part = 0; part < parts; part++)
    for (u32 c = 0, nc; c < wide; c += nc) {
      nc = joined ? wide - c : 1;
      if (nc > TILE_COLS) nc = nc % 3 == 0 || nc > 8 ? 3 : nc > 6 ? 4 : nc == 5 ? 3 : 2;
      TileCursor v = *y, u = *x;
      u32 *acc = sum + (joined ? (size_t)c : (size_t)c * (lanes / w) + part) * w;
      v.at += joined && lanes != w ? (i64)c * 4 * w : (i64)c * y->next;
      if (joined && lanes != w) v.next = 4 * (i64)w;
      v.at += (size_t)part * 4 * w;
      if (kind == VP_fma_m) u.at += (size_t)part * 4 * w;
      u32 max = nc == 1 ? 14 : nc == 2 ? 13 : nc == 3 ? 8 : 6;
      for (u32 r = 0, nr; r < rows; r += nr, u.at += (i64)nr * u.next) {
        nr = tile_part(all[nc], rows - r, w == 8 && sizeof(void *) == 8 ? (max + 1) / 2 : max);
        all[nc][nr](acc + (size_t)r * row * w, row, n, &u, &v);
      }
    }
  return true;
}
#else
static bool tile_run(u32 kind, u32 *sum, u32 lanes, u32 rows, u32 cols, const i64 *n,
                     const TileCursor *x, const TileCursor *y) {
  (void)kind, (void)sum, (void)lanes, (void)rows, (void)cols, (void)n, (void)x, (void)y;
  return false;
}
#endif

#define FAR ((i64)1 << 44) /* more elements than any buffer has */

/* Are the smallest and largest offset of the loops within the buffer? */
static bool cursor_fits(const VmMem *b, i64 at, const u32 *step, const i64 *n, u32 count, u32 lanes,
                        u32 shift) {
  i64 lo = at, hi = at;
  for (u32 k = 0; k < 4; k++) {
    const i64 by = (i32)step[k], last = (k < 3 ? n[k] : (i64)count) - 1, part = by * (last >> 20);
    if (part > FAR >> 20 || part < -(FAR >> 20)) return false; /* the product would overflow */
    if (by < 0)
      lo += by * last;
    else
      hi += by * last;
  }
  return lo >= 0 && hi <= (i64)(b->bytes >> shift) - (i64)lanes;
}

/* at: first element. A stride that overflows its type is never taken. */
static TileCursor tile_cursor(const VmMem *b, i64 at, const u32 *step, u32 shift) {
  TileCursor w = {.at = b->at + ((size_t)at << shift),
                  .next = (ptrdiff_t)((u64)(i64)(i32)step[3] << shift)};
  for (u32 k = 0; k < 3; k++) w.step[k] = (ptrdiff_t)((u64)(i64)(i32)step[k] << shift);
  return w;
}

/* p: operands of `panel`, see vmops.def. False: an offset is outside its buffer. */
bool TILE_NAME(Vm *m, const u32 *p, u32 lanes) {
  u32 rows = p[2], cols = p[3], kind = p[4];
  bool wide = kind == VP_fma_m || kind == VP_mac_m;
  /* elements of x are int8 or int16, read four bytes at a time */
  u32 shift = kind == VP_dot_i8x4_b ? 0 : kind == VP_dot_i16x2_b ? 1 : 2;
  i64 n[3], xa = (i64)m->file[p[9]], ya = (i64)m->file[p[16]];
  for (u32 k = 0; k < 3; k++) {
    n[k] = (i64)m->file[p[5 + k]];
    if (n[k] <= 0) return true;
    if (n[k] >= (i64)1 << 40) return false;
  }
  const VmMem *bx = &m->buf[p[8]], *by = &m->buf[p[15]];
  if (xa < -FAR || xa > FAR || ya < -FAR || ya > FAR) return false;
  xa += (i32)p[10];
  ya += (i32)p[17];
  if (!cursor_fits(bx, xa, p + 11, n, rows, wide ? lanes : 4u >> shift, shift)) return false;
  if (!cursor_fits(by, ya, p + 18, n, cols, lanes, 2)) return false;
  TileCursor x = tile_cursor(bx, xa, p + 11, shift), y = tile_cursor(by, ya, p + 18, 2);
  u32 *sum = (u32 *)(void *)(m->file + p[1]);
  if (!tile_run(kind, sum, lanes, rows, cols, n, &x, &y))
    tile_plain(kind, sum, lanes, rows, cols, n, &x, &y);
  return true;
}
