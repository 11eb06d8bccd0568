// Self-attention of one text and one head on packed rows: scores, softmax, context; float32 inside.
#pragma once

#include <limits>

#include "activations.h"
#include "gemm.h"

namespace bertsmith {

constexpr int kQueryBlock = 48;  // queries whose scores are held at once

inline int round_up(int n, int to) { return (n + to - 1) / to * to; }

// Room that `attend` needs, in bytes, for texts of at most `longest` tokens.
struct AttentionScratch {
  num *keys, *values, *weights;
  float* scores;

  static size_t bytes(int longest, int width) {
    const size_t places = round_up(longest, kKeyBlock);
    return 64 * 4 + places * width * 2 * sizeof(num) + (kQueryBlock + kSpareRows) * places * sizeof(num) +
           kQueryBlock * places * 4;
  }
  AttentionScratch(uint8_t* at, int longest, int width) {
    const size_t places = round_up(longest, kKeyBlock);
    keys = reinterpret_cast<num*>(at);
    values = keys + places * width;
    scores = reinterpret_cast<float*>(values + places * width);
    weights = reinterpret_cast<num*>(scores + kQueryBlock * places);
  }
};

// Rows of `width` -> panels of keys, the dimensions of a step together.
inline void pack_keys(const num* rows, size_t stride, int length, int places, int width, num* to) {
  auto* panels = reinterpret_cast<uint32_t*>(to);
  const int steps = width / kStep;
  for (int n = 0; n < places; ++n) {
    uint32_t* place = panels + static_cast<size_t>(n / kPanel) * steps * kPanel + n % kPanel;
    for (int s = 0; s < steps; ++s) {
      uint32_t step = 0;
      if (n < length) __builtin_memcpy(&step, rows + n * stride + kStep * s, 4);
      __builtin_memcpy(place + s * kPanel, &step, 4);
    }
  }
}

// Rows of `width` -> panels of dimensions, the keys of a step together; keys beyond the text are zero.
inline void pack_values(const num* rows, size_t stride, int length, int places, int width, num* to) {
  for (int c = 0; c < width; c += kPanel)
    for (int n = 0; n < places; n += kStep)
      pack_step([&](int at) { return rows + at * stride + c; }, n, length,
                to + static_cast<size_t>(c) * places + static_cast<size_t>(n) * kPanel);
}

// 2^(score - max) of one row, zero beyond the text; returns 1 / sum.
inline float softmax_row(const float* scores, num* weights, int length, int places) {
  const vec lowest = all(-std::numeric_limits<float>::infinity());
  vec most = lowest;
  for (int n = 0; n < places; n += kLanes)
    most = larger(most, first_lanes(load_any(scores + n), length - n, lowest));
  const vec top = all(largest_of(most));
  vec sum = zero();
  for (int n = 0; n < places; n += kLanes) {
    const vec off = load_any(scores + n) - top;
    const vec power = kRounded ? power_of_two_roughly(off) : power_of_two(off);
    const vec e = first_lanes(power, length - n, zero());
    sum = sum + e;
    store_num(weights + n, e);
  }
  return 1.0f / sum_of(sum);
}

// qkv (L, 3 D) with log2(e) / sqrt(width) already in the query -> context (L, D), columns of this head only.
inline void attend(const num* qkv, num* context, int length, int D, int head, int width,
                   const AttentionScratch& room) {
  const int places = round_up(length, kKeyBlock);
  const size_t stride = 3 * static_cast<size_t>(D);
  const num* query = qkv + head * width;
  pack_keys(query + D, stride, length, places, width, room.keys);
  pack_values(query + 2 * D, stride, length, places, width, room.values);
  float share[kQueryBlock];
  for (int first = 0; first < length; first += kQueryBlock) {
    const int rows = length - first < kQueryBlock ? length - first : kQueryBlock;
    multiply(rows, places, width, {query + first * stride, stride}, room.keys,
             [&](int r, int c, vec v) { store_any(room.scores + r * places + c, v); });
    for (int r = 0; r < rows; ++r)
      share[r] = softmax_row(room.scores + r * places, room.weights + r * places, length, places);
    num* out = context + static_cast<size_t>(first) * D + head * width;
    multiply(rows, width, places, {room.weights, static_cast<size_t>(places)}, room.values,
             [&](int r, int c, vec v) {
               store_num(out + static_cast<size_t>(r) * D + c, v * all(share[r]));
             });
  }
}

}  // namespace bertsmith
