// Sixteen floats at a time: rounding to bfloat16, exponential, activations, layer normalization.
#pragma once

#include <immintrin.h>

#include <cstddef>
#include <cstdint>

namespace bertsmith {

using bf16 = uint16_t;

inline __m256i to_bf16(__m512 v) { return (__m256i)_mm512_cvtneps_pbh(v); }

inline bf16 to_bf16(float v) {
  uint32_t bits;
  __builtin_memcpy(&bits, &v, 4);
  return static_cast<bf16>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);  // nearest, ties to even
}

inline void store_bf16(bf16* to, __m512 v) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(to), to_bf16(v));
}

inline __m512 set(float v) { return _mm512_set1_ps(v); }

// 2^x: a whole power times a degree-5 polynomial on [-.5, .5], relative error below 3e-7; underflows to 0.
inline __m512 power_of_two(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 part = _mm512_sub_ps(x, whole);
  __m512 p = set(1.3333558e-3f);
  p = _mm512_fmadd_ps(p, part, set(9.6181291e-3f));
  p = _mm512_fmadd_ps(p, part, set(5.5504109e-2f));
  p = _mm512_fmadd_ps(p, part, set(2.4022651e-1f));
  p = _mm512_fmadd_ps(p, part, set(6.9314718e-1f));
  p = _mm512_fmadd_ps(p, part, set(1.0f));
  return _mm512_scalef_ps(p, whole);
}

// The same to three decimals, for weights that are rounded to bfloat16 (2e-3) anyway: error below 2e-4.
inline __m512 power_of_two_roughly(__m512 x) {
  const __m512 whole = _mm512_roundscale_ps(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
  const __m512 part = _mm512_sub_ps(x, whole);
  __m512 p = set(5.5504109e-2f);
  p = _mm512_fmadd_ps(p, part, set(2.4022651e-1f));
  p = _mm512_fmadd_ps(p, part, set(6.9314718e-1f));
  p = _mm512_fmadd_ps(p, part, set(1.0f));
  return _mm512_scalef_ps(p, whole);
}

constexpr float kLog2E = 1.44269504f;

// x * Phi(x) with Phi(x) = 1/2 + x * Q(x^2): least squares on |x| <= 5, error below 4e-6.
inline __m512 gelu(__m512 x) {
  const __m512 c = _mm512_max_ps(_mm512_min_ps(x, set(5.0f)), set(-5.0f));
  const __m512 t = _mm512_fmsub_ps(_mm512_mul_ps(c, c), set(0.08f), set(1.0f));
  static const float Q[12] = {0.14136363565921783f,   -0.07029806077480316f,  0.051533009856939316f,
                              -0.04040101170539856f,  0.0312756784260273f,    -0.023534854874014854f,
                              0.017201270908117294f,  -0.010479826480150223f, 0.004698281642049551f,
                              -0.003446137299761176f, 0.003396881278604269f,  -0.0013090427964925766f};
  __m512 q = set(Q[11]);
  for (int i = 10; i >= 0; --i) q = _mm512_fmadd_ps(q, t, set(Q[i]));
  return _mm512_mul_ps(x, _mm512_fmadd_ps(c, q, set(0.5f)));
}

inline __m512 sigmoid(__m512 x) {
  const __m512 e = power_of_two(_mm512_mul_ps(x, set(-kLog2E)));  // infinity where x is very negative: 1 / inf = 0
  return _mm512_div_ps(set(1.0f), _mm512_add_ps(set(1.0f), e));
}

// GELU by tanh, as the original BERT code has it: x * sigmoid(2 u).
inline __m512 gelu_tanh(__m512 x) {
  const __m512 cube = _mm512_mul_ps(_mm512_mul_ps(x, x), x);
  const __m512 u = _mm512_mul_ps(_mm512_fmadd_ps(cube, set(0.044715f), x), set(0.7978845608f));
  return _mm512_mul_ps(x, sigmoid(_mm512_add_ps(u, u)));
}

enum Activation : int32_t { kGelu = 0, kGeluTanh = 1, kRelu = 2, kSilu = 3 };

template <Activation kind>
inline __m512 activate(__m512 x) {
  if constexpr (kind == kGelu) return gelu(x);
  if constexpr (kind == kGeluTanh) return gelu_tanh(x);
  if constexpr (kind == kRelu) return _mm512_max_ps(x, _mm512_setzero_ps());
  return _mm512_mul_ps(x, sigmoid(x));
}

// One row of D floats (D a multiple of 16) normalized in place and rounded into `rounded`.
inline void layer_norm(float* row, bf16* rounded, const float* gain, const float* bias, int D, float eps) {
  __m512 sum = _mm512_setzero_ps();
  for (int d = 0; d < D; d += 16) sum = _mm512_add_ps(sum, _mm512_loadu_ps(row + d));
  const __m512 mean = set(_mm512_reduce_add_ps(sum) / static_cast<float>(D));
  __m512 squares = _mm512_setzero_ps();
  for (int d = 0; d < D; d += 16) {
    const __m512 off = _mm512_sub_ps(_mm512_loadu_ps(row + d), mean);
    squares = _mm512_fmadd_ps(off, off, squares);
  }
  const float variance = _mm512_reduce_add_ps(squares) / static_cast<float>(D);
  const __m512 scale = set(1.0f / __builtin_sqrtf(variance + eps));
  for (int d = 0; d < D; d += 16) {
    const __m512 off = _mm512_mul_ps(_mm512_sub_ps(_mm512_loadu_ps(row + d), mean), scale);
    const __m512 out = _mm512_fmadd_ps(off, _mm512_loadu_ps(gain + d), _mm512_loadu_ps(bias + d));
    _mm512_storeu_ps(row + d, out);
    store_bf16(rounded + d, out);
  }
}

}  // namespace bertsmith
