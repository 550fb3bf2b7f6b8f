// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// One table's batch of ids on a GPU. There are two kinds:
//
//   in a step (rows/gpu_step.h): the GPU has the table's rows. A key is unknown
//     if it has no row. Distinct keys are computed only if a caller fetches
//     them.
//   in a route (exchange/route.h): the GPU does not have the rows. It
//     deduplicates the batch, and all keys are unknown.
//
// The result is a function of the batch and of which keys have rows: distinct
// keys are in order of first occurrence, occurrences of a key in the order of
// the batch.

#ifndef KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_
#define KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/row_handle.h"
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
  // True if ids and samples are in device memory, given by 'there'. Otherwise
  // ids are given by Put and samples by Start.
  bool on_device = false;
  IdsOnDevice there;
  // Copies the inverse to the host together with the keys, so that Inverse does
  // not wait for the device. Not supported for a batch in device memory.
  bool brings_inverse = false;
  // If not empty, keys are sorted by owner: key k belongs to owners[floormod(k,
  // owners.size())], in [0, num_owners). In CPU memory; read only by the call
  // that takes the request.
  Span<const int32_t> owners;
  int num_owners = 0;  // 1 to kMaxKeyOwners
};

class GpuStep;  // rows/gpu_step.h

// One batch. Created by GpuStep::Distinct, or by a device without rows.
//
// Methods are called in the order of their declaration, from any thread. Only
// Put, IsDone and the methods that follow Wait may be called concurrently. The
// object does not use the rows that created it and may outlive them. The
// destructor of the last object of those deduplicated together waits for work
// in flight.
class DeviceDistinct {
 public:
  virtual ~DeviceDistinct() {}

  // Not null if the ids are those of table step_table() of a step. They are
  // deduplicated by the first Fetch, Inverse or Occurrences; until then
  // num_unique() is the number of ids.
  virtual GpuStep* step() const { return nullptr; }
  virtual int step_table() const { return -1; }

  // False if the device reads the ids in place: ids of a step, or of a batch in
  // device memory.
  virtual bool needs_put() const { return true; }
  // Copies ids [begin, begin + ids.size()) of the batch to the device; the
  // caller may reuse the span afterwards. REQUIRES: each id is put once, all
  // ids as one type.
  virtual Status Put(int64_t begin, Span<const int64_t> ids) = 0;
  virtual Status Put(int64_t begin, Span<const int32_t> ids) = 0;

  // Starts the deduplication. offsets [B + 1]: where the ids of each sample
  // begin; read before the call returns. Empty if ids and samples are in device
  // memory. In a step it is also empty if each sample is one id, or if the
  // samples are those of an earlier table.
  virtual Status Start(Span<const int32_t> offsets) = 0;
  virtual bool IsDone() const = 0;  // true if Wait would not block
  // Waits for the results. Unimplemented: samples in device memory are not
  // sorted; there are no results then.
  virtual Status Wait() = 0;
  // Returns the number of unknown ids of all tables of the step; 0 until a
  // table has been settled, and outside a step.
  virtual int64_t num_unknown_of_step() { return 0; }

  // Results, valid from Wait until destruction. The batch has U distinct keys;
  // K of them are unknown, and are listed in the order of distinct keys.
  virtual int64_t num_unique() const = 0;
  // False while the unknown keys of a step are still in GPU memory. K is 0
  // until Settle has copied them to the host, for which it waits. Settle must
  // not be called concurrently.
  virtual bool is_settled() const { return true; }
  virtual Status Settle() { return Status::OK(); }
  virtual int64_t num_unknown() const = 0;
  virtual const int64_t* unknown_keys() const = 0;  // [K]
  // Occurrences of each unknown key, [K], with each of its ids counted as
  // occurrences_of_ids(). Null except in a step.
  virtual const int32_t* unknown_counts() const { return nullptr; }
  // [N]: the number of occurrences that each id stands for. Null means 1 each,
  // and is always returned outside a step. Elsewhere in this class, as in
  // counts(), an occurrence is one id of the batch.
  virtual const int32_t* occurrences_of_ids() const { return nullptr; }

  // For a request with owners: unknown_keys() are sorted by owner, those of one
  // owner in the order of distinct keys, and the keys of owner o are at
  // [starts[o], starts[o + 1]). [num_owners + 1]. Null for other requests.
  // REQUIRES: all keys are unknown.
  virtual const int32_t* owner_starts() const { return nullptr; }
  // For a request with owners: writes places [U], the index of each distinct
  // key among the sorted keys. Copies 4 bytes per key to the host.
  virtual Status Places(int32_t* places) const;

  // Copies keys, counts and, in a step, rows of all distinct keys to the host,
  // 16 bytes per key. Later calls are no-ops.
  virtual Status Fetch() const = 0;
  // Valid after Fetch; the caller may modify the arrays. names: the rows, as in
  // GpuStepTable::are_names; null except in a step.
  virtual int64_t* keys() const = 0;    // [U]
  virtual int32_t* counts() const = 0;  // [U]
  virtual RowHandle* names() const { return nullptr; }

  // Copies to the host inverse [N], the index of each id's key, and counts [U],
  // the occurrences of each key. Either may be null. Copies 4 bytes per number.
  virtual Status Inverse(int32_t* inverse, int32_t* counts) const = 0;

  // Writes where the samples begin, [B + 1]. For a step, or for a batch in
  // device memory. Copies 4 bytes per sample from the device, unless Start was
  // given the offsets or each sample is one id.
  virtual Status Samples(int32_t* offsets) const;

  // Writes samples [N], the sample of each occurrence, grouped by key in the
  // order of distinct keys. Costs the grouping on the device and 4 bytes per id
  // copied to the host.
  virtual Status Occurrences(int32_t* samples) const = 0;
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
