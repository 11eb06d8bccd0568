// AMX tiles: palette 1 is set by hand, because some virtual machines hide the palette table from CPUID.
//
// With BERTSMITH_EMULATE_TILES the same calls run as plain loops, so that the tile code can be
// tested on processors without AMX.
#pragma once

#include "numbers.h"

#ifdef BERTSMITH_EMULATE_TILES

#include <cstring>

namespace bertsmith {

struct Tile {
  alignas(64) uint8_t bytes[16][64];
};
inline thread_local Tile tiles[8];

inline bool permit_tiles() { return true; }
inline void open_tiles() {}
inline void close_tiles() {}

template <int t>
inline void tile_zero() {
  std::memset(tiles[t].bytes, 0, sizeof(Tile));
}
template <int t>
inline void tile_load(const void* from, size_t stride) {
  for (int r = 0; r < 16; ++r)
    std::memcpy(tiles[t].bytes[r], static_cast<const uint8_t*>(from) + r * stride, 64);
}
template <int t>
inline void tile_store(void* to, size_t stride) {
  for (int r = 0; r < 16; ++r)
    std::memcpy(static_cast<uint8_t*>(to) + r * stride, tiles[t].bytes[r], 64);
}

inline float widen(const uint8_t* from) {
  num half;
  std::memcpy(&half, from, 2);
  const uint32_t bits = static_cast<uint32_t>(half) << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// sums[m][n] += a[m][2k] * w[k][2n] + a[m][2k + 1] * w[k][2n + 1], as TDPBF16PS defines it.
template <int sums, int a, int w>
inline void tile_multiply() {
  for (int m = 0; m < 16; ++m)
    for (int n = 0; n < 16; ++n) {
      float total;
      std::memcpy(&total, tiles[sums].bytes[m] + 4 * n, 4);
      for (int k = 0; k < 32; ++k)
        total += widen(tiles[a].bytes[m] + 2 * k) * widen(tiles[w].bytes[k / 2] + 4 * n + 2 * (k % 2));
      std::memcpy(tiles[sums].bytes[m] + 4 * n, &total, 4);
    }
}

}  // namespace bertsmith

#else

#include <sys/syscall.h>
#include <unistd.h>

namespace bertsmith {

// Linux hands out the tile registers only on request, once a process.
inline bool permit_tiles() {
  constexpr long kRequestPermission = 0x1023, kTileData = 18;
  return syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
}

inline void open_tiles() {
  struct alignas(64) {
    uint8_t palette = 1, start_row = 0, reserved[14] = {};
    uint16_t bytes_a_row[16] = {};
    uint8_t rows[16] = {};
  } shape;
  for (int t = 0; t < 8; ++t) {
    shape.bytes_a_row[t] = 64;
    shape.rows[t] = 16;
  }
  asm volatile("ldtilecfg %0" ::"m"(shape));
}
inline void close_tiles() { asm volatile("tilerelease" ::); }

// Written as assembly because the compilers' intrinsics want a literal, not a template's number.
template <int t>
inline void tile_zero() {
  asm volatile("tilezero %%tmm%c0" ::"i"(t));
}
template <int t>
inline void tile_load(const void* from, size_t stride) {
  asm volatile("tileloadd (%0,%1,1), %%tmm%c2" ::"r"(from), "r"(stride), "i"(t) : "memory");
}
template <int t>
inline void tile_store(void* to, size_t stride) {
  asm volatile("tilestored %%tmm%c2, (%0,%1,1)" ::"r"(to), "r"(stride), "i"(t) : "memory");
}
template <int sums, int a, int w>
inline void tile_multiply() {
  asm volatile("tdpbf16ps %%tmm%c2, %%tmm%c1, %%tmm%c0" ::"i"(sums), "i"(a), "i"(w));
}

}  // namespace bertsmith

#endif
