// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Admission: decides when a key gets a row, which is once it has occurred often
// enough in training batches. Until then the key is counted and not trained.

#ifndef KERNELS_ENGINE_POLICY_ADMISSION_H_
#define KERNELS_ENGINE_POLICY_ADMISSION_H_

#include <cstdint>

namespace ev {

struct AdmissionOptions {
  enum class Filter {
    kNone,  // every key that is trained is admitted
    // Costs 4 bytes (16 if versions are recorded) and an index entry per key
    // that is not yet admitted. A table's capacity does not limit them.
    kCounter,
    kBloom,  // a fixed number of shared counters: may admit early, never late
  };

  Filter filter = Filter::kNone;
  // A key is admitted by the update in which its occurrences, those of this
  // batch included, reach the threshold.
  int64_t threshold = 0;
  // Value returned for every element of a key that the filter has not admitted.
  float no_permission = 0.0f;

  // kBloom only.
  int64_t max_keys = 0;  // number of keys the filter is sized for
  double false_positive =
      0.0;  // share of wrong counts among max_keys keys, in (0, 1)
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
