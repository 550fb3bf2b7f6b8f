// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/combine/pooling_gradient.h"

#include <algorithm>

#include "kernels/engine/base/row_math.h"

namespace ev {
namespace {

// Kinds of factors that an occurrence's gradient is multiplied by.
enum class Scale { kNone, kPerSample, kPerOccurrence };

template <Scale kScale>
inline float ScaleOf(const Occurrences& occurrences, const float* factors,
                     int64_t i) {
  if (kScale == Scale::kPerSample) return factors[occurrences.samples[i]];
  if (kScale == Scale::kPerOccurrence) return occurrences.weights[i];
  return 1.0f;
}

// Columns [column, column + 8 * kVectors) of one row's sum over [i, i_end).
template <int kVectors, Scale kScale, typename Grad>
inline __attribute__((always_inline)) void SumColumns(
    const Occurrences& occurrences, const float* factors, const Grad* grads,
    int64_t dim, int64_t i, int64_t i_end, int64_t column, float* out) {
  F8 sum[kVectors];
  const Grad* grad = grads + occurrences.samples[i] * dim + column;
  for (int k = 0; k < kVectors; ++k) sum[k] = Load8(grad + 8 * k);
  if (kScale != Scale::kNone) {
    const float scale = ScaleOf<kScale>(occurrences, factors, i);
    for (int k = 0; k < kVectors; ++k) sum[k] = sum[k] * scale;
  }
  for (int64_t j = i + 1; j < i_end; ++j) {
    grad = grads + occurrences.samples[j] * dim + column;
    if (kScale != Scale::kNone) {
      const float scale = ScaleOf<kScale>(occurrences, factors, j);
      for (int k = 0; k < kVectors; ++k) sum[k] += Load8(grad + 8 * k) * scale;
    } else {
      for (int k = 0; k < kVectors; ++k) sum[k] += Load8(grad + 8 * k);
    }
  }
  for (int k = 0; k < kVectors; ++k) Store8(out + column + 8 * k, sum[k]);
}

// kVectors: dim / 8 if it is a compile-time constant, else 0.
template <int kVectors, Scale kScale, typename Grad>
void SumRows(const Occurrences& occurrences_in, const float* factors,
             const Grad* grads, int64_t dim_in, int64_t begin, int64_t end,
             float* out) {
  const Occurrences occurrences = occurrences_in;
  const int64_t dim = kVectors != 0 ? 8 * kVectors : dim_in;
  const int64_t ahead = RowsAhead(dim);
  const int64_t last = occurrences.ends[end - 1] - 1;
  int64_t i = begin == 0 ? 0 : occurrences.ends[begin - 1];
  for (int64_t u = begin; u < end; ++u) {
    const int64_t i_end = occurrences.ends[u];
    float* const row = out + (u - begin) * dim;
    for (int64_t j = i; j < i_end; ++j) {
      const int64_t next = std::min(j + ahead, last);
      PrefetchFloats(grads + occurrences.samples[next] * dim, dim);
    }
    if (kVectors != 0) {
      SumColumns<kVectors == 0 ? 1 : kVectors, kScale>(
          occurrences, factors, grads, dim, i, i_end, 0, row);
      i = i_end;
      continue;
    }
    int64_t c = 0;
    for (; c + 64 <= dim; c += 64) {
      SumColumns<8, kScale>(occurrences, factors, grads, dim, i, i_end, c, row);
    }
    for (; c + 32 <= dim; c += 32) {
      SumColumns<4, kScale>(occurrences, factors, grads, dim, i, i_end, c, row);
    }
    for (; c + 8 <= dim; c += 8) {
      SumColumns<1, kScale>(occurrences, factors, grads, dim, i, i_end, c, row);
    }
    for (; c < dim; ++c) {
      float sum = 0.0f;
      for (int64_t j = i; j < i_end; ++j) {
        float g = Widen(grads[occurrences.samples[j] * dim + c]);
        if (kScale != Scale::kNone) {
          g = g * ScaleOf<kScale>(occurrences, factors, j);
        }
        sum = j == i ? g : sum + g;
      }
      row[c] = sum;
    }
    i = i_end;
  }
}

template <Scale kScale, typename Grad>
void SumAny(const Occurrences& occurrences, const float* factors,
            const Grad* grads, int64_t dim, int64_t begin, int64_t end,
            float* out) {
  switch (dim) {
    case 8:
      return SumRows<1, kScale>(occurrences, factors, grads, dim, begin, end,
                                out);
    case 16:
      return SumRows<2, kScale>(occurrences, factors, grads, dim, begin, end,
                                out);
    case 32:
      return SumRows<4, kScale>(occurrences, factors, grads, dim, begin, end,
                                out);
    case 64:
      return SumRows<8, kScale>(occurrences, factors, grads, dim, begin, end,
                                out);
    default:
      return SumRows<0, kScale>(occurrences, factors, grads, dim, begin, end,
                                out);
  }
}

EV_READS_LIVE_ROWS_INLINE float Dot(const float* a, const float* b,
                                    int64_t dim) {
  F8 sums = {};
  int64_t c = 0;
  for (; c + 8 <= dim; c += 8) sums += Load8(a + c) * Load8(b + c);
  float sum = ((sums[0] + sums[4]) + (sums[2] + sums[6])) +
              ((sums[1] + sums[5]) + (sums[3] + sums[7]));
  for (; c < dim; ++c) sum += a[c] * b[c];
  return sum;
}

}  // namespace

bool SampleFactors(Combiner combiner, const int32_t* offsets,
                   const float* weights, bool no_nan, int64_t begin,
                   int64_t end, float* factors) {
  if (!Divides(combiner)) return false;
  bool any = false;
  for (int64_t s = begin; s < end; ++s) {
    const float divisor =
        SampleDivisor(combiner, weights, offsets[s], offsets[s + 1]);
    factors[s] = 1.0f;
    if (divisor == 1.0f) continue;  // always so for samples of one id
    factors[s] = no_nan && divisor == 0.0f ? 0.0f : 1.0f / divisor;
    any = true;
  }
  return any;
}

void GroupOccurrences(const int32_t* inverse, const int32_t* counts,
                      int64_t num_unique, const int32_t* offsets,
                      int64_t num_samples, const float* weights,
                      const float* factors, int32_t* ends, int32_t* samples,
                      float* grouped_weights) {
  int32_t begin = 0;
  for (int64_t u = 0; u < num_unique; ++u) {
    ends[u] = begin;
    begin += counts[u];
  }
  // ends[u] advances from the first place of row u to one past its last.
  for (int64_t s = 0; s < num_samples; ++s) {
    const int32_t sample = static_cast<int32_t>(s);
    const float factor = factors != nullptr ? factors[s] : 1.0f;
    for (int64_t i = offsets[s]; i < offsets[s + 1]; ++i) {
      const int32_t place = ends[inverse[i]]++;
      samples[place] = sample;
      if (weights != nullptr) grouped_weights[place] = weights[i] * factor;
    }
  }
}

void GroupPart(const OccurrencePart& part, const int32_t* counts,
               const float* weights, const float* factors, int32_t* ends,
               int32_t* grouped_samples, float* grouped_weights) {
  int32_t next = static_cast<int32_t>(part.begin);
  for (int64_t row = part.row_begin; row < part.row_end; ++row) {
    ends[row] = next;
    next += counts[row];
  }
  for (int64_t k = part.begin; k < part.end; ++k) {
    const int32_t sample = part.samples[k];
    const int32_t place = ends[part.rows[k]]++;
    grouped_samples[place] = sample;
    if (weights != nullptr) {
      grouped_weights[place] = weights[part.positions[k]] *
                               (factors != nullptr ? factors[sample] : 1.0f);
    }
  }
}

void SumOccurrences(const Occurrences& occurrences, const float* factors,
                    ConstFloats all_grads, int64_t dim, int64_t begin,
                    int64_t end, float* out) {
  if (begin == end) return;
  VisitFloats(all_grads, [&](const auto* grads) {
    if (occurrences.weights != nullptr) {
      SumAny<Scale::kPerOccurrence>(occurrences, nullptr, grads, dim, begin,
                                    end, out);
    } else if (factors != nullptr) {
      SumAny<Scale::kPerSample>(occurrences, factors, grads, dim, begin, end,
                                out);
    } else {
      SumAny<Scale::kNone>(occurrences, nullptr, grads, dim, begin, end, out);
    }
  });
}

void SpreadGradients(const int32_t* offsets, const float* weights,
                     const float* factors, ConstFloats all_grads, int64_t dim,
                     int64_t begin, int64_t end, float* out) {
  VisitFloats(all_grads, [&](const auto* grads) {
    for (int64_t s = begin; s < end; ++s) {
      const auto* const grad = grads + s * dim;
      const float factor = factors != nullptr ? factors[s] : 1.0f;
      for (int64_t i = offsets[s]; i < offsets[s + 1]; ++i) {
        float* const row = out + i * dim;
        const float scale = weights != nullptr ? weights[i] * factor : factor;
        int64_t c = 0;
        if (scale == 1.0f) {
          for (; c + 8 <= dim; c += 8) Store8(row + c, Load8(grad + c));
          for (; c < dim; ++c) row[c] = Widen(grad[c]);
        } else {
          for (; c + 8 <= dim; c += 8) Store8(row + c, Load8(grad + c) * scale);
          for (; c < dim; ++c) row[c] = Widen(grad[c]) * scale;
        }
      }
    }
  });
}

namespace {

template <typename C>
EV_READS_LIVE_ROWS void WeightGradientsOf(const PoolingBatch& batch,
                                          const float* grads,
                                          const float* outputs, int64_t begin,
                                          int64_t end, float* weight_grad) {
  const int64_t dim = batch.dim;
  for (int64_t s = begin; s < end; ++s) {
    const int64_t i = batch.offsets[s], i_end = batch.offsets[s + 1];
    if (i == i_end) continue;
    const float* grad = grads + s * dim;
    const float divisor =
        SampleDivisor(batch.combiner, batch.weights, i, i_end);
    if (batch.no_nan && divisor == 0.0f) {
      std::fill(weight_grad + i, weight_grad + i_end, 0.0f);
      continue;
    }
    const float grad_out =
        C::kDivides ? Dot(grad, outputs + s * dim, dim) : 0.0f;
    for (int64_t j = i; j < i_end; ++j) {
      const float grad_row = Dot(grad, batch.rows[batch.inverse[j]], dim);
      const float w = batch.weights == nullptr ? 1.0f : batch.weights[j];
      weight_grad[j] = C::WeightGradient(grad_row, grad_out, w, divisor);
    }
  }
}

}  // namespace

void WeightGradients(const PoolingBatch& batch, const float* grads,
                     const float* outputs, int64_t begin, int64_t end,
                     float* weight_grad) {
  VisitCombiner(batch.combiner, [&](auto c) {
    WeightGradientsOf<decltype(c)>(batch, grads, outputs, begin, end,
                                   weight_grad);
  });
}

}  // namespace ev
