// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Computes a sample at a time: its vectors stay in the first-level cache. Dots
// are summed in tiles of two by four pairs, in vectors of eight floats;
// gradients in tiles of four vectors by sixteen floats.

#include "kernels/engine/interaction/pair_dots.h"

#include <algorithm>
#include <type_traits>
#include <vector>

#include "kernels/engine/base/row_math.h"
#include "kernels/engine/base/tasks.h"

namespace ev {
namespace {

typedef int32_t I8 __attribute__((vector_size(32)));

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

template <typename From>
void WidenAll(const From* from, int64_t count, float* to) {
  int64_t c = 0;
  for (; c + 8 <= count; c += 8) Store8(to + c, Load8(from + c));
  for (; c < count; ++c) to[c] = Widen(from[c]);
}

template <typename To>
void NarrowAll(const float* from, int64_t count, To* to) {
  int64_t c = 0;
  for (; c + 8 <= count; c += 8) Store8(to + c, Load8(from + c));
  for (; c < count; ++c) Narrow(from[c], to + c);
}

template <typename Number>
constexpr bool kIsNarrow = !std::is_same<Number, float>::value;

// A sample's vectors as rows of 'length' floats. Rows of narrow numbers, and
// rows that are longer than the vectors, are copies; zeros follow the numbers.
template <typename Number>
class SampleRows {
 public:
  SampleRows(const VectorBatch& batch, int64_t length)
      : batch_(batch),
        length_(length),
        copies_(kIsNarrow<Number> || length != batch.dim),
        rows_(batch.num_vectors()),
        copied_(copies_ ? batch.num_vectors() * length : 0) {}

  const float* const* Load(int64_t sample) {
    for (size_t v = 0; v < rows_.size(); ++v) {
      const char* const data = batch_.vectors[v].At(sample * batch_.dim).data();
      if (copies_) {
        float* const copy = copied_.data() + v * length_;
        WidenAll(reinterpret_cast<const Number*>(data), batch_.dim, copy);
        rows_[v] = copy;
      } else {
        rows_[v] = reinterpret_cast<const float*>(data);
      }
    }
    return rows_.data();
  }

 private:
  const VectorBatch& batch_;
  const int64_t length_;
  const bool copies_;
  std::vector<const float*> rows_;
  std::vector<float> copied_;
};

template <typename Number>
void Dots(const VectorBatch& batch, int64_t begin, int64_t end, Number* dots) {
  const int64_t length = (batch.dim + 7) / 8 * 8, pairs = batch.num_pairs();
  SampleRows<Number> rows(batch, length);
  std::vector<float> wide(kIsNarrow<Number> ? pairs : 0);
  for (int64_t sample = begin; sample < end; ++sample) {
    Number* const to = dots + sample * pairs;
    float* sums = wide.data();
    if constexpr (!kIsNarrow<Number>) sums = to;
    DotsOfSample(rows.Load(sample), batch.num_vectors(), length, sums);
    if constexpr (kIsNarrow<Number>) NarrowAll(sums, pairs, to);
  }
}

template <typename Number>
void Gradient(const VectorBatch& batch, int64_t begin, int64_t end,
              const Number* slopes, Span<const MutableFloats> grads) {
  const int64_t n = batch.num_vectors(), dim = batch.dim;
  const int64_t pairs = batch.num_pairs();
  const int64_t stride = (n + kRows - 1) / kRows * kRows;
  SampleRows<Number> rows(batch, dim);
  std::vector<float> matrix(n * stride);
  std::vector<float> wide_slopes(kIsNarrow<Number> ? pairs : 0);
  std::vector<float> wide(kIsNarrow<Number> ? n * dim : 0);
  std::vector<float*> to(n);
  for (int64_t sample = begin; sample < end; ++sample) {
    const Number* const of_sample = slopes + sample * pairs;
    if constexpr (kIsNarrow<Number>) {
      WidenAll(of_sample, pairs, wide_slopes.data());
      SlopesAsMatrix(wide_slopes.data(), n, stride, matrix.data());
      for (int64_t v = 0; v < n; ++v) to[v] = wide.data() + v * dim;
    } else {
      SlopesAsMatrix(of_sample, n, stride, matrix.data());
      for (int64_t v = 0; v < n; ++v) to[v] = grads[v].floats() + sample * dim;
    }
    GradientOfSample(rows.Load(sample), n, dim, matrix.data(), stride,
                     to.data());
    if constexpr (kIsNarrow<Number>) {
      for (int64_t v = 0; v < n; ++v) {
        char* const data = grads[v].At(sample * dim).data();
        NarrowAll(to[v], dim, reinterpret_cast<Number*>(data));
      }
    }
  }
}

}  // namespace

Status PairDots(const VectorBatch& batch, MutableFloats dots,
                Parallel* parallel) {
  return ForRangesWithStatus(
      parallel, batch.num_samples, SamplesOfTask(batch),
      [&](int64_t begin, int64_t end) {
        VisitFloats(dots, [&](auto* typed) { Dots(batch, begin, end, typed); });
        return Status::OK();
      });
}

Status PairDotsGradient(const VectorBatch& batch, ConstFloats slopes,
                        Span<const MutableFloats> grads, Parallel* parallel) {
  return ForRangesWithStatus(parallel, batch.num_samples, SamplesOfTask(batch),
                             [&](int64_t begin, int64_t end) {
                               VisitFloats(slopes, [&](const auto* typed) {
                                 Gradient(batch, begin, end, typed, grads);
                               });
                               return Status::OK();
                             });
}

}  // namespace ev
