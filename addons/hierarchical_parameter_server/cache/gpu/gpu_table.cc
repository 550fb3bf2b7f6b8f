// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "addons/hierarchical_parameter_server/cache/gpu/gpu_table.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

#include "addons/hierarchical_parameter_server/cache/cache_size.h"
#include "addons/hierarchical_parameter_server/cache/gpu/gpu_lookup.h"
#include "addons/hierarchical_parameter_server/cache/gpu/gpu_review.h"
#include "kernels/engine/base/gpu/cuda_error.h"

namespace hps {

using ev::gpu::WorkContext;

namespace {

constexpr int64_t kKeysAtOnce = 65536;
// Size of a review's change record: 2^17 numbers, 1 MB. Keys then seldom share
// a number while the tiers are read.
constexpr int kReviewBits = 17;

template <typename T>
T* At(char* memory, size_t offset) {
  return reinterpret_cast<T*>(memory + offset);
}

}  // namespace

GpuTable::GpuTable(int device, const CacheTableOptions& options)
    : device_(device),
      options_(options),
      rows_at_once_(
          std::max<int64_t>(1, std::min(CacheRowsAtOnce(options.format.width()),
                                        options.max_keys))) {}

ev::Status GpuTable::Make(int device, const CacheTableOptions& options,
                          std::shared_ptr<GpuTable>* table) {
  std::shared_ptr<GpuTable> made(new GpuTable(device, options));
  if (options.capacity > 0) EV_RETURN_IF_ERROR(made->MakeStorage());
  *table = std::move(made);
  return ev::Status::OK();
}

ev::Status GpuTable::MakeStorage() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  std::unique_ptr<Storage> made(new Storage);
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(0, 0, &context));
  ev::gpu::TableSetOptions set;
  set.tables.emplace_back();
  set.tables[0].name = options_.tag;
  set.tables[0].capacity = options_.capacity;
  if (options_.evicts) {
    set.eviction = options_.policy == CachePolicy::kLfu
                       ? ev::gpu::Eviction::kLfu
                       : ev::gpu::Eviction::kLru;
  }
  EV_RETURN_IF_ERROR(
      ev::gpu::TableSet::Create(set, context->stream(), &made->set));
  EV_RETURN_IF_ERROR(made->set->ReserveSync(rows_at_once_));
  const size_t bytes = static_cast<size_t>(made->set->num_slots(0)) *
                       options_.format.width() * sizeof(float);
  EV_RETURN_IF_ERROR(
      made->rows.Allocate(bytes, "the cached rows of table " + options_.tag));
  EV_RETURN_IF_ERROR(
      made->counters.Allocate(sizeof(CacheCounters), "the cache's counters"));
  EV_CUDA_RETURN_IF_ERROR(cudaMemsetAsync(
      made->counters.data(), 0, sizeof(CacheCounters), context->stream()));
  const ev::gpu::RowBlock block = {made->rows.as<float>(),
                                   options_.format.width()};
  EV_RETURN_IF_ERROR(made->set->SetRowsSync(
      ev::Span<const ev::gpu::RowBlock>(&block, 1), options_.format.width()));
  made->bytes = made->set->index_bytes() +
                static_cast<int64_t>(bytes + sizeof(CacheCounters));
  EV_RETURN_IF_ERROR(context->Wait());
  WorkContext::Release(std::move(context));
  storage_ = std::move(made);
  holds_rows_ = true;
  return ev::Status::OK();
}

std::unique_ptr<GpuTable::Storage> GpuTable::TakeStorage() {
  holds_rows_ = false;
  return std::move(storage_);
}

bool GpuTable::CountWithoutRows(ev::Span<const int64_t> keys) {
  if (holds_rows()) return false;
  std::lock_guard<std::mutex> lock(mu_);
  changes_.Add(keys);
  return true;
}

void GpuTable::Free(std::unique_ptr<Storage> storage) {
  if (storage == nullptr) return;
  // If waiting fails, the device is lost, and its memory with it.
  storage->order.Wait();
}

void GpuTable::Drop() {
  std::unique_ptr<Storage> storage;
  {
    std::lock_guard<std::mutex> lock(mu_);
    storage = TakeStorage();
  }
  if (storage == nullptr) return;
  EV_CUDA_LOG_IF_ERROR(cudaSetDevice(device_));
  Free(std::move(storage));
}

template <typename Work>
ev::Status GpuTable::Write(WorkContext* context, const Work& work) {
  std::unique_ptr<Storage> broken;  // freed without the lock
  ev::Status status;
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (storage_ == nullptr) {
      return work(static_cast<Storage*>(nullptr));
    }
    status = storage_->order.BeginWrite(context->stream());
    if (status.ok()) status = work(storage_.get());
    if (status.ok()) status = storage_->order.EndWrite(context->stream());
    if (!status.ok()) broken = TakeStorage();
  }
  if (broken != nullptr) {
    context->Wait();
    Free(std::move(broken));
  }
  return status;
}

ev::Status GpuTable::Find(const int64_t* keys, int64_t count, float* out,
                          int64_t* slots, uint32_t* bits, WorkContext* context,
                          bool* has_rows) {
  const cudaStream_t stream = context->stream();
  {
    std::lock_guard<std::mutex> lock(mu_);
    *has_rows = storage_ != nullptr;
    if (storage_ == nullptr) return ev::Status::OK();
    Storage& storage = *storage_;
    ev::gpu::KeyBatch batch;
    batch.keys = keys;
    batch.num_keys = count;
    EV_RETURN_IF_ERROR(storage.order.BeginRead(stream));
    ev::Status status =
        storage.set->FindAndCopy(batch, nullptr, out, slots, stream);
    if (status.ok()) status = storage.set->Touch(batch, slots, stream);
    // Also after an error: FindAndCopy may have been enqueued.
    const ev::Status end = storage.order.EndRead(stream);
    EV_RETURN_IF_ERROR(status);
    EV_RETURN_IF_ERROR(end);
  }
  return MissBits(slots, count, bits, stream);
}

GpuTable::StoreParts::StoreParts(int64_t count, ContextParts* host,
                                 ContextParts* device)
    : host_keys(host->Add(count * sizeof(int64_t))),
      host_sources(host->Add(count * sizeof(int32_t))),
      keys(device->Add(count * sizeof(int64_t))),
      sources(device->Add(count * sizeof(int32_t))),
      slots(device->Add(count * sizeof(int64_t))),
      is_new(device->Add(count)),
      evicted(device->Add(count * sizeof(int64_t))),
      evicted_count(device->Add(sizeof(int64_t))) {}

ev::Status GpuTable::Store(ev::Span<const int64_t> keys,
                           ev::Span<const int64_t> unknown, int64_t seen,
                           const float* staged, const StoreParts& parts,
                           WorkContext* context) {
  int64_t* const host_keys = At<int64_t>(context->host(), parts.host_keys);
  int32_t* const host_sources =
      At<int32_t>(context->host(), parts.host_sources);
  int64_t count = 0;
  size_t next = 0;
  for (size_t i = 0; i < keys.size(); ++i) {
    if (next < unknown.size() && unknown[next] == static_cast<int64_t>(i)) {
      ++next;
      continue;
    }
    host_keys[count] = keys[i];
    host_sources[count++] = static_cast<int32_t>(i);
  }
  if (count == 0) return ev::Status::OK();
  const cudaStream_t stream = context->stream();
  return Write(context, [&](Storage* storage) -> ev::Status {
    if (storage == nullptr) return ev::Status::OK();
    if (changes_.count() != seen) {
      int64_t kept = 0;
      for (int64_t i = 0; i < count; ++i) {
        if (changes_.HasChanged(host_keys[i], seen)) continue;
        host_keys[kept] = host_keys[i];
        host_sources[kept++] = host_sources[i];
      }
      count = kept;
      if (count == 0) return ev::Status::OK();
    }
    NoteForReviews(ev::Span<const int64_t>(host_keys, count));
    int64_t* const device_keys = At<int64_t>(context->device(), parts.keys);
    int32_t* const sources = At<int32_t>(context->device(), parts.sources);
    int64_t* const slots = At<int64_t>(context->device(), parts.slots);
    uint8_t* const is_new = At<uint8_t>(context->device(), parts.is_new);
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device_keys, host_keys,
                                            count * sizeof(int64_t),
                                            cudaMemcpyHostToDevice, stream));
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(sources, host_sources,
                                            count * sizeof(int32_t),
                                            cudaMemcpyHostToDevice, stream));
    ev::gpu::KeyBatch batch;
    batch.keys = device_keys;
    batch.num_keys = count;
    ev::gpu::EvictedKeys evicted;
    if (options_.evicts) {
      evicted.keys = At<int64_t>(context->device(), parts.evicted);
      evicted.count = At<int64_t>(context->device(), parts.evicted_count);
    }
    EV_RETURN_IF_ERROR(
        storage->set->FindOrInsert(batch, slots, is_new, evicted, stream));
    return StoreNewRows(staged, sources, slots, is_new, count,
                        options_.format.width(), evicted.count,
                        storage->rows.as<float>(),
                        storage->counters.as<CacheCounters>(), stream);
  });
}

ev::Status GpuTable::Lookup(const CacheBatch& batch,
                            std::unique_ptr<CacheLookup>* lookup) {
  std::unique_ptr<GpuLookup> made(new GpuLookup(shared_from_this(), batch));
  EV_RETURN_IF_ERROR(made->Begin());
  *lookup = std::move(made);
  return ev::Status::OK();
}

ev::Status GpuTable::Insert(ev::Span<const int64_t> keys, const float* rows,
                            int64_t seen) {
  if (!holds_rows()) return ev::Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const int64_t width = options_.format.width();
  const int64_t all = static_cast<int64_t>(keys.size());
  for (int64_t begin = 0; begin < all; begin += rows_at_once_) {
    const int64_t count = std::min(rows_at_once_, all - begin);
    const size_t bytes = count * width * sizeof(float);
    ContextParts host, device;
    const size_t host_rows = host.Add(bytes), staged = device.Add(bytes);
    const StoreParts parts(count, &host, &device);
    std::unique_ptr<WorkContext> context;
    EV_RETURN_IF_ERROR(
        WorkContext::Acquire(host.bytes(), device.bytes(), &context));
    std::memcpy(context->host() + host_rows, rows + begin * width, bytes);
    EV_CUDA_RETURN_IF_ERROR(
        cudaMemcpyAsync(context->device() + staged, context->host() + host_rows,
                        bytes, cudaMemcpyHostToDevice, context->stream()));
    EV_RETURN_IF_ERROR(Store(keys.subspan(begin, count), {}, seen,
                             At<float>(context->device(), staged), parts,
                             context.get()));
    // An insert of a whole table must not fill the contexts' memory faster than
    // the device empties it.
    EV_RETURN_IF_ERROR(context->Wait());
    WorkContext::Release(std::move(context));
  }
  return ev::Status::OK();
}

ev::Status GpuTable::Refresh(ev::Span<const int64_t> keys, const float* rows) {
  if (CountWithoutRows(keys)) return ev::Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const std::vector<int64_t> last = LastOfEach(keys);
  const int64_t all = static_cast<int64_t>(last.size());
  for (int64_t begin = 0; begin < all; begin += rows_at_once_) {
    const int64_t count = std::min(rows_at_once_, all - begin);
    EV_RETURN_IF_ERROR(RefreshPart(
        keys, ev::Span<const int64_t>(last.data() + begin, count), rows));
  }
  return ev::Status::OK();
}

ev::Status GpuTable::RefreshPart(ev::Span<const int64_t> keys,
                                 ev::Span<const int64_t> numbers,
                                 const float* rows) {
  const int64_t count = static_cast<int64_t>(numbers.size());
  const int64_t width = options_.format.width();
  const size_t key_bytes = count * sizeof(int64_t);
  const size_t row_bytes = count * width * sizeof(float);
  ContextParts host, device;
  const size_t host_keys = host.Add(key_bytes), host_rows = host.Add(row_bytes);
  const size_t keys_at = device.Add(key_bytes), slots = device.Add(key_bytes);
  const size_t staged = device.Add(row_bytes);
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(host.bytes(), device.bytes(), &context));
  int64_t* const part = At<int64_t>(context->host(), host_keys);
  float* const part_rows = At<float>(context->host(), host_rows);
  for (int64_t i = 0; i < count; ++i) {
    part[i] = keys[numbers[i]];
    std::memcpy(part_rows + i * width, rows + numbers[i] * width,
                width * sizeof(float));
  }
  const cudaStream_t stream = context->stream();
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->device() + keys_at, part,
                                          key_bytes, cudaMemcpyHostToDevice,
                                          stream));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->device() + staged, part_rows,
                                          row_bytes, cudaMemcpyHostToDevice,
                                          stream));
  EV_RETURN_IF_ERROR(Write(context.get(), [&](Storage* storage) -> ev::Status {
    changes_.Add(ev::Span<const int64_t>(part, count));
    NoteForReviews(ev::Span<const int64_t>(part, count));
    if (storage == nullptr) return ev::Status::OK();
    ev::gpu::KeyBatch batch;
    batch.keys = At<int64_t>(context->device(), keys_at);
    batch.num_keys = count;
    int64_t* const found = At<int64_t>(context->device(), slots);
    EV_RETURN_IF_ERROR(storage->set->Find(batch, found, stream));
    return RefreshRows(At<float>(context->device(), staged), nullptr, found,
                       count, options_.format.width(),
                       storage->rows.as<float>(),
                       storage->counters.as<CacheCounters>(), stream);
  }));
  WorkContext::ReleaseBusy(std::move(context));
  return ev::Status::OK();
}

ev::Status GpuTable::Erase(ev::Span<const int64_t> keys) {
  if (CountWithoutRows(keys)) return ev::Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const int64_t all = static_cast<int64_t>(keys.size());
  for (int64_t begin = 0; begin < all; begin += kKeysAtOnce) {
    const int64_t count = std::min(kKeysAtOnce, all - begin);
    const size_t bytes = count * sizeof(int64_t);
    ContextParts host, device;
    const size_t host_keys = host.Add(bytes);
    const size_t keys_at = device.Add(bytes), slots = device.Add(bytes);
    std::unique_ptr<WorkContext> context;
    EV_RETURN_IF_ERROR(
        WorkContext::Acquire(host.bytes(), device.bytes(), &context));
    std::memcpy(context->host() + host_keys, keys.data() + begin, bytes);
    const cudaStream_t stream = context->stream();
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->device() + keys_at,
                                            context->host() + host_keys, bytes,
                                            cudaMemcpyHostToDevice, stream));
    EV_RETURN_IF_ERROR(
        Write(context.get(), [&](Storage* storage) -> ev::Status {
          changes_.Add(keys.subspan(begin, count));
          NoteForReviews(keys.subspan(begin, count));
          if (storage == nullptr) return ev::Status::OK();
          ev::gpu::KeyBatch batch;
          batch.keys = At<int64_t>(context->device(), keys_at);
          batch.num_keys = count;
          int64_t* const erased = At<int64_t>(context->device(), slots);
          EV_RETURN_IF_ERROR(storage->set->Erase(batch, erased, stream));
          return CountErased(erased, count,
                             storage->counters.as<CacheCounters>(), stream);
        }));
    WorkContext::ReleaseBusy(std::move(context));
  }
  return ev::Status::OK();
}

ev::Status GpuTable::Clear() {
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(0, 0, &context));
  EV_RETURN_IF_ERROR(Write(context.get(), [&](Storage* storage) -> ev::Status {
    changes_.AddAll();
    if (reviews_ > 0) touched_->AddAll();
    if (storage == nullptr) return ev::Status::OK();
    EV_RETURN_IF_ERROR(storage->set->Clear(context->stream()));
    return CountCleared(storage->counters.as<CacheCounters>(),
                        context->stream());
  }));
  WorkContext::ReleaseBusy(std::move(context));
  return ev::Status::OK();
}

ev::Status GpuTable::Review(std::unique_ptr<CacheReview>* review) {
  review->reset(new GpuReview(shared_from_this()));
  return ev::Status::OK();
}

void GpuTable::BeginReview() {
  std::lock_guard<std::mutex> lock(mu_);
  if (touched_ == nullptr) touched_.reset(new KeyChanges(kReviewBits));
  ++reviews_;
}

void GpuTable::EndReview() {
  std::lock_guard<std::mutex> lock(mu_);
  --reviews_;
}

ev::Status GpuTable::ListKeys(int64_t first_slot, int64_t num_slots,
                              std::vector<int64_t>* keys, int64_t* seen,
                              bool* is_over) {
  keys->clear();
  *is_over = true;
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  ContextParts host, device;
  const size_t bytes = num_slots * sizeof(int64_t);
  const size_t host_keys = host.Add(bytes);
  const size_t host_count = host.Add(sizeof(int64_t));
  const size_t keys_at = device.Add(bytes);
  const size_t count_at = device.Add(sizeof(int64_t));
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(host.bytes(), device.bytes(), &context));
  const cudaStream_t stream = context->stream();
  EV_RETURN_IF_ERROR(Write(context.get(), [&](Storage* storage) -> ev::Status {
    if (storage == nullptr) return ev::Status::OK();
    const int64_t slots =
        std::min(num_slots, storage->set->num_slots(0) - first_slot);
    if (slots <= 0) return ev::Status::OK();
    *is_over = false;
    *seen = touched_->count();
    ev::gpu::ExportedKeys out;
    out.keys = At<int64_t>(context->device(), keys_at);
    out.count = At<int64_t>(context->device(), count_at);
    return storage->set->Export(0, first_slot, slots, out, stream);
  }));
  if (*is_over) {
    WorkContext::ReleaseBusy(std::move(context));
    return ev::Status::OK();
  }
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(context->host() + host_keys,
                                          context->device() + keys_at, bytes,
                                          cudaMemcpyDeviceToHost, stream));
  EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
      context->host() + host_count, context->device() + count_at,
      sizeof(int64_t), cudaMemcpyDeviceToHost, stream));
  EV_RETURN_IF_ERROR(context->Wait());
  const int64_t* const listed = At<int64_t>(context->host(), host_keys);
  keys->assign(listed, listed + *At<int64_t>(context->host(), host_count));
  WorkContext::Release(std::move(context));
  return ev::Status::OK();
}

ev::Status GpuTable::Renew(ev::Span<const int64_t> keys, const float* rows,
                           ev::Span<const int64_t> gone, int64_t seen) {
  const int64_t all = static_cast<int64_t>(keys.size());
  if (all == 0) return ev::Status::OK();
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  const size_t key_bytes = all * sizeof(int64_t);
  const size_t row_bytes = all * options_.format.width() * sizeof(float);
  ContextParts host, device;
  const size_t host_keys = host.Add(key_bytes);
  const size_t host_sources = host.Add(all * sizeof(int32_t));
  const size_t host_rows = host.Add(row_bytes);
  const size_t keys_at = device.Add(key_bytes), slots = device.Add(key_bytes);
  const size_t sources = device.Add(all * sizeof(int32_t));
  const size_t staged = device.Add(row_bytes);
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(
      WorkContext::Acquire(host.bytes(), device.bytes(), &context));
  const cudaStream_t stream = context->stream();
  std::memcpy(context->host() + host_rows, rows, row_bytes);
  EV_CUDA_RETURN_IF_ERROR(
      cudaMemcpyAsync(context->device() + staged, context->host() + host_rows,
                      row_bytes, cudaMemcpyHostToDevice, stream));
  EV_RETURN_IF_ERROR(Write(context.get(), [&](Storage* storage) -> ev::Status {
    if (storage == nullptr) return ev::Status::OK();
    // Rows to renew fill the buffer from the front, keys to erase from the
    // back.
    int64_t* const part = At<int64_t>(context->host(), host_keys);
    int32_t* const numbers = At<int32_t>(context->host(), host_sources);
    int64_t renewed = 0, kept = all;
    size_t next = 0;
    for (int64_t i = 0; i < all; ++i) {
      const bool is_gone =
          next < gone.size() && gone[next] == static_cast<int64_t>(i);
      if (is_gone) ++next;
      if (touched_->HasChanged(keys[i], seen)) continue;
      if (is_gone) {
        part[--kept] = keys[i];
      } else {
        part[renewed] = keys[i];
        numbers[renewed++] = static_cast<int32_t>(i);
      }
    }
    int64_t* const device_keys = At<int64_t>(context->device(), keys_at);
    int64_t* const found = At<int64_t>(context->device(), slots);
    int32_t* const device_sources = At<int32_t>(context->device(), sources);
    CacheCounters* const counters = storage->counters.as<CacheCounters>();
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device_keys, part, key_bytes,
                                            cudaMemcpyHostToDevice, stream));
    EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(device_sources, numbers,
                                            renewed * sizeof(int32_t),
                                            cudaMemcpyHostToDevice, stream));
    ev::gpu::KeyBatch batch;
    batch.keys = device_keys;
    batch.num_keys = renewed;
    EV_RETURN_IF_ERROR(storage->set->Find(batch, found, stream));
    EV_RETURN_IF_ERROR(RefreshRows(
        At<float>(context->device(), staged), device_sources, found, renewed,
        options_.format.width(), storage->rows.as<float>(), counters, stream));
    batch.keys = device_keys + kept;
    batch.num_keys = all - kept;
    EV_RETURN_IF_ERROR(storage->set->Erase(batch, found, stream));
    return CountErased(found, all - kept, counters, stream);
  }));
  // Waits for each part: a walk must not fill the contexts' memory.
  EV_RETURN_IF_ERROR(context->Wait());
  WorkContext::Release(std::move(context));
  return ev::Status::OK();
}

ev::Status GpuTable::Statistics(CacheStatistics* statistics) {
  *statistics = CacheStatistics();
  statistics->hits = hits_.load(std::memory_order_relaxed);
  statistics->misses = misses_.load(std::memory_order_relaxed);
  EV_CUDA_RETURN_IF_ERROR(cudaSetDevice(device_));
  std::unique_ptr<WorkContext> context;
  EV_RETURN_IF_ERROR(WorkContext::Acquire(sizeof(CacheCounters), 0, &context));
  {
    std::lock_guard<std::mutex> lock(mu_);
    if (storage_ != nullptr) {
      statistics->device_bytes = storage_->bytes;
      EV_RETURN_IF_ERROR(storage_->order.BeginRead(context->stream()));
      EV_CUDA_RETURN_IF_ERROR(cudaMemcpyAsync(
          context->host(), storage_->counters.data(), sizeof(CacheCounters),
          cudaMemcpyDeviceToHost, context->stream()));
      EV_RETURN_IF_ERROR(storage_->order.EndRead(context->stream()));
    }
  }
  if (statistics->device_bytes > 0) {
    EV_RETURN_IF_ERROR(context->Wait());
    CacheCounters counters;
    std::memcpy(&counters, context->host(), sizeof(counters));
    statistics->inserted = static_cast<int64_t>(counters.inserted);
    statistics->evicted = static_cast<int64_t>(counters.evicted);
    statistics->refreshed = static_cast<int64_t>(counters.refreshed);
    statistics->rows = statistics->inserted - statistics->evicted -
                       static_cast<int64_t>(counters.erased);
  }
  WorkContext::Release(std::move(context));
  return ev::Status::OK();
}

}  // namespace hps
