// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// When a key may have a row: once it has occurred often enough in training
// batches. Until then it is counted and not trained.

#ifndef KERNELS_ENGINE_POLICY_ADMISSION_H_
#define KERNELS_ENGINE_POLICY_ADMISSION_H_

#include <cstdint>

namespace ev {

struct AdmissionOptions {
  enum class Filter {
    kNone,  // every key that is trained is admitted
    // 4 bytes (16 where versions are recorded) and an index entry per key that
    // is not yet admitted. No capacity bounds them.
    kCounter,
    kBloom,  // a fixed number of shared counters: may admit early, never late
  };

  Filter filter = Filter::kNone;
  // A key is admitted by the update in which its occurrences reach this: those
  // seen before plus those of the batch.
  int64_t threshold = 0;
  // What every element of the row of a key reads that is not admitted.
  float no_permission = 0.0f;

  // kBloom only.
  int64_t max_keys = 0;  // that the filter is made for
  double false_positive =
      0.0;                // in (0, 1): of keys, when max_keys were counted
  int counter_bits = 64;  // 8, 16, 32 or 64

  bool filters() const { return filter != Filter::kNone; }
};

inline bool operator==(const AdmissionOptions& a, const AdmissionOptions& b) {
  return a.filter == b.filter && a.threshold == b.threshold &&
         a.no_permission == b.no_permission && a.max_keys == b.max_keys &&
         a.false_positive == b.false_positive &&
         a.counter_bits == b.counter_bits;
}

}  // namespace ev

#endif  // KERNELS_ENGINE_POLICY_ADMISSION_H_
