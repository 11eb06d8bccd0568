// Exponentials, activations and layer normalization, a vector at a time.
#pragma once

#include "numbers.h"

namespace bertsmith {

// 2^x: a whole power times a degree-5 polynomial on [-.5, .5], relative error below 3e-7; underflows to 0.
inline vec power_of_two(vec x) {
  const vec whole = nearest_whole(x);
  const vec part = x - whole;
  vec p = all(1.3333558e-3f);
  p = multiply_add(p, part, all(9.6181291e-3f));
  p = multiply_add(p, part, all(5.5504109e-2f));
  p = multiply_add(p, part, all(2.4022651e-1f));
  p = multiply_add(p, part, all(6.9314718e-1f));
  p = multiply_add(p, part, all(1.0f));
  return scale_by_power(p, whole);
}

// The same to three decimals, for weights that are rounded to bfloat16 (2e-3) anyway: error below 2e-4.
inline vec power_of_two_roughly(vec x) {
  const vec whole = nearest_whole(x);
  const vec part = x - whole;
  vec p = all(5.5504109e-2f);
  p = multiply_add(p, part, all(2.4022651e-1f));
  p = multiply_add(p, part, all(6.9314718e-1f));
  p = multiply_add(p, part, all(1.0f));
  return scale_by_power(p, whole);
}

constexpr float kLog2E = 1.44269504f;

// x * Phi(x) with Phi(x) = 1/2 + x * Q(x^2): least squares on |x| <= 5, error below 4e-6.
inline vec gelu(vec x) {
  const vec c = larger(smaller(x, all(5.0f)), all(-5.0f));
  const vec t = multiply_less(c * c, all(0.08f), all(1.0f));
  static const float Q[12] = {0.14136363565921783f,   -0.07029806077480316f,  0.051533009856939316f,
                              -0.04040101170539856f,  0.0312756784260273f,    -0.023534854874014854f,
                              0.017201270908117294f,  -0.010479826480150223f, 0.004698281642049551f,
                              -0.003446137299761176f, 0.003396881278604269f,  -0.0013090427964925766f};
  vec q = all(Q[11]);
  for (int i = 10; i >= 0; --i) q = multiply_add(q, t, all(Q[i]));
  return x * multiply_add(c, q, all(0.5f));
}

inline vec sigmoid(vec x) {
  const vec e = power_of_two(x * all(-kLog2E));  // infinity where x is very negative: 1 / inf = 0
  return all(1.0f) / (all(1.0f) + e);
}

// GELU by tanh, as the original BERT code has it: x * sigmoid(2 u).
inline vec gelu_tanh(vec x) {
  const vec cube = x * x * x;
  const vec u = multiply_add(cube, all(0.044715f), x) * all(0.7978845608f);
  return x * sigmoid(u + u);
}

enum Activation : int32_t { kGelu = 0, kGeluTanh = 1, kRelu = 2, kSilu = 3 };

template <Activation kind>
inline vec activate(vec x) {
  if constexpr (kind == kGelu) return gelu(x);
  if constexpr (kind == kGeluTanh) return gelu_tanh(x);
  if constexpr (kind == kRelu) return larger(x, zero());
  return x * sigmoid(x);
}

// One row of D floats (D a multiple of kPanel) normalized in place and rounded into `rounded`.
inline void layer_norm(float* row, num* rounded, const float* gain, const float* bias, int D, float eps) {
  vec sum = zero();
  for (int d = 0; d < D; d += kLanes) sum = sum + load_any(row + d);
  const vec mean = all(sum_of(sum) / static_cast<float>(D));
  vec squares = zero();
  for (int d = 0; d < D; d += kLanes) {
    const vec off = load_any(row + d) - mean;
    squares = multiply_add(off, off, squares);
  }
  const float variance = sum_of(squares) / static_cast<float>(D);
  const vec scale = all(1.0f / __builtin_sqrtf(variance + eps));
  for (int d = 0; d < D; d += kLanes) {
    const vec off = (load_any(row + d) - mean) * scale;
    const vec out = multiply_add(off, load_any(gain + d), load_any(bias + d));
    store_any(row + d, out);
    store_num(rounded + d, out);
  }
}

}  // namespace bertsmith
