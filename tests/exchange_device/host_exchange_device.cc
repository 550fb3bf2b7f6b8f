// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0

#include "tests/exchange_device/host_exchange_device.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "addons/sparse_operation_kit/exchange/carrier/carrier.h"
#include "addons/sparse_operation_kit/exchange/carrier/control_carrier.h"
#include "addons/sparse_operation_kit/exchange/exchange_device.h"
#include "addons/sparse_operation_kit/exchange/routed_table.h"
#include "addons/sparse_operation_kit/exchange/testing/sum_over_ranks.h"
#include "kernels/engine/base/float_math.h"
#include "kernels/engine/combine/pooling.h"
#include "kernels/engine/ids/device_distinct.h"
#include "kernels/engine/testing/device_shortage.h"
#include "kernels/engine/testing/host_device_distinct.h"
#include "kernels/engine/testing/host_device_memory.h"

namespace sok {
namespace testing {
namespace {

using ev::Span;
using ev::Status;
using ev::testing::AllocateOnDevice;
using ev::testing::HostDeviceDistinct;
using ev::testing::HostStream;
using ev::testing::Reach;

constexpr int64_t kMinDistinctIds = 10;
// StartDistincts returns ResourceExhausted if the tables' ids together are a
// multiple of this number.
constexpr int64_t kNoRoomFor = 11;
// GetHostExchangeCounts checks this many times, a millisecond apart, for memory
// that KeepUntil still holds.
constexpr int kMostLooks = 1000;

std::atomic<int64_t> sends_from_device{0}, pooled_routes{0},
    spread_gradients{0}, live_blocks{0}, deduplicated{0}, sums_on_device{0},
    sums_on_host{0}, pooled_on_device{0}, summed_on_device{0}, ids_on_device{0},
    without_room{0}, started{0};

void Check(bool holds, const char* promise) {
  if (holds) return;
  std::fprintf(stderr, "stand-in for the exchange device: %s\n", promise);
  std::abort();
}

// DeviceAddress returns the address at which the device accesses its memory;
// HostAddress returns its argument. They check that the memory is device
// memory, and host memory.
template <typename T>
T* DeviceAddress(T* memory) {
  T* const reached = Reach(memory);
  Check(reached != nullptr, "an address is not in device memory");
  return reached;
}
template <typename T>
T* HostAddress(T* memory) {
  Check(Reach(memory) == nullptr,
        "an address is in device memory, expected host memory");
  return memory;
}

// A point of a HostStream, whose work runs late: when IsReached has been called
// kLooks times, or when the event is waited for.
class HostEvent : public StreamEvent {
 public:
  // use: a reference that shows that memory is in use. It is dropped when
  // IsReached returns true, but not when another stream or a carrier waits for
  // the event: on a GPU they would be enqueued, and the memory would still be
  // in use.
  HostEvent(std::shared_ptr<HostStream::Point> point, std::shared_ptr<int> use)
      : point_(std::move(point)),
        use_(new std::shared_ptr<int>(std::move(use))) {}
  static std::shared_ptr<StreamEvent> At(const ev::DeviceStream& stream,
                                         std::shared_ptr<int> use = nullptr) {
    return std::make_shared<HostEvent>(HostStream::Of(stream)->Record(),
                                       std::move(use));
  }
  bool IsReached() override {
    if (++looks_ < kLooks) return false;
    point_->Reach();
    std::lock_guard<std::mutex> lock(mu_);
    delete use_;
    use_ = nullptr;
    return true;
  }
  Status Before(const ev::DeviceStream& stream) override {
    const std::shared_ptr<HostStream::Point> point = point_;
    HostStream::Of(stream)->Give([point] { point->Reach(); });
    return Status::OK();
  }
  Status Wait() override {
    point_->Reach();
    return Status::OK();
  }

 private:
  static constexpr int kLooks = 3;

  const std::shared_ptr<HostStream::Point> point_;
  std::atomic<int> looks_{0};
  std::mutex mu_;
  // A pointer that is leaked if the event is dropped before it was reached:
  // then the memory counts as in use.
  std::shared_ptr<int>* use_;
};

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
            "offsets and inverse are not contiguous");
      uploaded_.push_back(Bytes(table));
    }
  }

  ~HostRoute() override {
    for (const auto& one : uses_) {
      Check(one.expired(),
            "a route was destroyed while its work was in flight");
    }
  }

  // Enqueues the pooling, which runs only when it is waited for: a caller that
  // does not wait gets NaN.
  Status StartPool(const char* rows, WireType wire,
                   const std::shared_ptr<StreamEvent>& ready,
                   Span<const int64_t> chunk_starts,
                   Span<const ev::MutableFloats> outputs,
                   const ev::DeviceStream* stream,
                   std::shared_ptr<StreamEvent>* done) override {
    Check(!is_pooled_, "StartPool was called twice");
    is_pooled_ = true;
    if (stream == nullptr) EV_RETURN_IF_ERROR(AllocateOnDevice("outputs"));
    if (ready != nullptr) {
      EV_RETURN_IF_ERROR(ready->Before(stream_.stream()));
    }
    const std::vector<int64_t> starts(chunk_starts.begin(), chunk_starts.end());
    const std::vector<ev::MutableFloats> out(outputs.begin(), outputs.end());
    if (stream == nullptr) {
      stream_.Give([=] { Pool(rows, wire, starts, out, false); });
      return Status::OK();
    }
    ++pooled_on_device;
    const std::shared_ptr<HostStream::Point> before =
        HostStream::Of(*stream)->Record();
    stream_.Give([=] {
      before->Reach();
      Pool(rows, wire, starts, out, true);
    });
    *done = HostEvent::At(stream_.stream(), Use());
    return (*done)->Before(*stream);
  }

  Status Wait() override {
    stream_.Wait();
    return Status::OK();
  }

  Status SumGradients(Span<const int> tables, Span<const ev::ConstFloats> grads,
                      const ev::DeviceStream& stream,
                      Span<const int64_t> chunk_starts, WireType wire,
                      char* message,
                      std::shared_ptr<StreamEvent>* done) override {
    Check(is_pooled_, "SumGradients was called before StartPool");
    EV_RETURN_IF_ERROR(AllocateOnDevice("sums"));
    ++summed_on_device;
    const std::shared_ptr<HostStream::Point> before =
        HostStream::Of(stream)->Record();
    const std::vector<int> numbers(tables.begin(), tables.end());
    const std::vector<ev::ConstFloats> given(grads.begin(), grads.end());
    const std::vector<int64_t> starts(chunk_starts.begin(), chunk_starts.end());
    stream_.Give([=] {
      before->Reach();
      Sum(numbers, given, starts, wire, DeviceAddress(message));
    });
    *done = HostEvent::At(stream_.stream(), Use());
    return Status::OK();
  }

 private:
  // Returns a reference that shows that the route is in use. The route must
  // outlive it.
  std::shared_ptr<int> Use() {
    const auto use = std::make_shared<int>(0);
    std::lock_guard<std::mutex> lock(mu_);
    uses_.push_back(use);
    return use;
  }

  void Sum(const std::vector<int>& tables,
           const std::vector<ev::ConstFloats>& grads,
           const std::vector<int64_t>& chunk_starts, WireType wire,
           char* message) {
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
  }

  // Adds one occurrence after the other, in the order of the batch.
  std::vector<float> SumsOf(const RoutedTable& table, ev::ConstFloats grads) {
    const Samples samples = SamplesOf(table);
    std::vector<float> sums(table.num_unique * table.dim);
    std::vector<bool> has_any(table.num_unique);
    const float* const factors = ev::FactorsOf(table);
    for (int64_t s = 0; s < table.batch_size; ++s) {
      for (int32_t i = samples.offsets[s]; i < samples.offsets[s + 1]; ++i) {
        const int32_t u = samples.inverse[i];
        for (int64_t c = 0; c < table.dim; ++c) {
          float grad = 0.0f;
          ev::VisitFloats(
              ev::ConstFloats(DeviceAddress(grads.data()), grads.type()),
              [&](const auto* all) {
                grad = ev::Widen(all[s * table.dim + c]);
              });
          if (factors != nullptr) grad = grad * factors[s];
          float* const sum = &sums[u * table.dim + c];
          *sum = has_any[u] ? *sum + grad : grad;
        }
        has_any[u] = true;
      }
    }
    return sums;
  }

  // The samples that the device has computed, if it has deduplicated; otherwise
  // those of the route.
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
    const auto& distinct =
        static_cast<const HostDeviceDistinct&>(*table.distinct);
    const int32_t* const places =
        table.is_sorted_on_device ? distinct.places().data() : table.places;
    for (int32_t u : distinct.inverse()) samples.own.push_back(places[u]);
    samples.inverse = samples.own.data();
    samples.offsets = distinct.offsets().data();
    return samples;
  }

  void Pool(const char* rows, WireType wire,
            const std::vector<int64_t>& chunk_starts,
            const std::vector<ev::MutableFloats>& outputs, bool to_device) {
    ++pooled_routes;
    const int num_tables = plan_->num_tables(), num_ranks = plan_->num_ranks();
    rows = DeviceAddress(rows);
    for (int t = 0; t < num_tables; ++t) {
      const RoutedTable& table = plan_->routed(t);
      Check(Bytes(table) == uploaded_[t],
            "a route's arrays changed after StartRoute");
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
      char* const out = outputs[t].data();
      ev::PoolSamples(
          batch, 0, table.batch_size,
          ev::MutableFloats(to_device ? DeviceAddress(out) : HostAddress(out),
                            outputs[t].type()));
    }
  }

  // Returns the bytes that a GPU would copy when the route starts.
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
  std::vector<std::string> uploaded_;
  HostStream stream_;
  std::atomic<bool> is_pooled_{false};
  std::mutex mu_;
  std::vector<std::weak_ptr<int>> uses_;
};

class HostExchangeDevice : public ExchangeDevice {
 public:
  static Status Make(ExchangeDevice** device) {
    *device = the_device = new HostExchangeDevice;
    return Status::OK();
  }

  // The only instance; null if none was made.
  static HostExchangeDevice* the_device;

  // Releases the memory whose event has been reached.
  void GiveUpKept() {
    std::vector<Kept> all, left;
    {
      std::lock_guard<std::mutex> lock(mu_);
      all.swap(kept_);
    }
    // Calls IsReached once per event, even if it keeps several blocks.
    std::map<StreamEvent*, bool> reached;
    for (Kept& kept : all) {
      const auto one = reached.emplace(kept.event.get(), false);
      if (one.second) one.first->second = kept.event->IsReached();
      if (!one.first->second) left.push_back(std::move(kept));
    }
    std::lock_guard<std::mutex> lock(mu_);
    for (Kept& kept : left) kept_.push_back(std::move(kept));
  }

  Status Allocate(int64_t bytes, std::shared_ptr<char>* memory) override {
    GiveUpKept();
    EV_RETURN_IF_ERROR(AllocateOnDevice("an exchange"));
    void* const made = ev::testing::AllocateHostDeviceMemory(bytes);
    if (made == nullptr) return ev::ResourceExhausted("no memory");
    ++live_blocks;
    *memory = std::shared_ptr<char>(static_cast<char*>(made), [](char* used) {
      ev::testing::FreeHostDeviceMemory(used);
      --live_blocks;
    });
    return Status::OK();
  }

  // Chosen so that some of a test's batches are longer and some are shorter.
  int64_t min_ids_to_deduplicate() const override {
    return ev::MinIdsToDeduplicate(kMinDistinctIds);
  }

  Status StartDistincts(
      Span<const ev::DistinctRequest> requests,
      std::vector<std::unique_ptr<ev::DeviceDistinct>>* distincts) override {
    Check(!requests.empty(), "StartDistincts was called without tables");
    int64_t num_ids = 0;
    for (const ev::DistinctRequest& request : requests) {
      const int64_t least = request.brings_inverse ? min_ids_to_deduplicate()
                                                   : min_ids_to_deduplicate() /
                                                         ev::kDistinctShares;
      Check(request.num_ids >= std::max<int64_t>(1, least) &&
                request.num_ids <= ev::kMaxDistinctIds,
            "a table has too few or too many ids for a device");
      num_ids += request.num_ids;
    }
    Check(num_ids >= min_ids_to_deduplicate(),
          "the tables together have too few ids for a device");
    EV_RETURN_IF_ERROR(AllocateOnDevice("distinct ids"));
    if (num_ids % kNoRoomFor == 0) {
      ++without_room;
      return ev::ResourceExhausted("no memory");
    }
    const auto unstarted =
        std::make_shared<std::atomic<int64_t>>(requests.size());
    distincts->clear();
    for (const ev::DistinctRequest& request : requests) {
      ++deduplicated;
      if (request.on_device) ++ids_on_device;
      distincts->emplace_back(new HostDeviceDistinct(request, unstarted));
    }
    return Status::OK();
  }

  ev::DeviceStream stream() override { return stream_.stream(); }
  Status RecordEvent(const ev::DeviceStream& stream,
                     std::shared_ptr<StreamEvent>* event) override {
    event->reset();
    if (AllocateOnDevice("an event").ok()) {
      *event = HostEvent::At(stream);
    } else {
      HostStream::Wait(stream);
    }
    return Status::OK();
  }
  void KeepUntil(std::shared_ptr<StreamEvent> event,
                 std::shared_ptr<const void> what) override {
    if (event == nullptr) return;
    std::lock_guard<std::mutex> lock(mu_);
    kept_.push_back(Kept{std::move(event), std::move(what)});
  }

  Status CopyDown(const char* from, int64_t bytes, char* to) override {
    if (bytes > 0) std::memcpy(HostAddress(to), DeviceAddress(from), bytes);
    return Status::OK();
  }

  Status ToWire(const float* from, int64_t count, WireType wire,
                char* to) override {
    stream_.Give([=] {
      if (count > 0) {
        sok::ToWire(DeviceAddress(from), count, wire, DeviceAddress(to));
      }
    });
    return Status::OK();
  }

  Status FromWire(const char* from, WireType wire,
                  const std::shared_ptr<StreamEvent>& ready,
                  Span<const WireChunk> chunks, float scale,
                  float* to) override {
    EV_RETURN_IF_ERROR(AllocateOnDevice("chunks"));
    ++spread_gradients;
    if (ready != nullptr) EV_RETURN_IF_ERROR(ready->Before(stream()));
    const std::vector<WireChunk> given(chunks.begin(), chunks.end());
    stream_.Give([=] {
      for (const WireChunk& chunk : given) {
        Check(chunk.count > 0, "a chunk is empty");
        float* const out = DeviceAddress(to) + chunk.to;
        sok::FromWire(DeviceAddress(from) + chunk.from * WireBytes(wire),
                      chunk.count, wire, out);
        for (int64_t i = 0; i < chunk.count; ++i) out[i] *= scale;
      }
    });
    return Status::OK();
  }

  Status StartRoute(std::shared_ptr<const RoutePlan> plan,
                    std::unique_ptr<DeviceRoute>* route) override {
    EV_RETURN_IF_ERROR(AllocateOnDevice("a route"));
    route->reset(new HostRoute(std::move(plan)));
    return Status::OK();
  }

 private:
  struct Kept {
    std::shared_ptr<StreamEvent> event;
    std::shared_ptr<const void> what;
  };
  HostStream stream_;
  std::mutex mu_;
  std::vector<Kept> kept_;
};

HostExchangeDevice* HostExchangeDevice::the_device = nullptr;

// A carrier between the ranks' memory, each in device memory or host memory.
// Data of a started exchange arrive late.
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
    Check(made->control_ != nullptr,
          "the ranks of one host have no shared memory");
    *carrier = std::move(made);
    return Status::OK();
  }

  int rank() const override { return memory_->rank(); }
  int num_ranks() const override { return memory_->num_ranks(); }
  Status AllToAll(const char* send, Span<const int64_t> send_bytes, char* out,
                  Span<const int64_t> received_bytes) override {
    const char* const sent = Reach(send);
    char* const received = Reach(out);
    if (sent != nullptr) ++sends_from_device;
    return memory_->AllToAll(sent == nullptr ? send : sent, send_bytes,
                             received == nullptr ? out : received,
                             received_bytes);
  }
  Status StartAllToAll(const char* send, Span<const int64_t> send_bytes,
                       const std::shared_ptr<StreamEvent>& after, char* out,
                       Span<const int64_t> received_bytes, int when_failed,
                       std::shared_ptr<StreamEvent>* ready) override {
    (void)when_failed;
    ready->reset();
    if (after != nullptr) EV_RETURN_IF_ERROR(after->Wait());
    char* const received = Reach(out);
    if (received == nullptr) {
      return AllToAll(send, send_bytes, out, received_bytes);
    }
    int64_t bytes = 0;
    for (int64_t n : received_bytes) bytes += n;
    const auto arrived = std::make_shared<std::string>(bytes, '\0');
    EV_RETURN_IF_ERROR(
        AllToAll(send, send_bytes, &(*arrived)[0], received_bytes));
    const char* const sent = Reach(send);
    stream_.Give([=] {
      Check(Reach(out) == received,
            "the receive buffer was freed before its data arrived");
      Check(Reach(send) == sent,
            "the send buffer was freed before it was sent");
      std::copy(arrived->begin(), arrived->end(), received);
    });
    *ready = HostEvent::At(stream_.stream());
    ++started;
    return Status::OK();
  }
  Status AllReduce(const Reduction& reduction,
                   std::shared_ptr<StreamEvent>* ready) override {
    ready->reset();
    Reduction sum_on_host = reduction;
    if (reduction.after != nullptr) EV_RETURN_IF_ERROR(reduction.after->Wait());
    std::vector<std::string> sums(sum_on_host.pieces.size());
    size_t k = 0;
    for (ReducedPiece& piece : sum_on_host.pieces) {
      std::string* const sum = &sums[k++];
      if (piece.count == 0) continue;
      if (reduction.after == nullptr) {
        HostAddress(piece.from);
        HostAddress(piece.to);
        continue;
      }
      piece.from = DeviceAddress(piece.from);
      sum->resize(piece.count * ReducedBytes(reduction.type));
      piece.to = &(*sum)[0];
    }
    (reduction.after == nullptr ? sums_on_host : sums_on_device)++;
    EV_RETURN_IF_ERROR(SumOverRanks(memory_.get(), sum_on_host));
    if (reduction.after == nullptr) return Status::OK();
    std::vector<char*> places;
    for (const ReducedPiece& piece : reduction.pieces) {
      places.push_back(piece.count == 0 ? nullptr : DeviceAddress(piece.to));
    }
    stream_.Give([=] {
      for (size_t p = 0; p < places.size(); ++p) {
        std::copy(sums[p].begin(), sums[p].end(), places[p]);
      }
    });
    *ready = HostEvent::At(stream_.stream());
    ++started;
    return Status::OK();
  }
  Status RecordEvent(const ev::DeviceStream& stream,
                     std::shared_ptr<StreamEvent>* event) override {
    *event = HostEvent::At(stream);
    return Status::OK();
  }
  Status AllToAllOnHost(const char* send, Span<const int64_t> send_bytes,
                        char* out,
                        Span<const int64_t> received_bytes) override {
    return control_->AllToAll(send, send_bytes, out, received_bytes);
  }
  Status CheckRanks(int64_t call) override {
    return control_->CheckRanks(call);
  }
  void Leave(int64_t calls, std::chrono::milliseconds limit) override {
    control_->Leave(calls, limit);
  }
  void Abort() override {
    memory_->Abort();
    control_->Abort();
  }

 private:
  const std::unique_ptr<Carrier> memory_;
  std::unique_ptr<Carrier> control_;
  HostStream stream_;
};

const bool kRegistered =
    RegisterExchangeDevice(&HostExchangeDevice::Make) &&
    RegisterCarrier(
        "nccl", CarrierKind{&DeviceCarrier::CheckMemory, &DeviceCarrier::MakeId,
                            &DeviceCarrier::Make});

}  // namespace

HostExchangeCounts GetHostExchangeCounts() {
  (void)kRegistered;
  HostExchangeDevice* const device = HostExchangeDevice::the_device;
  for (int looks = 0; device != nullptr && live_blocks > 0; ++looks) {
    device->GiveUpKept();
    if (looks == kMostLooks) break;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  HostExchangeCounts counts;
  counts.sends_from_device = sends_from_device;
  counts.pooled_routes = pooled_routes;
  counts.spread_gradients = spread_gradients;
  counts.live_blocks = live_blocks;
  counts.deduplicated = deduplicated;
  counts.sums_on_device = sums_on_device;
  counts.sums_on_host = sums_on_host;
  counts.pooled_on_device = pooled_on_device;
  counts.summed_on_device = summed_on_device;
  counts.ids_on_device = ids_on_device;
  counts.without_room = without_room;
  counts.started = started;
  return counts;
}

}  // namespace testing
}  // namespace sok
