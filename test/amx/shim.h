/* shim.h: the intrinsics of AMX in plain C, for CPUs without matrix registers.
 *
 * Included before generated code (-include), compiled for AVX-512 with __AMX_TILE__ and
 * __AMX_INT8__ defined. Tiles have the shape that _tile_loadconfig gives them. Multiplying or
 * loading before that, and a shape that does not fit, end the program. */
#ifndef AMX_SHIM_H
#define AMX_SHIM_H
#include <immintrin.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  int8_t at[16][64];
} ShimTile;

static _Thread_local struct {
  uint8_t palette, row, zero[14];
  uint16_t bytes[16];
  uint8_t rows[16];
} shim_config;
static _Thread_local ShimTile shim_tile[8];

static inline void shim_check(int holds) {
  if (!holds) abort();
}

static inline void shim_loadconfig(const void *from) {
  memcpy(&shim_config, from, 64);
  shim_check(shim_config.palette == 1 && !shim_config.row);
  for (int i = 0; i < 16; i++)
    shim_check(shim_config.bytes[i] <= 64 && shim_config.rows[i] <= 16 &&
               (i < 8 || (!shim_config.bytes[i] && !shim_config.rows[i])));
  memset(shim_tile, 0, sizeof shim_tile);
}

static inline void shim_zero(int n) {
  shim_check(shim_config.rows[n] && shim_config.bytes[n]);
  memset(&shim_tile[n], 0, sizeof *shim_tile);
}

static inline void shim_load(int n, const void *from, long stride) {
  shim_zero(n);
  shim_check(((uintptr_t)from | (uintptr_t)stride) % 64 == 0); /* else a row is two cache lines */
  for (int i = 0; i < shim_config.rows[n]; i++)
    memcpy(shim_tile[n].at[i], (const char *)from + i * stride, shim_config.bytes[n]);
}

static inline void shim_store(int n, void *to, long stride) {
  shim_check(shim_config.rows[n]);
  for (int i = 0; i < shim_config.rows[n]; i++)
    memcpy((char *)to + i * stride, shim_tile[n].at[i], shim_config.bytes[n]);
}

/* c += a b: unsigned bytes of a, signed bytes of b, in groups of four. */
static inline void shim_dpbusd(int c, int a, int b) {
  shim_check(shim_config.rows[c] == shim_config.rows[a] &&
             shim_config.bytes[c] == shim_config.bytes[b] &&
             shim_config.bytes[a] == 4 * shim_config.rows[b]);
  for (int i = 0; i < shim_config.rows[c]; i++)
    for (int j = 0; j < shim_config.bytes[c] / 4; j++) {
      int32_t sum;
      memcpy(&sum, &shim_tile[c].at[i][4 * j], 4);
      for (int k = 0; k < shim_config.bytes[a]; k++)
        sum = (int32_t)((uint32_t)sum + (uint32_t)((uint8_t)shim_tile[a].at[i][k] *
                                                   shim_tile[b].at[k / 4][4 * j + k % 4]));
      memcpy(&shim_tile[c].at[i][4 * j], &sum, 4);
    }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbusd
#define _tile_loadconfig(from)       shim_loadconfig(from)
#define _tile_release()              memset(&shim_config, 0, sizeof shim_config)
#define _tile_zero(n)                shim_zero(n)
#define _tile_loadd(n, from, stride) shim_load(n, from, (long)(stride))
#define _tile_stored(n, to, stride)  shim_store(n, to, (long)(stride))
#define _tile_dpbusd(c, a, b)        shim_dpbusd(c, a, b)
#define IG_TILES_ALLOWED             1
#endif
