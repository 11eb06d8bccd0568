// The number format of operands, bfloat16 or float32: storing, packing, and one step of a product.
//
// A step takes kStep neighboring values of K, 32 bits together: two bfloat16 or one float32. Sums,
// residuals, softmax and norms are float32 in every format.
#pragma once

#include "vectors.h"

namespace bertsmith {

constexpr int kPanel = 16;  // columns of packed weights that stand together

#ifdef BERTSMITH_BF16

static_assert(kLanes == 16, "bfloat16 products need AVX-512");

using num = uint16_t;
using Weights = __m512bh;  // of one step, a vector of columns

constexpr int kStep = 2;
constexpr bool kRounded = true;  // to three decimals

inline num to_num(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  return static_cast<num>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // nearest, ties to even
}

inline void store_num(num* to, vec v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), (__m256i)_mm512_cvtneps_pbh(v));
}

inline Weights load_weights(const num* from) { return (__m512bh)_mm512_load_si512(from); }

inline Weights load_step(const num* from) {
  int32_t pair;
  __builtin_memcpy(&pair, from, 4);
  return (__m512bh)_mm512_set1_epi32(pair);
}

inline vec add_product(vec sum, Weights a, Weights w) { return _mm512_dpbf16_ps(sum, a, w); }

// kPanel columns of the kStep rows from `at` on -> one step of a panel; rows beyond are zero.
template <class Row>
inline void pack_step(const Row& row, int at, int length, num* to) {
  const auto wide = [&](int n) {
    if (n >= length) return _mm512_setzero_si512();
    return _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(row(n))));
  };
  _mm512_storeu_si512(to, _mm512_or_si512(wide(at), _mm512_slli_epi32(wide(at + 1), 16)));
}

#else

using num = float;
using Weights = vec;

constexpr int kStep = 1;
constexpr bool kRounded = false;

inline num to_num(float v) { return v; }
inline void store_num(num* to, vec v) { store_any(to, v); }
inline Weights load_weights(const num* from) { return load(from); }
inline Weights load_step(const num* from) { return all(*from); }
inline vec add_product(vec sum, Weights a, Weights w) { return multiply_add(a, w, sum); }

// kPanel columns of row `at` -> one step of a panel; rows beyond are zero.
template <class Row>
inline void pack_step(const Row& row, int at, int length, num* to) {
  for (int c = 0; c < kPanel; c += kLanes)
    store_any(to + c, at < length ? load_any(row(at) + c) : zero());
}

#endif

}  // namespace bertsmith
