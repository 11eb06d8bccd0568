// Vectors of floats in two widths, AVX2 (8) and AVX-512 (16): the same names for the same steps.
//
// Kernels are written with these names and compiled once per tier (tiers.py). A step is always one
// operation of the processor or a fixed sequence of them, so that a tier's numbers never change.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace bertsmith {

#ifdef __AVX512F__

constexpr int kLanes = 16;
using vec = __m512;

inline vec zero() { return _mm512_setzero_ps(); }
inline vec all(float v) { return _mm512_set1_ps(v); }
inline vec load_any(const float* p) { return _mm512_loadu_ps(p); }  // of any alignment
inline void store_any(float* p, vec v) { _mm512_storeu_ps(p, v); }
inline vec multiply_add(vec a, vec b, vec c) { return _mm512_fmadd_ps(a, b, c); }  // a b + c
inline vec multiply_less(vec a, vec b, vec c) { return _mm512_fmsub_ps(a, b, c); }  // a b - c
inline vec larger(vec a, vec b) { return _mm512_max_ps(a, b); }
inline vec smaller(vec a, vec b) { return _mm512_min_ps(a, b); }
inline vec nearest_whole(vec v) {
  return _mm512_roundscale_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// v 2^whole, which may underflow to 0 and overflow to infinity.
inline vec scale_by_power(vec v, vec whole) { return _mm512_scalef_ps(v, whole); }
// The first `count` lanes of `v`, the others of `rest`.
inline vec first_lanes(vec v, int count, vec rest) {
  const int mask = count >= 16 ? 0xffff : count <= 0 ? 0 : (1 << count) - 1;
  return _mm512_mask_blend_ps(static_cast<__mmask16>(mask), rest, v);
}
inline float sum_of(vec v) { return _mm512_reduce_add_ps(v); }
inline float largest_of(vec v) { return _mm512_reduce_max_ps(v); }
// The sums of lanes n and n + 8.
inline __m256 fold(vec v) {
  return _mm256_add_ps(_mm512_castps512_ps256(v), _mm512_extractf32x8_ps(v, 1));
}

#else

constexpr int kLanes = 8;
using vec = __m256;

inline vec zero() { return _mm256_setzero_ps(); }
inline vec all(float v) { return _mm256_set1_ps(v); }
inline vec load_any(const float* p) { return _mm256_loadu_ps(p); }  // of any alignment
inline void store_any(float* p, vec v) { _mm256_storeu_ps(p, v); }
inline vec multiply_add(vec a, vec b, vec c) { return _mm256_fmadd_ps(a, b, c); }  // a b + c
inline vec multiply_less(vec a, vec b, vec c) { return _mm256_fmsub_ps(a, b, c); }  // a b - c
inline vec larger(vec a, vec b) { return _mm256_max_ps(a, b); }
inline vec smaller(vec a, vec b) { return _mm256_min_ps(a, b); }
inline vec nearest_whole(vec v) {
  return _mm256_round_ps(v, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
}
// v 2^whole, which may underflow to 0 and overflow to infinity: two steps, each a normal power.
inline vec scale_by_power(vec v, vec whole) {
  const vec held = smaller(larger(whole, all(-252.0f)), all(254.0f));
  const __m256i power = _mm256_cvtps_epi32(held), half = _mm256_srai_epi32(power, 1);
  const auto two_to = [](__m256i n) {
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n, _mm256_set1_epi32(127)), 23));
  };
  return v * two_to(half) * two_to(_mm256_sub_epi32(power, half));
}
// The first `count` lanes of `v`, the others of `rest`.
inline vec first_lanes(vec v, int count, vec rest) {
  const __m256i places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
  const __m256i within = _mm256_cmpgt_epi32(_mm256_set1_epi32(count), places);
  return _mm256_blendv_ps(rest, v, _mm256_castsi256_ps(within));
}
inline float sum_of(vec v) {
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float largest_of(vec v) {
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}
inline __m256 fold(vec v) { return v; }

#endif

// Aligned to a whole vector.
inline vec load(const float* p) { return *reinterpret_cast<const vec*>(p); }
inline void store(float* p, vec v) { *reinterpret_cast<vec*>(p) = v; }

// The sum over the lanes of each of eight vectors.
inline __m256 sum8(const __m256* a) {
  const __m256 t0 = _mm256_hadd_ps(a[0], a[1]), t1 = _mm256_hadd_ps(a[2], a[3]);
  const __m256 t2 = _mm256_hadd_ps(a[4], a[5]), t3 = _mm256_hadd_ps(a[6], a[7]);
  const __m256 t4 = _mm256_hadd_ps(t0, t1), t5 = _mm256_hadd_ps(t2, t3);
  return _mm256_add_ps(_mm256_permute2f128_ps(t4, t5, 0x20), _mm256_permute2f128_ps(t4, t5, 0x31));
}

}  // namespace bertsmith
