// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "kernels/engine/combine/selected_gradient.h"

#include <algorithm>
#include <vector>

#include "kernels/engine/base/float_math.h"

namespace ev {

void SelectedShares::Reserve(int64_t batch_size, int64_t dim) {
  pooled = floats_.ReserveOf<float>(2 * batch_size * dim);
  shares = pooled + batch_size * dim;
}

void ShareGradients(const PoolingBatch& batch, ConstFloats grads, int64_t begin,
                    int64_t end, SelectedShares* selected) {
  const int64_t dim = batch.dim;
  PoolSamples(batch, begin, end, selected->pooled);
  for (int64_t s = begin; s < end; ++s) {
    const int64_t i = batch.offsets[s], i_end = batch.offsets[s + 1];
    if (i == i_end) continue;
    const float* const pooled = selected->pooled + s * dim;
    float* const share = selected->shares + s * dim;
    std::fill_n(share, dim, 0.0f);  // first counts the ids that tie
    for (int64_t j = i; j < i_end; ++j) {
      const float* const row = batch.rows[batch.inverse[j]];
      for (int64_t c = 0; c < dim; ++c) {
        share[c] += row[c] == pooled[c] ? 1.0f : 0.0f;
      }
    }
    VisitFloats(grads.At(s * dim), [&](const auto* grad) {
      for (int64_t c = 0; c < dim; ++c) share[c] = Widen(grad[c]) / share[c];
    });
  }
}

void SumShares(const Occurrences& occurrences, const float* const* rows,
               const SelectedShares& selected, int64_t dim, int64_t begin,
               int64_t end, float* out) {
  int64_t i = begin == 0 ? 0 : occurrences.ends[begin - 1];
  for (int64_t u = begin; u < end; ++u) {
    const float* const row = rows[u];
    float* const sum = out + (u - begin) * dim;
    std::fill_n(sum, dim, 0.0f);
    for (; i < occurrences.ends[u]; ++i) {
      const int64_t at = occurrences.samples[i] * dim;
      const float* const pooled = selected.pooled + at;
      const float* const share = selected.shares + at;
      for (int64_t c = 0; c < dim; ++c) {
        sum[c] += row[c] == pooled[c] ? share[c] : 0.0f;
      }
    }
  }
}

void PoolSelected(const PoolingBatch& batch, const float* const* given,
                  int64_t begin, int64_t end, float* out) {
  const int64_t dim = batch.dim;
  PoolSamples(batch, begin, end, out);
  std::vector<float> sum(dim), count(dim);
  for (int64_t s = begin; s < end; ++s) {
    float* const pooled = out + s * dim;
    std::fill(sum.begin(), sum.end(), 0.0f);
    std::fill(count.begin(), count.end(), 0.0f);
    for (int64_t i = batch.offsets[s]; i < batch.offsets[s + 1]; ++i) {
      const float* const row = batch.rows[batch.inverse[i]];
      const float* const added = given[batch.inverse[i]];
      for (int64_t c = 0; c < dim; ++c) {
        const bool is_selected = row[c] == pooled[c];
        sum[c] += is_selected ? added[c] : 0.0f;
        count[c] += is_selected ? 1.0f : 0.0f;
      }
    }
    for (int64_t c = 0; c < dim; ++c) {
      pooled[c] = count[c] == 0.0f ? 0.0f : sum[c] / count[c];
    }
  }
}

}  // namespace ev
