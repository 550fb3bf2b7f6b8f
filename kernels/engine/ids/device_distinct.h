// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplication of a batch of ids on a GPU, for a route (exchange/route.h). The
// GPU does not need to have the table's rows.
//
// The result is a function of the batch: distinct keys are in order of first
// occurrence, occurrences of a key in the order of the batch.

#ifndef KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_
#define KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Maximum number of ids per batch on a device, and of owners that a device
// sorts keys by.
constexpr int64_t kMaxDistinctIds = int64_t{1} << 30;
constexpr int kMaxKeyOwners = 64;

// Ids and samples in device memory. They may be read once the work in 'stream'
// has finished, and must not change until Wait has returned. Arrays as in
// IdsInput (ids/table_ids.h).
struct IdsOnDevice {
  const int64_t* ids64 = nullptr;
  const int32_t* ids32 = nullptr;
  const int64_t* row_splits = nullptr;
  const int64_t* coo_indices = nullptr;
  DeviceStream stream;
};

// One table's batch. A device deduplicates several of them together: it begins
// when all have been started, so Wait may be called only then.
struct DistinctRequest {
  std::string name;         // of the table, for messages
  int64_t num_ids = 0;      // N, at least 1
  int64_t num_samples = 0;  // B
  // True if ids and samples are in device memory, given by 'device_ids'.
  // Otherwise ids are given by Put and samples by Start.
  bool on_device = false;
  IdsOnDevice device_ids;
  // Copies the inverse to the host together with the keys, so that Inverse does
  // not wait for the device. Not supported for a batch in device memory.
  bool brings_inverse = false;
  // If not empty, keys are sorted by owner: key k belongs to owners[floormod(k,
  // owners.size())], in [0, num_owners). In CPU memory; read only by the call
  // that takes the request.
  Span<const int32_t> owners;
  int num_owners = 0;  // 1 to kMaxKeyOwners
};

// One batch. Methods are called in the order of their declaration, from any
// thread. Only Put, IsDone and the methods that follow Wait may be called
// concurrently. The destructor of the last object of those deduplicated
// together waits for work in flight.
class DeviceDistinct {
 public:
  virtual ~DeviceDistinct() {}

  // False if the batch is in device memory, where the device reads the ids.
  virtual bool needs_put() const = 0;
  // Copies ids [begin, begin + ids.size()) of the batch to the device; the
  // caller may reuse the span afterwards. REQUIRES: each id is put once, all
  // ids as one type.
  virtual Status Put(int64_t begin, Span<const int64_t> ids) = 0;
  virtual Status Put(int64_t begin, Span<const int32_t> ids) = 0;

  // Starts the deduplication. offsets [B + 1]: where the ids of each sample
  // begin; read before the call returns. Empty if ids and samples are in device
  // memory.
  virtual Status Start(Span<const int32_t> offsets) = 0;
  virtual bool IsDone() const = 0;  // true if Wait would not block
  // Waits for the results. Unimplemented: samples in device memory are not
  // sorted; there are no results then.
  virtual Status Wait() = 0;

  // Results, valid from Wait until destruction. The batch has U distinct keys.
  virtual int64_t num_unique() const = 0;
  virtual const int64_t* keys() const = 0;  // [U]

  // For a request with owners: keys() are sorted by owner, those of one owner
  // in the order of distinct keys, and the keys of owner o are at [starts[o],
  // starts[o + 1]). [num_owners + 1]. Null for other requests.
  virtual const int32_t* owner_starts() const { return nullptr; }
  // For a request with owners: writes places [U], the index of each distinct
  // key among the sorted keys. Copies 4 bytes per key to the host.
  virtual Status Places(int32_t* places) const;

  // Copies to the host inverse [N], the index of each id's key in the order of
  // distinct keys, and counts [U], the occurrences of each key. Either may be
  // null. Copies 4 bytes per number.
  virtual Status Inverse(int32_t* inverse, int32_t* counts) const = 0;

  // For a batch in device memory: writes where the samples begin, [B + 1].
  // Copies 4 bytes per sample from the device unless each sample is one id.
  virtual Status Samples(int32_t* offsets) const;
};

// A route deduplicates a table's ids on a device only if the table has at least
// 1 / kDistinctShares of the minimum number of ids (MinIdsToDeduplicate).
constexpr int64_t kDistinctShares = 8;

// Returns the environment variable TF_EV_GPU_DEDUP_MIN_IDS, read once, or
// 'otherwise' if it is not set: the minimum number of ids of a route for which
// deduplication on a device pays off.
int64_t MinIdsToDeduplicate(int64_t otherwise);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_
