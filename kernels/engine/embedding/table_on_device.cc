// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// What a table does otherwise when its rows are on a device.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/engine/base/tasks.h"
#include "kernels/engine/embedding/guard.h"
#include "kernels/engine/embedding/table_impl.h"
#include "kernels/engine/policy/eviction.h"

namespace ev {
namespace {

constexpr int64_t kKeysPerTask = 2048;

}  // namespace

Status EmbeddingTable::Impl::CheckTakesDeviceTensors(const char* what) const {
  if (on_device() && device->takes_device_tensors()) return Status::OK();
  return FailedPrecondition(std::string(what) +
                            " is in a device's memory, and the rows are not, " +
                            Named());
}

Status EmbeddingTable::GatherOnDevice(Span<const int64_t> keys,
                                      const DeviceStream& stream, float* out,
                                      Parallel* parallel) const {
  return NoThrow(*impl_, [&] {
    const SharedGate shared(&impl_->gate);
    EV_RETURN_IF_ERROR(impl_->CheckInitialized());
    EV_RETURN_IF_ERROR(impl_->CheckKeys(keys));
    EV_RETURN_IF_ERROR(impl_->CheckTakesDeviceTensors("the output"));
    const int64_t n = keys.size();
    if (n >= std::numeric_limits<int32_t>::max()) {
      return InvalidArgument("fewer than 2^31 keys are read at once, got " +
                             std::to_string(n) + ", " + impl_->Named());
    }
    // Each key is a sample of one id, so its sum is its row, bit for bit.
    std::vector<RowHandle> rows(n);
    std::vector<int32_t> numbers(n + 1);
    std::iota(numbers.begin(), numbers.end(), 0);
    ForRanges(parallel, n, kKeysPerTask, [&](int64_t begin, int64_t end) {
      impl_->index.Find(keys.subspan(begin, end - begin), &rows[begin]);
      for (int64_t i = begin; i < end; ++i) {
        if (rows[i] >= kFirstReservedHandle) {
          rows[i] = impl_->AbsentOnDevice(keys[i]);
        }
      }
    });
    DevicePooling pooling;
    pooling.rows = rows;
    pooling.inverse = Span<const int32_t>(numbers.data(), n);
    pooling.offsets = numbers;
    pooling.stream = &stream;
    std::unique_ptr<DeviceWork> work;
    EV_RETURN_IF_ERROR(
        impl_->Named(impl_->device->StartPool(pooling, out, &work)));
    return work == nullptr ? Status::OK() : impl_->Named(work->Wait());
  });
}

Status EmbeddingTable::Impl::CopyFromDevice(Span<const int64_t> keys,
                                            const RowHandle* handles,
                                            float* out) const {
  EV_RETURN_IF_ERROR(
      Named(device->Read(Span<const RowHandle>(handles, keys.size()), 0, out)));
  for (size_t i = 0; i < keys.size(); ++i) {
    if (handles[i] < kFirstReservedHandle) continue;
    std::copy_n(AbsentRow(keys[i]), dim(), out + i * dim());
  }
  return Status::OK();
}

Status EmbeddingTable::Impl::ReadDeviceRows(
    Span<const int64_t> keys, Span<const SlotSpec> slots_read,
    Span<const int> columns, float* values,
    Span<float* const> slot_values) const {
  std::vector<RowHandle> handles(keys.size());
  index.Find(keys, handles.data());
  EV_RETURN_IF_ERROR(Named(device->Read(handles, 0, values)));
  for (size_t s = 0; s < slots_read.size(); ++s) {
    EV_RETURN_IF_ERROR(
        Named(device->Read(handles, 1 + columns[s], slot_values[s])));
  }
  for (size_t i = 0; i < keys.size(); ++i) {
    if (handles[i] < kFirstReservedHandle) continue;
    std::copy_n(DefaultRow(keys[i]), dim(), values + i * dim());
    for (size_t s = 0; s < slots_read.size(); ++s) {
      std::fill_n(slot_values[s] + i * dim(), dim(),
                  slots_read[s].initial_value);
    }
  }
  return Status::OK();
}

Status EmbeddingTable::Impl::WriteDeviceRows(
    Span<const RowHandle> handles, Span<const int> columns, const float* values,
    Span<const float* const> slot_values) {
  EV_RETURN_IF_ERROR(Named(device->Write(handles, 0, values)));
  for (size_t s = 0; s < columns.size(); ++s) {
    EV_RETURN_IF_ERROR(
        Named(device->Write(handles, 1 + columns[s], slot_values[s])));
  }
  return Status::OK();
}

Status EmbeddingTable::Impl::WeakOnDevice(float threshold,
                                          std::vector<int64_t>* keys) const {
  std::vector<int64_t> all;
  std::vector<RowHandle> handles;
  all.reserve(index.size());
  handles.reserve(index.size());
  index.ForEach([&](int64_t key, RowHandle handle) {
    all.push_back(key);
    handles.push_back(handle);
  });
  std::vector<double> squares(all.size());
  EV_RETURN_IF_ERROR(Named(device->SquaredNorms(handles, squares.data())));
  for (size_t i = 0; i < all.size(); ++i) {
    if (IsWeak(squares[i], threshold)) keys->push_back(all[i]);
  }
  return Status::OK();
}

void EmbeddingTable::Impl::FreeRows(Span<const RowHandle> handles) {
  if (on_device()) device->Forget(handles);
  rows->Free(handles);
}

}  // namespace ev
