// Copyright 2026 The SparseOperationKit Authors.
// SPDX-License-Identifier: Apache-2.0
//
// The events and streams of steps, on streams that run late (late_streams.h).
// Each case repeats its calls with many random orders.

#include <cstdint>
#include <cstring>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kernels/engine/base/gpu/device_event.h"
#include "kernels/engine/base/gpu/side_stream.h"
#include "kernels/engine/base/gpu/work/transfer_ring.h"
#include "kernels/engine/base/gpu/work/work_context.h"
#include "kernels/engine/rows/gpu/move_order.h"
#include "kernels/engine/rows/gpu/row_events.h"
#include "kernels/engine/rows/gpu_step/step_work.h"
#include "kernels/engine/testing/late_streams.h"

namespace ev {
namespace gpu {
namespace {

using testing::Enqueue;

constexpr uint32_t kSeeds = 200;

// A table of which the rows move between places, as in RowPlaces. Its calls
// order their work as StepCall, StepUpdate and MoveRows do.
class MovingTable {
 public:
  explicit MovingTable(uint32_t seed) : random_(seed) {
    for (int h = 0; h < kRows; ++h) {
      places_.push_back(h);
      values_.push_back(h);
    }
    expected_ = values_;
    EXPECT_EQ(cudaSuccess, cudaStreamCreateWithFlags(&model_, 0));
  }
  ~MovingTable() {
    testing::WaitForLateStreams();
    for (int h = 0; h < kRows; ++h) {
      EXPECT_EQ(expected_[h], values_[places_[h]]);
    }
    cudaStreamDestroy(model_);
  }

  // Starts or finishes one of several calls that several threads would make.
  void Continue() {
    if (open_.size() < 3 && random_() % 2 == 0) {
      Start();
    } else if (!open_.empty()) {
      const size_t k = random_() % open_.size();
      Finish(std::move(open_[k]));
      open_.erase(open_.begin() + k);
    }
  }
  void FinishAll() {
    for (auto& call : open_) Finish(std::move(call));
    open_.clear();
  }
  int num_moves() const { return num_moves_; }

 private:
  static constexpr int kRows = 6;
  struct Call {
    std::unique_ptr<MoveOrder::Use> use;
    std::unique_ptr<StepWork> work;
    WorkContext* more = nullptr;
    int64_t added = 0;  // by an update
    int64_t expected = 0;
    std::shared_ptr<int64_t> out = std::make_shared<int64_t>(-1);
  };
  static int* PlaceIn(const Call& call) {
    return reinterpret_cast<int*>(call.more->device());
  }

  void Follow(StepWork* work) {
    for (const auto& event : events_.in_flight()) {
      ASSERT_TRUE(event->Before(work->stream()).ok());
      work->followed()->push_back(event);
    }
  }

  // Enqueues the transfer of a handle and the lookup of its place.
  void Start() {
    Call call;
    const int handle = random_() % kRows;
    const DeviceStream model{model_};
    call.use.reset(new MoveOrder::Use(order_));
    call.work.reset(new StepWork(0, &model));
    ASSERT_TRUE(call.work->Acquire(sizeof(int), sizeof(int)).ok());
    ASSERT_TRUE(
        call.work->AcquireMore(sizeof(int), sizeof(int), &call.more).ok());
    Follow(call.work.get());
    std::memcpy(call.more->host(), &handle, sizeof(int));
    int* const on_device = PlaceIn(call);
    cudaMemcpyAsync(on_device, call.more->host(), sizeof(int),
                    cudaMemcpyHostToDevice, call.work->stream());
    Enqueue(call.work->stream(), [=] { *on_device = places_.at(*on_device); });
    call.expected = expected_[handle];
    // Updates run alone.
    if (open_.empty() && random_() % 2 == 0) {
      call.added = 1 + random_() % 100;
      expected_[handle] += call.added;
      Finish(std::move(call));
    } else {
      open_.push_back(std::move(call));
    }
  }

  // Enqueues the read or the update of the row, the model's use of the output,
  // and moves.
  void Finish(Call call) {
    StepWork* const work = call.work.get();
    int* const place = PlaceIn(call);
    const int64_t added = call.added, expected = call.expected;
    const auto out = call.out;
    Enqueue(work->stream(), [=] {
      *out = values_.at(*place);
      values_[*place] += added;
    });
    ASSERT_TRUE(work->End(work->stream(), work->outside()).ok());
    Enqueue(model_, [=] { EXPECT_EQ(expected, *out); });
    events_.Add(work->end(), *work->followed());
    call.use.reset();
    Move(work);
    work->Release();
  }

  void Move(StepWork* work) {
    const MoveOrder::Moving moving(order_);
    if (!moving.is_closed()) return;
    ++num_moves_;
    Follow(work);
    const int a = random_() % kRows, b = random_() % kRows;
    const auto read = std::make_shared<std::pair<int64_t, int64_t>>();
    Enqueue(work->stream(), [=] {
      *read = {values_[places_[a]], values_[places_[b]]};
    });
    Enqueue(work->stream(), [=] {
      std::swap(places_[a], places_[b]);
      values_[places_[a]] = read->first;
      values_[places_[b]] = read->second;
    });
    std::shared_ptr<DeviceEvent> moved;
    ASSERT_TRUE(DeviceEvent::Record(work->stream(), &moved).ok());
    events_.Add(moved, *work->followed());
    work->MoveEnd(std::move(moved));
  }

  std::mt19937 random_;
  std::vector<int> places_;        // by handle, on the device
  std::vector<int64_t> values_;    // by place, on the device
  std::vector<int64_t> expected_;  // by handle, after all calls so far
  cudaStream_t model_ = nullptr;
  RowEvents events_;
  const std::shared_ptr<MoveOrder> order_ = std::make_shared<MoveOrder>();
  std::vector<Call> open_;
  int num_moves_ = 0;
};

TEST(StepOrderTest, CallsAndMovesOfATable) {
  for (uint32_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    testing::SeedLateStreams(seed);
    MovingTable table(seed);
    for (int k = 0; k < 100; ++k) table.Continue();
    table.FinishAll();
    EXPECT_GT(table.num_moves(), 0);
  }
}

TEST(StepOrderTest, ARingReusesMemoryAfterItsTransfer) {
  for (uint32_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    testing::SeedLateStreams(seed);
    std::unique_ptr<TransferRing> ring;
    ASSERT_TRUE(TransferRing::Acquire(sizeof(int), &ring).ok());
    std::vector<int> received, sent;
    for (int k = 0; k < 10; ++k) {
      TransferRing::Turn* turn = nullptr;
      ASSERT_TRUE(ring->Next(&turn).ok());
      sent.push_back(k);
      std::memcpy(turn->host, &k, sizeof(int));
      cudaMemcpyAsync(turn->device, turn->host, sizeof(int),
                      cudaMemcpyHostToDevice, ring->stream());
      const int* const on_device = reinterpret_cast<int*>(turn->device);
      Enqueue(ring->stream(),
              [&received, on_device] { received.push_back(*on_device); });
      ASSERT_TRUE(ring->End(turn).ok());
    }
    ASSERT_TRUE(ring->Wait().ok());
    TransferRing::Release(std::move(ring));
    EXPECT_EQ(sent, received) << seed;
  }
}

TEST(StepOrderTest, ASideStreamRunsBetweenForkAndJoin) {
  SideStream side;
  ASSERT_TRUE(side.Create().ok());
  std::unique_ptr<WorkContext> context;
  ASSERT_TRUE(WorkContext::Acquire(0, sizeof(int), &context).ok());
  for (uint32_t seed = 0; seed < kSeeds && !HasFailure(); ++seed) {
    testing::SeedLateStreams(seed);
    int* const at = reinterpret_cast<int*>(context->device());
    Enqueue(context->stream(), [=] { *at = 1; });
    ASSERT_TRUE(side.Fork(context->stream()).ok());
    Enqueue(side.get(), [=] { *at += 10; });
    ASSERT_TRUE(side.Join(context->stream()).ok());
    Enqueue(context->stream(), [=] { *at *= 2; });
    int brought = 0;
    ASSERT_TRUE(context->BringDown(0, sizeof(int), &brought).ok());
    EXPECT_EQ(22, brought) << seed;
  }
  WorkContext::Release(std::move(context));
}

}  // namespace
}  // namespace gpu
}  // namespace ev
