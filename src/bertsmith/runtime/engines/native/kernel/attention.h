// Self-attention of one text and one head on packed rows: scores, softmax, context; float32 inside.
#pragma once

#include <limits>

#include "gemm.h"

namespace bertsmith {

constexpr int kQueryBlock = 48;  // queries whose scores are held at once

inline int round_up(int n, int to) { return (n + to - 1) / to * to; }

// Room that `attend` needs, in bytes, for texts of at most `longest` tokens.
struct AttentionScratch {
  bf16 *keys, *values, *weights;
  float* scores;

  static size_t bytes(int longest, int width) {
    const size_t places = round_up(longest, kKeyBlock);
    return 64 * 4 + places * width * 4 + (kQueryBlock + kSpareRows) * places * 2 + kQueryBlock * places * 4;
  }
  AttentionScratch(uint8_t* at, int longest, int width) {
    const size_t places = round_up(longest, kKeyBlock);
    keys = reinterpret_cast<bf16*>(at);
    values = keys + places * width;
    scores = reinterpret_cast<float*>(values + places * width);
    weights = reinterpret_cast<bf16*>(scores + kQueryBlock * places);
  }
};

// Rows of `width` -> panels of 16 keys, pairs of dimensions together.
inline void pack_keys(const bf16* rows, size_t stride, int length, int places, int width, bf16* to) {
  auto* panels = reinterpret_cast<uint32_t*>(to);
  const int pairs = width / 2;
  for (int n = 0; n < places; ++n) {
    uint32_t* place = panels + static_cast<size_t>(n / 16) * pairs * 16 + n % 16;
    for (int p = 0; p < pairs; ++p) {
      uint32_t pair = 0;
      if (n < length) __builtin_memcpy(&pair, rows + n * stride + 2 * p, 4);
      place[p * 16] = pair;
    }
  }
}

// Rows of `width` -> panels of 16 dimensions, pairs of keys together; keys beyond the text are zero.
inline void pack_values(const bf16* rows, size_t stride, int length, int places, int width, bf16* to) {
  for (int c = 0; c < width; c += 16)
    for (int n = 0; n < places; n += 2) {
      const auto row = [&](int at) {
        if (at >= length) return _mm512_setzero_si512();
        return _mm512_cvtepu16_epi32(
            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(rows + at * stride + c)));
      };
      const __m512i both = _mm512_or_si512(row(n), _mm512_slli_epi32(row(n + 1), 16));
      _mm512_storeu_si512(to + static_cast<size_t>(c) * places + static_cast<size_t>(n) * 16, both);
    }
}

// 2^(score - max) of one row as bfloat16, zero beyond the text; returns 1 / sum.
inline float softmax_row(const float* scores, bf16* weights, int length, int places) {
  const __m512 lowest = set(-std::numeric_limits<float>::infinity());
  const auto real = [&](int n) {
    const int left = length - n;
    return static_cast<__mmask16>(left >= 16 ? 0xffff : left <= 0 ? 0 : (1 << left) - 1);
  };
  __m512 most = lowest;
  for (int n = 0; n < places; n += 16)
    most = _mm512_max_ps(most, _mm512_mask_loadu_ps(lowest, real(n), scores + n));
  const __m512 top = set(_mm512_reduce_max_ps(most));
  __m512 sum = _mm512_setzero_ps();
  for (int n = 0; n < places; n += 16) {
    const __m512 e = _mm512_maskz_mov_ps(
        real(n), power_of_two_roughly(_mm512_sub_ps(_mm512_loadu_ps(scores + n), top)));
    sum = _mm512_add_ps(sum, e);
    store_bf16(weights + n, e);
  }
  return 1.0f / _mm512_reduce_add_ps(sum);
}

// qkv (L, 3 D) with log2(e) / sqrt(width) already in the query -> context (L, D), columns of this head only.
inline void attend(const bf16* qkv, bf16* context, int length, int D, int head, int width,
                   const AttentionScratch& room) {
  const int places = round_up(length, kKeyBlock);
  const size_t stride = 3 * static_cast<size_t>(D);
  const bf16* query = qkv + head * width;
  pack_keys(query + D, stride, length, places, width, room.keys);
  pack_values(query + 2 * D, stride, length, places, width, room.values);
  float share[kQueryBlock];
  for (int first = 0; first < length; first += kQueryBlock) {
    const int rows = length - first < kQueryBlock ? length - first : kQueryBlock;
    multiply(rows, places, width, {query + first * stride, stride}, room.keys,
             [&](int r, int c, __m512 v) { _mm512_storeu_ps(room.scores + r * places + c, v); });
    for (int r = 0; r < rows; ++r)
      share[r] = softmax_row(room.scores + r * places, room.weights + r * places, length, places);
    bf16* out = context + static_cast<size_t>(first) * D + head * width;
    multiply(rows, width, places, {room.weights, static_cast<size_t>(places)}, room.values,
             [&](int r, int c, __m512 v) {
               store_bf16(out + static_cast<size_t>(r) * D + c, _mm512_mul_ps(v, set(share[r])));
             });
  }
}

}  // namespace bertsmith
