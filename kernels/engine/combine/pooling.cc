// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/combine/pooling.h"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "kernels/engine/base/row_math.h"

namespace ev {
namespace {

// Stores v[0, kVectors) at number 'at' of a narrow output. Not inlined, so that
// float32 outputs pay only for one test per sample.
template <int kVectors>
__attribute__((noinline)) void StoreNarrow(const F8* v, MutableFloats out,
                                           int64_t at) {
  if (out.type() == FloatType::kFloat16) {
    Float16* const to = reinterpret_cast<Float16*>(out.data()) + at;
    for (int k = 0; k < kVectors; ++k) Store8(to + 8 * k, v[k]);
  } else {
    BFloat16* const to = reinterpret_cast<BFloat16*>(out.data()) + at;
    for (int k = 0; k < kVectors; ++k) Store8(to + 8 * k, v[k]);
  }
}

// Stores a sample's numbers [at, at + 8 * kVectors).
template <int kVectors>
EV_READS_LIVE_ROWS_INLINE void StoreColumns(const F8* v, MutableFloats out,
                                            int64_t at) {
  if (out.type() == FloatType::kFloat32) {
    float* const to = out.floats() + at;
    for (int k = 0; k < kVectors; ++k) Store8(to + 8 * k, v[k]);
    return;
  }
  F8 copies[kVectors];  // so that v may stay in registers
  for (int k = 0; k < kVectors; ++k) copies[k] = v[k];
  StoreNarrow<kVectors>(copies, out, at);
}

inline void StoreOne(float x, MutableFloats out, int64_t at) {
  switch (out.type()) {
    case FloatType::kFloat32:
      return Narrow(x, out.floats() + at);
    case FloatType::kFloat16:
      return Narrow(x, reinterpret_cast<Float16*>(out.data()) + at);
    case FloatType::kBFloat16:
      return Narrow(x, reinterpret_cast<BFloat16*>(out.data()) + at);
  }
}

// Stores zeros, which have the same bits in all types.
inline void StoreZeros(MutableFloats out, int64_t at, int64_t count) {
  std::memset(out.At(at).data(), 0, count * FloatBytes(out.type()));
}

// Returns the divisor of a sample with at least one id.
template <typename C>
inline float Divisor(const float* weights, int64_t begin, int64_t end) {
  if (!C::kDivides) return 1.0f;
  if (weights == nullptr) return C::Divisor(static_cast<float>(end - begin));
  float total = 0.0f;
  for (int64_t i = begin; i < end; ++i) total += C::Term(weights[i]);
  return C::Divisor(total);
}

// Returns whether a sample's result is zeros because its divisor is 0.
template <typename C, bool kWeighted>
inline bool GivesZeros(const PoolingBatch& batch, float divisor) {
  return kWeighted && C::kDivides && batch.no_nan && divisor == 0.0f;
}

// Returns the row of id i, which has numbers of type Number.
template <typename Number>
EV_READS_LIVE_ROWS_INLINE const Number* RowOf(const PoolingBatch& batch,
                                              int64_t i) {
  return reinterpret_cast<const Number*>(batch.rows[batch.inverse[i]]);
}

// Prefetches the row of id i, or of id 'last' if i is beyond it.
template <typename Number>
EV_READS_LIVE_ROWS_INLINE void PrefetchAhead(const PoolingBatch& batch,
                                             int64_t i, int64_t last,
                                             int64_t count) {
  PrefetchFloats(RowOf<Number>(batch, i < last ? i : last), count);
}

// Computes numbers [column, column + 8 * kVectors) of a sample with ids [i,
// i_end), at least one; the sample's row begins at number 'at' of the output.
// With kPrefetch, each id except the first prefetches the row that is 'ahead'
// ids later.
template <typename C, typename Number, int kVectors, bool kWeighted,
          bool kPrefetch>
EV_READS_LIVE_ROWS_INLINE void JoinColumns(const PoolingBatch& batch, int64_t i,
                                           int64_t i_end, int64_t column,
                                           float divisor, int64_t ahead,
                                           int64_t last, MutableFloats out,
                                           int64_t at) {
  const Number* row = RowOf<Number>(batch, i) + column;
  F8 joined[kVectors];
  for (int k = 0; k < kVectors; ++k) joined[k] = Load8(row + 8 * k);
  if (kWeighted) {
    const float w = batch.weights[i];
    for (int k = 0; k < kVectors; ++k) joined[k] = joined[k] * w;
  }
  for (int64_t j = i + 1; j < i_end; ++j) {
    if (kPrefetch) {
      PrefetchAhead<Number>(batch, j + ahead, last, 8 * kVectors);
    }
    row = RowOf<Number>(batch, j) + column;
    if (kWeighted) {
      const float w = batch.weights[j];
      for (int k = 0; k < kVectors; ++k) {
        joined[k] = C::Join(joined[k], Load8(row + 8 * k) * w);
      }
    } else {
      for (int k = 0; k < kVectors; ++k) {
        joined[k] = C::Join(joined[k], Load8(row + 8 * k));
      }
    }
  }
  if (divisor != 1.0f) {
    for (int k = 0; k < kVectors; ++k) joined[k] = joined[k] / divisor;
  }
  StoreColumns<kVectors>(joined, out, at + column);
}

// Rows of exactly 8 * kVectors numbers: one pass, no branch on the dim.
template <typename C, typename Number, int kVectors, bool kWeighted>
EV_READS_LIVE_ROWS void PoolFixed(const PoolingBatch& batch_in, int64_t begin,
                                  int64_t end, MutableFloats out) {
  const PoolingBatch batch = batch_in;  // a local: stores cannot change it
  constexpr int64_t dim = 8 * kVectors;
  const int64_t ahead = RowsAhead(dim);
  const int64_t last = batch.offsets[end] - 1;
  for (int64_t s = begin; s < end; ++s) {
    const int64_t i = batch.offsets[s], i_end = batch.offsets[s + 1];
    if (i == i_end) {
      StoreZeros(out, s * dim, dim);
      continue;
    }
    PrefetchAhead<Number>(batch, i + ahead, last, dim);
    const float divisor =
        Divisor<C>(kWeighted ? batch.weights : nullptr, i, i_end);
    if (GivesZeros<C, kWeighted>(batch, divisor)) {
      StoreZeros(out, s * dim, dim);
      continue;
    }
    JoinColumns<C, Number, kVectors, kWeighted, true>(
        batch, i, i_end, 0, divisor, ahead, last, out, s * dim);
  }
}

// Any dim: column blocks of 64, 32 and 8, then single columns.
template <typename C, typename Number, bool kWeighted>
EV_READS_LIVE_ROWS void PoolAny(const PoolingBatch& batch_in, int64_t begin,
                                int64_t end, MutableFloats out) {
  const PoolingBatch batch = batch_in;
  const int64_t dim = batch.dim;
  const int64_t ahead = RowsAhead(dim);
  const int64_t last = batch.offsets[end] - 1;
  for (int64_t s = begin; s < end; ++s) {
    const int64_t i = batch.offsets[s], i_end = batch.offsets[s + 1];
    const int64_t at = s * dim;
    if (i == i_end) {
      StoreZeros(out, at, dim);
      continue;
    }
    for (int64_t j = i; j < i_end; ++j) {
      PrefetchAhead<Number>(batch, j + ahead, last, dim);
    }
    const float divisor =
        Divisor<C>(kWeighted ? batch.weights : nullptr, i, i_end);
    if (GivesZeros<C, kWeighted>(batch, divisor)) {
      StoreZeros(out, at, dim);
      continue;
    }
    int64_t c = 0;
    for (; c + 64 <= dim; c += 64) {
      JoinColumns<C, Number, 8, kWeighted, false>(batch, i, i_end, c, divisor,
                                                  0, 0, out, at);
    }
    for (; c + 32 <= dim; c += 32) {
      JoinColumns<C, Number, 4, kWeighted, false>(batch, i, i_end, c, divisor,
                                                  0, 0, out, at);
    }
    for (; c + 8 <= dim; c += 8) {
      JoinColumns<C, Number, 1, kWeighted, false>(batch, i, i_end, c, divisor,
                                                  0, 0, out, at);
    }
    for (; c < dim; ++c) {
      float joined = Widen(RowOf<Number>(batch, i)[c]);
      if (kWeighted) joined = joined * batch.weights[i];
      for (int64_t j = i + 1; j < i_end; ++j) {
        const float e = Widen(RowOf<Number>(batch, j)[c]);
        joined = C::Join(joined, kWeighted ? e * batch.weights[j] : e);
      }
      StoreOne(divisor == 1.0f ? joined : joined / divisor, out, at + c);
    }
  }
}

template <typename C, typename Number, bool kWeighted>
void Pool(const PoolingBatch& batch, int64_t begin, int64_t end,
          MutableFloats out) {
  switch (batch.dim) {
    case 8:
      return PoolFixed<C, Number, 1, kWeighted>(batch, begin, end, out);
    case 16:
      return PoolFixed<C, Number, 2, kWeighted>(batch, begin, end, out);
    case 32:
      return PoolFixed<C, Number, 4, kWeighted>(batch, begin, end, out);
    case 64:
      return PoolFixed<C, Number, 8, kWeighted>(batch, begin, end, out);
    default:
      return PoolAny<C, Number, kWeighted>(batch, begin, end, out);
  }
}

// Calls visitor(x), where x is a float, a Float16 or a BFloat16.
template <typename Visitor>
void VisitNumbers(FloatType type, const Visitor& visitor) {
  VisitFloats(MutableFloats(nullptr, type), [&](auto* of_type) {
    visitor(std::remove_pointer_t<decltype(of_type)>{});
  });
}

template <typename Number>
EV_READS_LIVE_ROWS void CopyNumbers(const float* const* rows, int64_t begin,
                                    int64_t end, int64_t dim, float* out) {
  const auto row_at = [&](int64_t i) {
    return reinterpret_cast<const Number*>(rows[i]);
  };
  const int64_t ahead = RowsAhead(dim);
  for (int64_t i = begin; i < end; ++i) {
    PrefetchFloats(row_at(i + ahead < end ? i + ahead : i), dim);
    const Number* row = row_at(i);
    float* to = out + i * dim;
    int64_t c = 0;
    for (; c + 8 <= dim; c += 8) Store8(to + c, Load8(row + c));
    for (; c < dim; ++c) to[c] = Widen(row[c]);
  }
}

}  // namespace

float SampleDivisor(Combiner combiner, const float* weights, int64_t begin,
                    int64_t end) {
  if (begin == end) return 1.0f;
  return VisitCombiner(combiner, [&](auto c) {
    return Divisor<decltype(c)>(weights, begin, end);
  });
}

void PoolSamples(const PoolingBatch& batch, int64_t begin, int64_t end,
                 MutableFloats out) {
  if (begin == end) return;
  VisitNumbers(batch.row_type, [&](auto number) {
    using Number = decltype(number);
    VisitCombiner(batch.combiner, [&](auto c) {
      if (batch.weights == nullptr) {
        Pool<decltype(c), Number, false>(batch, begin, end, out);
      } else {
        Pool<decltype(c), Number, true>(batch, begin, end, out);
      }
    });
  });
}

void CopyRows(const float* const* rows, int64_t begin, int64_t end, int64_t dim,
              float* out, FloatType type) {
  VisitNumbers(type, [&](auto number) {
    CopyNumbers<decltype(number)>(rows, begin, end, dim, out);
  });
}

}  // namespace ev
