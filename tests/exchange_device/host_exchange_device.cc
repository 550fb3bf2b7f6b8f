// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/exchange_device/host_exchange_device.h"

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/control_carrier.h"
#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/testing/sum_over_ranks.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace sok {
namespace testing {
namespace {

using ev::Span;
using ev::Status;
using ev::testing::HostDeviceDistinct;
using ev::testing::HostKnownKeys;
using ev::testing::HostStream;
using ev::testing::Reach;

constexpr int64_t kMinDistinctIds = 10;
// Tables that come together find no memory where they have a multiple of so
// many ids, all together.
constexpr int64_t kNoRoomFor = 11;

std::atomic<int64_t> sent_from_there{0}, pooled_routes{0}, spread_gradients{0},
    live_blocks{0}, deduplicated{0}, sums_there{0}, sums_here{0},
    pooled_there{0}, summed_there{0}, ids_there{0}, without_room{0};

void Check(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "the device between ranks: %s\n", promise);
  std::abort();
}

// Where the device works, which has to be the device's.
template <typename T>
T* There(T* memory) {
  T* const there = Reach(memory);
  Check(there != nullptr, "memory is not the device's");
  return there;
}
template <typename T>
T* Here(T* memory) {
  Check(Reach(memory) == nullptr, "memory is the device's");
  return memory;
}

class HostRoute : public DeviceRoute {
 public:
  explicit HostRoute(std::shared_ptr<const RoutePlan> plan)
      : plan_(std::move(plan)) {
    for (int t = 0; t < plan_->num_tables(); ++t) {
      const RoutedTable& table = plan_->routed(t);
      Check(!table.has_weights, "a route has weights");
      Check(!ev::Selects(table.combiner), "a route's combiner selects");
      Check(table.distinct != nullptr ||
                reinterpret_cast<const char*>(table.inverse + table.num_ids) -
                        table.for_pooling() <=
                    static_cast<int64_t>(table.for_pooling_bytes()),
            "offsets and inverse are not one stretch");
      told_.push_back(Bytes(table));
    }
  }

  // Does nothing before it is waited for: a caller that forgets to is noticed.
  Status StartPool(const char* rows, WireType wire,
                   Span<const int64_t> chunk_starts, Span<float* const> outputs,
                   const ev::DeviceStream* stream) override {
    Check(!is_pooled_, "a route is pooled twice");
    is_pooled_ = true;
    const std::vector<int64_t> starts(chunk_starts.begin(), chunk_starts.end());
    const std::vector<float*> out(outputs.begin(), outputs.end());
    if (stream == nullptr) {
      pool_ = [=] { Pool(rows, wire, starts, out, false); };
    } else {
      ++pooled_there;
      const ev::DeviceStream before = *stream;
      pool_ = [=] {
        HostStream::Wait(before);
        Pool(rows, wire, starts, out, true);
      };
    }
    return Status::OK();
  }

  Status Wait() override {
    if (pool_) pool_();
    pool_ = nullptr;
    return Status::OK();
  }

  Status SumGradients(Span<const int> tables, Span<const float* const> grads,
                      const ev::DeviceStream& stream,
                      Span<const int64_t> chunk_starts, WireType wire,
                      char* message) override {
    Check(is_pooled_ && !pool_, "gradients come before rows are pooled");
    ++summed_there;
    HostStream::Wait(stream);
    message = There(message);
    for (size_t k = 0; k < tables.size(); ++k) {
      const RoutedTable& table = plan_->routed(tables[k]);
      const std::vector<float> sums = SumsOf(table, grads[k]);
      for (int r = 0; r < plan_->num_ranks(); ++r) {
        const int64_t begin = table.starts[r], end = table.starts[r + 1];
        sok::ToWire(
            sums.data() + begin * table.dim, (end - begin) * table.dim, wire,
            message + chunk_starts[r * tables.size() + k] * WireBytes(wire));
      }
    }
    return Status::OK();
  }

 private:
  // One occurrence after the other, in the order of the batch.
  std::vector<float> SumsOf(const RoutedTable& table, const float* grads) {
    const Samples samples = SamplesOf(table);
    std::vector<float> sums(table.num_unique * table.dim);
    std::vector<bool> has_any(table.num_unique);
    const float* const factors = ev::FactorsOf(table);
    for (int64_t s = 0; s < table.batch_size; ++s) {
      for (int32_t i = samples.offsets[s]; i < samples.offsets[s + 1]; ++i) {
        const int32_t u = samples.inverse[i];
        for (int64_t c = 0; c < table.dim; ++c) {
          float grad = There(grads)[s * table.dim + c];
          if (factors != nullptr) grad = grad * factors[s];
          float* const sum = &sums[u * table.dim + c];
          *sum = has_any[u] ? *sum + grad : grad;
        }
        has_any[u] = true;
      }
    }
    return sums;
  }

  // What the device has of the samples, not what the route has.
  struct Samples {
    std::vector<int32_t> own;
    const int32_t* inverse;
    const int32_t* offsets;
  };
  static Samples SamplesOf(const RoutedTable& table) {
    Samples samples;
    samples.inverse = table.inverse;
    samples.offsets = table.offsets;
    if (table.distinct == nullptr) return samples;
    const auto& there = static_cast<const HostDeviceDistinct&>(*table.distinct);
    const int32_t* const places =
        table.is_sorted_there ? there.places().data() : table.places;
    for (int32_t u : there.inverse()) samples.own.push_back(places[u]);
    samples.inverse = samples.own.data();
    samples.offsets = there.offsets().data();
    return samples;
  }

  void Pool(const char* rows, WireType wire,
            const std::vector<int64_t>& chunk_starts,
            const std::vector<float*>& outputs, bool there) {
    ++pooled_routes;
    const int num_tables = plan_->num_tables(), num_ranks = plan_->num_ranks();
    rows = There(rows);
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& table = plan_->routed(t);
      Check(Bytes(table) == told_[t], "a route changed after it was told");
      std::vector<float> floats(table.num_unique * table.dim);
      std::vector<const float*> addresses;
      for (int r = 0; r < num_ranks; ++r) {
        const int64_t begin = table.starts[r], end = table.starts[r + 1];
        sok::FromWire(rows + chunk_starts[r * num_tables + t] * WireBytes(wire),
                      (end - begin) * table.dim, wire,
                      floats.data() + begin * table.dim);
      }
      for (int64_t u = 0; u < table.num_unique; ++u) {
        addresses.push_back(floats.data() + u * table.dim);
      }
      ev::PoolingBatch batch = table.batch(addresses.data());
      const Samples samples = SamplesOf(table);
      batch.inverse = samples.inverse;
      batch.offsets = samples.offsets;
      if (table.batch_size == 0) continue;
      ev::PoolSamples(batch, 0, table.batch_size,
                      there ? There(outputs[t]) : Here(outputs[t]));
    }
  }

  // What the device is told.
  static std::string Bytes(const RoutedTable& table) {
    if (table.distinct != nullptr) {
      return std::string(table.for_pooling(), table.for_pooling_bytes());
    }
    return std::string(reinterpret_cast<const char*>(table.offsets),
                       (table.batch_size + 1) * sizeof(int32_t)) +
           std::string(reinterpret_cast<const char*>(table.inverse),
                       table.num_ids * sizeof(int32_t));
  }

  const std::shared_ptr<const RoutePlan> plan_;
  std::vector<std::string> told_;
  std::function<void()> pool_;
  bool is_pooled_ = false;
};

class HostExchangeDevice : public ExchangeDevice {
 public:
  static Status Make(ExchangeDevice** device) {
    *device = new HostExchangeDevice;
    return Status::OK();
  }

  Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) override {
    void* const made = ev::testing::AllocateHostDeviceMemory(bytes);
    if (made == nullptr) return ev::ResourceExhausted("no memory");
    ++live_blocks;
    *memory = std::shared_ptr<char>(static_cast<char*>(made), [](char* used) {
      ev::testing::FreeHostDeviceMemory(used);
      --live_blocks;
    });
    return Status::OK();
  }

  // Few enough that a test's batches are some above, some below.
  int64_t min_ids_to_deduplicate() const override {
    return ev::MinIdsToDeduplicate(kMinDistinctIds);
  }

  Status StartDistincts(
      Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) override {
    Check(!requests.empty(), "no table is to be deduplicated");
    int64_t num_ids = 0;
    for (const ev::DistinctRequest& request : requests) {
      const int64_t least = request.brings_inverse ? min_ids_to_deduplicate()
                                                   : min_ids_to_deduplicate() /
                                                         ev::kDistinctShares;
      Check(request.num_ids >= std::max<int64_t>(1, least) &&
                request.num_ids <= ev::kMaxDistinctIds,
            "so many ids are not for a device");
      num_ids += request.num_ids;
    }
    Check(num_ids >= min_ids_to_deduplicate(),
          "tables that are few ids together are not for a device");
    if (num_ids % kNoRoomFor == 0) {
      ++without_room;
      return ev::ResourceExhausted("no memory");
    }
    const auto unstarted =
        std::make_shared<std::atomic<int64_t>>(requests.size());
    distincts->clear();
    for (const ev::DistinctRequest& request : requests) {
      ++deduplicated;
      if (request.is_there) ++ids_there;
      distincts->emplace_back(new HostDeviceDistinct(
          request, std::make_shared<const HostKnownKeys>(), unstarted));
    }
    return Status::OK();
  }

  ev::DeviceStream stream() override { return stream_.stream(); }
  Status KeepUntilDone(std::shared_ptr<char> memory) override {
    There(memory.get());
    HostStream::Wait(stream());
    return Status::OK();
  }

  Status CopyDown(const char* from, int64_t bytes, char* to) override {
    if (bytes > 0) std::memcpy(Here(to), There(from), bytes);
    return Status::OK();
  }

  Status ToWire(const float* from, int64_t count, WireType wire,
                char* to) override {
    if (count > 0) sok::ToWire(There(from), count, wire, There(to));
    return Status::OK();
  }

  Status FromWire(const char* from, WireType wire, Span<const WireChunk> chunks,
                  float scale, float* to) override {
    ++spread_gradients;
    for (const WireChunk& chunk : chunks) {
      Check(chunk.count > 0, "a chunk is empty");
      float* const out = There(to) + chunk.to;
      sok::FromWire(There(from) + chunk.from * WireBytes(wire), chunk.count,
                    wire, out);
      for (int64_t i = 0; i < chunk.count; ++i) out[i] *= scale;
    }
    return Status::OK();
  }

  Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                    std::unique_ptr<DeviceRoute>* route) override {
    route->reset(new HostRoute(std::move(plan)));
    return Status::OK();
  }

 private:
  HostStream stream_;
};

// A stream is late: it has done its work when the mark is looked at a second
// time, or when the sums are wanted.
class LateMark : public StreamMark {
 public:
  explicit LateMark(const ev::DeviceStream& stream) : stream_(stream) {}
  bool IsReached() override {
    if (!is_looked_at_.exchange(true)) return false;
    HostStream::Wait(stream_);
    return true;
  }
  void Wait() const { HostStream::Wait(stream_); }

 private:
  const ev::DeviceStream stream_;
  std::atomic<bool> is_looked_at_{false};
};

// Carries between memory of the device, or other, of each rank.
class DeviceCarrier : public Carrier {
 public:
  explicit DeviceCarrier(std::unique_ptr<Carrier> memory)
      : memory_(std::move(memory)) {}

  static Status CheckMemory() { return CheckCarrier("memory"); }
  static Status MakeId(int num_ranks, std::string* id) {
    return MakeCarrierId("memory", num_ranks, id);
  }
  static Status Make(const CarrierOptions& options,
                     std::unique_ptr<Carrier>* carrier) {
    std::unique_ptr<Carrier> memory;
    EV_RETURN_IF_ERROR(MakeCarrier("memory", options, &memory));
    std::unique_ptr<DeviceCarrier> made(new DeviceCarrier(std::move(memory)));
    EV_RETURN_IF_ERROR(MakeControlCarrier(made.get(), true, &made->control_));
    Check(made->control_ != nullptr, "ranks of one host share no memory");
    *carrier = std::move(made);
    return Status::OK();
  }

  int rank() const override { return memory_->rank(); }
  int num_ranks() const override { return memory_->num_ranks(); }
  Status AllToAll(const char* send, Span<const int64_t> send_bytes, char* out,
                  Span<const int64_t> received_bytes) override {
    const char* const sent = Reach(send);
    char* const received = Reach(out);
    if (sent != nullptr) ++sent_from_there;
    return memory_->AllToAll(sent == nullptr ? send : sent, send_bytes,
                             received == nullptr ? out : received,
                             received_bytes);
  }
  Status AllReduce(const Reduction& reduction) override {
    Reduction here = reduction;
    if (reduction.after != nullptr) {
      static_cast<const LateMark&>(*reduction.after).Wait();
    }
    for (ReducedPiece& piece : here.pieces) {
      if (piece.count == 0) continue;
      if (reduction.after == nullptr) {
        Here(piece.from);
        Here(piece.to);
        continue;
      }
      piece.from = There(piece.from);
      piece.to = There(piece.to);
    }
    (reduction.after == nullptr ? sums_here : sums_there)++;
    return SumOverRanks(memory_.get(), here);
  }
  Status Mark(const ev::DeviceStream& stream,
              std::shared_ptr<StreamMark>* mark) override {
    *mark = std::make_shared<LateMark>(stream);
    return Status::OK();
  }
  Status Tell(const char* send, Span<const int64_t> send_bytes, char* out,
              Span<const int64_t> received_bytes) override {
    return control_->AllToAll(send, send_bytes, out, received_bytes);
  }
  void Abort() override {
    memory_->Abort();
    control_->Abort();
  }

 private:
  const std::unique_ptr<Carrier> memory_;
  std::unique_ptr<Carrier> control_;
};

const bool kRegistered =
    RegisterExchangeDevice(&HostExchangeDevice::Make) &&
    RegisterCarrier(
        "nccl", CarrierKind{&DeviceCarrier::CheckMemory, &DeviceCarrier::MakeId,
                            &DeviceCarrier::Make});

}  // namespace

HostExchangeCounts GetHostExchangeCounts() {
  (void)kRegistered;
  HostExchangeCounts counts;
  counts.sent_from_there = sent_from_there;
  counts.pooled_routes = pooled_routes;
  counts.spread_gradients = spread_gradients;
  counts.live_blocks = live_blocks;
  counts.deduplicated = deduplicated;
  counts.sums_there = sums_there;
  counts.sums_here = sums_here;
  counts.pooled_there = pooled_there;
  counts.summed_there = summed_there;
  counts.ids_there = ids_there;
  counts.without_room = without_room;
  return counts;
}

}  // namespace testing
}  // namespace sok
