// Products of neighbors with outputs, and the updates of both.

#pragma once

#include "numbers.h"

namespace {

// Products of R neighbors with C outputs; eight scores are stored per neighbor.
template <int R, int C>
inline void dots(float* const* x, float* const* u, int stride, float* scores, int width) {
  vec sums[R][C] = {};
  for (int c = 0; c < stride; c += kLanes) {
    vec left[R];
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) left[r] = load(x[r] + c);
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) {
      const vec right = load(u[j] + c);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r) sums[r][j] += left[r] * right;
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < R; ++r) {
    __m256 folded[8] = {};
#pragma GCC unroll 8
    for (int j = 0; j < C; ++j) folded[j] = fold(sums[r][j]);
    _mm256_storeu_ps(scores + r * width, sum8(folded));
  }
}

template <int R>
inline void dots_of(float* const* x, float* const* u, int n, int stride, float* s, int width) {
  for (; n >= kBlock; n -= kBlock, u += kBlock, s += kBlock)
    dots<R, kBlock>(x, u, stride, s, width);
  switch (n) {
    case 5: dots<R, 5>(x, u, stride, s, width); break;
    case 4: dots<R, 4>(x, u, stride, s, width); break;
    case 3: dots<R, 3>(x, u, stride, s, width); break;
    case 2: dots<R, 2>(x, u, stride, s, width); break;
    case 1: dots<R, 1>(x, u, stride, s, width); break;
  }
}

// x[m] += sum over n of g[m, n] u[n], and u[n] += sum over m of g[m, n] x[m], all at old values.
template <int N>
inline void update_held(float* const* x, int m_count, float* const* u, int stride, const float* g,
                        int width) {
  for (int c = 0; c < stride; c += kLanes) {
    vec row[N], change[N];
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) {
      row[n] = load(u[n] + c);
      change[n] = vec{};
    }
    for (int m = 0; m < m_count; ++m) {
      const vec old = load(x[m] + c);
      vec moved = old;
      const float* gm = g + m * width;
#pragma GCC unroll 16
      for (int n = 0; n < N; ++n) {
        const vec rate = all(gm[n]);
        moved += rate * row[n];
        change[n] += rate * old;
      }
      store(x[m] + c, moved);
    }
#pragma GCC unroll 16
    for (int n = 0; n < N; ++n) store(u[n] + c, row[n] + change[n]);
  }
}

// The same for M neighbors in registers and any number of outputs; `into` takes the neighbors'
// changes instead of the neighbors, if it is given.
template <int M>
inline void update_few(float* const* x, float* const* u, int n_count, int stride, const float* g,
                       int width, float* into) {
  for (int c = 0; c < stride; c += kLanes) {
    vec old[M], change[M];
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      old[m] = load(x[m] + c);
      change[m] = vec{};
    }
    for (int n = 0; n < n_count; ++n) {
      const vec row = load(u[n] + c);
      vec moved = row;
#pragma GCC unroll 4
      for (int m = 0; m < M; ++m) {
        const vec rate = all(g[m * width + n]);
        moved += rate * old[m];
        change[m] += rate * row;
      }
      store(u[n] + c, moved);
    }
#pragma GCC unroll 4
    for (int m = 0; m < M; ++m) {
      if (into)
        store(into + c, change[m]);
      else
        store(x[m] + c, old[m] + change[m]);
    }
  }
}

// The same for any number of both.
void update_any(float* const* x, int m_count, float* const* u, int n_count, int stride,
                const float* g, int width, float* held) {
  for (int c = 0; c < stride; c += kLanes) {
    for (int m = 0; m < m_count; ++m) {
      store(held + 2 * m * kLanes, load(x[m] + c));
      store(held + (2 * m + 1) * kLanes, vec{});
    }
    for (int n = 0; n < n_count; ++n) {
      const vec row = load(u[n] + c);
      vec moved = row;
      for (int m = 0; m < m_count; ++m) {
        const vec rate = all(g[m * width + n]);
        float* place = held + 2 * m * kLanes;
        moved += rate * load(place);
        store(place + kLanes, load(place + kLanes) + rate * row);
      }
      store(u[n] + c, moved);
    }
    for (int m = 0; m < m_count; ++m) {
      const float* place = held + 2 * m * kLanes;
      store(x[m] + c, load(place) + load(place + kLanes));
    }
  }
}

}  // namespace
