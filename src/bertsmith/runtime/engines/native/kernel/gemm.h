// C (M, N) = A (M, K) times packed W (K, N), float32 sums, each finished vector handed to `finish`.
//
// W is packed in panels of 16 columns: panel[n / 16][k / kStep][n % 16][k % kStep]. All tiers read
// that order: a register holds one step of k for kLanes columns, an AMX tile sixteen such steps.
// `finish(row, column, sums)` gets kLanes neighboring columns of one row.
#pragma once

#include "numbers.h"

#ifdef BERTSMITH_AMX
#include "tiles.h"
#endif

namespace bertsmith {

// W (N, K) row-major float32 -> panels; N a multiple of kPanel, K of kStep.
inline void pack(const float* W, int N, int K, float scale, num* to) {
  for (int n = 0; n < N; ++n)
    for (int k = 0; k < K; ++k)
      to[((static_cast<size_t>(n / kPanel) * (K / kStep) + k / kStep) * kPanel + n % kPanel) * kStep + k % kStep] =
          to_num(W[static_cast<size_t>(n) * K + k] * scale);
}

struct Operand {
  const num* rows;
  size_t stride;  // numbers from one row to the next
};

#ifdef BERTSMITH_AMX

constexpr int kSpareRows = 32;  // rows that are read beyond M, and ignored
constexpr int kKeyBlock = 32;   // K is a multiple of this

template <int columns, class Finish>
inline void tile_block(int rows, int K, Operand A, const num* panel, int column, const Finish& finish) {
  const size_t next_panel = static_cast<size_t>(K) * 16;
  alignas(64) float sums[2][columns][16 * 16];
  tile_zero<0>();
  tile_zero<2>();
  if constexpr (columns == 2) {
    tile_zero<1>();
    tile_zero<3>();
  }
  const bool low = rows > 16;
  for (int k = 0; k < K; k += 32) {
    tile_load<4>(A.rows + k, A.stride * 2);
    if (low) tile_load<5>(A.rows + 16 * A.stride + k, A.stride * 2);
    tile_load<6>(panel + static_cast<size_t>(k) * 16, 64);
    if constexpr (columns == 2) tile_load<7>(panel + next_panel + static_cast<size_t>(k) * 16, 64);
    tile_multiply<0, 4, 6>();
    if constexpr (columns == 2) tile_multiply<1, 4, 7>();
    if (low) {
      tile_multiply<2, 5, 6>();
      if constexpr (columns == 2) tile_multiply<3, 5, 7>();
    }
  }
  tile_store<0>(sums[0][0], 64);
  if constexpr (columns == 2) tile_store<1>(sums[0][1], 64);
  if (low) {
    tile_store<2>(sums[1][0], 64);
    if constexpr (columns == 2) tile_store<3>(sums[1][1], 64);
  }
  for (int r = 0; r < rows; ++r)
    for (int c = 0; c < columns; ++c)
      finish(r, column + 16 * c, load(sums[r / 16][c] + 16 * (r % 16)));
}

template <class Finish>
inline void multiply(int M, int N, int K, Operand A, const num* W, const Finish& finish) {
  for (int n = 0; n < N; n += 32) {
    const num* panel = W + static_cast<size_t>(n) * K;
    for (int m = 0; m < M; m += 32) {
      const int rows = M - m < 32 ? M - m : 32;
      const Operand block{A.rows + m * A.stride, A.stride};
      const auto shifted = [&](int r, int c, vec v) { finish(m + r, c, v); };
      if (N - n >= 32)
        tile_block<2>(rows, K, block, panel, n, shifted);
      else
        tile_block<1>(rows, K, block, panel, n, shifted);
    }
  }
}

#else

constexpr int kSpareRows = 0;
constexpr int kKeyBlock = 16;

constexpr int kWidest = kLanes == 16 ? 4 : 2;  // vectors of columns in a block

// `rows` x `columns` vectors of sums stay in registers while K runs: 6 x 4 uses 29 of 32, 6 x 2 15 of 16.
template <int rows, int columns, class Finish>
inline void register_block(int K, Operand A, const num* panel, int row, int column, const Finish& finish) {
  const size_t next_panel = static_cast<size_t>(K) * kPanel;
  vec sums[rows][columns];
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) sums[r][c] = zero();
  for (int k = 0; k < K; k += kStep) {
    Weights w[columns];
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) {
      const int first = c * kLanes;
      w[c] = load_weights(panel + first / kPanel * next_panel + static_cast<size_t>(k) * kPanel +
                          first % kPanel * kStep);
    }
#pragma GCC unroll 6
    for (int r = 0; r < rows; ++r) {
      const Weights a = load_step(A.rows + r * A.stride + k);
#pragma GCC unroll 4
      for (int c = 0; c < columns; ++c) sums[r][c] = add_product(sums[r][c], a, w[c]);
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < rows; ++r)
#pragma GCC unroll 4
    for (int c = 0; c < columns; ++c) finish(row + r, column + kLanes * c, sums[r][c]);
}

template <int columns, class Finish>
inline void row_strips(int M, int K, Operand A, const num* panel, int column, const Finish& finish) {
  int m = 0;
  for (; m + 6 <= M; m += 6)
    register_block<6, columns>(K, {A.rows + m * A.stride, A.stride}, panel, m, column, finish);
  const Operand rest{A.rows + m * A.stride, A.stride};
  switch (M - m) {
    case 5: return register_block<5, columns>(K, rest, panel, m, column, finish);
    case 4: return register_block<4, columns>(K, rest, panel, m, column, finish);
    case 3: return register_block<3, columns>(K, rest, panel, m, column, finish);
    case 2: return register_block<2, columns>(K, rest, panel, m, column, finish);
    case 1: return register_block<1, columns>(K, rest, panel, m, column, finish);
  }
}

template <class Finish>
inline void multiply(int M, int N, int K, Operand A, const num* W, const Finish& finish) {
  int n = 0;
  for (; n + kWidest * kLanes <= N; n += kWidest * kLanes)
    row_strips<kWidest>(M, K, A, W + static_cast<size_t>(n) * K, n, finish);
  const num* rest = W + static_cast<size_t>(n) * K;
  switch ((N - n) / kLanes) {  // N is a multiple of kPanel: none is left in half a panel
    case 3: return row_strips<3>(M, K, A, rest, n, finish);
    case 2: return row_strips<2>(M, K, A, rest, n, finish);
    case 1: return row_strips<1>(M, K, A, rest, n, finish);
  }
}

#endif

}  // namespace bertsmith
