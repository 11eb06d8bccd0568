// Random numbers, exponentials and sums of logarithms.

#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>

#include "vectors.h"

namespace {

using bertsmith::all;
using bertsmith::fold;
using bertsmith::kLanes;
using bertsmith::load;
using bertsmith::store;
using bertsmith::sum8;
using bertsmith::vec;

constexpr int kBlock = 6;  // outputs per block of products
constexpr float kFarthest = 30.0f;  // scores beyond are as good as certain
constexpr double kSmall = 1e-150;
constexpr int64_t kWordsPerRate = 10000;
constexpr int kWindowsPerExchange = 512;
constexpr int kPair = 2;  // neighbors per step of hierarchical softmax

// PCG32 (O'Neill 2014).
struct Random {
  uint64_t state, stream;
  explicit Random(uint64_t seed) : state(0), stream((mix(seed ^ 0x5851f42d4c957f2dULL) << 1) | 1) {
    next();
    state += mix(seed);
    next();
  }
  static uint64_t mix(uint64_t z) {
    z += 0x9e3779b97f4a7c15ULL;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    return z ^ (z >> 31);
  }
  uint32_t next() {
    const uint64_t old = state;
    state = old * 6364136223846793005ULL + stream;
    const uint32_t shifted = (uint32_t)(((old >> 18) ^ old) >> 27);
    const uint32_t turn = (uint32_t)(old >> 59);
    return (shifted >> turn) | (shifted << ((-turn) & 31));
  }
  uint32_t below(uint32_t limit) { return (uint32_t)(((uint64_t)next() * limit) >> 32); }
};

// exp(x) for |x| <= 30, to 1e-7.
inline __m256 exp8(__m256 x) {
  const __m256 scaled = _mm256_mul_ps(x, _mm256_set1_ps(1.44269504088896341f));
  const __m256 whole =
      _mm256_round_ps(scaled, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  __m256 rest = _mm256_fnmadd_ps(whole, _mm256_set1_ps(0.693359375f), x);
  rest = _mm256_fnmadd_ps(whole, _mm256_set1_ps(-2.12194440e-4f), rest);
  __m256 p = _mm256_set1_ps(1.0f / 720);
  p = _mm256_fmadd_ps(p, rest, _mm256_set1_ps(1.0f / 120));
  p = _mm256_fmadd_ps(p, rest, _mm256_set1_ps(1.0f / 24));
  p = _mm256_fmadd_ps(p, rest, _mm256_set1_ps(1.0f / 6));
  p = _mm256_fmadd_ps(p, rest, _mm256_set1_ps(0.5f));
  p = _mm256_fmadd_ps(p, rest, _mm256_set1_ps(1.0f));
  p = _mm256_fmadd_ps(p, rest, _mm256_set1_ps(1.0f));
  const __m256i power = _mm256_slli_epi32(
      _mm256_add_epi32(_mm256_cvtps_epi32(whole), _mm256_set1_epi32(127)), 23);
  return _mm256_mul_ps(p, _mm256_castsi256_ps(power));
}

// -sum of log(p): probabilities are multiplied, and a log is taken when the product is small.
struct LossSum {
  __m256d low = _mm256_set1_pd(1.0), high = _mm256_set1_pd(1.0);
  double sum = 0.0;
  int waiting = 0;
  inline void add(__m256 p) {
    low = _mm256_mul_pd(low, _mm256_cvtps_pd(_mm256_castps256_ps128(p)));
    high = _mm256_mul_pd(high, _mm256_cvtps_pd(_mm256_extractf128_ps(p, 1)));
    if (++waiting == 8) {  // at most 1e-13 each, so above 1e-260
      waiting = 0;
      const __m256d least = _mm256_min_pd(low, high);
      const __m256d below = _mm256_cmp_pd(least, _mm256_set1_pd(kSmall), _CMP_LT_OQ);
      if (_mm256_movemask_pd(below)) flush();
    }
  }
  void flush() {
    double lanes[8];
    _mm256_storeu_pd(lanes, low);
    _mm256_storeu_pd(lanes + 4, high);
    for (double lane : lanes) sum -= std::log(lane);
    low = high = _mm256_set1_pd(1.0);
  }
};

struct Scratch {
  float* memory = nullptr;
  explicit Scratch(size_t floats) {
    memory = static_cast<float*>(std::aligned_alloc(64, (floats * 4 + 63) / 64 * 64));
  }
  ~Scratch() { std::free(memory); }
  Scratch(const Scratch&) = delete;
};

inline void prefetch(const float* row, int stride) {
  for (int c = 0; c < stride; c += 16) __builtin_prefetch(row + c, 1, 2);
}

}  // namespace
