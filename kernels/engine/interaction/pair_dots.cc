// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Computes a sample at a time: its vectors stay in the first-level cache. Dots
// are summed in tiles of two by four pairs, in vectors of eight floats;
// gradients in tiles of four vectors by sixteen floats.

#include "kernels/engine/interaction/pair_dots.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/engine/base/tasks.h"

namespace ev {
namespace {

// Loads from any address may alias any type.
typedef float F8 __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t I8 __attribute__((vector_size(32)));

inline F8 Load8(const float* p) { return *reinterpret_cast<const F8*>(p); }
inline void Store8(float* p, F8 v) { *reinterpret_cast<F8*>(p) = v; }

// Multiplications per task: some fifty microseconds.
constexpr int64_t kTaskWork = 1 << 19;

constexpr int kTall = 2, kWide = 4;  // of a tile of pairs
constexpr int kRows = 4;             // of a tile of gradients

int64_t SamplesOfTask(const VectorBatch& batch) {
  return std::max<int64_t>(
      1, kTaskWork / std::max<int64_t>(1, batch.num_pairs() * batch.dim));
}

// Stores the sums of the floats of each of four vectors.
inline void Sum4(F8 a, F8 b, F8 c, F8 d, float* sums) {
  const I8 even = {0, 8, 1, 9, 4, 12, 5, 13};
  const I8 odd = {2, 10, 3, 11, 6, 14, 7, 15};
  const F8 ab = __builtin_shuffle(a, b, even) + __builtin_shuffle(a, b, odd);
  const F8 cd = __builtin_shuffle(c, d, even) + __builtin_shuffle(c, d, odd);
  const I8 front = {0, 1, 8, 9, 4, 5, 12, 13};
  const I8 back = {2, 3, 10, 11, 6, 7, 14, 15};
  const F8 halves =
      __builtin_shuffle(ab, cd, front) + __builtin_shuffle(ab, cd, back);
  for (int k = 0; k < 4; ++k) sums[k] = halves[k] + halves[k + 4];
}

// Sets sums[t][u] = tall[t] * wide[u]; 'length' is a multiple of 8.
inline void DotTile(const float* const (&tall)[kTall],
                    const float* const (&wide)[kWide], int64_t length,
                    float (&sums)[kTall][kWide]) {
  F8 total[kTall][kWide] = {};
  for (int64_t d = 0; d < length; d += 8) {
    const F8 first = Load8(tall[0] + d), second = Load8(tall[1] + d);
    for (int u = 0; u < kWide; ++u) {
      const F8 other = Load8(wide[u] + d);
      total[0][u] += first * other;
      total[1][u] += second * other;
    }
  }
  for (int t = 0; t < kTall; ++t) {
    Sum4(total[t][0], total[t][1], total[t][2], total[t][3], sums[t]);
  }
}

void DotsOfSample(const float* const* rows, int64_t n, int64_t length,
                  float* dots) {
  for (int64_t i = 0; i < n; i += kTall) {
    const int64_t last = std::min(n, i + kTall) - 1;
    const float* const tall[kTall] = {rows[i], rows[last]};
    for (int64_t j = 0; j < last; j += kWide) {
      const float* wide[kWide];
      for (int u = 0; u < kWide; ++u) wide[u] = rows[std::min(n - 1, j + u)];
      float sums[kTall][kWide];
      DotTile(tall, wide, length, sums);
      for (int row = 0; row < kTall && i + row <= last; ++row) {
        // at most up to one before the diagonal
        const int64_t count = std::min<int64_t>(kWide, i + row - j);
        float* const to = dots + NumPairs(i + row) + j;
        for (int u = 0; u < count; ++u) to[u] = sums[row][u];
      }
    }
  }
}

// Writes the slopes of a sample as a symmetric matrix with zeros on its
// diagonal. A row has 'stride' floats, with zeros after the last.
void SlopesAsMatrix(const float* slopes, int64_t n, int64_t stride,
                    float* matrix) {
  for (int64_t i = 0; i < n; ++i) {
    const float* const of_row = slopes + NumPairs(i);
    for (int64_t j = 0; j < i; ++j) {
      matrix[i * stride + j] = of_row[j];
      matrix[j * stride + i] = of_row[j];
    }
  }
}

// Computes to[r], kVectors * 8 floats each, from matrix rows [i, i + kRows).
template <int kVectors>
inline void GradientTile(const float* const* rows, int64_t n, int64_t d,
                         const float* matrix, int64_t stride, int64_t i,
                         float* const* to, int count) {
  F8 total[kRows][kVectors] = {};
  for (int64_t j = 0; j < n; ++j) {
    const float* const row = rows[j] + d;
    const float* const factors = matrix + j * stride + i;
    for (int v = 0; v < kVectors; ++v) {
      const F8 x = Load8(row + v * 8);
      for (int r = 0; r < kRows; ++r) total[r][v] += factors[r] * x;
    }
  }
  for (int r = 0; r < count; ++r) {
    for (int v = 0; v < kVectors; ++v) Store8(to[r] + d + v * 8, total[r][v]);
  }
}

void GradientOfSample(const float* const* rows, int64_t n, int64_t dim,
                      const float* matrix, int64_t stride, float* const* to) {
  for (int64_t i = 0; i < n; i += kRows) {
    const int count = static_cast<int>(std::min<int64_t>(kRows, n - i));
    int64_t d = 0;
    for (; d + 16 <= dim; d += 16) {
      GradientTile<2>(rows, n, d, matrix, stride, i, to + i, count);
    }
    if (d + 8 <= dim) {
      GradientTile<1>(rows, n, d, matrix, stride, i, to + i, count);
      d += 8;
    }
    for (int r = 0; r < count; ++r) {
      for (int64_t c = d; c < dim; ++c) {
        float total = 0.0f;
        for (int64_t j = 0; j < n; ++j) {
          total += matrix[j * stride + i + r] * rows[j][c];
        }
        to[i + r][c] = total;
      }
    }
  }
}

}  // namespace

Status PairDots(const VectorBatch& batch, float* dots, Parallel* parallel) {
  const int64_t n = batch.num_vectors(), dim = batch.dim;
  const int64_t length = (dim + 7) / 8 * 8;
  return ForRangesWithStatus(
      parallel, batch.num_samples, SamplesOfTask(batch),
      [&](int64_t begin, int64_t end) {
        std::vector<const float*> rows(n);
        // Rows whose length is not a multiple of 8 are padded with zeros.
        std::vector<float> padded(length == dim ? 0 : n * length);
        for (int64_t sample = begin; sample < end; ++sample) {
          for (int64_t v = 0; v < n; ++v) {
            rows[v] = batch.vectors[v] + sample * dim;
            if (length == dim) continue;
            float* const copy = padded.data() + v * length;
            std::memcpy(copy, rows[v], dim * sizeof(float));
            rows[v] = copy;
          }
          DotsOfSample(rows.data(), n, length,
                       dots + sample * batch.num_pairs());
        }
        return Status::OK();
      });
}

Status PairDotsGradient(const VectorBatch& batch, const float* slopes,
                        Span<float* const> grads, Parallel* parallel) {
  const int64_t n = batch.num_vectors(), dim = batch.dim;
  const int64_t stride = (n + kRows - 1) / kRows * kRows;
  return ForRangesWithStatus(
      parallel, batch.num_samples, SamplesOfTask(batch),
      [&](int64_t begin, int64_t end) {
        std::vector<const float*> rows(n);
        std::vector<float*> to(n);
        std::vector<float> matrix(n * stride);
        for (int64_t sample = begin; sample < end; ++sample) {
          for (int64_t v = 0; v < n; ++v) {
            rows[v] = batch.vectors[v] + sample * dim;
            to[v] = grads[v] + sample * dim;
          }
          SlopesAsMatrix(slopes + sample * batch.num_pairs(), n, stride,
                         matrix.data());
          GradientOfSample(rows.data(), n, dim, matrix.data(), stride,
                           to.data());
        }
        return Status::OK();
      });
}

}  // namespace ev
