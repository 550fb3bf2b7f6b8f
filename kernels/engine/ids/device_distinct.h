// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// Deduplication of one table's batch on the device that has the table's rows:
// ids go up once, and where each id went stays on the device, for pooling and
// for the update.
//
// A device KNOWS keys: which have which row, as far as the table told it (with
// GpuTableCompute::NewKeyedRow; after a lack of memory with SetUnknownHandles
// and by updates) and did not take back (GpuTableCompute::ForgetKeys). It may
// know any part of the table's index, or nothing, and never anything else. Keys
// that it knows are found there; the others come down and are found, and
// admitted, here.
//
// The result is a function of the batch alone, but for which keys are unknown:
// distinct keys come in order of first occurrence, occurrences of a key in the
// order of the batch.

#ifndef KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_
#define KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_

#include <cstdint>
#include <string>

#include "kernels/engine/base/device_stream.h"
#include "kernels/engine/base/row_handle.h"
#include "kernels/engine/base/span.h"
#include "kernels/engine/base/status.h"

namespace ev {

// Ids of one batch that a device takes at most, and owners that a device sorts
// their keys by.
constexpr int64_t kMaxDistinctIds = int64_t{1} << 30;
constexpr int kMaxKeyOwners = 64;

// Ids and samples that are in the device's memory, where they may be read when
// the device is through with what the stream has; until Wait has returned.
// Arrays as in IdsInput (ids/table_ids.h).
struct IdsOnDevice {
  const int64_t* ids64 = nullptr;
  const int32_t* ids32 = nullptr;
  const int64_t* row_splits = nullptr;
  const int64_t* coo_indices = nullptr;
  DeviceStream stream;
};

// One table's batch, of those that a device deduplicates together: it begins
// when all of them have been started, so Wait is called after that.
struct DistinctRequest {
  std::string name;         // of the table, for messages
  int64_t num_ids = 0;      // N, at least 1
  int64_t num_samples = 0;  // B
  // Whether 'there' has the batch; else ids are put, and samples come by Start.
  bool is_there = false;
  IdsOnDevice there;
  // The inverse comes down with the keys, so that Inverse has no device to wait
  // for. Not of a batch that is there.
  bool brings_inverse = false;
  // Not empty: keys are sorted by owner. That of key k is owners[floormod(k,
  // owners.size())], in [0, num_owners). In CPU memory, read when
  // the call that takes this returns.
  Span<const int32_t> owners;
  int num_owners = 0;  // 1 to kMaxKeyOwners
};

// Of GpuTableCompute::StartDistinct, or of a device that has no rows: it knows
// no key then, so all come down. Calls are made in the order of their
// declaration, from any thread; only Put, IsDone, and what comes after Wait,
// may be made at once. It needs nothing of the rows that made it and may
// outlive them. Destroying it, and all that are deduplicated together with it,
// waits for what is under way.
class GpuStep;  // rows/gpu_step.h

class DeviceDistinct {
 public:
  virtual ~DeviceDistinct() {}

  // Not null: these are table step_table()'s ids of a step. They are made
  // distinct by the first Fetch, Inverse or Occurrences, and until then
  // num_unique() is the number of ids.
  virtual GpuStep* step() const { return nullptr; }
  virtual int step_table() const { return -1; }
  // What the calls of rows/gpu_compute.h take: this, or what Fetch has made.
  virtual const DeviceDistinct* made() const { return this; }

  // No, where it reads the ids where they are: of a step, or of a batch that is
  // there.
  virtual bool needs_put() const { return true; }
  // Ids [begin, begin + ids.size()) of the batch, which have been read when it
  // returns. REQUIRES that each id is put once, all as one type.
  virtual Status Put(int64_t begin, Span<const int64_t> ids) = 0;
  virtual Status Put(int64_t begin, Span<const int32_t> ids) = 0;

  // Begins. offsets [B + 1], of the samples; read when it returns. None where
  // ids and samples are there already, and of a step where each sample is one
  // id, or where the samples are those of a table that comes before.
  virtual Status Start(Span<const int32_t> offsets) = 0;
  virtual bool IsDone() const = 0;  // Wait would return at once
  // Unimplemented: samples in the device's memory are not in order, and nothing
  // is known of the batch.
  virtual Status Wait() = 0;
  // Of a step: ids that the device does not know, of all its tables. Waits;
  // none where Wait gives an error. Of a step that knew all keys: without
  // waiting, and none before a table was settled.
  virtual int64_t num_unknown_of_step() { return 0; }

  // After Wait, for as long as this lives. U distinct keys, of which the device
  // did not know K: those, in their order.
  virtual int64_t num_unique() const = 0;
  // No: of a step that knew all keys (rows/gpu_step.h). Its unknown keys, none
  // of which has a row, are there still: K is 0 until Settle has returned,
  // which waits until they are here. Settle is called once at a time.
  virtual bool is_settled() const { return true; }
  virtual Status Settle() { return Status::OK(); }
  virtual int64_t num_unknown() const = 0;
  virtual const int64_t* unknown_keys() const = 0;  // [K]
  // How often each of those occurs, [K], by what its ids stand for; null where
  // that is not said: of all but a step's.
  virtual const int32_t* unknown_counts() const { return nullptr; }
  // How many occurrences each id stands for, [N]; null: 1 each, as of all but a
  // step's. What else is called an occurrence here, and counts(), is ids.
  virtual const int32_t* occurrences_of_ids() const { return nullptr; }

  // Null, or of a request with owners: unknown_keys() are sorted by owner,
  // those of an owner in their order, and those of owner o are at [starts[o],
  // starts[o + 1]). [num_owners + 1]. REQUIRES that all keys are unknown.
  virtual const int32_t* owner_starts() const { return nullptr; }
  // Then: places [U], where each key is among the sorted. 4 bytes of the link
  // for each.
  virtual Status Places(int32_t* places) const;

  // Brings down what is known of all keys: 16 bytes each. Later calls return at
  // once. REQUIRES that all keys have names.
  virtual Status Fetch() const = 0;
  // After Fetch; the arrays are the caller's to read and write. Names: as
  // DevicePooling::rows, as they were given or as the device knew them.
  virtual int64_t* keys() const = 0;     // [U]
  virtual int32_t* counts() const = 0;   // [U]
  virtual RowHandle* names() const = 0;  // [U]

  // inverse [N]: the number of each id's key. counts [U]: how often each key
  // occurs. Null: not wanted. 4 bytes of the link for each number.
  virtual Status Inverse(int32_t* inverse, int32_t* counts) const = 0;

  // Of a step, or of a batch that is there: where its samples begin, [B + 1]. 4
  // bytes of the link for each where Start was not given them and a sample is
  // not one id.
  virtual Status Samples(int32_t* offsets) const;

  // samples [N]: of each occurrence, those of the first key first. Costs the
  // device's grouping and 4 bytes of the link per id.
  virtual Status Occurrences(int32_t* samples) const = 0;
};

// The part of GpuTableCompute::min_ids_to_deduplicate that one table has at
// least.
constexpr int64_t kDistinctShares = 8;

// What GpuTableCompute::min_ids_to_deduplicate gives: the environment variable
// TF_EV_GPU_DEDUP_MIN_IDS, read once, else 'otherwise'.
int64_t MinIdsToDeduplicate(int64_t otherwise);

}  // namespace ev

#endif  // KERNELS_ENGINE_IDS_DEVICE_DISTINCT_H_
